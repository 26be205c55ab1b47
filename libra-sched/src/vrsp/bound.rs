//! Lower bounds on the heaviest pool: what no placement can beat.
//!
//! - **Mean** of the loads, rounded up.
//! - **Crowding**, for every number m of heaviest sequences. With h = ⌈m/K⌉ and r = m − K(h−1),
//!   pools that hold fewer than h of the m leave r behind: if i pools hold h or more, those hold at
//!   least t = i(h−1) + max(i, r) of the m. Their load is at least that of the lightest t of the m
//!   and the iP − t lightest of all, so one of them weighs at least an i-th; some i ≤ r makes this
//!   least. h = 1 is an outlier's argument (for m at once), i = 1 the pigeonhole's.
//! - **Pairs**, where the m sequences that weigh as much as the heaviest fill all but one or two
//!   places of every pool: either some pool is full of them, or one more pool than need be holds
//!   P − 1 of them, or the others fill exactly one place of m − K(P−2) pools and two of the rest,
//!   and pairing the heaviest with the lightest leaves the heaviest pair as light as can be.
//!
//! O(D) after the sort where the crowding of every m is looked at for i = r alone, which rules out
//! all but the few m that beat the best so far.
//!
//! Source: bounds in the manner of Dell'Amico and Martello (2001) for exact-cardinality
//! partitioning, taken over several pools at once.

use std::fmt;

use super::ranked::Ranked;
use crate::error::{Error, check_divides};

/// Which argument gives the bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BoundKind {
    /// Mean load, rounded up.
    #[default]
    Mean,
    /// This many of the heaviest sequences and the lightest others of their pools: outliers that no
    /// placement can dilute.
    Heaviest {
        /// How many.
        sequences: u32,
    },
    /// Some pools hold so many of the heaviest sequences.
    Crowding {
        /// How many sequences are the heaviest.
        sequences: u32,
        /// How many of them such a pool holds at least.
        members: u32,
    },
    /// A search of all placements found none below it: certified VRSP in small windows.
    Search,
    /// Sequences as heavy as the heaviest fill all but one or two places of every pool.
    Pairs {
        /// How many there are.
        sequences: u32,
    },
}

impl fmt::Display for BoundKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mean => f.write_str("mean"),
            Self::Heaviest { sequences: 1 } => f.write_str("heaviest sequence"),
            Self::Heaviest { sequences } => write!(f, "{sequences} heaviest sequences"),
            Self::Crowding { sequences, members } => {
                write!(f, "{members} of {sequences} heavy in one pool")
            }
            Self::Search => f.write_str("search of all"),
            Self::Pairs { sequences } => write!(f, "best pairs beside {sequences} heaviest"),
        }
    }
}

/// A proved lower bound on the heaviest pool's load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PoolBound {
    /// No placement has a heaviest pool below this.
    pub load: u64,
    /// Sequences of the pool that the load is of; where sizes differ, loads of others compare per
    /// sequence.
    pub pool_size: usize,
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
/// // The mean is 8, but 4 of the 7 fours share a pool.
/// let bound = lower_bound(&[4, 4, 4, 4, 4, 4, 4, 0], 4)?;
/// assert_eq!((bound.load, bound.kind), (16, BoundKind::Crowding { sequences: 7, members: 4 }));
/// # Ok::<(), libra_sched::Error>(())
/// ```
pub fn lower_bound(work: &[u64], pool_size: usize) -> Result<PoolBound, Error> {
    check_divides(
        "number of sequences",
        work.len() as u64,
        "P",
        pool_size as u64,
    )?;
    let mut ranked = Ranked::default();
    ranked.read(work)?;
    ranked.sum_up();
    Ok(of(&ranked, pool_size))
}

/// The mean, or the heaviest sequence with the P − 1 lightest: O(P).
pub(super) fn simple(ranked: &Ranked, pool_size: usize) -> PoolBound {
    let pools = ranked.len() / pool_size;
    let mean = ranked.total().div_ceil(pools as u64);
    let weights = ranked.weights();
    let lightest = &weights[ranked.len() + 1 - pool_size..];
    let outlier = weights[0] + lightest.iter().sum::<u64>();
    let (load, kind) = if outlier > mean {
        (outlier, BoundKind::Heaviest { sequences: 1 })
    } else {
        (mean, BoundKind::Mean)
    };
    PoolBound {
        load,
        pool_size,
        kind,
    }
}

