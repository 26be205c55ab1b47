//! Every single damage to a right plan is found by verification.
//!
//! Damages that leave a plan right are not tried, because verification accepts them by design:
//! - element bytes: any are legal, and nothing else in a plan depends on them;
//! - one KV move cut into two that follow each other: every key still arrives once from its home;
//! - another placement with all its moves: a plan is right wherever its tiles are;
//! - another relay among the readers of a range, with all its forwards.

#![forbid(unsafe_code)]

use std::fmt::Write;

use libra_sched::verify;
use libra_sched::{
    ExchangePlan, KvMove, KvRoute, Mask, PlanConfig, PoolPlan, SampleId, ShTile, TileId, TileMove,
    Topology, WorkerId, plan_pool,
};
use libra_tests::cases::named;

/// Damaged plans, each with what was done.
struct Damages<'a> {
    plan: &'a PoolPlan,
    done: Vec<(String, PoolPlan)>,
}

impl Damages<'_> {
    fn add(&mut self, what: impl Into<String>, damage: impl FnOnce(&mut PoolPlan)) {
        let mut damaged = self.plan.clone();
        damage(&mut damaged);
        self.done.push((what.into(), damaged));
    }

    /// As [`Damages::add`], where `value` may be no number that the field can hold.
    fn set(&mut self, what: &str, value: Option<u32>, damage: impl FnOnce(&mut PoolPlan, u32)) {
        if let Some(value) = value {
            self.add(format!("{what} {value}"), |plan| damage(plan, value));
        }
    }

    fn next_worker(&self, worker: WorkerId) -> WorkerId {
        WorkerId((worker.0 + 1) % self.plan.layout.workers())
    }
}

fn all(plan: &PoolPlan) -> Vec<(String, PoolPlan)> {
    let mut damages = Damages {
        plan,
        done: Vec::new(),
    };
    for tile in 0..plan.tiles.len() {
        damage_tile(&mut damages, tile);
    }
    for index in 0..plan.exchange.q.len() {
        damage_tile_move(&mut damages, "Q", index, |plan| &mut plan.exchange.q);
    }
    for index in 0..plan.exchange.o.len() {
        damage_tile_move(&mut damages, "O", index, |plan| &mut plan.exchange.o);
    }
    for index in 0..plan.exchange.kv.len() {
        damage_kv_move(&mut damages, "KV move", index, |exchange| &mut exchange.kv);
    }
    for index in 0..plan.exchange.forward.len() {
        damage_kv_move(&mut damages, "forward", index, |exchange| {
            &mut exchange.forward
        });
    }
    damage_route(&mut damages);
    damage_chunks(&mut damages);
    damage_whole(&mut damages);
    damages.done
}

