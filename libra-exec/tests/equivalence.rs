//! A plan's execution equals attention without a plan.

mod common;

use common::{Case, case, relative_difference};
use libra_exec::cpu::{CpuPool, FastKernel, ReferenceKernel};
use libra_exec::{PoolTensors, unsharded};
use libra_sched::{
    BackwardMode, HeadSplit, LayoutKind, Mask, PackedLengths, PlanConfig, TokenLayout, plan_pool,
    reverse, verify,
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
            // and the test below holds larger pools to the factor alone.
            let floor = 16.0 * f64::from(f32::EPSILON);
            let allowed = (2.0 * relative_difference(plain, exact)).max(floor);
            prop_assert!(error <= allowed, "{} is off by {}, allowed {}", name, error, allowed);
        }
    }
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
