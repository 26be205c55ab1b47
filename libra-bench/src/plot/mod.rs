//! Plots as SVG: lines, points, bars, heat maps and timelines.
//!
//! Equal values give equal bytes. A plot names what it shows (`title`, `desc`), is read in light and dark, and does not
//! tell its series apart by colour alone. A length in a plot is in units of its view box.

mod axes;
mod axis;
mod heat;
mod style;
mod timeline;

use maud::{Markup, html};

pub(crate) use axes::{Axes, Mark, Series};
pub(crate) use axis::{Axis, ecdf};
pub(crate) use heat::Heat;
pub(crate) use style::{COLOURS, CSS};
pub(crate) use timeline::{Span, SpanKind, Timeline};

/// Width of a panel.
const WIDTH: f64 = 460.0;
/// Between panels of a file.
const GAP: f64 = 16.0;
/// Panels of a file beside each other.
const COLUMNS: usize = 2;

/// One plot: panels under a name.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Letters, digits and hyphens; no two figures of a page share it.
    pub(crate) id: String,
    /// What it shows, in a few words.
    pub(crate) title: String,
    /// What there is to see, for who does not see it.
    pub(crate) description: String,
    /// In order.
    pub(crate) panels: Vec<Panel>,
}

/// One part of a figure.
#[derive(Clone, Debug)]
pub(crate) enum Panel {
    /// Series over two axes.
    Axes(Axes),
    /// A matrix.
    Heat(Heat),
    /// What each lane did when.
    Timeline(Timeline),
}

/// Something drawn, and how high it is.
struct Drawn {
    markup: Markup,
    height: f64,
}

impl Figure {
    /// A file of its own.
    pub(crate) fn file(&self) -> String {
        let drawn: Vec<Drawn> = self.panels.iter().map(Panel::draw).collect();
        let columns = drawn.len().clamp(1, COLUMNS);
        let width = columns as f64 * (WIDTH + GAP) - GAP;
        let mut top = 34.0;
        let mut placed = Vec::new();
        for row in drawn.chunks(columns) {
            for (panel, left) in row.iter().zip(0u32..) {
                placed.push((f64::from(left) * (WIDTH + GAP), top, &panel.markup));
            }
            top += row.iter().map(|panel| panel.height).fold(0.0, f64::max);
        }
        let content = html! {
            style { (maud::PreEscaped(CSS)) }
            rect class="plot-paper" width="100%" height="100%" {}
            text class="plot-title" x="12" y="24" { (self.title) }
            @for (left, top, panel) in placed {
                g transform={ "translate(" (number(left)) " " (number(top)) ")" } { (panel) }
            }
        };
        let mut text = self.wrap(&self.id, &self.title, width, top, &content).0;
        text.push('\n');
        text
    }

    /// One element a panel, for a page that has the style sheet.
    pub(crate) fn inline(&self) -> Vec<Markup> {
        let several = self.panels.len() > 1;
        let panel = |(panel, nth): (&Panel, u32)| {
            let drawn = panel.draw();
            let (id, title) = if several {
                let title = format!("{}: {}", self.title, panel.title());
                (format!("{}-{nth}", self.id), title)
            } else {
                (self.id.clone(), self.title.clone())
            };
            self.wrap(&id, &title, WIDTH, drawn.height, &drawn.markup)
        };
        self.panels.iter().zip(1u32..).map(panel).collect()
    }

    fn wrap(&self, id: &str, title: &str, width: f64, height: f64, content: &Markup) -> Markup {
        html! {
            svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img"
                viewBox={ "0 0 " (number(width)) " " (number(height)) }
                width=(number(width)) height=(number(height))
                aria-labelledby={ (id) "-title" } aria-describedby={ (id) "-desc" } {
                title id={ (id) "-title" } { (title) }
                desc id={ (id) "-desc" } { (self.description) }
                (content)
            }
        }
    }
}

impl Panel {
    fn draw(&self) -> Drawn {
        match self {
            Self::Axes(axes) => axes.draw(),
            Self::Heat(heat) => heat.draw(),
            Self::Timeline(timeline) => timeline.draw(),
        }
    }

    fn title(&self) -> &str {
        match self {
            Self::Axes(axes) => &axes.title,
            Self::Heat(heat) => &heat.title,
            Self::Timeline(timeline) => &timeline.title,
        }
    }
}

/// A coordinate: one decimal, none where it is 0.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), |whole| {
        if whole == "-0" {
            "0".to_owned()
        } else {
            whole.to_owned()
        }
    })
}

/// Width of a text in the plot's font, roughly: an average of its letters.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.0
}

/// A value for people: three digits that matter.
pub(crate) fn value_text(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e6).contains(&size) {
        return format!("{value:.1e}");
    }
    let decimals = (2 - libm::floor(libm::log10(size)) as i32).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        let text = text.trim_end_matches('0').trim_end_matches('.');
        return text.to_owned();
    }
    text
}

/// Names of series with their marks, broken into rows; returns it and its height.
fn legend(entries: &[(String, Markup)], left: f64, top: f64, right: f64) -> Drawn {
    let (mut x, mut y) = (left, top);
    let mut placed = Vec::new();
    for (name, sample) in entries {
        let width = 34.0 + text_width(name) + 12.0;
        if x > left && x + width > right {
            (x, y) = (left, y + 19.0);
        }
        placed.push((x, y, name, sample));
        x += width;
    }
    let height = if entries.is_empty() {
        0.0
    } else {
        y - top + 19.0
    };
    let markup = html! {
        @for (x, y, name, sample) in placed {
            g transform={ "translate(" (number(x)) " " (number(y)) ")" } {
                (sample)
                text x="34" y="4" { (name) }
            }
        }
    };
    Drawn { markup, height }
}

#[cfg(test)]
mod tests;
