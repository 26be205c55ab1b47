//! Figures of the paper from our own numbers, beside those that were published.
//!
//! A figure is data first: [`Point`]s, ours and the paper's under the same names. Pictures, files and the summary are
//! made of them; where a number comes from does not matter to any.

mod draw;
mod grouping;
mod published;
mod random_pools;
mod residual;
// No recipe measures times.
#[allow(dead_code)]
mod simulated;

use crate::failure::Failure;
use crate::plot;

pub(crate) use published::{Published, Relation, published};

/// Measures and draws, calls back after each step; `None` where the user asked for an end.
type Make = fn(Effort, &(dyn Fn() + Sync)) -> Result<Option<Made>, Failure>;

/// A figure that can be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    /// Its number in the paper.
    pub(crate) figure: &'static str,
    /// How often `step` is called.
    pub(crate) steps: u64,
    make: Make,
}

/// All figures, in the paper's order.
pub(crate) const RECIPES: [Recipe; 2] = [
    Recipe {
        figure: "4",
        steps: random_pools::STEPS,
        make: random_pools::make,
    },
    Recipe {
        figure: "8",
        steps: residual::STEPS,
        make: residual::make,
    },
];

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Windows of each corpus.
    pub(crate) windows: u64,
    /// Of drawn lengths and random orders.
    pub(crate) seed: u64,
}

impl Recipe {
    /// Measures and draws; `None` where the user asked for an end.
    pub(crate) fn make(
        &self,
        effort: Effort,
        step: &(dyn Fn() + Sync),
    ) -> Result<Option<Made>, Failure> {
        (self.make)(effort, step)
    }
}

/// A number of ours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// Which lengths.
    pub(crate) corpus: &'static str,
    /// Who made it so.
    pub(crate) method: &'static str,
    /// Setting or statistic.
    pub(crate) at: String,
    /// What was measured.
    pub(crate) quantity: &'static str,
    /// The number.
    pub(crate) value: f64,
}

/// A figure in numbers and drawn.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// Its number in the paper.
    pub(crate) figure: &'static str,
    /// What it shows.
    pub(crate) title: &'static str,
    /// Ours.
    pub(crate) points: Vec<Point>,
    /// Drawn, the paper's numbers among ours.
    pub(crate) drawn: plot::Figure,
    /// Why ours and the paper's may differ.
    pub(crate) why: fn(&Published) -> &'static str,
}

/// One number of the paper beside ours.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    /// The paper's.
    pub(crate) paper: Published,
    /// Ours, if it was measured.
    pub(crate) ours: Option<f64>,
    /// Why they may differ.
    pub(crate) why: &'static str,
}

impl Made {
    /// All published numbers of the figure beside ours.
    pub(crate) fn comparisons(&self) -> Vec<Comparison> {
        let compare = |paper: Published| Comparison {
            ours: self
                .points
                .iter()
                .find(|point| point.is(&paper))
                .map(|point| point.value),
            why: (self.why)(&paper),
            paper,
        };
        published(self.figure).map(compare).collect()
    }

    /// All numbers in CSV, the paper's last.
    pub(crate) fn csv(&self, command: &str) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut write =
            |fields: [&str; 6]| writer.write_record(fields).expect("memory takes it all");
        write(["corpus", "method", "at", "quantity", "value", "source"]);
        for point in &self.points {
            let value = format!("{:.8}", point.value);
            write([
                point.corpus,
                point.method,
                &point.at,
                point.quantity,
                &value,
                command,
            ]);
        }
        for paper in published(self.figure) {
            let source = format!("paper, {}", paper.source);
            let value = paper.value.to_string();
            write([
                &paper.corpus,
                &paper.method,
                &paper.at,
                &paper.quantity,
                &value,
                &source,
            ]);
        }
        let bytes = writer.into_inner().expect("memory takes it all");
        String::from_utf8(bytes).expect("fields are text")
    }
}

impl Point {
    /// Whether it is what the paper measured.
    fn is(&self, paper: &Published) -> bool {
        (self.corpus, self.method, self.at.as_str(), self.quantity)
            == (&paper.corpus, &paper.method, &paper.at, &paper.quantity)
    }
}
