//! What one worker does, as data: the steps of its pipeline, their messages and attention entries.

use libra_sched::{BackwardMode, HeadSplit, Mask, PlanId, WorkerId};

pub use crate::entries::{Ancestor, Computes, Entry, KeyPiece, KeySource, KvView};
pub use crate::pipeline::{Hops, Leg, Step, pipelined, pipelined_over};

/// A tensor of a worker, (rows, heads, width) row-major.
///
/// Home tensors hold the worker's own tokens (its fragments in token order) and its tensor rank's
/// heads. Staged Q-like tensors hold tiles that came from elsewhere, one shard wide. Staged K-like
/// tensors hold one KV head of one sample after the other, one head wide, each from the first token
/// that arrives or is read to the last; those of steps hold rows of all KV heads, buffer after buffer.
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

/// What travels to or from one peer in one leg of one chunk, or in one exchange of steps: its parts back to back, each in
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
}
