//! What a backend provides: memory and queues, messages, attention.
//!
//! The schedule is written once, in [`crate::executor`], over these traits. Work is *enqueued*: a
//! call may return before it is done, and order between queues is made by events alone. A backend
//! without queues (the CPU) does the work in the call.

pub mod cpu;

use std::time::Duration;

use libra_sched::{PlanId, WorkerId};

use crate::error::Failure;
use crate::program::{LocalCopy, Part, RankProgram, Tensor};

/// What a queue is for; a backend may map roles to priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Attention.
    Compute,
    /// Packing, messages, unpacking.
    Exchange,
}

/// Memory, ordered queues and events of one worker.
pub trait Device {
    /// Elements in device memory; freed on drop.
    type Buffer;
    /// Work in order.
    type Queue;
    /// A point in a queue.
    type Event;

    /// A new queue.
    ///
    /// # Errors
    /// If the device cannot make one.
    fn queue(&self, role: Role) -> Result<Self::Queue, Failure>;

    /// The point after everything enqueued on `queue` so far.
    ///
    /// # Errors
    /// If the device failed.
    fn record(&self, queue: &Self::Queue) -> Result<Self::Event, Failure>;

    /// What is enqueued on `queue` from now on runs after `event`.
    ///
    /// # Errors
    /// If the device failed.
    fn order_after(&self, queue: &Self::Queue, event: &Self::Event) -> Result<(), Failure>;

    /// Blocks until `queue` is idle.
    ///
    /// # Errors
    /// If the device or work on the queue failed.
    fn synchronize(&self, queue: &Self::Queue) -> Result<(), Failure>;

    /// `elements` zeros, ready for work enqueued later on `queue`.
    ///
    /// # Errors
    /// If memory is short.
    fn zeros(&self, queue: &Self::Queue, elements: usize) -> Result<Self::Buffer, Failure>;

    /// Number of elements of `buffer`.
    fn len(&self, buffer: &Self::Buffer) -> usize;

    /// Packs `parts` back to back into a new buffer of `elements`.
    ///
    /// # Errors
    /// If memory is short or the device failed.
    fn gather(
        &self,
        queue: &Self::Queue,
        program: &RankProgram,
        tensors: &Workspace<Self::Buffer>,
        parts: &[Part],
        elements: usize,
    ) -> Result<Self::Buffer, Failure>;

    /// Unpacks `message` into `parts`, adding where the tensor accumulates.
    ///
    /// # Errors
    /// If the device failed.
    fn scatter(
        &self,
        queue: &Self::Queue,
        program: &RankProgram,
        tensors: &mut Workspace<Self::Buffer>,
        parts: &[Part],
        message: Self::Buffer,
    ) -> Result<(), Failure>;

    /// Zeros `parts`.
    ///
    /// # Errors
    /// If the device failed.
    fn clear(
        &self,
        queue: &Self::Queue,
        program: &RankProgram,
        tensors: &mut Workspace<Self::Buffer>,
        parts: &[Part],
    ) -> Result<(), Failure>;

    /// Copies (or adds) within the worker, in order.
    ///
    /// # Errors
    /// If the device failed.
    fn copy(
        &self,
        queue: &Self::Queue,
        program: &RankProgram,
        tensors: &mut Workspace<Self::Buffer>,
        copies: &[LocalCopy],
    ) -> Result<(), Failure>;

    /// Nanoseconds this worker has been computing, on a clock that stands still while it waits for
    /// others; differences are meaningful.
    fn busy_ns(&self) -> u64;
}

/// Names a message: both sides compute the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// Passes this executor has begun: layer after layer, forward and backward.
    pub pass: u64,
    /// The leg's number.
    pub leg: u32,
    /// Chunk, or exchange.
    pub chunk: u32,
}

/// Messages between the workers of a pool.
pub trait Transport<D: Device> {
    /// A leg that was started and not yet waited for.
    type Ticket;

