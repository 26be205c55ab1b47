use libra_sched::reverse::{self, BackwardPlan};
use libra_sched::{BackwardMode, KvMove, PoolPlan};
use proptest::prelude::*;

use crate::cases::{cases, runs};

/// Bytes of Q, O, KV and one statistic that move forward, each added up from its own definition.
struct Forward {
    q: u64,
    o: u64,
    kv: u64,
    statistic: u64,
}

fn forward(plan: &PoolPlan, at: Option<u32>) -> Forward {
    let (heads, bytes) = (&plan.heads, plan.bytes);
    let element = u64::from(bytes.activation);
    let (qk, v) = (u64::from(heads.dim_qk()), u64::from(heads.dim_v()));
    let here = |worker: u32| at.is_none_or(|at| at == worker);
    let rows: u64 = plan
        .tiles
        .iter()
        .zip(&plan.workers)
        .filter(|(tile, worker)| tile.q_home != **worker && here(worker.0))
        .map(|(tile, _)| u64::from(tile.end - tile.start))
        .sum();
    let rows_of_heads = rows * u64::from(heads.q_heads() / heads.shards());
    let exchange = &plan.exchange;
    let fetched = exchange.kv.iter().chain(&exchange.forward);
    let keys: u64 = fetched
        .filter(|m| here(m.dst.0))
        .map(|m| u64::from(m.end - m.start) * heads.kv_of_span(m.span).len() as u64)
        .sum();
    Forward {
        q: rows_of_heads * qk * element,
        o: rows_of_heads * v * element,
        kv: keys * (qk + v) * element,
        statistic: rows_of_heads * u64::from(bytes.statistic),
    }
}

fn turned(m: &KvMove) -> KvMove {
    KvMove {
        dst: m.src,
        src: m.dst,
        ..*m
    }
}

proptest! {
    #![proptest_config(runs(500))]

    #[test]
    fn gradients_retrace_what_moved_forward(case in cases()) {
        let plan = case.plan();
        for mode in BackwardMode::ALL {
            let back = reverse::derive(&plan, mode);
            prop_assert_eq!(&back.d_o, &plan.exchange.q);
            prop_assert_eq!(&back.d_q, &plan.exchange.o);
            let lists = [(&back.d_kv, &plan.exchange.kv), (&back.gather, &plan.exchange.forward)];
            for (gradients, fetched) in lists {
                let mut retraced: Vec<KvMove> = gradients.iter().map(turned).collect();
                retraced.sort_unstable();
                prop_assert_eq!(&retraced, fetched);
                prop_assert!(gradients.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }

    #[test]
    fn only_a_refetch_moves_queries_and_keys_again(case in cases()) {
        let plan = case.plan();
        for mode in BackwardMode::ALL {
            let BackwardPlan { q, kv, forward, .. } = reverse::derive(&plan, mode);
            if mode == BackwardMode::Refetch {
                prop_assert_eq!((&q, &kv), (&plan.exchange.q, &plan.exchange.kv));
                prop_assert_eq!(&forward, &plan.exchange.forward);
            } else {
                prop_assert!(q.is_empty() && kv.is_empty() && forward.is_empty());
            }
        }
    }

    #[test]
    fn as_many_bytes_return_as_queries_and_keys_came(case in cases()) {
        let plan = case.plan();
        let Forward { q, kv, .. } = forward(&plan, None);
        for mode in BackwardMode::ALL {
            prop_assert_eq!(reverse::derive(&plan, mode).cost.returned_bytes, q + kv);
        }
    }

    #[test]
    fn costs_are_the_bytes_of_each_mode(case in cases()) {
        let plan = case.plan();
        let Forward { q, o, kv, statistic } = forward(&plan, None);
        let cost = |mode| reverse::derive(&plan, mode).cost;

        let recompute = cost(BackwardMode::Recompute);
        prop_assert_eq!(recompute.dispatched_bytes, o);
        prop_assert_eq!(recompute.recomputed_bytes, q + o + kv);
        prop_assert_eq!(recompute.forward_extra_bytes, 0);
        prop_assert_eq!(recompute.moved_bytes(), 2 * (q + o + kv));
        // Backward proper moves what forward moves, the paper's claim.
        prop_assert_eq!(recompute.dispatched_bytes + recompute.returned_bytes, q + o + kv);

        let stash = cost(BackwardMode::Stash);
        prop_assert_eq!(stash.moved_bytes(), q + o + kv);
        prop_assert_eq!(stash.forward_extra_bytes, 0);
        for (worker, &stashed) in (0..).zip(&stash.stashed_bytes) {
            let here = forward(&plan, Some(worker));
            prop_assert_eq!(stashed, here.q + here.o + here.kv + here.statistic);
        }

        let refetch = cost(BackwardMode::Refetch);
        prop_assert_eq!(refetch.dispatched_bytes, q + o + kv + 2 * statistic);
        prop_assert_eq!(refetch.forward_extra_bytes, statistic);
        prop_assert_eq!(refetch.recomputed_bytes, 0);
        for cost in [recompute, refetch] {
            prop_assert_eq!(cost.stashed_bytes, vec![0; plan.layout.workers() as usize]);
        }
    }
}

#[test]
fn names_of_modes_parse_back() {
    for mode in BackwardMode::ALL {
        assert_eq!(mode.to_string().parse(), Ok(mode));
    }
}
