//! Samples cut where workers' tokens meet, and which shards of them are free to go.

use std::ops::Range;

use super::Task;
use crate::ids::SampleId;

/// The part of a sample in one fragment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) sample: u32,
    pub(super) slot: u32,
    /// First token within the sample.
    pub(super) start: u32,
    /// One past the last.
    pub(super) end: u32,
    /// Where its tokens live: the worker of the first tensor rank.
    pub(super) home: u32,
    /// Who computes it unless it is free: the home, or the worker of the piece before.
    pub(super) keeper: u32,
}

/// Free tokens of one piece in one shard: `start..end` within the sample, from the top down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Free {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// A worker that kept or freed tokens of a sample in a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) worker: u32,
    /// Up to where it has the keys, since it keeps tokens that read them.
    pub(super) held: u32,
    /// Its own tokens that are free: their Q and O would not move.
    pub(super) own: Free,
}

const NO_ROW: u32 = u32::MAX;

/// All pieces of a pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    pub(super) pieces: Vec<Piece>,
    /// First piece of each sample, and their count.
    first: Vec<u32>,
    /// Pieces of which something was freed, ascending once all are known.
    pub(super) freed: Vec<u32>,
    /// Row of each piece in `free`; [`NO_ROW`] where nothing was freed.
    row: Vec<u32>,
    /// What is free of each freed piece in each shard; everything below stays.
    free: Vec<Free>,
    /// Work of each worker without what is free.
    pub(super) loads: Vec<u64>,
    shards: u32,
    shards_per_rank: u32,
    /// Tensor ranks.
    ranks: u32,
    /// Tensor rank of each shard.
    rank_of: Vec<u32>,
    /// Pieces of the worker at hand, by work a token.
    order: Vec<(u64, u32)>,
    /// Pieces of each keeper that is above its target, but for those that were gathered.
    kept: Vec<Vec<u32>>,
}

impl Pieces {
    /// Pieces of every sample, each at its home or with the worker that has its keys.
    pub(super) fn cut(&mut self, task: &Task<'_>) {
        let (pool, layout) = (task.problem.pool, task.problem.layout);
        self.shards = task.problem.heads.shards();
        self.ranks = layout.tensor();
        self.shards_per_rank = self.shards / self.ranks;
        self.rank_of.clear();
        let ranks = (0..self.shards).map(|shard| shard / self.shards_per_rank);
        self.rank_of.extend(ranks);
        self.pieces.clear();
        self.first.clear();
        for slot in 0..layout.slots() {
            let fragments = layout.fragments(slot);
            let mut near = 0;
            for sample in pool.samples_of(slot as usize) {
                self.first.push(self.pieces.len() as u32);
                let tokens = pool.tokens(SampleId::new(sample));
                while fragments[near].end <= tokens.start {
                    near += 1;
                }
                for fragment in fragments[near..]
                    .iter()
                    .take_while(|f| f.start < tokens.end)
                {
                    let home = layout.worker(slot, fragment.rank, 0).0;
                    self.pieces.push(Piece {
                        sample: sample as u32,
                        slot,
                        start: tokens.start.max(fragment.start) - tokens.start,
                        end: tokens.end.min(fragment.end) - tokens.start,
                        home,
                        keeper: home,
                    });
                }
                self.hand_tail_back(task);
            }
        }
        self.first.push(self.pieces.len() as u32);
        self.freed.clear();
        self.free.clear();
        self.row.clear();
        self.row.resize(self.pieces.len(), NO_ROW);
        self.weigh(task);
    }

    /// The last piece of the newest sample goes to the piece before, where its Q, O and keys are
    /// fewer bytes than the keys before it.
    fn hand_tail_back(&mut self, task: &Task<'_>) {
        let first = *self.first.last().expect("pushed before") as usize;
        let [.., before, tail] = &mut self.pieces[first..] else {
            return;
        };
        let price = task.prices[0];
        let own = u64::from(tail.end - tail.start);
        let read = task.keys(tail.sample, tail.start, tail.end);
        if (price.qo + price.kv) * own < price.kv * read.saturating_sub(own) {
            tail.keeper = before.keeper;
        }
    }

    fn weigh(&mut self, task: &Task<'_>) {
        let workers = task.targets.len();
        self.loads.clear();
        self.loads.resize(workers, 0);
        for piece in &self.pieces {
            let work = task.work_of(piece);
            for rank in 0..self.ranks {
                let worker = (piece.keeper + rank) as usize;
                self.loads[worker] += work * u64::from(self.shards_per_rank);
            }
        }
    }

    /// Whether a keeper is above its target in some tensor rank.
    pub(super) fn is_above(&self, task: &Task<'_>, keeper: u32) -> bool {
        let mut workers = keeper..keeper + self.ranks;
        workers.any(|worker| self.loads[worker as usize] > task.targets[worker as usize])
    }

    /// Finds the pieces of workers above their target, but for those that are free.
    fn find_kept(&mut self, task: &Task<'_>) {
        self.kept.iter_mut().for_each(Vec::clear);
        self.kept.resize(task.targets.len(), Vec::new());
        for (id, piece) in (0..).zip(&self.pieces) {
            if self.row[id as usize] != NO_ROW {
                continue;
            }
            for rank in 0..self.ranks {
                let worker = (piece.keeper + rank) as usize;
                if self.loads[worker] > task.targets[worker] {
                    self.kept[worker].push(id);
                }
            }
        }
    }

