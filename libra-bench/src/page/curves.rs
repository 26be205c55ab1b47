//! Numbers over the pool size, a curve a name.

use std::collections::{BTreeMap, BTreeSet};

use crate::plot::{Axes, Axis, COLOURS, Mark, Panel, Series};

/// Several numbers at each P, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Curves<const N: usize> {
    by_name: BTreeMap<String, BTreeMap<u64, [f64; N]>>,
}

impl<const N: usize> Curves<N> {
    /// Adds a place; the first of a name and size stays.
    pub(super) fn add(&mut self, name: String, size: u64, values: [f64; N]) {
        let curve = self.by_name.entry(name).or_default();
        curve.entry(size).or_insert(values);
    }

    /// All sizes, rising.
    pub(super) fn sizes(&self) -> BTreeSet<u64> {
        let curves = self.by_name.values();
        curves.flat_map(|curve| curve.keys().copied()).collect()
    }

    /// Every place: its size, its name and its numbers.
    pub(super) fn places(&self) -> impl Iterator<Item = (u64, &str, &[f64; N])> {
        self.by_name.iter().flat_map(|(name, curve)| {
            let place = move |(&size, values)| (size, name.as_str(), values);
            curve.iter().map(place)
        })
    }

    /// Curves that are not drawn, since colours would repeat; in words, or nothing.
    pub(super) fn left_out(&self) -> String {
        match self.by_name.len().saturating_sub(COLOURS) {
            0 => String::new(),
            count => format!(" {count} more curves are in the table alone."),
        }
    }

    /// The `nth` number over P.
    pub(super) fn panel(&self, title: &str, label: &str, nth: usize) -> Panel {
        let sizes: Vec<u64> = self.sizes().into_iter().collect();
        let place = |size: &u64| sizes.iter().position(|one| one == size).unwrap_or(0) as f64;
        let line = |(colour, (name, curve)): (usize, (&String, &BTreeMap<u64, [f64; N]>))| Series {
            name: name.clone(),
            colour,
            mark: Mark::Line,
            points: (curve.iter())
                .map(|(size, values)| (place(size), values[nth]))
                .collect(),
        };
        let curves = self.by_name.iter().take(COLOURS);
        let series: Vec<Series> = curves.enumerate().map(line).collect();
        let values = series
            .iter()
            .flat_map(|series| &series.points)
            .map(|&(_, y)| y);
        Panel::Axes(Axes {
            title: title.to_owned(),
            x: Axis::names("P, sequences of a pool", &sizes),
            y: Axis::linear(label, values),
            series,
        })
    }
}
