//! Series over two axes: lines with points, steps, points alone, bars.

use maud::{Markup, html};

use super::axis::Axis;
use super::style::COLOURS;
use super::{Drawn, WIDTH, legend, number, text_width, value_text};

/// Series over two axes.
#[derive(Clone, Debug)]
pub(crate) struct Axes {
    /// What it shows, in a few words.
    pub(crate) title: String,
    /// Horizontal.
    pub(crate) x: Axis,
    /// Vertical.
    pub(crate) y: Axis,
    /// In order of drawing.
    pub(crate) series: Vec<Series>,
}

/// Values of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Its name in the legend.
    pub(crate) name: String,
    /// Which colour, and which shape of points.
    pub(crate) colour: usize,
    /// How values are drawn.
    pub(crate) mark: Mark,
    /// x and y; on an axis of names the nth name is n.
    pub(crate) points: Vec<(f64, f64)>,
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A line through points.
    Line,
    /// A line that is no measurement: a bound, an estimate.
    Dashed,
    /// A line that rises at each point: shares of values.
    Steps,
    /// Points alone.
    Points,
    /// Open points: what others published.
    Published,
    /// Bars beside those of other series.
    Bars,
    /// Bars behind others, as wide as all of them.
    Behind,
}

const TOP: f64 = 30.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 14.0;
const PLOT_HEIGHT: f64 = 230.0;
const BOTTOM: f64 = TOP + PLOT_HEIGHT;
/// Bars that are written on.
const WRITTEN_MAX: usize = 14;
/// Small text over the usual.
const SMALL: f64 = 11.0 / 13.0;
/// Points of a line that are marked.
const MARKED_MAX: usize = 40;

impl Axes {
    pub(super) fn draw(&self) -> Drawn {
        let entries: Vec<(String, Markup)> = if self.series.len() > 1 {
            let entry = |series: &Series| (series.name.clone(), series.sample());
            self.series.iter().map(entry).collect()
        } else {
            Vec::new()
        };
        let legend = legend(&entries, 12.0, BOTTOM + 60.0, RIGHT);
        let markup = html! {
            text class="plot-name" x="12" y="18" { (self.title) }
            (self.horizontal())
            (self.vertical())
            rect class="plot-frame" x=(number(LEFT)) y=(number(TOP))
                width=(number(RIGHT - LEFT)) height=(number(PLOT_HEIGHT)) {}
            @for series in self.series.iter().filter(|series| series.mark == Mark::Behind) {
                (self.bars(series, 0, 1))
            }
            (self.all_bars())
            @for series in &self.series { (self.line(series)) }
            (legend.markup)
        };
        Drawn {
            markup,
            height: BOTTOM + 52.0 + legend.height,
        }
    }

    fn horizontal(&self) -> Markup {
        let ticks = self.x.ticks();
        let touch = |every: &usize| {
            let shown = ticks.iter().step_by(*every);
            let shown: Vec<(f64, f64)> = shown
                .map(|(value, text)| (x_of(&self.x, *value), text_width(text)))
                .collect();
            (shown.windows(2)).any(|two| two[1].0 - two[0].0 < (two[0].1 + two[1].1) / 2.0 + 7.0)
        };
        // Labels that would touch are left out, in equal distances.
        let every = (1..=ticks.len()).find(|every| !touch(every)).unwrap_or(1);
        html! {
            @for (value, text) in ticks.iter().step_by(every) {
                text x=(number(x_of(&self.x, *value))) y=(number(BOTTOM + 18.0))
                    text-anchor="middle" { (text) }
            }
            text x=(number((LEFT + RIGHT) / 2.0)) y=(number(BOTTOM + 37.0))
                text-anchor="middle" { (self.x.label) }
        }
    }

    fn vertical(&self) -> Markup {
        html! {
            @for (value, text) in self.y.ticks() {
                @let y = y_of(&self.y, value);
                path class="plot-grid" d={ "M" (number(LEFT)) " " (number(y)) "H" (number(RIGHT)) } {}
                text x=(number(LEFT - 7.0)) y=(number(y + 4.0)) text-anchor="end" { (text) }
            }
            text text-anchor="middle" transform={
                "translate(14 " (number(TOP + PLOT_HEIGHT / 2.0)) ") rotate(-90)"
            } { (self.y.label) }
        }
    }

    fn all_bars(&self) -> Markup {
        let bars = self
            .series
            .iter()
            .filter(|series| series.mark == Mark::Bars);
        let bars: Vec<&Series> = bars.collect();
        html! {
            @for (nth, series) in bars.iter().enumerate() {
                (self.bars(series, nth, bars.len()))
            }
        }
    }

    /// The nth of `of` bars at each place.
    fn bars(&self, series: &Series, nth: usize, of: usize) -> Markup {
        let room = (RIGHT - LEFT) / self.x.name_count().unwrap_or(1).max(1) as f64;
        // Bars so thin that gaps would hide them touch.
        let used = if room < 8.0 { room } else { room * 0.8 };
        let width = used / of as f64;
        let ground = y_of(&self.y, self.y.floor());
        let is_written = series.points.len() * of <= WRITTEN_MAX && series.mark == Mark::Bars;
        let faint = if series.mark == Mark::Behind {
            " plot-faint"
        } else {
            ""
        };
        html! {
            @for (x, y) in &series.points {
                @let left = x_of(&self.x, *x) - used / 2.0 + nth as f64 * width;
                @let top = y_of(&self.y, *y);
                rect class={ "plot-f" (series.colour()) (faint) } x=(number(left)) y=(number(top.min(ground)))
                    width=(format!("{:.2}", width)) height=(number((ground - top).abs())) {
                    title { (series.name) ", " (self.x.text_of(*x)) ": " (value_text(*y)) }
                }
                @if is_written && text_width(&value_text(*y)) * SMALL <= width + 2.0 {
                    text class="plot-small" x=(number(left + width / 2.0)) y=(number(top.min(ground) - 4.0))
                        text-anchor="middle" { (value_text(*y)) }
                }
            }
        }
    }

