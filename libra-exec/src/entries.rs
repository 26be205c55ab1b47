//! Attention entries of a program: which queries, which keys, and which step computes them.

use std::ops::Range;

use libra_sched::{KeyRanges, Mask};

use crate::program::RankProgram;

/// Consecutive queries of one sample in one shard, and the keys they read: all of every ancestor of
/// the sample, from the root on, and then some of its own.
///
/// Key ranges of different entries overlap: a sample's keys serve all its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Head shard.
    pub shard: u32,
    /// Whether Q and O are staged, or the worker's own.
    pub staged: bool,
    /// First row of Q and O.
    pub row: u32,
    /// Number of queries.
    pub rows: u32,
    /// Sample-local position of the first query.
    pub position: u32,
    /// Tokens of the sample.
    pub len: u32,
    /// Sample-local keys of its own sample that some query of the entry reads, and no other, in whatever step.
    pub keys: KeyRanges,
    /// First of the pieces of its own sample in the program's list, ascending: it reads these keys and no others.
    pub pieces: u32,
    /// Number of pieces.
    pub piece_count: u32,
    /// Whether O and log-sum-exp hold what an earlier step's keys gave: the entry's are merged into them.
    pub continues: bool,
    /// First of the sample's ancestors in the program's list, root first.
    pub above: u32,
    /// Number of ancestors.
    pub above_count: u32,
}

/// Consecutive tokens of a sample whose keys its entries read where the mask lets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPiece {
    /// First sample-local token.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// Index of the view of the shard's first KV head; the others follow.
    pub kv_view: u32,
}

/// A sample whose keys all queries of an entry of another one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// Tokens of the sample.
    pub len: u32,
    /// As [`KeyPiece::kv_view`].
    pub kv_view: u32,
}

/// Where a query finds some of its keys.
#[derive(Clone, Copy, Debug)]
pub struct KeySource<'a> {
    /// One KV head of a sample.
    pub view: &'a KvView,
    /// First token that is read.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// Whether every query reads all of them, as those of an ancestor, or the mask decides.
    pub is_whole: bool,
}

/// What one compute step covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Computes {
    /// Every entry, in the heads of the step's chunk.
    Chunks,
    /// In all heads the entries after the step before: where those of each step end.
    Blocks(Vec<u32>),
}

/// Where one KV head of one sample lies: row = sample-local token − `first` + `row`, for the tokens
/// that some entry reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvView {
    /// Whether K and V are staged, or the worker's own.
    pub staged: bool,
    /// Sample-local token from which on the sample is there.
    pub first: u32,
    /// Row of that token.
    pub row: u32,
    /// Head of the tensor.
    pub head: u32,
}

impl RankProgram {
    /// Head of Q-like tensors at which query head `head` of `entry` lies.
    #[must_use]
    pub fn q_column(&self, entry: &Entry, head: u32) -> u32 {
        let first = if entry.staged {
            entry.shard * self.heads.shard_width()
        } else {
            self.first_q_head
        };
        head - first
    }

