//! What sections are made of: figures and tables that keyboard and screen reader reach.

use maud::{Markup, html};

use crate::plot::Figure;

/// Numbers under heads; the first column names the row.
pub(super) struct Grid {
    /// What it holds.
    pub(super) caption: String,
    /// Heads.
    pub(super) heads: Vec<String>,
    /// One text a head.
    pub(super) rows: Vec<Vec<String>>,
}

impl Grid {
    /// Heads without rows.
    pub(super) fn new(caption: impl Into<String>, heads: &[&str]) -> Self {
        Self {
            caption: caption.into(),
            heads: heads.iter().map(|&head| head.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// The table, in a frame that scrolls where the window is narrow.
    pub(super) fn draw(&self) -> Markup {
        html! {
            div class="scroll" role="region" tabindex="0" aria-label=(self.caption) {
                table {
                    caption { (self.caption) }
                    thead { tr { @for head in &self.heads { th scope="col" { (head) } } } }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                @for (nth, cell) in row.iter().enumerate() {
                                    @if nth == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Figures with their numbers, beside each other where there is room.
pub(super) fn figures<'a>(figures: impl Iterator<Item = (&'a Figure, Option<&'a Grid>)>) -> Markup {
    html! {
        div class="figures" {
            @for (drawn, numbers) in figures { (figure(drawn, numbers)) }
        }
    }
}

/// A figure, what it says in words, and its numbers behind a fold.
fn figure(figure: &Figure, numbers: Option<&Grid>) -> Markup {
    html! {
        figure class=[(figure.panels.len() > 1).then_some("wide")] {
            h3 { (figure.title) }
            div class="panels" {
                @for svg in figure.inline() {
                    div class="scroll" role="region" tabindex="0" aria-label=(figure.title) { (svg) }
                }
            }
            figcaption { (figure.description) }
            @if let Some(numbers) = numbers {
                details {
                    summary { "Numbers: " (numbers.caption) }
                    (numbers.draw())
                }
            }
        }
    }
}

/// A share above the mean.
pub(super) fn excess(value: f64) -> String {
    format!("{:.4}", value + 0.0)
}
