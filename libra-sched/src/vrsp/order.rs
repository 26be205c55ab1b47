//! GA order: which pools run side by side at one gradient-accumulation index.
//!
//! In: a load for each pool and the shape. Out: the pools in the order they run, DP/P side by side
//! at each of GA indices, so that position `ga·DP/P + group` is run by replica group `group` (P
//! replicas). What a good order is depends on where replica groups wait for each other:
//! - without pipeline stages (PP = 1), at the end of the step: a step takes as long as the group
//!   with the heaviest sum over indices. Balancing sums of exactly GA pools is VRSP once more, over
//!   pools instead of sequences.
//! - with stages (PP > 1), microbatches of a step should be alike, since a stage waits for the
//!   slowest at each index: the sum over indices of the heaviest pool counts. Pools sorted by load
//!   make it least: the i-th heaviest index maximum is at least the load of rank i·DP/P.
//!
//! O(K log K), and for PP = 1 what certified VRSP takes with K sequences.
//!
//! Beyond the *paper* (§4.2), which runs pools in the order that VRSP numbers them.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use super::{SequencePlacement, Vrsp, place};
use crate::error::{Error, check_positive};
use crate::ids::PoolId;
use crate::lengths::{WindowShape, check_total};

/// Which pools share a gradient-accumulation index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GaOrder {
    /// Pools as VRSP numbers them.
    #[default]
    Paper,
    /// Equal sums of replica groups, or with pipeline stages like loads at one index.
    Balanced,
}

impl fmt::Display for GaOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paper => "paper",
            Self::Balanced => "balanced",
        })
    }
}

impl FromStr for GaOrder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "paper" => Ok(Self::Paper),
            "balanced" => Ok(Self::Balanced),
            _ => Err(Error::UnknownName {
                what: "GA order",
                value: text.to_owned(),
                legal: "paper, balanced",
            }),
        }
    }
}

/// The pools of a step in the order they run, for `pp` pipeline stages.
///
/// # Errors
/// If `loads` are not K = GBS/P, `pp` is 0, or the loads together exceed 64 bits.
///
/// ```
/// use libra_sched::WindowShape;
/// use libra_sched::vrsp::{GaOrder, ga_order, ga_time};
/// // Two indices of two pools side by side.
/// let shape = WindowShape::new(16, 8, 4, 1, 2)?;
/// let loads = [9, 4, 8, 5];
/// let run = |order: &[libra_sched::PoolId]| order.iter().map(|p| loads[p.index()]).collect::<Vec<_>>();
/// let paper = ga_order(&loads, &shape, GaOrder::Paper, 1)?;
/// assert_eq!((run(&paper), ga_time(&loads, &paper, &shape, 1)?), (vec![9, 4, 8, 5], 17));
/// let even = ga_order(&loads, &shape, GaOrder::Balanced, 1)?;
/// assert_eq!((run(&even), ga_time(&loads, &even, &shape, 1)?), (vec![9, 8, 4, 5], 13));
/// let alike = ga_order(&loads, &shape, GaOrder::Balanced, 4)?;
/// assert_eq!((run(&alike), ga_time(&loads, &alike, &shape, 4)?), (vec![9, 8, 5, 4], 14));
/// # Ok::<(), libra_sched::Error>(())
/// ```
pub fn ga_order(
    loads: &[u64],
    shape: &WindowShape,
    order: GaOrder,
    pp: u32,
) -> Result<Vec<PoolId>, Error> {
    check(loads, shape, pp)?;
    let paper: Vec<PoolId> = (0..loads.len()).map(PoolId::new).collect();
    match order {
        GaOrder::Paper => Ok(paper),
        GaOrder::Balanced if pp == 1 => {
            let even = even_groups(loads, shape)?;
            let time = |order: &[PoolId]| ga_time(loads, order, shape, pp);
            Ok(if time(&even)? < time(&paper)? {
                even
            } else {
                paper
            })
        }
        GaOrder::Balanced => {
            let mut alike = paper;
            alike.sort_unstable_by_key(|pool| (Reverse(loads[pool.index()]), *pool));
            Ok(alike)
        }
    }
}

