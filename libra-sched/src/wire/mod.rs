//! Plans as bytes, format 1: what ranks exchange, files hold and other languages read in place.
//!
//! All integers are little-endian. A 64-byte header, a table of 32-byte section entries, then the
//! sections, each an array of plain structs at a multiple of 16 bytes, zeros between.
//!
//! | bytes | header field |
//! |---|---|
//! | 0..8 | `LIBRAPLN` |
//! | 8..12 | format version, 1 |
//! | 12..16 | number of sections |
//! | 16..24 | length of the file |
//! | 24..32 | checksum: XXH3-64 of header (checksum as 0), table and optional sections |
//! | 32..48 | plan id: XXH3-128 of every required section's (id, length, bytes) |
//! | 48..64 | zeros |
//!
//! The plan id and the checksum together cover every byte that padding rules do not. A table entry
//! is (id u32, flags u32, offset u64, bytes u64, element bytes u32, zero u32), ids rising; flag 1
//! marks a section that a reader must know. Provenance (free text) is optional and no part of the
//! plan id; a reader skips optional sections it does not know.

mod contents;
mod decode;
mod encode;
mod format;

use std::fmt;

use thiserror::Error as Derive;

use crate::error::Error;
use crate::plan::PoolPlan;

pub use decode::{Decoded, decode, open};
pub use encode::{encode, encode_with};
pub use format::VERSION;

/// 128-bit digest of everything in a plan but its provenance: equal on every machine for equal
/// plans. Ranks compare it before the first byte moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanId(pub [u8; 16]);

impl PlanId {
    /// Id of `plan`.
    #[must_use]
    pub fn of(plan: &PoolPlan) -> Self {
        encode::id_of(plan)
    }
}

impl fmt::Display for PlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Bytes that are not a plan of a version this library reads.
#[derive(Clone, Debug, PartialEq, Eq, Derive)]
#[non_exhaustive]
pub enum DecodeError {
    /// The magic is missing.
    #[error("not a plan: starts with {found:02x?}, not with \"LIBRAPLN\"")]
    NotAPlan {
        /// The first bytes, at most eight.
        found: Vec<u8>,
    },
    /// Another format.
    #[error("plan format {found}, this library reads format {supported}")]
    Version {
        /// Version of the file.
        found: u32,
        /// Version of this library.
        supported: u32,
    },
    /// The bytes end early or go on too long.
    #[error("{found} bytes, the {what} asks for {expected}")]
    Length {
        /// What states the length.
        what: &'static str,
        /// Bytes there.
        found: u64,
        /// Bytes stated.
        expected: u64,
    },
    /// A bit of header, table or provenance was flipped.
    #[error("checksum {found:016x} differs from {stated:016x} in the header")]
    Checksum {
        /// Computed.
        found: u64,
        /// Stated.
        stated: u64,
    },
    /// A bit of a section was flipped.
    #[error("sections hash to plan id {found}, the header says {stated}")]
    PlanId {
        /// Computed.
        found: PlanId,
        /// Stated.
        stated: PlanId,
    },
    /// A section this library does not know and must not skip.
    #[error("section {id} is required and unknown to this library")]
    UnknownSection {
        /// Its id.
        id: u32,
    },
    /// A section's place, size or order is wrong.
    #[error("section {section}: {problem}, found {found}, expected {expected}")]
    Section {
        /// Name of the section.
        section: &'static str,
        /// What is wrong.
        problem: &'static str,
        /// The number found.
        found: u64,
        /// The number (or limit) expected.
        expected: u64,
    },
    /// Contents that no shape allows.
    #[error("section {section}: {source}")]
    Contents {
        /// Name of the section.
        section: &'static str,
        /// What is wrong with them.
        source: Error,
    },
}
