//! One combination of settings over many windows, in constant memory.
//!
//! Windows are read a batch at a time while the batch before is planned, and nothing of them is kept but sums. The batch
//! depends on the number of threads, the sums do not: windows are added in order.

use libra_sched::plan::Scratch;
use libra_sched::{KvFetch, KvRoute, Placer, PlanConfig, Tiling};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::pool_case::{Extras, PoolCase};
use super::source::Source;
use super::summary::Summary;
use super::window::{Inter, PackedWindow, WindowPlan, Windows};
use crate::cli::{Beside, Verify};
use crate::failure::Failure;
use crate::interrupt;
use crate::preset::{Settings, Shapes};

/// Pools that a thread has to plan before the next batch begins: some, so that threads seldom wait for each other.
const BATCH_POOLS: usize = 64;

/// Of the plans after those of the first window, every so manieth is verified. A prime: the number of pools of a window
/// is none, so that it is not the same pool each time.
pub(crate) const VERIFIED_EVERY: u64 = 61;

/// What is asked of every combination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SweepOptions {
    /// Most windows.
    pub(crate) windows: u64,
    /// A yardstick on the same pools.
    pub(crate) beside: Beside,
    /// Which plans are verified.
    pub(crate) verify: Verify,
}

/// A combination in numbers.
pub(crate) struct SweepCase {
    own: Summary,
    beside: Option<Summary>,
    /// Plans that were verified.
    verified: u64,
    /// Whether the user asked for an end before all windows were done.
    is_partial: bool,
}

impl SweepCase {
    /// Windows planned.
    pub(crate) fn windows(&self) -> u64 {
        self.own.windows as u64
    }

    /// Whether the user asked for an end before all windows were done.
    pub(crate) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Its numbers, by the names of the report format.
    pub(crate) fn json(&self) -> Map<String, Value> {
        let mut flat = self.own.flat();
        flat.insert("verified_pools".to_owned(), json!(self.verified));
        if let Some(beside) = &self.beside {
            for (name, ratio) in self.own.ratios(beside) {
                flat.insert(name.to_owned(), json!(ratio));
            }
        }
        flat
    }
}

/// Plans up to `options.windows` windows with `settings`; `None` where the user asked for an end before one was done.
/// `step` is called after each pool of either placement.
pub(crate) fn combination(
    source: &Source,
    settings: &Settings,
    shapes: &Shapes,
    options: &SweepOptions,
    step: impl Fn() + Sync,
) -> Result<Option<SweepCase>, Failure> {
    let job = Job {
        shapes,
        beside: match options.beside {
            Beside::None => None,
            Beside::Paper => Some(algorithm_2(shapes, settings)),
        },
        verify: options.verify,
        step: &step,
    };
    let mut windows = Windows::new(source, settings)?;
    let pools = shapes.window.pools() as usize;
    let batch = (BATCH_POOLS * rayon::current_num_threads()).div_ceil(pools) as u64;
    let mut case = SweepCase {
        own: Summary::default(),
        beside: job.beside.as_ref().map(|_| Summary::default()),
        verified: 0,
        is_partial: false,
    };
    let (mut begun, mut left) = (0, options.windows);
    let mut at_hand = read(&mut windows, batch, &mut left)?;
    while !at_hand.is_empty() && !case.is_partial {
        let first = begun;
        begun += at_hand.len() as u64;
        let (done, next) = rayon::join(
            || job.plan(at_hand, first),
            || read(&mut windows, batch, &mut left),
        );
        for window in done? {
            match window {
                Some(window) if !case.is_partial => case.add(&window),
                _ => case.is_partial = true,
            }
        }
        at_hand = next?;
    }
    Ok((case.windows() > 0).then_some(case))
}

/// At most `batch` windows of those that are `left`.
fn read(windows: &mut Windows, batch: u64, left: &mut u64) -> Result<Vec<PackedWindow>, Failure> {
    let mut read = Vec::new();
    while (read.len() as u64) < batch.min(*left) {
        match windows.read()? {
            Some(window) => read.push(window),
            None => {
                *left = 0;
                return Ok(read);
            }
        }
    }
    *left -= read.len() as u64;
    Ok(read)
}

