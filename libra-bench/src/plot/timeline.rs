//! What each lane did when: a Gantt chart.

use maud::{Markup, html};

use super::axis::Axis;
use super::{Drawn, WIDTH, legend, number, text_width, value_text};

/// Lanes over time.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// What it shows, in a few words.
    pub(crate) title: String,
    /// Unit of the times.
    pub(crate) unit: &'static str,
    /// A name, and what was done.
    pub(crate) lanes: Vec<(String, Vec<Span>)>,
}

/// Something done.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// When it began.
    pub(crate) from: f64,
    /// When it was done.
    pub(crate) to: f64,
    /// What kind of thing.
    pub(crate) kind: SpanKind,
    /// What it was, in a few words.
    pub(crate) name: String,
}

/// What kind of thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// Attention.
    Compute,
    /// Waiting for messages.
    Wait,
    /// Messages under way.
    Transfer,
}

const KINDS: [(SpanKind, &str, usize); 3] = [
    (SpanKind::Compute, "attention", 0),
    (SpanKind::Wait, "waiting", 1),
    (SpanKind::Transfer, "messages", 2),
];
const TOP: f64 = 30.0;
const RIGHT: f64 = WIDTH - 26.0;

impl Timeline {
    pub(super) fn draw(&self) -> Drawn {
        let ends = self
            .lanes
            .iter()
            .flat_map(|(_, spans)| spans)
            .map(|span| span.to);
        let axis = Axis::linear(format!("time, {}", self.unit), ends);
        let left = 12.0
            + self
                .lanes
                .iter()
                .map(|(name, _)| text_width(name))
                .fold(20.0, f64::max)
            + 8.0;
        let lane = (320.0 / self.lanes.len().max(1) as f64).clamp(6.0, 26.0);
        let bottom = TOP + lane * self.lanes.len() as f64;
        let x_of = |value: f64| left + axis.place(value) * (RIGHT - left);
        let step = (14.0 / lane).ceil().max(1.0) as usize;
        let legend = self.legend(bottom);
        let markup = html! {
            text class="plot-name" x="12" y="18" { (self.title) }
            @for (value, text) in axis.ticks() {
                path class="plot-grid" d={ "M" (number(x_of(value))) " " (number(TOP)) "V" (number(bottom)) } {}
                text x=(number(x_of(value))) y=(number(bottom + 18.0)) text-anchor="middle" { (text) }
            }
            @for ((_, spans), nth) in self.lanes.iter().zip(0u32..) {
                @let top = TOP + f64::from(nth) * lane;
                @for span in spans { (bar(span, x_of(span.from), x_of(span.to), top, lane, self.unit)) }
            }
            @for ((name, _), nth) in self.lanes.iter().zip(0u32..).step_by(step) {
                text x=(number(left - 7.0)) y=(number(TOP + (f64::from(nth) + 0.5) * lane + 4.0)) text-anchor="end" { (name) }
            }
            text x=(number((left + RIGHT) / 2.0)) y=(number(bottom + 37.0)) text-anchor="middle" { (axis.label) }
            (legend.markup)
        };
        Drawn {
            markup,
            height: bottom + 48.0 + legend.height,
        }
    }

    fn legend(&self, bottom: f64) -> Drawn {
        let spans = || self.lanes.iter().flat_map(|(_, spans)| spans);
        let used = KINDS
            .iter()
            .filter(|(kind, ..)| spans().any(|span| span.kind == *kind));
        let entry = |(kind, name, colour): &(SpanKind, &str, usize)| {
            let sample =
                html! { rect class=(class(*kind, *colour)) x="4" y="-6" width="22" height="12" {} };
            ((*name).to_owned(), sample)
        };
        legend(
            &used.map(entry).collect::<Vec<_>>(),
            12.0,
            bottom + 60.0,
            RIGHT,
        )
    }
}

/// A bar within its lane; messages are half as high, so that what is beside them shows.
fn bar(span: &Span, left: f64, right: f64, top: f64, lane: f64, unit: &str) -> Markup {
    let (_, kind, colour) = KINDS[span.kind as usize];
    let height = match span.kind {
        SpanKind::Transfer => lane * 0.35,
        _ => lane * 0.8,
    };
    html! {
        rect class=(class(span.kind, colour)) x=(format!("{left:.2}")) y=(format!("{:.2}", top + lane * 0.1))
            width=(format!("{:.2}", (right - left).max(0.2))) height=(format!("{height:.2}")) {
            title { (kind) ", " (span.name) ": " (value_text(span.from)) " to " (value_text(span.to)) " " (unit) }
        }
    }
}

fn class(kind: SpanKind, colour: usize) -> String {
    let faint = if kind == SpanKind::Wait {
        " plot-faint"
    } else {
        ""
    };
    format!("plot-f{colour}{faint}")
}
