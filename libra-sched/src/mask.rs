//! Attention masks as cumulative pair counts and key ranges.
//!
//! A mask enters planning through two integer functions of a sample's length: how many
//! (query, key) pairs a range of queries touches, and which keys that range reads.
//!
//! *Paper*: eq. 8 counts causal pairs; the cumulative form Φ makes any range O(1).

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::error::Error;

/// Which keys of its own sample a query may read. Samples never read each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Mask {
    /// Query `q` reads keys `0..=q` of its sample.
    Causal,
    /// Every query reads every key of its sample.
    Full,
}

impl Mask {
    /// Every mask, in the order of their wire codes.
    pub const ALL: [Self; 2] = [Self::Causal, Self::Full];

    /// Pairs of queries `0..x` of a sample of `len` tokens: Φ(x). Fits u64 for any `u32` input.
    #[must_use]
    pub const fn cum_pairs(self, len: u32, x: u32) -> u64 {
        let x = x as u64;
        match self {
            // The product stays below 2^64 for any x below 2^32.
            Self::Causal => x * (x + 1) / 2,
            Self::Full => len as u64 * x,
        }
    }

    /// Pairs of the sample-local `queries` of a sample of `len` tokens: Φ(end) − Φ(start).
    #[must_use]
    pub const fn pairs(self, len: u32, queries: Range<u32>) -> u64 {
        self.cum_pairs(len, queries.end) - self.cum_pairs(len, queries.start)
    }

    /// Sample-local keys that the sample-local `queries` read.
    #[must_use]
    pub const fn keys(self, len: u32, queries: Range<u32>) -> Range<u32> {
        match self {
            Self::Causal => 0..queries.end,
            Self::Full => 0..len,
        }
    }

    /// Keys that one sample-local query reads.
    #[must_use]
    pub const fn keys_of(self, len: u32, query: u32) -> Range<u32> {
        self.keys(len, query..query + 1)
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Causal => "causal",
            Self::Full => "full",
        })
    }
}

impl FromStr for Mask {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "causal" => Ok(Self::Causal),
            "full" => Ok(Self::Full),
            _ => Err(Error::UnknownName {
                what: "mask",
                value: text.to_owned(),
                legal: "causal, full",
            }),
        }
    }
}
