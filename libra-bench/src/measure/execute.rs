//! Executes what methods do with a pool on the cpu backend, as often as asked, and checks the results.

use std::time::Duration;

use libra_exec::backend::Kernel;
use libra_exec::cpu::{CpuDevice, FastKernel, ReferenceKernel, WorkerRun};
use libra_exec::{PoolOutputs, PoolTensors};
use libra_sched::{BackwardMode, audit};
use num_traits::Float;
use serde::Serialize;

use super::compare::{Dissent, Yardstick, differing};
use super::pool::Pool;
use super::schedule::Running;
use crate::baseline::Schedule;
use crate::cli::Dtype;
use crate::failure::Failure;
use crate::interrupt;

/// How to execute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExecuteOptions {
    /// Precision and kernel.
    pub(crate) dtype: Dtype,
    /// What stays from forward to backward.
    pub(crate) backward: BackwardMode,
    /// Runs that count.
    pub(crate) runs: u32,
    /// Runs before them.
    pub(crate) warmup: u32,
    /// Longest wait for a peer.
    pub(crate) timeout: Duration,
}

/// One method in numbers: a case of the `run` report. A case with wrong results has no times.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MethodCase {
    /// Its name.
    pub(crate) method: &'static str,
    /// Whether its results are merged of partial ones, which rounds otherwise than one softmax.
    pub(crate) merged: bool,
    /// Where it ran.
    pub(crate) backend: &'static str,
    /// Element type.
    pub(crate) dtype: String,
    /// Workers of the pool.
    pub(crate) workers: usize,
    /// Heaviest worker's work over the mean, less 1.
    pub(crate) work_excess: f64,
    /// Work of the heaviest worker: pairs × query heads.
    pub(crate) work_max: u64,
    /// Computing time of the busiest worker, by run.
    pub(crate) forward_ns: Vec<u64>,
    /// Mean computing time of a worker, by run.
    pub(crate) forward_mean_ns: Vec<u64>,
    /// As `forward_ns`, backward; a second forward is not part of it.
    pub(crate) backward_ns: Vec<u64>,
    /// As `forward_mean_ns`, backward.
    pub(crate) backward_mean_ns: Vec<u64>,
    /// Floating-point operations of the pool's forward over the busiest worker's time, in 10¹² a second.
    pub(crate) forward_tflops: Option<f64>,
    /// Share of the workers' forward wall time in which they wait for messages, a core among them.
    pub(crate) exposed_fraction: Option<f64>,
    /// Bytes sent forward.
    pub(crate) moved_bytes: u64,
    /// Bytes sent backward; a second forward is not part of it.
    pub(crate) backward_moved_bytes: u64,
    /// Largest error against unsharded attention in f64.
    pub(crate) max_abs_error: f64,
    /// That of plain unsharded attention in the same precision.
    pub(crate) reference_abs_error: f64,
    /// Wrong elements of all runs.
    pub(crate) wrong: u64,
    /// Where they are.
    pub(crate) wrong_in: Dissent,
    /// The last run of every worker.
    #[serde(skip)]
    pub(crate) last: Vec<WorkerRun>,
}

/// Inputs and results in f64 by attention without a plan: the same for every precision of one pool.
pub(crate) struct Exact {
    inputs: PoolTensors<f64>,
    outputs: PoolOutputs<f64>,
}

impl Exact {
    /// Of the scaled pool, with inputs from `seed`.
    pub(crate) fn new(pool: &Pool, seed: u64) -> Self {
        let inputs = PoolTensors::random(&pool.home, seed);
        let outputs = pool.reference.attention(&inputs);
        Self { inputs, outputs }
    }
}

/// Runs one method after the other; `step` after each run. What is not begun when the user asks for an end is left out.
pub(crate) fn execute(
    pool: &Pool,
    exact: &Exact,
    options: &ExecuteOptions,
    step: impl Fn(),
) -> Result<Vec<MethodCase>, Failure> {
    let Exact { inputs, outputs } = exact;
    match options.dtype {
        Dtype::F64 => {
            let yardstick = Yardstick::f64(outputs.clone());
            run_methods(pool, options, ReferenceKernel, inputs, &yardstick, step)
        }
        Dtype::F32 => {
            let inputs = inputs.cast::<f32>();
            let plain = pool.reference.attention(&inputs).cast::<f64>();
            let yardstick = Yardstick::f32(outputs.clone(), &plain);
            run_methods(pool, options, FastKernel, &inputs, &yardstick, step)
        }
    }
}