/// What a step in this order waits for, in units of the loads: with one stage the heaviest replica
/// group's sum, with more the sum over indices of the heaviest pool.
///
/// # Errors
/// As [`ga_order`], or if `order` is not one of all pools.
pub fn ga_time(
    loads: &[u64],
    order: &[PoolId],
    shape: &WindowShape,
    pp: u32,
) -> Result<u64, Error> {
    check(loads, shape, pp)?;
    check_order(order, loads.len())?;
    let side = shape.pools_per_ga() as usize;
    let load = |pool: &PoolId| loads[pool.index()];
    // At most the sum of all loads, which fits.
    Ok(if pp == 1 {
        let group = |group: usize| order.iter().skip(group).step_by(side).map(load).sum();
        (0..side).map(group).max().unwrap_or(0)
    } else {
        let slowest = |pools: &[PoolId]| pools.iter().map(load).max().unwrap_or(0);
        order.chunks(side).map(slowest).sum()
    })
}

fn check(loads: &[u64], shape: &WindowShape, pp: u32) -> Result<(), Error> {
    check_positive("PP", pp.into())?;
    let total = loads.iter().map(|&load| u128::from(load)).sum();
    check_total("work of the window", total)?;
    if loads.len() == shape.pools() as usize {
        return Ok(());
    }
    Err(Error::Mismatch {
        name: "number of pools",
        left: loads.len() as u64,
        left_of: "loads",
        right: shape.pools().into(),
        right_of: "GBS/P",
    })
}

fn check_order(order: &[PoolId], pools: usize) -> Result<(), Error> {
    let mut missing = vec![true; pools];
    for pool in order {
        let (value, count) = (pool.0.into(), pools as u64);
        match missing.get_mut(pool.index()) {
            Some(missing) if *missing => *missing = false,
            _ => {
                return Err(Error::OutOfRange {
                    name: "pool that has not run",
                    value,
                    count,
                });
            }
        }
    }
    if order.len() == pools {
        return Ok(());
    }
    Err(Error::Mismatch {
        name: "number of pools",
        left: order.len() as u64,
        left_of: "order",
        right: pools as u64,
        right_of: "loads",
    })
}

/// Replica groups of GA pools each with near-equal sums; within a group the heaviest runs first.
fn even_groups(loads: &[u64], shape: &WindowShape) -> Result<Vec<PoolId>, Error> {
    let (ga, side) = (shape.ga() as usize, shape.pools_per_ga() as usize);
    let groups = place(loads, ga, Vrsp::Certified)?;
    let pool = |at: usize| groups.order()[at % side * ga + at / side];
    Ok((0..loads.len()).map(|at| PoolId(pool(at).0)).collect())
}

impl<Load: Copy> SequencePlacement<Load> {
    /// The same pools, numbered in `order`.
    ///
    /// # Errors
    /// If `order` does not name each pool once, or pools were merged: those run in the order that
    /// fills every index.
    pub fn reordered(&self, order: &[PoolId]) -> Result<Self, Error> {
        check_order(order, self.pools())?;
        let size = |pool| self.pool_size(PoolId::new(pool));
        if let Some(other) = (1..self.pools()).find(|&pool| size(pool) != size(0)) {
            return Err(Error::Mismatch {
                name: "pool size",
                left: size(0) as u64,
                left_of: "the first pool",
                right: size(other) as u64,
                right_of: "a later one",
            });
        }
        let members = order.iter().flat_map(|&pool| self.members(pool));
        Ok(Self {
            first: self.first.clone(),
            members: members.copied().collect(),
            loads: order.iter().map(|pool| self.loads[pool.index()]).collect(),
            bound: self.bound,
        })
    }
}
