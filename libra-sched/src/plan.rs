//! One pool's plan: what `plan_pool` makes and an executor runs.
//!
//! *Paper*: §4.1 (the plan is made on the CPU, shared by all layers, and never decided on the
//! device's critical path).

use crate::error::Error;
use crate::exchange::{self, ExchangePlan, KvFetch};
use crate::heads::{ElementBytes, HeadSplit};
use crate::ids::WorkerId;
use crate::layout::TokenLayout;
use crate::lengths::PackedLengths;
use crate::mask::Mask;
use crate::placement::{self, Placer, Problem};
use crate::tiles::{self, ShTile};

/// How to plan a pool, beside its lengths, layout and heads. Every combination is legal, but only a
/// causal mask with lengths that have parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanConfig {
    /// Which keys a query reads.
    pub mask: Mask,
    /// Tokens of a block, B.
    pub block_tokens: u32,
    /// Who places the tiles.
    pub placer: Placer,
    /// How much of a KV group is fetched.
    pub kv_fetch: KvFetch,
    /// Bytes of what travels.
    pub bytes: ElementBytes,
    /// Bytes of Q and KV that one worker's staging may receive forward; `None` for no limit.
    pub max_recv_bytes: Option<u64>,
}

impl PlanConfig {
    /// Causal, Alg. 2 with the paper's slack, bf16, no limit on what a worker receives.
    #[must_use]
    pub const fn paper(block_tokens: u32) -> Self {
        Self {
            mask: Mask::Causal,
            block_tokens,
            placer: Placer::Paper(placement::Slack::PAPER),
            kv_fetch: KvFetch::Whole,
            bytes: ElementBytes::BF16,
            max_recv_bytes: None,
        }
    }
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
    let problem = Problem::new(pool, layout, heads, config.bytes)?;
    let tiles = tiles::cut(pool, layout, heads, config.mask, config.block_tokens)?;
    let placed = placement::place_with(&mut scratch.placement, &problem, &tiles, config.placer)?;
    let exchange = exchange::derive(
        pool,
        layout,
        heads,
        &tiles,
        &placed.workers,
        config.mask,
        config.kv_fetch,
    )?;
    let plan = PoolPlan {
        lengths: pool.clone(),
        layout: layout.clone(),
        heads: heads.clone(),
        mask: config.mask,
        kv_fetch: config.kv_fetch,
        bytes: config.bytes,
        tiles: tiles.into_vec(),
        workers: placed.workers,
        q_chunks: (0..heads.q_heads())
            .map(|head| heads.chunk_of_head(head))
            .collect(),
        kv_chunks: (0..heads.kv_heads())
            .map(|head| [heads.first_chunk_of_kv(head), heads.last_chunk_of_kv(head)])
            .collect(),
        exchange,
    };
    if let Some(limit) = config.max_recv_bytes {
        check_received(&plan, limit)?;
    }
    Ok(plan)
}

/// No worker may receive more than `limit` bytes of Q and KV.
fn check_received(plan: &PoolPlan, limit: u64) -> Result<(), Error> {
    let mut received = vec![0u64; plan.layout.workers() as usize];
    for m in &plan.exchange.q {
        received[m.dst.index()] += plan.q_bytes(m.tile.index());
    }
    for m in &plan.exchange.kv {
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
