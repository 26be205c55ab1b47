//! Gives free tokens to workers with room, least bytes per unit of work first.

use std::cmp::Reverse;
use std::ops::Range;

use super::pieces::{Free, Holder, Pieces};
use super::{Run, Task};

/// Rooms of at most one part in this of a target are left for the end: a little work needs as many
/// keys as a full room's.
const SMALL_ROOM: u64 = 7;
/// Lines that differ and are weighed at one step: the longest samples come first.
const LINES_WEIGHED: usize = 6;

/// Free tokens of one sample in one shard at one node.
#[derive(Clone, Copy, Debug)]
struct Line {
    sample: u32,
    shard: u32,
    node: u32,
    /// Work of the highest token at the start.
    density: u64,
    /// Work that is left.
    work: u64,
    /// Tokens that are left.
    tokens: u32,
    /// One past the highest token that is left.
    top: u32,
    /// The highest token whose keys the node at hand has fetched.
    near: u32,
}

/// Lines, loads and the runs made so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Fill {
    /// By node, then most work a token first, then sample and shard.
    lines: Vec<Line>,
    /// First line of each node with work, and the end of the node's.
    of_node: Vec<Range<usize>>,
    loads: Vec<u64>,
    runs: Vec<Run>,
    /// Workers of a node with room: (room, worker), the least first.
    rooms: Vec<(u64, u32)>,
    /// Nodes that cannot hold what they freed: (work that leaves, node), the most first.
    sources: Vec<(u64, u32)>,
    is_source: Vec<bool>,
    /// Where a node's work goes, best first.
    ways: Vec<NodeRank>,
}

/// Whether a node is of another pod, its room, and the node: the least first.
type NodeRank = (bool, Reverse<u64>, u32);

/// From which node to which, and which rooms there count.
#[derive(Clone, Copy)]
struct Way {
    from: u32,
    to: u32,
    /// Rooms of at most one part in this of a target do not count.
    small: u64,
}

/// A line and who takes how much of it; the least one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Offer {
    /// Bytes per unit of work, as a fixed-point number.
    price: u128,
    line: usize,
    worker: u32,
    work: u64,
}

impl Fill {
    /// Load of each worker.
    pub(super) fn loads(&self) -> &[u64] {
        &self.loads
    }

    /// Runs made, in no order.
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Runs and loads, to be changed together.
    pub(super) fn placed_mut(&mut self) -> (&mut Vec<Run>, &mut [u64]) {
        (&mut self.runs, &mut self.loads)
    }

    /// Places everything that is free; returns the number of runs that no room was left for.
    pub(super) fn run(&mut self, task: &Task<'_>, pieces: &mut Pieces) -> u32 {
        self.start(task, pieces);
        self.find_sources(task, pieces);
        let (sources, mut ways) = (
            std::mem::take(&mut self.sources),
            std::mem::take(&mut self.ways),
        );
        let (all, small) = (u64::MAX, SMALL_ROOM);
        for &(_, from) in &sources {
            self.rank_nodes(task, from, &mut ways);
            for &(.., to) in &ways {
                let over = self.over(task, from);
                if over == 0 {
                    break;
                }
                if !self.is_source[to as usize] {
                    self.pour(task, pieces, Way { from, to, small }, over);
                }
            }
            let to = from;
            self.pour(task, pieces, Way { from, to, small }, all);
        }
        let small = u64::MAX;
        for from in 0..self.of_node.len() as u32 {
            if self.free_in(from) == 0 {
                continue;
            }
            self.rank_nodes(task, from, &mut ways);
            let others = ways.iter().map(|&(.., node)| node);
            for to in std::iter::once(from).chain(others) {
                if self.free_in(from) > 0 {
                    self.pour(task, pieces, Way { from, to, small }, all);
                }
            }
        }
        (self.sources, self.ways) = (sources, ways);
        self.force(task, pieces)
    }

