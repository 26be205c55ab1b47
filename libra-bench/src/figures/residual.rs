//! Figure 8: what remains between pools, by who fills them.

use super::grouping::{CORPORA, Grouping, Setting, by_pool_size};
use super::{Effort, Made};
use crate::failure::Failure;
use crate::plot::Figure;
use crate::simulate::cluster::Cluster;

const SIZES: [usize; 6] = [2, 4, 8, 16, 32, 64];
const GBS: u32 = 128;
const WINDOW_SIZES: [u32; 4] = [32, 64, 128, 256];
const POOL_SIZE: usize = 8;
const GROUPINGS: [Grouping; 8] = [
    Grouping::Random,
    Grouping::Folding,
    Grouping::SwapsWeak,
    Grouping::Swaps,
    Grouping::Differencing,
    Grouping::Paper,
    Grouping::Certified,
    Grouping::Bound,
];

/// One a corpus and setting.
pub(super) const STEPS: u64 = (CORPORA.len() * (SIZES.len() + WINDOW_SIZES.len())) as u64;

/// `None` where the user asked for an end.
pub(super) fn make(
    effort: Effort,
    _: &Cluster,
    step: &(dyn Fn() + Sync),
) -> Result<Option<Made>, Failure> {
    let by_size = by_pool_size(GBS, &SIZES);
    let by_gbs = WINDOW_SIZES.map(|gbs| Setting {
        at: format!("GBS={gbs}"),
        gbs,
        pool_size: POOL_SIZE,
    });
    let mut points = Vec::new();
    for corpus in &CORPORA {
        for settings in [&by_size[..], &by_gbs] {
            match corpus.measure(&GROUPINGS, settings, effort, step)? {
                Some(more) => points.extend(more),
                None => return Ok(None),
            }
        }
    }
    let over = |settings: &[Setting], x: &str| {
        CORPORA
            .iter()
            .map(|corpus| corpus.panel("8", &GROUPINGS, &points, settings, x))
            .collect::<Vec<_>>()
    };
    let mut panels = over(&by_size, "P, sequences of a pool; GBS 128");
    panels.extend(over(&by_gbs, "GBS, sequences of a window; P 8"));
    let drawn = Figure {
        id: "figure-8".to_owned(),
        title: "Figure 8: what remains between pools".to_owned(),
        description: "Heaviest pool over the mean, less 1, over pool size and window size. VRSP is ten times below random \
                      order and more; certified VRSP lies on the bound until that is nearly 0."
            .to_owned(),
        panels,
    };
    Ok(Some(Made {
        figure: "8",
        points,
        drawn,
        why: |paper| match paper.method.as_str() {
            "vrsp" => {
                "Algorithm 1 to the letter; means of drawn windows, some of which nothing balances"
            }
            _ => "drawn lengths; means of 64 orders of each window",
        },
    }))
}
