//! Placement by divisible runs: every worker keeps its own tokens as far as its target allows, and
//! only what is above leaves, in runs cut exactly where a destination is full.
//!
//! A *run* is a token range of one sample in one head shard, of any length: attention work is
//! divisible along tokens, so the size of a block no longer limits balance. What moves is chosen by
//! counted bytes:
//! 1. **Tails**: the last tokens of a sample that reach a little into the next worker stay with the
//!    worker before, which has their keys, where moving Q and O costs less than moving the keys.
//! 2. **Gathered** ([`gather`]): the late tokens of long samples are free in all shards, where their
//!    workers have room for several pieces of one.
//! 3. **Free** ([`pieces`]): a worker above its target frees whole head shards of the tokens with
//!    most work each (the longest samples), so that what it keeps reads few heads' keys.
//! 4. **Fill** ([`fill`]): the free tokens of a (sample, shard) form a *line*. Workers with room take
//!    from the top of lines, where a token has most work; of all (line, worker) pairs the one with
//!    the least bytes per unit of work goes first. Nodes that share a sequence are a *group*, over
//!    which lines go on ([`groups`]). Groups that have room place what they freed themselves; from
//!    the others, first what the group cannot hold leaves it, node by node, so that a line's keys
//!    enter few nodes, then the rest stays inside.
//! 5. **Trades** ([`trades`]): what fills the last room of a worker is short and reads as many keys as
//!    a long run. Who reads them anyway takes it, and gives as much work back elsewhere.
//!
//! In: lengths, layout, heads, mask, one target a worker. Out: tiles of varying length and their
//! workers, none above its target while that can be helped. Time O(samples + S·(N·H·G + log L)), S
//! the runs made, N the long samples of a group and G its nodes.
//!
//! Source: list scheduling by density as in MagiAttention's dynamic solver and Alg. 2's Δcomm rule,
//! for loads that are divisible (Bharadwaj, Ghose, Robertazzi, "Divisible Load Theory", 2003).

mod fill;
mod gather;
mod groups;
mod pieces;
mod repair;
mod tiles;
mod timed;
mod trades;

use std::ops::Range;

use super::{Placement, Problem, Slack, Spare, targets_with};
use crate::error::Error;
use crate::ids::WorkerId;
use crate::lengths::check_total;
use crate::mask::Mask;
use crate::search::first_where_near;
use crate::tiles::{CostTable, TileSet, ticks_at};
use crate::topology::Topology;

use fill::Fill;
use groups::Groups;
use pieces::{Piece, Pieces};
use trades::Trades;

/// Memory that the placer reuses.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    pieces: Pieces,
    fill: Fill,
    trades: Trades,
    tiles: tiles::Scratch,
    timed: timed::Scratch,
    repair: repair::Repair,
    prices: Vec<Price>,
    targets: Vec<u64>,
    /// Of each worker.
    nodes: Vec<u32>,
    groups: Groups,
    /// Work of all samples before each one, in one shard, and of all.
    before: Vec<u128>,
    /// Of each sample's tokens; empty where work decides.
    rates: Vec<u64>,
}

/// A token range of one shard that a worker computes away from home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    slot: u32,
    shard: u32,
    /// First token within the sequence.
    start: u32,
    /// One past the last.
    end: u32,
    worker: u32,
}

impl Run {
    /// Slot, shard and start as one number: no two runs share any token.
    fn place(&self) -> u128 {
        u128::from(self.slot) << 64 | u128::from(self.shard) << 32 | u128::from(self.start)
    }
}

/// Bytes of one token in one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Price {
    /// Q out and O back.
    qo: u64,
    /// K and V of the shard's KV heads.
    kv: u64,
}

/// What the steps read.
#[derive(Clone, Copy)]
struct Task<'a> {
    problem: &'a Problem<'a>,
    mask: Mask,
    /// Query heads of a shard.
    shard_width: u64,
    topology: Topology,
    /// Of each worker.
    nodes: &'a [u32],
    groups: &'a Groups,
    /// Most work of each worker.
    targets: &'a [u64],
    /// Work that a cut may miss a target by.
    grain_work: u64,
    /// By shard.
    prices: &'a [Price],
    /// Work of all samples before each one, in one shard, and of all.
    before: &'a [u128],
    /// Of each sample's tokens; empty where work decides.
    rates: &'a [u64],
}

