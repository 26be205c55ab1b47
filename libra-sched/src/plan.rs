//! One pool's plan: what `plan_pool` makes and an executor runs.
//!
//! *Paper*: §4.1 (the plan is made on the CPU, shared by all layers, and never decided on the
//! device's critical path).

use crate::error::Error;
use crate::exchange::{self, ExchangePlan, KvFetch, KvRoute};
use crate::heads::{ElementBytes, HeadSplit};
use crate::ids::WorkerId;
use crate::layout::TokenLayout;
use crate::lengths::PackedLengths;
use crate::mask::Mask;
use crate::placement::{self, Placement, Placer, Problem, Speeds};
use crate::tiles::{self, CostTable, ShTile, TileSet, Tiling};

/// How to plan a pool, beside its lengths, layout and heads. Every combination is legal, but only a
/// causal mask with lengths that have parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanConfig {
    /// Which keys a query reads.
    pub mask: Mask,
    /// Tokens of a block, B.
    pub block_tokens: u32,
    /// Whether blocks stay as they are cut.
    pub tiling: Tiling,
    /// Who places the tiles.
    pub placer: Placer,
    /// How much of a KV group is fetched.
    pub kv_fetch: KvFetch,
    /// Which way it takes.
    pub kv_route: KvRoute,
    /// Bytes of what travels.
    pub bytes: ElementBytes,
    /// Bytes of Q and KV that one worker's staging may receive forward; `None` for no limit.
    pub max_recv_bytes: Option<u64>,
}

impl PlanConfig {
    /// Causal, fixed tiles, Alg. 2 with the paper's slack, whole groups from their homes, bf16, no
    /// limit on what a worker receives.
    #[must_use]
    pub const fn paper(block_tokens: u32) -> Self {
        Self {
            mask: Mask::Causal,
            block_tokens,
            tiling: Tiling::Fixed,
            placer: Placer::Paper(placement::Slack::PAPER),
            kv_fetch: KvFetch::Whole,
            kv_route: KvRoute::Direct,
            bytes: ElementBytes::BF16,
            max_recv_bytes: None,
        }
    }

    /// Whether blocks are split and merged: a placer of runs makes its own tiles.
    const fn cuts_adaptively(&self) -> bool {
        matches!(self.tiling, Tiling::Adaptive) && !matches!(self.placer, Placer::Export(..))
    }
}

/// What was measured on the machines, where it is to decide beside exact work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured<'a> {
    /// Tiles are placed by the time that this table says, not by work.
    pub costs: Option<&'a CostTable>,
    /// Workers get tiles in proportion to their speeds.
    pub speeds: Option<&'a Speeds>,
}

/// Everything an executor needs, explicit: it never has to plan.
///
/// The fields are open so that tools can read and tests can damage them; [`crate::verify::check`]
/// says whether they still make a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolPlan {
    /// Sample lengths of every slot.
    pub lengths: PackedLengths,
    /// Home of every token and head.
    pub layout: TokenLayout,
    /// Head counts, shards and chunks.
    pub heads: HeadSplit,
    /// Which keys a query reads.
    pub mask: Mask,
    /// How much of a KV group is fetched.
    pub kv_fetch: KvFetch,
    /// Which way it takes.
    pub kv_route: KvRoute,
    /// Bytes of what travels.
    pub bytes: ElementBytes,
    /// Tiles: position = tile id.
    pub tiles: Vec<ShTile>,
    /// Worker of each tile: σ(t).
    pub workers: Vec<WorkerId>,
    /// Chunk in which each query head is computed, `h_q` entries.
    pub q_chunks: Vec<u32>,
    /// First and last chunk that reads each KV head, `h_kv` entries: it travels forward with the
    /// first; when backward fetches it again it travels with the last.
    pub kv_chunks: Vec<[u32; 2]>,
    /// What moves.
    pub exchange: ExchangePlan,
}

/// Memory that [`plan_pool_with`] reuses from pool to pool.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    placement: placement::Scratch,
    exchange: exchange::Scratch,
    weights: Vec<u64>,
    /// Of adaptive tiles, before they are copied into the plan.
    tiles: Vec<ShTile>,
    old_tiles: Vec<ShTile>,
    edges: Vec<u32>,
    open: Vec<usize>,
    received: Vec<u64>,
}

