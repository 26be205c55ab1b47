//! What it costs whom to take how much of a line.

use std::ops::Range;

use super::lines::{Line, Lines};
use crate::placement::export::Task;
use crate::placement::export::pieces::{Holder, Pieces};

/// Lines that differ and are weighed at one step: the longest samples come first.
const LINES_WEIGHED: usize = 6;

/// Which rooms count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Rooms {
    #[default]
    All,
    /// Small ones do not.
    Large,
}

/// From which group to which nodes, and which rooms there count.
#[derive(Clone, Debug, Default)]
pub(super) struct Way {
    pub(super) from: u32,
    /// Nodes: one, or those of the group.
    pub(super) to: Range<u32>,
    pub(super) rooms: Rooms,
}

impl Way {
    /// From a group to its large rooms.
    pub(super) fn inside(task: &Task<'_>, group: u32) -> Self {
        Self {
            from: group,
            to: task.groups.nodes(group),
            rooms: Rooms::Large,
        }
    }

    /// Whether the work stays in its group.
    fn is_inside(&self, task: &Task<'_>) -> bool {
        task.groups.of(self.to.start) == self.from
    }
}

/// A line and who takes how much of it; the least one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Offer {
    /// Bytes per unit of work, as a fixed-point number.
    price: u128,
    pub(super) line: usize,
    pub(super) worker: u32,
    pub(super) work: u64,
}

/// What a node has of a line's sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Near {
    /// From the first token that lives there to the last.
    own: Range<u32>,
    /// One past the highest token whose keys it has fetched.
    end: u32,
}

/// Rooms along a way, and what their nodes have.
#[derive(Clone, Debug, Default)]
pub(super) struct Offers {
    way: Way,
    is_inside: bool,
    /// Nodes of the group that gives.
    nodes_from: u64,
    /// Workers with room: (node, room, worker), the least first.
    rooms: Vec<(u32, u64, u32)>,
    /// The first of the workers.
    first_worker: u32,
    /// Room of each worker from there on.
    room_of: Vec<u64>,
    /// The first line of the group.
    first: usize,
    /// By line from there on, and node.
    near: Vec<Near>,
}

impl Offers {
    /// Starts along `way`, where `rooms` are (room, worker).
    pub(super) fn start(
        &mut self,
        task: &Task<'_>,
        pieces: &Pieces,
        lines: &Lines,
        way: Way,
        rooms: impl Iterator<Item = (u64, u32)>,
    ) {
        self.rooms.clear();
        self.room_of.clear();
        for (room, worker) in rooms {
            if self.room_of.is_empty() {
                self.first_worker = worker;
            }
            self.room_of.push(room);
            if room > 0 {
                self.rooms.push((task.node(worker), room, worker));
            }
        }
        self.rooms.sort_unstable();
        self.is_inside = way.is_inside(task);
        self.nodes_from = task.groups.nodes(way.from).len() as u64;
        let of_group = lines.of_group(way.from);
        self.first = of_group.start;
        self.near.clear();
        for line in &lines.all[of_group] {
            let nodes = way.to.clone();
            self.near.extend(nodes.map(|node| match self.is_inside {
                true => near(task, pieces, line, node),
                false => Near::default(),
            }));
        }
        self.way = way;
    }

    /// What the nodes have of a line's sample.
    fn near(&self, line: usize) -> &[Near] {
        let nodes = self.way.to.len();
        &self.near[(line - self.first) * nodes..][..nodes]
    }

    /// An offer was carried out, moved `moved` of work down from `top`, and leaves its worker `room`.
    pub(super) fn done(&mut self, task: &Task<'_>, offer: &Offer, moved: u64, top: u32, room: u64) {
        self.rooms.retain(|&(.., worker)| worker != offer.worker);
        // Where the line could give nothing the worker is left out.
        let room = if moved > 0 { room } else { 0 };
        self.room_of[(offer.worker - self.first_worker) as usize] = room;
        if moved == 0 {
            return;
        }
        let node = task.node(offer.worker);
        let left = (node, room, offer.worker);
        if room > 0 {
            let at = self.rooms.partition_point(|room| *room < left);
            self.rooms.insert(at, left);
        }
        let at = (offer.line - self.first) * self.way.to.len();
        let near = &mut self.near[at + (node - self.way.to.start) as usize];
        near.end = near.end.max(top);
    }

    /// Room of a worker, 0 where there is none along the way.
    fn room_of(&self, worker: u32) -> u64 {
        let at = worker.checked_sub(self.first_worker);
        let room = at.and_then(|at| self.room_of.get(at as usize));
        room.copied().unwrap_or(0)
    }

