//! How far above the mean a worker's load may go, exactly.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

pub(super) const PER_UNIT: u32 = 1_000_000;
/// Largest finite slack: a thousand times the mean.
const MAX_UNITS: u32 = 1000;

/// The slack τ in parts per million: no float takes part in a placement.
///
/// ```
/// let slack: libra_sched::Slack = "0.03".parse()?;
/// assert_eq!(slack, libra_sched::Slack::PAPER);
/// # Ok::<(), libra_sched::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slack(u32);

impl Slack {
    /// τ = 0.03, the paper's value.
    pub const PAPER: Self = Self(30_000);
    /// τ → ∞: traffic alone decides.
    pub const UNBOUNDED: Self = Self(u32::MAX);

    /// τ in parts per million.
    ///
    /// # Errors
    /// Beyond 1000, other than `u32::MAX`, which stands for no limit.
    pub fn from_ppm(ppm: u32) -> Result<Self, Error> {
        if ppm > MAX_UNITS * PER_UNIT && ppm != u32::MAX {
            return Err(Error::BadSlack {
                value: format!("{ppm} ppm"),
                limit: MAX_UNITS,
            });
        }
        Ok(Self(ppm))
    }

    /// τ in parts per million; `u32::MAX` stands for no limit.
    #[must_use]
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// Largest integer load within (1+τ)·total/workers.
    #[must_use]
    pub fn capacity(self, total: u64, workers: u32) -> u64 {
        if self == Self::UNBOUNDED {
            return u64::MAX;
        }
        let share = u128::from(PER_UNIT) * u128::from(workers.max(1));
        let capacity = u128::from(total) * u128::from(PER_UNIT + self.0) / share;
        u64::try_from(capacity).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Slack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::UNBOUNDED {
            return f.write_str("inf");
        }
        f.write_str(&format_ppm(self.0))
    }
}

impl FromStr for Slack {
    type Err = Error;

    /// A decimal fraction with up to six digits after the point, or `inf`.
    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "inf" {
            return Ok(Self::UNBOUNDED);
        }
        parse_ppm(text)
            .filter(|&ppm| ppm <= u64::from(MAX_UNITS * PER_UNIT))
            .map(|ppm| Self(ppm as u32))
            .ok_or_else(|| Error::BadSlack {
                value: text.to_owned(),
                limit: MAX_UNITS,
            })
    }
}

/// A decimal fraction without zeros at its end.
pub(super) fn format_ppm(ppm: u32) -> String {
    let text = format!("{}.{:06}", ppm / PER_UNIT, ppm % PER_UNIT);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Parts per million of a decimal fraction with up to six digits after the point.
pub(super) fn parse_ppm(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |s: &str| !s.is_empty() && s.len() <= 6 && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let parts: u64 = format!("{fraction:0<6}").parse().ok()?;
    Some(whole.parse::<u64>().ok()? * u64::from(PER_UNIT) + parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_value_agree() {
        for text in ["0", "0.03", "0.005", "1.5", "inf", "1000"] {
            assert_eq!(
                text.parse::<Slack>().map(|s| s.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", "-0.1", "nan", "1e-2", "0.0000001", "1000.5", ".5", "5."] {
            assert!(text.parse::<Slack>().is_err(), "{text:?} must be refused");
        }
    }

    #[test]
    fn capacity_is_exact_where_floats_would_round() {
        // 1.03 · (2^63 − 1) / 7, whose product does not fit 64 bits.
        assert_eq!(
            Slack::PAPER.capacity(u64::MAX / 2, 7),
            1_357_153_313_994_345_583
        );
        assert_eq!(Slack::from_ppm(0).map(|s| s.capacity(10, 4)), Ok(2));
    }
}
