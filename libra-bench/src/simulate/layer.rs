//! One layer of one pool on a cluster, ready to be simulated: what the benchmark of the simulator runs.

use libra_exec::lower_all;
use libra_sched::{BackwardMode, PoolPlan, reverse};

use super::cluster::Cluster;
use super::engine;
use super::fabric::Fabric;
use super::group::Setting;
use super::kernel::Direction;
use super::program::{Program, Step};

/// Attention of a pool's workers, forward, with the ports that they use.
pub struct Layer {
    program: Program,
    fabric: Fabric,
    compute_ns: Vec<Vec<u64>>,
}

impl Layer {
    /// Of `plan` on the first GPUs of a built-in cluster; `None` where none has that name.
    #[must_use]
    pub fn forward(plan: &PoolPlan, cluster: &str) -> Option<Self> {
        let cluster = Cluster::read(cluster).ok()?;
        let programs = lower_all(plan, &reverse::derive(plan, BackwardMode::Stash));
        let program = Program::forward(&programs);
        let setting = Setting {
            cluster: &cluster,
            cp: plan.layout.cp(),
            head_width: plan.heads.dim_qk() + plan.heads.dim_v(),
            backward: BackwardMode::Stash,
        };
        let factors = vec![1.0; program.workers.len()];
        Some(Self {
            fabric: Fabric::new(&cluster, 0, program.workers.len() as u32),
            compute_ns: setting.compute_ns(&program, &factors, Direction::Forward),
            program,
        })
    }

    /// Messages of all workers.
    #[must_use]
    pub fn messages(&self) -> usize {
        let of_worker = |worker: &super::program::Worker| -> usize {
            let sends = |step: &Step| match step {
                Step::Start(exchange) => worker.exchanges[*exchange as usize].sends.len(),
                Step::Wait(_) | Step::Compute(_) => 0,
            };
            worker.steps.iter().map(sends).sum()
        };
        self.program.workers.iter().map(of_worker).sum()
    }

    /// Simulates it: nanoseconds until the last worker is done.
    #[must_use]
    pub fn makespan_ns(&self) -> u64 {
        let times = engine::run(&self.program, &self.fabric, &self.compute_ns, None);
        times.iter().map(|times| times.finish_ns).max().unwrap_or(0)
    }
}