/// A field of a tile, named, with the values to try.
type TileField = (&'static str, fn(&mut ShTile) -> &mut u32);

const TILE_FIELDS: [TileField; 7] = [
    ("slot", |tile| &mut tile.slot),
    ("start", |tile| &mut tile.start),
    ("end", |tile| &mut tile.end),
    ("shard", |tile| &mut tile.shard),
    ("home", |tile| &mut tile.q_home.0),
    ("first sample", |tile| &mut tile.first_sample.0),
    ("samples", |tile| &mut tile.samples),
];

fn damage_tile(damages: &mut Damages<'_>, index: usize) {
    let plan = damages.plan;
    let tile = plan.tiles[index];
    let name = |what: &str| format!("tile {index}: {what}");
    for (field, of) in TILE_FIELDS {
        let value = *of(&mut plan.tiles[index].clone());
        for other in [value.checked_sub(1), value.checked_add(1), Some(u32::MAX)] {
            damages.set(&name(field), other, |p, other| {
                *of(&mut p.tiles[index]) = other;
            });
        }
    }
    for (what, by) in [("moved right", 1), ("moved left", -1)] {
        let ends = (
            tile.start.checked_add_signed(by),
            tile.end.checked_add_signed(by),
        );
        if let (Some(start), Some(end)) = ends {
            damages.add(name(what), |p| {
                p.tiles[index].start = start;
                p.tiles[index].end = end;
            });
        }
    }
    damages.add(name("reserved"), |p| p.tiles[index].reserved = 1);
    damages.add(name("work + 1"), |p| p.tiles[index].work += 1);
    if tile.work > 0 {
        damages.add(name("work - 1"), |p| p.tiles[index].work -= 1);
        damages.add(name("work 0"), |p| p.tiles[index].work = 0);
    }
    for worker in (0..plan.layout.workers()).map(WorkerId) {
        if worker != plan.workers[index] {
            damages.add(name("worker"), |p| p.workers[index] = worker);
        }
        if worker != tile.q_home {
            damages.add(name("any other home"), |p| p.tiles[index].q_home = worker);
        }
    }
    damages.add(name("dropped"), |p| {
        p.tiles.remove(index);
        p.workers.remove(index);
    });
    damages.add(name("dropped with its moves"), |p| drop_tile(p, index));
    damages.add(name("repeated at the end"), |p| {
        p.tiles.push(tile);
        p.workers.push(tile.q_home);
    });
    damages.add(name("dropped without its worker"), |p| {
        p.tiles.remove(index);
    });
    // Neighbours may be one tile, but not across fragments of different workers.
    let follows = |other: &ShTile| {
        (other.slot, other.shard, other.start) == (tile.slot, tile.shard, tile.end)
            && other.q_home != tile.q_home
    };
    if let Some(next) = plan.tiles.iter().position(follows) {
        damages.add(name("merged across a fragment's edge"), |p| {
            let other = p.tiles[next];
            let merged = &mut p.tiles[index];
            merged.end = other.end;
            merged.work += other.work;
            merged.samples = (other.samples().end - merged.samples().start) as u32;
            drop_tile(p, next);
        });
    }
    for other in 0..index {
        damages.add(name("swapped"), |p| p.tiles.swap(index, other));
        damages.add(name("swapped with its worker"), |p| {
            p.tiles.swap(index, other);
            p.workers.swap(index, other);
        });
    }
}

/// Removes a tile, its moves, and the gap in tile ids.
fn drop_tile(plan: &mut PoolPlan, index: usize) {
    plan.tiles.remove(index);
    plan.workers.remove(index);
    for moves in [&mut plan.exchange.q, &mut plan.exchange.o] {
        moves.retain(|m| m.tile.index() != index);
        for m in moves.iter_mut().filter(|m| m.tile.index() > index) {
            m.tile = TileId(m.tile.0 - 1);
        }
    }
}

fn damage_tile_move(
    damages: &mut Damages<'_>,
    leg: &str,
    index: usize,
    list: fn(&mut PoolPlan) -> &mut Vec<TileMove>,
) {
    let moves = list(&mut damages.plan.clone()).clone();
    let TileMove { tile, src, dst } = moves[index];
    let name = |what: &str| format!("{leg} move {index}: {what}");
    let (next_src, next_dst) = (damages.next_worker(src), damages.next_worker(dst));
    damages.add(name("dropped"), |p| {
        list(p).remove(index);
    });
    damages.add(name("repeated"), |p| list(p).insert(index, moves[index]));
    damages.add(name("redirected"), |p| list(p)[index].dst = next_dst);
    damages.add(name("from elsewhere"), |p| list(p)[index].src = next_src);
    damages.add(name("turned around"), |p| {
        list(p)[index] = TileMove {
            tile,
            src: dst,
            dst: src,
        };
    });
    let tiles = [tile.0.checked_sub(1), Some(tile.0 + 1), Some(u32::MAX)];
    for other in tiles {
        damages.set(&name("tile"), other, |p, other| {
            list(p)[index].tile = TileId(other);
        });
    }
    for other in 0..index {
        damages.add(name("swapped"), |p| list(p).swap(index, other));
    }
}

fn damage_kv_move(
    damages: &mut Damages<'_>,
    kind: &str,
    index: usize,
    list: fn(&mut ExchangePlan) -> &mut Vec<KvMove>,
) {
    let m = list(&mut damages.plan.exchange.clone())[index];
    let name = |what: &str| format!("{kind} {index}: {what}");
    let workers = damages.plan.layout.workers();
    damages.add(name("dropped"), |p| {
        list(&mut p.exchange).remove(index);
    });
    damages.add(name("repeated"), |p| list(&mut p.exchange).insert(index, m));
    damages.add(name("turned around"), |p| {
        list(&mut p.exchange)[index] = KvMove {
            src: m.dst,
            dst: m.src,
            ..m
        };
    });
    for worker in (0..workers).chain([u32::MAX]).map(WorkerId) {
        if worker != m.dst {
            damages.add(name("redirected"), |p| {
                list(&mut p.exchange)[index].dst = worker;
            });
        }
        if worker != m.src {
            damages.add(name("from elsewhere"), |p| {
                list(&mut p.exchange)[index].src = worker;
            });
        }
    }
    for (start, end) in [
        (1, 0),
        (-1, 0),
        (0, 1),
        (0, -1),
        (1, 1),
        (-1, -1),
        (-1, 1),
        (1, -1),
    ] {
        let moved = (
            m.start.checked_add_signed(start),
            m.end.checked_add_signed(end),
        );
        if let (Some(start), Some(end)) = moved {
            damages.add(name("range"), |p| {
                list(&mut p.exchange)[index].start = start;
                list(&mut p.exchange)[index].end = end;
            });
        }
    }
    for other in [
        m.sample.0.checked_sub(1),
        Some(m.sample.0 + 1),
        Some(u32::MAX),
    ] {
        damages.set(&name("sample"), other, |p, other| {
            list(&mut p.exchange)[index].sample = SampleId(other);
        });
    }
    for other in [m.span.checked_sub(1), Some(m.span + 1), Some(u32::MAX)] {
        damages.set(&name("span"), other, |p, other| {
            list(&mut p.exchange)[index].span = other;
        });
    }
    for other in 0..index {
        damages.add(name("swapped"), |p| {
            list(&mut p.exchange).swap(index, other);
        });
    }
}

/// Both hops at once: moves that change lists, and relays that are none.
fn damage_route(damages: &mut Damages<'_>) {
    let plan = damages.plan;
    for (index, &m) in plan.exchange.kv.iter().enumerate() {
        damages.add(format!("KV move {index}: forwarded"), |p| {
            p.exchange.kv.remove(index);
            p.exchange.forward.push(m);
            p.exchange.forward.sort_unstable();
        });
    }
    for (index, &m) in plan.exchange.forward.iter().enumerate() {
        let name = |what: &str| format!("forward {index}: {what}");
        damages.add(name("first hop"), |p| {
            p.exchange.forward.remove(index);
            p.exchange.kv.push(m);
            p.exchange.kv.sort_unstable();
        });
        let feeds = |first: &&KvMove| {
            (first.dst, first.sample, first.span) == (m.src, m.sample, m.span)
                && first.start < m.end
                && m.start < first.end
        };
        let first = plan.exchange.kv.iter().find(feeds);
        let home = first.expect("a relay has what it forwards").src;
        damages.add(name("from home"), |p| {
            p.exchange.forward.remove(index);
            p.exchange.kv.push(KvMove { src: home, ..m });
            p.exchange.kv.sort_unstable();
        });
        damages.add(name("home named as relay"), |p| {
            p.exchange.forward[index].src = home;
        });
        damages.add(name("the relay's own first hop dropped"), |p| {
            p.exchange.kv.retain(|first| !feeds(&first));
        });
    }
    if !plan.exchange.forward.is_empty() {
        damages.add("direct", |p| p.kv_route = KvRoute::Direct);
        for gpus in [1, 2, 4] {
            let nodes = KvRoute::Node(Topology::new(gpus).expect("positive"));
            damages.add(format!("nodes of {gpus}"), |p| p.kv_route = nodes);
        }
        damages.add("no forwards", |p| p.exchange.forward.clear());
        damages.add("direct moves through nodes", |p| {
            let direct = PlanConfig {
                kv_fetch: p.kv_fetch,
                ..PlanConfig::paper(2)
            };
            let direct = plan_pool(&p.lengths, &p.layout, &p.heads, &direct);
            p.exchange = direct.expect("the case can be planned").exchange;
        });
    }
}

fn damage_chunks(damages: &mut Damages<'_>) {
    for (head, &chunk) in damages.plan.q_chunks.iter().enumerate() {
        for other in [chunk.checked_sub(1), Some(chunk + 1)] {
            let what = format!("query head {head}: chunk");
            damages.set(&what, other, |p, other| p.q_chunks[head] = other);
        }
    }
    for (head, chunks) in damages.plan.kv_chunks.iter().enumerate() {
        for (end, &chunk) in chunks.iter().enumerate() {
            for other in [chunk.checked_sub(1), Some(chunk + 1)] {
                let what = format!("KV head {head}: chunk {end}");
                damages.set(&what, other, |p, other| p.kv_chunks[head][end] = other);
            }
        }
    }
}

/// Another parent of every sample, and none, where the plan's samples have some.
fn damage_parents(damages: &mut Damages<'_>) {
    let lengths = &damages.plan.lengths;
    if !lengths.has_parents() {
        return;
    }
    let samples = (0..lengths.samples()).map(SampleId::new);
    let right: Vec<_> = samples.map(|sample| lengths.parent(sample)).collect();
    for sample in 0..right.len() {
        for other in (0..sample).map(SampleId::new).map(Some).chain([None]) {
            let mut parents = right.clone();
            parents[sample] = other;
            let legal = damages.plan.lengths.clone().with_parents(&parents).ok();
            if let Some(lengths) = legal.filter(|_| other != right[sample]) {
                let what = format!("sample {sample}: another parent or none");
                damages.add(what, |p| p.lengths = lengths);
            }
        }
    }
}

/// Masks that differ from one with numbers by 1 in one of them.
fn near(mask: Mask) -> Vec<(&'static str, Mask)> {
    let masks = match mask {
        Mask::Window { window, sinks, .. } => vec![
            ("window + 1", Mask::window(window + 1, sinks)),
            ("window - 1", Mask::window(window - 1, sinks)),
            ("sinks + 1", Mask::window(window, sinks + 1)),
            ("sinks - 1", Mask::window(window, sinks - 1)),
            (
                "one key from sinks to window",
                Mask::window(window + 1, sinks - 1),
            ),
        ],
        Mask::Block {
            block,
            local,
            sinks,
            ..
        } => vec![
            ("block + 1", Mask::block_causal(block + 1, local, sinks)),
            ("block - 1", Mask::block_causal(block - 1, local, sinks)),
            ("local + 1", Mask::block_causal(block, local + 1, sinks)),
            ("local - 1", Mask::block_causal(block, local - 1, sinks)),
            ("sinks + 1", Mask::block_causal(block, local, sinks + 1)),
            ("sinks - 1", Mask::block_causal(block, local, sinks - 1)),
            (
                "sinks as local",
                Mask::block_causal(block, local + sinks, 0),
            ),
        ],
        Mask::Keys { start, end, .. } => vec![
            ("start + 1", Mask::restricted(start + 1, end)),
            ("start - 1", Mask::restricted(start - 1, end)),
            ("end + 1", Mask::restricted(start, end + 1)),
            ("end - 1", Mask::restricted(start, end - 1)),
        ],
        _ => Vec::new(),
    };
    let legal = |(what, mask): (_, Result<_, _>)| (what, mask.expect("a legal mask"));
    masks.into_iter().map(legal).collect()
}

fn damage_whole(damages: &mut Damages<'_>) {
    let other_mask = match damages.plan.mask {
        Mask::Full => Mask::Causal,
        _ => Mask::Full,
    };
    damages.add("another mask", |p| p.mask = other_mask);
    for (what, mask) in near(damages.plan.mask) {
        damages.add(format!("{what} of the mask"), |p| p.mask = mask);
    }
    damage_parents(damages);
    damages.add("a worker too many", |p| p.workers.push(WorkerId(0)));
    damages.add("a query head too few", |p| {
        p.q_chunks.pop();
    });
    damages.add("a KV head too many", |p| p.kv_chunks.push([0, 0]));
    damages.add("no tiles", |p| {
        p.tiles.clear();
        p.workers.clear();
    });
    damages.add("a Q move of a tile at home", |p| {
        let at_home = |&tile: &usize| p.tiles[tile].q_home == p.workers[tile];
        let tile = (0..p.tiles.len()).find(at_home);
        let (tile, home) = tile.map_or((0, WorkerId(0)), |tile| (tile, p.tiles[tile].q_home));
        let (tile, dst) = (
            TileId::new(tile),
            WorkerId((home.0 + 1) % p.layout.workers()),
        );
        p.exchange.q.push(TileMove {
            tile,
            src: home,
            dst,
        });
        p.exchange.q.sort_unstable();
    });
}

#[test]
fn every_damaged_plan_is_caught() {
    let mut cases = 0;
    for named in named() {
        let plan = named.case.plan();
        assert_eq!(verify::check(&plan), [], "{}", named.name);
        for (what, damaged) in all(&plan) {
            assert!(
                damaged != plan,
                "{}, {what}: nothing was damaged",
                named.name
            );
            let found = verify::check(&damaged);
            assert!(!found.is_empty(), "{}, {what}: not found", named.name);
            cases += 1;
        }
    }
    println!("{cases} damaged plans");
    assert!(cases > 500, "{cases} cases");
}

#[test]
fn what_is_accepted_by_design_is_accepted() {
    let cases = named();
    let plan = cases[0].case.plan();
    let mut other_bytes = plan.clone();
    other_bytes.bytes.activation = 1;
    assert_eq!(verify::check(&other_bytes), []);

    let mut cut = plan.clone();
    let whole = plan.exchange.kv[0];
    cut.exchange.kv[0].end = whole.start + 1;
    cut.exchange.kv.insert(
        1,
        KvMove {
            start: whole.start + 1,
            ..whole
        },
    );
    assert_eq!(verify::check(&cut), []);
}

/// One change to a plan.
type Damage = fn(&mut PoolPlan);

/// What verification says of the first named plan after each damage.
fn said(damages: &[(&str, Damage)]) -> String {
    said_of(named()[0].name, damages)
}

/// As [`said`], of the plan named `name`.
fn said_of(name: &str, damages: &[(&str, Damage)]) -> String {
    let named = named().into_iter().find(|named| named.name == name);
    let plan = named.expect("a case has that name").case.plan();
    let mut text = String::new();
    for (what, damage) in damages {
        let mut damaged = plan.clone();
        damage(&mut damaged);
        writeln!(text, "{what}").expect("a string takes all that is written");
        for violation in verify::check(&damaged) {
            writeln!(text, "  {violation}").expect("a string takes all that is written");
        }
    }
    text
}

#[test]
fn a_violation_says_what_is_wrong() {
    let text = said(&[
        ("tile 2 with another home", |p| {
            p.tiles[2].q_home = WorkerId(0);
        }),
        ("tile 2 at another worker", |p| p.workers[2] = WorkerId(0)),
        ("tile 0 with less work", |p| p.tiles[0].work = 20),
        ("tile 6 shorter", |p| p.tiles[6].end = 8),
        ("tile 7 in another shard", |p| p.tiles[7].shard = 0),
        ("tile 5 with a sample less", |p| p.tiles[5].samples = 1),
        ("tiles 4 and 5 swapped", |p| p.tiles.swap(4, 5)),
        ("a Q move less", |p| p.exchange.q.truncate(5)),
        ("an O move twice", |p| {
            p.exchange.o.insert(0, p.exchange.o[0]);
        }),
        ("an O move redirected", |p| {
            p.exchange.o[5].dst = WorkerId(2);
        }),
        ("a KV move less", |p| p.exchange.kv.truncate(10)),
        ("a KV move shorter", |p| p.exchange.kv[0].start = 7),
        ("a KV move redirected", |p| {
            p.exchange.kv[0].dst = WorkerId(2);
        }),
        ("a KV move from elsewhere", |p| {
            p.exchange.kv[0].src = WorkerId(3);
        }),
        ("a KV move beyond its sample", |p| p.exchange.kv[1].end = 13),
        ("a KV move twice", |p| {
            p.exchange.kv.insert(0, p.exchange.kv[0]);
        }),
        ("KV moves swapped", |p| p.exchange.kv.swap(3, 4)),
        ("a query head in another chunk", |p| p.q_chunks[1] = 1),
        ("a KV head that stays longer", |p| p.kv_chunks[0][1] = 1),
        ("a worker less", |p| p.workers.truncate(7)),
    ]);
    insta::assert_snapshot!(text, @r"
    tile 2 with another home
      tile 2: home of the first token is 0, must be 1
      tile 2: home of the last token is 0, must be 1
      tile 2: 0 Q moves, must be 1
      tile 2: 0 O moves, must be 1
    tile 2 at another worker
      tile 2: 0 Q moves, must be 1
      tile 2: 0 O moves, must be 1
      KV move 3 to w1: tokens 0..6 of sample 0 are read by no tile there
      w0, sample 0, KV span 0: tokens 6..8 are there 0 times
      w0, sample 1, KV span 0: tokens 8..12 are there 0 times
    tile 0 with less work
      tile 0: work is 20, must be 21
    tile 6 shorter
      slot 1, shard 0: tokens 8..9 are computed 0 times
      tile 6: work is 6, must be 3
    tile 7 in another shard
      slot 1, shard 0: tokens 6..9 are computed 2 times
      slot 1, shard 1: tokens 6..9 are computed 0 times
      tiles 6 and 7 are out of order
      KV move 4 to w1: tokens 6..9 of sample 4 are read by no tile there
      w1, sample 4, KV span 0: tokens 6..9 are there 0 times
    tile 5 with a sample less
      tile 5: number of samples is 1, must be 2
    tiles 4 and 5 swapped
      tiles 4 and 5 are out of order
      KV move 9 to w3: tokens 0..3 of sample 2 are read by no tile there
      KV move 10 to w3: tokens 3..6 of sample 3 are read by no tile there
      w3, sample 2, KV span 0: tokens 0..3 are there 0 times
      w3, sample 3, KV span 0: tokens 3..6 are there 0 times
    a Q move less
      tile 7: 0 Q moves, must be 1
    an O move twice
      tile 0: 2 O moves, must be 1
      O moves 0 and 1 are out of order
    an O move redirected
      O move of tile 7: w1 to w2, must be w1 to w3
    a KV move less
      w3, sample 3, KV span 1: tokens 3..6 are there 0 times
    a KV move shorter
      w0, sample 0, KV span 1: tokens 6..7 are there 0 times
    a KV move redirected
      KV moves 0 and 1 are out of order
      KV move 0 to w2: tokens 6..8 of sample 0 are read by no tile there
      w0, sample 0, KV span 1: tokens 6..8 are there 0 times
    a KV move from elsewhere
      KV move 0 from w3: tokens 6..8 live at w1
    a KV move beyond its sample
      KV move 1 to w0: tokens 8..13 of sample 1 lie beyond what is to be fetched
      w0, sample 1, KV span 1: tokens 8..12 are there 0 times
    a KV move twice
      KV moves 0 and 1 are out of order
      w0, sample 0, KV span 1: tokens 6..8 are there 2 times
    KV moves swapped
      KV moves 3 and 4 are out of order
    a query head in another chunk
      query head 1: chunk 1, must be 0
    a KV head that stays longer
      last of KV head 0: chunk 1, must be 0
    a worker less
      workers of tiles: 7 there, 8 expected
    ");
}

#[test]
fn a_violation_of_a_route_says_what_is_wrong() {
    let text = said_of(
        "two_hops",
        &[
            ("a forward less", |p| p.exchange.forward.truncate(3)),
            ("a forward by another of the node", |p| {
                p.exchange.forward[0].src = WorkerId(4);
            }),
            ("a forward from another node", |p| {
                p.exchange.forward[0].src = WorkerId(0);
            }),
            ("a forward longer than what entered", |p| {
                p.exchange.forward[1].end = 10;
            }),
            ("a forward from home instead", |p| {
                let first = p.exchange.forward.remove(0);
                let src = WorkerId(0);
                p.exchange.kv.push(KvMove { src, ..first });
                p.exchange.kv.sort_unstable();
            }),
            ("forwards swapped", |p| p.exchange.forward.swap(0, 1)),
            ("a direct route", |p| p.kv_route = KvRoute::Direct),
        ],
    );
    insta::assert_snapshot!(text, @r"
    a forward less
      w4, sample 0, KV span 0: tokens 4..8 are there 0 times
    a forward by another of the node
      forward 0 from w4 to w3: tokens 0..4 did not enter the node at their sender
    a forward from another node
      forward 0 from w0 to w3: tokens 0..4 must come from another worker of the node
      forward 0 from w0 to w3: tokens 0..4 did not enter the node at their sender
    a forward longer than what entered
      forward 1 to w3: tokens 8..10 of sample 0 lie beyond what is to be fetched
      w3, sample 0, KV span 0: tokens 8..9 are there 0 times
      forward 1 from w4 to w3: tokens 8..10 did not enter the node at their sender
    a forward from home instead
      KV move 9 to w5: tokens 0..4 enter the node twice
    forwards swapped
      forwards 0 and 1 are out of order
    a direct route
      forward 0 from w5 to w3: tokens 0..4 come from no home, and the route is direct
      forward 1 from w4 to w3: tokens 8..9 come from no home, and the route is direct
      forward 2 from w5 to w4: tokens 0..4 come from no home, and the route is direct
      forward 3 from w3 to w4: tokens 4..8 come from no home, and the route is direct
    ");
}
