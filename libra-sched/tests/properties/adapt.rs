use std::collections::BTreeMap;

use libra_sched::exchange;
use libra_sched::plan::granularity;
use libra_sched::{Placer, PoolPlan, ShTile, Tiling, TokenLayout, WorkerId, tiles, verify};
use proptest::prelude::*;

use crate::cases::{Case, paper_cases, runs, tile_cases};

/// The case with tiles that adapt.
fn adaptive(case: Case) -> Case {
    let mut case = case;
    case.config.tiling = Tiling::Adaptive;
    case
}

/// The worker of every query in every shard.
fn workers_of_queries(
    tiles: &[ShTile],
    workers: &[WorkerId],
) -> BTreeMap<(u32, u32, u32), WorkerId> {
    let of = |(tile, &worker): (&ShTile, &WorkerId)| {
        let place = (tile.slot, tile.shard);
        tile.tokens()
            .map(move |token| ((place.0, place.1, token), worker))
    };
    tiles.iter().zip(workers).flat_map(of).collect()
}

/// Neighbours that stay at home merged one pair at a time, until none is left.
fn merged_pair_by_pair(
    layout: &TokenLayout,
    tiles: &[ShTile],
    workers: &[WorkerId],
) -> Vec<(ShTile, WorkerId)> {
    let mut left: Vec<(ShTile, WorkerId)> =
        tiles.iter().copied().zip(workers.iter().copied()).collect();
    let fragment = |tile: &ShTile| {
        let holds = |f: &libra_sched::Fragment| f.tokens().contains(&tile.start);
        layout.fragments(tile.slot).iter().position(holds)
    };
    let is_pair = |(a, at): &(ShTile, WorkerId), (b, bt): &(ShTile, WorkerId)| {
        (a.slot, a.shard, a.end) == (b.slot, b.shard, b.start)
            && (*at, *bt) == (a.q_home, b.q_home)
            && fragment(a) == fragment(b)
    };
    let mut at = 0;
    while at < left.len() {
        let next = (at + 1..left.len()).find(|&next| is_pair(&left[at], &left[next]));
        let Some(next) = next else {
            at += 1;
            continue;
        };
        let (tile, _) = left.remove(next);
        let kept = &mut left[at].0;
        let shared = kept.samples().end > tile.samples().start;
        kept.samples += tile.samples - u32::from(shared);
        kept.end = tile.end;
        kept.work += tile.work;
    }
    left
}

