//! Core attention disaggregation: DistCA's greedy over all replicas. Zhuang et al. 2025, arXiv 2510.18121; the planner of
//! hao-ai-lab/DistCA.
//!
//! Samples fill workers in order; one that does not fit goes on at the next worker, each holding a *head* and a *tail* of
//! it, counted from both ends, so that under a causal mask a pair of queries, one of each, has ℓ + 1 pairs of keys wherever
//! it is taken. Workers below the mean take from those above it, the emptiest first: of all items the one that costs the
//! fewest bytes for the work that can move, split from the inside of its head and tail in multiples of 128 tokens, until
//! the worker lacks less than ε = 0.1 of the mean. Costs are pessimistic: keys that are there already count again. The
//! published planner ends there; as its paper has all workers within ε, a second pass takes from those that are still above
//! 1 + ε, and fills others up to it. O(moves · items).
//!
//! Attention servers are the workers themselves, and ping-pong between two micro-batches is the pipeline of M chunks. What
//! then moves is counted as for every plan: each key once a destination.

use std::ops::Range;

use libra_sched::{
    ExchangePlan, Fragment, HeadSplit, KvFetch, KvRoute, Mask, PackedLengths, PoolPlan, SampleId,
    ShTile, TileSet, TokenLayout, WorkerId, exchange,
};
use rayon::prelude::*;

use super::libra::resharded;
use super::pools::in_arrival_order;
use super::{Group, Work, pools};
use crate::failure::Failure;
use crate::preset::Shapes;

/// Tokens of a head or a tail that is split off are a multiple of this.
const GRAIN_TOKENS: u32 = 128;
/// A worker is full when it lacks less than the mean's 1/10.
const TOLERANCE: u64 = 10;

/// A plan for all replicas of each gradient-accumulation index, in arrival order.
pub(super) fn groups(window: &PackedLengths, shapes: &Shapes) -> Result<Vec<Group>, Failure> {
    let pools = in_arrival_order(window.sequences(), shapes.window.dp() as usize);
    let groups: Vec<Result<Group, Failure>> = pools
        .par_iter()
        .map(|pool| {
            let lengths = window.select(&pool.members)?;
            let (layout, mut items) = head_and_tail(&lengths, shapes.window.cp())?;
            let heads = resharded(&shapes.heads, 1, shapes.heads.chunks());
            balance(
                &mut items,
                &lengths,
                shapes.plan.mask,
                &heads,
                layout.workers(),
            );
            let plan = plan(lengths, &layout, heads, shapes, &items)?;
            Ok(pools::group(
                &shapes.window,
                pool.first,
                Work::Plan(Box::new(plan)),
                &layout,
            ))
        })
        .collect();
    groups.into_iter().collect()
}

/// Head and tail of a sample: what one worker computes of what one worker holds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    sample: usize,
    slot: u32,
    /// Sample-local tokens.
    head: Range<u32>,
    /// Sample-local tokens, of which the last ones read the most.
    tail: Range<u32>,
    home: WorkerId,
    worker: WorkerId,
}

impl Item {
    fn pairs(&self, lengths: &PackedLengths, mask: Mask) -> u64 {
        let len = lengths.length(SampleId::new(self.sample));
        mask.pairs(len, self.head.clone()) + mask.pairs(len, self.tail.clone())
    }

    /// `tokens` from the inside of the head, and as many of the tail.
    fn split(&mut self, tokens: u32) -> Self {
        let (head, tail) = (self.head.end - tokens, self.tail.start + tokens);
        let inside = Self {
            head: head..self.head.end,
            tail: self.tail.start..tail,
            ..self.clone()
        };
        (self.head.end, self.tail.start) = (head, tail);
        inside
    }
}

