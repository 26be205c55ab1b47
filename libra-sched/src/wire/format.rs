//! The numbers of format 1, shared by both directions.

use bytemuck::{Pod, Zeroable};

#[cfg(target_endian = "big")]
compile_error!("plan sections are little-endian arrays used in place");

/// Plan format that this library writes and reads.
pub const VERSION: u32 = 1;

pub(super) const MAGIC: [u8; 8] = *b"LIBRAPLN";
pub(super) const ALIGN: usize = 16;
/// Readers that do not know the section must refuse the plan.
pub(super) const REQUIRED: u32 = 1;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(super) struct Header {
    pub(super) magic: [u8; 8],
    pub(super) version: u32,
    pub(super) sections: u32,
    pub(super) bytes: u64,
    pub(super) checksum: u64,
    pub(super) plan_id: [u8; 16],
    pub(super) zeros: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(super) struct Entry {
    pub(super) id: u32,
    pub(super) flags: u32,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) element_bytes: u32,
    pub(super) zero: u32,
}

/// Scalars of a plan.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(super) struct Shape {
    pub(super) seq_tokens: u32,
    pub(super) slots: u32,
    pub(super) ranks: u32,
    pub(super) tensor: u32,
    pub(super) q_heads: u32,
    pub(super) kv_heads: u32,
    pub(super) dim_qk: u32,
    pub(super) dim_v: u32,
    pub(super) shards: u32,
    pub(super) chunks: u32,
    pub(super) mask: u32,
    pub(super) activation_bytes: u32,
    pub(super) statistic_bytes: u32,
    pub(super) kv_fetch: u32,
    /// Numbers of the mask; zero where it has fewer.
    pub(super) mask_numbers: [u32; 3],
    /// GPUs of a node where one copy of a KV range enters it, 0 where every worker fetches alone.
    pub(super) gpus_per_node: u32,
    pub(super) zeros: [u32; 2],
}

/// Sections in file order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub(super) enum Section {
    Shape = 1,
    /// u32 a slot and one more: first sample of each.
    Sequences = 2,
    /// u32 a sample: tokens.
    Samples = 3,
    /// u32 a slot and one more: first fragment of each.
    Slots = 4,
    /// {start, end, rank}.
    Fragments = 5,
    /// u32 a query head: its chunk.
    QHeads = 6,
    /// {first chunk, last chunk} a KV head.
    KvHeads = 7,
    /// [`crate::tiles::ShTile`].
    Tiles = 8,
    /// u32 a tile: its worker.
    Workers = 9,
    /// [`crate::exchange::TileMove`]: Q.
    QMoves = 10,
    /// [`crate::exchange::KvMove`].
    KvMoves = 11,
    /// [`crate::exchange::TileMove`]: O.
    OMoves = 12,
    /// UTF-8 text, not part of the plan id, may be left out.
    Provenance = 13,
    /// [`crate::exchange::KvMove`]: forwards. There exactly where the shape names GPUs of a node.
    Forwards = 14,
    /// u32 a sample: its parent or 2^32 − 1; there only where some sample has one.
    Parents = 15,
}

impl Section {
    /// In every file, first.
    pub(super) const ALWAYS: [Self; 12] = [
        Self::Shape,
        Self::Sequences,
        Self::Samples,
        Self::Slots,
        Self::Fragments,
        Self::QHeads,
        Self::KvHeads,
        Self::Tiles,
        Self::Workers,
        Self::QMoves,
        Self::KvMoves,
        Self::OMoves,
    ];

    /// The section of `id`, if it is one that only some files have.
    pub(super) fn sometimes(id: u32) -> Option<Self> {
        [Self::Provenance, Self::Forwards, Self::Parents]
            .into_iter()
            .find(|&section| section as u32 == id)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Shape => "shape",
            Self::Sequences => "sequences",
            Self::Samples => "samples",
            Self::Slots => "slots",
            Self::Fragments => "fragments",
            Self::QHeads => "q_heads",
            Self::KvHeads => "kv_heads",
            Self::Tiles => "tiles",
            Self::Workers => "workers",
            Self::QMoves => "q_moves",
            Self::KvMoves => "kv_moves",
            Self::OMoves => "o_moves",
            Self::Provenance => "provenance",
            Self::Forwards => "forwards",
            Self::Parents => "parents",
        }
    }

    pub(super) const fn element_bytes(self) -> u32 {
        match self {
            Self::Shape => size_of::<Shape>() as u32,
            Self::Sequences
            | Self::Samples
            | Self::Slots
            | Self::QHeads
            | Self::Workers
            | Self::Parents => 4,
            Self::Fragments | Self::QMoves | Self::OMoves => 12,
            Self::KvHeads => 8,
            Self::Tiles => 40,
            Self::KvMoves | Self::Forwards => 24,
            Self::Provenance => 1,
        }
    }
}
