//! Values of flags: numbers with K, M and G, and names.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use libra_sched::vrsp::{Elastic, GaOrder, Vrsp};
use libra_sched::{BackwardMode, Error, KvFetch, LayoutKind, SparseAttention, Tiling};

use crate::figures::RECIPES;
use crate::units::parse_count;

/// How samples become packed sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pack {
    /// Samples in a row, cut every L tokens.
    Concat,
    /// Whole samples only, each where the least room still holds it.
    BestFit,
}

/// Who places tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Placement {
    /// Every tile stays where its queries live.
    Home,
    /// Algorithm 2.
    Paper,
    /// Head shards over the workers of a sequence.
    #[value(alias = "ulysses")]
    HeadShard,
    /// Runs of any length: only what is above a target leaves home; blocks do not matter.
    Export,
}

/// Which way K and V take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Route {
    /// From their home to each destination.
    Direct,
    /// Once into each node of --gpus-per-node workers, and on from a relay there.
    Node,
}

/// What VRSP balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyKind {
    /// Squared sample lengths.
    Squares,
    /// Exact query-key pairs under the mask.
    Pairs,
    /// Exact pairs of sparse attention.
    Sparse(SparseAttention),
}

impl fmt::Display for ProxyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Squares => f.write_str("squares"),
            Self::Pairs => f.write_str("pairs"),
            Self::Sparse(sparse) => sparse.fmt(f),
        }
    }
}

impl FromStr for ProxyKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "squares" => Ok(Self::Squares),
            "pairs" => Ok(Self::Pairs),
            _ => text.parse().map(Self::Sparse).map_err(|error| match error {
                Error::UnknownName { .. } => {
                    let forms = SparseAttention::FORMS;
                    format!("proxy {text:?} is unknown; one of squares, pairs, {forms}")
                }
                error => error.to_string(),
            }),
        }
    }
}

/// Element type of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dtype {
    /// The exact reference kernel: O and dQ must be equal to the last bit.
    F64,
    /// The fast kernel: errors at most twice those of plain f32.
    F32,
}

/// Where attention is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// Worker threads and channels on this machine.
    Cpu,
}

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people.
    #[default]
    Table,
    /// One document.
    Json,
    /// One line a case.
    Csv,
    /// Markdown tables.
    Md,
}

macro_rules! show_by_name {
    ($($name:ty),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let value = self.to_possible_value().expect("no value is skipped");
                f.write_str(value.get_name())
            }
        }
    )*};
}
show_by_name!(Pack, Placement, Route, Dtype, Backend);

/// A count with K, M or G.
pub(super) fn count(text: &str) -> Result<u64, String> {
    parse_count(text).map_err(|error| error.to_string())
}

/// As [`count`], at least 1.
pub(super) fn positive_count(text: &str) -> Result<u64, String> {
    match count(text)? {
        0 => Err(format!("`{text}` is too small; legal is 1 or more")),
        count => Ok(count),
    }
}

/// Threads: as many as anybody plans with.
pub(super) fn threads(text: &str) -> Result<usize, String> {
    const MOST: u64 = 1024;
    let threads = count(text)?;
    if threads > MOST {
        return Err(format!("`{text}` is too large; legal is 0 to {MOST}"));
    }
    Ok(threads as usize)
}

/// As [`count`], within 32 bits.
pub(super) fn count_u32(text: &str) -> Result<u32, String> {
    let count = count(text)?;
    u32::try_from(count).map_err(|_| format!("`{text}` is too large; legal is 0 to {}", u32::MAX))
}

/// An excess over the mean.
pub(super) fn excess(text: &str) -> Result<f64, String> {
    let excess = text.parse::<f64>().ok();
    excess
        .filter(|excess| (0.0..=1e6).contains(excess))
        .ok_or_else(|| format!("`{text}` is not an excess; legal is a number from 0 to 1000000"))
}

/// Seconds, with a fraction if need be.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| {
            format!("`{text}` is not a time; legal is a number of seconds such as 60 or 0.5")
        })
}

/// Names of the scheduler's own types, listed in the help.
pub(super) fn layouts() -> impl TypedValueParser<Value = LayoutKind> {
    PossibleValuesParser::new(["contiguous", "zigzag"]).try_map(|name| name.parse())
}

/// Numbers of figures that can be made.
pub(super) fn figures() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(RECIPES.map(|recipe| recipe.figure))
}

/// As [`layouts`].
pub(super) fn vrsps() -> impl TypedValueParser<Value = Vrsp> {
    PossibleValuesParser::new(["arrival", "paper", "certified"]).try_map(|name| name.parse())
}

/// As [`layouts`].
pub(super) fn tilings() -> impl TypedValueParser<Value = Tiling> {
    PossibleValuesParser::new(["fixed", "adaptive"]).try_map(|name| name.parse())
}

/// As [`layouts`].
pub(super) fn elastics() -> impl TypedValueParser<Value = Elastic> {
    PossibleValuesParser::new(["1", "2", "4"]).try_map(|name| name.parse())
}

/// As [`layouts`].
pub(super) fn ga_orders() -> impl TypedValueParser<Value = GaOrder> {
    PossibleValuesParser::new(["paper", "balanced"]).try_map(|name| name.parse())
}

/// As [`layouts`].
pub(super) fn kv_fetches() -> impl TypedValueParser<Value = KvFetch> {
    PossibleValuesParser::new(["whole", "range"]).try_map(|name| name.parse())
}

/// As [`layouts`].
pub(super) fn backward_modes() -> impl TypedValueParser<Value = BackwardMode> {
    PossibleValuesParser::new(["recompute", "stash", "refetch"]).try_map(|name| name.parse())
}
