use libra_sched::vrsp::{self, Elastic, ElasticPlacement, GaOrder, Vrsp};
use libra_sched::{PoolId, WindowShape};
use proptest::prelude::*;

use crate::cases::runs;
use crate::twins::brute;

fn weight() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0u64..6, 2 => 0u64..1000, 1 => Just(5000u64)]
}

/// GA indices, pools side by side, P, and a load for each pool.
fn steps() -> impl Strategy<Value = (WindowShape, Vec<u64>)> {
    (1u32..5, 1u32..4, 1u32..3).prop_flat_map(|(ga, side, size)| {
        let shape = WindowShape::new(64, ga * side * size, side * size, 1, size).unwrap();
        let loads = prop::collection::vec(weight(), (ga * side) as usize);
        (Just(shape), loads)
    })
}

/// Windows of 4 and 8 replicas whose pools may grow, with outliers.
fn growing() -> impl Strategy<Value = (WindowShape, Vec<u64>, u32)> {
    let shapes = prop_oneof![
        Just((4u32, 1u32)),
        Just((4, 2)),
        Just((8, 2)),
        Just((12, 3)),
        Just((16, 4)),
    ];
    (shapes, 1u32..4, 0u32..3).prop_flat_map(|((dp, size), ga, power)| {
        let shape = WindowShape::new(64, ga * dp, dp, 2, size).unwrap();
        let work = prop::collection::vec(weight(), (ga * dp) as usize);
        (Just(shape), work, Just(1 << power))
    })
}

fn grown(work: &[u64], shape: &WindowShape, most: u32) -> ElasticPlacement {
    vrsp::elastic(work, shape, Elastic::new(most).unwrap()).unwrap()
}

/// Largest load per sequence, times `size`.
fn worst(placed: &ElasticPlacement, size: usize) -> u64 {
    let placement = &placed.placement;
    let weigh = |pool| {
        let pool = PoolId::new(pool);
        placement.loads()[pool.index()] * (size / placement.pool_size(pool)) as u64
    };
    (0..placement.pools()).map(weigh).max().unwrap()
}

