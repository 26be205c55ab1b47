use libra_sched::placement::{self, Placement, Problem, Scratch};
use libra_sched::{Placer, ShTile, Slack, TileSet, WorkerId};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::cases::{Case, paper_cases, runs, slacks};
use crate::twins;

fn problem(case: &Case) -> Problem<'_> {
    Problem::new(&case.pool, &case.layout, &case.heads, case.config.bytes).unwrap()
}

fn place(case: &Case, tiles: &[ShTile], placer: Placer) -> Placement {
    placement::place(&problem(case), &case.set(tiles), placer).unwrap()
}

fn slack_of(case: &Case) -> Slack {
    match case.config.placer {
        Placer::Paper(slack) => slack,
        _ => unreachable!("paper cases are placed by Algorithm 2"),
    }
}

fn twin(case: &Case, tiles: &[ShTile]) -> (Vec<WorkerId>, Vec<u64>) {
    let Case {
        pool,
        layout,
        heads,
        config,
    } = case;
    twins::placement::place(pool, layout, heads, config.bytes, tiles, slack_of(case))
}

/// Tiles of two block sizes, drawn with repetition in any order: they overlap and follow nothing.
fn drawn(case: &Case, other_block: u32, draws: &[Index]) -> Vec<ShTile> {
    let all = [case.tiles(), case.tiles_of(other_block)].concat();
    if all.is_empty() {
        return all;
    }
    draws.iter().map(|draw| *draw.get(&all)).collect()
}

