//! Ring attention: K and V go around, one hop a step. Liu et al. 2023, arXiv 2310.01889.
//!
//! In step s a worker has the K and V of the worker s places before it and sends them on while it computes. Backward they
//! go around once more, and their gradients follow a step behind: each worker adds its share to the sum that it was sent and
//! passes it on, so that after a full turn the sum is at home. A buffer for the step and one for the next are enough.
//! O(workers² · pieces).

use std::ops::Range;

use super::messages::Route;
use super::{Piece, Place, Steps};
use crate::program::{Leg, Step};

/// Adds the passes of a ring over the workers `team`, in its order, after what they do already. The queries of each that
/// are of `samples` meet the keys of all.
pub fn ring(steps: &mut Steps, team: &[u32], samples: Range<usize>) {
    let held = (team.iter()).map(|&worker| steps.held(worker, &samples));
    let ring = Ring {
        team,
        held: held.collect(),
        samples,
    };
    let Some(last) = team.len().checked_sub(1) else {
        return;
    };
    let last = last as u32;
    let onward: Vec<u32> = (0..last)
        .map(|s| steps.keys_exchange((s + 1) % 2))
        .collect();
    // Alone, a worker has no one to send them to.
    let turns = if last > 0 { last + 1 } else { 0 };
    let gradients: Vec<u32> = (0..turns).map(|_| steps.gradients_exchange()).collect();
    for step in 0..=last {
        ring.send_on(steps, step, &onward, &gradients);
    }
    for &worker in team {
        ring.walk(steps, worker, &onward, &gradients);
    }
}

struct Ring<'a> {
    /// In the order of the ring.
    team: &'a [u32],
    /// What each of them holds.
    held: Vec<Vec<Piece>>,
    samples: Range<usize>,
}

/// Where a worker has the K and V of step `step`.
fn place(step: u32, onward: &[u32]) -> Place {
    let before = (step as usize).checked_sub(1);
    before.map_or(Place::Own, |before| Place::Arrived(onward[before]))
}

impl Ring<'_> {
    /// Every worker sends on what is there in `step`: K and V, and, a step behind, their gradients.
    fn send_on(&self, steps: &mut Steps, step: u32, onward: &[u32], gradients: &[u32]) {
        let count = self.team.len();
        for (at, &src) in self.team.iter().enumerate() {
            let block = &self.held[(at + count - step as usize) % count];
            let dst = self.team[(at + 1) % count];
            let from = place(step, onward);
            if let Some(&exchange) = onward.get(step as usize) {
                let to = Place::Arrived(exchange);
                steps.send_keys(Route { src, from, dst, to }, block);
            }
            if let Some(&exchange) = gradients.get(step as usize) {
                // The next worker of the last step is where they come from.
                let is_home = step as usize + 1 == count;
                let to = if is_home {
                    Place::Own
                } else {
                    place(step + 1, onward)
                };
                steps.send_gradients(exchange, Route { src, from, dst, to }, block);
            }
        }
    }

    /// Steps of one worker: the K and V of the next travel beside each.
    fn walk(&self, steps: &mut Steps, worker: u32, onward: &[u32], gradients: &[u32]) {
        for step in 0..self.team.len() as u32 {
            let compute = steps.block(worker, vec![place(step, onward)], self.samples.clone());
            let arrived = step.checked_sub(1).map(|before| before as usize);
            let mut both = Vec::new();
            both.extend(arrived.map(|before| Step::Wait(Leg::Dispatch, onward[before])));
            let next = onward.get(step as usize);
            both.extend(next.map(|&next| Step::Start(Leg::Dispatch, next)));
            both.push(compute);
            for step in both {
                steps.forward(worker, step);
                steps.backward(worker, step);
            }
            if let Some(before) = arrived {
                steps.backward(worker, Step::Wait(Leg::Return, gradients[before]));
            }
            if let Some(&exchange) = gradients.get(step as usize) {
                steps.backward(worker, Step::Start(Leg::Return, exchange));
            }
        }
        if let Some(&last) = gradients.last() {
            steps.backward(worker, Step::Wait(Leg::Return, last));
        }
    }
}
