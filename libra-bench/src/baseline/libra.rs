//! Libra's own variants, and the scope of DistCA in Libra's terms: which sequences share a pool, who places the work, and
//! whether chunks overlap.
//!
//! Variants of the paper take what names them from the paper and everything else (B, the slack, the mask) from the shapes.
//! Where the shapes place divisible runs, whose H is the number of KV heads, they take the paper's H = 2.

use libra_sched::vrsp::{self, Elastic, GaOrder, SequencePlacement, Vrsp};
use libra_sched::{
    HeadSplit, KvFetch, KvRoute, PackedLengths, Placer, PlanConfig, PoolId, Proxy, SequenceId,
    Slack, Tiling,
};

use super::grouping::Grouping;
use super::pools::{Pool, Pools, as_placed, in_arrival_order};
use crate::failure::Failure;
use crate::preset::Shapes;

/// The paper's H.
const PAPER_SHARDS: u32 = 2;

/// Algorithm 2 in pools of arrival order, nothing overlapped.
pub(super) fn tap(window: &PackedLengths, shapes: &Shapes) -> Result<Pools, Failure> {
    let shapes = algorithm_2(shapes, 1)?;
    let pools = in_arrival_order(window.sequences(), shapes.window.pool_size() as usize);
    Ok(Pools { shapes, pools })
}

/// Algorithm 2 in pools of Algorithm 1, nothing overlapped.
pub(super) fn tap_vrsp(window: &PackedLengths, shapes: &Shapes) -> Result<Pools, Failure> {
    in_paper_pools(window, algorithm_2(shapes, 1)?)
}

/// Algorithm 2 in pools that `group` makes of the sequences' pairs, nothing overlapped.
pub(super) fn tap_in(
    window: &PackedLengths,
    shapes: &Shapes,
    group: impl Fn(&[u64], usize) -> Grouping,
) -> Result<Pools, Failure> {
    let size = shapes.window.pool_size() as usize;
    let pairs = window.work(Proxy::Pairs(shapes.plan.mask))?;
    let pool = |(place, members): (usize, Vec<usize>)| Pool {
        first: place * size,
        members: members.into_iter().map(SequenceId::new).collect(),
    };
    let pools: Vec<Pool> = group(&pairs, size)
        .into_iter()
        .enumerate()
        .map(pool)
        .collect();
    Ok(Pools {
        shapes: algorithm_2(shapes, 1)?,
        pools,
    })
}

/// Algorithms 1 and 2 and the pipeline of M chunks.
pub(super) fn paper(window: &PackedLengths, shapes: &Shapes) -> Result<Pools, Failure> {
    in_paper_pools(window, algorithm_2(shapes, shapes.heads.chunks())?)
}

/// Algorithm 2 over all replicas of a gradient-accumulation index, with the pipeline: how far DistCA looks (Zhuang et al.
/// 2025, arXiv 2510.18121), placed as Libra places.
pub(super) fn distca(window: &PackedLengths, shapes: &Shapes) -> Result<Pools, Failure> {
    let shapes = algorithm_2(shapes, shapes.heads.chunks())?;
    let pools = in_arrival_order(window.sequences(), shapes.window.dp() as usize);
    Ok(Pools { shapes, pools })
}

/// Certified pools, elastic and in GA order as the shapes say, placed by runs, ranges of keys once a node. Adaptive
/// tiles are for placers of tiles: where the shapes ask for them, their placer stays.
pub(super) fn libra(window: &PackedLengths, shapes: &Shapes) -> Result<Pools, Failure> {
    let mut ours = shapes.clone();
    ours.vrsp = Vrsp::Certified;
    ours.plan.kv_fetch = KvFetch::Range;
    ours.plan.kv_route = KvRoute::Node(shapes.topology);
    let needs_tiles = shapes.plan.tiling == Tiling::Adaptive;
    let is_export = matches!(shapes.plan.placer, Placer::Export(..));
    if !needs_tiles && !is_export {
        ours.plan.placer = Placer::Export(slack_of(&shapes.plan), shapes.topology);
        // A run reads the keys of a whole shard: one KV head each.
        let heads = &shapes.heads;
        ours.heads = resharded(heads, heads.kv_heads(), heads.chunks());
    }
    let placement = grouped(window, &ours)?;
    Ok(Pools {
        shapes: ours,
        pools: as_placed(&placement),
    })
}

