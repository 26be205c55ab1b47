//! A plan's execution equals attention without a plan.

mod common;

use std::collections::BTreeSet;

use common::{Case, case, relative_difference};
use libra_exec::cpu::{CpuPool, FastKernel, ReferenceKernel};
use libra_exec::{PoolTensors, unsharded};
use libra_sched::{
    BackwardMode, HeadSplit, LayoutKind, Mask, PackedLengths, PlanConfig, SampleId, Tiling,
    TokenLayout, plan_pool, reverse, verify,
};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_plan_computes_unsharded_attention(case in case()) {
        let Case { plan, mode, seed } = case;
        prop_assert_eq!(verify::check(&plan), vec![]);
        let inputs = PoolTensors::<f64>::random(&plan, seed);
        let expected = unsharded::attention(&plan, &inputs);
        let run = CpuPool::new(&plan, mode, ReferenceKernel).run(&inputs).expect("runs");
        prop_assert_eq!(&run.outputs.o, &expected.o, "O differs");
        prop_assert_eq!(&run.outputs.d_q, &expected.d_q, "dQ differs");
        prop_assert!(relative_difference(&run.outputs.d_k, &expected.d_k) <= 1e-12, "dK differs");
        prop_assert!(relative_difference(&run.outputs.d_v, &expected.d_v) <= 1e-12, "dV differs");

        let cost = reverse::derive(&plan, mode).cost;
        for (worker, run) in run.workers.iter().enumerate() {
            prop_assert_eq!(run.left_elements, 0, "worker {} leaves memory behind", worker);
            if mode != BackwardMode::Stash {
                prop_assert_eq!(run.kept_elements, 0, "worker {} stashes", worker);
            } else {
                // Keys of one's own that are copied beside fetched ones are kept too.
                prop_assert!(run.kept_elements as u64 * 8 >= cost.stashed_bytes[worker]);
            }
        }
    }

    #[test]
    fn bytes_that_travel_are_the_bytes_the_plan_counts(case in case()) {
        let Case { plan, mode, seed } = case;
        let inputs = PoolTensors::<f64>::random(&plan, seed);
        let run = CpuPool::new(&plan, mode, ReferenceKernel).run(&inputs).expect("runs");
        let audit = libra_sched::audit::audit(&plan, libra_sched::Topology::default());
        let cost = reverse::derive(&plan, mode).cost;
        let forward: u64 = run.workers.iter().map(|w| w.forward.sent_bytes()).sum();
        let backward: u64 = run.workers.iter().map(|w| w.backward.sent_bytes()).sum();
        prop_assert_eq!(forward, audit.moved_bytes() + cost.forward_extra_bytes);
        prop_assert_eq!(backward, cost.dispatched_bytes + cost.returned_bytes);
        for (worker, run) in run.workers.iter().enumerate() {
            if cost.forward_extra_bytes == 0 {
                prop_assert_eq!(run.forward.sent_bytes(), audit.sent_bytes[worker]);
            }
        }
    }

    #[test]
    fn runs_of_the_fast_kernel_are_equal_and_near(case in case()) {
        let Case { plan, mode, seed } = case;
        let inputs = PoolTensors::<f64>::random(&plan, seed);
        let exact = unsharded::attention(&plan, &inputs);
        let single = inputs.cast::<f32>();
        let plain = unsharded::attention(&plan, &single).cast::<f64>();
        let pool = CpuPool::new(&plan, mode, FastKernel);
        let run = pool.run(&single).expect("runs");
        prop_assert_eq!(&run.outputs, &pool.run(&single).expect("runs").outputs);
        let fast = run.outputs.cast::<f64>();
        for (name, fast, plain, exact) in [
            ("O", &fast.o, &plain.o, &exact.o),
            ("dQ", &fast.d_q, &plain.d_q, &exact.d_q),
            ("dK", &fast.d_k, &plain.d_k, &exact.d_k),
            ("dV", &fast.d_v, &plain.d_v, &exact.d_v),
        ] {
            let error = relative_difference(fast, exact);
            // Plain f32 may be exact by luck on a few numbers; 16 roundings are always legal here,
            // of 1 where terms, of about 1, cancel. The test below holds larger pools to the factor
            // alone.
            let size = exact.iter().flatten().fold(0.0f64, |most, x| most.max(x.abs()));
            let floor = 16.0 * f64::from(f32::EPSILON) / if size == 0.0 { 1.0 } else { size.min(1.0) };
            let allowed = (2.0 * relative_difference(plain, exact)).max(floor);
            prop_assert!(error <= allowed, "{} is off by {}, allowed {}", name, error, allowed);
        }
    }
}

