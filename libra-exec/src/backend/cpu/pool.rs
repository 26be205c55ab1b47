//! A whole pool in one process: tensors cut to workers, one thread each, results put together.

use std::time::Duration;

use libra_sched::{BackwardMode, HeadSplit, PoolPlan, WorkerId, reverse};
use num_traits::Float;

use super::{ChannelTransport, CpuBuffer, CpuDevice, mesh};
use crate::backend::{Kernel, Transport, Workspace};
use crate::error::{ExecError, Failure};
use crate::executor::{Executor, Trace};
use crate::lower::lower_all;
use crate::program::{RankProgram, Tensor};
use crate::steps::StepPrograms;
use crate::tensors::{PoolOutputs, PoolTensors, Share};

/// A plan, or programs of steps, bound to worker threads.
#[derive(Debug)]
pub struct CpuPool<K> {
    kernel: K,
    deadline: Duration,
    programs: Vec<RankProgram>,
    /// What each worker holds.
    shares: Vec<Share>,
    heads: HeadSplit,
    slots: usize,
    seq_tokens: usize,
}

/// Longest wait unless another is asked for.
const DEADLINE: Duration = Duration::from_secs(60);

/// Results of a pool, and how it went.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolRun<T> {
    /// O, dQ, dK, dV of every slot.
    pub outputs: PoolOutputs<T>,
    /// One a worker.
    pub workers: Vec<WorkerRun>,
}

/// How one worker went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerRun {
    /// Forward.
    pub forward: Trace,
    /// Backward. The second forward of [`BackwardMode::Recompute`] is not part of it.
    pub backward: Trace,
    /// Elements staged between forward and backward.
    pub kept_elements: usize,
    /// Most elements alive at once, messages on the way included.
    pub peak_elements: usize,
    /// Elements alive when all workers are done, beyond the results.
    pub left_elements: usize,
}

impl<K> CpuPool<K> {
    /// Lowers `plan` for every worker, with a deadline of a minute a wait.
    #[must_use]
    pub fn new(plan: &PoolPlan, mode: BackwardMode, kernel: K) -> Self {
        let programs = lower_all(plan, &reverse::derive(plan, mode));
        let shares = programs.iter().map(|p| Share::of(plan, p.worker)).collect();
        Self {
            kernel,
            deadline: DEADLINE,
            programs,
            shares,
            heads: plan.heads.clone(),
            slots: plan.layout.slots() as usize,
            seq_tokens: plan.layout.seq_tokens() as usize,
        }
    }

    /// The programs of a method that is no plan, with a deadline of a minute a wait.
    #[must_use]
    pub fn of_steps(steps: StepPrograms, kernel: K) -> Self {
        let (lengths, heads, programs, shares) = steps.into_parts();
        Self {
            kernel,
            deadline: DEADLINE,
            programs,
            shares,
            heads,
            slots: lengths.sequences(),
            seq_tokens: lengths.seq_tokens() as usize,
        }
    }

    /// Bounds every single wait for a peer.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Programs, by worker.
    #[must_use]
    pub fn programs(&self) -> &[RankProgram] {
        &self.programs
    }

    /// Runs one layer forward and backward.
    ///
    /// # Errors
    /// Inputs of another shape, or the first failure of a worker.
    pub fn run<T>(&self, inputs: &PoolTensors<T>) -> Result<PoolRun<T>, ExecError>
    where
        T: Float + Send + Sync,
        K: Kernel<CpuDevice<T>> + Copy + Sync,
    {
        let ends: Vec<ChannelTransport<T>> = mesh(self.programs.len() as u32);
        self.run_over(inputs, ends)
    }

