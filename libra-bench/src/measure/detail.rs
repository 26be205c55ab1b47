//! One pool worker by worker: what reports draw. Its size is bounded, whatever the pool's.

use libra_sched::audit::Audit;
use libra_sched::{PoolPlan, WorkerId};
use serde::Serialize;

use super::pool_case::PoolCase;

/// Most bars of loads.
const BARS_MAX: usize = 256;
/// Most rows and columns of traffic.
const ROWS_MAX: usize = 64;

/// Loads and traffic of a pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Detail {
    /// Which window of the corpus.
    pub(crate) window: u64,
    /// Which pool of it.
    pub(crate) pool: u32,
    /// Its workers.
    pub(crate) workers: usize,
    /// Mean work of a worker.
    pub(crate) load_mean: f64,
    /// Consecutive workers that one load stands for: the heaviest of them.
    pub(crate) workers_per_load: usize,
    /// Pairs × query heads, were every tile at home.
    pub(crate) home_loads: Vec<u64>,
    /// As placed.
    pub(crate) loads: Vec<u64>,
    /// Consecutive workers of one row and column of the traffic.
    pub(crate) workers_per_row: usize,
    /// Bytes forward: from the workers of a row to those of a column.
    pub(crate) traffic_bytes: Vec<Vec<u64>>,
}

impl Detail {
    /// The pool of `case`, planned as `plan`, which `audit` adds up.
    pub(crate) fn new(case: &PoolCase, plan: &PoolPlan, audit: &Audit) -> Self {
        let workers = audit.loads.len();
        let workers_per_load = workers.div_ceil(BARS_MAX).max(1);
        let heaviest = |loads: &[u64]| {
            let of = |loads: &[u64]| loads.iter().copied().max().unwrap_or(0);
            loads.chunks(workers_per_load).map(of).collect()
        };
        let workers_per_row = workers.div_ceil(ROWS_MAX).max(1);
        let rows = workers.div_ceil(workers_per_row);
        let mut traffic = vec![vec![0; rows]; rows];
        let mut add = |src: WorkerId, dst: WorkerId, bytes: u64| {
            traffic[src.index() / workers_per_row][dst.index() / workers_per_row] += bytes;
        };
        for m in &plan.exchange.q {
            add(m.src, m.dst, plan.q_bytes(m.tile.index()));
        }
        for m in plan.exchange.kv.iter().chain(&plan.exchange.forward) {
            add(m.src, m.dst, plan.kv_bytes(m));
        }
        for m in &plan.exchange.o {
            add(m.src, m.dst, plan.o_bytes(m.tile.index()));
        }
        Self {
            window: case.window,
            pool: case.pool,
            workers,
            load_mean: audit.work_total as f64 / workers.max(1) as f64,
            workers_per_load,
            home_loads: heaviest(&audit.home_loads),
            loads: heaviest(&audit.loads),
            workers_per_row,
            traffic_bytes: traffic,
        }
    }
}