#[test]
fn cases_forward_in_every_backward_mode() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut forwarding = [0; 3];
    for _ in 0..400 {
        let case = case().new_tree(&mut runner).expect("a case").current();
        if !case.plan.exchange.forward.is_empty() {
            let mode = BackwardMode::ALL.iter().position(|&mode| mode == case.mode);
            forwarding[mode.expect("a mode")] += 1;
        }
    }
    assert!(
        forwarding.iter().all(|&count| count >= 10),
        "{forwarding:?}"
    );
}

#[test]
fn split_and_merged_tiles_compute_unsharded_attention() {
    let pool = PackedLengths::new(24, [vec![24u64], vec![3, 2, 4, 3, 5, 1, 3]]).expect("fits");
    let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 24, 2).expect("legal");
    let heads = HeadSplit::new(4, 2, 4, 4, 2, 2).expect("legal");
    let fixed = PlanConfig::paper(4);
    let adaptive = PlanConfig {
        tiling: Tiling::Adaptive,
        ..fixed
    };
    let plan = |config| plan_pool(&pool, &layout, &heads, config).expect("legal");
    let edges = |config| {
        let tiles = plan(config).tiles;
        tiles
            .iter()
            .map(|t| (t.slot, t.shard, t.start))
            .collect::<BTreeSet<_>>()
    };
    let (before, after) = (edges(&fixed), edges(&adaptive));
    assert!(after.difference(&before).count() > 0, "no tile was split");
    assert!(
        before.difference(&after).count() > 0,
        "no tiles were merged"
    );
    let plan = plan(&adaptive);
    let inputs = PoolTensors::<f64>::random(&plan, 5);
    let expected = unsharded::attention(&plan, &inputs);
    for mode in BackwardMode::ALL {
        let run = CpuPool::new(&plan, mode, ReferenceKernel)
            .run(&inputs)
            .expect("runs");
        assert_eq!(run.outputs.o, expected.o);
        assert_eq!(run.outputs.d_q, expected.d_q);
        assert!(relative_difference(&run.outputs.d_k, &expected.d_k) <= 1e-12);
        assert!(relative_difference(&run.outputs.d_v, &expected.d_v) <= 1e-12);
    }
}

