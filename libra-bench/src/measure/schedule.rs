//! A schedule on worker threads: group after group, results in the window's place.

use libra_exec::backend::Kernel;
use libra_exec::cpu::{CpuDevice, CpuPool, WorkerRun};
use libra_exec::{ExecError, PoolOutputs, PoolTensors, Trace};
use num_traits::{Float, Zero};

use super::execute::ExecuteOptions;
use super::pool::Pool;
use super::samples::Samples;
use crate::baseline::{Group, Schedule, Work};

/// A schedule bound to inputs.
pub(super) struct Running<T, K> {
    groups: Vec<Bound<T, K>>,
    /// Results before anything is computed.
    empty: PoolOutputs<T>,
    /// Work of every worker of the window: pairs × query heads.
    pub(super) loads: Vec<u64>,
}

/// A group bound to its part of the inputs.
struct Bound<T, K> {
    pool: CpuPool<K>,
    samples: Samples,
    inputs: PoolTensors<T>,
    /// Its first worker, counted in the window.
    first: usize,
}

impl<T, K> Running<T, K>
where
    T: Float + Send + Sync,
    K: Kernel<CpuDevice<T>> + Copy + Sync,
{
    pub(super) fn new(
        pool: &Pool,
        schedule: &Schedule,
        options: &ExecuteOptions,
        kernel: K,
        inputs: &PoolTensors<T>,
    ) -> Self {
        let mut loads = vec![0; pool.home.layout.workers() as usize];
        let bind = |group: &Group| {
            let first = (group.replicas.start * pool.cp) as usize;
            let window = &pool.home.lengths;
            let (own, samples, cpu) = match &group.work {
                Work::Plan(plan) => {
                    let samples = Samples::new(window, &plan.lengths, &group.samples);
                    let cpu = CpuPool::new(plan, options.backward, kernel);
                    (plan.loads(), samples, cpu)
                }
                Work::Steps(steps) => {
                    let steps = steps.lower();
                    let samples = Samples::new(window, steps.lengths(), &group.samples);
                    (steps.loads(), samples, CpuPool::of_steps(steps, kernel))
                }
            };
            for (load, more) in loads[first..].iter_mut().zip(own) {
                *load += more;
            }
            Bound {
                pool: cpu.with_deadline(options.timeout),
                inputs: samples.inputs(inputs),
                samples,
                first,
            }
        };
        Self {
            groups: schedule.groups.iter().map(bind).collect(),
            empty: PoolOutputs {
                o: zeros_like(&inputs.d_o),
                d_q: zeros_like(&inputs.q),
                d_k: zeros_like(&inputs.k),
                d_v: zeros_like(&inputs.v),
            },
            loads,
        }
    }

    /// One layer forward and backward. Groups side by side share no worker, so one after the other is as good as at
    /// once.
    pub(super) fn once(&self) -> Result<(PoolOutputs<T>, Vec<WorkerRun>), ExecError> {
        let mut outputs = self.empty.clone();
        let mut workers = vec![WorkerRun::default(); self.loads.len()];
        for group in &self.groups {
            let run = group.pool.run(&group.inputs)?;
            group.samples.put(&run.outputs, &mut outputs);
            for (worker, more) in workers[group.first..].iter_mut().zip(run.workers) {
                follow(worker, more);
            }
        }
        Ok((outputs, workers))
    }
}

fn zeros_like<T: Zero + Clone>(slots: &[Vec<T>]) -> Vec<Vec<T>> {
    slots
        .iter()
        .map(|slot| vec![T::zero(); slot.len()])
        .collect()
}

/// What a worker does in one group after what it did in those before.
fn follow(worker: &mut WorkerRun, more: WorkerRun) {
    let after = |before: &mut Trace, more: Trace| {
        let end_ns = before.end_ns();
        before.steps.extend(more.steps.into_iter().map(|mut step| {
            step.begin_ns += end_ns;
            step
        }));
    };
    after(&mut worker.forward, more.forward);
    after(&mut worker.backward, more.backward);
    worker.kept_elements = worker.kept_elements.max(more.kept_elements);
    worker.peak_elements = worker.peak_elements.max(more.peak_elements);
    worker.left_elements += more.left_elements;
}
