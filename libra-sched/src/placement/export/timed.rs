//! Runs by measured times: cut by an additive weight, checked by the table, cut again, repaired.
//!
//! A table charges a piece its pairs at a rate that depends on how many queries it has, so a run that
//! is cut in two takes longer than before: times do not add up as work does. Cuts need a weight that
//! does. It is the work of a token times the rate of its whole sample: what the sample takes while it
//! is one piece. After cutting, every worker's time is what the table says of its tiles, and a target
//! is (1+τ) of *their* mean. A worker above it gets a target in weight that is smaller by as much as
//! its time was too large for its weight, and the pool is cut again, a few times at most; the best
//! answer counts. What is above its target still gives single tiles away ([`repair`]).
//!
//! Where rates do not differ time is work, and runs are those of work. Time: [`ROUNDS`] times that of
//! runs by work, and of the repair.

use super::repair::{Excess, Repair};
use super::{Placement, Plain, Scratch, once};
use crate::error::Error;
use crate::lengths::check_total;
use crate::placement::{Spare, sum_loads, targets};
use crate::tiles::{CostTable, TileSet, reweigh_with};

/// Times that a pool is cut at most.
const ROUNDS: usize = 6;

/// As [`super::place`], with measured times in the place of work. Its fallbacks are the workers that
/// stayed above their target.
///
/// # Errors
/// As there, or times beyond 64 bits.
pub(super) fn place(
    scratch: &mut Scratch,
    plain: Plain<'_>,
    costs: &CostTable,
) -> Result<(TileSet, Placement), Error> {
    let Plain { problem, .. } = plain;
    let workers = problem.layout.workers();
    let chunk = problem.heads.chunk_width();
    scratch.rates.clear();
    let lengths = problem.pool.lengths().iter();
    let rates = lengths.map(|&len| costs.rate(len, chunk));
    scratch.rates.extend(rates);
    let total = scratch.sum_weight(plain)?;
    scratch.targets = targets(total, workers, problem.speeds, plain.slack);
    let mut best: Option<(Excess, TileSet, Placement)> = None;
    for _ in 0..ROUNDS {
        for target in &mut scratch.targets {
            *target = total.min(*target);
        }
        let (tiles, placed) = once(scratch, plain, Spare::default())?;
        let times = times(plain, costs, &tiles, &placed)?;
        let limits = limits(plain, &times)?;
        let worst = Excess::worst(&times, &limits);
        let is_within = worst.is_within();
        scratch.fit_targets(&times, &limits);
        if best.as_ref().is_none_or(|(least, ..)| worst < *least) {
            best = Some((worst, tiles, placed));
        }
        if is_within {
            break;
        }
    }
    let (worst, tiles, placed) = best.expect("a pool is cut once at least");
    if worst.is_within() {
        let fallbacks = 0;
        return Ok((
            tiles,
            Placement {
                fallbacks,
                ..placed
            },
        ));
    }
    repaired(plain, costs, tiles, placed)
}

/// The tiles and workers after the repair.
fn repaired(
    plain: Plain<'_>,
    costs: &CostTable,
    tiles: TileSet,
    placed: Placement,
) -> Result<(TileSet, Placement), Error> {
    let Plain { problem, .. } = plain;
    let mut repair = Repair::new(plain, costs, tiles.into_vec(), placed.workers);
    repair.run();
    let (tiles, workers) = repair.into_sorted();
    let tiles = TileSet::new(problem.pool, problem.layout, problem.heads, tiles)?;
    let loads = sum_loads(&tiles, &workers, problem.layout.workers());
    let mut placed = Placement {
        workers,
        loads,
        fallbacks: 0,
    };
    let times = times(plain, costs, &tiles, &placed)?;
    let limits = limits(plain, &times)?;
    let above = times
        .iter()
        .zip(&limits)
        .filter(|(time, limit)| time > limit);
    placed.fallbacks = above.count() as u32;
    Ok((tiles, placed))
}

/// Time of every worker.
fn times(
    plain: Plain<'_>,
    costs: &CostTable,
    tiles: &TileSet,
    placed: &Placement,
) -> Result<Vec<u64>, Error> {
    let problem = plain.problem;
    let mut weights = Vec::new();
    reweigh_with(&mut weights, tiles, problem.heads, plain.mask, costs)?;
    let mut times = vec![0u64; problem.layout.workers() as usize];
    for (worker, weight) in placed.workers.iter().zip(weights) {
        // All of them together fit.
        times[worker.index()] += weight;
    }
    Ok(times)
}

/// (1+τ) of the mean of `times`, by speed.
fn limits(plain: Plain<'_>, times: &[u64]) -> Result<Vec<u64>, Error> {
    let sum = times.iter().map(|&time| u128::from(time)).sum();
    let total = check_total("time of the pool", sum)?;
    let speeds = plain.problem.speeds;
    Ok(targets(total, times.len() as u32, speeds, plain.slack))
}

impl Scratch {
    /// Weight that takes a worker's limit, were all that it has as slow as what it had.
    fn fit_targets(&mut self, times: &[u64], limits: &[u64]) {
        let loads = self.fill.loads().iter();
        let old = self.targets.iter_mut();
        for (((target, &load), &time), &limit) in old.zip(loads).zip(times).zip(limits) {
            let fitted = u128::from(load) * u128::from(limit) / u128::from(time.max(1));
            let fitted = if time == 0 { limit.into() } else { fitted };
            *target = u64::try_from(fitted).unwrap_or(u64::MAX);
        }
    }
}