    /// The cheapest offer of at most about `budget` of work. Of the workers of a node that have
    /// nothing of a line's sample only two can make it: the one with the least room that holds all of
    /// the line, and the one with the most room that does not.
    pub(super) fn best(
        &self,
        task: &Task<'_>,
        pieces: &Pieces,
        lines: &Lines,
        budget: u64,
    ) -> Option<Offer> {
        if self.rooms.is_empty() {
            return None;
        }
        let mut best: Option<Offer> = None;
        let mut last: Option<usize> = None;
        let mut weighed = 0;
        for id in lines.of_group(self.way.from) {
            let line = &lines.all[id];
            if line.work == 0 {
                continue;
            }
            let is_as_long = last.is_some_and(|last| {
                line.is_as_long(&lines.all[last]) && self.near(last) == self.near(id)
            });
            if is_as_long && !self.is_inside {
                continue;
            }
            weighed += 1;
            if weighed > LINES_WEIGHED {
                break;
            }
            // Its offers would be those of the last, and the first of equals wins.
            if is_as_long && last.is_some_and(|last| line.is_like(&lines.all[last])) {
                continue;
            }
            last = Some(id);
            self.weigh(task, pieces, (id, line), budget, &mut best);
        }
        best
    }

    /// Replaces `best` by an offer for one line that is better.
    fn weigh(
        &self,
        task: &Task<'_>,
        pieces: &Pieces,
        (id, line): (usize, &Line),
        budget: u64,
        best: &mut Option<Offer>,
    ) {
        let most = line.work.min(budget);
        let near = self.near(id);
        // Takers with more room than the line has work take the same tokens.
        let mut top = (0, 0);
        let mut offer = |room: u64, taker: Holder| {
            let work = room.min(most);
            if top.0 != work {
                top = (work, line.tokens_of(task, pieces, work));
            }
            let node = (task.node(taker.worker) - self.way.to.start) as usize;
            let bytes = self.bytes(task, line, top.1, &near[node], taker);
            let offer = Offer {
                price: per_work(bytes, work),
                line: id,
                worker: taker.worker,
                work,
            };
            *best = Some(best.map_or(offer, |best| best.min(offer)));
        };
        for node in self.way.to.clone() {
            let above = self.rooms.partition_point(|room| *room < (node, most, 0));
            for at in [above.checked_sub(1), Some(above)].into_iter().flatten() {
                if let Some(&(there, room, worker)) = self.rooms.get(at)
                    && there == node
                {
                    let taker = Holder {
                        worker,
                        ..Holder::default()
                    };
                    offer(room, taker);
                }
            }
        }
        if self.is_inside {
            for piece in pieces.of_sample(line.sample) {
                let worker = pieces.keeper(&pieces.pieces[piece as usize], line.shard);
                let room = self.room_of(worker);
                if room > 0 {
                    offer(room, pieces.holder(piece, line.shard));
                }
            }
        }
    }

    /// Bytes that `tokens` from the top of a line cost `taker`, less what it has. Q and O between
    /// nodes count twice, and so do keys that its node has not fetched; those that leave their group
    /// weigh more, since all of them leave through the ports of the few workers that hold them.
    fn bytes(&self, task: &Task<'_>, line: &Line, tokens: u32, near: &Near, taker: Holder) -> u64 {
        let price = task.prices[line.shard as usize];
        let low = line.top - tokens;
        let keys = task.keys(line.sample, low, line.top);
        // Tokens from `from` to the top that are held.
        let of = |held: Range<u32>, from: u32| {
            let end = held.end.min(line.top);
            end.saturating_sub(held.start.max(from))
        };
        let own = of(taker.own.start..taker.own.end, low);
        let inside = of(near.own.clone(), low);
        let qo = price.qo * (u64::from(tokens - own) + u64::from(tokens - inside));
        let kv = price.kv * keys.saturating_sub(u64::from(taker.held) + u64::from(own));
        let above = line.top.saturating_sub(near.end);
        let new = keys.min(u64::from(above - of(near.own.clone(), near.end)));
        let new = price.kv * new;
        let through_few = match self.is_inside {
            true => 0,
            false => new / (2 * self.nodes_from),
        };
        qo + kv + new + through_few
    }
}

/// What a node of the line's own group has of its sample.
fn near(task: &Task<'_>, pieces: &Pieces, line: &Line, node: u32) -> Near {
    // All that such a line has is of its node.
    if task.groups.nodes(line.group).len() == 1 {
        let own = 0..u32::MAX;
        return Near { own, end: 0 };
    }
    let mut near = Near::default();
    for id in pieces.of_sample(line.sample) {
        let piece = &pieces.pieces[id as usize];
        let keeper = pieces.keeper(piece, line.shard);
        if task.node(piece.home + (keeper - piece.keeper)) == node {
            if near.own.is_empty() {
                near.own.start = piece.start;
            }
            near.own.end = piece.end;
        }
        let kept = pieces.kept_of(id, line.shard);
        if kept.start < kept.end && task.node(keeper) == node {
            near.end = kept.end;
        }
    }
    near
}

/// Bytes per unit of work, in 2^-32ths.
fn per_work(bytes: u64, work: u64) -> u128 {
    match u32::try_from(bytes) {
        Ok(bytes) => u128::from((u64::from(bytes) << 32) / work),
        Err(_) => (u128::from(bytes) << 32) / u128::from(work),
    }
}
