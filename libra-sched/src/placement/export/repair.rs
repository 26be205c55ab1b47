//! Workers above their time give parts of tiles to the one with the most room.
//!
//! One step moves the end of one tile, cut between samples or at a multiple of 128 tokens, from the
//! worker that is furthest above its limit to the one with the most room. Of all ends those that the
//! taker has room for come first, then those that bring the giver nearest to its limit, then the
//! fewest tokens. So every step brings a giver to its limit or fills a taker, as far as cuts allow.
//! Where no end fits, the pair must at least end up better than it was; where it does not, the repair
//! ends above the limit: under a table whose rates fall steeply a cut can take longer than it saves.
//!
//! Cutting a sample takes more time, so limits rise with the sum. At most [`STEPS_PER_WORKER`] steps a
//! worker, each O(W + tiles + what the giver holds, in samples and 128 tokens).

use std::cmp::Ordering;

use super::Plain;
use super::tiles::Made;
use super::timed::scaled;
use crate::ids::{SampleId, WorkerId};
use crate::placement::targets_with;
use crate::tiles::{CostTable, ShTile, part_of, scaled_ticks, unscaled_ticks};

/// Steps, by workers.
const STEPS_PER_WORKER: usize = 4;
/// Cuts within samples lie at multiples of so many tokens: blocks of kernels stay whole.
const GRID: u32 = 128;

/// A worker's time beside its limit; greater is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Excess {
    time: u64,
    limit: u64,
}

impl Excess {
    /// Of the worst worker.
    pub(super) fn worst(times: &[u64], limits: &[u64]) -> Self {
        let all = times.iter().zip(limits);
        let worst = all.map(|(&time, &limit)| Self { time, limit }).max();
        worst.expect("a pool has workers")
    }

    pub(super) fn is_within(self) -> bool {
        self.time <= self.limit
    }
}

impl Ord for Excess {
    fn cmp(&self, other: &Self) -> Ordering {
        let parts = |a: &Self, b: &Self| u128::from(a.time) * u128::from(b.limit);
        parts(self, other).cmp(&parts(other, self))
    }
}

impl PartialOrd for Excess {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Tiles that change hands, in memory that is used again.
#[derive(Clone, Debug, Default)]
pub(super) struct Repair {
    pub(super) made: Made,
    /// Of each tile.
    ticks: Vec<u64>,
    times: Vec<u64>,
    limits: Vec<u64>,
    sorted: Vec<(ShTile, WorkerId)>,
}

/// What a repair reads.
#[derive(Clone, Copy)]
struct Job<'a> {
    plain: Plain<'a>,
    costs: &'a CostTable,
}

/// An end of a tile that may leave; the least one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Move {
    /// Taker's time above its limit.
    over: u64,
    /// Giver's time above its limit afterwards.
    left: u64,
    tokens: u32,
    tile: usize,
    /// First token that leaves.
    cut: u32,
    kept: u64,
    moved: u64,
}

impl Repair {
    /// Moves ends of the tiles of `best` until all workers are within their limits, or no move helps.
    /// What comes of it is in `made`.
    pub(super) fn run(&mut self, plain: Plain<'_>, costs: &CostTable, best: &Made) {
        let job = Job { plain, costs };
        self.made.copy(best);
        self.ticks.clear();
        self.times.clear();
        self.times
            .resize(plain.problem.layout.workers() as usize, 0);
        for (tile, worker) in self.made.tiles.iter().zip(&self.made.workers) {
            let ticks = unscaled_ticks(scaled(plain, costs, tile));
            self.ticks.push(ticks);
            let time = &mut self.times[worker.index()];
            *time = time.saturating_add(ticks);
        }
        for _ in 0..STEPS_PER_WORKER * self.times.len() {
            if !self.step(job) {
                break;
            }
        }
        self.sort();
    }

    /// One move; whether there was any to make.
    fn step(&mut self, job: Job<'_>) -> bool {
        self.set_limits(job);
        let limits = &self.limits;
        let at = |worker: usize| Excess {
            time: self.times[worker],
            limit: limits[worker],
        };
        let all = 0..self.times.len();
        let giver = all
            .clone()
            .max_by(|&a, &b| at(a).cmp(&at(b)).then(b.cmp(&a)));
        let room = |&worker: &usize| limits[worker].saturating_sub(self.times[worker]);
        let taker = all.max_by(|a, b| room(a).cmp(&room(b)).then(b.cmp(a)));
        let (giver, taker) = giver.zip(taker).expect("a pool has workers");
        if at(giver).is_within() || giver == taker {
            return false;
        }
        let best = self.best(job, giver, taker);
        if let Some(best) = best {
            self.carry_out(job, best, giver, taker);
        }
        best.is_some()
    }

