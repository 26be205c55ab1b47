//! Trades: a worker hands its small run of a line to one that reads the line's keys anyway, and gets
//! as much work back in a line of which it has something itself.
//!
//! Runs that fill the last room of a worker are short, and read as many keys as long ones. So for
//! each of them the bytes of its keys are a *wish*. The greatest are looked at first: of all workers
//! of the line those are sought to which the run goes for the fewest bytes, and, where such a taker
//! has no room, an end of something else that it computes, cut to the work that has to come back. A
//! trade is made where it saves bytes, those between nodes counted twice, as when lines are filled.
//! No load passes its target that was not above it before.
//!
//! Under masks other than causal, with samples that continue others, or where several shards read one
//! KV head, keys are not those of one line alone, and nothing is traded. O(lines · shares of a line),
//! and for each of [`WISHES`] wishes O(takers · (lines of its worker + log L)).
//!
//! Source: pairwise exchange as in local search for generalized assignment (Martello and Toth,
//! "Knapsack Problems", 1990, ch. 7), for loads that are divisible.

mod bytes;
mod lines;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use super::fill::Fill;
use super::pieces::Pieces;
use super::{Run, Task};
use crate::mask::Mask;

use bytes::{alone, bytes};
use lines::{End, Line, Lines, Share, cut_off, hand_runs};

/// Wishes that are looked at, for each worker of the pool, and in all: later ones save little.
const WISHES: (usize, usize) = (3, 4);
const MOST_WISHES: usize = 96;
/// Runs of more than one part in this of a target are left: as much seldom comes back.
const SMALL_RUN: u64 = 4;
/// Takers of a wish whose bytes are counted.
const TAKERS_COUNTED: usize = 16;
/// Takers for whom something to give back is sought.
const TAKERS: usize = 3;

/// Runs of a worker in a line; the one that reads the most bytes of keys for them alone comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wish {
    saved_bytes: Reverse<u64>,
    line: u32,
    worker: u32,
}

/// How a wish is granted.
#[derive(Clone, Copy, Debug)]
struct Trade {
    /// Bytes more than before.
    change: i64,
    taker: u32,
    /// What the taker gives.
    back: Option<End>,
}

/// Memory that the step reuses.
#[derive(Clone, Debug, Default)]
pub(super) struct Trades {
    lines: Lines,
    wishes: Vec<Wish>,
    /// Bytes more than before, and who would take the runs at hand.
    takers: Vec<(i64, u32)>,
    /// The same of any worker of a node.
    known: Vec<(u32, i64)>,
    /// The line at hand after a trade.
    trial: Vec<Share>,
}

impl Trades {
    /// Trades the runs of `fill`.
    pub(super) fn run(&mut self, task: &Task<'_>, pieces: &Pieces, fill: &mut Fill) {
        let (runs, loads) = fill.placed_mut();
        let is_alone = task.mask == Mask::Causal
            && !task.problem.pool.has_parents()
            && !task.problem.heads.spans_are_shared();
        if !is_alone || runs.is_empty() {
            return;
        }
        runs.sort_unstable_by_key(Run::place);
        self.lines.lay_out(task, pieces, runs);
        self.find_wishes(task);
        let mut traded = false;
        for at in 0..self.wishes.len() {
            traded |= self.grant(task, self.wishes[at], loads);
        }
        if traded {
            self.lines.write(task, runs);
        }
    }

