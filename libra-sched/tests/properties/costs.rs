use std::collections::BTreeSet;

use libra_sched::placement::{self, Problem, targets};
use libra_sched::plan::Scratch;
use libra_sched::{
    CostTable, Error, HeadSplit, LayoutKind, Mask, Measured, PackedLengths, Placer, PlanConfig,
    PoolPlan, SampleId, Slack, Speed, Speeds, TokenLayout, Topology, WorkerId, audit,
    plan_pool_measured, tiles, verify, wire,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::cases::{Case, masks, paper_cases, runs, slacks, tile_cases};
use crate::twins;

/// A table as it is measured: axes, mask, and nanoseconds by length and heads.
#[derive(Clone, Debug)]
struct Measurement {
    mask: Mask,
    lengths: Vec<u32>,
    heads: Vec<u32>,
    times_ns: Vec<Vec<f64>>,
}

impl Measurement {
    fn table(&self) -> CostTable {
        CostTable::new(self.mask, &self.lengths, &self.heads, &self.times_ns).unwrap()
    }
}

fn measurements() -> impl Strategy<Value = Measurement> {
    let axis = |most: u32| prop::collection::btree_set(1..=most, 1..4);
    let axes = (masks(), axis(80), axis(24));
    let reads_keys = |(mask, lengths, _): &(Mask, BTreeSet<u32>, BTreeSet<u32>)| {
        lengths.iter().all(|&len| mask.cum_pairs(len, len) > 0)
    };
    axes.prop_filter("a sample reads a key", reads_keys)
        .prop_flat_map(|(mask, lengths, heads)| {
            let row = prop::collection::vec(1u32..1_000_000, heads.len());
            let times = prop::collection::vec(row, lengths.len());
            (Just((mask, lengths, heads)), times)
        })
        .prop_map(|((mask, lengths, heads), times)| Measurement {
            mask,
            lengths: lengths.into_iter().collect(),
            heads: heads.into_iter().collect(),
            times_ns: (times.into_iter())
                .map(|row| row.into_iter().map(|time| f64::from(time) / 16.0).collect())
                .collect(),
        })
}

/// Whole-numbered speeds of the case's workers, some of them equal.
fn speeds(workers: u32) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(1u32..=5, workers as usize)
}

fn as_speeds(whole: &[u32]) -> Speeds {
    let speed = |&whole: &u32| Speed::from_ppm(whole * 250_000).unwrap();
    Speeds::new(whole.iter().map(speed).collect())
}

fn slack_of(case: &Case) -> Slack {
    match case.config.placer {
        Placer::Paper(slack) => slack,
        _ => unreachable!("paper cases are placed by Algorithm 2"),
    }
}

fn plan(case: &Case, measured: Measured<'_>) -> Result<PoolPlan, Error> {
    let Case {
        pool,
        layout,
        heads,
        config,
    } = case;
    plan_pool_measured(
        &mut Scratch::default(),
        pool,
        layout,
        heads,
        config,
        measured,
    )
}

fn with_speeds() -> impl Strategy<Value = (Case, Vec<u32>)> {
    paper_cases().prop_flat_map(|case| {
        let workers = case.layout.workers();
        (Just(case), speeds(workers))
    })
}