proptest! {
    #![proptest_config(runs(1500))]

    #[test]
    fn algorithm_2_equals_its_literal_transcription_tile_by_tile(case in paper_cases()) {
        let tiles = case.tiles();
        let placed = place(&case, &tiles, case.config.placer);
        let (workers, loads) = twin(&case, &tiles);
        prop_assert_eq!(placed.workers, workers);
        prop_assert_eq!(placed.loads, loads);
    }

    #[test]
    fn algorithm_2_equals_its_transcription_on_tiles_in_any_order(
        case in paper_cases(),
        other_block in 1u32..24,
        draws in prop::collection::vec(any::<Index>(), 0..80),
    ) {
        let tiles = drawn(&case, other_block, &draws);
        let placed = place(&case, &tiles, case.config.placer);
        let (workers, loads) = twin(&case, &tiles);
        prop_assert_eq!(placed.workers, workers);
        prop_assert_eq!(placed.loads, loads);
    }

    #[test]
    fn algorithm_2_equals_its_transcription_where_a_tile_comes_twice_in_a_row(
        case in paper_cases(),
    ) {
        let tiles: Vec<ShTile> = case.tiles().iter().flat_map(|&tile| [tile, tile]).collect();
        let placed = place(&case, &tiles, case.config.placer);
        prop_assert_eq!((placed.workers, placed.loads), twin(&case, &tiles));
    }

    #[test]
    fn work_is_conserved(case in paper_cases()) {
        let tiles = case.tiles();
        let total: u64 = tiles.iter().map(|tile| tile.work).sum();
        for placer in [Placer::Home, case.config.placer] {
            let placed = place(&case, &tiles, placer);
            prop_assert_eq!(placed.loads.iter().sum::<u64>(), total);
            let mut loads = vec![0; case.layout.workers() as usize];
            for (tile, worker) in tiles.iter().zip(&placed.workers) {
                loads[worker.index()] += tile.work;
            }
            prop_assert_eq!(placed.loads, loads);
        }
    }

    #[test]
    fn no_load_exceeds_the_soft_target_while_no_tile_falls_back(case in paper_cases()) {
        let tiles = case.tiles();
        let total: u64 = tiles.iter().map(|tile| tile.work).sum();
        let capacity = slack_of(&case).capacity(total, case.layout.workers());
        let placed = place(&case, &tiles, case.config.placer);
        if placed.fallbacks == 0 {
            prop_assert!(placed.loads.iter().all(|&load| load <= capacity));
        }
    }

    #[test]
    fn without_a_limit_nothing_falls_back_and_the_heaviest_tile_stays_home(case in paper_cases()) {
        let tiles = case.tiles();
        let placed = place(&case, &tiles, Placer::Paper(Slack::UNBOUNDED));
        prop_assert_eq!(placed.fallbacks, 0);
        let heaviest = (0..tiles.len()).max_by_key(|&id| (tiles[id].work, std::cmp::Reverse(id)));
        if let Some(id) = heaviest.filter(|_| case.config.bytes.activation > 0) {
            prop_assert_eq!(placed.workers[id], tiles[id].q_home);
        }
    }

    #[test]
    fn without_bytes_only_load_and_id_decide(case in paper_cases()) {
        let mut case = case;
        case.config.bytes.activation = 0;
        let tiles = case.tiles();
        let placed = place(&case, &tiles, Placer::Paper(Slack::UNBOUNDED));
        let mut order: Vec<usize> = (0..tiles.len()).collect();
        order.sort_by_key(|&id| (std::cmp::Reverse(tiles[id].work), id));
        let mut loads = vec![0; case.layout.workers() as usize];
        for id in order {
            let lightest = (0..loads.len()).min_by_key(|&worker| (loads[worker], worker)).unwrap();
            prop_assert_eq!(placed.workers[id].index(), lightest);
            loads[lightest] += tiles[id].work;
        }
    }

    #[test]
    fn equal_tiles_without_slack_give_loads_that_differ_by_one_tile_at_most(
        case in paper_cases(),
        work in 1u64..100,
    ) {
        let mut tiles = case.tiles();
        tiles.iter_mut().for_each(|tile| tile.work = work);
        let placed = place(&case, &tiles, Placer::Paper(Slack::from_ppm(0).unwrap()));
        let (lightest, heaviest) = (placed.loads.iter().min(), placed.loads.iter().max());
        prop_assert!(heaviest.unwrap() - lightest.unwrap() <= work);
    }

    #[test]
    fn a_used_scratch_changes_no_placement(a in paper_cases(), b in paper_cases()) {
        let mut scratch = Scratch::default();
        for case in [&a, &b, &a] {
            let (tiles, problem) = (case.tiles(), problem(case));
            let used = placement::place_with(&mut scratch, &problem, &case.set(&tiles), case.config.placer);
            prop_assert_eq!(used, placement::place(&problem, &case.set(&tiles), case.config.placer));
        }
    }

    #[test]
    fn home_leaves_every_tile_and_head_shard_gives_each_worker_its_heads(case in paper_cases()) {
        let tiles = case.tiles();
        let home = place(&case, &tiles, Placer::Home);
        prop_assert!(tiles.iter().zip(&home.workers).all(|(tile, &worker)| tile.q_home == worker));
        let (shards, cp) = (case.heads.shards(), case.layout.cp());
        let spread = placement::place(&problem(&case), &case.set(&tiles), Placer::HeadShard);
        prop_assert_eq!(spread.is_ok(), shards.is_multiple_of(cp));
        for (tile, worker) in tiles.iter().zip(spread.iter().flat_map(|p| &p.workers)) {
            prop_assert_eq!(worker.0, tile.slot * cp + tile.shard * cp / shards);
        }
    }

    #[test]
    fn capacity_is_the_largest_load_within_the_slack(
        slack in slacks(),
        total: u64,
        workers in 1u32..200,
    ) {
        let capacity = slack.capacity(total, workers);
        let within = |load: u128| {
            load * u128::from(workers) * 1_000_000
                <= u128::from(total) * (1_000_000 + u128::from(slack.ppm()))
        };
        if slack == Slack::UNBOUNDED {
            prop_assert_eq!(capacity, u64::MAX);
        } else {
            prop_assert!(within(capacity.into()));
            prop_assert!(capacity == u64::MAX || !within(u128::from(capacity) + 1));
        }
    }

    #[test]
    fn slack_as_text_parses_back(ppm in 0u32..=1_000_000_000) {
        let slack = Slack::from_ppm(ppm).unwrap();
        prop_assert_eq!(slack.to_string().parse(), Ok(slack));
    }
}