fn run_methods<T, K>(
    pool: &Pool,
    options: &ExecuteOptions,
    kernel: K,
    inputs: &PoolTensors<T>,
    yardstick: &Yardstick,
    step: impl Fn(),
) -> Result<Vec<MethodCase>, Failure>
where
    T: Float + Send + Sync,
    K: Kernel<CpuDevice<T>> + Copy + Sync,
{
    let mut cases = Vec::new();
    for schedule in &pool.schedules {
        let running = Running::new(pool, schedule, options, kernel, inputs);
        let mut case = new_case(
            schedule,
            &running.loads,
            options.dtype,
            yardstick.plain_error,
        );
        let mut first: Option<PoolOutputs<f64>> = None;
        for run in 0..options.warmup.saturating_add(options.runs) {
            if interrupt::requested() {
                break;
            }
            let (outputs, workers) = running.once()?;
            step();
            let outputs = outputs.cast::<f64>();
            match &first {
                None => {
                    case.wrong_in = yardstick.compare(&outputs, schedule.merges());
                    first = Some(outputs);
                }
                Some(first) => case.wrong_in.unsteady += differing(&outputs, first),
            }
            if run >= options.warmup {
                note_run(&mut case, &workers);
                case.last = workers;
            }
        }
        if !case.forward_ns.is_empty() {
            let width = pool.home.heads.dim_qk() + pool.home.heads.dim_v();
            finish(&mut case, running.loads.iter().sum(), width);
            cases.push(case);
        }
    }
    Ok(cases)
}

fn new_case(
    schedule: &Schedule,
    loads: &[u64],
    dtype: Dtype,
    reference_abs_error: f64,
) -> MethodCase {
    let work_max = loads.iter().copied().max().unwrap_or(0);
    MethodCase {
        method: schedule.method.name(),
        merged: schedule.merges(),
        backend: "cpu",
        dtype: dtype.to_string(),
        workers: loads.len(),
        work_excess: audit::excess(work_max, loads.iter().sum(), loads.len()),
        work_max,
        forward_ns: Vec::new(),
        forward_mean_ns: Vec::new(),
        backward_ns: Vec::new(),
        backward_mean_ns: Vec::new(),
        forward_tflops: None,
        exposed_fraction: None,
        moved_bytes: 0,
        backward_moved_bytes: 0,
        max_abs_error: 0.0,
        reference_abs_error,
        wrong: 0,
        wrong_in: Dissent::default(),
        last: Vec::new(),
    }
}

fn note_run(case: &mut MethodCase, workers: &[WorkerRun]) {
    let mut note =
        |busy: Vec<u64>, largest: fn(&mut MethodCase) -> (&mut Vec<u64>, &mut Vec<u64>)| {
            let (max, mean) = largest(case);
            max.push(busy.iter().copied().max().unwrap_or(0));
            mean.push(busy.iter().sum::<u64>() / busy.len().max(1) as u64);
        };
    let forward = workers.iter().map(|worker| worker.forward.compute_ns());
    note(forward.collect(), |case| {
        (&mut case.forward_ns, &mut case.forward_mean_ns)
    });
    let backward = workers.iter().map(|worker| worker.backward.compute_ns());
    note(backward.collect(), |case| {
        (&mut case.backward_ns, &mut case.backward_mean_ns)
    });
    case.moved_bytes = workers
        .iter()
        .map(|worker| worker.forward.sent_bytes())
        .sum();
    case.backward_moved_bytes = workers
        .iter()
        .map(|worker| worker.backward.sent_bytes())
        .sum();
    let waited: u64 = workers
        .iter()
        .map(|worker| worker.forward.waited_ns())
        .sum();
    let ends = workers.iter().map(|worker| worker.forward.end_ns());
    let wall: u64 = ends.sum();
    case.exposed_fraction = (wall > 0).then(|| waited as f64 / wall as f64);
}

/// Speed of what is right, no speed of what is wrong.
fn finish(case: &mut MethodCase, work: u64, head_width: u32) {
    case.wrong = case.wrong_in.wrong();
    case.max_abs_error = case.wrong_in.max_abs_error;
    if case.wrong > 0 {
        for times in [
            &mut case.forward_ns,
            &mut case.forward_mean_ns,
            &mut case.backward_ns,
            &mut case.backward_mean_ns,
        ] {
            times.clear();
        }
        case.forward_tflops = None;
        case.exposed_fraction = None;
        return;
    }
    // A multiplication and an addition for each element of K and of V.
    let operations = work as f64 * f64::from(head_width) * 2.0;
    let busiest = least(&case.forward_ns).unwrap_or(0);
    case.forward_tflops = (busiest > 0).then(|| operations / busiest as f64 / 1e3);
}

/// The least of some times: what disturbs a run only makes it longer.
pub(crate) fn least(times: &[u64]) -> Option<u64> {
    times.iter().copied().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::method::Method;

    #[test]
    fn what_is_wrong_has_no_speed() {
        let schedule = Schedule {
            method: Method::Libra,
            groups: Vec::new(),
        };
        let mut case = new_case(&schedule, &[], Dtype::F64, 0.0);
        case.forward_ns = vec![5];
        case.forward_mean_ns = vec![5];
        finish(&mut case, 0, 0);
        assert_eq!((case.wrong, case.forward_ns.len()), (0, 1));
        case.wrong_in.d_q = 1;
        finish(&mut case, 0, 0);
        assert_eq!((case.wrong, case.forward_ns.len()), (1, 0));
        assert_eq!(case.forward_tflops, None);
    }
}
