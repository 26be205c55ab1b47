//! What goes wrong while a plan runs: always with the worker and the step.

use std::fmt;
use std::time::Duration;

use libra_sched::{PlanId, WorkerId};
use thiserror::Error as Derive;

use crate::program::Step;

/// A device, a link or a peer failed. The operator acts.
#[derive(Clone, Debug, PartialEq, Eq, Derive)]
#[error("{worker}, {}: {kind}", Place(step))]
pub struct ExecError {
    /// Worker that noticed.
    pub worker: WorkerId,
    /// Step of the program at which it noticed; `None` before the first.
    pub step: Option<Step>,
    /// What happened.
    #[source]
    pub kind: Failure,
}

struct Place<'a>(&'a Option<Step>);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(step) => write!(f, "{step}"),
            None => f.write_str("before the first step"),
        }
    }
}

/// What a backend reports; the executor adds worker and step.
#[derive(Clone, Debug, PartialEq, Eq, Derive)]
#[non_exhaustive]
pub enum Failure {
    /// A peer sent nothing until the deadline.
    #[error("no message from {peer} within {} ms; it stalled, died or runs another plan", waited.as_millis())]
    Stalled {
        /// The silent peer.
        peer: WorkerId,
        /// How long it was waited for.
        waited: Duration,
    },
    /// Another worker gave up and told the others.
    #[error("{by} gave up: {reason}")]
    Aborted {
        /// Who gave up first.
        by: WorkerId,
        /// Why.
        reason: String,
    },
    /// Two workers were given different plans.
    #[error("{peer} runs plan {theirs}, this worker runs plan {own}; nothing was sent")]
    PlanMismatch {
        /// The other worker.
        peer: WorkerId,
        /// Its plan.
        theirs: PlanId,
        /// Our plan.
        own: PlanId,
    },
    /// A peer's end of the link is gone.
    #[error("the link to {peer} is closed")]
    Closed {
        /// The peer.
        peer: WorkerId,
    },
    /// A message has another size than the plan says.
    #[error("{found} elements from {peer}, the plan says {expected}")]
    MessageSize {
        /// The sender.
        peer: WorkerId,
        /// Elements received.
        found: usize,
        /// Elements expected.
        expected: usize,
    },
    /// A tensor has another size than the program's.
    #[error("tensor {tensor} has {found} elements, the program needs {expected} ({shape})")]
    TensorSize {
        /// Its name.
        tensor: &'static str,
        /// Elements given.
        found: usize,
        /// Elements needed.
        expected: usize,
        /// Rows × heads × width.
        shape: String,
    },
    /// Backward was asked for what forward did not leave.
    #[error("backward needs {what}, which forward did not leave; run forward first")]
    MissingState {
        /// What is missing.
        what: &'static str,
    },
    /// The request cannot be run.
    #[error("{0}")]
    Request(String),
}

impl Failure {
    /// Adds where it happened.
    #[must_use]
    pub fn at(self, worker: WorkerId, step: Option<Step>) -> ExecError {
        ExecError {
            worker,
            step,
            kind: self,
        }
    }
}