/// Plans one pool: cut, place, derive the exchange.
///
/// # Errors
/// Lengths, layout and heads that do not belong together, sums beyond 64 bits, or a worker that
/// would receive more than `config.max_recv_bytes`.
///
/// ```
/// use libra_sched::{HeadSplit, LayoutKind, PackedLengths, PlanConfig, TokenLayout, plan_pool};
/// let pool = PackedLengths::new(12, [vec![12u64], vec![3, 3, 3, 3]])?;
/// let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 12, 1)?;
/// let heads = HeadSplit::new(2, 2, 4, 4, 2, 1)?;
/// let plan = plan_pool(&pool, &layout, &heads, &PlanConfig::paper(6))?;
/// // At home the first sequence has 78 pairs in each of 2 heads, the second 24: 156 against 48.
/// assert_eq!(plan.loads(), [102, 102]);
/// assert!(libra_sched::verify::check(&plan).is_empty());
/// # Ok::<(), libra_sched::Error>(())
/// ```
pub fn plan_pool(
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    config: &PlanConfig,
) -> Result<PoolPlan, Error> {
    plan_pool_with(&mut Scratch::default(), pool, layout, heads, config)
}

/// As [`plan_pool`], reusing `scratch`; the plan does not depend on what it held.
///
/// # Errors
/// As [`plan_pool`].
pub fn plan_pool_with(
    scratch: &mut Scratch,
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    config: &PlanConfig,
) -> Result<PoolPlan, Error> {
    let measured = Measured::default();
    plan_pool_measured(scratch, pool, layout, heads, config, measured)
}

/// As [`plan_pool_with`], placing by what was measured: measured times decide in the place of work,
/// which the plan records all the same, and slow workers get less.
///
/// # Errors
/// As [`plan_pool`], times that add up beyond 64 bits, or not one speed a worker.
pub fn plan_pool_measured(
    scratch: &mut Scratch,
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    config: &PlanConfig,
    measured: Measured<'_>,
) -> Result<PoolPlan, Error> {
    let mut problem = Problem::new(pool, layout, heads, config.bytes)?;
    if let Some(speeds) = measured.speeds {
        problem = problem.with_speeds(speeds)?;
    }
    let (tiles, placed) = if let Placer::Export(slack, topology) = config.placer {
        placement::export_measured(
            &mut scratch.placement,
            &problem,
            config.mask,
            topology,
            slack,
            measured.costs,
        )?
    } else {
        cut_and_place(scratch, &problem, config, measured.costs)?
    };
    let exchange = exchange::derive_along(
        &mut scratch.exchange,
        pool,
        layout,
        heads,
        &tiles,
        &placed.workers,
        config.mask,
        config.kv_fetch,
        config.kv_route,
    )?;
    let (mut tiles, lengths, runs) = tiles.into_parts();
    let mut workers = placed.workers;
    let mut spare_workers = Vec::new();
    if config.cuts_adaptively() {
        // They were more before neighbours were merged: the plan gets as much memory as it fills.
        scratch.tiles = tiles;
        tiles = scratch.tiles.clone();
        spare_workers = workers;
        workers = spare_workers.clone();
    }
    placement::give_back(&mut scratch.placement, placed.loads, spare_workers, runs);
    let plan = PoolPlan {
        lengths,
        layout: layout.clone(),
        heads: heads.clone(),
        mask: config.mask,
        kv_fetch: config.kv_fetch,
        kv_route: config.kv_route.without_pods(),
        bytes: config.bytes,
        tiles,
        workers,
        q_chunks: (0..heads.q_heads())
            .map(|head| heads.chunk_of_head(head))
            .collect(),
        kv_chunks: (0..heads.kv_heads())
            .map(|head| [heads.first_chunk_of_kv(head), heads.last_chunk_of_kv(head)])
            .collect(),
        exchange,
    };
    if let Some(limit) = config.max_recv_bytes {
        check_received(&mut scratch.received, &plan, limit)?;
    }
    Ok(plan)
}

/// Tiles of fixed blocks, or adaptive ones, and their workers.
fn cut_and_place(
    scratch: &mut Scratch,
    problem: &Problem<'_>,
    config: &PlanConfig,
    costs: Option<&CostTable>,
) -> Result<(TileSet, Placement), Error> {
    let (pool, layout, heads) = problem.parts();
    let runs = placement::spare_runs(&mut scratch.placement);
    let memory = if config.cuts_adaptively() {
        (std::mem::take(&mut scratch.tiles), runs)
    } else {
        (Vec::new(), runs)
    };
    let block = config.block_tokens;
    let mut tiles = tiles::cut_with(memory, pool, layout, heads, config.mask, block)?;
    if config.tiling == Tiling::Adaptive {
        split_heavy(scratch, &mut tiles, layout, heads, config)?;
    }
    let weights = &mut scratch.weights;
    if let Some(costs) = costs {
        tiles::reweigh_with(weights, &tiles, heads, config.mask, costs)?;
        tiles.swap_work(weights)?;
    }
    let mut placed = placement::place_with(&mut scratch.placement, problem, &tiles, config.placer)?;
    if costs.is_some() {
        tiles.swap_work(weights)?;
    }
    if config.tiling == Tiling::Adaptive {
        tiles.merge_with(&mut scratch.open, layout, &mut placed.workers)?;
    }
    Ok((tiles, placed))
}

