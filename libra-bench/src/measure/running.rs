//! Means, largest values and medians of numbers that are seen once and not kept.

use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

/// Digits of a median that hold.
const DIGITS: u8 = 3;

/// Mean and largest of some numbers; 0 of none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread {
    sum: f64,
    count: u64,
    max: f64,
}

impl Spread {
    pub(super) fn add(&mut self, value: f64) {
        self.max = if self.count == 0 {
            value
        } else {
            value.max(self.max)
        };
        self.sum += value;
        self.count += 1;
    }

    pub(super) fn add_some(this: &mut Option<Self>, value: Option<f64>) {
        if let Some(value) = value {
            this.get_or_insert_default().add(value);
        }
    }

    /// Their mean.
    pub(crate) fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    /// The largest.
    pub(crate) fn max(&self) -> f64 {
        self.max
    }
}

impl Serialize for Spread {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown {
            mean: f64,
            max: f64,
        }
        let shown = Shown {
            mean: self.mean(),
            max: self.max,
        };
        shown.serialize(serializer)
    }
}

/// Mean of whole numbers, rounded down; in JSON the mean alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mean {
    sum: u128,
    count: u64,
}

impl Mean {
    pub(super) fn add(&mut self, value: u64) {
        self.add_sum(value.into(), 1);
    }

    /// `count` numbers that add up to `sum`.
    pub(super) fn add_sum(&mut self, sum: u128, count: u64) {
        self.sum += sum;
        self.count += count;
    }

    /// Their mean.
    pub(crate) fn mean(&self) -> u64 {
        u64::try_from(self.sum / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }

    /// All of them over all of `other`; two that are nothing are alike.
    pub(super) fn ratio(&self, other: &Self) -> f64 {
        match other.sum {
            0 => 1.0,
            sum => self.sum as f64 / sum as f64,
        }
    }
}

impl Serialize for Mean {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.mean().serialize(serializer)
    }
}

/// Times in ns; in JSON their median, to three digits.
#[derive(Clone, Debug)]
pub(crate) struct Times(Histogram<u32>);

impl Default for Times {
    fn default() -> Self {
        Self(Histogram::new(DIGITS).expect("three digits are legal"))
    }
}

impl Times {
    pub(super) fn add(&mut self, time_ns: u64) {
        // Years do not occur.
        let recorded = self.0.record(time_ns.min(u64::MAX >> 1));
        debug_assert!(recorded.is_ok(), "the histogram grows with its values");
    }

    /// The middle one, nothing of none.
    pub(crate) fn median(&self) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(0.5))
    }
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.median().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_of_negative_numbers_has_a_negative_largest() {
        let mut spread = Spread::default();
        assert_eq!((spread.mean(), spread.max()), (0.0, 0.0));
        for value in [-3.0, -1.0] {
            spread.add(value);
        }
        assert_eq!((spread.mean(), spread.max()), (-2.0, -1.0));
    }

    #[test]
    fn means_of_sums_beyond_64_bits_are_right() {
        let mut mean = Mean::default();
        for value in [u64::MAX, u64::MAX, 0] {
            mean.add(value);
        }
        assert_eq!(mean.mean(), u64::MAX / 3 * 2);
        assert_eq!(mean.ratio(&mean), 1.0);
        assert_eq!(mean.ratio(&Mean::default()), 1.0);
    }

    #[test]
    fn a_median_is_within_a_thousandth_of_the_middle_value() {
        let mut times = Times::default();
        assert_eq!(times.median(), None);
        for time in [9_000_000_000, 12_345, 1] {
            times.add(time);
        }
        let median = times.median().expect("some") as f64;
        assert!((median / 12_345.0 - 1.0).abs() < 1e-3, "{median}");
    }
}