/// Samples over the workers of their sequence, in order, each worker up to its share of the tokens.
fn head_and_tail(lengths: &PackedLengths, cp: u32) -> Result<(TokenLayout, Vec<Item>), Failure> {
    let tokens = lengths.seq_tokens();
    let edge = |rank: u32| (u64::from(tokens) * u64::from(rank) / u64::from(cp)) as u32;
    let (mut items, mut slots) = (Vec::new(), Vec::new());
    for slot in 0..lengths.sequences() {
        let mut fragments = Vec::new();
        let (mut rank, mut used) = (0, 0);
        for sample in lengths.samples_of(slot) {
            let of_sequence = lengths.tokens(SampleId::new(sample));
            let (mut start, mut end) = (0, of_sequence.end - of_sequence.start);
            let first = items.len();
            while start < end {
                while used == edge(rank + 1) {
                    rank += 1;
                }
                let here = (end - start).min(edge(rank + 1) - used);
                // The later half is the longer one of a part, the earlier one that of a whole sample.
                let is_whole = start == 0 && here == end;
                let head = if is_whole { here.div_ceil(2) } else { here / 2 };
                let tail = here - head;
                let home = WorkerId(slot as u32 * cp + rank);
                items.push(Item {
                    sample,
                    slot: slot as u32,
                    head: start..start + head,
                    tail: end - tail..end,
                    home,
                    worker: home,
                });
                (start, end, used) = (start + head, end - tail, used + here);
            }
            let own = &items[first..];
            let heads = own.iter().map(|item| (item, &item.head));
            let tails = own.iter().rev().map(|item| (item, &item.tail));
            for (item, part) in heads.chain(tails) {
                let rank = item.home.0 % cp;
                push(&mut fragments, part.end - part.start, rank);
            }
        }
        // Padding.
        for rank in rank..cp {
            push(&mut fragments, edge(rank + 1) - used, rank);
            used = edge(rank + 1);
        }
        slots.push(fragments);
    }
    Ok((TokenLayout::explicit(tokens, cp, 1, slots)?, items))
}

/// The next `tokens` tokens of a sequence are those of `rank`.
fn push(fragments: &mut Vec<Fragment>, tokens: u32, rank: u32) {
    let start = fragments.last().map_or(0, |last| last.end);
    match fragments.last_mut() {
        Some(last) if last.rank == rank => last.end += tokens,
        _ if tokens > 0 => fragments.push(Fragment {
            start,
            end: start + tokens,
            rank,
        }),
        _ => {}
    }
}

/// Items, and the work of each and of every worker.
struct Balance<'a> {
    lengths: &'a PackedLengths,
    mask: Mask,
    heads: &'a HeadSplit,
    items: &'a mut Vec<Item>,
    work: Vec<u64>,
    loads: Vec<u64>,
    mean: u64,
}

/// Moves items and parts of them from workers above the mean to those below it.
fn balance(
    items: &mut Vec<Item>,
    lengths: &PackedLengths,
    mask: Mask,
    heads: &HeadSplit,
    workers: u32,
) {
    let work: Vec<u64> = items.iter().map(|item| item.pairs(lengths, mask)).collect();
    let mut loads = vec![0u64; workers as usize];
    for (item, &work) in items.iter().zip(&work) {
        loads[item.worker.index()] += work;
    }
    let mean = loads.iter().sum::<u64>() / u64::from(workers);
    let mut balance = Balance {
        lengths,
        mask,
        heads,
        items,
        work,
        loads,
        mean,
    };
    let limit = mean + mean / TOLERANCE;
    balance.pass(&Pass {
        above: mean,
        up_to: mean,
        tolerance: mean / TOLERANCE,
        is_nearest: true,
    });
    balance.pass(&Pass {
        above: limit,
        up_to: limit,
        tolerance: 0,
        is_nearest: false,
    });
}

/// Who gives to whom.
struct Pass {
    /// Givers have more, and keep the mean.
    above: u64,
    /// Receivers end with about so much.
    up_to: u64,
    /// They stop when they lack no more.
    tolerance: u64,
    /// Whether parts are rounded to the nearest grain, or down.
    is_nearest: bool,
}

