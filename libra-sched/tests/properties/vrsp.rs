use libra_sched::vrsp::{self, Scratch, SequencePlacement, Vrsp};
use libra_sched::{PoolId, SequenceId};
use proptest::prelude::*;

use crate::cases::runs;
use crate::twins;

/// Weights and a pool size that divides their number. Ties are common.
fn windows() -> impl Strategy<Value = (Vec<u64>, usize)> {
    let weight = prop_oneof![0u64..6, 0u64..1000, Just(1 << 40)];
    (1usize..9, 1usize..9).prop_flat_map(move |(pools, size)| {
        (
            prop::collection::vec(weight.clone(), pools * size),
            Just(size),
        )
    })
}

fn paper(work: &[u64], pool_size: usize) -> SequencePlacement {
    vrsp::place(work, pool_size, Vrsp::Paper).unwrap()
}

fn members(placed: &SequencePlacement) -> Vec<Vec<u32>> {
    (0..placed.pools())
        .map(|pool| {
            placed
                .members(PoolId::new(pool))
                .iter()
                .map(|m| m.0)
                .collect()
        })
        .collect()
}

proptest! {
    #![proptest_config(runs(800))]

    #[test]
    fn algorithm_1_equals_its_literal_transcription((work, size) in windows()) {
        let placed = paper(&work, size);
        let (twin_members, twin_loads) = twins::vrsp::place(&work, size);
        prop_assert_eq!(members(&placed), twin_members);
        prop_assert_eq!(placed.loads(), twin_loads);
    }

    #[test]
    fn every_sequence_is_in_one_pool_of_exactly_p((work, size) in windows()) {
        for algorithm in [Vrsp::Paper, Vrsp::Arrival, Vrsp::Certified] {
            let placed = vrsp::place(&work, size, algorithm).unwrap();
            prop_assert_eq!(placed.pools() * size, work.len());
            let mut seen: Vec<u32> = placed.order().iter().map(|m| m.0).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..work.len() as u32).collect::<Vec<_>>());
            for pool in members(&placed) {
                prop_assert_eq!(pool.len(), size);
            }
            for pool in (0..placed.pools()).map(PoolId::new) {
                prop_assert_eq!(placed.pool_size(pool), size);
                prop_assert_eq!(placed.first(pool), pool.index() * size);
            }
        }
    }

    #[test]
    fn loads_are_the_sums_of_their_members((work, size) in windows()) {
        for algorithm in [Vrsp::Paper, Vrsp::Arrival, Vrsp::Certified] {
            let placed = vrsp::place(&work, size, algorithm).unwrap();
            for (pool, &load) in members(&placed).iter().zip(placed.loads()) {
                prop_assert_eq!(load, pool.iter().map(|&m| work[m as usize]).sum::<u64>());
            }
        }
    }

    #[test]
    fn no_placement_is_below_the_bound_and_the_bound_is_not_below_mean_or_maximum(
        (work, size) in windows(),
    ) {
        let bound = vrsp::lower_bound(&work, size).unwrap().load;
        let pools = (work.len() / size) as u64;
        prop_assert!(bound >= work.iter().sum::<u64>().div_ceil(pools));
        prop_assert!(bound >= *work.iter().max().unwrap());
        for algorithm in [Vrsp::Paper, Vrsp::Arrival, Vrsp::Certified] {
            let placed = vrsp::place(&work, size, algorithm).unwrap();
            prop_assert!(*placed.loads().iter().max().unwrap() >= bound);
            // A search may prove more, and the others look at less.
            let more = placed.bound().load >= bound;
            prop_assert!(more || algorithm != Vrsp::Certified);
            prop_assert!(placed.bound().load <= bound || algorithm == Vrsp::Certified);
            prop_assert!(placed.gap() >= 0.0);
        }
    }

    #[test]
    fn no_bound_is_above_the_best_partition(
        (work, size) in (2usize..5, 1usize..5)
            .prop_filter("few enough to try all", |(pools, size)| pools * size <= 12)
            .prop_flat_map(|(pools, size)| {
                // Equal giants and a few others: what crowding and pairs are about.
                let weight = prop_oneof![2 => Just(100u64), 1 => 0u64..100, 1 => 30u64..70];
                (prop::collection::vec(weight, pools * size), Just(size))
            }),
    ) {
        let best = twins::brute::optimum(&work, size);
        prop_assert!(vrsp::lower_bound(&work, size).unwrap().load <= best);
        let placed = vrsp::place(&work, size, Vrsp::Certified).unwrap();
        // These are small enough for the search of all.
        prop_assert_eq!(*placed.loads().iter().max().unwrap(), best);
        prop_assert_eq!(placed.bound().load, best);
    }

    #[test]
    fn certified_pools_are_never_heavier_than_algorithm_1_leaves_them((work, size) in windows()) {
        let heaviest = |algorithm| {
            let placed = vrsp::place(&work, size, algorithm).unwrap();
            placed.loads().iter().copied().max()
        };
        prop_assert!(heaviest(Vrsp::Certified) <= heaviest(Vrsp::Paper));
    }

    #[test]
    fn no_single_trade_makes_certified_pools_lighter((work, size) in windows()) {
        let placed = vrsp::place(&work, size, Vrsp::Certified).unwrap();
        let loads = placed.loads();
        let heavy = *loads.iter().max().unwrap();
        let bound = vrsp::lower_bound(&work, size).unwrap().load;
        if heavy == bound || loads.iter().filter(|&&load| load == heavy).count() > 1 {
            return Ok(());
        }
        let from = loads.iter().position(|&load| load == heavy).unwrap();
        let pools = members(&placed);
        for (to, pool) in pools.iter().enumerate().filter(|&(to, _)| to != from) {
            for &give in &pools[from] {
                for &take in pool {
                    let (give, take) = (work[give as usize], work[take as usize]);
                    let after = (heavy - give + take).max(loads[to] - take + give);
                    prop_assert!(after >= heavy);
                }
            }
        }
    }

    #[test]
    fn work_up_to_the_last_bit_is_placed(
        (work, size) in (1usize..9, 1usize..9).prop_flat_map(|(pools, size)| {
            let most = u64::MAX / 64;
            let weight = prop_oneof![2 => Just(most), 1 => 0..most, 1 => 0u64..9];
            (prop::collection::vec(weight, pools * size), Just(size))
        }),
    ) {
        for algorithm in [Vrsp::Paper, Vrsp::Arrival, Vrsp::Certified] {
            let placed = vrsp::place(&work, size, algorithm).unwrap();
            prop_assert_eq!(placed.loads().iter().sum::<u64>(), work.iter().sum::<u64>());
            prop_assert!(placed.bound().load <= *placed.loads().iter().max().unwrap());
        }
    }

    #[test]
    fn scaling_all_work_leaves_the_placement((work, size) in windows(), factor in 1u64..1000) {
        let scaled: Vec<u64> = work.iter().map(|w| w * factor).collect();
        prop_assert_eq!(members(&paper(&scaled, size)), members(&paper(&work, size)));
    }

    #[test]
    fn permuting_sequences_of_equal_work_permutes_only_ids(
        (mut work, size) in windows(),
        a: prop::sample::Index,
        b: prop::sample::Index,
    ) {
        let (a, b) = (a.index(work.len()), b.index(work.len()));
        work[b] = work[a];
        let weights = |placed: SequencePlacement| -> Vec<Vec<u64>> {
            let of = |pool: &Vec<u32>| pool.iter().map(|&m| work[m as usize]).collect();
            members(&placed).iter().map(of).collect()
        };
        let mut swapped = work.clone();
        swapped.swap(a, b);
        prop_assert_eq!(weights(paper(&swapped, size)), weights(paper(&work, size)));
    }

    #[test]
    fn permuting_all_sequences_leaves_the_loads(
        (work, size) in windows(),
        seed in prop::collection::vec(any::<u32>(), 64),
    ) {
        let mut order: Vec<usize> = (0..work.len()).collect();
        order.sort_by_key(|&index| seed[index]);
        let shuffled: Vec<u64> = order.iter().map(|&index| work[index]).collect();
        let (left, right) = (paper(&shuffled, size), paper(&work, size));
        prop_assert_eq!(left.loads(), right.loads());
    }

    #[test]
    fn one_pool_takes_all_and_pools_of_one_take_the_heaviest_first((work, _) in windows()) {
        let all = paper(&work, work.len());
        prop_assert_eq!(all.loads(), [work.iter().sum::<u64>()]);
        let mut heaviest_first: Vec<SequenceId> = (0..work.len()).map(SequenceId::new).collect();
        heaviest_first.sort_by_key(|id| std::cmp::Reverse(work[id.index()]));
        let single = paper(&work, 1);
        prop_assert_eq!(single.order(), heaviest_first);
    }

    #[test]
    fn arrival_keeps_the_order((work, size) in windows()) {
        let placed = vrsp::place(&work, size, Vrsp::Arrival).unwrap();
        let order: Vec<u32> = placed.order().iter().map(|m| m.0).collect();
        prop_assert_eq!(order, (0..work.len() as u32).collect::<Vec<_>>());
    }

    #[test]
    fn a_used_scratch_changes_nothing((first, p) in windows(), (second, q) in windows()) {
        let mut scratch = Scratch::default();
        for algorithm in [Vrsp::Certified, Vrsp::Paper] {
            vrsp::place_with(&mut scratch, &first, p, algorithm).unwrap();
            let used = vrsp::place_with(&mut scratch, &second, q, algorithm);
            prop_assert_eq!(used, vrsp::place(&second, q, algorithm));
        }
    }

    #[test]
    fn integer_costs_are_placed_as_integer_work((work, size) in windows()) {
        let costs: Vec<f64> = work.iter().map(|&w| w as f64).collect();
        let by_cost = vrsp::place_costs(&costs, size).unwrap();
        let by_work = paper(&work, size);
        prop_assert_eq!(by_cost.order(), by_work.order());
        // Sums stay below 2^53, where an f64 is exact.
        let loads: Vec<u64> = by_cost.loads().iter().map(|&load| load as u64).collect();
        prop_assert_eq!(loads, by_work.loads());
    }
}

#[test]
fn names_of_algorithms_parse_back() {
    for algorithm in [Vrsp::Arrival, Vrsp::Paper, Vrsp::Certified] {
        assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
    }
}
