//! Runs a [`RankProgram`] on a backend: the schedule, written once.
//!
//! Packing and messages go to one queue, attention to another; an event orders the two wherever
//! one reads what the other wrote. On any failure the worker tells its peers and returns an error
//! that names the step.

use std::time::{Duration, Instant};

use libra_sched::{BackwardMode, PlanId, WorkerId};

use crate::backend::{Device, Kernel, Role, Tag, Transport, Workspace};
use crate::error::{ExecError, Failure};
use crate::program::{Leg, Pass, RankProgram, Step, Tensor};

/// How one step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRecord {
    /// The step.
    pub step: Step,
    /// Nanoseconds since the pass began at this worker.
    pub begin_ns: u64,
    /// Nanoseconds from begin to end of the step.
    pub wall_ns: u64,
    /// Nanoseconds of it that the worker computed.
    pub busy_ns: u64,
    /// Bytes that the step sent (start) or received (wait), as the plan counts them.
    pub bytes: u64,
}

/// How one pass went at one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Steps in order.
    pub steps: Vec<StepRecord>,
}

impl Trace {
    /// Nanoseconds of computing in the compute steps.
    #[must_use]
    pub fn compute_ns(&self) -> u64 {
        self.of(|step| matches!(step, Step::Compute(_)))
            .map(|r| r.busy_ns)
            .sum()
    }

    /// Nanoseconds spent waiting for messages.
    #[must_use]
    pub fn waited_ns(&self) -> u64 {
        self.of(|step| matches!(step, Step::Wait(..)))
            .map(|r| r.wall_ns)
            .sum()
    }

    /// End of the last step, in nanoseconds since the pass began.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.steps.last().map_or(0, |s| s.begin_ns + s.wall_ns)
    }

    /// Bytes sent.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.of(|step| matches!(step, Step::Start(..)))
            .map(|r| r.bytes)
            .sum()
    }

    fn of(&self, which: impl Fn(Step) -> bool) -> impl Iterator<Item = &StepRecord> {
        self.steps.iter().filter(move |record| which(record.step))
    }
}

const FORWARD_STAGING: [Tensor; 5] = [
    Tensor::StagedQ,
    Tensor::StagedK,
    Tensor::StagedV,
    Tensor::StagedO,
    Tensor::StagedLse,
];
const BACKWARD_STAGING: [Tensor; 5] = [
    Tensor::StagedDelta,
    Tensor::StagedDO,
    Tensor::StagedDQ,
    Tensor::StagedDK,
    Tensor::StagedDV,
];

/// One worker of a pool, ready to run layers.
#[derive(Debug)]
pub struct Executor<D: Device, T, K> {
    program: RankProgram,
    device: D,
    transport: T,
    kernel: K,
    compute: D::Queue,
    exchange: D::Queue,
    deadline: Duration,
    passes: u64,
}

impl<D: Device, T: Transport<D>, K: Kernel<D>> Executor<D, T, K> {
    /// Binds `program` to a backend and compares the plan id with every peer.
    ///
    /// `deadline` bounds every single wait for a peer.
    ///
    /// # Errors
    /// Another plan at a peer, a peer that does not answer, or a device without queues.
    pub fn bind(
        program: RankProgram,
        device: D,
        mut transport: T,
        kernel: K,
        deadline: Duration,
    ) -> Result<Self, ExecError> {
        let worker = program.worker;
        let queues = || Ok((device.queue(Role::Compute)?, device.queue(Role::Exchange)?));
        let (compute, exchange) = queues().map_err(|failure: Failure| failure.at(worker, None))?;
        if let Err(failure) = transport.handshake(program.plan_id, deadline) {
            transport.abort(&failure.to_string());
            return Err(failure.at(worker, None));
        }
        Ok(Self {
            program,
            device,
            transport,
            kernel,
            compute,
            exchange,
            deadline,
            passes: 0,
        })
    }