    /// As [`CpuPool::run`], over transports of the caller's: one a worker, in order.
    ///
    /// # Errors
    /// As [`CpuPool::run`], or another number of transports than workers.
    pub fn run_over<T, C>(
        &self,
        inputs: &PoolTensors<T>,
        transports: Vec<C>,
    ) -> Result<PoolRun<T>, ExecError>
    where
        T: Float + Send + Sync,
        K: Kernel<CpuDevice<T>> + Copy + Sync,
        C: Transport<CpuDevice<T>> + Send,
    {
        self.check(inputs, transports.len())?;
        let results: Vec<Result<Finished<T>, ExecError>> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .programs
                .iter()
                .zip(transports)
                .map(|(program, transport)| {
                    scope.spawn(move || self.run_worker(program, transport, inputs))
                })
                .collect();
            let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined
                .map(|r| r.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut run = PoolRun {
            outputs: self.empty_outputs(),
            workers: Vec::new(),
        };
        for (program, mut result) in self.programs.iter().zip(first_cause(results)?) {
            self.collect(program, &result, &mut run.outputs);
            result.results = Default::default();
            result.run.left_elements = result.device.live_elements();
            run.workers.push(result.run);
        }
        Ok(run)
    }

    fn run_worker<T, C>(
        &self,
        program: &RankProgram,
        transport: C,
        inputs: &PoolTensors<T>,
    ) -> Result<Finished<T>, ExecError>
    where
        T: Float,
        K: Kernel<CpuDevice<T>> + Copy,
        C: Transport<CpuDevice<T>>,
    {
        let device = CpuDevice::<T>::default();
        let mut tensors = Workspace::default();
        for (tensor, slots) in [
            (Tensor::Q, &inputs.q),
            (Tensor::K, &inputs.k),
            (Tensor::V, &inputs.v),
            (Tensor::DO, &inputs.d_o),
        ] {
            tensors.bind(tensor, device.buffer(self.own_part(program, tensor, slots)));
        }
        let mut executor = Executor::bind(
            program.clone(),
            device,
            transport,
            self.kernel,
            self.deadline,
        )?;
        let mut run = WorkerRun {
            forward: executor.forward(&mut tensors)?,
            ..WorkerRun::default()
        };
        run.kept_elements = staged_elements(program, &tensors);
        run.backward = executor.backward(&mut tensors)?;
        let device = executor.device().clone();
        run.peak_elements = device.peak_elements();
        let results = [Tensor::O, Tensor::DQ, Tensor::DK, Tensor::DV];
        let results = results.map(|tensor| tensors.take(tensor));
        Ok(Finished {
            results,
            run,
            device,
        })
    }

    /// The worker's rows and heads of a pool tensor.
    fn own_part<T: Float>(
        &self,
        program: &RankProgram,
        tensor: Tensor,
        slots: &[Vec<T>],
    ) -> Vec<T> {
        let mut own = Vec::with_capacity(program.shape(tensor).elements());
        for (slot, range) in self.own_ranges(program, tensor) {
            own.extend_from_slice(&slots[slot][range]);
        }
        own
    }

    /// Slots, and elements of their tensor that make up the worker's own, in order.
    fn own_ranges(
        &self,
        program: &RankProgram,
        tensor: Tensor,
    ) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
        let share = &self.shares[program.worker.index()];
        let shape = program.shape(tensor);
        let (heads, first) = match tensor {
            Tensor::K | Tensor::V | Tensor::DK | Tensor::DV => {
                (self.heads.kv_heads(), share.kv_heads.start)
            }
            _ => (self.heads.q_heads(), share.q_heads.start),
        };
        let (row, offset) = (heads as usize * shape.width, first as usize * shape.width);
        let elements = move |token: u32| {
            let start = token as usize * row + offset;
            start..start + shape.stride()
        };
        let tokens = share.tokens.iter().cloned();
        tokens.flat_map(move |(slot, tokens)| tokens.map(move |token| (slot, elements(token))))
    }

