//! Places SH-Tiles over a pool's workers.
//!
//! In: tiles and what moving them costs. Out: one worker a tile, and the load of every worker.
//!
//! *Paper*: §4.3.2, Alg. 2, eq. 9.

mod blocks;
mod export;
mod head_shard;
mod home;
mod loads;
mod paper;
mod slack;
mod speeds;
mod uneven;

use crate::error::{Error, check_limit};
use crate::heads::{ElementBytes, HeadSplit};
use crate::ids::WorkerId;
use crate::layout::TokenLayout;
use crate::lengths::{MAX_COUNT, PackedLengths, check_total};
use crate::mask::Mask;
use crate::tiles::{CostTable, ShTile, TileSet, check_pool};
use crate::topology::Topology;

pub use slack::Slack;
use speeds::targets_with;
pub use speeds::{Speed, Speeds, targets};

/// Memory that [`place_with`] and [`export_with`] reuse.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    paper: paper::Scratch,
    export: export::Scratch,
    targets: Vec<u64>,
    spare: Spare,
}

/// Memory of earlier answers.
#[derive(Clone, Debug, Default)]
struct Spare {
    workers: Vec<WorkerId>,
    loads: Vec<u64>,
    /// Of a tile set.
    runs: Vec<u32>,
}

/// An algorithm that places tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Placer {
    /// Every tile stays where its Q lives: what happens without a scheduler.
    Home,
    /// Alg. 2: heaviest first, least traffic among the workers under the soft target.
    Paper(Slack),
    /// Shard `s` of a sequence goes to worker `s·CP/H` of that sequence: Ulysses, where H = CP.
    HeadShard,
    /// Runs of any length, cut where a worker reaches the soft target: what is above it leaves its
    /// home, fewest bytes first. Nodes are those of the topology. It makes the tiles itself, so
    /// blocks do not matter.
    Export(Slack, Topology),
}

/// One worker a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Worker of each tile: σ(t).
    pub workers: Vec<WorkerId>,
    /// Work of each worker: pairs × heads.
    pub loads: Vec<u64>,
    /// Tiles that no worker could take within the soft target. They went to the lightest worker. Where
    /// runs are cut by measured times: workers that stayed above it.
    pub fallbacks: u32,
}

/// What the placers read.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    pool: &'a PackedLengths,
    layout: &'a TokenLayout,
    heads: &'a HeadSplit,
    bytes: ElementBytes,
    /// `None` where all are equal.
    speeds: Option<&'a Speeds>,
}

impl<'a> Problem<'a> {
    /// Lengths, layout, heads and element sizes of one pool.
    ///
    /// # Errors
    /// Lengths of another pool than the layout's, heads that do not fit its tensor ranks, or so
    /// many bytes that their sum exceeds 64 bits.
    pub fn new(
        pool: &'a PackedLengths,
        layout: &'a TokenLayout,
        heads: &'a HeadSplit,
        bytes: ElementBytes,
    ) -> Result<Self, Error> {
        check_pool(pool, layout)?;
        layout.check_heads(heads)?;
        check_limit(
            "number of samples",
            pool.samples() as u128,
            MAX_COUNT.into(),
        )?;
        // Every KV head at every worker, Q, O and a statistic, and all of it twice (forward run
        // again for backward): no sum of bytes exceeds this.
        let dims = u128::from(heads.dim_qk()) + u128::from(heads.dim_v());
        let head = u128::from(bytes.activation) * dims;
        let token = head * u128::from(heads.kv_heads()) * u128::from(layout.workers())
            + (head + u128::from(bytes.statistic)) * u128::from(heads.q_heads());
        let tokens = u128::from(pool.seq_tokens()) * pool.sequences() as u128;
        check_total("bytes of the pool", token.saturating_mul(2 * tokens))?;
        Ok(Self {
            pool,
            layout,
            heads,
            bytes,
            speeds: None,
        })
    }

    /// Lengths, layout and heads.
    pub(crate) fn parts(&self) -> (&'a PackedLengths, &'a TokenLayout, &'a HeadSplit) {
        (self.pool, self.layout, self.heads)
    }

