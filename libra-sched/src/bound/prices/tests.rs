//! Whatever the prices, refunds and shares: no placement of a tiny pool costs less.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{FRACTION_BITS, Pool, Prices, SHARE_BITS, Shares, Value};
use crate::bound::readers::Readers;
use crate::{
    Fragment, HeadSplit, PackedLengths, Placer, PlanConfig, PoolPlan, TokenLayout, plan_pool,
};

/// One head of one element of one byte: a row of Q and O, or of K and V, is 2 bytes.
fn plan(pieces: &[u32], ranks: u32, samples: Vec<Vec<u32>>) -> PoolPlan {
    let tokens = samples.iter().map(|lengths| lengths.iter().sum()).max();
    let tokens: u32 = tokens.unwrap_or(1);
    let slots = samples.len() as u32;
    let pool = PackedLengths::new(tokens.into(), samples).unwrap();
    let (mut start, mut fragments) = (0, Vec::new());
    for (piece, &rank) in pieces.iter().enumerate() {
        let end = tokens * (piece as u32 + 1) / pieces.len() as u32;
        if start < end {
            fragments.push(Fragment { start, end, rank });
        }
        start = end;
    }
    let slots = vec![fragments; slots as usize];
    let layout = TokenLayout::explicit(tokens, ranks, 1, slots).unwrap();
    let heads = HeadSplit::new(1, 1, 1, 1, 1, 1).unwrap();
    let mut config = PlanConfig {
        placer: Placer::Home,
        ..PlanConfig::paper(1)
    };
    config.bytes.activation = 1;
    plan_pool(&pool, &layout, &heads, &config).unwrap()
}

/// Few tokens in all, so that every placement can be tried; mostly with workers that hold nothing.
fn pools() -> impl Strategy<Value = PoolPlan> {
    prop_oneof![
        Just(plan(&[0], 1, vec![vec![7u32], vec![]])),
        Just(plan(&[0, 1], 2, vec![vec![7], vec![]])),
        Just(plan(&[0, 1, 1, 0], 2, vec![vec![7], vec![]])),
        Just(plan(&[0, 1, 2], 4, vec![vec![7]])),
        Just(plan(&[2, 1, 0, 1], 4, vec![vec![7]])),
        Just(plan(&[0, 1, 2], 3, vec![vec![5, 2]])),
        Just(plan(&[0, 1], 2, vec![vec![4], vec![3]])),
        Just(plan(&[0], 1, vec![vec![4, 2], vec![], vec![1]])),
    ]
}

/// Load of every worker and bytes moved, of every placement.
fn placements(plan: &PoolPlan) -> Vec<(Vec<u64>, u64)> {
    let mut queries = Vec::new();
    for slot in 0..plan.layout.slots() {
        let mut first = 0;
        for &len in plan.lengths.lengths_of(slot as usize) {
            queries.extend((0..len).map(|token| (slot, first, token)));
            first += len;
        }
    }
    let home = |slot: u32, token: u32| {
        let mut fragments = plan.layout.fragments(slot).iter();
        let held = fragments.find(|fragment| fragment.tokens().contains(&token));
        plan.layout.worker(slot, held.unwrap().rank, 0).0
    };
    let workers = plan.layout.workers();
    let placement = |mut left: u32| {
        let mut loads = vec![0; workers as usize];
        let (mut moved, mut read) = (0, BTreeSet::new());
        for &(slot, first, token) in &queries {
            let worker = left % workers;
            left /= workers;
            loads[worker as usize] += u64::from(token + 1);
            moved += 2 * u64::from(home(slot, first + token) != worker);
            let keys = first..=first + token;
            let away = keys.filter(|&key| home(slot, key) != worker);
            read.extend(away.map(|key| (worker, slot, key)));
        }
        (loads, moved + 2 * read.len() as u64)
    };
    let count = workers.pow(queries.len() as u32);
    (0..count).map(placement).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_placement_costs_less_than_the_cheapest_way_of_every_sample(
        plan in pools(),
        limit in any::<prop::sample::Index>(),
        drawn in prop::collection::vec((prop::collection::vec(0u64..40, 4), 0u32..=4, 0u32..=4), 12),
    ) {
        let placements = placements(&plan);
        let heaviest = |loads: &[u64]| loads.iter().copied().max().unwrap();
        let limits: BTreeSet<u64> = placements.iter().map(|(loads, _)| heaviest(loads)).collect();
        let limits: Vec<u64> = limits.into_iter().collect();
        let limit = *limit.get(&limits);
        let legal: Vec<_> = placements.iter().filter(|(loads, _)| heaviest(loads) <= limit).collect();
        let pool = Pool::new(&plan, limit);
        let (mut readers, mut value) = (Readers::default(), Value::default());
        for (prices, refund, at_once) in drawn {
            let quarter = 1 << (SHARE_BITS - 2);
            let shares = Shares { refund: refund * quarter, at_once: at_once * quarter };
            let ranks = prices.iter().map(|price| price << (FRACTION_BITS - 5));
            let prices = Prices {
                ranks: ranks.take(pool.at_home.len()).collect(),
                columns: vec![shares; pool.columns.len()],
            };
            pool.value(&prices, &mut readers, &mut value);
            // The bound is what it costs at the least, less what all that is legal would cost.
            let cost = |(loads, moved): &(Vec<u64>, u64)| {
                let over = |(&price, &load): (&u64, &u64)| {
                    i128::from(price) * (i128::from(load) - i128::from(limit))
                };
                let over: i128 = prices.ranks.iter().zip(loads).map(over).sum();
                (i128::from(*moved) << FRACTION_BITS) + over
            };
            let least = legal.iter().map(|&placement| cost(placement)).min();
            prop_assert!(value.bound <= least.unwrap(), "{limit} {} {refund} {at_once}", value.bound);
        }
    }
}