    /// Places what nodes freed and can hold, and finds those that cannot.
    fn find_sources(&mut self, task: &Task<'_>, pieces: &mut Pieces) {
        self.sources.clear();
        self.is_source.clear();
        for node in 0..self.of_node.len() as u32 {
            let over = self.over(task, node);
            self.is_source.push(over > 0);
            if over > 0 {
                self.sources.push((over, node));
            } else {
                let inside = Way {
                    from: node,
                    to: node,
                    small: SMALL_ROOM,
                };
                self.pour(task, pieces, inside, u64::MAX);
            }
        }
        self.sources.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Work that a node freed and cannot hold, small rooms left out.
    fn over(&self, task: &Task<'_>, node: u32) -> u64 {
        self.free_in(node)
            .saturating_sub(self.room_in(task, node, SMALL_ROOM))
    }

    /// Lines of everything that is free.
    fn start(&mut self, task: &Task<'_>, pieces: &Pieces) {
        let workers = task.targets.len() as u32;
        let nodes = task.node(workers - 1) as usize + 1;
        self.loads.clone_from(&pieces.loads);
        self.runs.clear();
        self.lines.clear();
        let sample_of = |id: u32| pieces.pieces[id as usize].sample;
        for of_sample in pieces.freed.chunk_by(|&a, &b| sample_of(a) == sample_of(b)) {
            let sample = sample_of(of_sample[0]);
            for shard in 0..task.problem.heads.shards() {
                let begin = self.lines.len();
                for &id in of_sample {
                    let free = pieces.free_of(id, shard);
                    if free.start < free.end {
                        let node = node_of(task, pieces, id, shard);
                        let line = self.line_at(begin, node, sample, shard);
                        line.work += task.work(sample, free.start, free.end);
                        line.tokens += free.end - free.start;
                        line.top = free.end;
                        line.density = task.density(sample, free.end - 1);
                    }
                }
            }
        }
        self.lines
            .sort_unstable_by_key(|l| (l.node, Reverse(l.density), l.sample, l.shard));
        self.of_node.clear();
        let mut end = 0;
        for node in 0..nodes as u32 {
            let begin = end;
            end += self.lines[begin..].partition_point(|line| line.node == node);
            self.of_node.push(begin..end);
        }
    }

    /// The line of `node` among those from `begin` on, new if there is none.
    fn line_at(&mut self, begin: usize, node: u32, sample: u32, shard: u32) -> &mut Line {
        let known = self.lines[begin..]
            .iter()
            .position(|line| line.node == node);
        let at = known.map_or(self.lines.len(), |at| begin + at);
        if known.is_none() {
            self.lines.push(Line {
                sample,
                shard,
                node,
                density: 0,
                work: 0,
                tokens: 0,
                top: 0,
                near: 0,
            });
        }
        &mut self.lines[at]
    }

    fn workers_of(task: &Task<'_>, node: u32) -> Range<u32> {
        let per_node = task.topology.gpus_per_node();
        let first = node * per_node;
        first
            ..first
                .saturating_add(per_node)
                .min(task.targets.len() as u32)
    }

    fn free_in(&self, node: u32) -> u64 {
        let lines = self.of_node[node as usize].clone();
        self.lines[lines].iter().map(|line| line.work).sum()
    }

    /// Room of a worker, 0 where it does not count.
    fn room(&self, task: &Task<'_>, worker: u32, small: u64) -> u64 {
        let target = task.targets[worker as usize];
        let room = target.saturating_sub(self.loads[worker as usize]);
        if room > target / small { room } else { 0 }
    }

    fn room_in(&self, task: &Task<'_>, node: u32, small: u64) -> u64 {
        Self::workers_of(task, node)
            .map(|worker| self.room(task, worker, small))
            .fold(0, u64::saturating_add)
    }

    /// Nodes with room, those of the pod of `from` before others, most room first.
    fn rank_nodes(&self, task: &Task<'_>, from: u32, ranked: &mut Vec<NodeRank>) {
        let pod = |node| task.topology.pod(node);
        ranked.clear();
        ranked.extend((0..self.of_node.len() as u32).map(|node| {
            let room = self.room_in(task, node, u64::MAX);
            (pod(node) != pod(from), Reverse(room), node)
        }));
        ranked.retain(|&(_, Reverse(room), _)| room > 0);
        ranked.sort_unstable();
    }

    /// Gives lines to workers along `way`, at most about `budget` of work.
    fn pour(&mut self, task: &Task<'_>, pieces: &mut Pieces, way: Way, mut budget: u64) {
        let lines = self.of_node[way.from as usize].clone();
        self.lines[lines].iter_mut().for_each(|line| line.near = 0);
        let mut rooms = std::mem::take(&mut self.rooms);
        rooms.clear();
        let workers = Self::workers_of(task, way.to);
        rooms.extend(workers.map(|worker| (self.room(task, worker, way.small), worker)));
        rooms.retain(|&(room, _)| room > 0);
        rooms.sort_unstable();
        while budget > 0 {
            let Some(offer) = self.best(task, pieces, way, budget, &rooms) else {
                break;
            };
            let moved = self.take(task, pieces, &offer);
            rooms.retain(|&(_, worker)| worker != offer.worker);
            let left = (self.room(task, offer.worker, way.small), offer.worker);
            // Where the line could give nothing the worker is left out.
            if moved > 0 && left.0 > 0 {
                rooms.insert(rooms.partition_point(|room| *room < left), left);
            }
            budget = budget.saturating_sub(moved);
        }
        self.rooms = rooms;
    }

    /// The cheapest offer. Of the workers that have nothing of a line's sample only two can make it:
    /// the one with the least room that holds all of the line, and the one with the most room that
    /// does not.
    fn best(
        &self,
        task: &Task<'_>,
        pieces: &Pieces,
        way: Way,
        budget: u64,
        rooms: &[(u64, u32)],
    ) -> Option<Offer> {
        if rooms.is_empty() {
            return None;
        }
        let mut best: Option<Offer> = None;
        let mut last: Option<&Line> = None;
        let mut weighed = 0;
        for id in self.of_node[way.from as usize].clone() {
            let line = &self.lines[id];
            if line.work == 0 {
                continue;
            }
            let inside = way.from == way.to;
            let state = |l: &Line| (l.sample, l.work, l.top, l.near);
            let known = last.is_some_and(|last| state(last) == state(line));
            if known && !inside {
                continue;
            }
            weighed += 1;
            if weighed > LINES_WEIGHED {
                break;
            }
            // Its offers would be those of the last, and the first of equals wins.
            if known && last.is_some_and(|last| are_held_alike(task, pieces, last, line)) {
                continue;
            }
            last = Some(line);
            let most = line.work.min(budget);
            let split = rooms.partition_point(|&(room, _)| room < most);
            // Takers with more room than the line has work take the same tokens.
            let mut top = (0, 0);
            let mut offer = |room: u64, taker: Holder| {
                let work = room.min(most);
                if top.0 != work {
                    top = (work, tokens_of(task, pieces, line, work));
                }
                let bytes = bytes(task, way, line, top.1, taker);
                let offer = Offer {
                    price: (u128::from(bytes) << 32) / u128::from(work),
                    line: id,
                    worker: taker.worker,
                    work,
                };
                best = Some(best.map_or(offer, |best| best.min(offer)));
            };
            for at in [split.checked_sub(1), Some(split)].into_iter().flatten() {
                if let Some(&(room, worker)) = rooms.get(at) {
                    let taker = Holder {
                        worker,
                        ..Holder::default()
                    };
                    offer(room, taker);
                }
            }
            if inside {
                for holder in pieces.holders(line.sample, line.shard) {
                    let room = rooms.iter().find(|&&(_, w)| w == holder.worker);
                    if let Some(&(room, _)) = room {
                        offer(room, holder);
                    }
                }
            }
        }
        best
    }

    /// Carries an offer out; returns the work that moved, 0 where a cut would be too coarse.
    fn take(&mut self, task: &Task<'_>, pieces: &mut Pieces, offer: &Offer) -> u64 {
        let line = self.lines[offer.line];
        let mut moved = 0;
        for piece in pieces.of_sample(line.sample).rev() {
            let free = pieces.free_of(piece, line.shard);
            if !is_part(task, pieces, &line, piece) {
                continue;
            }
            let start = cut(task, line.sample, free, offer.work - moved);
            if start < free.end {
                moved += self.give(task, pieces, piece, line.shard, start, offer.worker);
            }
            if start > free.start {
                break;
            }
        }
        let left = &mut self.lines[offer.line];
        (left.work, left.tokens, left.top) = (0, 0, 0);
        for piece in pieces.of_sample(line.sample) {
            if is_part(task, pieces, &line, piece) {
                let free = pieces.free_of(piece, line.shard);
                left.work += task.work(line.sample, free.start, free.end);
                left.tokens += free.end - free.start;
                left.top = free.end;
            }
        }
        if moved > 0 {
            left.near = line.top.max(line.near);
        }
        let lines = &mut self.of_node[line.node as usize];
        while lines.start < lines.end && self.lines[lines.start].work == 0 {
            lines.start += 1;
        }
        moved
    }

    /// Makes a run of a piece's free tokens from `start` on; returns its work.
    fn give(
        &mut self,
        task: &Task<'_>,
        pieces: &mut Pieces,
        piece: u32,
        shard: u32,
        start: u32,
        worker: u32,
    ) -> u64 {
        let end = pieces.free_of(piece, shard).end;
        let slot = pieces.pieces[piece as usize].slot;
        let sample = pieces.pieces[piece as usize].sample;
        let offset = task.problem.pool.starts()[sample as usize];
        let work = task.work(sample, start, end);
        self.runs.push(Run {
            slot,
            shard,
            start: offset + start,
            end: offset + end,
            worker,
        });
        pieces.take_down_to(piece, shard, start);
        self.loads[worker as usize] += work;
        work
    }

    /// Gives what is left to whoever is furthest below its target; returns how many runs.
    fn force(&mut self, task: &Task<'_>, pieces: &mut Pieces) -> u32 {
        let mut forced = 0;
        for id in 0..self.lines.len() {
            let Line {
                sample,
                shard,
                work,
                ..
            } = self.lines[id];
            if work == 0 {
                continue;
            }
            for piece in pieces.of_sample(sample) {
                let free = pieces.free_of(piece, shard);
                if free.start < free.end {
                    let lightest = (0..task.targets.len()).min_by_key(|&worker| {
                        let (load, target) = (self.loads[worker], task.targets[worker]);
                        (i128::from(load) - i128::from(target), worker)
                    });
                    let worker = lightest.expect("a pool has workers") as u32;
                    self.give(task, pieces, piece, shard, free.start, worker);
                    forced += 1;
                }
            }
        }
        forced
    }
}

/// Node of the worker that keeps a piece in a shard.
fn node_of(task: &Task<'_>, pieces: &Pieces, piece: u32, shard: u32) -> u32 {
    let keeper = pieces.keeper(&pieces.pieces[piece as usize], shard);
    task.node(keeper)
}

/// Whether a piece has free tokens that belong to `line`.
fn is_part(task: &Task<'_>, pieces: &Pieces, line: &Line, piece: u32) -> bool {
    let free = pieces.free_of(piece, line.shard);
    free.start < free.end && node_of(task, pieces, piece, line.shard) == line.node
}

/// Whether two lines of a sample are of shards whose workers have the same of it.
fn are_held_alike(task: &Task<'_>, pieces: &Pieces, a: &Line, b: &Line) -> bool {
    let price = |line: &Line| task.prices[line.shard as usize];
    let holders = |line: &Line| pieces.holders(line.sample, line.shard);
    price(a) == price(b) && holders(a).eq(holders(b))
}

/// About as many tokens from the top of a line as have `work`: 1 at least.
fn tokens_of(task: &Task<'_>, pieces: &Pieces, line: &Line, work: u64) -> u32 {
    if work >= line.work {
        return line.tokens.clamp(1, line.top);
    }
    let (mut tokens, mut left) = (0, work);
    for piece in pieces.of_sample(line.sample).rev() {
        if !is_part(task, pieces, line, piece) {
            continue;
        }
        let free = pieces.free_of(piece, line.shard);
        let all = task.work(line.sample, free.start, free.end);
        let count = free.end - free.start;
        if all > left {
            let each = (all / u64::from(count)).max(1);
            tokens += (left / each).min(count.into()) as u32;
            break;
        }
        tokens += count;
        left -= all;
    }
    tokens.clamp(1, line.top)
}

/// Bytes that `tokens` from the top of a line cost `taker`, less what it has. Q and O between nodes
/// count twice; keys that the node has fetched cross no more, and others weigh half as much again,
/// since all of them leave through the ports of the few workers that hold them.
fn bytes(task: &Task<'_>, way: Way, line: &Line, tokens: u32, taker: Holder) -> u64 {
    let price = task.prices[line.shard as usize];
    let keys = task.keys(line.sample, line.top - tokens, line.top);
    let Free { start, end } = taker.own;
    let own = end
        .min(line.top)
        .saturating_sub(start.max(line.top - tokens));
    let qo = price.qo * u64::from(tokens - own);
    let kv = price.kv * keys.saturating_sub(u64::from(taker.held) + u64::from(own));
    if way.from == way.to {
        return qo + kv;
    }
    let new = keys.min(line.top.saturating_sub(line.near).into());
    2 * qo + kv + price.kv * new * 3 / 2
}

/// The lowest position from which on the free tokens hold at most `work`, rounded up to the grain;
/// their end where even that is too much.
fn cut(task: &Task<'_>, sample: u32, free: Free, work: u64) -> u32 {
    let low = task.start_of(sample, free.start..free.end, work);
    if low == free.start {
        return low;
    }
    let offset = task.problem.pool.starts()[sample as usize];
    let grain = task.grain(sample, free.end - 1);
    ((offset + low).div_ceil(grain) * grain - offset).min(free.end)
}