    /// Small runs whose keys their worker reads for nothing else.
    fn find_wishes(&mut self, task: &Task<'_>) {
        self.wishes.clear();
        for line in 0..self.lines.all.len() {
            let shares = self.lines.shares_of(line);
            let Line { sample, shard, .. } = self.lines.all[line];
            for (at, share) in shares.iter().enumerate() {
                let worker = share.worker;
                let above = &shares[at + 1..];
                if !share.is_run_of(worker) || above.iter().any(|s| s.worker == worker) {
                    continue;
                }
                let most = task.targets[worker as usize] / SMALL_RUN;
                // The highest token has the most work.
                let each = task.density(sample, share.end - 1);
                if each.saturating_mul(share.tokens()) <= most {
                    let keys = alone(&shares[..at], share);
                    self.wishes.push(Wish {
                        saved_bytes: Reverse(task.prices[shard as usize].kv * keys),
                        line: line as u32,
                        worker,
                    });
                }
            }
        }
        self.wishes.retain(|wish| wish.saved_bytes.0 > 0);
        self.wishes.sort_unstable();
        // Later ones save little.
        let count = task.targets.len() * WISHES.0 / WISHES.1;
        self.wishes.truncate(count.min(MOST_WISHES));
    }

    /// Makes the best trade for a wish, if any saves bytes.
    fn grant(&mut self, task: &Task<'_>, wish: Wish, loads: &mut [u64]) -> bool {
        let (line, worker) = (wish.line as usize, wish.worker);
        let work = self.lines.work_of_runs(task, line, worker);
        self.find_takers(task, line, worker);
        let mut best: Option<Trade> = None;
        for at in 0..self.takers.len().min(TAKERS) {
            let (change, taker) = self.takers[at];
            let [target, own] = [taker, worker].map(|w| task.targets[w as usize]);
            let need = (loads[taker as usize] + work).saturating_sub(target);
            let room = own.saturating_sub(loads[worker as usize]) + work;
            let trade = if need == 0 {
                let back = None;
                Some(Trade {
                    change,
                    taker,
                    back,
                })
            } else {
                let end = self.best_end(task, line, [taker, worker], need..=room);
                end.map(|(more, end)| Trade {
                    change: change + more,
                    taker,
                    back: Some(end),
                })
            };
            let least = best.map_or(0, |best| best.change);
            best = trade.filter(|trade| trade.change < least).or(best);
        }
        if let Some(trade) = best {
            self.carry_out(task, line, worker, trade, loads);
        }
        best.is_some()
    }

    /// Those to whom the runs of `worker` in `line` go for fewer bytes, the fewest first: workers above
    /// them and just below, since others read few of their keys.
    fn find_takers(&mut self, task: &Task<'_>, line: usize, worker: u32) {
        self.takers.clear();
        let shares = self.lines.shares_of(line);
        let is_run = |share: &Share| share.is_run_of(worker);
        let Some(lowest) = shares.iter().position(is_run) else {
            return;
        };
        let last = shares.iter().rposition(is_run).unwrap_or(lowest);
        let is_home = |taker| shares.iter().any(|s| is_run(s) && s.home == taker);
        // Above the runs keys are read already: what changes depends on the taker's node alone.
        self.known.clear();
        let mut counted = 0;
        for at in (last + 1..shares.len()).chain(lowest.saturating_sub(1)..=last) {
            let taker = shares[at].worker;
            if taker == worker || self.takers.iter().any(|&(_, known)| known == taker) {
                continue;
            }
            let is_like_others = at > last && !is_home(taker);
            let of_node = task.node(taker);
            let alike = self.known.iter().find(|&&(of, _)| of == of_node);
            if let Some(&(_, change)) = alike.filter(|_| is_like_others) {
                self.takers.push((change, taker));
                continue;
            }
            counted += 1;
            if counted > TAKERS_COUNTED {
                break;
            }
            self.trial.clear();
            self.trial.extend_from_slice(shares);
            hand_runs(&mut self.trial, [worker, taker]);
            let change = self.change(task, line, [worker, taker]);
            self.takers.push((change, taker));
            if is_like_others {
                self.known.push((of_node, change));
            }
        }
        self.takers.retain(|&(change, _)| change < 0);
        self.takers.sort_unstable();
    }

    /// Bytes more than now if a line were the trial, which differs in what the pair has.
    fn change(&self, task: &Task<'_>, line: usize, pair: [u32; 2]) -> i64 {
        let shard = self.lines.all[line].shard;
        // Parts of a pool's bytes, below 2^63.
        let of = |shares| bytes(task, shard, shares, pair) as i64;
        of(&self.trial) - of(self.lines.shares_of(line))
    }

