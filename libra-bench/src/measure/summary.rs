//! Many pools in few numbers.

use serde::Serialize;

use super::window::{Inter, Merged, PoolCase, median};

/// Mean and largest of some numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// Mean.
    pub(crate) mean: f64,
    /// Largest.
    pub(crate) max: f64,
}

impl Spread {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        let (mut sum, mut count, mut max) = (0.0, 0u32, f64::NEG_INFINITY);
        for value in values {
            sum += value;
            count += 1;
            max = value.max(max);
        }
        if count == 0 {
            return Self::default();
        }
        let mean = sum / f64::from(count);
        Self { mean, max }
    }
}

/// Balance, bytes and times of all windows.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    /// Windows.
    pub(crate) windows: usize,
    /// Pools of all windows.
    pub(crate) pools: usize,
    /// Heaviest pool of a window over the mean, less 1, in arrival order.
    pub(crate) inter_arrival_excess: Spread,
    /// As placed.
    pub(crate) inter_excess: Spread,
    /// What no placement goes below.
    pub(crate) inter_bound_excess: Spread,
    /// Heaviest pool over that bound, less 1.
    pub(crate) inter_gap: Spread,
    /// What a step waits for over the mean, less 1, in the order that pools run.
    pub(crate) inter_ga_excess: Option<Spread>,
    /// The same in paper order.
    pub(crate) inter_ga_paper_excess: Option<Spread>,
    /// Windows with pools that were merged.
    pub(crate) merged: Vec<Merged>,
    /// Why, where all windows have one reason.
    pub(crate) inter_bound: String,
    /// Heaviest worker of a pool over the mean, less 1, with every tile at home.
    pub(crate) home_excess: Spread,
    /// As placed.
    pub(crate) intra_excess: Spread,
    /// What no placement of these tiles goes below.
    pub(crate) tile_bound_excess: Spread,
    /// Busiest worker's time over the mean of a pool, less 1, with every tile at home; where measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) home_time_excess: Option<Spread>,
    /// As placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time_excess: Option<Spread>,
    /// Per pool.
    pub(crate) qo_bytes_mean: u64,
    /// Per pool.
    pub(crate) kv_bytes_mean: u64,
    /// Per pool.
    pub(crate) moved_bytes_mean: u64,
    /// Per pool.
    pub(crate) cross_node_bytes_mean: u64,
    /// Per pool.
    pub(crate) cross_pod_bytes_mean: u64,
    /// Per pool.
    pub(crate) forward_bytes_mean: u64,
    /// Per pool.
    pub(crate) busiest_port_bytes_mean: u64,
    /// Per window.
    pub(crate) vrsp_ns_median: Option<u64>,
    /// Per pool.
    pub(crate) plan_ns_median: Option<u64>,
}

impl Summary {
    /// Of windows and all their pools.
    pub(crate) fn new(inters: &[Inter], pools: &[PoolCase]) -> Self {
        let over_windows = |of: fn(&Inter) -> f64| Spread::of(inters.iter().map(of));
        let over_pools = |of: fn(&PoolCase) -> f64| Spread::of(pools.iter().map(of));
        let measured = |of: fn(&PoolCase) -> Option<f64>| {
            let mut values = pools.iter().filter_map(of).peekable();
            values.peek().is_some().then(|| Spread::of(values))
        };
        let bytes = |of: fn(&PoolCase) -> u64| {
            let sum: u128 = pools.iter().map(|pool| u128::from(of(pool))).sum();
            (sum / pools.len().max(1) as u128) as u64
        };
        let mut reasons: Vec<&str> = inters.iter().map(|inter| inter.bound.as_str()).collect();
        reasons.dedup();
        let mut plan_ns: Vec<u64> = pools.iter().filter_map(|pool| pool.plan_ns).collect();
        let mut vrsp_ns: Vec<u64> = inters.iter().map(|inter| inter.vrsp_ns).collect();
        Self {
            windows: inters.len(),
            pools: pools.len(),
            inter_arrival_excess: over_windows(|inter| inter.arrival_excess),
            inter_excess: over_windows(|inter| inter.excess),
            inter_bound_excess: over_windows(|inter| inter.bound_excess),
            inter_gap: over_windows(|inter| inter.gap),
            inter_ga_excess: orders(inters, 0),
            inter_ga_paper_excess: orders(inters, 1),
            merged: inters
                .iter()
                .filter_map(|inter| inter.merged.clone())
                .collect(),
            inter_bound: match reasons[..] {
                [one] => one.to_owned(),
                _ => "several reasons".to_owned(),
            },
            home_excess: over_pools(|pool| pool.home_excess),
            intra_excess: over_pools(|pool| pool.intra_excess),
            tile_bound_excess: over_pools(|pool| pool.tile_bound_excess),
            home_time_excess: measured(|pool| pool.home_time_excess),
            time_excess: measured(|pool| pool.time_excess),
            qo_bytes_mean: bytes(|pool| pool.qo_bytes),
            kv_bytes_mean: bytes(|pool| pool.kv_bytes),
            moved_bytes_mean: bytes(|pool| pool.moved_bytes),
            cross_node_bytes_mean: bytes(|pool| pool.cross_node_bytes),
            cross_pod_bytes_mean: bytes(|pool| pool.cross_pod_bytes),
            forward_bytes_mean: bytes(|pool| pool.forward_bytes),
            busiest_port_bytes_mean: bytes(|pool| pool.busiest_port_bytes),
            vrsp_ns_median: Some(median(&mut vrsp_ns)),
            plan_ns_median: Some(median(&mut plan_ns)),
        }
    }
}

/// Over windows whose pools have one size.
fn orders(inters: &[Inter], which: usize) -> Option<Spread> {
    let mut values = inters.iter().filter_map(|inter| inter.ga_excess).peekable();
    values.peek()?;
    Some(Spread::of(values.map(|excess| excess[which])))
}