    /// Compares plan ids with every peer before anything else is sent.
    ///
    /// # Errors
    /// [`Failure::PlanMismatch`], or a peer that does not answer before `deadline`.
    fn handshake(&mut self, id: PlanId, deadline: Duration) -> Result<(), Failure>;

    /// Begins to send `sends` and to receive `receives` (peer, elements), after the work enqueued
    /// on `queue`; does not wait for a peer.
    ///
    /// # Errors
    /// If a link is closed.
    fn start(
        &mut self,
        queue: &D::Queue,
        tag: Tag,
        sends: Vec<(WorkerId, D::Buffer)>,
        receives: Vec<(WorkerId, usize)>,
    ) -> Result<Self::Ticket, Failure>;

    /// Waits until everything of `ticket` has arrived, or until work enqueued later on `queue`
    /// will see it; returns the messages in the order of `receives`.
    ///
    /// # Errors
    /// [`Failure::Stalled`] past `deadline`, or what the link reports.
    fn wait(
        &mut self,
        queue: &D::Queue,
        ticket: Self::Ticket,
        deadline: Duration,
    ) -> Result<Vec<(WorkerId, D::Buffer)>, Failure>;

    /// Tells every peer that this worker gives up; never fails and never waits.
    fn abort(&mut self, reason: &str);
}

/// Attention over a program's entries.
pub trait Kernel<D: Device> {
    /// O and log-sum-exp of compute step `step`; entries that continue are merged into what is there.
    ///
    /// # Errors
    /// If the device failed.
    fn forward(
        &self,
        device: &D,
        queue: &D::Queue,
        program: &RankProgram,
        tensors: &mut Workspace<D::Buffer>,
        step: u32,
    ) -> Result<(), Failure>;

    /// δ = rowsum(dO ∘ O) of all own rows: what a refetch sends along.
    ///
    /// # Errors
    /// If the device failed.
    fn delta(
        &self,
        device: &D,
        queue: &D::Queue,
        program: &RankProgram,
        tensors: &mut Workspace<D::Buffer>,
    ) -> Result<(), Failure>;

    /// dQ of compute step `step`, and its share of dK and dV, added to what is there.
    ///
    /// # Errors
    /// If the device failed.
    fn backward(
        &self,
        device: &D,
        queue: &D::Queue,
        program: &RankProgram,
        tensors: &mut Workspace<D::Buffer>,
        step: u32,
    ) -> Result<(), Failure>;
}

/// A worker's tensors: own ones that the caller binds, staged ones that the executor makes.
#[derive(Debug)]
pub struct Workspace<Buffer> {
    buffers: [Option<Buffer>; Tensor::ALL.len()],
}

impl<Buffer> Default for Workspace<Buffer> {
    fn default() -> Self {
        Self {
            buffers: Default::default(),
        }
    }
}

impl<Buffer> Workspace<Buffer> {
    /// The buffer of `tensor`.
    ///
    /// # Panics
    /// If it was never bound or made: the executor binds before it runs.
    #[must_use]
    pub fn get(&self, tensor: Tensor) -> &Buffer {
        self.buffers[tensor as usize]
            .as_ref()
            .expect("tensors are bound before a step reads them")
    }

    /// The buffer of `tensor`, to write.
    ///
    /// # Panics
    /// As [`Workspace::get`].
    pub fn get_mut(&mut self, tensor: Tensor) -> &mut Buffer {
        self.buffers[tensor as usize]
            .as_mut()
            .expect("tensors are bound before a step writes them")
    }

    /// Whether `tensor` is there.
    #[must_use]
    pub fn has(&self, tensor: Tensor) -> bool {
        self.buffers[tensor as usize].is_some()
    }

    /// Puts a buffer in place, dropping the one before.
    pub fn bind(&mut self, tensor: Tensor, buffer: Buffer) {
        self.buffers[tensor as usize] = Some(buffer);
    }

    /// Takes a buffer out.
    pub fn take(&mut self, tensor: Tensor) -> Option<Buffer> {
        self.buffers[tensor as usize].take()
    }
}
