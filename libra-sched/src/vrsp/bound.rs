//! Lower bounds on the heaviest pool: what no placement can beat.
//!
//! Three arguments, each valid for every placement of the same sequences:
//! - the mean;
//! - the `j ≤ K` heaviest sequences lie in `i` pools for some `i ≤ j`; those pools hold `iP − j`
//!   others, at least the lightest of all, so one of them weighs at least an `i`-th of the sum, for
//!   the `i` that makes it least (`j = 1`: an outlier with the P−1 lightest);
//! - the pigeonhole, for each `j < P`: of the `j·K + 1` heaviest sequences some pool holds `j + 1`,
//!   so it weighs at least the `j + 1` lightest of those and the P−j−1 lightest of all.
//!
//! O(D log D + K²).
//!
//! Source: bounds in the manner of Dell'Amico and Martello (2001) for exact-cardinality
//! partitioning; the second is the outlier's argument for several at once.

use crate::error::{Error, check_divides};
use crate::lengths::check_total;

/// Which argument gives the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BoundKind {
    /// Mean load, rounded up.
    Mean,
    /// This many of the heaviest sequences and the lightest others of their pools: outliers that no
    /// placement can dilute.
    Heaviest {
        /// How many.
        sequences: u32,
    },
    /// Some pool holds this many of the heaviest sequences.
    Pigeonhole {
        /// How many it must hold.
        members: u32,
    },
}

/// A proved lower bound on the heaviest pool's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolBound {
    /// No placement has a heaviest pool below this.
    pub load: u64,
    /// The argument that gives it.
    pub kind: BoundKind,
}

/// The best of the bounds for pools of `pool_size` sequences.
///
/// # Errors
/// If P does not divide the number of sequences, or the total work exceeds 64 bits.
///
/// ```
/// use libra_sched::vrsp::{BoundKind, lower_bound};
/// let bound = lower_bound(&[9, 1, 1, 1], 2)?;
/// assert_eq!((bound.load, bound.kind), (10, BoundKind::Heaviest { sequences: 1 }));
/// # Ok::<(), libra_sched::Error>(())
/// ```
pub fn lower_bound(work: &[u64], pool_size: usize) -> Result<PoolBound, Error> {
    check_divides(
        "number of sequences",
        work.len() as u64,
        "P",
        pool_size as u64,
    )?;
    let total = check_total(
        "work of the window",
        work.iter().map(|&w| u128::from(w)).sum(),
    )?;
    let pools = work.len() / pool_size;
    let mut heavy_first = work.to_vec();
    heavy_first.sort_unstable_by(|a, b| b.cmp(a));

    // lightest[n]: sum of the n lightest; heaviest[n]: sum of the n heaviest.
    let prefix = |values: &mut dyn Iterator<Item = u64>| -> Vec<u64> {
        std::iter::once(0)
            .chain(values.scan(0, |sum, w| {
                *sum += w;
                Some(*sum)
            }))
            .collect()
    };
    let lightest = prefix(&mut heavy_first.iter().rev().copied());
    let heaviest = prefix(&mut heavy_first.iter().copied());

    let mut best = PoolBound {
        load: total.div_ceil(pools as u64),
        kind: BoundKind::Mean,
    };
    let mut offer = |load, kind| {
        if load > best.load {
            best = PoolBound { load, kind };
        }
    };
    for j in 1..=pools {
        let in_pools = |i: usize| (heaviest[j] + lightest[i * pool_size - j]).div_ceil(i as u64);
        // Fewer pools than ⌈j/P⌉ cannot hold them.
        let load = (j.div_ceil(pool_size)..=j).map(in_pools).min().unwrap_or(0);
        offer(
            load,
            BoundKind::Heaviest {
                sequences: j as u32,
            },
        );
    }
    for j in 1..pool_size {
        // Ranks (from 0) jK−j ..= jK of the heaviest.
        let load = heaviest[j * pools + 1] - heaviest[j * pools - j] + lightest[pool_size - j - 1];
        offer(
            load,
            BoundKind::Pigeonhole {
                members: j as u32 + 1,
            },
        );
    }
    Ok(best)
}
