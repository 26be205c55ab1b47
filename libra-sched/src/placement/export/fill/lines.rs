//! Lines: what is free of a sample in a shard.

use std::cmp::Reverse;
use std::ops::Range;

use crate::placement::export::Task;
use crate::placement::export::pieces::Pieces;

/// Free tokens of one sample in one shard, at the nodes of one group.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) sample: u32,
    pub(super) shard: u32,
    pub(super) group: u32,
    /// The first shard of the sample whose workers have the same of it, at the same price.
    like: u32,
    /// From the lowest piece with free tokens to the highest.
    pub(super) pieces: Range<u32>,
    /// Work of the highest token at the start.
    density: u64,
    /// Work that is left.
    pub(super) work: u64,
    /// Tokens that are left.
    pub(super) tokens: u32,
    /// One past the highest token that is left.
    pub(super) top: u32,
    /// Of the highest piece with free tokens.
    last: Part,
}

/// Free tokens of one piece.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    tokens: u32,
    work: u64,
    /// Of a token on average.
    each: u64,
}

impl Part {
    fn new(task: &Task<'_>, sample: u32, free: Range<u32>) -> Self {
        let tokens = free.end - free.start;
        let work = task.work(sample, free.start, free.end);
        let each = (work / u64::from(tokens)).max(1);
        Self { tokens, work, each }
    }

    /// About as many of its tokens as have `work`.
    fn tokens_of(self, work: u64) -> u32 {
        (work / self.each).min(self.tokens.into()) as u32
    }
}

impl Line {
    /// Whether whatever holds for one of two lines that are as long holds for the other.
    pub(super) const fn is_like(&self, other: &Self) -> bool {
        self.like == other.like
    }

    /// Whether two lines are of one sample, and as much is left of them.
    pub(super) fn is_as_long(&self, other: &Self) -> bool {
        let left = |line: &Self| (line.sample, line.work, line.top);
        left(self) == left(other)
    }

    /// What of a piece belongs to it, if anything.
    pub(super) fn part(&self, task: &Task<'_>, pieces: &Pieces, piece: u32) -> Option<Range<u32>> {
        let free = pieces.free_of(piece, self.shard);
        let is_part =
            free.start < free.end && group_of(task, pieces, piece, self.shard) == self.group;
        is_part.then_some(free.start..free.end)
    }

    /// About as many tokens from its top as have `work`: 1 at least.
    pub(super) fn tokens_of(&self, task: &Task<'_>, pieces: &Pieces, work: u64) -> u32 {
        let tokens = if work >= self.work {
            self.tokens
        } else if work < self.last.work {
            self.last.tokens_of(work)
        } else {
            self.tokens_below(task, pieces, work)
        };
        tokens.clamp(1, self.top)
    }

    /// The same where its highest piece has less.
    fn tokens_below(&self, task: &Task<'_>, pieces: &Pieces, work: u64) -> u32 {
        let (mut tokens, mut left) = (0, work);
        for piece in self.pieces.clone().rev() {
            let Some(free) = self.part(task, pieces, piece) else {
                continue;
            };
            let part = Part::new(task, self.sample, free);
            if part.work > left {
                return tokens + part.tokens_of(left);
            }
            tokens += part.tokens;
            left -= part.work;
        }
        tokens
    }

    /// Counts what is left of it.
    fn count(&mut self, task: &Task<'_>, pieces: &Pieces) {
        let ids = self.pieces.clone();
        (self.work, self.tokens, self.top) = (0, 0, 0);
        self.pieces.end = ids.start;
        for id in ids {
            if let Some(free) = self.part(task, pieces, id) {
                self.add(task, id, free);
            }
        }
    }

    /// Counts the free tokens of a piece above all others.
    fn add(&mut self, task: &Task<'_>, piece: u32, free: Range<u32>) {
        self.top = free.end;
        self.last = Part::new(task, self.sample, free);
        self.work += self.last.work;
        self.tokens += self.last.tokens;
        self.pieces.end = piece + 1;
    }
}

