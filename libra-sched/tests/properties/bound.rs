//! The bound on all bytes by prices, beside what plans move and beside every placement of tiny pools.

use libra_sched::{
    Fragment, HeadSplit, KvFetch, LayoutKind, Mask, PackedLengths, Placer, PlanConfig, PoolPlan,
    SampleId, Slack, TokenLayout, Topology, audit, bound, plan_pool,
};
use proptest::prelude::*;

use crate::cases::{Case, cases, layouts, pools, runs};

fn heaviest(plan: &PoolPlan) -> u64 {
    plan.loads().into_iter().max().unwrap_or(0)
}

/// Causal cases of every layout, fetch, route and placer.
fn causal_cases() -> impl Strategy<Value = Case> {
    cases().prop_map(|mut case| {
        case.config.mask = Mask::Causal;
        case
    })
}

/// Pools with so few tokens and workers that every placement can be tried.
fn tiny_cases() -> impl Strategy<Value = Case> {
    let shapes = prop_oneof![
        // Slots, tokens of a sequence, context ranks; query heads, KV heads, shards, tensor ranks.
        Just((1u32, 8u32, 2u32, (2u32, 2u32, 1u32, 1u32))),
        Just((1, 7, 3, (1, 1, 1, 1))),
        Just((1, 3, 2, (2, 2, 2, 2))),
        Just((1, 5, 2, (2, 1, 2, 1))),
        Just((1, 6, 2, (4, 2, 2, 1))),
        Just((2, 4, 1, (1, 1, 1, 1))),
        Just((2, 3, 2, (1, 1, 1, 1))),
        Just((2, 3, 1, (2, 2, 2, 1))),
        Just((3, 2, 1, (2, 1, 1, 1))),
    ];
    shapes.prop_flat_map(|(slots, tokens, ranks, heads)| {
        let (q_heads, kv_heads, shards, tensor) = heads;
        let dims = (1u32..4, 1u32..4);
        let head_split = dims.prop_map(move |(dim_qk, dim_v)| {
            HeadSplit::new(q_heads, kv_heads, dim_qk, dim_v, shards, 1).unwrap()
        });
        let layouts = layouts(slots, tokens, ranks, tensor);
        (pools(slots, tokens), layouts, head_split).prop_map(|(pool, layout, heads)| Case {
            pool,
            layout,
            heads,
            config: PlanConfig {
                placer: Placer::Home,
                kv_fetch: KvFetch::Range,
                ..PlanConfig::paper(4)
            },
        })
    })
}

/// A query token in a shard, as its sample's `token`-th.
#[derive(Clone, Copy)]
struct Query {
    slot: u32,
    sample: usize,
    token: u32,
    shard: u32,
}

/// Load of the heaviest worker and bytes moved, of every placement of every query of `case`.
fn placements(case: &Case) -> Vec<(u64, u64)> {
    let mut queries = Vec::new();
    for slot in 0..case.layout.slots() {
        for sample in case.pool.samples_of(slot as usize) {
            for token in 0..case.pool.length(SampleId::new(sample)) {
                let shards = 0..case.heads.shards();
                queries.extend(shards.map(|shard| Query {
                    slot,
                    sample,
                    token,
                    shard,
                }));
            }
        }
    }
    let workers = case.layout.workers();
    let count = u64::from(workers).pow(queries.len() as u32);
    let placement = |number: u64| {
        let mut left = number;
        let mut next = || {
            let worker = (left % u64::from(workers)) as u32;
            left /= u64::from(workers);
            worker
        };
        let placed: Vec<(Query, u32)> = queries.iter().map(|&query| (query, next())).collect();
        cost(case, &placed)
    };
    (0..count).map(placement).collect()
}

/// As [`placements`], of one.
fn cost(case: &Case, placed: &[(Query, u32)]) -> (u64, u64) {
    let (heads, bytes) = (&case.heads, case.config.bytes);
    let mut loads = vec![0; case.layout.workers() as usize];
    let mut moved = 0;
    // Every key and KV head that a worker reads and does not hold.
    let mut read = std::collections::BTreeSet::new();
    for &(query, worker) in placed {
        let start = case.pool.tokens(SampleId::new(query.sample)).start;
        let width = heads.shard_width();
        loads[worker as usize] += u64::from(query.token + 1) * u64::from(width);
        let holder = |token: u32, tensor: u32| {
            let fragments = case.layout.fragments(query.slot);
            let mut fragments = fragments.iter();
            let held = fragments.find(|fragment| fragment.tokens().contains(&(start + token)));
            let rank = held.unwrap().rank;
            case.layout.worker(query.slot, rank, tensor).0
        };
        let tensor = case.layout.tensor_of_q(heads, query.shard * width);
        if holder(query.token, tensor) != worker {
            moved += bytes.q_token(heads, width) + bytes.o_token(heads, width);
        }
        for kv_head in heads.kv_of_shard(query.shard) {
            let tensor = case.layout.tensor_of_kv(heads, kv_head);
            let away = (0..=query.token).filter(|&key| holder(key, tensor) != worker);
            read.extend(away.map(|key| (worker, query.sample, kv_head, key)));
        }
    }
    moved += read.len() as u64 * bytes.kv_token(heads, 1);
    (loads.into_iter().max().unwrap(), moved)
}

