//! Numbers of a case: which of them say better or worse, and how two compare.

use serde_json::Value;

/// Ratios this near 1 are those of equal numbers.
const EQUAL: f64 = 1e-9;

/// Which way is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worse {
    /// Times, bytes, excesses, errors.
    Larger,
    /// Speeds.
    Smaller,
    /// Neither: counts, bounds, and what is measured to compare with.
    Neither,
}

impl Worse {
    /// Of the number of this name.
    pub(super) fn of(name: &str) -> Self {
        const YARDSTICKS: [&str; 4] = ["bound", "arrival", "home_", "reference_"];
        const LARGER: [&str; 9] = [
            "_ns", "_us", "_ms", "_bytes", "excess", "_gap", "_error", "_ratio", "wrong",
        ];
        const SMALLER: [&str; 4] = ["_tflops", "speedup", "_speed", "_gb_s"];
        if name == "pool_excess" || YARDSTICKS.iter().any(|part| name.contains(part)) {
            return Self::Neither;
        }
        let of = plain(name);
        if LARGER.iter().any(|unit| of.ends_with(unit)) || of == "exposed_fraction" {
            Self::Larger
        } else if SMALLER.iter().any(|unit| of.ends_with(unit)) {
            Self::Smaller
        } else {
            Self::Neither
        }
    }

    /// Its name in reports.
    pub(super) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Larger => Some("larger"),
            Self::Smaller => Some("smaller"),
            Self::Neither => None,
        }
    }
}

/// A name without what it is of many numbers.
fn plain(name: &str) -> &str {
    let of = ["_mean", "_max", "_min", "_median"];
    of.iter()
        .find_map(|of| name.strip_suffix(of))
        .unwrap_or(name)
}

/// Numbers that are heaviest over mean less 1, or the like: 0 is perfect, and what they cost in time is 1 more.
fn is_excess(name: &str) -> bool {
    let of = plain(name);
    of.ends_with("excess") || of.ends_with("_gap")
}

/// One number, or several samples of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number {
    /// The median of the samples, the mean of both in the middle.
    pub(super) value: f64,
    /// Standard deviation over mean, of at least two samples.
    pub(super) deviation: Option<f64>,
}

impl Number {
    fn new(value: &Value) -> Option<Self> {
        if let Some(value) = value.as_f64() {
            return Some(Self {
                value,
                deviation: None,
            });
        }
        let samples = value.as_array()?.iter().map(Value::as_f64);
        let mut samples: Vec<f64> = samples.collect::<Option<_>>()?;
        samples.sort_by(f64::total_cmp);
        let count = samples.len();
        let value = match count {
            0 => return None,
            _ => samples[(count - 1) / 2].midpoint(samples[count / 2]),
        };
        let mean = samples.iter().sum::<f64>() / count as f64;
        let squares = samples
            .iter()
            .map(|sample| (sample - mean).powi(2))
            .sum::<f64>();
        let deviation = (squares / (count as f64 - 1.0)).sqrt() / mean;
        Some(Self {
            value,
            deviation: deviation.is_finite().then_some(deviation),
        })
    }
}

/// All numbers of an object by name, those of objects within it under both names; lists that are not all numbers have
/// none.
pub(super) fn all(object: &Value) -> Vec<(String, Number)> {
    let mut numbers = Vec::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        if value.is_object() {
            let inner = all(value).into_iter();
            numbers.extend(inner.map(|(of, number)| (format!("{name}_{of}"), number)));
        } else {
            numbers.extend(Number::new(value).map(|number| (name.clone(), number)));
        }
    }
    numbers
}

/// A number in two reports.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) a: Number,
    pub(super) b: Number,
}

impl Pair {
    /// The second over the first; of an excess 1 is added to both. Infinite where the first is nothing.
    pub(super) fn ratio(&self) -> f64 {
        let more = if is_excess(&self.name) { 1.0 } else { 0.0 };
        let (a, b) = (self.a.value + more, self.b.value + more);
        if a == b { 1.0 } else { b / a }
    }

    /// Whether they differ by no more than sums in another order do.
    pub(super) fn is_equal(&self) -> bool {
        (self.ratio() - 1.0).abs() < EQUAL
    }

    /// How far samples scatter the ratio.
    pub(super) fn spread(&self) -> Option<f64> {
        let (a, b) = (self.a.deviation?, self.b.deviation?);
        Some(self.ratio() * a.hypot(b))
    }

    /// Whether the second is worse by more than `threshold`, 0.05 for 5 %.
    pub(super) fn is_over(&self, threshold: f64) -> bool {
        match Worse::of(&self.name) {
            _ if self.is_equal() => false,
            Worse::Larger => self.ratio() > 1.0 + threshold,
            Worse::Smaller => self.ratio().recip() > 1.0 + threshold,
            Worse::Neither => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pair(name: &str, a: Value, b: Value) -> Pair {
        let number = |value: &Value| Number::new(value).expect("a number");
        Pair {
            name: name.to_owned(),
            a: number(&a),
            b: number(&b),
        }
    }

    #[test]
    fn the_unit_says_which_way_is_worse() {
        for (name, worse) in [
            ("forward_ns", Worse::Larger),
            ("moved_bytes_mean", Worse::Larger),
            ("worst_excess_max", Worse::Larger),
            ("wrong", Worse::Larger),
            ("forward_tflops", Worse::Smaller),
            ("speedup_mean", Worse::Smaller),
            ("tiles", Worse::Neither),
            ("moved_bytes_bound_mean", Worse::Neither),
            ("home_excess", Worse::Neither),
            ("pool_excess", Worse::Neither),
        ] {
            assert_eq!(Worse::of(name), worse, "{name}");
        }
    }

    #[test]
    fn samples_compare_by_their_medians_and_scatter() {
        let pair = pair("forward_ns", json!([30, 10, 20]), json!([40, 60]));
        assert_eq!(
            (pair.a.value, pair.b.value, pair.ratio()),
            (20.0, 50.0, 2.5)
        );
        // Deviations 10 of 20 and 14.14 of 50.
        let spread = pair.spread().expect("samples");
        assert!(
            (spread - 2.5 * (0.25f64 + 0.08).sqrt()).abs() < 1e-12,
            "{spread}"
        );
        assert_eq!(
            all(&json!({ "a": [1, "x"], "b": [], "c": null, "d": "1" })),
            []
        );
    }

    #[test]
    fn worse_is_over_the_threshold_in_the_bad_direction_alone() {
        let over = |name: &str, a: f64, b: f64| pair(name, json!(a), json!(b)).is_over(0.05);
        assert!(over("plan_ns", 100.0, 106.0) && !over("plan_ns", 100.0, 105.0));
        assert!(!over("plan_ns", 100.0, 10.0));
        assert!(over("forward_tflops", 106.0, 100.0) && !over("forward_tflops", 1.0, 9.0));
        // R of 1.001 and 1.002; R of 1.0 and 1.1.
        assert!(!over("intra_excess", 0.001, 0.002) && over("intra_excess", 0.0, 0.1));
        assert!(over("moved_bytes", 0.0, 1.0) && !over("moved_bytes", 0.0, 0.0));
        assert!(!over("tiles", 1.0, 9.0));
        let summed = pair("port_us", json!(0.1 + 0.2), json!(0.3));
        assert!(summed.is_equal() && !summed.is_over(0.0) && summed.a != summed.b);
    }
}