    /// Where query head `head` of `entry` finds its keys, in the order in which it reads them:
    /// ancestors from the root on, then the entry's own sample.
    pub fn key_sources(&self, entry: &Entry, head: u32) -> impl Iterator<Item = KeySource<'_>> {
        let first = self.heads.kv_of_shard(entry.shard).start;
        let place = self.heads.kv_of_head(head) - first;
        let view = move |kv_view: u32| &self.kv_views[(kv_view + place) as usize];
        let above = entry.above as usize..(entry.above + entry.above_count) as usize;
        let whole = self.ancestors[above].iter().map(move |a| KeySource {
            view: view(a.kv_view),
            start: 0,
            end: a.len,
            is_whole: true,
        });
        let own = self.pieces_of(entry).iter().map(move |piece| KeySource {
            view: view(piece.kv_view),
            start: piece.start,
            end: piece.end,
            is_whole: false,
        });
        whole.chain(own)
    }

    /// Keys of `source` that `queries` of `entry`, counted from its first, read.
    #[must_use]
    pub fn keys(&self, entry: &Entry, source: &KeySource<'_>, queries: Range<usize>) -> KeyRanges {
        if source.is_whole {
            return Mask::Full.keys(source.end, 0..source.end);
        }
        let position = |query: usize| entry.position + query as u32;
        let queries = position(queries.start)..position(queries.end);
        self.mask
            .keys(entry.len, queries)
            .within(source.start, source.end)
    }

    /// Query–key pairs × heads of all entries, in `chunk_heads` heads of each.
    #[must_use]
    pub fn pairs(&self, chunk_heads: u32) -> u64 {
        let pairs: u64 = self.entries.iter().map(|entry| self.pairs_of(entry)).sum();
        pairs * u64::from(chunk_heads)
    }

    /// Query–key pairs of one head of `entry`.
    #[must_use]
    pub fn pairs_of(&self, entry: &Entry) -> u64 {
        let above = entry.above as usize..(entry.above + entry.above_count) as usize;
        let above: u64 = self.ancestors[above].iter().map(|a| u64::from(a.len)).sum();
        let queries = entry.position..entry.position + entry.rows;
        let own = self.pieces_of(entry).iter().map(|piece| {
            if piece.end - piece.start == entry.len {
                self.mask.pairs(entry.len, queries.clone())
            } else {
                pairs_between(
                    self.mask,
                    entry.len,
                    queries.clone(),
                    piece.start..piece.end,
                )
            }
        });
        own.sum::<u64>() + above * u64::from(entry.rows)
    }

    fn pieces_of(&self, entry: &Entry) -> &[KeyPiece] {
        &self.pieces[entry.pieces as usize..(entry.pieces + entry.piece_count) as usize]
    }

    /// Entries that compute step `step` covers.
    ///
    /// # Panics
    /// If there is no such step.
    #[must_use]
    pub fn entries_of(&self, step: u32) -> &[Entry] {
        match &self.computes {
            Computes::Chunks => &self.entries,
            Computes::Blocks(ends) => {
                let step = step as usize;
                let start = step.checked_sub(1).map_or(0, |before| ends[before]);
                &self.entries[start as usize..ends[step] as usize]
            }
        }
    }

    /// Number of compute steps of a pass.
    #[must_use]
    pub const fn compute_steps(&self) -> u32 {
        match &self.computes {
            Computes::Chunks => self.heads.chunks(),
            Computes::Blocks(ends) => ends.len() as u32,
        }
    }

    /// Query–key pairs × query heads of a whole pass.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.pairs(self.heads.shard_width())
    }

    /// Query heads of `entry` that compute step `step` covers.
    #[must_use]
    pub const fn heads_of(&self, entry: &Entry, step: u32) -> Range<u32> {
        match self.computes {
            Computes::Chunks => self.heads.q_of_chunk(entry.shard, step),
            Computes::Blocks(_) => self.heads.q_of_shard(entry.shard),
        }
    }
}

/// Pairs of `queries` and `keys` of a sample of `len` tokens. O(1) for causal and full attention, else O(queries).
fn pairs_between(mask: Mask, len: u32, queries: Range<u32>, keys: Range<u32>) -> u64 {
    match mask {
        Mask::Causal => {
            // Of the keys from one on, query x reads x + 1 less those before it.
            let triangle = |n: u32| u64::from(n) * (u64::from(n) + 1) / 2;
            let up_to = |query: u32, key: u32| triangle(query.saturating_sub(key));
            let from = |key| up_to(queries.end, key) - up_to(queries.start, key);
            from(keys.start) - from(keys.end)
        }
        Mask::Full => (queries.end - queries.start) as u64 * (keys.end - keys.start) as u64,
        mask => {
            let read = |query| mask.keys_of(len, query).within(keys.start, keys.end).len();
            queries.map(|query| u64::from(read(query))).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_those_of_the_definition_key_by_key() {
        let window = Mask::window(3, 1).expect("legal");
        let chunked = Mask::chunked(4).expect("legal");
        let masks = [
            Mask::Causal,
            Mask::Full,
            window,
            chunked,
            Mask::two_sided(2, 1),
        ];
        for mask in masks {
            for (a, b, c, d) in [
                (0, 9, 0, 9),
                (2, 5, 3, 9),
                (5, 9, 0, 4),
                (0, 3, 6, 9),
                (4, 4, 0, 9),
            ] {
                let reads =
                    |query: u32| (c..d).filter(move |&key| mask.keys_of(9, query).contains(key));
                let expected = (a..b).map(|query| reads(query).count() as u64).sum::<u64>();
                assert_eq!(pairs_between(mask, 9, a..b, c..d), expected, "{mask}");
            }
        }
    }
}