proptest! {
    #![proptest_config(runs(400))]

    #[test]
    fn balanced_order_runs_every_pool_once_and_never_waits_longer(
        (shape, loads) in steps(),
        pp in 1u32..3,
    ) {
        let paper = vrsp::ga_order(&loads, &shape, GaOrder::Paper, pp).unwrap();
        let balanced = vrsp::ga_order(&loads, &shape, GaOrder::Balanced, pp).unwrap();
        let mut all = balanced.clone();
        all.sort_unstable();
        prop_assert_eq!(&all, &paper);
        let time = |order: &[PoolId]| vrsp::ga_time(&loads, order, &shape, pp).unwrap();
        prop_assert!(time(&balanced) <= time(&paper));
    }

    #[test]
    fn with_stages_no_order_waits_less_and_without_two_groups_are_as_even_as_can_be(
        (shape, loads) in steps(),
    ) {
        let time = |pp| {
            let order = vrsp::ga_order(&loads, &shape, GaOrder::Balanced, pp).unwrap();
            vrsp::ga_time(&loads, &order, &shape, pp).unwrap()
        };
        let side = shape.pools_per_ga() as usize;
        if loads.len() <= 6 {
            prop_assert_eq!(time(2), least_sum_of_maxima(&loads, side));
        }
        if loads.len() <= 9 {
            let even = brute::optimum(&loads, shape.ga() as usize);
            prop_assert!(time(1) >= even);
            if side <= 2 {
                prop_assert_eq!(time(1), even);
            }
        }
    }

    #[test]
    fn pools_in_another_order_are_the_same_pools(
        (shape, work, _) in growing(),
        seed in prop::collection::vec(any::<u32>(), 48),
    ) {
        let size = shape.pool_size() as usize;
        let placed = vrsp::place(&work, size, Vrsp::Certified).unwrap();
        let mut order: Vec<PoolId> = (0..placed.pools()).map(PoolId::new).collect();
        order.sort_by_key(|pool| seed[pool.index()]);
        let moved = placed.reordered(&order).unwrap();
        for (at, &pool) in order.iter().enumerate() {
            prop_assert_eq!(moved.members(PoolId::new(at)), placed.members(pool));
            prop_assert_eq!(moved.loads()[at], placed.loads()[pool.index()]);
        }
        order[0] = order[order.len() - 1];
        prop_assert_eq!(order.len() == 1, placed.reordered(&order).is_ok());
    }

    #[test]
    fn every_index_holds_dp_sequences_and_no_pool_crosses_it((shape, work, most) in growing()) {
        let placed = grown(&work, &shape, most).placement;
        let mut seen: Vec<u32> = placed.order().iter().map(|id| id.0).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..shape.gbs()).collect::<Vec<_>>());
        let dp = shape.dp() as usize;
        for pool in (0..placed.pools()).map(PoolId::new) {
            let (first, size) = (placed.first(pool), placed.pool_size(pool));
            prop_assert_eq!(first / dp, (first + size - 1) / dp);
            prop_assert!(size <= (shape.pool_size() * most) as usize && dp.is_multiple_of(size));
            let members = placed.members(pool).iter();
            let load: u64 = members.map(|id| work[id.index()]).sum();
            prop_assert_eq!(load, placed.loads()[pool.index()]);
        }
    }

    #[test]
    fn merged_pools_are_better_than_certified_ones_or_there_are_none((shape, work, most) in growing()) {
        let size = shape.pool_size() as usize;
        let placed = grown(&work, &shape, most);
        let largest = Elastic::new(most).unwrap().largest(&shape) as usize;
        let plain = vrsp::place(&work, size, Vrsp::Certified).unwrap();
        prop_assert_eq!(placed.before, plain.bound());
        if placed.merged().next().is_none() {
            prop_assert_eq!(&placed.placement, &plain);
        } else {
            let heaviest = plain.loads().iter().max().unwrap() * (largest / size) as u64;
            prop_assert!(worst(&placed, largest) < heaviest);
        }
        prop_assert!(placed.placement.gap() >= 0.0);
        prop_assert!(worst(&placed, largest) >= placed.after.load);
        prop_assert_eq!(grown(&work, &shape, 1).placement, plain);
    }

    #[test]
    fn no_pools_up_to_the_cap_are_below_its_bound(
        work in prop::collection::vec(weight(), 8),
        size in 1u32..3,
        most in 0u32..3,
    ) {
        let shape = WindowShape::new(64, 8, 8, 1, size).unwrap();
        let placed = grown(&work, &shape, 1 << most);
        let largest = Elastic::new(1 << most).unwrap().largest(&shape) as usize;
        let sizes: Vec<usize> = (0..4).map(|power| (size as usize) << power).collect();
        let sizes: Vec<usize> = sizes.into_iter().filter(|&s| s <= largest).collect();
        let best = brute::best_of_sizes(&work, &sizes);
        prop_assert!(placed.after.load <= best);
        prop_assert!(best <= worst(&placed, largest));
    }

    #[test]
    fn work_up_to_the_last_bit_is_merged(
        (shape, work, most) in growing(),
        heavy in any::<prop::sample::Index>(),
    ) {
        let mut work = work;
        let left = u64::MAX / 4 - work.iter().sum::<u64>();
        work[heavy.index(shape.gbs() as usize)] += left;
        let placed = grown(&work, &shape, most);
        prop_assert_eq!(placed.placement.loads().iter().sum::<u64>(), work.iter().sum::<u64>());
        prop_assert!(placed.placement.gap() >= 0.0);
    }

    #[test]
    fn a_used_scratch_merges_alike((shape, work, most) in growing(), (other, more, _) in growing()) {
        let elastic = Elastic::new(most).unwrap();
        let mut scratch = vrsp::Scratch::default();
        vrsp::elastic_with(&mut scratch, &more, &other, elastic).unwrap();
        let used = vrsp::elastic_with(&mut scratch, &work, &shape, elastic).unwrap();
        prop_assert_eq!(used, grown(&work, &shape, most));
    }
}

/// Over all divisions into groups of `side`: the least sum of the groups' heaviest.
fn least_sum_of_maxima(loads: &[u64], side: usize) -> u64 {
    let Some((&first, others)) = loads.split_first() else {
        return 0;
    };
    let masks = (0u32..1 << others.len()).filter(|mask| mask.count_ones() as usize + 1 == side);
    let sum = |mask: u32| {
        let of = |inside: bool| {
            let chosen = move |&(at, _): &(usize, &u64)| (mask >> at & 1 == 1) == inside;
            others
                .iter()
                .enumerate()
                .filter(chosen)
                .map(|(_, &load)| load)
        };
        let rest: Vec<u64> = of(false).collect();
        of(true).max().unwrap_or(0).max(first) + least_sum_of_maxima(&rest, side)
    };
    masks.map(sum).min().unwrap()
}
