//! Plans windows: VRSP, then every pool.

use std::time::Instant;

use libra_sched::plan::{PoolPlan, Scratch};
use libra_sched::vrsp::{self, Elastic, SequencePlacement};
use libra_sched::{PackedLengths, PoolId, Proxy, audit};
use rayon::prelude::*;
use serde::Serialize;

use super::pool_case::{Extras, PoolCase};
use super::source::{Source, windows};
use crate::failure::Failure;
use crate::interrupt;
use crate::preset::{Settings, Shapes};
use crate::workload;

/// VRSP of one window is timed this often where times are to be precise.
const VRSP_RUNS: usize = 9;

/// Windows of a source, one after the other.
pub(crate) struct Windows {
    packed: workload::Windows<workload::Lengths>,
    next: u64,
}

/// A window's sequences, not yet in pools.
#[derive(Clone, Debug)]
pub(crate) struct PackedWindow {
    /// Which window of the corpus.
    pub(crate) window: u64,
    /// Sample lengths of every sequence.
    pub(crate) lengths: PackedLengths,
}

/// A window's sequences in pools.
#[derive(Clone, Debug)]
pub(crate) struct WindowPlan {
    /// Which window of the corpus.
    pub(crate) window: u64,
    /// Sample lengths of every sequence.
    pub(crate) lengths: PackedLengths,
    /// Which sequences share a pool.
    pub(crate) placement: SequencePlacement,
    /// How well.
    pub(crate) inter: Inter,
}

/// Balance of a window's pools: heaviest over mean, less 1, in pairs under the mask or of the sparse attention that is
/// the proxy.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Inter {
    /// Pools in arrival order.
    pub(crate) arrival_excess: f64,
    /// Pools as placed.
    pub(crate) excess: f64,
    /// What no placement goes below.
    pub(crate) bound_excess: f64,
    /// Why.
    pub(crate) bound: String,
    /// Heaviest pool over the bound, less 1.
    pub(crate) gap: f64,
    /// What a step waits for over the mean, less 1, in the order that pools run and in paper order;
    /// nothing where pools were merged.
    pub(crate) ga_excess: Option<[f64; 2]>,
    /// Pools that were merged, if any, and what no placement in pools of P goes below.
    pub(crate) merged: Option<Merged>,
    /// Load per sequence over mean, less 1, of each pool.
    #[serde(skip)]
    pub(crate) pool_excess: Vec<f64>,
    /// Median time of placing the sequences.
    #[serde(skip)]
    pub(crate) vrsp_ns: u64,
}

/// Pools of more than P sequences in a window.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Merged {
    /// Which window of the corpus.
    pub(crate) window: u64,
    /// Sequences of each of them.
    pub(crate) pool_sizes: Vec<usize>,
    /// What no placement in pools of P goes below.
    pub(crate) bound_excess_before: f64,
    /// What no placement in pools up to the cap goes below.
    pub(crate) bound_excess_after: f64,
    /// Why it was not enough to have pools of P.
    pub(crate) bound: String,
}

impl Windows {
    /// Windows from the first that `settings` do not skip.
    pub(crate) fn new(source: &Source, settings: &Settings) -> Result<Self, Failure> {
        Ok(Self {
            packed: windows(source.lengths(settings)?, settings)?,
            next: settings.skip_windows,
        })
    }

    /// The next window in pools, if there is one.
    pub(crate) fn next(&mut self, shapes: &Shapes) -> Result<Option<WindowPlan>, Failure> {
        let window = self.read()?;
        window
            .map(|window| window.group(shapes, VRSP_RUNS))
            .transpose()
    }

    /// The next window, if there is one.
    pub(crate) fn read(&mut self) -> Result<Option<PackedWindow>, Failure> {
        let packed = self.packed.next();
        // Lengths that cannot be read look like the end of the corpus, or like one that is too short.
        if let Some(error) = self.packed.lengths_mut().take_error() {
            return Err(error.into());
        }
        let Some(packed) = packed.transpose()? else {
            return Ok(None);
        };
        let lengths = PackedLengths::new(packed.seq_tokens, packed.sequences)?;
        let window = self.next;
        self.next += 1;
        Ok(Some(PackedWindow { window, lengths }))
    }

    /// Sequences and tokens of the incomplete last window, once there is no next one.
    pub(crate) fn dropped(&self) -> (u64, u64) {
        (
            self.packed.dropped_sequences(),
            self.packed.dropped_tokens(),
        )
    }
}

impl PackedWindow {
    /// VRSP, timed `runs` times, and how good it is.
    pub(crate) fn group(self, shapes: &Shapes, runs: usize) -> Result<WindowPlan, Failure> {
        group(self.window, self.lengths, shapes, runs)
    }
}

