//! Attention masks as cumulative pair counts and key ranges.
//!
//! A mask enters planning through two integer functions of a sample's length: how many
//! (query, key) pairs a range of queries touches, and which keys that range reads. Every mask here
//! is determined by position, so both are O(1).
//!
//! *Paper*: eq. 8 counts causal pairs; the cumulative form Φ makes any range O(1). The other masks
//! are those of the models that use them: windows (Beltagy et al. 2020), sinks (Xiao et al. 2024),
//! prefix LM (Raffel et al. 2020), chunks (Llama 4), local and first blocks (Zaheer et al. 2020).
//!
//! ```
//! use libra_sched::Mask;
//! let mask: Mask = "window:4,sinks:2".parse()?;
//! // Query 9 reads keys 0, 1 and 6 to 9.
//! assert_eq!(mask.keys_of(12, 9).iter().collect::<Vec<_>>(), [0..2, 6..10]);
//! // Queries 0 to 5 read 1, 2, 3, 4, 5 and 6 keys, those after them 6 each.
//! assert_eq!(mask.pairs(12, 0..12), 21 + 6 * 6);
//! # Ok::<(), libra_sched::Error>(())
//! ```

mod ranges;
mod sparse;
mod text;

use std::ops::Range;

use crate::error::{Error, check_positive};

pub use ranges::KeyRanges;
pub use sparse::SparseAttention;

/// Which keys of its own sample a query may read. Samples read each other only where one continues
/// another, and then only under the causal mask.
///
/// Variants with numbers are made by the functions of the same meaning, which check them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Mask {
    /// Query `q` reads keys `0..=q` of its sample.
    Causal,
    /// Every query reads every key of its sample.
    Full,
    /// See [`Mask::causal_with_offset`].
    #[non_exhaustive]
    Offset {
        /// Keys beyond its own that a query reads, at least 1.
        offset: u32,
    },
    /// See [`Mask::window`].
    #[non_exhaustive]
    Window {
        /// Keys up to the query's own, at least 1.
        window: u32,
        /// First keys of the sample.
        sinks: u32,
    },
    /// See [`Mask::two_sided`].
    #[non_exhaustive]
    TwoSided {
        /// Keys before the query's own.
        left: u32,
        /// Keys after it.
        right: u32,
    },
    /// See [`Mask::chunked`].
    #[non_exhaustive]
    Chunked {
        /// Tokens of a chunk, at least 1.
        chunk: u32,
    },
    /// See [`Mask::block_causal`].
    #[non_exhaustive]
    Block {
        /// Tokens of a block, at least 1.
        block: u32,
        /// Blocks up to the query's own, at least 1.
        local: u32,
        /// First blocks of the sample.
        sinks: u32,
    },
    /// See [`Mask::prefix`].
    #[non_exhaustive]
    Prefix {
        /// Tokens that are read by all, at least 1.
        prefix: u32,
    },
    /// See [`Mask::restricted`].
    #[non_exhaustive]
    Keys {
        /// First key that is read.
        start: u32,
        /// One past the last, above `start`.
        end: u32,
    },
}

impl Mask {
    /// Query `q` of a sample of `len` tokens reads keys `0..min(q + 1 + offset, len)`: the queries
    /// of a sample whose first `offset` keys came before it.
    ///
    /// # Errors
    /// Offset 0, which is [`Mask::Causal`].
    pub fn causal_with_offset(offset: u32) -> Result<Self, Error> {
        check_positive("offset of a causal mask", offset.into())?;
        Ok(Self::Offset { offset })
    }

    /// Query `q` reads the `window` keys up to its own, and the first `sinks` keys up to its own.
    ///
    /// # Errors
    /// Window 0.
    pub fn window(window: u32, sinks: u32) -> Result<Self, Error> {
        check_positive("window of a mask", window.into())?;
        Ok(Self::Window { window, sinks })
    }

    /// Query `q` reads the `left` keys before its own, its own, and the `right` keys after it.
    #[must_use]
    pub const fn two_sided(left: u32, right: u32) -> Self {
        Self::TwoSided { left, right }
    }

