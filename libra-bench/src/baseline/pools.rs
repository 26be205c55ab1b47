//! Groups of workers that run a plan: pools of sequences, planned side by side.

use libra_sched::plan::{Scratch, plan_pool_measured};
use libra_sched::vrsp::SequencePlacement;
use libra_sched::{PackedLengths, PoolId, SampleId, SequenceId, TokenLayout, WindowShape};
use rayon::prelude::*;

use super::{Group, Work};
use crate::failure::Failure;
use crate::preset::Shapes;

/// Sequences that share a pool, in slot order; the first of them runs at position `first` of the step: at
/// gradient-accumulation index `first` div DP, from replica `first` mod DP on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pool {
    pub(super) first: usize,
    pub(super) members: Vec<SequenceId>,
}

/// Pools of `size` sequences in arrival order.
pub(super) fn in_arrival_order(sequences: usize, size: usize) -> Vec<Pool> {
    let pool = |first| Pool {
        first,
        members: (first..first + size).map(SequenceId::new).collect(),
    };
    (0..sequences).step_by(size).map(pool).collect()
}

/// Pools of a placement, in its order.
pub(super) fn as_placed(placement: &SequencePlacement) -> Vec<Pool> {
    let pool = |pool| Pool {
        first: placement.first(pool),
        members: placement.members(pool).to_vec(),
    };
    (0..placement.pools()).map(PoolId::new).map(pool).collect()
}

/// The pools of a window, and how each is planned.
#[derive(Clone, Debug)]
pub(super) struct Pools {
    pub(super) shapes: Shapes,
    pub(super) pools: Vec<Pool>,
}

impl Pools {
    /// What `of` makes of every pool's plan. Pools are planned in parallel, and a plan is dropped before its thread makes
    /// the next; the answer does not depend on threads.
    pub(super) fn each<T: Send>(
        &self,
        window: &PackedLengths,
        of: impl Fn(Group) -> T + Sync,
    ) -> Result<Vec<T>, Failure> {
        let made: Vec<Result<T, Failure>> = (self.pools.par_iter())
            .map_init(Scratch::default, |scratch, pool| {
                self.planned(scratch, window, pool).map(&of)
            })
            .collect();
        // In order, so that the first error does not depend on threads.
        made.into_iter().collect()
    }

    fn planned(
        &self,
        scratch: &mut Scratch,
        window: &PackedLengths,
        pool: &Pool,
    ) -> Result<Group, Failure> {
        let shapes = &self.shapes;
        let lengths = window.select(&pool.members)?;
        let layout = shapes.layout_of(lengths.sequences())?;
        let speeds = shapes.speeds_of(lengths.sequences());
        let measured = shapes.measured(speeds.as_ref());
        let (heads, config) = (&shapes.heads, &shapes.plan);
        let plan = plan_pool_measured(scratch, &lengths, &layout, heads, config, measured)?;
        let work = Work::Plan(Box::new(plan));
        let samples = samples_of(window, &pool.members);
        Ok(group(&shapes.window, pool.first, samples, work, &layout))
    }
}

/// The groups of a window: made, or plans of pools that are still to be made.
pub(super) enum Groups {
    Pools(Box<Pools>),
    Made(Vec<Group>),
}

impl From<Pools> for Groups {
    fn from(pools: Pools) -> Self {
        Self::Pools(Box::new(pools))
    }
}

impl From<Vec<Group>> for Groups {
    fn from(groups: Vec<Group>) -> Self {
        Self::Made(groups)
    }
}

impl Groups {
    /// What `of` makes of every group, in order; it is called in parallel.
    pub(super) fn each<T: Send>(
        self,
        window: &PackedLengths,
        of: impl Fn(Group) -> T + Sync,
    ) -> Result<Vec<T>, Failure> {
        match self {
            Self::Pools(pools) => pools.each(window, of),
            Self::Made(groups) => Ok(groups.into_par_iter().map(&of).collect()),
        }
    }
}

/// A group a sequence, in arrival order: `of` says what its workers do and hold. Sequences are taken in parallel; the
/// answer does not depend on it.
pub(super) fn each_sequence(
    window: &PackedLengths,
    shapes: &Shapes,
    of: impl Fn(PackedLengths) -> Result<(Work, TokenLayout), Failure> + Sync,
) -> Result<Vec<Group>, Failure> {
    let groups: Vec<Result<Group, Failure>> = (0..window.sequences())
        .into_par_iter()
        .map(|sequence| {
            let members = [SequenceId::new(sequence)];
            let (work, layout) = of(window.select(&members)?)?;
            let samples = samples_of(window, &members);
            Ok(group(&shapes.window, sequence, samples, work, &layout))
        })
        .collect();
    // In order, so that the first error does not depend on threads.
    groups.into_iter().collect()
}

/// Samples of `members`, sequence by sequence.
pub(super) fn samples_of(window: &PackedLengths, members: &[SequenceId]) -> Vec<SampleId> {
    let samples = (members.iter()).flat_map(|member| window.samples_of(member.index()));
    samples.map(SampleId::new).collect()
}

/// The workers of `layout`, a sequence a replica from position `first` of the step on.
pub(super) fn group(
    shape: &WindowShape,
    first: usize,
    samples: Vec<SampleId>,
    work: Work,
    layout: &TokenLayout,
) -> Group {
    let (position, dp) = (first as u32, shape.dp());
    let start = position % dp;
    Group {
        ga: position / dp,
        replicas: start..start + layout.slots(),
        samples,
        tokens: held_tokens(layout),
        work,
    }
}

/// Tokens that each worker holds, padding included: layers that are not attention compute it too.
fn held_tokens(layout: &TokenLayout) -> Vec<u64> {
    let mut tokens = vec![0; layout.workers() as usize];
    for slot in 0..layout.slots() {
        for fragment in layout.fragments(slot) {
            for tensor in 0..layout.tensor() {
                let worker = layout.worker(slot, fragment.rank, tensor).index();
                tokens[worker] += u64::from(fragment.end - fragment.start);
            }
        }
    }
    tokens
}
