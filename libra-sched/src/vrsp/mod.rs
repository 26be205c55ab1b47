//! Variance-reduced sequence placement: which packed sequences share a pool.
//!
//! In: one weight a sequence. Out: K pools of exactly P sequences with near-equal sums, and the
//! proof of how near they can be. O(D log D) for Alg. 1 and the bound. Beyond it: which pools run
//! side by side, and pools of several sizes where one size cannot balance.
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
mod elastic;
mod exact;
mod order;
mod paper;
mod pools;
mod ranked;
mod split;
mod trades;

use std::fmt;
use std::str::FromStr;

use ordered_float::NotNan;

use crate::error::{Error, check_divides};
use crate::ids::{PoolId, SequenceId};

pub use bound::{BoundKind, PoolBound, lower_bound};
pub use elastic::{Elastic, ElasticPlacement, elastic, elastic_with, lower_bound_up_to};
pub use order::{GaOrder, ga_order, ga_time};

/// An algorithm that fills pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vrsp {
    /// Sequences in arrival order: what happens without a scheduler.
    Arrival,
    /// Alg. 1: exact-cardinality longest-processing-time-first.
    Paper,
    /// Alg. 1, then trades, splits and searches until the proved bound or a local optimum.
    #[default]
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

/// Memory that [`place_with`] reuses: in a window no larger than one before, it allocates the
/// result and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    ranked: ranked::Ranked,
    heap: paper::Heap,
    pools: pools::Pools,
    search: certified::Search,
}

/// Sequences in pools, and what no placement in pools of their sizes goes below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequencePlacement<Load = u64> {
    /// First member of each pool, and the number of members.
    first: Vec<u32>,
    /// Members pool by pool: the sampler order S′.
    members: Vec<SequenceId>,
    loads: Vec<Load>,
    bound: PoolBound,
}

impl<Load> SequencePlacement<Load> {
    /// Number of pools, K.
    #[must_use]
    pub fn pools(&self) -> usize {
        self.loads.len()
    }

    /// Sequences of `pool`: P, or a multiple of it where pools were merged.
    #[must_use]
    pub fn pool_size(&self, pool: PoolId) -> usize {
        self.members(pool).len()
    }

    /// Sequences of `pool` in slot order.
    #[must_use]
    pub fn members(&self, pool: PoolId) -> &[SequenceId] {
        let (start, end) = (self.first[pool.index()], self.first[pool.index() + 1]);
        &self.members[start as usize..end as usize]
    }

    /// Position of the first sequence of `pool` in [`SequencePlacement::order`].
    #[must_use]
    pub fn first(&self, pool: PoolId) -> usize {
        self.first[pool.index()] as usize
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

impl SequencePlacement {
    /// What no placement goes below, and why. [`Vrsp::Certified`] proves all it can; the others only
    /// look at the mean and at the heaviest sequence: [`lower_bound`] proves more of them.
    #[must_use]
    pub fn bound(&self) -> PoolBound {
        self.bound
    }

    /// The heaviest pool, by load per sequence, over the bound, less 1: 0 is proved to be the best.
    #[must_use]
    pub fn gap(&self) -> f64 {
        // Sizes divide the bound's, and weighed loads were checked to fit.
        let weigh = |pool: usize| {
            let size = self.pool_size(PoolId::new(pool));
            self.loads[pool] * (self.bound.pool_size / size) as u64
        };
        let heaviest = (0..self.pools()).map(weigh).max().unwrap_or(0);
        match self.bound.load {
            0 => 0.0,
            bound => heaviest as f64 / bound as f64 - 1.0,
        }
    }
}

/// Fills pools of `pool_size` sequences from the sequences' `work` (one weight each).
///
/// # Errors
/// If P does not divide the number of sequences, or the total work exceeds 64 bits.
///
/// ```
/// use libra_sched::vrsp::{self, BoundKind, Vrsp};
/// let placed = vrsp::place(&[20, 8, 7, 6, 5, 4], 3, Vrsp::Certified)?;
/// // 20 with the two lightest: no placement is below 29, and the mean is 25.
/// assert_eq!((placed.loads().iter().max(), placed.bound().load), (Some(&29), 29));
/// assert_eq!(placed.bound().kind, BoundKind::Heaviest { sequences: 1 });
/// assert_eq!(placed.gap(), 0.0);
/// # Ok::<(), libra_sched::Error>(())
/// ```
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
    let Scratch {
        ranked,
        heap,
        pools,
        search,
    } = scratch;
    ranked.read(work)?;
    let bound = match vrsp {
        Vrsp::Arrival => return Ok(arrival(work, pool_size, bound::simple(ranked, pool_size))),
        Vrsp::Paper => {
            paper::fill(heap, ranked, pool_size, pools);
            bound::simple(ranked, pool_size)
        }
        Vrsp::Certified => {
            ranked.sum_up();
            let bound = bound::of(ranked, pool_size);
            search.place(heap, ranked, pool_size, bound, pools)
        }
    };
    Ok(finish(ranked, pools, bound))
}

/// Ranks back to sequences.
fn finish(ranked: &ranked::Ranked, pools: &pools::Pools, bound: PoolBound) -> SequencePlacement {
    let id = |&rank: &u32| SequenceId(ranked.ids()[rank as usize]);
    SequencePlacement {
        first: pools.first.clone(),
        members: pools.members.iter().map(id).collect(),
        loads: pools.loads.clone(),
        bound,
    }
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
    let (members, loads) = paper::fill_keys(&keys, pool_size);
    Ok(SequencePlacement {
        first: firsts(loads.len(), pool_size),
        members: members.into_iter().map(SequenceId).collect(),
        loads: loads.into_iter().map(NotNan::into_inner).collect(),
        // Sums of floats are rounded: nothing is proved about them, and nothing shows it.
        bound: PoolBound::default(),
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

fn firsts(pools: usize, pool_size: usize) -> Vec<u32> {
    (0..=pools).map(|pool| (pool * pool_size) as u32).collect()
}

fn arrival(work: &[u64], pool_size: usize, bound: PoolBound) -> SequencePlacement {
    SequencePlacement {
        first: firsts(work.len() / pool_size, pool_size),
        members: (0..work.len()).map(SequenceId::new).collect(),
        loads: work
            .chunks(pool_size)
            .map(|pool| pool.iter().sum())
            .collect(),
        bound,
    }
}
