//! Who fills pools, measured: how far the heaviest pool of a window is above the mean.
//!
//! Sequences are packed from drawn lengths that resemble the paper's corpora. A grouping of D sequences costs
//! O(D log D); certified pools and their bound are the only ones that take longer.

use libra_sched::audit::excess;
use libra_sched::vrsp::{self, Vrsp};
use libra_sched::{Mask, PackedLengths, Proxy};
use rayon::prelude::*;

use super::draw::{Method, Subject};
use super::{Effort, Point};
use crate::baseline::grouping;
use crate::failure::Failure;
use crate::interrupt;
use crate::plot::{Mark, Panel};
use crate::preset::Preset;
use crate::workload::{Distribution, Packed, Packer, WindowOptions, stats};

/// A corpus of the paper, and what stands for it.
pub(super) struct Corpus {
    /// In files.
    pub(super) name: &'static str,
    /// For people.
    pub(super) label: &'static str,
    distribution: &'static str,
    tokens: u64,
    /// The paper's window.
    pub(super) preset: Preset,
}

pub(super) const CORPORA: [Corpus; 2] = [
    Corpus {
        name: "256k",
        label: "256K tokens",
        distribution: "calibrated-256k",
        tokens: 256 << 10,
        preset: Preset::Paper256K,
    },
    Corpus {
        name: "1m",
        label: "1M tokens",
        distribution: "calibrated-1m",
        tokens: 1 << 20,
        preset: Preset::Paper1M,
    },
];

/// Sequences that are being packed at a time.
const OPEN_SEQUENCES: u64 = 128;
/// Random orders of a window.
const ORDERS: u64 = 64;
pub(super) const QUANTITY: &str = "R-1";

/// A window and its pools.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// As in files.
    pub(super) at: String,
    /// Sequences of a window.
    pub(super) gbs: u32,
    /// Sequences of a pool.
    pub(super) pool_size: usize,
}

/// A way to fill pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    Arrival,
    Random,
    Estimate,
    /// Sorted and folded: Zigzag.
    Folding,
    /// Likewise, after one pass of swaps.
    SwapsWeak,
    /// Likewise, after swaps until none helps.
    Swaps,
    Differencing,
    Paper,
    Certified,
    Bound,
}

impl Grouping {
    /// As it is named and drawn.
    pub(super) fn method(self) -> Method {
        let dashed = |name, label, colour| Method {
            mark: Mark::Dashed,
            ..Method::new(name, label, colour)
        };
        match self {
            Self::Arrival => Method::new("arrival", "arrival order", 6),
            Self::Random => Method::new("random", "random order", 0),
            Self::Folding => Method::new("zigzag", "Zigzag", 3),
            Self::SwapsWeak => Method::new("zigzag-swap-1", "Zigzag, one pass of swaps", 4),
            Self::Swaps => Method::new("zigzag-swap", "Zigzag, swaps until none helps", 6),
            // Random order is far above, so that both may have its colour.
            Self::Differencing => dashed("kk", "Karmarkar-Karp", 0),
            Self::Estimate => dashed("estimate", "estimate (eq. 2)", 4),
            Self::Paper => Method::new("vrsp", "VRSP", 1),
            Self::Certified => Method::new("certified", "certified VRSP", 2),
            Self::Bound => dashed("bound", "no grouping goes below", 5),
        }
    }

    /// R - 1 of one window.
    fn excess(self, work: &[u64], pool_size: usize, seed: u64) -> Result<f64, Failure> {
        match self {
            Self::Arrival => Ok(grouped(work, &grouping::arrival(work, pool_size))),
            Self::Random => Ok(mean(&orders(work, pool_size, seed))),
            Self::Estimate => {
                let (size, gbs) = (pool_size as u64, work.len() as u64);
                Ok(stats::expected_excess(variation(work), size, gbs))
            }
            Self::Folding => Ok(grouped(work, &grouping::folding(work, pool_size))),
            Self::SwapsWeak => Ok(grouped(work, &grouping::folding_swap_weak(work, pool_size))),
            Self::Swaps => Ok(grouped(
                work,
                &grouping::folding_swap_converged(work, pool_size),
            )),
            Self::Differencing => Ok(grouped(work, &grouping::karmarkar_karp(work, pool_size))),
            Self::Paper => placed(work, pool_size, Vrsp::Paper),
            Self::Certified => placed(work, pool_size, Vrsp::Certified),
            Self::Bound => {
                let load = vrsp::lower_bound(work, pool_size)?.load;
                Ok(excess(load, work.iter().sum(), work.len() / pool_size))
            }
        }
    }
}

