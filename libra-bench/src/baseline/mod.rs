//! What others do with the same window, as programs of the same simulator.
//!
//! A [`Method`](method::Method) makes a [`Schedule`] of a window: groups of workers, and for each a plan or, where no plan describes it,
//! steps. Every file has one method or what several share.

mod all_gather;
mod cad;
mod dynamic_cp;
pub(crate) mod grouping;
mod libra;
mod magi;
pub(crate) mod method;
mod pieces;
mod pools;
mod ring;
pub(crate) mod steps;
mod ulysses;
mod wlb;
mod wlb_published;

#[cfg(test)]
mod check;
#[cfg(test)]
pub(crate) mod tests;

use std::ops::Range;

use libra_sched::{PoolPlan, SampleId};

use self::steps::StepWork;

/// One window as one method runs it.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// Who made it.
    pub(crate) method: method::Method,
    /// Groups of workers that run one after the other or side by side.
    pub(crate) groups: Vec<Group>,
}

impl Schedule {
    /// Whether results are merged of partial ones.
    pub(crate) fn merges(&self) -> bool {
        let is_steps = |group: &Group| matches!(group.work, Work::Steps(_));
        self.groups.iter().any(is_steps)
    }
}

/// Workers that wait for each other within a layer, and what they do.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Gradient-accumulation index at which it runs.
    pub(crate) ga: u32,
    /// Data-parallel replicas whose workers take part, in order: worker w of the group is worker w mod CP of replica
    /// `replicas.start` + w div CP.
    pub(crate) replicas: Range<u32>,
    /// Samples of the window that it computes, in the order in which the work numbers them. With methods that delay
    /// samples, some are of earlier windows.
    pub(crate) samples: Vec<SampleId>,
    /// Tokens of each worker, for the layers that are not attention.
    pub(crate) tokens: Vec<u64>,
    /// What they do.
    pub(crate) work: Work,
}

/// What a group does in a layer.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// A plan.
    Plan(Box<PoolPlan>),
    /// Steps that no plan describes.
    Steps(Box<StepWork>),
}
