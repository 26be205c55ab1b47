//! Exit codes of `libra-bench`. Scripts may rely on every one of them.

/// Everything asked for was done, and every check passed.
pub const DONE: u8 = 0;

/// Something that should not happen did; a bug in Libra.
pub const UNEXPECTED: u8 = 1;

/// The command line was not understood.
pub const USAGE: u8 = 2;

/// An input could not be read, or asks for something impossible.
pub const INPUT: u8 = 3;

/// A check failed: a plan breaks its own rules, or a result is wrong.
pub const CHECK: u8 = 4;

/// A comparison exceeded its threshold.
pub const COMPARISON: u8 = 5;

/// The environment lacks something: no device, no library, or a wrong number of ranks.
pub const ENVIRONMENT: u8 = 6;

/// Time ran out, or a peer stalled.
pub const TIMEOUT: u8 = 7;

/// Interrupted by the user; what was finished by then is written.
pub const INTERRUPTED: u8 = 130;
