//! Sparse attention as a cost: how much is computed is determined by position, which keys are read
//! is not.
//!
//! MoBA (Lu et al. 2025) and NSA (Yuan et al. 2025) route each query to the blocks that score best.
//! Every query reads a number of keys that its position alone gives, so its work is counted exactly
//! and O(1); the keys depend on the data and differ from head to head, so what travels can only be
//! bounded. This is no [`Mask`](super::Mask): nothing can be planned tile by tile or executed with it.
//!
//! ```
//! use libra_sched::SparseAttention;
//! let moba: SparseAttention = "moba:4,top:2".parse()?;
//! // Queries of the first block read 1, 2, 3, 4 keys; later ones one whole block more.
//! assert_eq!(moba.cum_pairs(4), 10);
//! assert_eq!(moba.cum_pairs(12), 10 + 2 * (10 + 4 * 4));
//! # Ok::<(), libra_sched::Error>(())
//! ```

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::text::number;
use super::{min, staircase, stairs_from_0, triangle};
use crate::error::{Error, check_positive};

/// Causal attention over keys that are chosen from the data.
///
/// Made by functions that check the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SparseAttention {
    /// See [`SparseAttention::moba`].
    #[non_exhaustive]
    Moba {
        /// Tokens of a block, at least 1.
        block: u32,
        /// Blocks that a query reads, its own among them, at least 1.
        top: u32,
    },
    /// See [`SparseAttention::nsa`].
    #[non_exhaustive]
    Nsa {
        /// Tokens that one compressed token stands for, at least 1.
        compress: u32,
        /// Tokens from one compressed token to the next, at least 1.
        stride: u32,
        /// Tokens of a selected block, at least 1.
        block: u32,
        /// Blocks that a query selects, its own among them, at least 1.
        top: u32,
        /// Keys of the sliding window, at least 1.
        window: u32,
    },
}

impl SparseAttention {
    /// Both text forms, for messages and help.
    pub const FORMS: &str = "moba:B,top:K, nsa:L,stride:D,block:B,top:N,window:W";

    /// A query reads its own block up to itself, and the `top − 1` best of the blocks before it, or
    /// all where there are fewer.
    ///
    /// # Errors
    /// A number that is 0.
    pub fn moba(block: u32, top: u32) -> Result<Self, Error> {
        check_positive("block of MoBA", block.into())?;
        check_positive("top of MoBA", top.into())?;
        Ok(Self::Moba { block, top })
    }

    /// Three branches: the compressed tokens whose `compress` tokens a query may all read, one every
    /// `stride` tokens; `top` blocks of `block` tokens as in MoBA; a sliding window.
    ///
    /// # Errors
    /// A number that is 0.
    pub fn nsa(
        compress: u32,
        stride: u32,
        block: u32,
        top: u32,
        window: u32,
    ) -> Result<Self, Error> {
        check_positive("compressed tokens of NSA", compress.into())?;
        check_positive("stride of NSA", stride.into())?;
        check_positive("block of NSA", block.into())?;
        check_positive("top of NSA", top.into())?;
        check_positive("window of NSA", window.into())?;
        Ok(Self::Nsa {
            compress,
            stride,
            block,
            top,
            window,
        })
    }

    /// Pairs of queries `0..x` of a sample and what they attend to, over all branches: Φ(x). Fits u64
    /// for samples as long as a sequence may be.
    #[must_use]
    pub const fn cum_pairs(self, x: u32) -> u64 {
        match self {
            Self::Moba { block, top } => top_blocks(x, block, top),
            Self::Nsa {
                compress,
                stride,
                block,
                top,
                window,
            } => {
                compressed(x, compress, stride)
                    + top_blocks(x, block, top)
                    + staircase(x as u64, window as u64)
            }
        }
    }

    /// Scores of queries `0..x` that only choose, beside the pairs: in MoBA one for every block before
    /// a query's own. NSA chooses by the scores of its compressed branch.
    #[must_use]
    pub const fn cum_gate_pairs(self, x: u32) -> u64 {
        match self {
            Self::Moba { block, .. } => {
                let (x, block) = (x as u64, block as u64);
                let (blocks, rest) = (x / block, x % block);
                block * triangle(blocks.saturating_sub(1)) + rest * blocks
            }
            Self::Nsa { .. } => 0,
        }
    }

    /// Keys that `queries` may read: an upper bound, since which of them are read depends on the data.
    #[must_use]
    pub const fn keys_at_most(self, queries: Range<u32>) -> Range<u32> {
        if queries.start < queries.end {
            0..queries.end
        } else {
            0..0
        }
    }

    /// Block means or compressed tokens that `queries` read beside keys: those of the last query.
    #[must_use]
    pub const fn derived_keys(self, queries: Range<u32>) -> u64 {
        if queries.start >= queries.end {
            return 0;
        }
        match self {
            Self::Moba { block, .. } => ((queries.end - 1) / block) as u64,
            Self::Nsa {
                compress, stride, ..
            } => compressed_of(queries.end - 1, compress, stride),
        }
    }
}

/// Pairs of queries `0..x` with their own block up to themselves and `top − 1` whole blocks before.
const fn top_blocks(x: u32, block: u32, top: u32) -> u64 {
    let (x, block) = (x as u64, block as u64);
    let (blocks, rest) = (x / block, x % block);
    let others = top as u64 - 1;
    let before = block * stairs_from_0(blocks, others) + rest * min(blocks, others);
    blocks * triangle(block) + triangle(rest) + block * before
}

/// Compressed tokens that end at `query` or before.
const fn compressed_of(query: u32, compress: u32, stride: u32) -> u64 {
    let end = query as u64 + 1;
    if end < compress as u64 {
        0
    } else {
        (end - compress as u64) / stride as u64 + 1
    }
}

/// Pairs of queries `0..x` with compressed tokens: `stride` queries in a row read the same number.
const fn compressed(x: u32, compress: u32, stride: u32) -> u64 {
    if x < compress {
        return 0;
    }
    let (queries, stride) = ((x - compress) as u64 + 1, stride as u64);
    let (groups, rest) = (queries / stride, queries % stride);
    stride * triangle(groups) + rest * (groups + 1)
}

impl fmt::Display for SparseAttention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moba { block, top } => write!(f, "moba:{block},top:{top}"),
            Self::Nsa {
                compress,
                stride,
                block,
                top,
                window,
            } => write!(
                f,
                "nsa:{compress},stride:{stride},block:{block},top:{top},window:{window}"
            ),
        }
    }
}

impl FromStr for SparseAttention {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parsed(text).unwrap_or_else(|| {
            Err(Error::UnknownName {
                what: "sparse attention",
                value: text.to_owned(),
                legal: Self::FORMS,
            })
        })
    }
}

/// `None` for a text of neither form, an error for numbers that are 0.
fn parsed(text: &str) -> Option<Result<SparseAttention, Error>> {
    if let Some(rest) = text.strip_prefix("moba:") {
        let (block, top) = rest.split_once(",top:")?;
        return Some(SparseAttention::moba(number(block)?, number(top)?));
    }
    let (compress, rest) = text.strip_prefix("nsa:")?.split_once(",stride:")?;
    let (stride, rest) = rest.split_once(",block:")?;
    let (block, rest) = rest.split_once(",top:")?;
    let (top, window) = rest.split_once(",window:")?;
    Some(SparseAttention::nsa(
        number(compress)?,
        number(stride)?,
        number(block)?,
        number(top)?,
        number(window)?,
    ))
}