impl Balance<'_> {
    /// Every worker that lacks more than the tolerance takes what it can, the emptiest first.
    fn pass(&mut self, pass: &Pass) {
        let is_below = |&worker: &usize| self.loads[worker] < pass.up_to;
        let mut order: Vec<usize> = (0..self.loads.len()).filter(is_below).collect();
        order.sort_by_key(|&worker| (self.loads[worker], worker));
        for receiver in order {
            while self.loads[receiver] + pass.tolerance < pass.up_to {
                let Some((at, part)) = self.cheapest(pass, pass.up_to - self.loads[receiver])
                else {
                    break;
                };
                self.take(at, part, receiver);
            }
        }
    }

    /// The item that costs the fewest bytes for a unit of the work it can give, and the part of it; the first of equals.
    fn cheapest(&self, pass: &Pass, missing: u64) -> Option<(usize, Option<u32>)> {
        let may_give = |(at, item): (usize, &Item)| {
            let load = self.loads[item.worker.index()];
            let surplus = if load > pass.above {
                load - self.mean
            } else {
                0
            };
            let amount = self.work[at].min(surplus).min(missing);
            let len = u64::from(self.lengths.length(SampleId::new(item.sample)));
            let part = part_of(item, self.work[at], amount, len, pass.is_nearest)?;
            Some((priority(self.heads, len + 1, amount), at, part))
        };
        let candidates = self.items.iter().enumerate().filter_map(may_give);
        let best = candidates.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        best.map(|(_, at, part)| (at, part))
    }

    /// `receiver` computes item `at`, or `part` tokens of its head and of its tail.
    fn take(&mut self, at: usize, part: Option<u32>, receiver: usize) {
        let giver = self.items[at].worker.index();
        let worker = WorkerId(receiver as u32);
        let moved = match part {
            None => {
                self.items[at].worker = worker;
                self.work[at]
            }
            Some(tokens) => {
                let mut inside = self.items[at].split(tokens);
                inside.worker = worker;
                let moved = inside.pairs(self.lengths, self.mask);
                self.items.push(inside);
                self.work.push(moved);
                self.work[at] -= moved;
                moved
            }
        };
        self.loads[giver] -= moved;
        self.loads[receiver] += moved;
    }
}

/// What to take of an item for `amount` of its work: all of it, or so many tokens of head and tail, in whole grains;
/// nothing where that is none.
fn part_of(item: &Item, work: u64, amount: u64, len: u64, is_nearest: bool) -> Option<Option<u32>> {
    if amount == 0 {
        return None;
    }
    if amount == work {
        return Some(None);
    }
    let inside = (item.head.end - item.head.start).min(item.tail.end - item.tail.start);
    let grain = u64::from(GRAIN_TOKENS);
    // Rounded down, every receiver would lack half a grain, and the few that give would keep it all.
    let more = if is_nearest { grain / 2 } else { 0 };
    let whole = (amount / (len + 1) + more) / grain * grain;
    let tokens = whole.min(u64::from(inside) / grain * grain) as u32;
    (tokens > 0).then_some(Some(tokens))
}

/// Elements that move for each pair: the queries of `amount` pairs, `reach` pairs a query, and all keys. Additions,
/// multiplications and divisions of doubles are the same everywhere.
fn priority(heads: &HeadSplit, reach: u64, amount: u64) -> f64 {
    let (reach, amount) = (reach as f64, amount as f64);
    let queries = amount / reach * f64::from(heads.q_heads() * heads.dim_qk());
    let width = f64::from(heads.kv_heads()) * f64::from(heads.dim_qk() + heads.dim_v());
    (queries + reach * width) / amount
}

