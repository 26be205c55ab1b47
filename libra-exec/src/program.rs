//! What one worker does, as data: the steps of its pipeline, their messages and attention entries.

use std::ops::Range;

use libra_sched::{BackwardMode, HeadSplit, KeyRanges, Mask, PlanId, WorkerId};

pub use crate::pipeline::{Hops, Leg, Step, pipelined, pipelined_over};

/// A tensor of a worker, (rows, heads, width) row-major.
///
/// Home tensors hold the worker's own tokens (its fragments in token order) and its tensor rank's
/// heads. Staged Q-like tensors hold tiles that came from elsewhere, one shard wide. Staged K-like
/// tensors hold one KV head of one sample after the other, one head wide, each from the first token
/// that arrives or is read to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // The names are the documentation: `Staged` plus the mathematical symbol.
pub enum Tensor {
    Q,
    K,
    V,
    O,
    Lse,
    Delta,
    DO,
    DQ,
    DK,
    DV,
    StagedQ,
    StagedK,
    StagedV,
    StagedO,
    StagedLse,
    StagedDelta,
    StagedDO,
    StagedDQ,
    StagedDK,
    StagedDV,
}

impl Tensor {
    /// Every tensor, in the order of their discriminants.
    pub const ALL: [Self; 20] = [
        Self::Q,
        Self::K,
        Self::V,
        Self::O,
        Self::Lse,
        Self::Delta,
        Self::DO,
        Self::DQ,
        Self::DK,
        Self::DV,
        Self::StagedQ,
        Self::StagedK,
        Self::StagedV,
        Self::StagedO,
        Self::StagedLse,
        Self::StagedDelta,
        Self::StagedDO,
        Self::StagedDQ,
        Self::StagedDK,
        Self::StagedDV,
    ];

    /// Its name in errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Q => "Q",
            Self::K => "K",
            Self::V => "V",
            Self::O => "O",
            Self::Lse => "LSE",
            Self::Delta => "delta",
            Self::DO => "dO",
            Self::DQ => "dQ",
            Self::DK => "dK",
            Self::DV => "dV",
            Self::StagedQ => "staged Q",
            Self::StagedK => "staged K",
            Self::StagedV => "staged V",
            Self::StagedO => "staged O",
            Self::StagedLse => "staged LSE",
            Self::StagedDelta => "staged delta",
            Self::StagedDO => "staged dO",
            Self::StagedDQ => "staged dQ",
            Self::StagedDK => "staged dK",
            Self::StagedDV => "staged dV",
        }
    }

    /// Whether what arrives is added to what is there.
    #[must_use]
    pub const fn accumulates(self) -> bool {
        // At a home shares of destinations, at a relay those that it forwarded to.
        matches!(self, Self::DK | Self::DV | Self::StagedDK | Self::StagedDV)
    }
}

/// Rows × heads × width of a tensor, in elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TensorShape {
    /// Tokens.
    pub rows: usize,
    /// Heads.
    pub heads: usize,
    /// Elements of a head.
    pub width: usize,
}

impl TensorShape {
    /// Elements of the tensor.
    #[must_use]
    pub const fn elements(&self) -> usize {
        self.rows * self.heads * self.width
    }

    /// Elements from one row to the next.
    #[must_use]
    pub const fn stride(&self) -> usize {
        self.heads * self.width
    }
}

/// Consecutive rows and heads of one tensor: what messages and copies are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// The tensor.
    pub tensor: Tensor,
    /// First row.
    pub row: u32,
    /// Number of rows.
    pub rows: u32,
    /// First head of the tensor.
    pub head: u32,
    /// Number of heads.
    pub heads: u32,
}

/// What travels to or from one peer in one leg of one chunk: its parts back to back, each in
/// (row, head, element) order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The other worker.
    pub peer: WorkerId,
    /// Parts of this worker's tensors.
    pub parts: Vec<Part>,
    /// Elements of all parts.
    pub elements: usize,
    /// Bytes as the plan counts them.
    pub bytes: u64,
    /// Whether its parts are zeros once it has set out: a sum that travels on is counted once.
    pub moves_on: bool,
}

/// Messages of one leg of one chunk, by ascending peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// To peers.
    pub sends: Vec<Message>,
    /// From peers.
    pub receives: Vec<Message>,
}

/// A copy (or, into a tensor that accumulates, an addition) within one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalCopy {
    /// Read.
    pub from: Part,
    /// Written.
    pub to: Part,
}

/// One direction through the layer: a pipeline and what its steps move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Inputs of each chunk.
    pub dispatch: Vec<Exchange>,
    /// Inputs of each chunk that travel on within a node; empty where no step asks for them.
    pub relay: Vec<Exchange>,
    /// Gradients of each chunk that are summed within a node before they go home, likewise.
    pub gather: Vec<Exchange>,
    /// Results of each chunk.
    pub back: Vec<Exchange>,
    /// Own keys copied beside fetched ones before a chunk is computed.
    pub copies_in: Vec<Vec<LocalCopy>>,
    /// Own shares of finished gradients added at home after a chunk is computed.
    pub copies_out: Vec<Vec<LocalCopy>>,
}

impl Pass {
    /// Messages of one leg of one chunk.
    #[must_use]
    pub fn exchange(&self, leg: Leg, chunk: u32) -> &Exchange {
        match leg {
            Leg::Dispatch => &self.dispatch[chunk as usize],
            Leg::Relay => &self.relay[chunk as usize],
            Leg::Gather => &self.gather[chunk as usize],
            Leg::Return => &self.back[chunk as usize],
        }
    }

    /// Bytes that this worker sends.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        let inward = self.dispatch.iter().chain(&self.relay);
        let outward = self.gather.iter().chain(&self.back);
        let all = inward.chain(outward);
        all.flat_map(|exchange| &exchange.sends)
            .map(|message| message.bytes)
            .sum()
    }
}

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

/// Everything one worker does for one layer, forward and backward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankProgram {
    /// The worker.
    pub worker: WorkerId,
    /// Workers of the pool.
    pub workers: u32,
    /// Plan that was lowered: peers compare it before the first byte moves.
    pub plan_id: PlanId,
    /// Head counts, shards and chunks.
    pub heads: HeadSplit,
    /// Which keys a query reads.
    pub mask: Mask,
    /// What stays from forward to backward.
    pub mode: BackwardMode,
    /// First query head of this worker's own tensors.
    pub first_q_head: u32,
    /// Shapes by tensor.
    pub shapes: [TensorShape; Tensor::ALL.len()],
    /// Attention entries by (shard, slot, token), step by step where steps have their own.
    pub entries: Vec<Entry>,
    /// Which of them a step computes.
    pub computes: Computes,
    /// Pieces that entries point into.
    pub pieces: Vec<KeyPiece>,
    /// Ancestors that entries point into.
    pub ancestors: Vec<Ancestor>,
    /// Views that pieces and ancestors point into.
    pub kv_views: Vec<KvView>,
    /// Forward.
    pub forward: Pass,
    /// Backward.
    pub backward: Pass,
}

impl RankProgram {
    /// Shape of `tensor`.
    #[must_use]
    pub fn shape(&self, tensor: Tensor) -> TensorShape {
        self.shapes[tensor as usize]
    }

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

    /// Query–key pairs × heads of one chunk.
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
