use std::collections::BTreeSet;

use libra_sched::plan::Scratch;
use libra_sched::{Error, PlanId, plan_pool, plan_pool_with, verify, wire};
use proptest::prelude::*;

use crate::cases::{Case, cases, runs};

fn plan_with(scratch: &mut Scratch, case: &Case) -> Vec<u8> {
    let Case {
        pool,
        layout,
        heads,
        config,
    } = case;
    wire::encode(&plan_pool_with(scratch, pool, layout, heads, config).unwrap())
}

proptest! {
    #![proptest_config(runs(500))]

    #[test]
    fn every_plan_passes_verification(case in cases()) {
        prop_assert_eq!(verify::check(&case.plan()), vec![]);
    }

    #[test]
    fn equal_inputs_give_equal_bytes(case in cases()) {
        let (first, again) = (case.plan(), case.clone().plan());
        prop_assert_eq!(wire::encode(&first), wire::encode(&again));
        prop_assert_eq!(PlanId::of(&first), PlanId::of(&again));
    }

    #[test]
    fn the_order_in_which_pools_are_planned_changes_nothing(
        cases in prop::collection::vec(cases(), 1..5),
    ) {
        let mut scratch = Scratch::default();
        let forward: Vec<_> = cases.iter().map(|case| plan_with(&mut scratch, case)).collect();
        let mut backward: Vec<_> =
            cases.iter().rev().map(|case| plan_with(&mut scratch, case)).collect();
        backward.reverse();
        let alone: Vec<_> = cases.iter().map(|case| wire::encode(&case.plan())).collect();
        prop_assert_eq!(&forward, &alone);
        prop_assert_eq!(&backward, &alone);
    }

    #[test]
    fn a_receive_limit_holds_to_the_byte(case in cases()) {
        let audit = libra_sched::audit::audit(&case.plan(), libra_sched::Topology::default());
        let most = *audit.staged_bytes.iter().max().unwrap();
        let mut case = case;
        case.config.max_recv_bytes = Some(most);
        case.plan();
        prop_assume!(most > 0);
        case.config.max_recv_bytes = Some(most - 1);
        let refused = plan_pool(&case.pool, &case.layout, &case.heads, &case.config);
        let Err(Error::ReceiveLimit { worker, bytes, limit }) = refused else {
            return Err(TestCaseError::fail("a worker receives more than the limit"));
        };
        prop_assert_eq!((bytes, limit), (most, most - 1));
        let first = audit.staged_bytes.iter().position(|&bytes| bytes == most);
        prop_assert_eq!(Some(worker.index()), first);
    }

    #[test]
    fn kv_groups_are_the_sample_and_span_pairs_that_tiles_read(case in cases()) {
        let plan = case.plan();
        let read: BTreeSet<(usize, u32)> = plan
            .tiles
            .iter()
            .flat_map(|tile| tile.samples().map(move |sample| (sample, tile.shard)))
            .flat_map(|(sample, shard)| {
                let above = crate::twins::mask::above(&case.pool, sample);
                [vec![sample], above].concat().into_iter().map(move |sample| (sample, shard))
            })
            .flat_map(|(sample, shard)| case.heads.spans_of_shard(shard).map(move |s| (sample, s)))
            .collect();
        prop_assert_eq!(plan.kv_groups(), read.len());
    }
}

proptest! {
    #![proptest_config(runs(100))]

    #[test]
    fn one_worker_moves_nothing(lengths in prop::collection::vec(1u32..9, 1..9)) {
        use libra_sched::{HeadSplit, LayoutKind, PackedLengths, PlanConfig, TokenLayout};
        let tokens: u32 = lengths.iter().sum();
        let pool = PackedLengths::new(tokens.into(), [lengths]).unwrap();
        let layout = TokenLayout::new(LayoutKind::Zigzag, 1, tokens, 1).unwrap();
        let heads = HeadSplit::new(4, 2, 2, 3, 4, 1).unwrap();
        let plan = plan_pool(&pool, &layout, &heads, &PlanConfig::paper(4)).unwrap();
        prop_assert_eq!(plan.exchange, libra_sched::ExchangePlan::default());
    }
}