impl Task<'_> {
    fn node(&self, worker: u32) -> u32 {
        self.nodes[worker as usize]
    }

    fn node_count(&self) -> u32 {
        self.nodes.last().map_or(0, |last| last + 1)
    }

    /// Workers of a node.
    fn workers_of(&self, node: u32) -> Range<usize> {
        let per_node = self.topology.gpus_per_node();
        let first = node * per_node;
        let end = first.saturating_add(per_node);
        first as usize..(end as usize).min(self.targets.len())
    }

    /// Pairs × heads of the sample-local tokens in one shard.
    fn exact(&self, sample: u32, start: u32, end: u32) -> u64 {
        let pairs = pairs(self.problem, self.mask, sample, start, end);
        pairs * self.shard_width
    }

    /// Work of the sample-local tokens in one shard, or their weight where times decide.
    fn work(&self, sample: u32, start: u32, end: u32) -> u64 {
        let work = self.exact(sample, start, end);
        match self.rates.get(sample as usize) {
            None => work,
            // Part of the pool's, which fits 64 bits.
            Some(&rate) => ticks_at(rate, work.into()) as u64,
        }
    }

    /// Work of a piece in one shard. Most are whole samples, whose work is known.
    fn work_of(&self, piece: &Piece) -> u64 {
        let sample = piece.sample as usize;
        if self.rates.is_empty()
            && piece.start == 0
            && piece.end == self.problem.pool.lengths()[sample]
        {
            // Part of the pool's, which fits 64 bits.
            return (self.before[sample + 1] - self.before[sample]) as u64;
        }
        self.work(piece.sample, piece.start, piece.end)
    }

    /// The first of the sample-local `tokens` from which on they have at most `most` work; their end
    /// where none has as little.
    fn start_of(&self, sample: u32, tokens: Range<u32>, most: u64) -> u32 {
        let Range { start, end } = tokens;
        let all = self.work(sample, start, end);
        if all <= most {
            return start;
        }
        let guess = split(&tokens, 1.0 - most as f64 / all as f64);
        let at_most = |at| self.work(sample, at, end) <= most;
        first_where_near(start + 1..end, guess, at_most)
    }

    /// Up to where the sample-local `tokens` have at least `least` work; one past their end where all
    /// have less.
    fn end_of(&self, sample: u32, tokens: Range<u32>, least: u64) -> u32 {
        let Range { start, end } = tokens;
        let all = self.work(sample, start, end);
        if all < least {
            return end + 1;
        }
        let guess = split(&tokens, least as f64 / all.max(1) as f64);
        let at_least = |at| self.work(sample, start, at) >= least;
        first_where_near(start..end, guess, at_least)
    }

    /// Work of one token.
    fn density(&self, sample: u32, token: u32) -> u64 {
        self.work(sample, token, token + 1)
    }

    /// Keys that the sample-local tokens read.
    fn keys(&self, sample: u32, start: u32, end: u32) -> u64 {
        let pool = self.problem.pool;
        let keys = self.mask.keys(pool.lengths()[sample as usize], start..end);
        u64::from(keys.len()) + u64::from(pool.above(sample as usize))
    }

    /// Tokens of which cuts near `token` are multiples: at most 128, and so few that a target is
    /// met closely.
    fn grain(&self, sample: u32, token: u32) -> u32 {
        let each = self.density(sample, token).max(1);
        let tokens = (self.grain_work / each).clamp(1, 128) as u32;
        1 << tokens.ilog2()
    }

    /// Where cuts near `token` fall at or above `at`.
    fn cut_above(&self, sample: u32, at: u32, token: u32) -> u32 {
        let offset = self.problem.pool.starts()[sample as usize];
        let grain = self.grain(sample, token);
        (offset + at).div_ceil(grain) * grain - offset
    }

    /// Where they fall at or below `at`; 0 where that is before the sample.
    fn cut_below(&self, sample: u32, at: u32, token: u32) -> u32 {
        let offset = self.problem.pool.starts()[sample as usize];
        let grain = self.grain(sample, token);
        ((offset + at) / grain * grain).saturating_sub(offset)
    }
}

/// What is asked, apart from times.
#[derive(Clone, Copy)]
pub(super) struct Plain<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) mask: Mask,
    pub(super) topology: Topology,
    pub(super) slack: Slack,
}

/// Places the pool's attention so that no worker passes its target while that can be helped; by the
/// times of `costs` where they are given and differ from work.
///
/// # Errors
/// Parents of samples under another mask than causal, work or times beyond 64 bits, or more tiles
/// than ids.
pub(super) fn place(
    scratch: &mut Scratch,
    plain: Plain<'_>,
    costs: Option<&CostTable>,
    spare: Spare,
) -> Result<(TileSet, Placement), Error> {
    let Plain {
        problem,
        mask,
        slack,
        ..
    } = plain;
    let total = sum_work(&mut scratch.before, problem, mask)?;
    if let Some(costs) = costs.filter(|costs| !costs.is_flat()) {
        return timed::place(scratch, plain, costs, spare);
    }
    scratch.rates.clear();
    targets_with(
        &mut scratch.targets,
        total,
        problem.layout.workers(),
        problem.speeds,
        slack,
    );
    // Above the total no target changes anything.
    for target in &mut scratch.targets {
        *target = total.min(*target);
    }
    let fallbacks = once(scratch, plain)?;
    scratch.tiles.made.finish(problem, fallbacks, spare)
}

