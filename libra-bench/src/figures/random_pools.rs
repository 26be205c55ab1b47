//! Figure 4: pools in arrival order and in random orders.

use super::grouping::{CORPORA, Corpus, Grouping, QUANTITY, by_pool_size};
use super::{Effort, Made, published};
use crate::failure::Failure;
use crate::plot::{Axes, Axis, Figure, Mark, Panel, Series, ecdf};
use crate::simulate::cluster::Cluster;

const SIZES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Sequences of a window; the paper's text names none for this figure, and 128 for figure 8.
const GBS: u32 = 128;
/// The pool size whose orders are drawn one by one.
const POOL_SIZE: usize = 8;
const GROUPINGS: [Grouping; 3] = [Grouping::Estimate, Grouping::Arrival, Grouping::Random];

/// One a corpus and pool size.
pub(super) const STEPS: u64 = (CORPORA.len() * SIZES.len()) as u64;

/// `None` where the user asked for an end.
pub(super) fn make(
    effort: Effort,
    _: &Cluster,
    step: &(dyn Fn() + Sync),
) -> Result<Option<Made>, Failure> {
    let settings = by_pool_size(GBS, &SIZES);
    let mut points = Vec::new();
    for corpus in &CORPORA {
        match corpus.measure(&GROUPINGS, &settings, effort, step)? {
            Some(more) => points.extend(more),
            None => return Ok(None),
        }
    }
    let over_sizes = |corpus: &Corpus| {
        corpus.panel(
            "4",
            &GROUPINGS,
            &points,
            &settings,
            "P, sequences of a pool",
        )
    };
    let mut panels: Vec<Panel> = CORPORA.iter().map(over_sizes).collect();
    for corpus in &CORPORA {
        panels.push(spread(corpus, effort)?);
    }
    let drawn = Figure {
        id: "figure-4".to_owned(),
        title: "Figure 4: pools in no particular order".to_owned(),
        description: "Heaviest pool over the mean, less 1. Above, over the pool size: it falls slowly, and pools of half \
                      the window still leave several per cent. Below, for pools of 8, which share of random orders is at \
                      most so uneven, and where the paper's number lies."
            .to_owned(),
        panels,
    };
    Ok(Some(Made {
        figure: "4",
        points,
        drawn,
        why: |_| "drawn lengths, means of windows; the paper's is one corpus in one order",
    }))
}

/// How orders differ.
fn spread(corpus: &Corpus, effort: Effort) -> Result<Panel, Failure> {
    let [setting] = &by_pool_size(GBS, &[POOL_SIZE])[..] else {
        unreachable!("one size is one setting");
    };
    let curve = ecdf(&corpus.orders(setting, effort)?);
    let share = |value: f64| {
        let below = curve.iter().take_while(|&&(x, _)| x <= value).last();
        below.map_or(0.0, |&(_, share)| share)
    };
    let of = published("4").filter(|paper| {
        (paper.corpus.as_str(), &paper.at, paper.quantity.as_str())
            == (corpus.name, &setting.at, QUANTITY)
    });
    let papers: Vec<(f64, f64)> = of.map(|paper| (paper.value, share(paper.value))).collect();
    Ok(Panel::Axes(Axes {
        title: format!("{}, P {POOL_SIZE}: orders", corpus.label),
        x: Axis::linear("R - 1", curve.iter().map(|&(x, _)| x)),
        y: Axis::linear("share of orders", [1.0].into_iter()),
        series: vec![
            Series {
                name: "random orders".to_owned(),
                colour: 0,
                mark: Mark::Steps,
                points: curve,
            },
            Series {
                name: "production order (paper)".to_owned(),
                colour: 6,
                mark: Mark::Published,
                points: papers,
            },
        ],
    }))
}