proptest! {
    #![proptest_config(runs(500))]

    #[test]
    fn parts_are_light_or_of_one_token_and_light_tiles_are_left_alone(
        case in tile_cases(),
        limit in 1u64..400,
    ) {
        let whole = case.set(&case.tiles());
        let split = tiles::split(&whole, &case.heads, case.config.mask, limit).unwrap();
        prop_assert!(split.iter().all(|part| part.work <= limit || part.len() == 1));
        let light = |tile: &&ShTile| tile.work <= limit;
        for tile in whole.iter().filter(light) {
            prop_assert!(split.contains(tile));
        }
        // Parts of a tile follow each other, have its home, and add up to it.
        for tile in whole.iter() {
            let parts: Vec<&ShTile> = (split.iter())
                .filter(|part| (part.slot, part.shard) == (tile.slot, tile.shard))
                .filter(|part| tile.start <= part.start && part.end <= tile.end)
                .collect();
            prop_assert_eq!(parts[0].start, tile.start);
            prop_assert_eq!(parts[parts.len() - 1].end, tile.end);
            prop_assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
            prop_assert!(parts.iter().all(|part| part.q_home == tile.q_home));
            prop_assert_eq!(parts.iter().map(|part| part.work).sum::<u64>(), tile.work);
        }
        prop_assert_eq!(split.work_total(), whole.work_total());
        // As if these tiles had been handed in.
        prop_assert_eq!(&split, &case.set(&split));
    }

    #[test]
    fn merging_is_merging_pair_by_pair(case in tile_cases()) {
        let case = adaptive(case);
        let whole = case.set(&case.tiles());
        let mut unmerged = case.clone();
        unmerged.config.tiling = Tiling::Fixed;
        let workers = unmerged.plan().workers;
        let (merged, left) = tiles::merge(&whole, &case.layout, &workers).unwrap();
        let twin = merged_pair_by_pair(&case.layout, &whole, &workers);
        let found: Vec<_> = merged.iter().copied().zip(left).collect();
        prop_assert_eq!(found, twin);
        prop_assert_eq!(&merged, &case.set(&merged));
    }

    #[test]
    fn merging_moves_no_query_and_no_byte(mut case in tile_cases()) {
        case.config.tiling = Tiling::Fixed;
        let Case { pool, layout, heads, config } = &case;
        let whole = case.set(&case.tiles());
        let workers = case.plan().workers;
        let (merged, left) = tiles::merge(&whole, layout, &workers).unwrap();
        prop_assert_eq!(
            workers_of_queries(&merged, &left),
            workers_of_queries(&whole, &workers)
        );
        let derive = |tiles: &_, workers: &[_]| {
            exchange::derive(pool, layout, heads, tiles, workers, config.mask, config.kv_fetch)
        };
        let (before, after) = (derive(&whole, &workers).unwrap(), derive(&merged, &left).unwrap());
        prop_assert_eq!(before.kv, after.kv);
        prop_assert_eq!(before.q.len(), after.q.len());
    }

    #[test]
    fn adaptive_plans_pass_verification(case in tile_cases()) {
        let case = adaptive(case);
        let plan = case.plan();
        prop_assert_eq!(verify::check(&plan), vec![]);
        let work: u64 = case.tiles().iter().map(|tile| tile.work).sum();
        prop_assert_eq!(plan.loads().iter().sum::<u64>(), work);
    }

    #[test]
    fn finer_tiles_have_no_higher_bound(case in tile_cases()) {
        let case = adaptive(case);
        let Case { pool, layout, heads, config } = &case;
        let [fixed, placed] = granularity(pool, layout, heads, config).unwrap();
        prop_assert_eq!(fixed.tiles, case.tiles().len());
        prop_assert!(placed.tiles >= fixed.tiles);
        prop_assert!(placed.bound <= fixed.bound);
    }

    #[test]
    fn nobody_passes_the_target_by_more_than_the_heaviest_part(
        case in paper_cases(),
    ) {
        let case = adaptive(case);
        let Case { layout, config, heads, .. } = &case;
        let plan: PoolPlan = case.plan();
        let Placer::Paper(slack) = config.placer else {
            unreachable!("paper cases are placed by Algorithm 2")
        };
        prop_assume!(slack != libra_sched::Slack::UNBOUNDED);
        let total: u64 = plan.loads().iter().sum();
        let target = slack.capacity(total, layout.workers());
        // The heaviest query, which reads its sample and all ancestors at most, cannot be split.
        let reads = |sample: usize| -> u32 {
            let sample = libra_sched::SampleId::new(sample);
            let above = case.pool.ancestors(sample).map(|above| case.pool.length(above));
            case.pool.length(sample) + above.sum::<u32>()
        };
        let longest = (0..case.pool.samples()).map(reads).max().unwrap_or(0);
        let query = u64::from(longest) * u64::from(heads.shard_width());
        let heaviest = (target / 3).max(query);
        // Who falls back is the lightest and so at most at the mean before.
        let most = target.max(total / u64::from(layout.workers()) + heaviest);
        prop_assert!(plan.loads().iter().all(|&load| load <= most));
    }
}

#[test]
fn names_of_tilings_parse_back() {
    for tiling in Tiling::ALL {
        assert_eq!(tiling.to_string().parse(), Ok(tiling));
    }
}

#[test]
fn parts_of_long_tiles_begin_at_multiples_of_128() {
    use libra_sched::{HeadSplit, LayoutKind, Mask, PackedLengths};
    let pool = PackedLengths::new(8192, [vec![5000u64, 3192]]).unwrap();
    let layout = TokenLayout::new(LayoutKind::Contiguous, 1, 8192, 2).unwrap();
    let heads = HeadSplit::new(4, 4, 8, 8, 2, 1).unwrap();
    let whole = tiles::cut(&pool, &layout, &heads, Mask::Causal, 4096).unwrap();
    let limit = whole.work_total() / 16;
    let split = tiles::split(&whole, &heads, Mask::Causal, limit).unwrap();
    assert!(split.len() >= 16 && split.len() <= 24, "{}", split.len());
    assert!(
        split
            .iter()
            .all(|part| part.start % 128 == 0 && part.work <= limit)
    );
    // Equal work, not equal length: queries of a sample read more keys the later they are.
    assert!(split[0].len() > 2 * split[2].len());
}