    fn collect<T: Float>(
        &self,
        program: &RankProgram,
        finished: &Finished<T>,
        outputs: &mut PoolOutputs<T>,
    ) {
        let [o, d_q, d_k, d_v] = &finished.results;
        for (tensor, from, to) in [
            (Tensor::O, o, &mut outputs.o),
            (Tensor::DQ, d_q, &mut outputs.d_q),
            (Tensor::DK, d_k, &mut outputs.d_k),
            (Tensor::DV, d_v, &mut outputs.d_v),
        ] {
            let mut rest = from.as_ref().map_or(&[][..], CpuBuffer::as_slice);
            for (slot, range) in self.own_ranges(program, tensor) {
                let (row, after) = rest.split_at(range.len());
                to[slot][range].copy_from_slice(row);
                rest = after;
            }
        }
    }

    fn empty_outputs<T: Float>(&self) -> PoolOutputs<T> {
        let heads = &self.heads;
        let zeros = |heads: u32, width: u32| {
            let elements = self.seq_tokens * (heads * width) as usize;
            vec![vec![T::zero(); elements]; self.slots]
        };
        PoolOutputs {
            o: zeros(heads.q_heads(), heads.dim_v()),
            d_q: zeros(heads.q_heads(), heads.dim_qk()),
            d_k: zeros(heads.kv_heads(), heads.dim_qk()),
            d_v: zeros(heads.kv_heads(), heads.dim_v()),
        }
    }

    /// Inputs must have the pool's shape, and there must be one transport a worker.
    fn check<T>(&self, inputs: &PoolTensors<T>, transports: usize) -> Result<(), ExecError> {
        let (heads, tokens) = (&self.heads, self.seq_tokens);
        let refuse = |failure: Failure| Err(failure.at(WorkerId(0), None));
        if transports != self.programs.len() {
            let workers = self.programs.len();
            let text = format!("{transports} transports for {workers} workers");
            return refuse(Failure::Request(text));
        }
        for (tensor, slots, heads, width) in [
            (Tensor::Q, &inputs.q, heads.q_heads(), heads.dim_qk()),
            (Tensor::K, &inputs.k, heads.kv_heads(), heads.dim_qk()),
            (Tensor::V, &inputs.v, heads.kv_heads(), heads.dim_v()),
            (Tensor::DO, &inputs.d_o, heads.q_heads(), heads.dim_v()),
        ] {
            let expected = tokens * heads as usize * width as usize;
            if slots.len() != self.slots {
                let (found, count) = (slots.len(), self.slots);
                let text = format!("{} has {found} slots, not {count}", tensor.name());
                return refuse(Failure::Request(text));
            }
            if let Some(found) = slots.iter().map(Vec::len).find(|&len| len != expected) {
                let shape = format!("{tokens} x {heads} x {width}");
                let tensor = tensor.name();
                return refuse(Failure::TensorSize {
                    tensor,
                    found,
                    expected,
                    shape,
                });
            }
        }
        Ok(())
    }
}

struct Finished<T> {
    /// O, dQ, dK, dV.
    results: [Option<CpuBuffer<T>>; 4],
    run: WorkerRun,
    device: CpuDevice<T>,
}

/// Elements of the staged tensors that are there.
fn staged_elements<B>(program: &RankProgram, tensors: &Workspace<B>) -> usize {
    Tensor::ALL[Tensor::StagedQ as usize..]
        .iter()
        .filter(|&&tensor| tensors.has(tensor))
        .map(|&tensor| program.shape(tensor).elements())
        .sum()
}

/// All results, or the error that came first: one that is not another worker's abort.
fn first_cause<T>(
    results: Vec<Result<Finished<T>, ExecError>>,
) -> Result<Vec<Finished<T>>, ExecError> {
    let mut errors: Vec<ExecError> = Vec::new();
    let mut finished = Vec::with_capacity(results.len());
    for result in results {
        match result {
            Ok(worker) => finished.push(worker),
            Err(error) => errors.push(error),
        }
    }
    let echo =
        |error: &ExecError| matches!(error.kind, Failure::Aborted { .. } | Failure::Closed { .. });
    match errors
        .iter()
        .position(|e| !echo(e))
        .or((!errors.is_empty()).then_some(0))
    {
        Some(cause) => Err(errors.swap_remove(cause)),
        None => Ok(finished),
    }
}
