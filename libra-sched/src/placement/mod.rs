//! Places SH-Tiles over a pool's workers.
//!
//! In: tiles and what moving them costs. Out: one worker a tile, and the load of every worker.
//!
//! *Paper*: §4.3.2, Alg. 2, eq. 9.

mod blocks;
mod head_shard;
mod home;
mod loads;
mod paper;
mod slack;

use crate::error::{Error, check_limit};
use crate::heads::{ElementBytes, HeadSplit};
use crate::ids::WorkerId;
use crate::layout::TokenLayout;
use crate::lengths::{MAX_COUNT, PackedLengths, check_total};
use crate::tiles::{ShTile, check_pool, check_tile};

pub use paper::Scratch;
pub use slack::Slack;

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
}

/// One worker a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Worker of each tile: σ(t).
    pub workers: Vec<WorkerId>,
    /// Work of each worker: pairs × heads.
    pub loads: Vec<u64>,
    /// Tiles that no worker could take within the soft target. They went to the lightest worker.
    pub fallbacks: u32,
}

/// What the placers read.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    pool: &'a PackedLengths,
    layout: &'a TokenLayout,
    heads: &'a HeadSplit,
    bytes: ElementBytes,
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
        })
    }
}

/// Places `tiles` by `placer`.
///
/// # Errors
/// A tile that does not belong to the problem, work beyond 64 bits, or a placer whose shape
/// condition fails.
pub fn place(problem: &Problem<'_>, tiles: &[ShTile], placer: Placer) -> Result<Placement, Error> {
    place_with(&mut Scratch::default(), problem, tiles, placer)
}

/// As [`place`], reusing `scratch`; the answer does not depend on what it held.
///
/// # Errors
/// As [`place`].
pub fn place_with(
    scratch: &mut Scratch,
    problem: &Problem<'_>,
    tiles: &[ShTile],
    placer: Placer,
) -> Result<Placement, Error> {
    match placer {
        Placer::Home => {
            check_tiles(problem, tiles, |_| {})?;
            Ok(home::place(problem, tiles))
        }
        Placer::Paper(slack) => {
            let runs = &mut scratch.runs;
            runs.clear();
            let total = check_tiles(problem, tiles, |run| runs.push(run))?;
            let capacity = slack.capacity(total, problem.layout.workers());
            Ok(paper::place(scratch, problem, tiles, total, capacity))
        }
        Placer::HeadShard => {
            check_tiles(problem, tiles, |_| {})?;
            head_shard::place(problem, tiles)
        }
    }
}

/// Consecutive tiles over the same tokens with the same work: first id and one past the last.
type TileRun = std::ops::Range<u32>;

/// Every tile lies within the pool. Names the runs of tiles that differ in shard and home alone,
/// and returns the total work.
fn check_tiles(
    problem: &Problem<'_>,
    tiles: &[ShTile],
    mut run: impl FnMut(TileRun),
) -> Result<u64, Error> {
    check_limit("number of tiles", tiles.len() as u128, MAX_COUNT.into())?;
    let (workers, shards) = (problem.layout.workers(), problem.heads.shards());
    let mut total = 0u128;
    let mut first = 0;
    for of_run in tiles.chunk_by(ShTile::same_task) {
        check_tile(problem.pool, problem.heads, &of_run[0])?;
        total += u128::from(of_run[0].work) * of_run.len() as u128;
        for tile in of_run {
            let ids = [
                ("shard", tile.shard, shards),
                ("q_home worker", tile.q_home.0, workers),
            ];
            for (name, value, count) in ids {
                if value >= count {
                    let (value, count) = (value.into(), count.into());
                    return Err(Error::OutOfRange { name, value, count });
                }
            }
        }
        let end = first + of_run.len() as u32;
        run(first..end);
        first = end;
    }
    check_total("work of the pool", total)
}

/// Sums the work that `workers` received.
fn sum_loads(tiles: &[ShTile], workers: &[WorkerId], count: u32) -> Vec<u64> {
    let mut loads = vec![0; count as usize];
    for (tile, worker) in tiles.iter().zip(workers) {
        loads[worker.index()] += tile.work;
    }
    loads
}
