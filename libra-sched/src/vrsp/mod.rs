//! Variance-reduced sequence placement: which packed sequences share a pool.
//!
//! In: one weight a sequence. Out: K pools of exactly P sequences with near-equal sums.
//! O(D log D).
//!
//! *Paper*: §4.2, Alg. 1, eq. 5.
//!
//! ```
//! use libra_sched::vrsp::{self, Vrsp};
//! let placed = vrsp::place(&[9, 1, 2, 8], 2, Vrsp::Paper)?;
//! assert_eq!(placed.loads(), [10, 10]);
//! # Ok::<(), libra_sched::Error>(())
//! ```

mod bound;
mod certified;
mod paper;

use std::fmt;
use std::str::FromStr;

use ordered_float::NotNan;

use crate::error::{Error, check_divides};
use crate::ids::{PoolId, SequenceId};
use crate::lengths::check_total;

pub use bound::{BoundKind, PoolBound, lower_bound};
pub use paper::Scratch;

/// An algorithm that fills pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vrsp {
    /// Sequences in arrival order: what happens without a scheduler.
    Arrival,
    /// Alg. 1: exact-cardinality longest-processing-time-first.
    Paper,
    /// Alg. 1, then swaps and splits until the proved bound or a local optimum.
    Certified,
}

impl fmt::Display for Vrsp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Arrival => "arrival",
            Self::Paper => "paper",
            Self::Certified => "certified",
        })
    }
}

impl FromStr for Vrsp {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "arrival" => Ok(Self::Arrival),
            "paper" => Ok(Self::Paper),
            "certified" => Ok(Self::Certified),
            _ => Err(Error::UnknownName {
                what: "vrsp algorithm",
                value: text.to_owned(),
                legal: "arrival, paper, certified",
            }),
        }
    }
}

/// Pools of exactly P sequences each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequencePlacement<Load = u64> {
    pool_size: usize,
    /// Members pool by pool: the sampler order S′ in paper GA order.
    members: Vec<SequenceId>,
    loads: Vec<Load>,
}

impl<Load> SequencePlacement<Load> {
    /// Number of pools, K.
    #[must_use]
    pub fn pools(&self) -> usize {
        self.loads.len()
    }

    /// Sequences of a pool, P.
    #[must_use]
    pub fn pool_size(&self) -> usize {
        self.pool_size
    }

    /// Sequences of `pool` in slot order.
    #[must_use]
    pub fn members(&self, pool: PoolId) -> &[SequenceId] {
        &self.members[pool.index() * self.pool_size..][..self.pool_size]
    }

    /// The reordered window S′: pool by pool, slot by slot. Position `ga·DP + replica` goes to
    /// data-parallel replica `replica` at gradient-accumulation index `ga`.
    #[must_use]
    pub fn order(&self) -> &[SequenceId] {
        &self.members
    }

    /// Summed weight of every pool.
    #[must_use]
    pub fn loads(&self) -> &[Load] {
        &self.loads
    }
}

/// Fills pools of `pool_size` sequences from the sequences' `work` (one weight each).
///
/// # Errors
/// If P does not divide the number of sequences, or the total work exceeds 64 bits.
pub fn place(work: &[u64], pool_size: usize, vrsp: Vrsp) -> Result<SequencePlacement, Error> {
    place_with(&mut Scratch::default(), work, pool_size, vrsp)
}

/// As [`place`], reusing `scratch`; the answer does not depend on what it held.
///
/// # Errors
/// As [`place`].
pub fn place_with(
    scratch: &mut Scratch,
    work: &[u64],
    pool_size: usize,
    vrsp: Vrsp,
) -> Result<SequencePlacement, Error> {
    check_shape(work.len(), pool_size)?;
    let total = work.iter().map(|&w| u128::from(w)).sum();
    let total = check_total("work of the window", total)?;
    Ok(match vrsp {
        Vrsp::Arrival => arrival(work, pool_size),
        Vrsp::Paper => paper::place(scratch, work, total, pool_size),
        Vrsp::Certified => {
            let bound = lower_bound(work, pool_size)?;
            certified::place(scratch, work, total, pool_size, bound)
        }
    })
}

/// Alg. 1 over measured or predicted `costs` (seconds, or any one unit) instead of integer work.
///
/// # Errors
/// If P does not divide the number of sequences, or a cost is negative, infinite or not a number.
pub fn place_costs(costs: &[f64], pool_size: usize) -> Result<SequencePlacement<f64>, Error> {
    check_shape(costs.len(), pool_size)?;
    let mut keys = Vec::with_capacity(costs.len());
    for (index, &cost) in costs.iter().enumerate() {
        let key = NotNan::new(cost)
            .ok()
            .filter(|c| c.is_finite() && **c >= 0.0);
        keys.push(key.ok_or_else(|| Error::BadCost {
            index,
            value: cost.to_string(),
        })?);
    }
    let total: f64 = costs.iter().sum();
    if !total.is_finite() {
        return Err(Error::BadCost {
            index: costs.len() - 1,
            value: format!("sum {total}"),
        });
    }
    let placed = paper::place_keys(&keys, pool_size);
    Ok(SequencePlacement {
        pool_size,
        members: placed.members,
        loads: placed.loads.into_iter().map(NotNan::into_inner).collect(),
    })
}

fn check_shape(sequences: usize, pool_size: usize) -> Result<(), Error> {
    check_divides(
        "number of sequences",
        sequences as u64,
        "P",
        pool_size as u64,
    )
}

fn arrival(work: &[u64], pool_size: usize) -> SequencePlacement {
    SequencePlacement {
        pool_size,
        members: (0..work.len()).map(SequenceId::new).collect(),
        loads: work
            .chunks(pool_size)
            .map(|pool| pool.iter().sum())
            .collect(),
    }
}