    /// As this problem, on workers of these speeds. Equal speeds are as good as none.
    ///
    /// # Errors
    /// Not one speed a worker.
    pub fn with_speeds(self, speeds: &'a Speeds) -> Result<Self, Error> {
        speeds.check_workers(self.layout.workers())?;
        let speeds = Some(speeds).filter(|speeds| !speeds.are_equal());
        Ok(Self { speeds, ..self })
    }
}

/// Places `tiles` of the problem's pool by `placer`.
///
/// # Errors
/// Tiles of another pool, or a placer whose shape condition fails: [`Placer::HeadShard`] needs
/// CP | H.
pub fn place(problem: &Problem<'_>, tiles: &TileSet, placer: Placer) -> Result<Placement, Error> {
    place_with(&mut Scratch::default(), problem, tiles, placer)
}

/// As [`place`], reusing `scratch`; the answer does not depend on what it held.
///
/// # Errors
/// As [`place`].
pub fn place_with(
    scratch: &mut Scratch,
    problem: &Problem<'_>,
    tiles: &TileSet,
    placer: Placer,
) -> Result<Placement, Error> {
    tiles.check_belongs(problem.pool, problem.layout, problem.heads)?;
    let spare = std::mem::take(&mut scratch.spare);
    match placer {
        Placer::Home => Ok(home::place(problem, tiles, spare)),
        Placer::Paper(slack) => Ok(match problem.speeds {
            Some(speeds) => {
                let (targets, total) = (&mut scratch.targets, tiles.work_total());
                targets_with(
                    targets,
                    total,
                    problem.layout.workers(),
                    Some(speeds),
                    slack,
                );
                uneven::place(&mut scratch.paper, problem, tiles, speeds, targets, spare)
            }
            None => {
                let capacity = slack.capacity(tiles.work_total(), problem.layout.workers());
                paper::place(&mut scratch.paper, problem, tiles, capacity, spare)
            }
        }),
        Placer::HeadShard => head_shard::place(problem, tiles, spare),
        Placer::Export(..) => Err(Error::Combination {
            what: "placement",
            value: "export".to_owned(),
            with: "given tiles",
            legal: "home, paper, head-shard",
        }),
    }
}

/// Cuts and places the pool's attention in runs of any length: see [`Placer::Export`].
///
/// # Errors
/// Parents of samples under another mask than causal, work beyond 64 bits, or more tiles than ids.
pub fn export_with(
    scratch: &mut Scratch,
    problem: &Problem<'_>,
    mask: Mask,
    topology: Topology,
    slack: Slack,
) -> Result<(TileSet, Placement), Error> {
    export_measured(scratch, problem, mask, topology, slack, None)
}

/// As [`export_with`], placing by the times of `costs` where there are any.
///
/// # Errors
/// As there, or times beyond 64 bits.
pub(crate) fn export_measured(
    scratch: &mut Scratch,
    problem: &Problem<'_>,
    mask: Mask,
    topology: Topology,
    slack: Slack,
    costs: Option<&CostTable>,
) -> Result<(TileSet, Placement), Error> {
    let spare = std::mem::take(&mut scratch.spare);
    let plain = export::Plain {
        problem,
        mask,
        topology,
        slack,
    };
    export::place(&mut scratch.export, plain, costs, spare)
}

/// Takes back the memory of a placement's loads, of workers that were copied, and of a tile set's
/// runs.
pub(crate) fn give_back(
    scratch: &mut Scratch,
    loads: Vec<u64>,
    workers: Vec<WorkerId>,
    runs: Vec<u32>,
) {
    scratch.spare = Spare {
        workers,
        loads,
        runs,
    };
}

/// The memory of a tile set's runs.
pub(crate) fn spare_runs(scratch: &mut Scratch) -> Vec<u32> {
    std::mem::take(&mut scratch.spare.runs)
}

/// Sums the work that `workers` received.
pub(crate) fn sum_loads(tiles: &[ShTile], workers: &[WorkerId], count: u32) -> Vec<u64> {
    sum_loads_with(Vec::new(), tiles, workers, count)
}

/// As [`sum_loads`], in the memory of `loads`.
fn sum_loads_with(
    mut loads: Vec<u64>,
    tiles: &[ShTile],
    workers: &[WorkerId],
    count: u32,
) -> Vec<u64> {
    loads.clear();
    loads.resize(count as usize, 0);
    for (tile, worker) in tiles.iter().zip(workers) {
        loads[worker.index()] += tile.work;
    }
    loads
}