/// Items as tiles of one shard; what lies side by side at one worker is one tile.
fn plan(
    lengths: PackedLengths,
    layout: &TokenLayout,
    heads: HeadSplit,
    shapes: &Shapes,
    items: &[Item],
) -> Result<PoolPlan, Failure> {
    let mask = shapes.plan.mask;
    let (tiles, workers) = tiles(&lengths, items, mask, heads.q_heads());
    let tiles = TileSet::new(&lengths, layout, &heads, tiles)?;
    let fetch = KvFetch::Range;
    let exchange: ExchangePlan =
        exchange::derive(&lengths, layout, &heads, &tiles, &workers, mask, fetch)?;
    let chunk = |head| heads.chunk_of_head(head);
    let kv_chunks = |head| [heads.first_chunk_of_kv(head), heads.last_chunk_of_kv(head)];
    Ok(PoolPlan {
        layout: layout.clone(),
        mask,
        kv_fetch: fetch,
        kv_route: KvRoute::Direct,
        bytes: shapes.plan.bytes,
        tiles: tiles.into_vec(),
        workers,
        q_chunks: (0..heads.q_heads()).map(chunk).collect(),
        kv_chunks: (0..heads.kv_heads()).map(kv_chunks).collect(),
        exchange,
        lengths,
        heads,
    })
}