proptest! {
    #![proptest_config(runs(500))]

    #[test]
    fn a_weight_is_the_sum_over_pieces_of_pairs_at_the_measured_rate(
        case in tile_cases(),
        measurement in measurements(),
    ) {
        let tiles = case.set(&case.tiles());
        let mask = case.config.mask;
        let weights = tiles::reweigh(&tiles, &case.heads, mask, &measurement.table()).unwrap();
        for (tile, weight) in tiles.iter().zip(weights) {
            let twin = twins::costs::tile_ns(
                &case.pool,
                &case.heads,
                mask,
                tile,
                (measurement.mask, &measurement.lengths, &measurement.heads, &measurement.times_ns),
            );
            let ticks = twin * tiles::TICKS_PER_NS as f64;
            // A tick is lost to rounding down, and a few bits to the twin's floats.
            prop_assert!(
                (weight as f64 - ticks).abs() <= 1.5 + ticks * 1e-6,
                "{weight} for {ticks}"
            );
        }
    }

    #[test]
    fn what_was_measured_is_charged_as_measured(measurement in measurements()) {
        let table = measurement.table();
        for (row, &length) in measurement.lengths.iter().enumerate() {
            for (column, &heads) in measurement.heads.iter().enumerate() {
                let pairs = measurement.mask.cum_pairs(length, length);
                let ticks = table.ticks(length, heads, pairs) as f64;
                let measured = measurement.times_ns[row][column] * tiles::TICKS_PER_NS as f64;
                prop_assert!((ticks - measured).abs() <= 1.0 + measured * 1e-6);
            }
        }
    }

    #[test]
    fn placing_by_weight_is_algorithm_2_over_weights(
        case in paper_cases(),
        measurement in measurements(),
    ) {
        let table = measurement.table();
        let measured = Measured { costs: Some(&table), speeds: None };
        let plan = plan(&case, measured).unwrap();
        prop_assert_eq!(verify::check(&plan), vec![]);
        // The plan records work all the same.
        prop_assert_eq!(&plan.tiles, &case.tiles());
        let set = case.set(&plan.tiles);
        let weights = tiles::reweigh(&set, &case.heads, case.config.mask, &table).unwrap();
        let mut weighted = plan.tiles.clone();
        for (tile, weight) in weighted.iter_mut().zip(weights) {
            tile.work = weight;
        }
        let (workers, _) = twins::placement::place(
            &case.pool, &case.layout, &case.heads, case.config.bytes, &weighted, slack_of(&case),
        );
        prop_assert_eq!(plan.workers, workers);
    }

    #[test]
    fn a_time_that_follows_the_work_changes_no_plan(case in tile_cases()) {
        // One entry: one rate for all.
        let table = CostTable::new(Mask::Full, &[1], &[1], &[vec![1.0]]).unwrap();
        let measured = Measured { costs: Some(&table), speeds: None };
        prop_assert_eq!(wire::encode(&plan(&case, measured).unwrap()), wire::encode(&case.plan()));
    }

    #[test]
    fn swapping_work_twice_restores_the_set(case in tile_cases(), work in 1u64..50) {
        let set = case.set(&case.tiles());
        let mut swapped = set.clone();
        let mut weights: Vec<u64> = (0..set.len() as u64).map(|id| id * work % 7).collect();
        let own = weights.clone();
        swapped.swap_work(&mut weights).unwrap();
        prop_assert!(swapped.iter().map(|tile| tile.work).eq(own.iter().copied()));
        prop_assert_eq!(swapped.work_total(), own.iter().sum::<u64>());
        let tiles: Vec<_> = swapped.to_vec();
        prop_assert_eq!(&swapped, &case.set(&tiles));
        swapped.swap_work(&mut weights).unwrap();
        prop_assert_eq!(weights, own);
        prop_assert_eq!(swapped, set);
    }
}

