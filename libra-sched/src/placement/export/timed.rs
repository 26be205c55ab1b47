//! Runs by measured times: cut by an additive weight, checked by the table, cut again, repaired.
//!
//! A table charges a piece its pairs at a rate that depends on how many queries it has, so a run that
//! is cut in two takes longer than before: times do not add up as work does. Cuts need a weight that
//! does. It is the work of a token times the rate of its whole sample: what the sample takes while it
//! is one piece. After cutting, every worker's time is what the table says of its tiles, and a target
//! is (1+τ) of *their* mean. A worker above it gets a target in weight that is smaller by as much as
//! its time was too large for its weight, and the pool is cut again, a few times at most. The answer
//! whose slowest worker takes least time counts, and where rates fall steeply that may be to leave
//! everything at home. What is above its target still gives ends of tiles away ([`super::repair`]).
//!
//! Where rates do not differ time is work, and runs are those of work. Time: [`ROUNDS`] times that of
//! runs by work, and of the repair.

use super::repair::Excess;
use super::tiles::Made;
use super::{Placement, Plain};
use crate::error::Error;
use crate::lengths::check_total;
use crate::placement::{Spare, targets_with};
use crate::tiles::{CostTable, ShTile, TileSet, scaled_ticks, unscaled_ticks};

/// Times that a pool is cut at most.
const ROUNDS: usize = 6;

/// Memory that the step reuses.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    best: Made,
    least: Option<Least>,
    times: Vec<u64>,
    limits: Vec<u64>,
    /// What the limits would be if no sample were cut: the same for all answers.
    uncut: Vec<u64>,
}

/// How good the best answer is.
#[derive(Clone, Copy, Debug)]
struct Least {
    /// Its slowest worker beside `uncut`.
    worst: Excess,
    /// Whether all are within (1+τ) of their mean.
    is_within: bool,
}

/// As [`super::place`], with measured times in the place of work. Its fallbacks are the workers that
/// stayed above their target.
///
/// # Errors
/// As there, or times beyond 64 bits.
pub(super) fn place(
    scratch: &mut super::Scratch,
    plain: Plain<'_>,
    costs: &CostTable,
    spare: Spare,
) -> Result<(TileSet, Placement), Error> {
    let Plain { problem, slack, .. } = plain;
    let workers = problem.layout.workers();
    let chunk = problem.heads.chunk_width();
    scratch.rates.clear();
    let lengths = problem.pool.lengths().iter();
    let rates = lengths.map(|&len| costs.rate(len, chunk));
    scratch.rates.extend(rates);
    let total = scratch.sum_weight(plain)?;
    let (targets, speeds) = (&mut scratch.targets, problem.speeds);
    targets_with(targets, total, workers, speeds, slack);
    scratch.timed.uncut.clone_from(&scratch.targets);
    scratch.timed.least = None;
    for _ in 0..ROUNDS {
        for target in &mut scratch.targets {
            *target = total.min(*target);
        }
        let is_within = scratch.try_targets(plain, costs)?;
        scratch.fit_targets();
        if is_within {
            break;
        }
    }
    if !scratch
        .timed
        .least
        .is_some_and(|least| least.worst.is_within())
    {
        scratch.targets.fill(u64::MAX);
        scratch.try_targets(plain, costs)?;
    }
    let best = &scratch.timed.best;
    if scratch.timed.least.is_some_and(|least| least.is_within) {
        return best.finish(problem, 0, spare);
    }
    scratch.repair.run(plain, costs, best);
    scratch.timed.measure(plain, costs, &scratch.repair.made)?;
    let times = scratch.timed.times.iter().zip(&scratch.timed.limits);
    let above = times.filter(|(time, limit)| time > limit).count();
    scratch.repair.made.finish(problem, above as u32, spare)
}

impl Scratch {
    /// Times and limits of all workers.
    fn measure(&mut self, plain: Plain<'_>, costs: &CostTable, made: &Made) -> Result<(), Error> {
        let Plain { problem, slack, .. } = plain;
        let workers = problem.layout.workers();
        self.times.clear();
        self.times.resize(workers as usize, 0);
        let mut total = 0u128;
        let mut last: Option<(ShTile, u64)> = None;
        for (tile, worker) in made.tiles.iter().zip(&made.workers) {
            // The same tokens of another shard take the same time.
            let tokens = |tile: &ShTile| (tile.slot, tile.start, tile.end);
            let known = last.filter(|(last, _)| tokens(last) == tokens(tile));
            let time = match known {
                Some((_, time)) => time,
                None => unscaled_ticks(scaled(plain, costs, tile)),
            };
            last = Some((*tile, time));
            total += u128::from(time);
            let sum = &mut self.times[worker.index()];
            *sum = sum.saturating_add(time);
        }
        // A limit is (1+τ) of the mean, by speed.
        let total = check_total("time of the pool", total)?;
        targets_with(&mut self.limits, total, workers, problem.speeds, slack);
        Ok(())
    }
}