/// Makes tiles for the targets at hand; returns the number of runs that no room was left for.
fn once(scratch: &mut Scratch, plain: Plain<'_>) -> Result<u32, Error> {
    let total = scratch.sum_weight(plain)?;
    let Scratch {
        pieces,
        fill,
        trades,
        tiles,
        prices,
        targets,
        nodes,
        groups,
        before,
        rates,
        ..
    } = scratch;
    let problem = plain.problem;
    let least = targets.iter().copied().min().unwrap_or(0);
    // What targets leave, a worker's share; the sum is at most the total times the workers.
    let sum: u128 = targets.iter().map(|&target| u128::from(target)).sum();
    let left = sum.saturating_sub(total.into()) / targets.len() as u128;
    prices.clear();
    prices.extend((0..problem.heads.shards()).map(|shard| price(problem, shard)));
    nodes.clear();
    let workers = 0..problem.layout.workers();
    nodes.extend(workers.map(|worker| plain.topology.node(WorkerId(worker))));
    let task = Task {
        problem,
        mask: plain.mask,
        shard_width: problem.heads.shard_width().into(),
        topology: plain.topology,
        nodes,
        groups: &Groups::default(),
        targets,
        // Cuts may use up a part of that, and little of a target.
        grain_work: (least / 256).min(u64::try_from(left / 4).unwrap_or(u64::MAX)),
        prices,
        before,
        rates,
    };
    pieces.cut(&task);
    groups.find(&task, &pieces.loads);
    let task = Task { groups, ..task };
    pieces.gather(&task);
    pieces.free(&task);
    let fallbacks = fill.run(&task, pieces);
    trades.run(&task, pieces, fill);
    tiles::build(tiles, &task, pieces, fill.runs())?;
    Ok(fallbacks)
}

impl Scratch {
    /// Weight of the pool: work, or ticks where there are rates.
    fn sum_weight(&self, plain: Plain<'_>) -> Result<u64, Error> {
        let Plain { problem, mask, .. } = plain;
        let shards = u128::from(problem.heads.shards());
        if self.rates.is_empty() {
            let work = self.before.last().expect("the sum of none at least");
            return check_total("work of the pool", work * shards);
        }
        let width = u128::from(problem.heads.shard_width());
        let mut sum = 0u128;
        for (sample, (&len, &rate)) in (0..).zip(problem.pool.lengths().iter().zip(&self.rates)) {
            let work = u128::from(pairs(problem, mask, sample, 0, len)) * width;
            sum = sum.saturating_add(ticks_at(rate, work));
        }
        check_total("time of the pool", sum.saturating_mul(shards))
    }
}

/// Work of all samples before each one, in one shard; returns that of the pool in all.
fn sum_work(before: &mut Vec<u128>, problem: &Problem<'_>, mask: Mask) -> Result<u64, Error> {
    let (pool, heads) = (problem.pool, problem.heads);
    pool.check_mask(mask)?;
    before.clear();
    before.push(0);
    let width = u128::from(heads.shard_width());
    let mut sum = 0;
    for (sample, &len) in (0..).zip(pool.lengths()) {
        // 60 bits of pairs, 16 of heads, and of samples 2^28 at most.
        sum += u128::from(pairs(problem, mask, sample, 0, len)) * width;
        before.push(sum);
    }
    check_total("work of the pool", sum * u128::from(heads.shards()))
}

/// About where the first of `tokens` have that part of their work: under a causal mask it goes by the
/// squares of positions. No plan depends on it: what is sought from there on is exact.
fn split(tokens: &Range<u32>, part: f64) -> u32 {
    let [low, high] = [tokens.start, tokens.end].map(|at| f64::from(at) * f64::from(at));
    (low + (high - low) * part).sqrt() as u32
}

/// Pairs of the sample-local tokens in one head.
fn pairs(problem: &Problem<'_>, mask: Mask, sample: u32, start: u32, end: u32) -> u64 {
    let pool = problem.pool;
    let len = pool.lengths()[sample as usize];
    let above = u64::from(pool.above(sample as usize)) * u64::from(end - start);
    mask.pairs(len, start..end) + above
}

fn price(problem: &Problem<'_>, shard: u32) -> Price {
    let Problem { heads, bytes, .. } = *problem;
    let (width, kv) = (heads.shard_width(), heads.kv_of_shard(shard));
    Price {
        qo: bytes.q_token(heads, width) + bytes.o_token(heads, width),
        kv: bytes.kv_token(heads, kv.end - kv.start),
    }
}
