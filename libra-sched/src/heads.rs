//! How the head axis is cut: shards for placement, chunks for the pipeline.
//!
//! *Paper*: §4.3 (head shards), §4.5 (equal-head chunks). The `H` shards are equal ranges of query
//! heads; each shard is cut into `M` equal chunks. A KV head serves `h_q / h_kv` query heads.

use std::ops::Range;

use crate::error::{Error, check_divides, check_limit, check_positive};

/// Largest number of query heads.
pub const MAX_HEADS: u32 = 1 << 16;
/// Largest width of one head in elements.
pub const MAX_HEAD_DIM: u32 = 1 << 16;

/// The head axis of one attention layer: head counts, widths, shards and chunks, checked.
///
/// KV heads are grouped into **spans**: the coarsest partition of `0..h_kv` in which every shard
/// reads whole spans. Where `H | h_kv` a span is exactly a shard's KV heads; where `h_kv | H` it is
/// one KV head, shared by `H / h_kv` shards.
///
/// ```
/// use libra_sched::HeadSplit;
/// let heads = HeadSplit::new(32, 8, 128, 128, 2, 4)?;
/// assert_eq!(heads.shard_width(), 16);
/// assert_eq!(heads.chunk_width(), 4);
/// assert_eq!(heads.kv_of_shard(1), 4..8);
/// # Ok::<(), libra_sched::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadSplit {
    q_heads: u32,
    kv_heads: u32,
    dim_qk: u32,
    dim_v: u32,
    shards: u32,
    chunks: u32,
    /// KV heads of each span, ascending.
    spans: Vec<(u32, u32)>,
    /// Spans of each shard.
    shard_spans: Vec<(u32, u32)>,
    /// First and last chunk (over all shards) that reads each KV head.
    kv_chunks: Vec<(u32, u32)>,
}

impl HeadSplit {
    /// `q_heads` query heads over `kv_heads` KV heads of `dim_qk` (Q, K) and `dim_v` (V, O)
    /// elements, `shards` = H and `chunks` = M.
    ///
    /// # Errors
    /// Unless `h_kv | h_q`, `H | h_q` and `M | h_q/H`, all at least 1 and within
    /// [`MAX_HEADS`] and [`MAX_HEAD_DIM`]; the error lists the legal values.
    pub fn new(
        q_heads: u32,
        kv_heads: u32,
        dim_qk: u32,
        dim_v: u32,
        shards: u32,
        chunks: u32,
    ) -> Result<Self, Error> {
        check_limit("h_q", q_heads.into(), MAX_HEADS.into())?;
        check_divides("h_q", q_heads.into(), "h_kv", kv_heads.into())?;
        check_positive("d_qk", dim_qk.into())?;
        check_positive("d_v", dim_v.into())?;
        check_limit("d_qk", dim_qk.into(), MAX_HEAD_DIM.into())?;
        check_limit("d_v", dim_v.into(), MAX_HEAD_DIM.into())?;
        check_divides("h_q", q_heads.into(), "H", shards.into())?;
        check_divides("h_q/H", (q_heads / shards).into(), "M", chunks.into())?;
        let mut split = Self {
            q_heads,
            kv_heads,
            dim_qk,
            dim_v,
            shards,
            chunks,
            spans: Vec::new(),
            shard_spans: Vec::new(),
            kv_chunks: Vec::new(),
        };
        split.cut_spans();
        split.find_kv_chunks();
        Ok(split)
    }

    fn cut_spans(&mut self) {
        let mut is_edge = vec![false; self.kv_heads as usize + 1];
        for kv in (0..self.shards).map(|s| self.kv_of_shard(s)) {
            is_edge[kv.start as usize] = true;
            is_edge[kv.end as usize] = true;
        }
        let edges: Vec<u32> = (0..=self.kv_heads)
            .filter(|&head| is_edge[head as usize])
            .collect();
        self.spans = edges.windows(2).map(|e| (e[0], e[1])).collect();
        let position = |head: u32| edges.partition_point(|&e| e < head) as u32;
        self.shard_spans = (0..self.shards)
            .map(|s| self.kv_of_shard(s))
            .map(|kv| (position(kv.start), position(kv.end)))
            .collect();
    }

    fn find_kv_chunks(&mut self) {
        self.kv_chunks = vec![(u32::MAX, 0); self.kv_heads as usize];
        for head in 0..self.q_heads {
            let chunk = self.chunk_of_head(head);
            let kv_head = self.kv_of_head(head) as usize;
            let (first, last) = &mut self.kv_chunks[kv_head];
            *first = chunk.min(*first);
            *last = chunk.max(*last);
        }
    }

    /// Query heads, h_q.
    #[must_use]
    pub const fn q_heads(&self) -> u32 {
        self.q_heads
    }

    /// KV heads, h_kv.
    #[must_use]
    pub const fn kv_heads(&self) -> u32 {
        self.kv_heads
    }

    /// Width of a Q or K head in elements.
    #[must_use]
    pub const fn dim_qk(&self) -> u32 {
        self.dim_qk
    }

    /// Width of a V or O head in elements.
    #[must_use]
    pub const fn dim_v(&self) -> u32 {
        self.dim_v
    }

    /// Head shards, H.
    #[must_use]
    pub const fn shards(&self) -> u32 {
        self.shards
    }