    /// The worker.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.program.worker
    }

    /// The plan that runs.
    #[must_use]
    pub fn plan_id(&self) -> PlanId {
        self.program.plan_id
    }

    /// The program that runs.
    #[must_use]
    pub fn program(&self) -> &RankProgram {
        &self.program
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Attention forward: reads Q, K, V of `tensors`, makes O and log-sum-exp.
    ///
    /// Log-sum-exp of a tile computed elsewhere comes home only where backward refetches. What
    /// stays staged until backward is what the program's mode says.
    ///
    /// # Errors
    /// A tensor of another size, or a failure of device, link or peer.
    pub fn forward(&mut self, tensors: &mut Workspace<D::Buffer>) -> Result<Trace, ExecError> {
        self.check(tensors, &[Tensor::Q, Tensor::K, Tensor::V])?;
        let trace = self.run_forward(tensors);
        if self.program.mode != BackwardMode::Stash || trace.is_err() {
            release(tensors, &FORWARD_STAGING);
        }
        trace
    }

    /// Attention backward: reads dO besides what forward read and made, makes dQ, dK, dV.
    ///
    /// # Errors
    /// A tensor of another size or not there, or a failure of device, link or peer.
    pub fn backward(&mut self, tensors: &mut Workspace<D::Buffer>) -> Result<Trace, ExecError> {
        let inputs = [
            Tensor::Q,
            Tensor::K,
            Tensor::V,
            Tensor::O,
            Tensor::Lse,
            Tensor::DO,
        ];
        self.check(tensors, &inputs)?;
        if self.program.mode == BackwardMode::Stash && !tensors.has(Tensor::StagedQ) {
            return Err(self.fail(Failure::MissingState { what: "the stash" }, None));
        }
        let trace = self.run_backward(tensors);
        release(tensors, &FORWARD_STAGING);
        release(tensors, &BACKWARD_STAGING);
        trace
    }

    fn run_forward(&mut self, tensors: &mut Workspace<D::Buffer>) -> Result<Trace, ExecError> {
        let outputs = [Tensor::O, Tensor::Lse];
        self.prepare(tensors, &outputs, &FORWARD_STAGING)?;
        self.run(tensors, Direction::Forward)
    }

    fn run_backward(&mut self, tensors: &mut Workspace<D::Buffer>) -> Result<Trace, ExecError> {
        match self.program.mode {
            BackwardMode::Recompute => drop(self.run_forward(tensors)?),
            BackwardMode::Refetch => {
                self.prepare(tensors, &[Tensor::Delta], &FORWARD_STAGING)?;
                let Self {
                    kernel,
                    device,
                    compute,
                    program,
                    ..
                } = self;
                let made = kernel.delta(device, compute, program, tensors);
                made.map_err(|failure| self.fail(failure, None))?;
            }
            _ => {}
        }
        let gradients = [Tensor::DQ, Tensor::DK, Tensor::DV];
        self.prepare(tensors, &gradients, &BACKWARD_STAGING)?;
        self.run(tensors, Direction::Backward)
    }

    /// Every step of a pass, timed.
    fn run(
        &mut self,
        tensors: &mut Workspace<D::Buffer>,
        direction: Direction,
    ) -> Result<Trace, ExecError> {
        self.passes += 1;
        let begin = Instant::now();
        let since = |from: Instant| u64::try_from(from.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut tickets = Vec::new();
        let mut trace = Trace::default();
        for step in self.pass(direction).steps.clone() {
            let (begin_ns, busy) = (since(begin), self.device.busy_ns());
            let started = Instant::now();
            let bytes = self
                .step(tensors, direction, step, &mut tickets)
                .map_err(|failure| self.fail(failure, Some(step)))?;
            trace.steps.push(StepRecord {
                step,
                begin_ns,
                wall_ns: since(started),
                busy_ns: self.device.busy_ns().saturating_sub(busy),
                bytes,
            });
        }
        let idle = self.device.synchronize(&self.compute);
        let idle = idle.and_then(|()| self.device.synchronize(&self.exchange));
        idle.map_err(|failure| self.fail(failure, None))?;
        Ok(trace)
    }

    fn step(
        &mut self,
        tensors: &mut Workspace<D::Buffer>,
        direction: Direction,
        step: Step,
        tickets: &mut Vec<(Leg, u32, T::Ticket)>,
    ) -> Result<u64, Failure> {
        match step {
            Step::Start(leg, chunk) => {
                let (ticket, bytes) = self.start(tensors, direction, leg, chunk)?;
                tickets.push((leg, chunk, ticket));
                Ok(bytes)
            }
            Step::Wait(leg, chunk) => {
                let at = tickets
                    .iter()
                    .position(|(l, c, _)| (*l, *c) == (leg, chunk))
                    .expect("a pipeline starts every leg before it waits for it");
                let (_, _, ticket) = tickets.swap_remove(at);
                self.wait(tensors, direction, leg, chunk, ticket)
            }
            Step::Compute(chunk) => self.compute(tensors, direction, chunk).map(|()| 0),
        }
    }

    fn start(
        &mut self,
        tensors: &mut Workspace<D::Buffer>,
        direction: Direction,
        leg: Leg,
        chunk: u32,
    ) -> Result<(T::Ticket, u64), Failure> {
        // Results are packed after they are computed; inputs after the caller's work on them.
        let computed = self.device.record(&self.compute)?;
        self.device.order_after(&self.exchange, &computed)?;
        let pass = self.pass(direction);
        let exchange = pass.exchange(leg, chunk);
        let mut sends = Vec::with_capacity(exchange.sends.len());
        for message in &exchange.sends {
            let packed = self.device.gather(
                &self.exchange,
                &self.program,
                tensors,
                &message.parts,
                message.elements,
            )?;
            if message.moves_on {
                let parts = &message.parts;
                self.device
                    .clear(&self.exchange, &self.program, tensors, parts)?;
            }
            sends.push((message.peer, packed));
        }
        let bytes = exchange.sends.iter().map(|m| m.bytes).sum();
        let receives = exchange
            .receives
            .iter()
            .map(|m| (m.peer, m.elements))
            .collect();
        let tag = Tag {
            pass: self.passes,
            leg: leg as u32,
            chunk,
        };
        if leg == Leg::Dispatch {
            let copies = &pass.copies_in[chunk as usize];
            self.device
                .copy(&self.exchange, &self.program, tensors, copies)?;
        }
        let ticket = self.transport.start(&self.exchange, tag, sends, receives)?;
        Ok((ticket, bytes))
    }

    fn wait(
        &mut self,
        tensors: &mut Workspace<D::Buffer>,
        direction: Direction,
        leg: Leg,
        chunk: u32,
        ticket: T::Ticket,
    ) -> Result<u64, Failure> {
        let arrived = self.transport.wait(&self.exchange, ticket, self.deadline)?;
        let receives = &self.pass(direction).exchange(leg, chunk).receives;
        // Ascending peers: sums of gradients have one order.
        for (message, (peer, buffer)) in receives.iter().zip(arrived) {
            let found = self.device.len(&buffer);
            if peer != message.peer || found != message.elements {
                return Err(Failure::MessageSize {
                    peer,
                    found,
                    expected: message.elements,
                });
            }
            let parts = &message.parts;
            self.device
                .scatter(&self.exchange, &self.program, tensors, parts, buffer)?;
        }
        let bytes = receives.iter().map(|m| m.bytes).sum();
        let placed = self.device.record(&self.exchange)?;
        self.device.order_after(&self.compute, &placed)?;
        Ok(bytes)
    }

    fn compute(
        &mut self,
        tensors: &mut Workspace<D::Buffer>,
        direction: Direction,
        chunk: u32,
    ) -> Result<(), Failure> {
        let Self {
            kernel,
            device,
            compute,
            program,
            ..
        } = self;
        match direction {
            Direction::Forward => kernel.forward(device, compute, program, tensors, chunk)?,
            Direction::Backward => kernel.backward(device, compute, program, tensors, chunk)?,
        }
        let copies = &direction.of(program).copies_out[chunk as usize];
        device.copy(compute, program, tensors, copies)
    }

    fn pass(&self, direction: Direction) -> &Pass {
        direction.of(&self.program)
    }

    /// Fresh zeros for what a pass makes.
    fn prepare(
        &mut self,
        tensors: &mut Workspace<D::Buffer>,
        own: &[Tensor],
        staged: &[Tensor],
    ) -> Result<(), ExecError> {
        for &tensor in own.iter().chain(staged) {
            let elements = self.program.shape(tensor).elements();
            let buffer = self.device.zeros(&self.compute, elements);
            tensors.bind(tensor, buffer.map_err(|failure| self.fail(failure, None))?);
        }
        Ok(())
    }

    fn check(
        &mut self,
        tensors: &Workspace<D::Buffer>,
        inputs: &[Tensor],
    ) -> Result<(), ExecError> {
        for &tensor in inputs {
            if !tensors.has(tensor) {
                return Err(self.fail(
                    Failure::MissingState {
                        what: tensor.name(),
                    },
                    None,
                ));
            }
            let shape = self.program.shape(tensor);
            let (found, expected) = (self.device.len(tensors.get(tensor)), shape.elements());
            if found != expected {
                let shape = format!("{} x {} x {}", shape.rows, shape.heads, shape.width);
                let tensor = tensor.name();
                return Err(self.fail(
                    Failure::TensorSize {
                        tensor,
                        found,
                        expected,
                        shape,
                    },
                    None,
                ));
            }
        }
        Ok(())
    }

    /// Tells the peers and names the place.
    fn fail(&mut self, failure: Failure, step: Option<Step>) -> ExecError {
        self.transport.abort(&failure.to_string());
        failure.at(self.program.worker, step)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

impl Direction {
    fn of(self, program: &RankProgram) -> &Pass {
        match self {
            Self::Forward => &program.forward,
            Self::Backward => &program.backward,
        }
    }
}

fn release<Buffer>(tensors: &mut Workspace<Buffer>, staged: &[Tensor]) {
    for &tensor in staged {
        drop(tensors.take(tensor));
    }
}
