//! Equal inputs give equal bytes, whatever else runs.

#![forbid(unsafe_code)]

use std::thread;

use libra_sched::plan::Scratch;
use libra_sched::wire;
use libra_tests::cases::{Case, named};

fn encode(scratch: &mut Scratch, case: &Case) -> Vec<u8> {
    wire::encode(&case.plan_with(scratch))
}

#[test]
fn eight_threads_planning_at_once_make_the_bytes_that_one_makes() {
    let cases = named();
    let alone: Vec<Vec<u8>> = cases
        .iter()
        .map(|named| encode(&mut Scratch::default(), &named.case))
        .collect();
    thread::scope(|scope| {
        for worker in 0..8 {
            let (cases, alone) = (&cases, &alone);
            scope.spawn(move || {
                // Each thread starts elsewhere, so that its scratch has held another case.
                let mut scratch = Scratch::default();
                for step in 0..24 * cases.len() {
                    let index = (worker + step) % cases.len();
                    let bytes = encode(&mut scratch, &cases[index].case);
                    assert!(
                        bytes == alone[index],
                        "{} on thread {worker}",
                        cases[index].name
                    );
                }
            });
        }
    });
}
