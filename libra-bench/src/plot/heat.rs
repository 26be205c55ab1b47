//! A matrix: the larger a value, the darker its cell.

use maud::{Markup, html};

use super::{Drawn, WIDTH, number, text_width, value_text};

/// A matrix under names.
#[derive(Clone, Debug)]
pub(crate) struct Heat {
    /// What it shows, in a few words.
    pub(crate) title: String,
    /// What columns are.
    pub(crate) x_label: String,
    /// What rows are.
    pub(crate) y_label: String,
    /// Names of the columns.
    pub(crate) columns: Vec<String>,
    /// Names of the rows.
    pub(crate) rows: Vec<String>,
    /// By row, then by column; nothing where nothing is known.
    pub(crate) values: Vec<Vec<Option<f64>>>,
    /// How a value is written.
    pub(crate) text: fn(f64) -> String,
}

const TOP: f64 = 30.0;
const RIGHT: f64 = WIDTH - 14.0;
/// Cells that are written on.
const WRITTEN_MAX: usize = 8;

impl Heat {
    pub(super) fn draw(&self) -> Drawn {
        let left = 34.0
            + self
                .rows
                .iter()
                .map(|name| text_width(name))
                .fold(0.0, f64::max);
        let width = (RIGHT - left) / self.columns.len().max(1) as f64;
        let height = (260.0 / self.rows.len().max(1) as f64).clamp(4.0, 48.0);
        let bottom = TOP + height * self.rows.len() as f64;
        let markup = html! {
            text class="plot-name" x="12" y="18" { (self.title) }
            (self.cells(left, width, height))
            rect class="plot-frame" x=(number(left)) y=(number(TOP)) width=(number(RIGHT - left)) height=(number(bottom - TOP)) {}
            @for (nth, name) in self.rows.iter().enumerate().step_by(every(self.rows.len(), height, 15.0)) {
                text x=(number(left - 7.0)) y=(number(TOP + (nth as f64 + 0.5) * height + 4.0)) text-anchor="end" { (name) }
            }
            @let widest = self.columns.iter().map(|name| text_width(name)).fold(0.0, f64::max);
            @for (nth, name) in self.columns.iter().enumerate().step_by(every(self.columns.len(), width, widest + 8.0)) {
                text x=(number(left + (nth as f64 + 0.5) * width)) y=(number(bottom + 18.0)) text-anchor="middle" { (name) }
            }
            text x=(number((left + RIGHT) / 2.0)) y=(number(bottom + 37.0)) text-anchor="middle" { (self.x_label) }
            text text-anchor="middle" transform={ "translate(14 " (number((TOP + bottom) / 2.0)) ") rotate(-90)" } { (self.y_label) }
        };
        Drawn {
            markup,
            height: bottom + 48.0,
        }
    }

    fn cells(&self, left: f64, width: f64, height: f64) -> Markup {
        let most =
            (self.values.iter().flatten().flatten()).fold(0f64, |most, &value| most.max(value));
        let is_written = self.columns.len() <= WRITTEN_MAX;
        // Text has to stand out from its cell.
        let darkest = if is_written { 0.45 } else { 1.0 };
        html! {
            @for (row, values) in self.values.iter().enumerate() {
                @for (column, value) in values.iter().enumerate() {
                    @if let Some(value) = value.filter(|value| *value != 0.0 || is_written) {
                        @let (x, y) = (left + column as f64 * width, TOP + row as f64 * height);
                        @let share = if most > 0.0 { value / most } else { 0.0 };
                        rect class="plot-f0" fill-opacity=(format!("{:.2}", share.max(0.0) * darkest))
                            x=(format!("{x:.2}")) y=(format!("{y:.2}")) width=(format!("{width:.2}")) height=(format!("{height:.2}")) {
                            title { (self.name(&self.rows, row)) ", " (self.name(&self.columns, column)) ": " ((self.text)(value)) }
                        }
                        @if is_written {
                            text x=(number(x + width / 2.0)) y=(number(y + height / 2.0 + 4.0)) text-anchor="middle" { ((self.text)(value)) }
                        }
                    }
                }
            }
        }
    }

    fn name(&self, names: &[String], nth: usize) -> String {
        names
            .get(nth)
            .cloned()
            .unwrap_or_else(|| value_text(nth as f64))
    }
}

/// Which names fit: every how many of them.
fn every(count: usize, room: f64, needed: f64) -> usize {
    ((needed / room).ceil().max(1.0) as usize).min(count.max(1))
}
