//! One combination of settings over windows, beside Algorithm 2 on the same pools.

use libra_sched::{KvFetch, KvRoute, Placer, PlanConfig, Tiling};
use serde::Serialize;

use super::source::Source;
use super::summary::Spread;
use super::window::{Inter, PoolCase, Windows, median};
use crate::failure::Failure;
use crate::interrupt;
use crate::preset::{Settings, Shapes};

/// A combination in numbers; bytes and port time are of one layer forward, mean over pools.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SweepCase {
    /// Windows planned.
    pub(crate) windows: usize,
    /// Their pools.
    pub(crate) pools: usize,
    /// Heaviest pool of a window over the mean, less 1.
    pub(crate) inter_excess_mean: f64,
    /// In the worst window.
    pub(crate) inter_excess_max: f64,
    /// What no placement of sequences goes below.
    pub(crate) inter_bound_excess_mean: f64,
    /// Heaviest pool over the proved bound, less 1.
    pub(crate) inter_gap_mean: f64,
    /// In the worst window.
    pub(crate) inter_gap_max: f64,
    /// Heaviest worker of a pool over the mean, less 1.
    pub(crate) intra_excess_mean: f64,
    /// In the worst pool.
    pub(crate) intra_excess_max: f64,
    /// What no placement of these tiles goes below.
    pub(crate) tile_bound_excess_mean: f64,
    /// Q and O.
    pub(crate) qo_bytes_mean: f64,
    /// K and V.
    pub(crate) kv_bytes_mean: f64,
    /// All that moves.
    pub(crate) moved_bytes_mean: f64,
    /// What any placement with the same heaviest worker moves at least.
    pub(crate) moved_bytes_bound_mean: f64,
    /// Most that a worker sends.
    pub(crate) max_send_bytes_mean: f64,
    /// Most that a worker receives.
    pub(crate) max_recv_bytes_mean: f64,
    /// Between nodes.
    pub(crate) cross_node_bytes_mean: f64,
    /// Between pods, of those.
    pub(crate) cross_pod_bytes_mean: f64,
    /// Time of the busiest direction of any worker's port.
    pub(crate) busiest_port_us_mean: f64,
    /// All that moves, over what Algorithm 2 moves on the same pools.
    pub(crate) moved_bytes_ratio: f64,
    /// Between nodes, likewise.
    pub(crate) cross_node_bytes_ratio: f64,
    /// The busiest port, likewise.
    pub(crate) busiest_port_ratio: f64,
    /// Time of VRSP, a window.
    pub(crate) vrsp_ns_median: Option<u64>,
    /// Time of planning, a pool.
    pub(crate) plan_ns_median: Option<u64>,
}

/// Plans up to `count` windows with `settings`; `None` where the user asked for an end before one was
/// done. `step` is called after each pool of either placement.
pub(crate) fn combination(
    source: &Source,
    settings: &Settings,
    count: u64,
    step: impl Fn() + Sync,
) -> Result<Option<SweepCase>, Failure> {
    let shapes = settings.shapes()?;
    let paper = algorithm_2(&shapes, settings);
    let mut stream = Windows::new(source, settings)?;
    let (mut inters, mut pools, mut base) = (Vec::new(), Vec::new(), Vec::new());
    while (inters.len() as u64) < count {
        let Some(window) = stream.next(&shapes)? else {
            break;
        };
        let own = window.plan_pools(&shapes, &step)?;
        let beside = window.plan_pools(&paper, &step)?;
        if interrupt::requested() {
            break;
        }
        inters.push(window.inter.clone());
        pools.extend(own.into_iter().map(|(case, _)| case));
        base.extend(beside.into_iter().map(|(case, _)| case));
    }
    Ok((!inters.is_empty()).then(|| summarize(&inters, &pools, &base)))
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

fn summarize(inters: &[Inter], pools: &[PoolCase], base: &[PoolCase]) -> SweepCase {
    let over_windows = |of: fn(&Inter) -> f64| Spread::of(inters.iter().map(of));
    let over_pools = |of: fn(&PoolCase) -> f64| Spread::of(pools.iter().map(of));
    let mean = |of: fn(&PoolCase) -> u64| Spread::of(pools.iter().map(|p| of(p) as f64)).mean;
    let ratio = |of: fn(&PoolCase) -> u64| {
        let sum = |cases: &[PoolCase]| cases.iter().map(|case| of(case) as f64).sum::<f64>();
        let (own, beside) = (sum(pools), sum(base));
        // Two placements that move nothing are alike.
        if beside > 0.0 { own / beside } else { 1.0 }
    };
    let gap = over_windows(|inter| inter.gap);
    let inter_excess = over_windows(|inter| inter.excess);
    let intra_excess = over_pools(|pool| pool.intra_excess);
    let mut plan_ns: Vec<u64> = pools.iter().filter_map(|pool| pool.plan_ns).collect();
    let mut vrsp_ns: Vec<u64> = inters.iter().map(|inter| inter.vrsp_ns).collect();
    SweepCase {
        windows: inters.len(),
        pools: pools.len(),
        inter_excess_mean: inter_excess.mean,
        inter_excess_max: inter_excess.max,
        inter_bound_excess_mean: over_windows(|inter| inter.bound_excess).mean,
        inter_gap_mean: gap.mean,
        inter_gap_max: gap.max,
        intra_excess_mean: intra_excess.mean,
        intra_excess_max: intra_excess.max,
        tile_bound_excess_mean: over_pools(|pool| pool.tile_bound_excess).mean,
        qo_bytes_mean: mean(|pool| pool.qo_bytes),
        kv_bytes_mean: mean(|pool| pool.kv_bytes),
        moved_bytes_mean: mean(|pool| pool.moved_bytes),
        moved_bytes_bound_mean: mean(|pool| pool.moved_bytes_bound),
        max_send_bytes_mean: mean(|pool| pool.max_send_bytes),
        max_recv_bytes_mean: mean(|pool| pool.max_recv_bytes),
        cross_node_bytes_mean: mean(|pool| pool.cross_node_bytes),
        cross_pod_bytes_mean: mean(|pool| pool.cross_pod_bytes),
        busiest_port_us_mean: mean(|pool| pool.busiest_port_ns) / 1e3,
        moved_bytes_ratio: ratio(|pool| pool.moved_bytes),
        cross_node_bytes_ratio: ratio(|pool| pool.cross_node_bytes),
        busiest_port_ratio: ratio(|pool| pool.busiest_port_ns),
        vrsp_ns_median: Some(median(&mut vrsp_ns)),
        plan_ns_median: Some(median(&mut plan_ns)),
    }
}