fn tiles(
    lengths: &PackedLengths,
    items: &[Item],
    mask: Mask,
    width: u32,
) -> (Vec<ShTile>, Vec<WorkerId>) {
    let mut parts: Vec<(&Item, &Range<u32>)> = (items.iter())
        .flat_map(|item| [(item, &item.head), (item, &item.tail)])
        .filter(|(_, part)| !part.is_empty())
        .collect();
    // Samples are numbered slot by slot in token order.
    parts.sort_unstable_by_key(|(item, part)| (item.sample, part.start));
    let (mut tiles, mut workers) = (Vec::<ShTile>::new(), Vec::<WorkerId>::new());
    for (item, part) in parts {
        let tokens = lengths.tokens(SampleId::new(item.sample));
        let (start, end) = (tokens.start + part.start, tokens.start + part.end);
        let pairs = mask.pairs(tokens.end - tokens.start, part.clone());
        let work = pairs * u64::from(width);
        let sample = item.sample as u32;
        match (tiles.last_mut(), workers.last()) {
            (Some(last), Some(&worker))
                if (last.slot, last.end, last.q_home) == (item.slot, start, item.home)
                    && worker == item.worker =>
            {
                last.end = end;
                last.work += work;
                last.samples = sample + 1 - last.first_sample.0;
            }
            _ => {
                tiles.push(ShTile {
                    slot: item.slot,
                    start,
                    end,
                    shard: 0,
                    q_home: item.home,
                    first_sample: SampleId(sample),
                    samples: 1,
                    reserved: 0,
                    work,
                });
                workers.push(item.worker);
            }
        }
    }
    (tiles, workers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::check::check_schedule;
    use crate::baseline::method::Method;
    use crate::baseline::tests::{shapes, window};
    use crate::preset::Preset;

    fn cad_shapes(tokens: u64) -> Shapes {
        shapes(Preset::Tiny, |settings| {
            (settings.tokens, settings.gbs, settings.dp, settings.cp) = (tokens, 4, 4, 2);
        })
    }

    #[test]
    fn a_sample_over_two_workers_is_a_head_and_a_tail_at_each() {
        let lengths = PackedLengths::new(12, [vec![2u32, 10]]).expect("fits");
        let (layout, items) = head_and_tail(&lengths, 2).expect("covers");
        let parts: Vec<_> = (items.iter())
            .map(|item| {
                (
                    item.sample,
                    item.head.clone(),
                    item.tail.clone(),
                    item.home.0,
                )
            })
            .collect();
        assert_eq!(
            parts,
            [(0, 0..1, 1..2, 0), (1, 0..2, 8..10, 0), (1, 2..5, 5..8, 1)]
        );
        let fragments: Vec<_> = layout
            .fragments(0)
            .iter()
            .map(|f| (f.start, f.end, f.rank))
            .collect();
        assert_eq!(fragments, [(0, 4, 0), (4, 10, 1), (10, 12, 0)]);
    }

    #[test]
    fn one_long_sample_is_shared_out_evenly_in_whole_grains() {
        // 8 workers; all work lies at the first two. A grain is 1/32 of the mean.
        let shapes = cad_shapes(65536);
        let mut lengths = [65536u32].into_iter().chain(std::iter::repeat(1));
        let window = window(4, 65536, || lengths.next().expect("endless"));
        let schedule = Method::Cad.schedule(&window, &shapes).expect("legal");
        check_schedule(&schedule, &window, &shapes);
        let Work::Plan(plan) = &schedule.groups[0].work else {
            panic!("a plan");
        };
        let loads = plan.loads();
        let mean = loads.iter().sum::<u64>() / 8;
        assert!(
            loads.iter().all(|&load| load.abs_diff(mean) <= mean / 10),
            "{loads:?}"
        );
        let away = plan
            .tiles
            .iter()
            .zip(&plan.workers)
            .filter(|(tile, worker)| tile.q_home != **worker);
        assert!(away.clone().count() > 0);
        assert!(
            away.map(|(tile, _)| tile.len())
                .all(|tokens| tokens % GRAIN_TOKENS == 0)
        );
    }

    #[test]
    fn no_one_ends_above_the_tolerance_by_more_than_a_grain() {
        let shapes = cad_shapes(8192);
        let mut state = 7u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let exponent = (state >> 60) as u32;
            8u32 << exponent.min(10)
        };
        for _ in 0..8 {
            let window = window(4, 8192, &mut next);
            let schedule = Method::Cad.schedule(&window, &shapes).expect("legal");
            check_schedule(&schedule, &window, &shapes);
            let Work::Plan(plan) = &schedule.groups[0].work else {
                panic!("a plan");
            };
            let loads = plan.loads();
            let mean = loads.iter().sum::<u64>() / 8;
            // No grain has more.
            let grain = u64::from(GRAIN_TOKENS) * 8193 * 4;
            let limit = mean + mean / TOLERANCE + grain;
            assert!(loads.iter().all(|&load| load <= limit), "{loads:?}");
        }
    }

    #[test]
    fn a_move_costs_its_queries_and_all_keys_and_is_split_from_the_inside() {
        let heads = HeadSplit::new(4, 2, 8, 8, 1, 1).expect("legal");
        // 2^20 pairs: 1024 queries of 32 elements and 1024 keys of 32, or half the queries and twice the keys.
        assert_eq!(priority(&heads, 1024, 1 << 20), 65536.0 / 1048576.0);
        assert_eq!(
            priority(&heads, 2048, 1 << 20),
            (16384.0 + 65536.0) / 1048576.0
        );
        let mut item = Item {
            sample: 0,
            slot: 0,
            head: 0..1000,
            tail: 1000..2000,
            home: WorkerId(0),
            worker: WorkerId(0),
        };
        let work = 2000 * 2001 / 2;
        assert_eq!(part_of(&item, work, work, 2000, true), Some(None));
        assert_eq!(
            part_of(&item, work, 300 * 2001, 2000, true),
            Some(Some(256))
        );
        assert_eq!(
            part_of(&item, work, 320 * 2001, 2000, true),
            Some(Some(384))
        );
        assert_eq!(part_of(&item, work, 63 * 2001, 2000, true), None);
        assert_eq!(
            part_of(&item, work, 320 * 2001, 2000, false),
            Some(Some(256))
        );
        // 1000 tokens are seven grains.
        assert_eq!(
            part_of(&item, work, 999 * 2001, 2000, true),
            Some(Some(896))
        );
        let inside = item.split(256);
        assert_eq!((inside.head, inside.tail), (744..1000, 1000..1256));
        assert_eq!((item.head, item.tail), (0..744, 1256..2000));
    }
}