    /// Tiles by slot, start and shard.
    fn sort(&mut self) {
        let Made { tiles, workers } = &mut self.made;
        self.sorted.clear();
        self.sorted.extend(tiles.drain(..).zip(workers.drain(..)));
        self.sorted
            .sort_unstable_by_key(|(tile, _)| (tile.slot, tile.start, tile.shard));
        for &(tile, worker) in &self.sorted {
            self.made.push(tile, worker);
        }
    }

    fn set_limits(&mut self, job: Job<'_>) {
        let sum = self.times.iter().copied().fold(0, u64::saturating_add);
        let Plain { problem, slack, .. } = job.plain;
        let workers = self.times.len() as u32;
        targets_with(&mut self.limits, sum, workers, problem.speeds, slack);
    }

    /// The end that leaves `giver` for `taker`; none where the pair would be no better.
    fn best(&self, job: Job<'_>, giver: usize, taker: usize) -> Option<Move> {
        let limits = &self.limits;
        let mut best: Option<Move> = None;
        let worst = Excess::worst(&[self.times[giver]], &[limits[giver]]);
        let mut last: Option<(u32, u32, u32)> = None;
        for (id, tile) in self.made.tiles.iter().enumerate() {
            if self.made.workers[id].index() != giver {
                continue;
            }
            // The same tokens of another shard take the same time.
            let tokens = Some((tile.slot, tile.start, tile.end));
            if tokens == last {
                continue;
            }
            last = tokens;
            job.for_each_end(tile, |cut, kept, moved| {
                let of_giver = (self.times[giver] - self.ticks[id]).saturating_add(kept);
                let of_taker = self.times[taker].saturating_add(moved);
                let pair = [(of_giver, limits[giver]), (of_taker, limits[taker])];
                if pair
                    .iter()
                    .any(|&(time, limit)| Excess { time, limit } >= worst)
                {
                    return;
                }
                let [left, over] = pair.map(|(time, limit)| time.saturating_sub(limit));
                let offer = Move {
                    over,
                    left,
                    tokens: tile.end - cut,
                    tile: id,
                    cut,
                    kept,
                    moved,
                };
                best = Some(best.map_or(offer, |best| best.min(offer)));
            });
        }
        best
    }

    fn carry_out(&mut self, job: Job<'_>, best: Move, giver: usize, taker: usize) {
        let Plain { problem, mask, .. } = job.plain;
        let part = |tile, start, end| part_of(problem.pool, problem.heads, mask, tile, start..end);
        let tile = self.made.tiles[best.tile];
        // What a giver keeps of a tile is less than the tile: else the pair would be no better.
        self.times[giver] -= self.ticks[best.tile] - best.kept;
        self.times[taker] += best.moved;
        let to = WorkerId::new(taker);
        if best.cut == tile.start {
            self.made.workers[best.tile] = to;
            return;
        }
        self.made.tiles[best.tile] = part(tile, tile.start, best.cut);
        self.ticks[best.tile] = best.kept;
        self.made.push(part(tile, best.cut, tile.end), to);
        self.ticks.push(best.moved);
    }
}

impl Job<'_> {
    /// Calls `each` with every cut of a tile, from its start on, and the time of what is before and
    /// from there on.
    fn for_each_end(self, tile: &ShTile, mut each: impl FnMut(u32, u64, u64)) {
        let pool = self.plain.problem.pool;
        let whole = scaled(self.plain, self.costs, tile);
        let mut before = 0u128;
        for sample in tile.samples() {
            let tokens = pool.tokens(SampleId::new(sample));
            let (first, last) = (tokens.start.max(tile.start), tokens.end.min(tile.end));
            let own = self.of_piece(sample, first, last);
            let after = whole.saturating_sub(before).saturating_sub(own);
            let mut cut = first;
            while cut < last {
                let kept = before.saturating_add(self.of_piece(sample, first, cut));
                let moved = after.saturating_add(self.of_piece(sample, cut, last));
                each(cut, unscaled_ticks(kept), unscaled_ticks(moved));
                cut = (cut / GRID + 1) * GRID;
            }
            before = before.saturating_add(own);
        }
    }

    /// Time of a sample's tokens among those from `start` to `end` of its sequence, not rounded.
    fn of_piece(self, sample: usize, start: u32, end: u32) -> u128 {
        let Plain { problem, mask, .. } = self.plain;
        let tokens = (start, end);
        scaled_ticks(
            self.costs,
            problem.pool,
            problem.heads,
            mask,
            sample,
            tokens,
        )
    }
}
