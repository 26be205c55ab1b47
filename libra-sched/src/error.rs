//! What a caller can ask wrongly: every message carries the numbers and what would be legal.

use thiserror::Error as Derive;

/// A request that cannot be met. The caller changes the request.
#[derive(Clone, Debug, PartialEq, Eq, Derive)]
#[non_exhaustive]
pub enum Error {
    /// A count that must be positive is zero.
    #[error("{name} is 0, must be at least 1")]
    Zero {
        /// What was counted.
        name: &'static str,
    },
    /// A count exceeds what the types hold.
    #[error("{name} is {value}, above the limit of {limit}")]
    TooLarge {
        /// What was counted.
        name: &'static str,
        /// Its value.
        value: u128,
        /// Largest legal value.
        limit: u128,
    },
    /// One count must divide another.
    #[error(
        "{whole_name} is {whole}, not a multiple of {part_name} {part}; {}",
        legal(legal_parts, part_name)
    )]
    NotDivisible {
        /// Name of the number to be divided.
        whole_name: &'static str,
        /// The number to be divided.
        whole: u64,
        /// Name of the divisor.
        part_name: &'static str,
        /// The divisor.
        part: u64,
        /// Divisors that would be legal.
        legal_parts: Vec<u64>,
    },
    /// A sample has no tokens.
    #[error("sequence {sequence}, sample {sample}: length is 0, must be at least 1 token")]
    EmptySample {
        /// Sequence in the given order.
        sequence: usize,
        /// Sample within the sequence.
        sample: usize,
    },
    /// A sample is longer than a packed sequence.
    #[error(
        "sequence {sequence}, sample {sample}: length {length} exceeds seq_tokens {seq_tokens}; cut it or raise seq_tokens"
    )]
    SampleTooLong {
        /// Sequence in the given order.
        sequence: usize,
        /// Sample within the sequence.
        sample: usize,
        /// Its length in tokens.
        length: u64,
        /// Capacity of a packed sequence.
        seq_tokens: u32,
    },
    /// A sequence holds more tokens than its capacity.
    #[error(
        "sequence {sequence}: samples add up to {tokens} tokens, more than seq_tokens {seq_tokens}"
    )]
    SequenceTooLong {
        /// Sequence in the given order.
        sequence: usize,
        /// Sum of its sample lengths.
        tokens: u128,
        /// Capacity of a packed sequence.
        seq_tokens: u32,
    },
    /// The number of sequences differs from what the shape says.
    #[error("{found} sequences given, {expected} expected ({why})")]
    SequenceCount {
        /// Sequences given.
        found: usize,
        /// Sequences that the shape asks for.
        expected: usize,
        /// Where the expectation comes from.
        why: &'static str,
    },
    /// Cumulative lengths that are not a rising sequence from 0.
    #[error("cu_seqlens[{index}] is {value} after {previous}, must start at 0 and never fall")]
    CumulativeOrder {
        /// Index of the offending entry.
        index: usize,
        /// Its value.
        value: u64,
        /// The entry before it (0 where there is none).
        previous: u64,
    },
    /// An id does not exist.
    #[error("{name} {value} does not exist, there are {count}")]
    OutOfRange {
        /// What the id points to.
        name: &'static str,
        /// The id.
        value: u64,
        /// How many there are.
        count: u64,
    },
    /// Fragments do not cover a sequence exactly once.
    #[error(
        "slot {slot}: fragment {fragment} covers tokens {start}..{end}, expected to start at {expected} and end by {seq_tokens}"
    )]
    FragmentGap {
        /// Slot of the pool.
        slot: usize,
        /// Fragment in token order.
        fragment: usize,
        /// First token.
        start: u32,
        /// One past the last token.
        end: u32,
        /// Where it had to start.
        expected: u32,
        /// Tokens of the sequence.
        seq_tokens: u32,
    },
    /// Integer arithmetic would overflow.
    #[error("{name} overflows 64 bits: {value}")]
    Overflow {
        /// What was computed.
        name: &'static str,
        /// The value that does not fit.
        value: u128,
    },
    /// A cost handed in by the caller is not a finite, non-negative number.
    #[error("cost {index} is {value}, must be finite and not negative")]
    BadCost {
        /// Position in the caller's slice.
        index: usize,
        /// The value as text (floats have no total order to compare errors by).
        value: String,
    },
    /// A measured time or speed that cannot be, or a table of them with a gap.
    #[error("{what} is {value}, must be {legal}")]
    BadMeasurement {
        /// Which entry.
        what: String,
        /// The value as text.
        value: String,
        /// What would be legal.
        legal: String,
    },
    /// A slack that is not a finite fraction.
    #[error("slack {value:?} is not a number from 0 to {limit} (0.03 allows 3 % over the mean)")]
    BadSlack {
        /// The text or value given.
        value: String,
        /// Largest legal slack.
        limit: u32,
    },
    /// A name is none of the known ones.
    #[error("{what} {value:?} is unknown; one of {legal}")]
    UnknownName {
        /// What was named.
        what: &'static str,
        /// The name given.
        value: String,
        /// Names that would be legal.
        legal: &'static str,
    },
    /// Two things that are legal each, but not together.
    #[error("{what} {value} cannot be combined with {with}; one of {legal}")]
    Combination {
        /// What was asked for.
        what: &'static str,
        /// Its name.
        value: String,
        /// What it meets.
        with: &'static str,
        /// What would be legal instead.
        legal: &'static str,
    },
    /// The parent of a sample is no earlier sample of its sequence.
    #[error(
        "sample {sample}: parent {parent} must be an earlier sample of its sequence, which begins with sample {first}"
    )]
    Parent {
        /// The sample, over all sequences.
        sample: u64,
        /// Its parent.
        parent: u64,
        /// First sample of its sequence.
        first: u64,
    },
    /// A worker would receive more than its staging memory holds.
    #[error(
        "{worker} would receive {bytes} bytes, more than max_recv_bytes {limit}; raise the limit, the slack or the block size, or lower the pool size"
    )]
    ReceiveLimit {
        /// The worker.
        worker: crate::ids::WorkerId,
        /// What it would receive.
        bytes: u64,
        /// The caller's limit.
        limit: u64,
    },
    /// Two arguments describe different pools.
    #[error("{name} is {left} in {left_of} but {right} in {right_of}")]
    Mismatch {
        /// What differs.
        name: &'static str,
        /// First value.
        left: u64,
        /// Where the first value comes from.
        left_of: &'static str,
        /// Second value.
        right: u64,
        /// Where the second value comes from.
        right_of: &'static str,
    },
}

