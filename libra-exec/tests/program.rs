//! The pipeline as data.

use std::collections::BTreeSet;

use libra_exec::program::{Hops, Leg, Step, pipelined, pipelined_over};
use proptest::prelude::*;

fn position(steps: &[Step], step: Step) -> usize {
    steps
        .iter()
        .position(|&s| s == step)
        .expect("the step is there")
}

fn hops() -> impl Strategy<Value = Hops> {
    (any::<bool>(), any::<bool>()).prop_map(|(relay, gather)| Hops { relay, gather })
}

proptest! {
    #[test]
    fn each_leg_of_each_chunk_is_started_once_and_then_waited_for_once(
        chunks in 1..20u32,
        reverse in any::<bool>(),
        hops in hops(),
    ) {
        let mut order: Vec<u32> = (0..chunks).collect();
        if reverse {
            order.reverse();
        }
        let steps = pipelined_over(&order, hops);
        let each = 5 + 2 * (usize::from(hops.relay) + usize::from(hops.gather));
        prop_assert_eq!(steps.len(), each * chunks as usize);
        prop_assert_eq!(steps.iter().collect::<BTreeSet<_>>().len(), steps.len());
        for &chunk in &order {
            let of_chunk: Vec<Step> = steps
                .iter()
                .copied()
                .filter(|step| match *step {
                    Step::Start(_, c) | Step::Wait(_, c) | Step::Compute(c) => c == chunk,
                })
                .collect();
            let mut expected = Vec::new();
            let leg = |leg| [Step::Start(leg, chunk), Step::Wait(leg, chunk)];
            expected.extend(leg(Leg::Dispatch));
            if hops.relay {
                expected.extend(leg(Leg::Relay));
            }
            expected.push(Step::Compute(chunk));
            if hops.gather {
                expected.extend(leg(Leg::Gather));
            }
            expected.extend(leg(Leg::Return));
            prop_assert_eq!(of_chunk, expected);
        }
    }

    #[test]
    fn a_second_hop_runs_beside_the_chunk_before_or_behind(chunks in 3..20u32, hops in hops()) {
        let order: Vec<u32> = (0..chunks).collect();
        let steps = pipelined_over(&order, hops);
        let at = |step| position(&steps, step);
        for chunk in 1..chunks {
            let (before, own) = (at(Step::Compute(chunk - 1)), at(Step::Compute(chunk)));
            let beside = |leg, of| at(Step::Start(leg, of)) < before && before < at(Step::Wait(leg, of));
            prop_assert!(at(Step::Start(Leg::Dispatch, chunk)) < before);
            if hops.relay {
                prop_assert!(beside(Leg::Relay, chunk));
                // The first hop has the time of a whole chunk before that.
                prop_assert!(chunk < 2 || at(Step::Start(Leg::Dispatch, chunk)) < at(Step::Compute(chunk - 2)));
            } else {
                prop_assert!(beside(Leg::Dispatch, chunk));
            }
            if hops.gather {
                let sent = at(Step::Start(Leg::Gather, chunk - 1));
                prop_assert!(before < sent && sent < own && own < at(Step::Wait(Leg::Gather, chunk - 1)));
            }
        }
    }

    #[test]
    fn workers_at_any_pace_come_to_the_end(
        chunks in 1..8u32,
        hops in hops(),
        workers in 2..6usize,
        paces in proptest::collection::vec(any::<prop::sample::Index>(), 1..64),
    ) {
        let order: Vec<u32> = (0..chunks).collect();
        let steps = pipelined_over(&order, hops);
        let mut done = vec![0; workers];
        // The worst peers: every wait is for every other worker.
        let can_step = |done: &[usize], worker: usize| match steps.get(done[worker]) {
            Some(&Step::Wait(leg, chunk)) => {
                let started = position(&steps, Step::Start(leg, chunk));
                done.iter().all(|&done| done > started)
            }
            Some(_) => true,
            None => false,
        };
        let mut pace = paces.iter().cycle();
        while done.iter().any(|&done| done < steps.len()) {
            let able: Vec<usize> = (0..workers).filter(|&w| can_step(&done, w)).collect();
            prop_assert!(!able.is_empty(), "all wait: {:?}", done);
            done[*pace.next().expect("a cycle").get(&able)] += 1;
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
    let hops = Hops {
        relay: true,
        gather: true,
    };
    assert_eq!(pipelined_over(&[], hops), []);
}