/// A window in numbers.
struct Measured {
    inter: Inter,
    own: Vec<PoolCase>,
    beside: Vec<PoolCase>,
    verified: u64,
}

impl SweepCase {
    fn add(&mut self, window: &Measured) {
        self.own.add(&window.inter, &window.own);
        // The one part of a summary that grows.
        self.own.merged.clear();
        if let Some(beside) = &mut self.beside {
            beside.add(&window.inter, &window.beside);
            beside.merged.clear();
        }
        self.verified += window.verified;
    }
}

/// What to do with every window.
struct Job<'a, S> {
    shapes: &'a Shapes,
    beside: Option<Shapes>,
    verify: Verify,
    step: &'a S,
}

impl<S: Fn() + Sync> Job<'_, S> {
    /// The windows of a batch in order, of which `first` come before; none where the user asked for an end before all
    /// pools of it were planned.
    fn plan(&self, batch: Vec<PackedWindow>, first: u64) -> Result<Vec<Option<Measured>>, Failure> {
        let grouped: Vec<Result<WindowPlan, Failure>> = batch
            .into_par_iter()
            .map(|window| window.group(self.shapes, 1))
            .collect();
        let grouped: Vec<WindowPlan> = grouped.into_iter().collect::<Result<_, _>>()?;
        let pools_of = |index: usize| {
            let pools = grouped[index].placement.pools() as u32;
            (0..pools).map(move |pool| (index, pool))
        };
        let tasks: Vec<(usize, u32)> = (0..grouped.len()).flat_map(pools_of).collect();
        let planned: Vec<Option<Result<Planned, Failure>>> = tasks
            .par_iter()
            .map_init(Scratch::default, |scratch, &(index, pool)| {
                let serial = first + index as u64;
                (!interrupt::requested())
                    .then(|| self.plan_pool(scratch, &grouped[index], serial, pool))
            })
            .collect();
        // In order, so that the first error does not depend on threads.
        let mut planned = planned.into_iter();
        let measured = grouped.into_iter().map(|window| {
            let pools: Vec<_> = planned.by_ref().take(window.placement.pools()).collect();
            let pools: Option<Result<Vec<Planned>, Failure>> = pools.into_iter().collect();
            pools
                .map(|pools| Ok(measured(window.inter, pools?)))
                .transpose()
        });
        measured.collect()
    }

    fn plan_pool(
        &self,
        scratch: &mut Scratch,
        window: &WindowPlan,
        serial: u64,
        pool: u32,
    ) -> Result<Planned, Failure> {
        let pools = window.placement.pools() as u64;
        let verify = match self.verify {
            Verify::All => true,
            Verify::Sample => {
                serial == 0 || (serial * pools + u64::from(pool)).is_multiple_of(VERIFIED_EVERY)
            }
            Verify::None => false,
        };
        let extras = Extras {
            plan_id: false,
            verify,
        };
        let mut plan = |shapes: &Shapes| {
            let planned = window.plan_pool(scratch, shapes, pool, extras);
            (self.step)();
            planned.map(|(case, _)| case)
        };
        Ok(Planned {
            own: plan(self.shapes)?,
            beside: self.beside.as_ref().map(plan).transpose()?,
            verified: verify,
        })
    }
}

/// A pool in numbers.
struct Planned {
    own: PoolCase,
    beside: Option<PoolCase>,
    verified: bool,
}

fn measured(inter: Inter, pools: Vec<Planned>) -> Measured {
    let verified = pools.iter().filter(|pool| pool.verified).count() as u64;
    let (own, beside): (Vec<_>, Vec<_>) = (pools.into_iter())
        .map(|pool| (pool.own, pool.beside))
        .unzip();
    Measured {
        inter,
        own,
        beside: beside.into_iter().flatten().collect(),
        verified,
    }
}

/// The same pools placed by Algorithm 2 to the letter.
fn algorithm_2(shapes: &Shapes, settings: &Settings) -> Shapes {
    let mut paper = shapes.clone();
    paper.plan = PlanConfig {
        placer: Placer::Paper(settings.slack),
        kv_fetch: KvFetch::Whole,
        kv_route: KvRoute::Direct,
        tiling: Tiling::Fixed,
        ..shapes.plan
    };
    (paper.costs, paper.speeds) = (None, None);
    paper
}
