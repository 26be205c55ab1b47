//! Many windows and pools in few numbers.

use serde::Serialize;
use serde_json::{Map, Value};

use super::pool_case::PoolCase;
use super::running::{Mean, Spread, Times};
use super::window::{Inter, Merged};

/// Balance, bytes and times of all windows added so far; bytes are of one layer forward.
#[derive(Clone, Debug, Default, Serialize)]
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
    pub(crate) merged_windows: u64,
    /// Each of them.
    pub(crate) merged: Vec<Merged>,
    /// Why, where all windows have one reason.
    pub(crate) inter_bound: String,
    /// Heaviest worker of a pool over the mean, less 1, with every tile at home.
    pub(crate) home_excess: Spread,
    /// As placed.
    pub(crate) intra_excess: Spread,
    /// What no placement of these tiles goes below.
    pub(crate) tile_bound_excess: Spread,
    /// Heaviest worker of a window over the mean of all its workers, less 1: of each pool the product of its own load
    /// over the mean and of its heaviest worker's over the pool's mean.
    pub(crate) worst_excess: Spread,
    /// Busiest worker's time over the mean of a pool, less 1, with every tile at home; where measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) home_time_excess: Option<Spread>,
    /// As placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time_excess: Option<Spread>,
    /// Per pool.
    pub(crate) tiles_mean: Mean,
    /// Per pool.
    pub(crate) qo_bytes_mean: Mean,
    /// Per pool.
    pub(crate) kv_bytes_mean: Mean,
    /// Per pool.
    pub(crate) moved_bytes_mean: Mean,
    /// Per worker: pools of different sizes compare.
    pub(crate) worker_moved_bytes_mean: Mean,
    /// What any placement with the same heaviest worker moves at least, per pool.
    pub(crate) moved_bytes_bound_mean: Mean,
    /// Per pool.
    pub(crate) intra_node_bytes_mean: Mean,
    /// Per pool.
    pub(crate) cross_node_bytes_mean: Mean,
    /// Per pool, of those.
    pub(crate) cross_pod_bytes_mean: Mean,
    /// Per pool.
    pub(crate) forward_bytes_mean: Mean,
    /// Per pool.
    pub(crate) busiest_port_bytes_mean: Mean,
    /// Most that a worker of a pool sends.
    pub(crate) max_send_bytes_mean: Mean,
    /// Most that a worker of a pool receives.
    pub(crate) max_recv_bytes_mean: Mean,
    /// Most that a worker of a pool stages.
    pub(crate) max_staged_bytes_mean: Mean,
    /// Most that any worker stages.
    pub(crate) max_staged_bytes_max: u64,
    /// Time of the busiest direction of any worker's port, per pool.
    pub(crate) busiest_port_us: Spread,
    /// Per window.
    pub(crate) vrsp_ns_median: Times,
    /// Per pool.
    pub(crate) plan_ns_median: Times,
}

impl Summary {
    /// Adds a window and all its pools.
    pub(crate) fn add(&mut self, inter: &Inter, pools: &[PoolCase]) {
        self.inter_bound = match self.windows {
            0 => inter.bound.clone(),
            _ if self.inter_bound == inter.bound => inter.bound.clone(),
            _ => "several reasons".to_owned(),
        };
        self.windows += 1;
        self.pools += pools.len();
        self.inter_arrival_excess.add(inter.arrival_excess);
        self.inter_excess.add(inter.excess);
        self.inter_bound_excess.add(inter.bound_excess);
        self.inter_gap.add(inter.gap);
        let [ordered, paper] = match inter.ga_excess {
            Some([ordered, paper]) => [Some(ordered), Some(paper)],
            None => [None, None],
        };
        Spread::add_some(&mut self.inter_ga_excess, ordered);
        Spread::add_some(&mut self.inter_ga_paper_excess, paper);
        self.merged_windows += u64::from(inter.merged.is_some());
        self.merged.extend(inter.merged.clone());
        self.vrsp_ns_median.add(inter.vrsp_ns);
        let worst = |pool: &PoolCase| (1.0 + pool.pool_excess) * (1.0 + pool.intra_excess) - 1.0;
        let worst = pools.iter().map(worst).fold(f64::NEG_INFINITY, f64::max);
        if !pools.is_empty() {
            self.worst_excess.add(worst);
        }
        for pool in pools {
            self.add_pool(pool);
        }
    }

    fn add_pool(&mut self, pool: &PoolCase) {
        self.home_excess.add(pool.home_excess);
        self.intra_excess.add(pool.intra_excess);
        self.tile_bound_excess.add(pool.tile_bound_excess);
        Spread::add_some(&mut self.home_time_excess, pool.home_time_excess);
        Spread::add_some(&mut self.time_excess, pool.time_excess);
        self.tiles_mean.add(pool.tiles as u64);
        self.qo_bytes_mean.add(pool.qo_bytes);
        self.kv_bytes_mean.add(pool.kv_bytes);
        self.moved_bytes_mean.add(pool.moved_bytes);
        self.worker_moved_bytes_mean
            .add_sum(pool.moved_bytes.into(), pool.workers as u64);
        self.moved_bytes_bound_mean.add(pool.moved_bytes_bound);
        self.intra_node_bytes_mean
            .add(pool.moved_bytes - pool.cross_node_bytes);
        self.cross_node_bytes_mean.add(pool.cross_node_bytes);
        self.cross_pod_bytes_mean.add(pool.cross_pod_bytes);
        self.forward_bytes_mean.add(pool.forward_bytes);
        self.busiest_port_bytes_mean.add(pool.busiest_port_bytes);
        self.max_send_bytes_mean.add(pool.max_send_bytes);
        self.max_recv_bytes_mean.add(pool.max_recv_bytes);
        self.max_staged_bytes_mean.add(pool.max_staged_bytes);
        self.max_staged_bytes_max = self.max_staged_bytes_max.max(pool.max_staged_bytes);
        self.busiest_port_us.add(pool.busiest_port_ns as f64 / 1e3);
        if let Some(plan_ns) = pool.plan_ns {
            self.plan_ns_median.add(plan_ns);
        }
    }

    /// What this one's pools move and hold their busiest port for, over what `other`'s do.
    pub(super) fn ratios(&self, other: &Self) -> [(&'static str, f64); 3] {
        let port = |summary: &Self| summary.busiest_port_us.mean();
        [
            (
                "moved_bytes_ratio",
                self.moved_bytes_mean.ratio(&other.moved_bytes_mean),
            ),
            (
                "cross_node_bytes_ratio",
                self.cross_node_bytes_mean
                    .ratio(&other.cross_node_bytes_mean),
            ),
            (
                "busiest_port_ratio",
                match port(other) {
                    0.0 => 1.0,
                    time => port(self) / time,
                },
            ),
        ]
    }

    /// The numbers side by side: of a spread its `_mean` and `_max`. Lists are left out.
    pub(super) fn flat(&self) -> Map<String, Value> {
        let mut flat = Map::new();
        let value = serde_json::to_value(self).expect("numbers and text");
        for (name, value) in value.as_object().into_iter().flatten() {
            match value {
                Value::Object(spread) => {
                    for (of, value) in spread {
                        flat.insert(format!("{name}_{of}"), value.clone());
                    }
                }
                Value::Array(_) => {}
                value => {
                    flat.insert(name.clone(), value.clone());
                }
            }
        }
        flat
    }
}