    /// Workers above their target free whole shards, most work a token first.
    pub(super) fn free(&mut self, task: &Task<'_>) {
        self.find_kept(task);
        for worker in 0..task.targets.len() {
            let target = task.targets[worker];
            if self.loads[worker] <= target {
                continue;
            }
            let mut order = std::mem::take(&mut self.order);
            order.clear();
            order.extend(self.kept[worker].iter().map(|&id| {
                let piece = &self.pieces[id as usize];
                (task.density(piece.sample, piece.end - 1), id)
            }));
            // Equal ones from the last on: later pieces read more.
            order.sort_unstable_by(|a, b| b.cmp(a));
            for &(_, id) in &order {
                if self.loads[worker] <= target {
                    break;
                }
                self.free_shards(task, worker as u32, id);
            }
            self.order = order;
        }
        self.freed.sort_unstable();
    }

    /// Frees as many shards of a piece as bring its keeper to the target, the last ones first. Where
    /// none would stay, the lowest tokens of one stay as far as there is room.
    fn free_shards(&mut self, task: &Task<'_>, worker: u32, id: u32) {
        let piece = self.pieces[id as usize];
        let each = task.work(piece.sample, piece.start, piece.end);
        if each == 0 {
            return;
        }
        if self.row[id as usize] == NO_ROW {
            self.add_row(id, piece.end..piece.end);
        }
        let first = (worker - piece.keeper) * self.shards_per_rank;
        let excess = self.loads[worker as usize] - task.targets[worker as usize];
        let count = excess.div_ceil(each).min(self.shards_per_rank.into()) as u32;
        for shard in (first..first + self.shards_per_rank)
            .rev()
            .take(count as usize)
        {
            let at = self.at(id, shard);
            self.free[at] = Free {
                start: piece.start,
                end: piece.end,
            };
            self.loads[worker as usize] -= each;
        }
        let room = task.targets[worker as usize].saturating_sub(self.loads[worker as usize]);
        if count == self.shards_per_rank && room > each / 4 {
            let start = lowest(task, piece.sample, piece.start..piece.end, room);
            let at = self.at(id, first);
            self.free[at].start = start;
            self.loads[worker as usize] += task.work(piece.sample, piece.start, start);
        }
    }

    /// Frees a piece of which nothing was free in all shards.
    pub(super) fn free_all(&mut self, task: &Task<'_>, id: u32) {
        let piece = self.pieces[id as usize];
        let work = task.work_of(&piece);
        self.add_row(id, piece.start..piece.end);
        for rank in 0..self.ranks {
            let worker = (piece.keeper + rank) as usize;
            self.loads[worker] -= work * u64::from(self.shards_per_rank);
        }
    }

    /// `tokens` of a piece are free in every shard.
    fn add_row(&mut self, id: u32, tokens: Range<u32>) {
        self.row[id as usize] = self.freed.len() as u32;
        self.freed.push(id);
        let free = Free {
            start: tokens.start,
            end: tokens.end,
        };
        self.free.extend((0..self.shards).map(|_| free));
    }

    /// Place in `free` of a piece that has a row.
    fn at(&self, piece: u32, shard: u32) -> usize {
        self.row[piece as usize] as usize * self.shards as usize + shard as usize
    }

    /// Worker that keeps a piece in `shard`.
    pub(super) fn keeper(&self, piece: &Piece, shard: u32) -> u32 {
        piece.keeper + self.rank_of[shard as usize]
    }

    /// Pieces of a sample.
    pub(super) fn of_sample(&self, sample: u32) -> Range<u32> {
        self.first[sample as usize]..self.first[sample as usize + 1]
    }

    /// The same.
    pub(super) fn pieces_of(&self, sample: u32) -> &[Piece] {
        let ids = self.of_sample(sample);
        &self.pieces[ids.start as usize..ids.end as usize]
    }

    /// What is free of a piece in a shard.
    pub(super) fn free_of(&self, piece: u32, shard: u32) -> Free {
        if self.row[piece as usize] == NO_ROW {
            let end = self.pieces[piece as usize].end;
            return Free { start: end, end };
        }
        self.free[self.at(piece, shard)]
    }

    /// What its keeper keeps of a piece in a shard: what is below the free tokens.
    pub(super) fn kept_of(&self, piece: u32, shard: u32) -> Free {
        Free {
            start: self.pieces[piece as usize].start,
            end: self.free_of(piece, shard).start,
        }
    }

    /// The workers of a sample in `shard`, at their place, and what each has and had of it.
    pub(super) fn holders(&self, sample: u32, shard: u32) -> impl Iterator<Item = Holder> {
        self.of_sample(sample).map(move |id| self.holder(id, shard))
    }

    /// The worker of a piece.
    pub(super) fn holder(&self, piece: u32, shard: u32) -> Holder {
        let kept = self.kept_of(piece, shard);
        Holder {
            worker: self.keeper(&self.pieces[piece as usize], shard),
            held: if kept.start < kept.end { kept.end } else { 0 },
            own: self.free_of(piece, shard),
        }
    }

    /// Everything from `start` on of a piece's free tokens is taken.
    pub(super) fn take_down_to(&mut self, piece: u32, shard: u32, start: u32) {
        let at = self.at(piece, shard);
        self.free[at].end = start;
    }
}

/// The greatest multiple of the grain (as a position of the sequence) up to which tokens from `start`
/// have at most `most` work; `start` where none has as little.
fn lowest(task: &Task<'_>, sample: u32, tokens: Range<u32>, most: u64) -> u32 {
    let low = task.end_of(sample, tokens.clone(), most.saturating_add(1)) - 1;
    task.cut_below(sample, low, tokens.end - 1)
        .max(tokens.start)
}
