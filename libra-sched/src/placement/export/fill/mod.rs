//! Gives free tokens to workers with room, least bytes per unit of work first.

mod lines;
mod offers;

use std::cmp::Reverse;
use std::ops::Range;

use super::pieces::Pieces;
use super::{Run, Task};
use lines::Lines;
use offers::{Offer, Offers, Rooms, Way};

/// Rooms of at most one part in this of a target are left for the end: a little work needs as many
/// keys as a full room's.
const SMALL_ROOM: u64 = 7;

/// Lines, loads and the runs made so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Fill {
    lines: Lines,
    offers: Offers,
    loads: Vec<u64>,
    runs: Vec<Run>,
    /// Groups that cannot hold what they freed: (work that leaves, group), the most first.
    sources: Vec<(u64, u32)>,
    is_source: Vec<bool>,
    /// Where a group's work goes, best first.
    ways: Vec<NodeRank>,
}

/// Whether a node is of another pod, its room, and the node: the least first.
type NodeRank = (bool, Reverse<u64>, u32);

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
        self.loads.clone_from(&pieces.loads);
        self.runs.clear();
        self.lines.lay_out(task, pieces);
        self.find_sources(task, pieces);
        let (sources, mut ways) = (
            std::mem::take(&mut self.sources),
            std::mem::take(&mut self.ways),
        );
        for &(_, from) in &sources {
            self.rank_nodes(task, from, &mut ways);
            for &(.., node) in &ways {
                let over = self.over(task, from);
                if over == 0 {
                    break;
                }
                if !self.is_source[task.groups.of(node) as usize] {
                    let way = Way {
                        from,
                        to: node..node + 1,
                        rooms: Rooms::Large,
                    };
                    self.pour(task, pieces, way, over);
                }
            }
            self.pour(task, pieces, Way::inside(task, from), u64::MAX);
        }
        for from in 0..task.groups.count() {
            if self.lines.free_in(from) == 0 {
                continue;
            }
            self.rank_nodes(task, from, &mut ways);
            let others = ways.iter().map(|&(.., node)| node..node + 1);
            for to in std::iter::once(task.groups.nodes(from)).chain(others) {
                if self.lines.free_in(from) > 0 {
                    let rooms = Rooms::All;
                    self.pour(task, pieces, Way { from, to, rooms }, u64::MAX);
                }
            }
        }
        (self.sources, self.ways) = (sources, ways);
        self.force(task, pieces)
    }

    /// Places what groups freed and can hold, and finds those that cannot.
    fn find_sources(&mut self, task: &Task<'_>, pieces: &mut Pieces) {
        self.sources.clear();
        self.is_source.clear();
        for group in 0..task.groups.count() {
            let over = self.over(task, group);
            self.is_source.push(over > 0);
            if over > 0 {
                self.sources.push((over, group));
            } else {
                self.pour(task, pieces, Way::inside(task, group), u64::MAX);
            }
        }
        self.sources.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Work that a group freed and cannot hold, small rooms left out.
    fn over(&self, task: &Task<'_>, group: u32) -> u64 {
        let nodes = task.groups.nodes(group);
        let rooms = nodes.map(|node| self.room_in(task, node, Rooms::Large));
        let room = rooms.fold(0, u64::saturating_add);
        self.lines.free_in(group).saturating_sub(room)
    }

    /// Room of a worker, 0 where it does not count.
    fn room(&self, task: &Task<'_>, worker: usize, rooms: Rooms) -> u64 {
        let target = task.targets[worker];
        let room = target.saturating_sub(self.loads[worker]);
        let least = match rooms {
            Rooms::All => 0,
            Rooms::Large => target / SMALL_ROOM,
        };
        if room > least { room } else { 0 }
    }

    fn room_in(&self, task: &Task<'_>, node: u32, rooms: Rooms) -> u64 {
        let workers = task.workers_of(node);
        let rooms = workers.map(|worker| self.room(task, worker, rooms));
        rooms.fold(0, u64::saturating_add)
    }

    /// Nodes with room, those of the pod of `from` before others, most room first.
    fn rank_nodes(&self, task: &Task<'_>, from: u32, ranked: &mut Vec<NodeRank>) {
        let pod = |node| task.topology.pod(node);
        let home = pod(task.groups.nodes(from).start);
        ranked.clear();
        ranked.extend((0..task.node_count()).map(|node| {
            let room = self.room_in(task, node, Rooms::All);
            (pod(node) != home, Reverse(room), node)
        }));
        ranked.retain(|&(_, Reverse(room), _)| room > 0);
        ranked.sort_unstable();
    }

    /// Gives lines to workers along `way`, at most about `budget` of work.
    fn pour(&mut self, task: &Task<'_>, pieces: &mut Pieces, way: Way, mut budget: u64) {
        let mut offers = std::mem::take(&mut self.offers);
        let counted = way.rooms;
        let workers = way.to.clone();
        let workers = workers.flat_map(|node| task.workers_of(node));
        let rooms = workers.map(|worker| (self.room(task, worker, counted), worker as u32));
        offers.start(task, pieces, &self.lines, way, rooms);
        while budget > 0 {
            let Some(offer) = offers.best(task, pieces, &self.lines, budget) else {
                break;
            };
            let top = self.lines.all[offer.line].top;
            let moved = self.take(task, pieces, &offer);
            let room = self.room(task, offer.worker as usize, counted);
            offers.done(task, &offer, moved, top, room);
            budget = budget.saturating_sub(moved);
        }
        self.offers = offers;
    }

    /// Carries an offer out; returns the work that moved, 0 where a cut would be too coarse.
    fn take(&mut self, task: &Task<'_>, pieces: &mut Pieces, offer: &Offer) -> u64 {
        let line = self.lines.all[offer.line].clone();
        let mut moved = 0;
        for piece in line.pieces.clone().rev() {
            let Some(part) = line.part(task, pieces, piece) else {
                continue;
            };
            let start = cut(task, line.sample, part.clone(), offer.work - moved);
            if start < part.end {
                moved += self.give(task, pieces, piece, line.shard, start, offer.worker);
            }
            if start > part.start {
                break;
            }
        }
        self.lines.recount(task, pieces, offer.line);
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

    /// Gives what is left to whoever is furthest below its target, in as many runs of equal work as
    /// there are workers; returns how many runs.
    fn force(&mut self, task: &Task<'_>, pieces: &mut Pieces) -> u32 {
        let left = self.lines.all.iter().map(|line| line.work);
        let share = left.sum::<u64>().div_ceil(self.loads.len() as u64);
        let mut forced = 0;
        for id in 0..self.lines.all.len() {
            let line = self.lines.all[id].clone();
            for piece in line.pieces.clone() {
                while let Some(free) = line.part(task, pieces, piece) {
                    let lightest = (0..task.targets.len()).min_by_key(|&worker| {
                        let (load, target) = (self.loads[worker], task.targets[worker]);
                        (i128::from(load) - i128::from(target), worker)
                    });
                    let worker = lightest.expect("a pool has workers") as u32;
                    let last = free.end - 1;
                    let start = task.start_of(line.sample, free, share).min(last);
                    self.give(task, pieces, piece, line.shard, start, worker);
                    forced += 1;
                }
            }
        }
        forced
    }
}

/// The lowest position from which on the free tokens hold at most `work`, rounded up to the grain;
/// their end where even that is too much.
fn cut(task: &Task<'_>, sample: u32, free: Range<u32>, work: u64) -> u32 {
    let low = task.start_of(sample, free.clone(), work);
    if low == free.start {
        return low;
    }
    task.cut_above(sample, low, free.end - 1).min(free.end)
}
