//! The histogram of a corpus as SVG: shares of samples, tokens and work by powers of two.

use std::path::Path;

use crate::failure::Failure;
use crate::plot::{Axes, Axis, Figure, Mark, Panel, Series};
use crate::store;
use crate::units::format_count;
use crate::workload::{CorpusStats, Share};

/// What is plotted, and its share.
type Of = (&'static str, fn(&Share) -> f64);
const SHARES: [Of; 3] = [
    ("samples", |share| share.sample_share),
    ("tokens", |share| share.token_share),
    ("work", |share| share.work_share),
];

/// The path of a plot, which must be that of an SVG, in a place that can be written.
pub(super) fn checked(path: &Path) -> Result<&Path, Failure> {
    let suffix = path.extension().and_then(|suffix| suffix.to_str());
    let is_svg = suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("svg"));
    match path.file_name() {
        Some(_) if is_svg => store::check_writable(path).map(|()| path),
        _ => Err(Failure::PlotSuffix {
            path: path.to_owned(),
        }),
    }
}

/// The plot.
pub(super) fn svg(name: &str, stats: &CorpusStats) -> String {
    let shares = &stats.shares;
    let percents = |of: fn(&Share) -> f64| shares.iter().map(move |share| 100.0 * of(share));
    let bars = |(colour, (name, of)): (usize, Of)| Series {
        name: format!("% of the {name}"),
        colour,
        mark: Mark::Bars,
        points: (0u32..).map(f64::from).zip(percents(of)).collect(),
    };
    let lengths = shares.iter().map(|share| format_count(share.tokens));
    let figure = Figure {
        id: "lengths".to_owned(),
        title: format!(
            "{name}: {} samples, {} tokens",
            stats.samples, stats.tokens
        ),
        description:
            "Shares of samples, of their tokens and of their work, the square of the length, by powers of two of the length."
                .to_owned(),
        panels: vec![Panel::Axes(Axes {
            title: "shares by length".to_owned(),
            x: Axis::names("tokens of a sample, from", lengths),
            y: Axis::linear("%", SHARES.into_iter().flat_map(|(_, of)| percents(of))),
            series: SHARES.into_iter().enumerate().map(bars).collect(),
        })],
    };
    figure.file()
}