    /// Causal within each run of `chunk` tokens of the sample.
    ///
    /// # Errors
    /// Chunk 0.
    pub fn chunked(chunk: u32) -> Result<Self, Error> {
        check_positive("chunk of a mask", chunk.into())?;
        Ok(Self::Chunked { chunk })
    }

    /// Query `q` in block `i = q / block` reads its own block up to itself, blocks
    /// `i − (local − 1)..i` whole and blocks `0..min(sinks, i)` whole. A block that is both local
    /// and a sink is read once; a sink that is the query's own block stays causal.
    ///
    /// # Errors
    /// A block of 0 tokens, or 0 local blocks: its own counts as one.
    pub fn block_causal(block: u32, local: u32, sinks: u32) -> Result<Self, Error> {
        check_positive("block of a mask", block.into())?;
        check_positive("local blocks of a mask", local.into())?;
        Ok(Self::Block {
            block,
            local,
            sinks,
        })
    }

    /// Causal, and every query reads the first `prefix` keys of its sample.
    ///
    /// # Errors
    /// Prefix 0, which is [`Mask::Causal`].
    pub fn prefix(prefix: u32) -> Result<Self, Error> {
        check_positive("prefix of a mask", prefix.into())?;
        Ok(Self::Prefix { prefix })
    }

    /// Causal, over keys `start..end` of the sample alone. A query before `start` reads no key: its
    /// output is 0 and its log-sum-exp −∞.
    ///
    /// # Errors
    /// No key between `start` and `end`.
    pub fn restricted(start: u32, end: u32) -> Result<Self, Error> {
        check_positive("number of keys of a mask", end.saturating_sub(start).into())?;
        Ok(Self::Keys { start, end })
    }

    /// Pairs of queries `0..x` of a sample of `len` tokens, x ≤ len: Φ(x). Fits u64 for any `u32`
    /// input.
    #[must_use]
    #[inline]
    pub const fn cum_pairs(self, len: u32, x: u32) -> u64 {
        // The common mask, in a line that callers take in.
        if matches!(self, Self::Causal) {
            return triangle(x as u64);
        }
        self.cum_pairs_of_any(len, x)
    }

    const fn cum_pairs_of_any(self, len: u32, x: u32) -> u64 {
        // No query reads more than `len` keys, so every sum below stays under len · x < 2^64.
        let (wide_len, wide_x) = (len as u64, x as u64);
        match self {
            Self::Causal => triangle(wide_x),
            Self::Full => wide_len * wide_x,
            Self::Offset { offset } => {
                let rising = min(wide_x, len.saturating_sub(offset) as u64);
                triangle(rising) + offset as u64 * rising + wide_len * (wide_x - rising)
            }
            Self::Window { window, sinks } => staircase(wide_x, window as u64 + sinks as u64),
            Self::TwoSided { left, right } => {
                let after = stairs_from_0(wide_len, right as u64)
                    - stairs_from_0(wide_len.saturating_sub(wide_x), right as u64);
                stairs_from_0(wide_x, left as u64) + wide_x + after
            }
            Self::Chunked { chunk } => {
                let chunk = chunk as u64;
                wide_x / chunk * triangle(chunk) + triangle(wide_x % chunk)
            }
            Self::Block {
                block,
                local,
                sinks,
            } => {
                let block = block as u64;
                // Whole blocks that a query reads at most; block i has i before it.
                let whole = local as u64 - 1 + sinks as u64;
                let (blocks, rest) = (wide_x / block, wide_x % block);
                let before = block * stairs_from_0(blocks, whole) + rest * min(blocks, whole);
                blocks * triangle(block) + triangle(rest) + block * before
            }
            Self::Prefix { prefix } => {
                let prefix = min(prefix as u64, wide_len);
                let inside = min(wide_x, prefix);
                prefix * inside + (triangle(wide_x) - triangle(inside))
            }
            Self::Keys { start, end } => staircase(
                x.saturating_sub(start) as u64,
                end.saturating_sub(start) as u64,
            ),
        }
    }