/// Lines of all groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    /// By group, then most work a token first, then sample and shard.
    pub(super) all: Vec<Line>,
    /// First line of each group with work, and the end of the group's.
    of_group: Vec<Range<usize>>,
    /// Shards of the sample at hand that differ from those before.
    likes: Vec<u32>,
}

impl Lines {
    /// Lines of everything that is free.
    pub(super) fn lay_out(&mut self, task: &Task<'_>, pieces: &Pieces) {
        self.all.clear();
        let sample_of = |id: u32| pieces.pieces[id as usize].sample;
        for of_sample in pieces.freed.chunk_by(|&a, &b| sample_of(a) == sample_of(b)) {
            let sample = sample_of(of_sample[0]);
            self.likes.clear();
            for shard in 0..task.problem.heads.shards() {
                let begin = self.all.len();
                let like = self.like(task, pieces, sample, shard);
                for &id in of_sample {
                    let free = pieces.free_of(id, shard);
                    if free.start == free.end {
                        continue;
                    }
                    let empty = Line {
                        sample,
                        shard,
                        group: group_of(task, pieces, id, shard),
                        like,
                        pieces: id..id,
                        density: 0,
                        work: 0,
                        tokens: 0,
                        top: 0,
                        last: Part::default(),
                    };
                    let line = self.line_at(begin, empty);
                    line.add(task, id, free.start..free.end);
                }
                for line in &mut self.all[begin..] {
                    line.density = task.density(sample, line.top - 1);
                }
            }
        }
        self.all
            .sort_unstable_by_key(|l| (l.group, Reverse(l.density), l.sample, l.shard));
        self.of_group.clear();
        let mut end = 0;
        for group in 0..task.groups.count() {
            let begin = end;
            end += self.all[begin..].partition_point(|line| line.group == group);
            self.of_group.push(begin..end);
        }
    }

    /// The first shard of a sample whose workers keep and freed the same of it, at the same price.
    fn like(&mut self, task: &Task<'_>, pieces: &Pieces, sample: u32, shard: u32) -> u32 {
        let is_like = |&other: &u32| {
            let price = |shard: u32| task.prices[shard as usize];
            let holders = |shard| pieces.holders(sample, shard);
            price(other) == price(shard) && holders(other).eq(holders(shard))
        };
        let known = self.likes.iter().copied().find(is_like);
        known.unwrap_or_else(|| {
            self.likes.push(shard);
            shard
        })
    }

    /// The line of the group of `empty` among those from `begin` on, itself if there is none.
    fn line_at(&mut self, begin: usize, empty: Line) -> &mut Line {
        let mut lines = self.all[begin..].iter();
        let known = lines.position(|line| line.group == empty.group);
        let at = known.map_or(self.all.len(), |at| begin + at);
        if known.is_none() {
            self.all.push(empty);
        }
        &mut self.all[at]
    }

    /// Lines of a group from the first with work on.
    pub(super) fn of_group(&self, group: u32) -> Range<usize> {
        self.of_group[group as usize].clone()
    }

    /// Work that a group freed and that is left.
    pub(super) fn free_in(&self, group: u32) -> u64 {
        let lines = self.of_group(group);
        self.all[lines].iter().map(|line| line.work).sum()
    }

    /// Counts what is left of a line of which something was taken.
    pub(super) fn recount(&mut self, task: &Task<'_>, pieces: &Pieces, id: usize) {
        self.all[id].count(task, pieces);
        let lines = &mut self.of_group[self.all[id].group as usize];
        while lines.start < lines.end && self.all[lines.start].work == 0 {
            lines.start += 1;
        }
    }
}

/// Group of the worker that keeps a piece in a shard.
fn group_of(task: &Task<'_>, pieces: &Pieces, piece: u32, shard: u32) -> u32 {
    let keeper = pieces.keeper(&pieces.pieces[piece as usize], shard);
    task.groups.of(task.node(keeper))
}