/// The best of the bounds on a window that is sorted already.
pub(super) fn of(ranked: &Ranked, pool_size: usize) -> PoolBound {
    let pools = ranked.len() / pool_size;
    let mut best = PoolBound {
        load: ranked.total().div_ceil(pools as u64),
        pool_size,
        kind: BoundKind::Mean,
    };
    for members in 1..=pool_size {
        for crowded in 1..=pools {
            let m = (members - 1) * pools + crowded;
            if let Some(load) = crowding(ranked, pool_size, (m, members, crowded), best.load) {
                let (sequences, members) = (m as u32, members as u32);
                let kind = match members {
                    1 => BoundKind::Heaviest { sequences },
                    _ => BoundKind::Crowding { sequences, members },
                };
                (best.load, best.kind) = (load, kind);
            }
        }
    }
    if let Some((load, sequences)) = pairs(ranked, pool_size)
        && load > best.load
    {
        let kind = BoundKind::Pairs { sequences };
        (best.load, best.kind) = (load, kind);
    }
    best
}

/// The crowding of the `m` heaviest, `crowded` more than pools of `members` − 1 take, if it is
/// above `best`.
fn crowding(
    ranked: &Ranked,
    size: usize,
    (m, members, crowded): (usize, usize, usize),
    best: u64,
) -> Option<u64> {
    // Most are ruled out by as many pools as are crowded, in sums of 64 bits where those do.
    let sum_of = |inside: usize, beside: usize| {
        let (heavy, light) = (ranked.lightest_of(m, inside), ranked.lightest(beside));
        heavy.checked_add(light)
    };
    let (inside, beside) = (crowded * members, crowded * (size - members));
    if let (Some(sum), Some(most)) = (sum_of(inside, beside), best.checked_mul(crowded as u64))
        && sum <= most
    {
        return None;
    }
    // With more pools than `crowded` their mean only grows; fewer cannot hold so many.
    let least = crowded.div_ceil(size - members + 1);
    let mut load = u64::MAX;
    for pools in (least..=crowded).rev() {
        let inside = pools * (members - 1) + crowded;
        let beside = pools * size - inside;
        // Both may count a sequence, so that the sum may pass 64 bits.
        let sum = u128::from(ranked.lightest_of(m, inside)) + u128::from(ranked.lightest(beside));
        if sum <= u128::from(best) * pools as u128 {
            return None;
        }
        let next = sum.div_ceil(pools as u128) as u64;
        // The sum is convex in the number of pools, so that their mean falls and then rises.
        if next > load {
            break;
        }
        load = next;
    }
    Some(load)
}

/// The bound from pairs beside the heaviest weight, and how often that weight occurs.
fn pairs(ranked: &Ranked, size: usize) -> Option<(u64, u32)> {
    let weights = ranked.weights();
    let heavy = weights[0];
    let equals = weights
        .iter()
        .take_while(|&&weight| weight == heavy)
        .count();
    let pools = ranked.len() / size;
    let singles = equals.checked_sub(pools * size.checked_sub(2)?)?;
    if singles > pools || equals == ranked.len() {
        return None;
    }
    let others = &weights[equals..];
    // Some pool holds no other at all.
    let full = heavy.saturating_mul(size as u64);
    // One pool more than need be holds a single other, one of them no lighter than this one.
    let more = if singles < pools && size > 2 {
        let lightest = others[others.len() - 1 - singles];
        heavy
            .saturating_mul(size as u64 - 1)
            .saturating_add(lightest)
    } else {
        u64::MAX
    };
    let base = heavy * (size as u64 - 2);
    let exact = base + heaviest_pair(others, singles, heavy);
    Some((full.min(more).min(exact), equals as u32))
}

/// The heaviest of the pairs, and of the `singles` with `heavy` added, in the best division of
/// `others` (heaviest first) into them.
///
/// Under a limit, singles are best the heaviest that keep it, since a lighter one in a pair is
/// never worse; the rest pair heaviest with lightest.
fn heaviest_pair(others: &[u64], singles: usize, heavy: u64) -> u64 {
    let load = |first: usize| {
        let paired = |at: usize| others[if at < first { at } else { at + singles }];
        let count = others.len() - singles;
        let pair = (0..count / 2).map(|at| paired(at) + paired(count - 1 - at));
        let single = (singles > 0).then(|| heavy + others[first]);
        pair.chain(single).max().unwrap_or(0)
    };
    // Moving the window of singles towards lighter ones makes them lighter and the pairs heavier.
    (0..=others.len() - singles).map(load).min().unwrap_or(0)
}
