//! Numbers as people type and read them: `256K`, `2K..32K*2`, `46.8 GiB`.
//!
//! ```
//! use libra_bench::units::{format_count, parse_count, parse_counts};
//!
//! assert_eq!(parse_count("256K"), Ok(262_144));
//! assert_eq!(parse_counts("2K..16K*2"), Ok(vec![2_048, 4_096, 8_192, 16_384]));
//! assert_eq!(format_count(262_144), "256K");
//! ```

/// Most numbers one list may stand for. A sweep crosses its lists, so a longer one is a typing error.
pub const LIST_ITEMS_MAX: usize = 1024;

const SUFFIXES: [(char, u32); 3] = [('K', 10), ('M', 20), ('G', 30)];

/// Why a text is not a number, or not a list of numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// There is nothing to read, as between the commas of `2,,4`.
    #[error(
        "`{text}` lacks a number; legal is a whole number such as 8192, 8_192 or 8K (K, M, G: powers of 1024)"
    )]
    Empty {
        /// What was given.
        text: String,
    },
    /// The text is no number at all.
    #[error(
        "`{text}` is not a number; legal is a whole number such as 8192, 8_192 or 8K (K, M, G: powers of 1024)"
    )]
    NotANumber {
        /// What was given.
        text: String,
    },
    /// The number is below zero.
    #[error("`{text}` is negative; legal is 0 to 18446744073709551615")]
    Negative {
        /// What was given.
        text: String,
    },
    /// The number has a fractional part.
    #[error(
        "`{text}` is not whole; legal is a whole number, where 1.5K would be 1536 (K, M, G: powers of 1024)"
    )]
    Fraction {
        /// What was given.
        text: String,
    },
    /// The number does not fit in 64 bits.
    #[error("`{text}` is too large; legal is 0 to 18446744073709551615")]
    Overflow {
        /// What was given.
        text: String,
    },
    /// A range ends before it starts.
    #[error(
        "range `{text}` ends at {end}, below its start {start}; legal is a range upwards, such as 2K..32K*2"
    )]
    Backwards {
        /// What was given.
        text: String,
        /// First number of the range.
        start: u64,
        /// Last number of the range.
        end: u64,
    },
    /// A geometric range would repeat its first number for ever.
    #[error(
        "range `{text}` multiplies {start} by {factor} and never reaches its end; \
         legal is a start of at least 1 and a factor of at least 2"
    )]
    Stuck {
        /// What was given.
        text: String,
        /// First number of the range.
        start: u64,
        /// What each step multiplies by.
        factor: u64,
    },
    /// A list stands for too many numbers.
    #[error("`{text}` stands for {items} numbers; legal is at most 1024")]
    TooMany {
        /// What was given.
        text: String,
        /// How many numbers it stands for, as far as they were counted.
        items: u64,
    },
}

/// A whole number with an optional suffix `K`, `M` or `G` (powers of 1024, any case) and `_` between digits.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    let given = || text.to_owned();
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(UnitError::Empty { text: given() });
    }
    let (digits, shift) = split_suffix(trimmed);
    if let Some(rest) = digits.strip_prefix('-') {
        return Err(if rest.starts_with(|c: char| c.is_ascii_digit()) {
            UnitError::Negative { text: given() }
        } else {
            UnitError::NotANumber { text: given() }
        });
    }
    if is_fraction(digits) {
        return Err(UnitError::Fraction { text: given() });
    }
    let fenced = digits.starts_with('_') || digits.ends_with('_');
    if digits.is_empty() || fenced || !digits.chars().all(|c| c.is_ascii_digit() || c == '_') {
        return Err(UnitError::NotANumber { text: given() });
    }
    // Only digits are left, so a failure to parse is one of size.
    (digits.replace('_', "").parse::<u64>().ok())
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| UnitError::Overflow { text: given() })
}

fn split_suffix(text: &str) -> (&str, u32) {
    for (suffix, shift) in SUFFIXES {
        if let Some(digits) = text.strip_suffix([suffix, suffix.to_ascii_lowercase()]) {
            return (digits, shift);
        }
    }
    (text, 0)
}

fn is_fraction(digits: &str) -> bool {
    let digit_or_point = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    digit_or_point && digits.matches('.').count() == 1 && digits.len() > 1
}

/// A list of counts and ranges: `2,4,8`, `1..4` (step one), `2K..32K*2` (geometric). Range ends are included.
pub fn parse_counts(text: &str) -> Result<Vec<u64>, UnitError> {
    let mut counts = Vec::new();
    for item in text.split(',') {
        let numbers = match item.split_once("..") {
            Some((start, rest)) => parse_range(item, start, rest)?,
            None => vec![parse_count(item).map_err(|error| within(text, error))?],
        };
        let items = counts.len() + numbers.len();
        if items > LIST_ITEMS_MAX {
            return Err(UnitError::TooMany {
                text: shorten(text),
                items: items as u64,
            });
        }
        counts.extend(numbers);
    }
    Ok(counts)
}

/// An empty item says nothing about where it is; the list does.
fn within(list: &str, error: UnitError) -> UnitError {
    match error {
        UnitError::Empty { .. } => UnitError::Empty {
            text: shorten(list),
        },
        error => error,
    }
}

fn parse_range(text: &str, start: &str, rest: &str) -> Result<Vec<u64>, UnitError> {
    let (end, factor) = match rest.split_once('*') {
        Some((end, factor)) => (end, Some(parse_count(factor).map_err(|e| within(text, e))?)),
        None => (rest, None),
    };
    let start = parse_count(start).map_err(|e| within(text, e))?;
    let end = parse_count(end).map_err(|e| within(text, e))?;
    let text = text.to_owned();
    if end < start {
        return Err(UnitError::Backwards { text, start, end });
    }
    match factor {
        Some(factor) if factor < 2 || start == 0 => Err(UnitError::Stuck {
            text,
            start,
            factor,
        }),
        // At most 64 doublings fit in 64 bits.
        Some(factor) => Ok(
            std::iter::successors(Some(start), |number| number.checked_mul(factor))
                .take_while(|&number| number <= end)
                .collect(),
        ),
        None if end - start >= LIST_ITEMS_MAX as u64 => Err(UnitError::TooMany {
            text,
            items: (end - start).saturating_add(1),
        }),
        None => Ok((start..=end).collect()),
    }
}

/// The shortest text that [`parse_count`] reads back as `count`: `256K`, `1M`, `1000`.
pub fn format_count(count: u64) -> String {
    for (suffix, shift) in SUFFIXES.into_iter().rev() {
        if count != 0 && count.is_multiple_of(1 << shift) {
            return format!("{}{suffix}", count >> shift);
        }
    }
    count.to_string()
}

/// A size with one decimal in the largest binary unit that leaves at least one: `46.8 GiB`.
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would print as 1024.0.
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// A time with three significant digits: `950 ns`, `12.4 µs`, `1.24 ms`, `305 s`.
pub fn format_time_ns(time_ns: u64) -> String {
    const UNITS: [&str; 3] = ["µs", "ms", "s"];
    if time_ns < 1000 {
        return format!("{time_ns} ns");
    }
    let mut time = time_ns as f64 / 1000.0;
    let mut unit = 0;
    // 999.5 would print as 1000.
    while time >= 999.5 && unit + 1 < UNITS.len() {
        time /= 1000.0;
        unit += 1;
    }
    let decimals = match time {
        t if t < 9.995 => 2,
        t if t < 99.95 => 1,
        _ => 0,
    };
    format!("{time:.decimals$} {}", UNITS[unit])
}

/// At most 100 characters of a text, for a message.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_owned(),
    }
}
