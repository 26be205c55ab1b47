//! The pipeline as data.

use std::collections::BTreeSet;

use libra_exec::program::{Leg, Step, pipelined};
use proptest::prelude::*;

fn position(steps: &[Step], step: Step) -> usize {
    steps
        .iter()
        .position(|&s| s == step)
        .expect("the step is there")
}

proptest! {
    #[test]
    fn each_leg_of_each_chunk_is_started_once_and_then_waited_for_once(
        chunks in 1..20u32,
        reverse in any::<bool>(),
    ) {
        let mut order: Vec<u32> = (0..chunks).collect();
        if reverse {
            order.reverse();
        }
        let steps = pipelined(&order);
        prop_assert_eq!(steps.len(), 5 * chunks as usize);
        prop_assert_eq!(steps.iter().collect::<BTreeSet<_>>().len(), steps.len());
        for &chunk in &order {
            let at = |step| position(&steps, step);
            let computed = at(Step::Compute(chunk));
            prop_assert!(at(Step::Start(Leg::Dispatch, chunk)) < at(Step::Wait(Leg::Dispatch, chunk)));
            prop_assert!(at(Step::Wait(Leg::Dispatch, chunk)) < computed);
            prop_assert!(computed < at(Step::Start(Leg::Return, chunk)));
            prop_assert!(at(Step::Start(Leg::Return, chunk)) < at(Step::Wait(Leg::Return, chunk)));
        }
    }

    #[test]
    fn one_dispatch_and_one_return_are_in_flight_beside_a_chunk(chunks in 2..20u32) {
        let order: Vec<u32> = (0..chunks).collect();
        let steps = pipelined(&order);
        for &chunk in &order {
            let computed = position(&steps, Step::Compute(chunk));
            let started = |leg| {
                steps[..computed].iter().filter(|s| matches!(s, Step::Start(l, _) if *l == leg)).count()
            };
            let waited = steps[..computed]
                .iter()
                .filter(|s| matches!(s, Step::Wait(Leg::Dispatch, _)))
                .count();
            // Exposed are the first dispatch (nothing computed yet) and the last return.
            prop_assert_eq!(started(Leg::Dispatch) - waited, usize::from(chunk + 1 < chunks));
            prop_assert_eq!(started(Leg::Return), chunk as usize);
        }
    }
}

#[test]
fn no_chunk_is_no_step() {
    assert_eq!(pipelined(&[]), []);
}