fn group(
    window: u64,
    lengths: PackedLengths,
    shapes: &Shapes,
    runs: usize,
) -> Result<WindowPlan, Failure> {
    let size = shapes.window.pool_size() as usize;
    let weights = lengths.work(shapes.proxy)?;
    // Squares only estimate; sparse attention is what will be computed.
    let computed = match shapes.proxy {
        Proxy::Sparse(_) => shapes.proxy,
        _ => Proxy::Pairs(shapes.plan.mask),
    };
    let pairs = lengths.work(computed)?;
    let mut scratch = vrsp::Scratch::default();
    let mut times = Vec::with_capacity(runs);
    let grouped = loop {
        let begin = Instant::now();
        let grouped = Grouped::new(&mut scratch, &weights, shapes)?;
        times.push(nanoseconds(begin));
        if times.len() >= runs {
            break grouped;
        }
    };
    let arrival = vrsp::place(&pairs, size, vrsp::Vrsp::Arrival)?;
    // The proxy that decided may not be what is computed.
    let paper_loads = loads(&grouped.placement, &pairs);
    let placement = if grouped.merged.is_none() {
        let order = vrsp::ga_order(&paper_loads, &shapes.window, shapes.ga_order, shapes.pp)?;
        grouped.placement.reordered(&order)?
    } else {
        grouped.placement
    };
    let total = pairs.iter().sum();
    let heaviest = |loads: &[u64]| loads.iter().copied().max().unwrap_or(0);
    let bound = if weights == pairs && shapes.vrsp == vrsp::Vrsp::Certified {
        // It may be better than any argument: certified VRSP can prove more by a search.
        placement.bound()
    } else {
        match grouped.merged {
            None => vrsp::lower_bound(&pairs, size)?,
            Some(_) => vrsp::lower_bound_up_to(&pairs, placement.bound().pool_size)?,
        }
    };
    let excess = |load, size: usize| audit::excess(load, total, pairs.len() / size);
    let loads = loads(&placement, &pairs);
    let per_sequence = |pool: usize| {
        let scale = bound.pool_size / placement.pool_size(PoolId::new(pool));
        loads[pool] * scale as u64
    };
    let weighed: Vec<u64> = (0..loads.len()).map(per_sequence).collect();
    let ga_excess = if grouped.merged.is_none() {
        let waits = |loads: &[u64]| -> Result<f64, Failure> {
            let order: Vec<PoolId> = (0..loads.len()).map(PoolId::new).collect();
            let time = vrsp::ga_time(loads, &order, &shapes.window, shapes.pp)?;
            let side = shapes.window.pools_per_ga() as usize;
            Ok(audit::excess(time, total, side))
        };
        Some([waits(&loads)?, waits(&paper_loads)?])
    } else {
        None
    };
    let inter = Inter {
        arrival_excess: excess(heaviest(arrival.loads()), size),
        excess: excess(heaviest(&weighed), bound.pool_size),
        bound_excess: excess(bound.load, bound.pool_size),
        bound: bound.kind.to_string(),
        gap: heaviest(&weighed) as f64 / bound.load.max(1) as f64 - 1.0,
        ga_excess,
        merged: grouped.merged.map(|merged| Merged { window, ..merged }),
        pool_excess: weighed
            .iter()
            .map(|&load| excess(load, bound.pool_size))
            .collect(),
        vrsp_ns: median(&mut times),
    };
    Ok(WindowPlan {
        window,
        lengths,
        placement,
        inter,
    })
}

/// Work of every pool.
fn loads(placement: &SequencePlacement, work: &[u64]) -> Vec<u64> {
    let load = |pool: usize| {
        let members = placement.members(PoolId::new(pool)).iter();
        members.map(|member| work[member.index()]).sum()
    };
    (0..placement.pools()).map(load).collect()
}

/// What VRSP made of a window.
struct Grouped {
    placement: SequencePlacement,
    /// Without the window's number.
    merged: Option<Merged>,
}

impl Grouped {
    fn new(scratch: &mut vrsp::Scratch, weights: &[u64], shapes: &Shapes) -> Result<Self, Failure> {
        let shape = &shapes.window;
        if shapes.elastic == Elastic::OFF {
            let size = shape.pool_size() as usize;
            return Ok(Self {
                placement: vrsp::place_with(scratch, weights, size, shapes.vrsp)?,
                merged: None,
            });
        }
        let elastic = vrsp::elastic_with(scratch, weights, shape, shapes.elastic)?;
        let total = weights.iter().sum();
        let excess = |bound: vrsp::PoolBound| {
            audit::excess(bound.load, total, weights.len() / bound.pool_size)
        };
        let size = |pool| elastic.placement.pool_size(pool);
        let merged = elastic.merged().next().is_some().then(|| Merged {
            window: 0,
            pool_sizes: elastic.merged().map(size).collect(),
            bound_excess_before: excess(elastic.before),
            bound_excess_after: excess(elastic.after),
            bound: elastic.before.kind.to_string(),
        });
        Ok(Self {
            merged,
            placement: elastic.placement,
        })
    }
}

impl WindowPlan {
    /// Lengths of `pool`, slot by slot.
    pub(crate) fn pool_lengths(&self, pool: u32) -> Result<PackedLengths, Failure> {
        let members = self.placement.members(PoolId(pool));
        Ok(self.lengths.select(members)?)
    }

    /// Plans every pool in parallel; pools not begun when the user asks for an end are left out.
    pub(crate) fn plan_pools(
        &self,
        shapes: &Shapes,
        step: impl Fn() + Sync,
    ) -> Result<Vec<(PoolCase, PoolPlan)>, Failure> {
        let pools: Vec<Option<Result<_, Failure>>> = (0..self.placement.pools() as u32)
            .into_par_iter()
            .map_init(Scratch::default, |scratch, pool| {
                if interrupt::requested() {
                    return None;
                }
                let planned = self.plan_pool(scratch, shapes, pool, Extras::ALL);
                step();
                Some(planned)
            })
            .collect();
        // In order, so that the first error does not depend on threads.
        pools.into_iter().flatten().collect()
    }
}

pub(super) fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The middle value, the lower one of two; 0 of none.
pub(crate) fn median(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    times
        .get(times.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0)
}