fn legal(parts: &[u64], name: &str) -> String {
    let shown: Vec<String> = parts.iter().take(16).map(u64::to_string).collect();
    let more = if parts.len() > 16 { ", …" } else { "" };
    format!("legal {name}: {}{more}", shown.join(", "))
}

/// All divisors of `whole` in rising order: what an error lists as legal.
#[must_use]
pub fn divisors(whole: u64) -> Vec<u64> {
    let mut low = Vec::new();
    let mut high = Vec::new();
    let mut d = 1;
    while d <= whole / d {
        if whole.is_multiple_of(d) {
            low.push(d);
            if d != whole / d {
                high.push(whole / d);
            }
        }
        d += 1;
    }
    low.extend(high.into_iter().rev());
    low
}

/// `part` must divide `whole`, both positive.
pub(crate) fn check_divides(
    whole_name: &'static str,
    whole: u64,
    part_name: &'static str,
    part: u64,
) -> Result<(), Error> {
    check_positive(whole_name, whole)?;
    check_positive(part_name, part)?;
    if whole.is_multiple_of(part) {
        return Ok(());
    }
    Err(Error::NotDivisible {
        whole_name,
        whole,
        part_name,
        part,
        legal_parts: divisors(whole),
    })
}

/// `value` must be at least 1.
pub(crate) fn check_positive(name: &'static str, value: u64) -> Result<(), Error> {
    if value == 0 {
        return Err(Error::Zero { name });
    }
    Ok(())
}

/// `value` must be at most `limit`.
pub(crate) fn check_limit(name: &'static str, value: u128, limit: u128) -> Result<(), Error> {
    if value > limit {
        return Err(Error::TooLarge { name, value, limit });
    }
    Ok(())
}
