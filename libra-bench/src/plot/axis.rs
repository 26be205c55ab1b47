//! From values to places along a line.

use std::ops::RangeInclusive;

/// What runs along a side of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What it counts, with its unit.
    pub(crate) label: String,
    scale: Scale,
}

#[derive(Clone, Debug)]
enum Scale {
    /// From 0, or below, in equal steps.
    Linear { from: f64, to: f64, step: f64 },
    /// Decades.
    Log { from: i32, to: i32 },
    /// Names in equal distances; the place of the nth is n.
    Names(Vec<String>),
}

/// Decades below the largest that a logarithmic axis shows at most.
const DECADES_MAX: i32 = 6;

impl Axis {
    /// From 0 to the largest value, in round steps. Values that are not finite do not count.
    pub(crate) fn linear(label: impl Into<String>, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((0f64, 0f64), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let span = if high > low { high - low } else { 1.0 };
        let step = round_step(span / 5.0);
        Self {
            label: label.into(),
            scale: Scale::Linear {
                from: libm::floor(low / step) * step,
                to: (libm::ceil((low + span) / step - 1e-9)) * step,
                step,
            },
        }
    }

    /// Whole decades around the positive values; what is smaller than the axis shows lies on its end.
    pub(crate) fn log(label: impl Into<String>, values: impl Iterator<Item = f64>) -> Self {
        let positive = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = positive.fold((f64::INFINITY, 0f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (from, to) = if high > 0.0 {
            let to = libm::ceil(libm::log10(high)) as i32;
            let from = libm::floor(libm::log10(low)) as i32;
            (from.clamp(to - DECADES_MAX, to - 1), to)
        } else {
            (-1, 0)
        };
        Self {
            label: label.into(),
            scale: Scale::Log { from, to },
        }
    }

    /// One place a name.
    pub(crate) fn names(
        label: impl Into<String>,
        names: impl IntoIterator<Item = impl ToString>,
    ) -> Self {
        Self {
            label: label.into(),
            scale: Scale::Names(names.into_iter().map(|name| name.to_string()).collect()),
        }
    }

    /// Where `value` is, 0 at the start of the axis and 1 at its end; values beyond lie on the ends.
    pub(super) fn place(&self, value: f64) -> f64 {
        let place = match &self.scale {
            Scale::Linear { from, to, .. } => (value - from) / (to - from),
            Scale::Log { from, to } if value > 0.0 => {
                (libm::log10(value) - f64::from(*from)) / f64::from(to - from)
            }
            Scale::Log { .. } => 0.0,
            Scale::Names(names) => (value + 0.5) / names.len().max(1) as f64,
        };
        if place.is_nan() {
            0.0
        } else {
            place.clamp(0.0, 1.0)
        }
    }

    /// Values with a line, and what is written there.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match &self.scale {
            Scale::Linear { from, to, step } => {
                let count = libm::round((to - from) / step) as u32;
                let tick = |nth: u32| from + f64::from(nth) * step;
                let decimals = (-libm::floor(libm::log10(*step) + 1e-9)).clamp(0.0, 9.0) as usize;
                let text = |value: f64| format!("{:.decimals$}", value + 0.0);
                (0..=count).map(tick).map(|v| (v, text(v))).collect()
            }
            Scale::Log { from, to } => (*from..=*to).map(decade).collect(),
            Scale::Names(names) => names
                .iter()
                .zip(0u32..)
                .map(|(name, nth)| (f64::from(nth), name.clone()))
                .collect(),
        }
    }

    /// The name at a place of an axis of names, the number on others.
    pub(super) fn text_of(&self, value: f64) -> String {
        match &self.scale {
            Scale::Names(names) => {
                let name = names.get(libm::round(value).max(0.0) as usize);
                name.cloned().unwrap_or_else(|| super::value_text(value))
            }
            _ => super::value_text(value),
        }
    }

    /// How many names there are, where it is an axis of names.
    pub(super) fn name_count(&self) -> Option<usize> {
        match &self.scale {
            Scale::Names(names) => Some(names.len()),
            _ => None,
        }
    }

    /// What bars stand on.
    pub(super) fn floor(&self) -> f64 {
        match self.scale {
            Scale::Log { from, .. } => libm::pow(10.0, f64::from(from)),
            _ => 0.0,
        }
    }
}

fn decade(power: i32) -> (f64, String) {
    const PLAIN: RangeInclusive<i32> = -4..=4;
    let value = libm::pow(10.0, f64::from(power));
    if PLAIN.contains(&power) {
        let decimals = usize::try_from(-power).unwrap_or(0);
        (value, format!("{value:.decimals$}"))
    } else {
        (value, format!("1e{power}"))
    }
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn round_step(step: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(step)));
    let round = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let fits = round
        .into_iter()
        .find(|&round| round >= step * (1.0 - 1e-9));
    fits.unwrap_or(step)
}

/// Share of the values that are at most x, at each value: points of a step curve.
pub(crate) fn ecdf(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (nth, value) in (1u32..).zip(sorted) {
        let point = (value, f64::from(nth) / count);
        match points.last_mut() {
            Some(last) if last.0 == value => *last = point,
            _ => points.push(point),
        }
    }
    points
}