#[test]
fn a_tile_of_another_pool_is_refused() {
    use libra_sched::{Error, HeadSplit, LayoutKind, PackedLengths, SampleId, TokenLayout};
    let pool = PackedLengths::new(12, [vec![4u64, 4, 4], vec![6, 6]]).unwrap();
    let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 12, 1).unwrap();
    let heads = HeadSplit::new(2, 2, 4, 4, 2, 1).unwrap();
    let tile =
        libra_sched::tiles::cut(&pool, &layout, &heads, libra_sched::Mask::Causal, 12).unwrap()[0];
    let foreign = [
        ("slot", ShTile { slot: 2, ..tile }),
        ("shard", ShTile { shard: 2, ..tile }),
        (
            "q_home worker",
            ShTile {
                q_home: WorkerId(2),
                ..tile
            },
        ),
        ("end of tokens", ShTile { end: 13, ..tile }),
        (
            "end of tokens",
            ShTile {
                start: 5,
                end: 4,
                ..tile
            },
        ),
        ("end of samples", ShTile { samples: 4, ..tile }),
        (
            "end of samples",
            ShTile {
                first_sample: SampleId(1),
                ..tile
            },
        ),
        ("first sample", ShTile { slot: 1, ..tile }),
    ];
    for (expected, tile) in foreign {
        match TileSet::new(&pool, &layout, &heads, vec![tile]) {
            Err(Error::OutOfRange { name, .. } | Error::Mismatch { name, .. }) => {
                assert_eq!(name, expected);
            }
            other => panic!("{tile:?} gives {other:?}"),
        }
    }
}

#[test]
fn a_tile_set_of_another_pool_is_refused() {
    use libra_sched::{Error, HeadSplit, LayoutKind, PackedLengths, TokenLayout};
    let pool = |lengths: [Vec<u64>; 2]| PackedLengths::new(12, lengths).unwrap();
    let layout = |cp| TokenLayout::new(LayoutKind::Contiguous, 2, 12, cp).unwrap();
    let heads = |shards| HeadSplit::new(4, 4, 4, 4, shards, 1).unwrap();
    let own = (pool([vec![4, 4, 4], vec![6, 6]]), layout(1), heads(2));
    let mask = libra_sched::Mask::Causal;
    let tiles = libra_sched::tiles::cut(&own.0, &own.1, &own.2, mask, 5).unwrap();
    for (expected, (pool, layout, heads)) in [
        ("number of workers", (own.0.clone(), layout(2), heads(2))),
        ("H", (own.0.clone(), layout(1), heads(4))),
        (
            "number of samples",
            (pool([vec![4, 8], vec![6, 6]]), layout(1), heads(2)),
        ),
        (
            "length of a sample",
            (pool([vec![4, 4, 3], vec![6, 6]]), layout(1), heads(2)),
        ),
    ] {
        let bytes = libra_sched::ElementBytes::BF16;
        let problem = Problem::new(&pool, &layout, &heads, bytes).unwrap();
        for placer in [Placer::Paper(Slack::PAPER), Placer::Home, Placer::HeadShard] {
            let placed = placement::place(&problem, &tiles, placer);
            assert!(
                matches!(placed, Err(Error::Mismatch { name, .. }) if name == expected),
                "{expected}: {placed:?}"
            );
        }
        let workers = vec![WorkerId(0); tiles.len()];
        let derived = libra_sched::exchange::derive(
            &pool,
            &layout,
            &heads,
            &tiles,
            &workers,
            mask,
            libra_sched::KvFetch::Whole,
        );
        assert!(matches!(derived, Err(Error::Mismatch { name, .. }) if name == expected));
    }
}
