//! One step of training: microbatches through the stages of a pipeline, one forward, one backward (1F1B).
//!
//! Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, SC 2021
//! (arXiv 2104.04473), section 2.2.1, without interleaving. Stage s of S runs S − s − 1 microbatches forward, then one
//! forward and one backward in turn, then the rest backward. Each operation begins when its stage is free and the one
//! that it follows (forward in the stage before, backward in the stage after) has ended. Replicas that share a group
//! begin its operations together. O(S · microbatches · (groups + replicas)).

use std::ops::Range;

/// A group's part of a microbatch, in every stage alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// Who takes part.
    pub(crate) replicas: Range<u32>,
    /// Of one stage.
    pub(crate) forward_ns: u64,
    /// Of one stage.
    pub(crate) backward_ns: u64,
}

#[derive(Clone, Copy)]
enum Operation {
    Forward(usize),
    Backward(usize),
}

/// When each replica is done. A microbatch is a list of tasks; those of one replica run one after the other.
pub(crate) fn finish_ns(stages: u32, replicas: u32, microbatches: &[Vec<Task>]) -> Vec<u64> {
    let (stages, count) = (stages as usize, microbatches.len());
    let orders: Vec<Vec<Operation>> = (0..stages).map(|s| order(stages - s, count)).collect();
    let mut next = vec![0; stages];
    let mut free_ns = vec![vec![0u64; replicas as usize]; stages];
    // By stage and microbatch, once it has ended there.
    let mut forward: Vec<Vec<Option<Vec<u64>>>> = vec![vec![None; count]; stages];
    let mut backward = forward.clone();
    while let Some((stage, operation, after)) = (0..stages).find_map(|stage| {
        let &operation = orders[stage].get(next[stage])?;
        let after = match operation {
            Operation::Forward(_) if stage == 0 => None,
            Operation::Forward(m) => Some(forward[stage - 1][m].clone()?),
            Operation::Backward(m) if stage + 1 == stages => Some(forward[stage][m].clone()?),
            Operation::Backward(m) => Some(backward[stage + 1][m].clone()?),
        };
        Some((stage, operation, after))
    }) {
        let now = &mut free_ns[stage];
        for (free, after) in now.iter_mut().zip(after.into_iter().flatten()) {
            *free = after.max(*free);
        }
        match operation {
            Operation::Forward(m) => {
                run(now, &microbatches[m], |task| task.forward_ns);
                forward[stage][m] = Some(now.clone());
            }
            Operation::Backward(m) => {
                run(now, &microbatches[m], |task| task.backward_ns);
                backward[stage][m] = Some(now.clone());
            }
        }
        next[stage] += 1;
    }
    let last = |replica: usize| {
        free_ns
            .iter()
            .map(|stage| stage[replica])
            .max()
            .unwrap_or(0)
    };
    (0..replicas as usize).map(last).collect()
}

/// What a stage does that has `depth` − 1 stages after it.
fn order(depth: usize, count: usize) -> Vec<Operation> {
    let ahead = (depth - 1).min(count);
    let mut order: Vec<Operation> = (0..ahead).map(Operation::Forward).collect();
    for m in ahead..count {
        order.extend([Operation::Forward(m), Operation::Backward(m - ahead)]);
    }
    order.extend((count - ahead..count).map(Operation::Backward));
    order
}

/// Tasks in order, each when all its replicas are there.
fn run(now: &mut [u64], tasks: &[Task], time_ns: impl Fn(&Task) -> u64) {
    for task in tasks {
        begin_together(now, &task.replicas, time_ns(task));
    }
}

/// When each replica is done with tasks that run side by side, or one after the other where they share replicas.
pub(crate) fn side_by_side_ns(
    replicas: u32,
    tasks: impl IntoIterator<Item = (Range<u32>, u64)>,
) -> Vec<u64> {
    let mut now = vec![0; replicas as usize];
    for (range, time_ns) in tasks {
        begin_together(&mut now, &range, time_ns);
    }
    now
}

fn begin_together(now: &mut [u64], replicas: &Range<u32>, time_ns: u64) {
    let own = &mut now[replicas.start as usize..replicas.end as usize];
    let begin_ns = own.iter().copied().max().unwrap_or(0);
    own.fill(begin_ns.saturating_add(time_ns));
}
