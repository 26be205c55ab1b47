//! Late tokens of long samples go free in all shards, so that whoever takes some reads their keys once.
//!
//! Where every worker of a long sample keeps its own late tokens, each of them reads nearly all keys
//! in every shard that it keeps. If they exchange shards instead, each computes the late tokens of
//! several in fewer shards: a piece that leaves its home costs Q and O of its tokens, and saves the
//! keys before them. So a *late* piece is one whose keys are more bytes than its Q and O, about.
//!
//! This pays where a worker's target holds more than one such piece of a shard; else it would read as many
//! keys for one piece that is not its own. O(pieces).

use super::Task;
use super::pieces::{Piece, Pieces};

/// A piece is late whose keys are more than this part of the bytes of its Q and O: others than its
/// home may take it anyway.
const LATE: (u64, u64) = (4, 5);
/// Late pieces of a shard that the target of their last worker holds at least: so many halves.
const HALVES_HELD: u128 = 3;

impl Pieces {
    /// Frees the late pieces of every sample of which some worker is above its target.
    pub(super) fn gather(&mut self, task: &Task<'_>) {
        for sample in 0..task.problem.pool.samples() as u32 {
            let ids = self.of_sample(sample);
            if ids.len() < 2 {
                continue;
            }
            let first =
                ids.start + self.pieces_of(sample).partition_point(|p| !late(task, p)) as u32;
            let late = first..ids.end;
            if late.len() < 2 || !self.pays(task, late.clone()) {
                continue;
            }
            for id in late {
                self.free_all(task, id);
            }
        }
    }

    /// Whether a worker of these pieces is above its target, and the last one's holds more than its own.
    fn pays(&self, task: &Task<'_>, late: std::ops::Range<u32>) -> bool {
        let last = self.pieces[late.end as usize - 1];
        let each = task.work(last.sample, last.start, last.end);
        let target = task.targets[last.keeper as usize];
        let mut keepers = late.map(|id| self.pieces[id as usize].keeper);
        2 * u128::from(target) >= HALVES_HELD * u128::from(each)
            && keepers.any(|keeper| self.is_above(task, keeper))
    }
}

/// Whether the keys of a piece that its home has to fetch are about as many bytes as its Q and O.
fn late(task: &Task<'_>, piece: &Piece) -> bool {
    let price = task.prices[0];
    let own = u64::from(piece.end - piece.start);
    let read = task.keys(piece.sample, piece.start, piece.end);
    price.kv * read.saturating_sub(own) * LATE.1 > price.qo * own * LATE.0
}