    /// The end of something of the giver, outside of `line`, that goes to the other for the fewest
    /// bytes more with work in `range`; and those bytes.
    fn best_end(
        &mut self,
        task: &Task<'_>,
        line: usize,
        [giver, other]: [u32; 2],
        range: RangeInclusive<u64>,
    ) -> Option<(i64, End)> {
        let mut best: Option<(i64, End)> = None;
        for common in self.lines.common([giver, other]).filter(|&l| l != line) {
            let shares = self.lines.shares_of(common);
            let last = shares.iter().rfind(|s| s.worker == other);
            let reach = last.map_or(0, |share| share.end);
            for (at, share) in shares.iter().enumerate() {
                if share.worker != giver || share.stays {
                    continue;
                }
                for is_top in [true, false] {
                    let end = End {
                        line: common,
                        share: at,
                        cut: 0,
                        is_top,
                    };
                    let guess = self.guess(task, end, other, reach, *range.start());
                    if best.is_none_or(|(least, _)| guess < least) {
                        best = Some((guess, end));
                    }
                }
            }
        }
        let end = self.cut(task, best?.1, range)?;
        self.trial.clear();
        self.trial.extend_from_slice(self.lines.shares_of(end.line));
        cut_off(&mut self.trial, end.share, end, other);
        Some((self.change(task, end.line, [giver, other]), end))
    }

    /// About the bytes that an end with `need` of work costs `worker`, who reads keys up to `reach`.
    fn guess(&self, task: &Task<'_>, end: End, worker: u32, reach: u32, need: u64) -> i64 {
        let Line { sample, shard, .. } = self.lines.all[end.line];
        let share = &self.lines.shares_of(end.line)[end.share];
        let price = task.prices[shard as usize];
        let first = if end.is_top {
            share.end - 1
        } else {
            share.start
        };
        let each = task.density(sample, first).max(1);
        let tokens = need.div_ceil(each).min(share.tokens());
        let top = if end.is_top {
            share.end
        } else {
            share.start + tokens as u32
        };
        let keys = price.kv * u64::from(top.saturating_sub(reach));
        let qo = (price.qo * tokens) as i64;
        let [there, here] = [worker, share.worker].map(|w| i64::from(share.home != w));
        keys as i64 + qo * (there - here)
    }

    /// `end` cut to as little work as cuts allow, from the least in `range` on; none where that is
    /// too much.
    fn cut(&self, task: &Task<'_>, end: End, range: RangeInclusive<u64>) -> Option<End> {
        let sample = self.lines.all[end.line].sample;
        let share = self.lines.shares_of(end.line)[end.share];
        let top = share.end - 1;
        let (tokens, need) = (share.start..share.end, *range.start());
        let cut = if end.is_top {
            let low = task.start_of(sample, tokens, need.saturating_sub(1));
            task.cut_below(sample, low.saturating_sub(1), top)
                .max(share.start)
        } else {
            let low = task.end_of(sample, tokens, need);
            task.cut_above(sample, low, top).min(share.end)
        };
        let end = End { cut, ..end };
        range
            .contains(&self.lines.work_of_end(task, end))
            .then_some(end)
    }

    fn carry_out(
        &mut self,
        task: &Task<'_>,
        line: usize,
        worker: u32,
        trade: Trade,
        loads: &mut [u64],
    ) {
        let [own, taker] = [worker, trade.taker].map(|w| w as usize);
        let work = self.lines.work_of_runs(task, line, worker);
        self.lines.hand_runs(line, [worker, trade.taker]);
        loads[own] -= work;
        loads[taker] += work;
        if let Some(end) = trade.back {
            let work = self.lines.work_of_end(task, end);
            self.lines.hand_end(end, worker);
            loads[taker] -= work;
            loads[own] += work;
        }
    }
}
