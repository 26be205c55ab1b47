//! The yardstick itself: unsharded gradients against finite differences.

mod common;

use libra_exec::{PoolTensors, unsharded};
use libra_sched::{
    HeadSplit, LayoutKind, Mask, PackedLengths, PlanConfig, PoolPlan, SampleId, TokenLayout,
    plan_pool,
};

fn plan(mask: Mask, tree: bool) -> PoolPlan {
    let mut pool = PackedLengths::new(9, [vec![5u64, 3], vec![3, 1, 2, 3]]).expect("fits");
    if tree {
        let parents = [None, None, None, Some(2), Some(2), Some(4)];
        let parents = parents.map(|parent| parent.map(SampleId));
        pool = pool.with_parents(&parents).expect("parents are earlier");
    }
    let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 9, 1).expect("legal");
    let heads = HeadSplit::new(4, 2, 3, 2, 2, 1).expect("legal");
    let config = PlanConfig {
        mask,
        ..PlanConfig::paper(4)
    };
    plan_pool(&pool, &layout, &heads, &config).expect("legal")
}

/// Sum of O ∘ dO: its gradient is what backward returns.
fn loss(plan: &PoolPlan, inputs: &PoolTensors<f64>) -> f64 {
    let o = unsharded::attention(plan, inputs).o;
    o.concat()
        .iter()
        .zip(inputs.d_o.concat())
        .map(|(o, d)| o * d)
        .sum()
}

#[test]
fn unsharded_gradients_are_the_slopes_of_the_loss() {
    let flat = common::each_kind().into_iter().map(|mask| (mask, false));
    for (mask, tree) in flat.chain([(Mask::Causal, true)]) {
        let plan = plan(mask, tree);
        let inputs = PoolTensors::<f64>::random(&plan, 3);
        let gradients = unsharded::attention(&plan, &inputs);
        type Pick = fn(&mut PoolTensors<f64>) -> &mut Vec<Vec<f64>>;
        let picks: [(&str, Pick, &Vec<Vec<f64>>); 3] = [
            ("dQ", |t| &mut t.q, &gradients.d_q),
            ("dK", |t| &mut t.k, &gradients.d_k),
            ("dV", |t| &mut t.v, &gradients.d_v),
        ];
        for (name, pick, gradient) in picks {
            for (slot, gradient) in gradient.iter().enumerate() {
                for (at, gradient) in gradient.iter().enumerate() {
                    let step = 1e-5;
                    let at_shift = |by: f64| {
                        let mut shifted = inputs.clone();
                        pick(&mut shifted)[slot][at] += by;
                        loss(&plan, &shifted)
                    };
                    let slope = (at_shift(step) - at_shift(-step)) / (2.0 * step);
                    let error = (slope - gradient).abs();
                    assert!(
                        error < 1e-8,
                        "{mask} {name}[{slot}][{at}] is off by {error}"
                    );
                }
            }
        }
    }
}
