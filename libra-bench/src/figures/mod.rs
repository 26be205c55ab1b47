//! Figures of the paper from our own numbers, beside those that were published.
//!
//! A figure is data first: [`Point`]s, ours and the paper's under the same names. Pictures, files and the summary are
//! made of them; where a number comes from does not matter to any.

mod draw;
mod grouping;
mod published;
mod random_pools;
mod residual;
mod simulated;
mod times;

use crate::failure::Failure;
use crate::plot;
use crate::simulate::cluster::{Cluster, NodeSection};
use times::{attention, training};

pub(crate) use published::{Published, Relation, published};

/// Measures and draws, calls back after each step; `None` where the user asked for an end.
type Make = fn(Effort, &Cluster, &(dyn Fn() + Sync)) -> Result<Option<Made>, Failure>;

/// What a cluster has to do with a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machines {
    /// Nothing: it is of work, not of time.
    Any,
    /// Times are its own.
    One,
    /// Likewise, and how many GPUs a node has decides: a second cluster is measured beside it.
    Two,
}

/// A figure that can be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    /// Its number in the paper.
    pub(crate) figure: &'static str,
    /// Windows of each corpus where nobody says how many.
    windows: u64,
    /// How often `step` is called over so many windows.
    steps: fn(u64) -> u64,
    /// On what it is measured.
    pub(crate) machines: Machines,
    make: Make,
}

/// All figures, in the paper's order.
pub(crate) const RECIPES: [Recipe; 9] = [
    Recipe {
        figure: "1",
        windows: 4,
        steps: training::scaling_steps,
        machines: Machines::One,
        make: training::scaling,
    },
    Recipe {
        figure: "3",
        windows: 1,
        steps: training::jitter_steps,
        machines: Machines::One,
        make: training::jitter,
    },
    Recipe {
        figure: "4",
        windows: 64,
        steps: |_| random_pools::STEPS,
        machines: Machines::Any,
        make: random_pools::make,
    },
    Recipe {
        figure: "8",
        windows: 64,
        steps: |_| residual::STEPS,
        machines: Machines::Any,
        make: residual::make,
    },
    Recipe {
        figure: "11",
        windows: 4,
        steps: training::end_to_end_steps,
        machines: Machines::One,
        make: training::end_to_end,
    },
    Recipe {
        figure: "12",
        windows: 4,
        steps: attention::core_attention_steps,
        machines: Machines::Two,
        make: attention::core_attention,
    },
    Recipe {
        figure: "14",
        // The paper's iterations.
        windows: 15,
        steps: training::microbatches_steps,
        machines: Machines::One,
        make: training::microbatches,
    },
    Recipe {
        figure: "15",
        windows: 4,
        steps: attention::pool_sizes_steps,
        machines: Machines::Two,
        make: attention::pool_sizes,
    },
    Recipe {
        figure: "16",
        windows: 2,
        steps: attention::shards_and_blocks_steps,
        machines: Machines::Two,
        make: attention::shards_and_blocks,
    },
];

/// Tokens of the paper's sequences over those of small ones.
const SMALLER: u32 = 16;

/// How much to measure, as asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// As [`Effort::windows`], if it is said.
    pub(crate) windows: Option<u64>,
    /// As [`Effort::seed`].
    pub(crate) seed: u64,
    /// As [`Effort::is_small`].
    pub(crate) is_small: bool,
}

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Windows of each corpus.
    pub(crate) windows: u64,
    /// Of drawn lengths and random orders.
    pub(crate) seed: u64,
    /// Whether sequences and windows of simulated figures are far smaller than the paper's, so that tests take seconds.
    pub(crate) is_small: bool,
}

impl Effort {
    /// Tokens of a block that stands for one of `tokens`.
    fn tokens(self, tokens: u32) -> u32 {
        if self.is_small {
            tokens / SMALLER
        } else {
            tokens
        }
    }
}

impl Recipe {
    /// `asked`, with the recipe's own number of windows where none is asked for.
    pub(crate) fn effort(&self, asked: Asked) -> Effort {
        Effort {
            windows: asked.windows.unwrap_or(self.windows),
            seed: asked.seed,
            is_small: asked.is_small,
        }
    }

    /// How often `step` is called for one cluster.
    pub(crate) fn steps(&self, effort: Effort) -> u64 {
        (self.steps)(effort.windows)
    }

    /// Measures on `cluster` and draws; `None` where the user asked for an end.
    pub(crate) fn make(
        &self,
        effort: Effort,
        cluster: &Cluster,
        step: &(dyn Fn() + Sync),
    ) -> Result<Option<Made>, Failure> {
        let mut made = (self.make)(effort, cluster, step)?;
        if let Some(made) = &mut made
            && self.machines != Machines::Any
        {
            let NodeSection { gpus, .. } = cluster.file.node;
            let words = format!(" ({}, nodes of {gpus})", cluster.file.name);
            made.drawn.title.push_str(&words);
        }
        Ok(made)
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
    /// Ours on the second cluster, if it was measured there.
    pub(crate) beside: Option<f64>,
    /// Why they may differ.
    pub(crate) why: &'static str,
}

impl Made {
    /// All published numbers of the figure beside ours, and beside those of a second cluster.
    pub(crate) fn comparisons(&self, beside: Option<&Self>) -> Vec<Comparison> {
        let compare = |paper: Published| Comparison {
            ours: self.value(&paper),
            beside: beside.and_then(|made| made.value(&paper)),
            why: (self.why)(&paper),
            paper,
        };
        published(self.figure).map(compare).collect()
    }

    /// Ours of what the paper measured.
    fn value(&self, paper: &Published) -> Option<f64> {
        let mut points = self.points.iter();
        Some(points.find(|point| point.is(paper))?.value)
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn every_recipe_calls_back_as_often_as_it_says() {
        let effort = Effort {
            windows: 1,
            seed: 7,
            is_small: true,
        };
        let cluster = Cluster::read("h200").expect("built in");
        for recipe in RECIPES {
            let calls = AtomicU64::new(0);
            let step = || {
                calls.fetch_add(1, Ordering::Relaxed);
            };
            let made = recipe.make(effort, &cluster, &step).expect("legal");
            assert_eq!(made.expect("not interrupted").figure, recipe.figure);
            let calls = calls.into_inner();
            assert_eq!(calls, recipe.steps(effort), "{}", recipe.figure);
        }
    }
}