#[test]
fn a_tree_computes_what_its_flattened_branches_compute() {
    // A question of 5 tokens, answers of 3 and 4, and a follow-up of 2 to the second answer.
    let parents = [
        None,
        Some(SampleId(0)),
        Some(SampleId(0)),
        Some(SampleId(2)),
    ];
    let tree = PackedLengths::new(14, [vec![5u64, 3, 4, 2]]).expect("fits");
    let tree = tree.with_parents(&parents).expect("parents are earlier");
    let branches = [vec![0..5, 5..8], vec![0..5, 8..12, 12..14]].map(|branch| {
        let tokens: Vec<usize> = branch.into_iter().flatten().collect();
        let flat = PackedLengths::new(14, [vec![tokens.len() as u64]]).expect("fits");
        (tokens, flat)
    });
    let plan = |lengths: &PackedLengths, ranks| {
        let layout = TokenLayout::new(LayoutKind::Zigzag, 1, 14, ranks).expect("legal");
        let heads = HeadSplit::new(4, 2, 3, 2, 2, 1).expect("legal");
        plan_pool(lengths, &layout, &heads, &PlanConfig::paper(4)).expect("legal")
    };
    let planned = plan(&tree, 3);
    let inputs = PoolTensors::<f64>::random(&planned, 5);
    let pool = CpuPool::new(&planned, BackwardMode::Stash, ReferenceKernel);
    let run = pool.run(&inputs).expect("runs").outputs;

    let mut d_v = vec![0.0; run.d_v[0].len()];
    let mut seen = [false; 14];
    for (tokens, flat) in branches {
        let flat = plan(&flat, 1);
        let mut own = PoolTensors::<f64>::random(&flat, 6);
        let copy = |to: &mut Vec<Vec<f64>>, from: &[Vec<f64>]| {
            let width = from[0].len() / 14;
            for (place, token) in tokens.iter().enumerate() {
                to[0][place * width..][..width].copy_from_slice(&from[0][token * width..][..width]);
            }
        };
        copy(&mut own.q, &inputs.q);
        copy(&mut own.k, &inputs.k);
        copy(&mut own.v, &inputs.v);
        copy(&mut own.d_o, &inputs.d_o);
        // The question is asked once: only the first branch may add its gradients.
        let width = own.d_o[0].len() / 14;
        for (place, &token) in tokens.iter().enumerate() {
            if std::mem::replace(&mut seen[token], true) {
                own.d_o[0][place * width..][..width].fill(0.0);
            }
        }
        let branch = unsharded::attention(&flat, &own);
        let (width, kv_width) = (run.o[0].len() / 14, d_v.len() / 14);
        for (place, &token) in tokens.iter().enumerate() {
            assert_eq!(
                run.o[0][token * width..][..width],
                branch.o[0][place * width..][..width]
            );
            for i in 0..kv_width {
                d_v[token * kv_width + i] += branch.d_v[0][place * kv_width + i];
            }
        }
    }
    assert!(relative_difference(&run.d_v, &[d_v]) <= 1e-12, "dV differs");
}

#[test]
fn the_fast_kernel_errs_at_most_twice_as_much_as_plain_f32() {
    let forms = "causal full causal+40 window:64 window:50,sinks:20 two-sided:30,70 chunked:100 \
        block:32,local:2,sinks:1 prefix:70 keys:20..200";
    for mask in forms.split_whitespace() {
        let mask: Mask = mask.parse().expect("a legal form");
        let samples = [vec![384u64, 100, 28], vec![17, 300, 195]];
        let pool = PackedLengths::new(512, samples).expect("fits");
        let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 512, 2).expect("legal");
        let heads = HeadSplit::new(4, 2, 64, 32, 2, 2).expect("legal");
        let config = PlanConfig {
            mask,
            ..PlanConfig::paper(96)
        };
        let plan = plan_pool(&pool, &layout, &heads, &config).expect("legal");
        let inputs = PoolTensors::<f64>::random(&plan, 11);
        let exact = unsharded::attention(&plan, &inputs);
        let single = inputs.cast::<f32>();
        let plain = unsharded::attention(&plan, &single).cast::<f64>();
        let pool = CpuPool::new(&plan, BackwardMode::Stash, FastKernel);
        let fast = pool.run(&single).expect("runs").outputs.cast::<f64>();
        for (name, fast, plain, exact) in [
            ("O", &fast.o, &plain.o, &exact.o),
            ("dQ", &fast.d_q, &plain.d_q, &exact.d_q),
            ("dK", &fast.d_k, &plain.d_k, &exact.d_k),
            ("dV", &fast.d_v, &plain.d_v, &exact.d_v),
        ] {
            let error = relative_difference(fast, exact);
            let plain = relative_difference(plain, exact);
            assert!(
                error <= 2.0 * plain,
                "{mask} {name}: {error:e}, plain f32 {plain:e}"
            );
        }
    }
}
