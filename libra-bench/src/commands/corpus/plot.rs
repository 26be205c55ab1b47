//! The histogram of a corpus as SVG: shares of samples, tokens and work by powers of two.

use std::fmt::Write;
use std::path::Path;

use crate::failure::Failure;
use crate::units::format_count;
use crate::workload::{CorpusStats, Share};

/// Pixels of a bucket, of its bars, of the plot's height, and around it.
const BUCKET: f64 = 36.0;
const BAR: f64 = 10.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 48.0;
/// Least width, for the heading.
const WIDTH_MIN: f64 = 420.0;

/// What is plotted: its name, its colour (Okabe and Ito's, which the colour-blind tell apart) and its share.
type Series = (&'static str, &'static str, fn(&Share) -> f64);
const SERIES: [Series; 3] = [
    ("samples", "#0072b2", |share| share.sample_share),
    ("tokens", "#e69f00", |share| share.token_share),
    ("work", "#009e73", |share| share.work_share),
];

/// The path of a plot, which must be that of an SVG.
pub(super) fn checked(path: &Path) -> Result<&Path, Failure> {
    let suffix = path.extension().and_then(|suffix| suffix.to_str());
    let is_svg = suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("svg"));
    match path.file_name() {
        Some(_) if is_svg => Ok(path),
        _ => Err(Failure::PlotSuffix {
            path: path.to_owned(),
        }),
    }
}

/// The plot.
pub(super) fn svg(name: &str, stats: &CorpusStats) -> String {
    let shares = &stats.shares;
    let plot_width = (shares.len() as f64 * BUCKET).max(WIDTH_MIN - LEFT - 12.0);
    let (width, height) = (LEFT + plot_width + 12.0, TOP + HEIGHT + BOTTOM);
    // Up to the next ten per cent.
    let most = (shares.iter())
        .flat_map(|share| SERIES.map(|(_, _, of)| of(share)))
        .fold(0.0, f64::max);
    let tenths = (most * 10.0).ceil().clamp(1.0, 10.0);
    let y = |share: f64| TOP + HEIGHT - share * 10.0 / tenths * HEIGHT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"13\">{}: {} samples, {} tokens</text>\n",
        escaped(name),
        stats.samples,
        stats.tokens,
    );
    for (index, (name, colour, _)) in SERIES.iter().enumerate() {
        let x = LEFT + 80.0 * index as f64;
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"28\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"37\">{name}</text>",
            x + 14.0
        );
    }
    for tenth in 0..=tenths as u32 {
        let at = y(f64::from(tenth) / 10.0);
        let right = LEFT + plot_width;
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#cccccc\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{} %</text>",
            LEFT - 6.0,
            at + 4.0,
            10 * tenth
        );
    }
    for (index, share) in shares.iter().enumerate() {
        let left = LEFT + BUCKET * index as f64;
        for (place, (name, colour, of)) in SERIES.iter().enumerate() {
            let (x, top) = (left + 2.0 + BAR * place as f64, y(of(share)));
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"{top:.2}\" width=\"{BAR}\" height=\"{:.2}\" fill=\"{colour}\">\
                 <title>{:.2} % of the {name}</title></rect>",
                TOP + HEIGHT - top,
                100.0 * of(share)
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            left + 2.0,
            TOP + HEIGHT + 16.0,
            format_count(share.tokens)
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{}\">tokens of a sample, from</text>\n</svg>",
        TOP + HEIGHT + 36.0
    );
    out
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}