/// Pools of arrival order, planned as the shapes say.
pub(super) fn as_asked(window: &PackedLengths, shapes: &Shapes) -> Pools {
    let size = shapes.window.pool_size() as usize;
    Pools {
        shapes: shapes.clone(),
        pools: in_arrival_order(window.sequences(), size),
    }
}

fn in_paper_pools(window: &PackedLengths, shapes: Shapes) -> Result<Pools, Failure> {
    let weights = window.work(Proxy::SumSquares)?;
    let placement = vrsp::place(&weights, shapes.window.pool_size() as usize, Vrsp::Paper)?;
    Ok(Pools {
        shapes,
        pools: as_placed(&placement),
    })
}

/// Shapes for Algorithm 2 to the letter, in `chunks` chunks.
pub(super) fn algorithm_2(shapes: &Shapes, chunks: u32) -> Result<Shapes, Failure> {
    let heads = &shapes.heads;
    let shards = match shapes.plan.placer {
        Placer::Export(..) => PAPER_SHARDS,
        _ => heads.shards(),
    };
    Ok(Shapes {
        heads: resharded(heads, shards, chunks),
        plan: PlanConfig {
            placer: Placer::Paper(slack_of(&shapes.plan)),
            kv_fetch: KvFetch::Whole,
            kv_route: KvRoute::Direct,
            tiling: Tiling::Fixed,
            ..shapes.plan
        },
        vrsp: Vrsp::Paper,
        elastic: Elastic::OFF,
        ga_order: GaOrder::Paper,
        costs: None,
        speeds: None,
        ..shapes.clone()
    })
}

/// The slack that placers by load keep, the paper's for others.
pub(super) fn slack_of(plan: &PlanConfig) -> Slack {
    match plan.placer {
        Placer::Paper(slack) | Placer::Export(slack, _) => slack,
        _ => Slack::PAPER,
    }
}

/// The same heads in `shards` shards, or in as many as they have where that cannot be, and up to `chunks` chunks.
pub(super) fn resharded(heads: &HeadSplit, shards: u32, chunks: u32) -> HeadSplit {
    let split = |shards: u32, chunks: u32| {
        HeadSplit::new(
            heads.q_heads(),
            heads.kv_heads(),
            heads.dim_qk(),
            heads.dim_v(),
            shards,
            chunks,
        )
    };
    let most = |shards| {
        (1..=chunks)
            .rev()
            .find_map(|chunks| split(shards, chunks).ok())
    };
    let split = most(shards).or_else(|| most(heads.shards()));
    split.expect("one chunk divides every shard")
}

/// Pools by the shapes' VRSP, merged and ordered as they say.
fn grouped(window: &PackedLengths, shapes: &Shapes) -> Result<SequencePlacement, Failure> {
    let weights = window.work(shapes.proxy)?;
    let shape = &shapes.window;
    if shapes.elastic != Elastic::OFF {
        let placed = vrsp::elastic(&weights, shape, shapes.elastic)?;
        if placed.merged().next().is_some() {
            return Ok(placed.placement);
        }
    }
    let placement = vrsp::place(&weights, shape.pool_size() as usize, shapes.vrsp)?;
    // The proxy that decided may not be what is computed.
    let pairs = window.work(Proxy::Pairs(shapes.plan.mask))?;
    let load = |pool: usize| {
        let members = placement.members(PoolId::new(pool)).iter();
        members.map(|member| pairs[member.index()]).sum()
    };
    let loads: Vec<u64> = (0..placement.pools()).map(load).collect();
    let order = vrsp::ga_order(&loads, shape, shapes.ga_order, shapes.pp)?;
    Ok(placement.reordered(&order)?)
}