/// Time of a tile, not rounded.
pub(super) fn scaled(plain: Plain<'_>, costs: &CostTable, tile: &ShTile) -> u128 {
    let Plain { problem, mask, .. } = plain;
    let tokens = (tile.start, tile.end);
    let (pool, heads) = (problem.pool, problem.heads);
    let pieces = tile
        .samples()
        .map(|sample| scaled_ticks(costs, pool, heads, mask, sample, tokens));
    pieces.fold(0, u128::saturating_add)
}

impl super::Scratch {
    /// Cuts for the targets at hand and keeps what comes of it where it is best; returns whether all
    /// are within their limits.
    fn try_targets(&mut self, plain: Plain<'_>, costs: &CostTable) -> Result<bool, Error> {
        super::once(self, plain)?;
        let timed = &mut self.timed;
        timed.measure(plain, costs, &self.tiles.made)?;
        let worst = Excess::worst(&timed.times, &timed.uncut);
        let is_within = Excess::worst(&timed.times, &timed.limits).is_within();
        if timed.least.is_none_or(|least| worst < least.worst) {
            timed.least = Some(Least { worst, is_within });
            timed.best.copy(&self.tiles.made);
        }
        Ok(is_within)
    }

    /// Weight that takes a worker's limit, were all that it has as slow as what it had.
    fn fit_targets(&mut self) {
        let loads = self.fill.loads().iter();
        let (times, limits) = (&self.timed.times, &self.timed.limits);
        let old = self.targets.iter_mut();
        for (((target, &load), &time), &limit) in old.zip(loads).zip(times).zip(limits) {
            let fitted = u128::from(load) * u128::from(limit) / u128::from(time.max(1));
            let fitted = if time == 0 { limit.into() } else { fitted };
            *target = u64::try_from(fitted).unwrap_or(u64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{LayoutKind, TokenLayout};
    use crate::placement::{Problem, Slack};
    use crate::tiles::reweigh;
    use crate::topology::Topology;
    use crate::{ElementBytes, HeadSplit, Mask, PackedLengths};

    /// Time of each worker by the public weights, and workers above (1+τ) of the mean.
    fn times(placed: &(TileSet, Placement), heads: &HeadSplit, costs: &CostTable) -> Vec<u64> {
        let (tiles, placed) = placed;
        let weights = reweigh(tiles, heads, Mask::Causal, costs).expect("fits");
        let mut times = vec![0; placed.loads.len()];
        for (worker, weight) in placed.workers.iter().zip(weights) {
            times[worker.index()] += weight;
        }
        times
    }

    /// A sample of 1,024 tokens, half at each of two workers, where `short` tokens take `factor` times
    /// as long a pair as 512. Returns the times at the end, and how many workers stay above.
    fn two_halves(short: u32, factor: f64) -> (Vec<u64>, u32) {
        let pool = PackedLengths::new(1024, [vec![1024u32]]).expect("fits");
        let layout = TokenLayout::new(LayoutKind::Contiguous, 1, 1024, 2).expect("legal");
        let heads = HeadSplit::new(1, 1, 8, 8, 1, 1).expect("legal");
        let pairs = |tokens: u32| f64::from(tokens * (tokens + 1) / 2);
        let times_ns = [vec![pairs(short) * factor], vec![pairs(512)]];
        let costs = CostTable::new(Mask::Causal, &[short, 512], &[1], &times_ns).expect("legal");
        let problem = Problem::new(&pool, &layout, &heads, ElementBytes::BF16).expect("legal");
        let plain = Plain {
            problem: &problem,
            mask: Mask::Causal,
            topology: Topology::default(),
            slack: Slack::PAPER,
        };
        let mut scratch = super::super::Scratch::default();
        let placed = super::super::place(&mut scratch, plain, Some(&costs), Spare::default());
        let placed = placed.expect("legal");
        (times(&placed, &heads, &costs), placed.1.fallbacks)
    }

    #[test]
    fn where_cuts_take_little_longer_both_keep_their_limit() {
        let (times, above) = two_halves(128, 1.5);
        let mean = times.iter().sum::<u64>() / 2;
        assert!(
            times.iter().all(|&time| time * 100 <= mean * 103),
            "{times:?}"
        );
        assert_eq!(above, 0);
    }

    /// What is left of a half after a cut takes longer than the half.
    #[test]
    fn where_every_cut_takes_longer_than_it_saves_halves_stay_at_home() {
        let (times, above) = two_halves(384, 100.0);
        // Pairs of either half, at a nanosecond each.
        assert_eq!(times, [131_328_000, 393_472_000]);
        assert_eq!(above, 1);
    }
}