proptest! {
    #![proptest_config(runs(1000))]

    #[test]
    fn placement_by_speed_equals_its_literal_transcription((case, whole) in with_speeds()) {
        let speeds = as_speeds(&whole);
        let tiles = case.tiles();
        let problem = Problem::new(&case.pool, &case.layout, &case.heads, case.config.bytes);
        let problem = problem.unwrap().with_speeds(&speeds).unwrap();
        let placed = placement::place(&problem, &case.set(&tiles), case.config.placer).unwrap();
        let (workers, loads) = twins::placement::place_by_speed(
            &case.pool, &case.layout, &case.heads, case.config.bytes, &tiles, slack_of(&case), &whole,
        );
        prop_assert_eq!(placed.workers, workers);
        prop_assert_eq!(placed.loads, loads);
        let measured = Measured { costs: None, speeds: Some(&speeds) };
        prop_assert_eq!(verify::check(&plan(&case, measured).unwrap()), vec![]);
    }

    #[test]
    fn equal_speeds_give_the_bytes_that_none_give(case in tile_cases(), whole in 1u32..=8) {
        let speeds = as_speeds(&vec![whole; case.layout.workers() as usize]);
        let measured = Measured { costs: None, speeds: Some(&speeds) };
        prop_assert_eq!(wire::encode(&plan(&case, measured).unwrap()), wire::encode(&case.plan()));
    }

    #[test]
    fn a_target_is_the_largest_load_within_the_slack_and_speed(
        total: u64,
        whole in prop::collection::vec(1u32..=4_000, 1..40),
        slack in slacks(),
    ) {
        let speeds = as_speeds(&whole);
        let all: u128 = whole.iter().map(|&speed| u128::from(speed)).sum();
        let targets = targets(total, whole.len() as u32, Some(&speeds), slack);
        for (&target, &speed) in targets.iter().zip(&whole) {
            // 64, 12, 30 bits: no product overflows.
            let within = |load: u128| {
                load * all * 1_000_000
                    <= u128::from(total) * u128::from(speed) * (1_000_000 + u128::from(slack.ppm()))
            };
            let unbounded = slack == Slack::UNBOUNDED;
            prop_assert!(unbounded || within(target.into()));
            prop_assert!(target == u64::MAX || !within(u128::from(target) + 1));
        }
    }

    #[test]
    fn equal_speeds_have_the_targets_of_none(total: u64, workers in 1u32..300, whole in 1u32..9, slack in slacks()) {
        let speeds = as_speeds(&vec![whole; workers as usize]);
        prop_assert_eq!(
            targets(total, workers, Some(&speeds), slack),
            vec![slack.capacity(total, workers); workers as usize]
        );
    }

    #[test]
    fn speed_as_text_parses_back(ppm in 1u32..=1_000_000_000) {
        let speed = Speed::from_ppm(ppm).unwrap();
        prop_assert_eq!(speed.to_string().parse(), Ok(speed));
    }
}

#[test]
fn a_slow_worker_gets_its_part() {
    use libra_sched::{HeadSplit, LayoutKind, PackedLengths, PlanConfig, TokenLayout};
    let pool = PackedLengths::new(64, vec![vec![1u64; 64]; 2]).unwrap();
    let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 64, 2).unwrap();
    let case = Case {
        pool,
        layout,
        heads: HeadSplit::new(1, 1, 4, 4, 1, 1).unwrap(),
        config: PlanConfig {
            placer: Placer::Paper(Slack::from_ppm(0).unwrap()),
            ..PlanConfig::paper(1)
        },
    };
    // 128 pairs over 1 + 1 + 1 + 0.2.
    let fast = Speed::NOMINAL;
    let speeds = Speeds::new(vec![fast, fast, "0.2".parse().unwrap(), fast]);
    let measured = Measured {
        costs: None,
        speeds: Some(&speeds),
    };
    let plan = plan(&case, measured).unwrap();
    assert_eq!(plan.loads(), [40, 40, 8, 40]);
    assert_eq!(speeds.excess(&plan.loads()), 0.0);
}

#[test]
fn an_idle_slow_worker_is_not_the_lightest() {
    use libra_sched::{HeadSplit, LayoutKind, PackedLengths, PlanConfig, TokenLayout};
    // One tile that exceeds every target, at home where it is slowest.
    let case = Case {
        pool: PackedLengths::new(8, [vec![8u64], vec![]]).unwrap(),
        layout: TokenLayout::new(LayoutKind::Contiguous, 2, 8, 1).unwrap(),
        heads: HeadSplit::new(1, 1, 4, 4, 1, 1).unwrap(),
        config: PlanConfig::paper(8),
    };
    let speeds = Speeds::new(vec!["0.1".parse().unwrap(), Speed::NOMINAL]);
    let measured = Measured {
        costs: None,
        speeds: Some(&speeds),
    };
    assert_eq!(plan(&case, measured).unwrap().workers, [WorkerId(1)]);
}