    /// Pairs of the sample-local `queries` of a sample of `len` tokens: Φ(end) − Φ(start).
    #[must_use]
    #[inline]
    pub const fn pairs(self, len: u32, queries: Range<u32>) -> u64 {
        self.cum_pairs(len, queries.end) - self.cum_pairs(len, queries.start)
    }

    /// Sample-local keys that the sample-local `queries` of a sample of `len` tokens read: exactly
    /// the union over the queries.
    #[must_use]
    pub const fn keys(self, len: u32, queries: Range<u32>) -> KeyRanges {
        let Range { start, end } = queries;
        if start >= end {
            return KeyRanges::EMPTY;
        }
        match self {
            Self::Causal => KeyRanges::one(0, end),
            Self::Full => KeyRanges::one(0, len),
            Self::Offset { offset } => KeyRanges::one(0, least(end.saturating_add(offset), len)),
            Self::Window { window, sinks } => {
                let first = start.saturating_sub(window - 1);
                KeyRanges::with_first(least(sinks, end), first, end)
            }
            Self::TwoSided { left, right } => KeyRanges::one(
                start.saturating_sub(left),
                least(end.saturating_add(right), len),
            ),
            Self::Chunked { chunk } => KeyRanges::one(start - start % chunk, end),
            Self::Block {
                block,
                local,
                sinks,
            } => {
                let first = (start / block).saturating_sub(local - 1) * block;
                // The last query's block decides how many sinks lie before one.
                let sinks = least(sinks, (end - 1) / block) * block;
                KeyRanges::with_first(sinks, first, end)
            }
            Self::Prefix { prefix } => {
                let prefix = least(prefix, len);
                KeyRanges::one(0, if prefix > end { prefix } else { end })
            }
            Self::Keys { start, end: last } => KeyRanges::one(start, least(end, last)),
        }
    }

    /// Keys that one sample-local query reads.
    #[must_use]
    pub const fn keys_of(self, len: u32, query: u32) -> KeyRanges {
        self.keys(len, query..query + 1)
    }

    /// The like mask for samples `scale` times as short: every number of tokens divided by `scale`
    /// and rounded up, the first of restricted keys down. Numbers of blocks stay.
    ///
    /// # Panics
    /// If `scale` is 0.
    #[must_use]
    pub fn scaled_down(self, scale: u32) -> Self {
        let down = |tokens: u32| tokens.div_ceil(scale);
        match self {
            Self::Causal | Self::Full => self,
            Self::Offset { offset } => Self::Offset {
                offset: down(offset),
            },
            Self::Window { window, sinks } => Self::Window {
                window: down(window),
                sinks: down(sinks),
            },
            Self::TwoSided { left, right } => Self::TwoSided {
                left: down(left),
                right: down(right),
            },
            Self::Chunked { chunk } => Self::Chunked { chunk: down(chunk) },
            Self::Block {
                block,
                local,
                sinks,
            } => Self::Block {
                block: down(block),
                local,
                sinks,
            },
            Self::Prefix { prefix } => Self::Prefix {
                prefix: down(prefix),
            },
            Self::Keys { start, end } => Self::Keys {
                start: start / scale,
                end: down(end),
            },
        }
    }
}

/// 1 + 2 + … + n.
const fn triangle(n: u64) -> u64 {
    n * (n + 1) / 2
}

/// min(1, width) + min(2, width) + … + min(n, width).
const fn staircase(n: u64, width: u64) -> u64 {
    let rising = min(n, width);
    triangle(rising) + width * (n - rising)
}

/// min(0, width) + min(1, width) + … + min(n − 1, width).
const fn stairs_from_0(n: u64, width: u64) -> u64 {
    staircase(n.saturating_sub(1), width)
}

const fn min(a: u64, b: u64) -> u64 {
    if a < b { a } else { b }
}

const fn least(a: u32, b: u32) -> u32 {
    if a < b { a } else { b }
}