/// Fewest bytes of those that leave no worker more than `limit`.
fn least(placements: &[(u64, u64)], limit: u64) -> u64 {
    let legal = placements.iter().filter(|&&(load, _)| load <= limit);
    legal.map(|&(_, bytes)| bytes).min().unwrap()
}

proptest! {
    #![proptest_config(runs(400))]

    #[test]
    fn no_plan_moves_less_than_prices_prove(
        case in causal_cases(),
        rounds in prop_oneof![Just(1u32), 2u32..40],
        beyond in 0u64..50,
    ) {
        let plan = case.plan();
        let limit = heaviest(&plan) + beyond;
        let least = bound::moved_bytes_by_prices(&plan, limit, rounds);
        let found = audit::audit(&plan, Topology::default());
        prop_assert!(found.moved_bytes() >= least, "{} {least}", found.moved_bytes());
    }
}

proptest! {
    #![proptest_config(runs(60))]

    #[test]
    fn no_placement_of_a_tiny_pool_moves_less_than_prices_prove(case in tiny_cases()) {
        let plan = case.plan();
        let mut placements = placements(&case);
        placements.sort_unstable();
        placements.dedup();
        let mut limits: Vec<u64> = placements.iter().map(|&(load, _)| load).collect();
        limits.dedup();
        for limit in limits.into_iter().filter(|&limit| limit > 0) {
            let proved = bound::moved_bytes_by_prices(&plan, limit, 60);
            prop_assert!(proved <= least(&placements, limit), "{limit}: {proved}");
        }
    }
}

/// A sequence over `ranks` workers is one sample of all its tokens.
fn single_samples(slots: u32, tokens: u32, ranks: u32, heads: &HeadSplit) -> PoolPlan {
    let pool = PackedLengths::new(tokens.into(), vec![vec![tokens]; slots as usize]).unwrap();
    let layout = TokenLayout::new(LayoutKind::Contiguous, slots, tokens, ranks).unwrap();
    let config = PlanConfig {
        placer: Placer::Export(Slack::PAPER, Topology::default()),
        kv_fetch: KvFetch::Range,
        ..PlanConfig::paper(1 << 10)
    };
    plan_pool(&pool, &layout, heads, &config).unwrap()
}

#[test]
fn where_every_home_is_within_the_limit_prices_prove_the_fewest_bytes() {
    let heads = HeadSplit::new(1, 1, 1, 1, 1, 1).unwrap();
    let mut plan = single_samples(1, 6, 2, &heads);
    plan.bytes.activation = 1;
    // 6 and 15 pairs: the second worker reads 3 keys of K and V.
    assert_eq!(bound::moved_bytes_by_prices(&plan, 15, 1), 6);
    // 5 tokens and 1: Q and O of the last token go to the first worker, with a key.
    plan.lengths = PackedLengths::new(6, [[2u64, 4]]).unwrap();
    plan.layout = TokenLayout::explicit(6, 2, 1, vec![cut_at(5)]).unwrap();
    assert_eq!(bound::moved_bytes_by_prices(&plan, 13, 1), 4);
}

/// Tokens below `token` on the first rank, the others of 6 on the second.
fn cut_at(token: u32) -> Vec<Fragment> {
    let (start, end) = (0, 6);
    vec![
        Fragment {
            start,
            end: token,
            rank: 0,
        },
        Fragment {
            start: token,
            end,
            rank: 1,
        },
    ]
}

#[test]
fn a_surplus_of_equal_samples_is_proved_to_leave() {
    let heads = HeadSplit::new(1, 1, 1, 1, 1, 1).unwrap();
    let mut plan = single_samples(2, 4, 1, &heads);
    plan.bytes.activation = 100;
    plan.lengths = PackedLengths::new(4, [vec![1u64; 4], vec![]]).unwrap();
    // Two of four tokens leave, each with 100 bytes of Q, O, K and V.
    let proved = bound::moved_bytes_by_prices(&plan, 2, bound::ROUNDS);
    assert!((790..=800).contains(&proved), "{proved}");
}

/// Each of eight workers reads the keys before its tokens, or their Q and O move: what bounds of the
/// two apart do not see.
#[test]
fn of_full_length_samples_prices_prove_most_of_what_runs_move() {
    let heads = HeadSplit::new(32, 8, 128, 128, 8, 1).unwrap();
    let plan = single_samples(4, 1 << 16, 8, &heads);
    let moved = audit::audit(&plan, Topology::default()).moved_bytes();
    let apart = bound::moved_bytes(&plan, heaviest(&plan)).moved_bytes();
    let proved = bound::moved_bytes_by_prices(&plan, heaviest(&plan), bound::ROUNDS);
    assert!(apart * 100 < moved * 50, "{apart} of {moved}");
    assert!(proved * 100 > moved * 85, "{proved} of {moved}");
}

#[test]
fn other_masks_and_trees_prove_nothing_by_prices() {
    let heads = HeadSplit::new(1, 1, 1, 1, 1, 1).unwrap();
    let mut plan = single_samples(1, 8, 2, &heads);
    assert!(bound::moved_bytes_by_prices(&plan, 36, 9) > 0);
    assert_eq!(bound::moved_bytes_by_prices(&plan, 0, 9), 0);
    plan.mask = Mask::Full;
    assert_eq!(bound::moved_bytes_by_prices(&plan, 36, 9), 0);
}