/// Sequences of 16 Ki tokens over four workers each, packed of samples from 64 tokens up, and a table
/// by which short pieces take up to 40 times as long a pair.
fn long_cases() -> impl Strategy<Value = (PackedLengths, TokenLayout, HeadSplit, CostTable)> {
    const L: u32 = 1 << 14;
    let sequence = prop::collection::vec(6u32..15, 1..200).prop_map(|logs| {
        let mut left = L;
        let mut lengths = Vec::new();
        for log in logs {
            let len = left.min((1 << log) - log);
            lengths.push(len);
            left -= len;
            if left == 0 {
                break;
            }
        }
        lengths
    });
    let pool = prop::collection::vec(sequence, 2..5);
    (
        pool,
        select(vec![4u32, 8]),
        prop::collection::vec(1u32..6, 4),
    )
        .prop_map(|(pool, shards, factors)| {
            let layout = TokenLayout::new(LayoutKind::Contiguous, pool.len() as u32, L, 4).unwrap();
            let pool = PackedLengths::new(L.into(), pool).unwrap();
            let heads = HeadSplit::new(8, 4, 8, 8, shards, 1).unwrap();
            // From the longest down a pair takes as long, or up to 2.5 times as long, as one row later.
            let lengths = [128u32, 512, 2048, 8192];
            let mut rate = 1.0;
            let mut times = Vec::new();
            for (&len, &factor) in lengths.iter().zip(&factors).rev() {
                let pairs = f64::from(len) * f64::from(len + 1) / 2.0;
                times.push(vec![pairs * rate]);
                rate *= f64::from(factor) / 2.0 + 0.5;
            }
            times.reverse();
            let table = CostTable::new(Mask::Causal, &lengths, &[1], &times).unwrap();
            (pool, layout, heads, table)
        })
}

fn by_runs(slack: Slack) -> PlanConfig {
    PlanConfig {
        placer: Placer::Export(slack, Topology::new(4).unwrap()),
        ..PlanConfig::paper(1024)
    }
}

proptest! {
    #![proptest_config(runs(200))]

    #[test]
    fn runs_by_time_keep_the_slack_up_to_a_step_of_128_tokens(
        (pool, layout, heads, table) in long_cases(),
        ppm in select(vec![10_000u32, 30_000, 100_000]),
    ) {
        let slack = Slack::from_ppm(ppm).unwrap();
        let decides = Measured { costs: Some(&table), speeds: None };
        let scratch = &mut Scratch::default();
        let plan = plan_pool_measured(scratch, &pool, &layout, &heads, &by_runs(slack), decides);
        let plan = plan.unwrap();
        prop_assert_eq!(verify::check(&plan), []);
        let times = audit::times(&plan, decides).unwrap();
        let limit = slack.capacity(times.loads.iter().sum(), layout.workers());
        // The last 128 tokens of the longest sample, as a piece of their own.
        let longest = (0..pool.samples()).map(|id| pool.length(SampleId::new(id))).max().unwrap();
        let last = Mask::Causal.pairs(longest, longest.saturating_sub(128)..longest);
        let step = table.ticks(128, heads.shard_width(), last) as u64;
        let worst = *times.loads.iter().max().unwrap();
        prop_assert!(worst <= limit + step, "{worst} beyond {limit} by more than {step}");
    }

    #[test]
    fn runs_by_any_table_make_plans_without_a_fault(
        mut case in paper_cases(),
        measured in measurements(),
        gpus in 1u32..10,
    ) {
        let Placer::Paper(slack) = case.config.placer else {
            unreachable!("paper cases are placed by Algorithm 2")
        };
        case.config.placer = Placer::Export(slack, Topology::new(gpus).unwrap());
        let table = measured.table();
        let decides = Measured { costs: Some(&table), speeds: None };
        let plan = plan(&case, decides).unwrap();
        prop_assert_eq!(verify::check(&plan), []);
        let work = |plan: &PoolPlan| plan.loads().iter().sum::<u64>();
        prop_assert_eq!(work(&plan), work(&case.plan()));
    }

    #[test]
    fn where_rates_do_not_differ_runs_are_those_of_work((pool, layout, heads, _) in long_cases()) {
        let flat = CostTable::new(Mask::Causal, &[64], &[2], &[vec![500.0]]).unwrap();
        let plan = |costs| {
            let (scratch, config) = (&mut Scratch::default(), by_runs(Slack::PAPER));
            let decides = Measured { costs, speeds: None };
            plan_pool_measured(scratch, &pool, &layout, &heads, &config, decides).unwrap()
        };
        prop_assert_eq!(plan(Some(&flat)), plan(None));
    }
}