/// A worker is filled with at least so many tiles where tiles are adaptive. Halves of a target would
/// do were every worker filled by two; with thirds the greedy placer kept within the slack wherever
/// it was tried, and smaller parts moved as much.
const TILES_PER_TARGET: u64 = 3;

/// Splits tiles that are heavy beside the placer's target.
fn split_heavy(
    scratch: &mut Scratch,
    tiles: &mut TileSet,
    layout: &TokenLayout,
    heads: &HeadSplit,
    config: &PlanConfig,
) -> Result<(), Error> {
    // Others do not place by load: smaller tiles would change nothing for them.
    let Placer::Paper(slack) = config.placer else {
        return Ok(());
    };
    let target = slack.capacity(tiles.work_total(), layout.workers());
    let limit = (target / TILES_PER_TARGET).max(1);
    let Scratch {
        old_tiles, edges, ..
    } = scratch;
    tiles.split_with(old_tiles, edges, heads, config.mask, limit)
}

/// How finely a pool's work is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granularity {
    /// Number of tiles.
    pub tiles: usize,
    /// No placement of them has a heaviest worker below this: [`TileSet::bound`].
    pub bound: u64,
}

/// The tiles that blocks give, and those that are placed as `config` says: the same where they are
/// fixed.
///
/// # Errors
/// As [`plan_pool`].
pub fn granularity(
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    config: &PlanConfig,
) -> Result<[Granularity; 2], Error> {
    let of = |tiles: &TileSet| Granularity {
        tiles: tiles.len(),
        bound: tiles.bound(),
    };
    let mut tiles = tiles::cut(pool, layout, heads, config.mask, config.block_tokens)?;
    let fixed = of(&tiles);
    if config.tiling == Tiling::Adaptive {
        split_heavy(&mut Scratch::default(), &mut tiles, layout, heads, config)?;
    }
    Ok([fixed, of(&tiles)])
}

/// No worker may receive more than `limit` bytes of Q and KV.
fn check_received(received: &mut Vec<u64>, plan: &PoolPlan, limit: u64) -> Result<(), Error> {
    received.clear();
    received.resize(plan.layout.workers() as usize, 0);
    for m in &plan.exchange.q {
        received[m.dst.index()] += plan.q_bytes(m.tile.index());
    }
    for m in plan.exchange.kv.iter().chain(&plan.exchange.forward) {
        received[m.dst.index()] += plan.kv_bytes(m);
    }
    // The worst worker, the first of equals.
    let worst = received
        .iter()
        .zip(0..)
        .max_by_key(|&(&bytes, id)| (bytes, std::cmp::Reverse(id)));
    match worst {
        Some((&bytes, id)) if bytes > limit => Err(Error::ReceiveLimit {
            worker: WorkerId(id),
            bytes,
            limit,
        }),
        _ => Ok(()),
    }
}

impl PoolPlan {
    /// Work of each worker.
    #[must_use]
    pub fn loads(&self) -> Vec<u64> {
        placement::sum_loads(&self.tiles, &self.workers, self.layout.workers())
    }

    /// Bytes of Q of one tile.
    #[must_use]
    pub fn q_bytes(&self, tile: usize) -> u64 {
        let rows = u64::from(self.tiles[tile].len());
        rows * self.bytes.q_token(&self.heads, self.heads.shard_width())
    }

    /// Bytes of O of one tile.
    #[must_use]
    pub fn o_bytes(&self, tile: usize) -> u64 {
        let rows = u64::from(self.tiles[tile].len());
        rows * self.bytes.o_token(&self.heads, self.heads.shard_width())
    }

    /// Bytes of K and V of one move.
    #[must_use]
    pub fn kv_bytes(&self, kv: &exchange::KvMove) -> u64 {
        let span = self.heads.kv_of_span(kv.span);
        u64::from(kv.tokens()) * self.bytes.kv_token(&self.heads, span.end - span.start)
    }

    /// KV groups that some tile reads: (sample, span) pairs.
    #[must_use]
    pub fn kv_groups(&self) -> usize {
        let spans = self.heads.span_count() as usize;
        let mut read = vec![false; self.lengths.samples() * spans];
        for tile in &self.tiles {
            let above = self.lengths.ancestors_of(tile.samples());
            for sample in tile.samples().chain(above) {
                for span in self.heads.spans_of_shard(tile.shard) {
                    read[sample * spans + span as usize] = true;
                }
            }
        }
        read.into_iter().filter(|&r| r).count()
    }
}