    /// Pipeline chunks of a shard, M.
    #[must_use]
    pub const fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Query heads per KV head.
    #[must_use]
    pub const fn group(&self) -> u32 {
        self.q_heads / self.kv_heads
    }

    /// Query heads of a shard, h_q / H.
    #[must_use]
    pub const fn shard_width(&self) -> u32 {
        self.q_heads / self.shards
    }

    /// Query heads of a chunk, h_q / (H·M).
    #[must_use]
    pub const fn chunk_width(&self) -> u32 {
        self.shard_width() / self.chunks
    }

    /// Query heads of `shard`.
    #[must_use]
    pub const fn q_of_shard(&self, shard: u32) -> Range<u32> {
        let first = shard * self.shard_width();
        first..first + self.shard_width()
    }

    /// Query heads of `chunk` of `shard`.
    #[must_use]
    pub const fn q_of_chunk(&self, shard: u32, chunk: u32) -> Range<u32> {
        let first = shard * self.shard_width() + chunk * self.chunk_width();
        first..first + self.chunk_width()
    }

    /// KV heads that `shard` reads.
    #[must_use]
    pub const fn kv_of_shard(&self, shard: u32) -> Range<u32> {
        let q = self.q_of_shard(shard);
        q.start / self.group()..q.end.div_ceil(self.group())
    }

    /// KV head that query head `head` reads.
    #[must_use]
    pub const fn kv_of_head(&self, head: u32) -> u32 {
        head / self.group()
    }

    /// Chunk in which query head `head` is computed.
    #[must_use]
    pub const fn chunk_of_head(&self, head: u32) -> u32 {
        head % self.shard_width() / self.chunk_width()
    }

    /// Number of KV spans.
    #[must_use]
    pub fn span_count(&self) -> u32 {
        self.spans.len() as u32
    }

    /// KV heads of `span`.
    #[must_use]
    pub fn kv_of_span(&self, span: u32) -> Range<u32> {
        let (start, end) = self.spans[span as usize];
        start..end
    }

    /// Spans that `shard` reads.
    #[must_use]
    pub fn spans_of_shard(&self, shard: u32) -> Range<u32> {
        let (start, end) = self.shard_spans[shard as usize];
        start..end
    }

    /// Whether two shards read a common span (H > h_kv, or uneven cuts).
    #[must_use]
    pub fn spans_are_shared(&self) -> bool {
        self.shard_spans.iter().map(|(a, b)| b - a).sum::<u32>() > self.span_count()
    }

    /// Chunk with which KV head `head` travels forward: the first that reads it at any shard. It
    /// stays until the last.
    #[must_use]
    pub fn first_chunk_of_kv(&self, head: u32) -> u32 {
        self.kv_chunks[head as usize].0
    }

    /// Last chunk that reads KV head `head` at any shard.
    #[must_use]
    pub fn last_chunk_of_kv(&self, head: u32) -> u32 {
        self.kv_chunks[head as usize].1
    }

    /// KV heads of `shard` that `chunk` is the first of that shard to read.
    #[must_use]
    pub fn new_kv_heads(&self, shard: u32, chunk: u32) -> Range<u32> {
        let q = self.q_of_chunk(shard, chunk);
        let end = q.end.div_ceil(self.group());
        let start = if chunk == 0 {
            q.start / self.group()
        } else {
            q.start.div_ceil(self.group())
        };
        start..end.max(start)
    }
}

/// Bytes of one element of what travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElementBytes {
    /// Q, K, V, O, dO, dQ, dK, dV elements on the wire (2 for bf16).
    pub activation: u32,
    /// Softmax statistics: one log-sum-exp, and one δ = rowsum(dO∘O), per query and head.
    pub statistic: u32,
}

impl ElementBytes {
    /// bf16 activations, f32 statistics.
    pub const BF16: Self = Self {
        activation: 2,
        statistic: 4,
    };
    /// f32 throughout.
    pub const F32: Self = Self {
        activation: 4,
        statistic: 4,
    };
    /// f64 throughout: the reference backend.
    pub const F64: Self = Self {
        activation: 8,
        statistic: 8,
    };

    /// Bytes of one token's Q in `q_heads` heads.
    #[must_use]
    pub const fn q_token(self, heads: &HeadSplit, q_heads: u32) -> u64 {
        self.activation as u64 * q_heads as u64 * heads.dim_qk as u64
    }

    /// Bytes of one token's O in `q_heads` heads.
    #[must_use]
    pub const fn o_token(self, heads: &HeadSplit, q_heads: u32) -> u64 {
        self.activation as u64 * q_heads as u64 * heads.dim_v as u64
    }

    /// Bytes of one token's K and V in `kv_heads` KV heads.
    #[must_use]
    pub const fn kv_token(self, heads: &HeadSplit, kv_heads: u32) -> u64 {
        self.activation as u64 * kv_heads as u64 * (heads.dim_qk as u64 + heads.dim_v as u64)
    }

    /// Bytes of one token's log-sum-exp (or δ) in `q_heads` heads.
    #[must_use]
    pub const fn statistic_token(self, q_heads: u32) -> u64 {
        self.statistic as u64 * q_heads as u64
    }
}

impl Default for ElementBytes {
    fn default() -> Self {
        Self::BF16
    }
}
