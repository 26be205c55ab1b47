//! What no plan describes: who holds what, and which way K and V travel. The executor's programs are made of it where they
//! are run or simulated, as those of a plan are.

use libra_exec::steps::{Piece, ring};
use libra_exec::{StepPrograms, Steps};
use libra_sched::{Error, PackedLengths};

use super::dynamic_cp::{self, Placed};
use super::{all_gather, magi};
use crate::preset::Shapes;

/// Steps of a group of workers.
#[derive(Clone, Debug)]
pub(crate) struct StepWork {
    steps: Steps,
    scheme: Scheme,
}

/// Which way K and V travel.
#[derive(Clone, Debug)]
pub(super) enum Scheme {
    /// Around, all workers in order.
    Ring,
    /// Around in teams, sample after sample.
    Teams(Vec<Placed>),
    /// From all to all at once.
    Gather,
    /// To those that read them, in so many stages.
    Cast(u32),
}

impl StepWork {
    /// Of workers that hold `held`, by (sample, token).
    pub(super) fn new(
        lengths: PackedLengths,
        held: Vec<Vec<Piece>>,
        shapes: &Shapes,
        scheme: Scheme,
    ) -> Result<Self, Error> {
        let (mask, bytes) = (shapes.plan.mask, shapes.plan.bytes);
        let steps = Steps::new(lengths, held, &shapes.heads, mask, bytes)?;
        Ok(Self { steps, scheme })
    }

    /// The programs of all workers.
    pub(crate) fn lower(&self) -> StepPrograms {
        let mut steps = self.steps.clone();
        match &self.scheme {
            Scheme::Ring => {
                let team: Vec<u32> = (0..steps.workers()).collect();
                let samples = 0..steps.lengths().samples();
                ring(&mut steps, &team, samples);
            }
            Scheme::Teams(teams) => dynamic_cp::run(&mut steps, teams),
            Scheme::Gather => all_gather::gather(&mut steps),
            Scheme::Cast(stages) => magi::cast(&mut steps, *stages),
        }
        steps.finish()
    }
}
