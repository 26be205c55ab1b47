//! Workloads: sample lengths from a file, a bundled corpus or a distribution, packed into windows.
//!
//! A *sample* is one document, counted in tokens. A *packed sequence* is what one microbatch holds: samples that
//! together have at most `seq_tokens` tokens. A *window* is the packed sequences of one optimizer step.
//!
//! ```
//! use libra_bench::workload::{Packer, WindowOptions};
//!
//! let options = WindowOptions { gbs: 2, ..WindowOptions::default() };
//! let mut windows = Packer::ConcatenateAndCut.pack([5, 9, 2], 8)?.windows(&options)?;
//! let window = windows.next().expect("16 tokens are one window of 2 x 8")?;
//! assert_eq!(window.sequences, [vec![5, 3], vec![6, 2]]);
//! # Ok::<(), libra_bench::workload::PackError>(())
//! ```

pub mod bundled;
mod collect;
#[cfg(feature = "columnar")]
mod columnar;
#[cfg(not(feature = "columnar"))]
mod columnar_absent;
mod content;
mod counts;
mod error;
pub mod generate;
mod histogram;
mod idx;
mod lengths;
mod npy;
mod order;
pub mod pack;
pub mod read;
pub mod stats;
mod text;
pub mod window;

pub use counts::LengthCounts;
pub use error::{InputError, Place};
pub use generate::{CALIBRATED, Distribution, DistributionError, Samples};
pub use idx::IdxSamples;
pub use lengths::Lengths;
pub use order::Order;
pub use pack::{PackError, Packer, Sequences, scale};
pub(crate) use read::files;
pub use read::{LengthSource, load, open, read_lengths};
pub use stats::{Bucket, CorpusStats, PackedStats, PackedTally, Share};
pub use window::{Packed, WindowOptions, Windows};

/// Most tokens a sample or a packed sequence may have. Their squares, summed over a sequence, fit in 64 bits.
pub const TOKENS_MAX: u64 = u32::MAX as u64;