fn placed(work: &[u64], pool_size: usize, vrsp: Vrsp) -> Result<f64, Failure> {
    let placed = vrsp::place(work, pool_size, vrsp)?;
    let heaviest = placed.loads().iter().copied().max().unwrap_or(0);
    Ok(excess(heaviest, work.iter().sum(), placed.pools()))
}

fn grouped(work: &[u64], pools: &grouping::Grouping) -> f64 {
    let load = |pool: &Vec<usize>| pool.iter().map(|&member| work[member]).sum();
    let heaviest = pools.iter().map(load).max().unwrap_or(0);
    excess(heaviest, work.iter().sum(), pools.len())
}

/// R - 1 of one window in each of its random orders.
fn orders(work: &[u64], pool_size: usize, seed: u64) -> Vec<f64> {
    let one = |order| {
        grouped(
            work,
            &grouping::random(work, pool_size, seed.wrapping_add(order)),
        )
    };
    (0..ORDERS).map(one).collect()
}

/// Standard deviation over mean.
fn variation(work: &[u64]) -> f64 {
    let work: Vec<f64> = work.iter().map(|&work| work as f64).collect();
    let mean_work = mean(&work);
    let squares: Vec<f64> = work
        .iter()
        .map(|w| (w - mean_work) * (w - mean_work))
        .collect();
    mean(&squares).sqrt() / mean_work
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The first of a window's seeds, one an order.
fn seed_of(effort: Effort, window: u64) -> u64 {
    effort.seed.wrapping_add(window << 32)
}

impl Corpus {
    /// What its lengths are drawn from.
    pub(super) fn distribution(&self) -> Distribution {
        self.distribution.parse().expect("a name of ours")
    }

    /// Pairs under the causal mask of each sequence of each window.
    pub(super) fn windows(&self, effort: Effort, gbs: u32) -> Result<Vec<Vec<u64>>, Failure> {
        let samples = self.distribution().samples(self.tokens, effort.seed)?;
        let options = WindowOptions {
            gbs: gbs.into(),
            ..WindowOptions::default()
        };
        // Whole documents: cut ones would end the longest, and the windows' tails would be lighter than the paper's.
        let packer = Packer::BestFit {
            open_sequences: OPEN_SEQUENCES,
        };
        let windows = packer.pack(samples, self.tokens)?.windows(&options)?;
        let work = |packed: Result<Packed, _>| -> Result<Vec<u64>, Failure> {
            let packed = packed?;
            let lengths = PackedLengths::new(packed.seq_tokens, packed.sequences)?;
            Ok(lengths.work(Proxy::Pairs(Mask::Causal))?)
        };
        windows.take(effort.windows as usize).map(work).collect()
    }

    /// Mean over windows of each grouping in each setting, `step` after each; `None` where the user asked for an end.
    pub(super) fn measure(
        &self,
        groupings: &[Grouping],
        settings: &[Setting],
        effort: Effort,
        step: &(dyn Fn() + Sync),
    ) -> Result<Option<Vec<Point>>, Failure> {
        let mut points = Vec::new();
        let (mut of, mut windows) = (0, Vec::new());
        for setting in settings {
            if interrupt::requested() {
                return Ok(None);
            }
            if of != setting.gbs {
                (of, windows) = (setting.gbs, self.windows(effort, setting.gbs)?);
            }
            for grouping in groupings {
                let one = |(nth, work): (usize, &Vec<u64>)| {
                    grouping.excess(work, setting.pool_size, seed_of(effort, nth as u64))
                };
                let values: Result<Vec<f64>, Failure> =
                    windows.par_iter().enumerate().map(one).collect();
                points.push(Point {
                    corpus: self.name,
                    method: grouping.method().name,
                    at: setting.at.clone(),
                    quantity: QUANTITY,
                    value: mean(&values?),
                });
            }
            step();
        }
        Ok(Some(points))
    }

    /// R - 1 of all random orders of all windows.
    pub(super) fn orders(&self, setting: &Setting, effort: Effort) -> Result<Vec<f64>, Failure> {
        let windows = self.windows(effort, setting.gbs)?;
        let one = |(nth, work): (usize, &Vec<u64>)| {
            orders(work, setting.pool_size, seed_of(effort, nth as u64))
        };
        let values: Vec<Vec<f64>> = windows.par_iter().enumerate().map(one).collect();
        Ok(values.concat())
    }

    /// R - 1 over settings, ours as lines and the paper's as open points.
    pub(super) fn panel(
        &self,
        figure: &str,
        groupings: &[Grouping],
        points: &[Point],
        settings: &[Setting],
        x: &str,
    ) -> Panel {
        let ats: Vec<String> = settings.iter().map(|setting| setting.at.clone()).collect();
        let methods: Vec<Method> = groupings.iter().map(|grouping| grouping.method()).collect();
        let subject = Subject::new(figure, QUANTITY, points, &methods, &ats);
        subject.of(self.name, self.label).lines(x, "R - 1", true)
    }
}

/// Pools of these sizes in windows of `gbs` sequences.
pub(super) fn by_pool_size(gbs: u32, sizes: &[usize]) -> Vec<Setting> {
    let setting = |&pool_size: &usize| Setting {
        at: format!("P={pool_size}"),
        gbs,
        pool_size,
    };
    sizes.iter().map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Grouping; 10] = [
        Grouping::Arrival,
        Grouping::Random,
        Grouping::Estimate,
        Grouping::Folding,
        Grouping::SwapsWeak,
        Grouping::Swaps,
        Grouping::Differencing,
        Grouping::Paper,
        Grouping::Certified,
        Grouping::Bound,
    ];

    #[test]
    fn one_pool_of_all_has_no_excess_and_pools_of_one_that_of_the_heaviest() {
        let work = [5, 1, 1, 1];
        for grouping in ALL {
            assert_eq!(
                grouping.excess(&work, 4, 0).expect("legal"),
                0.0,
                "{grouping:?}"
            );
        }
        let groupings = ALL
            .into_iter()
            .filter(|grouping| !matches!(grouping, Grouping::Estimate | Grouping::Bound));
        for grouping in groupings {
            assert_eq!(
                grouping.excess(&work, 1, 0).expect("legal"),
                1.5,
                "{grouping:?}"
            );
        }
    }

    #[test]
    fn random_orders_find_both_ways_to_pair_four_sequences() {
        // Pairs of 3, 3, 1, 1: a third of all orders puts the heavy ones together (R 1.5), the others do not (R 1).
        let mean = Grouping::Random.excess(&[3, 3, 1, 1], 2, 7).expect("legal");
        assert!((0.1..0.25).contains(&mean), "{mean}");
    }

    #[test]
    fn no_grouping_goes_below_the_bound_and_certified_is_no_worse_than_the_papers() {
        let effort = Effort {
            windows: 2,
            seed: 3,
            is_small: false,
        };
        let settings = by_pool_size(32, &[2, 4, 8]);
        for corpus in &CORPORA {
            let points = corpus
                .measure(&ALL, &settings, effort, &|| ())
                .expect("legal")
                .expect("not interrupted");
            for at in settings.iter().map(|setting| &setting.at) {
                let value = |grouping: Grouping| {
                    let is =
                        |point: &&Point| point.at == *at && point.method == grouping.method().name;
                    points.iter().find(is).expect("measured").value
                };
                let [bound, certified, paper] =
                    [Grouping::Bound, Grouping::Certified, Grouping::Paper].map(value);
                assert!(
                    bound <= certified && certified <= paper,
                    "{at}: {bound} {certified} {paper}"
                );
                for grouping in ALL {
                    let is_grouping = grouping != Grouping::Estimate;
                    assert!(
                        !is_grouping || bound <= value(grouping),
                        "{at}: {grouping:?}"
                    );
                }
                assert!(value(Grouping::SwapsWeak) <= value(Grouping::Folding));
            }
        }
    }
}