    fn line(&self, series: &Series) -> Markup {
        let places: Vec<(f64, f64)> = series
            .points
            .iter()
            .map(|&(x, y)| (x_of(&self.x, x), y_of(&self.y, y)))
            .collect();
        let is_marked = match series.mark {
            Mark::Line | Mark::Dashed => places.len() <= MARKED_MAX,
            Mark::Points | Mark::Published => true,
            _ => false,
        };
        html! {
            @if let Some(path) = path(series.mark, &places) {
                path class={ "plot-line plot-s" (series.colour()) (series.dash()) } d=(path) {}
            }
            @if is_marked {
                @for ((x, y), value) in places.iter().zip(&series.points) {
                    g { (series.point(*x, *y))
                        title { (series.name) ", " (self.x.text_of(value.0)) ": " (value_text(value.1)) } }
                }
            }
        }
    }
}

fn path(mark: Mark, places: &[(f64, f64)]) -> Option<String> {
    let mut path = String::new();
    let mut last = None;
    for (nth, &(x, y)) in places.iter().enumerate() {
        let is_near =
            last.is_some_and(|(a, b): (f64, f64)| (x - a).abs() < 1.0 && (y - b).abs() < 1.0);
        // Thousands of steps would draw the same curve.
        if mark == Mark::Steps && is_near && nth + 1 < places.len() {
            continue;
        }
        last = Some((x, y));
        path += &match mark {
            _ if path.is_empty() => format!("M{} {}", number(x), number(y)),
            Mark::Line | Mark::Dashed => format!("L{} {}", number(x), number(y)),
            Mark::Steps => format!("H{}V{}", number(x), number(y)),
            _ => return None,
        };
    }
    (places.len() > 1).then_some(path)
}

impl Series {
    fn colour(&self) -> usize {
        self.colour % COLOURS
    }

    fn dash(&self) -> &'static str {
        if self.mark == Mark::Dashed {
            " plot-dashed"
        } else {
            ""
        }
    }

    /// A point: a shape for each colour.
    fn point(&self, x: f64, y: f64) -> Markup {
        let colour = self.colour();
        let (size, class) = match self.mark {
            Mark::Published => (5.5, format!("plot-open plot-s{colour}")),
            _ => (3.5, format!("plot-f{colour}")),
        };
        let [left, right, top, bottom] = [x - size, x + size, y - size, y + size].map(number);
        let (x, y) = (number(x), number(y));
        html! {
            @match colour {
                0 => circle class=(class) cx=(x) cy=(y) r=(number(size)) {},
                1 => rect class=(class) x=(left) y=(top) width=(number(2.0 * size)) height=(number(2.0 * size)) {},
                2 => path class=(class) d={ "M" (x) " " (top) "L" (right) " " (bottom) "H" (left) "Z" } {},
                3 => path class=(class) d={ "M" (x) " " (top) "L" (right) " " (y) "L" (x) " " (bottom) "L" (left) " " (y) "Z" } {},
                4 => path class=(class) d={ "M" (left) " " (top) "H" (right) "L" (x) " " (bottom) "Z" } {},
                5 => path class={ "plot-line plot-s" (colour) } d={ "M" (left) " " (top) "L" (right) " " (bottom) "M" (left) " " (bottom) "L" (right) " " (top) } {},
                _ => path class={ "plot-line plot-s" (colour) } d={ "M" (left) " " (y) "H" (right) "M" (x) " " (top) "V" (bottom) } {},
            }
        }
    }

    /// What stands for it in the legend.
    fn sample(&self) -> Markup {
        let colour = self.colour();
        html! {
            @match self.mark {
                Mark::Bars => rect class={ "plot-f" (colour) } x="4" y="-6" width="22" height="12" {},
                Mark::Behind => rect class={ "plot-faint plot-f" (colour) } x="4" y="-6" width="22" height="12" {},
                Mark::Points | Mark::Published => (self.point(15.0, 0.0)),
                Mark::Steps => path class={ "plot-line plot-s" (colour) } d="M2 0H28" {},
                Mark::Line | Mark::Dashed => {
                    path class={ "plot-line plot-s" (colour) (self.dash()) } d="M2 0H28" {}
                    (self.point(15.0, 0.0))
                }
            }
        }
    }
}

fn x_of(axis: &Axis, value: f64) -> f64 {
    let inset = if axis.name_count().is_some() {
        0.0
    } else {
        8.0
    };
    LEFT + inset + axis.place(value) * (RIGHT - LEFT - 2.0 * inset)
}

fn y_of(axis: &Axis, value: f64) -> f64 {
    BOTTOM - axis.place(value) * PLOT_HEIGHT
}
