//! Workers as threads of one process, messages as channels.
//!
//! The whole executor without a GPU: what tests and `demo` run. Queues do their work in the call,
//! so events order nothing.

mod channel;
mod fast;
mod pool;
mod reference;

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use num_traits::Float;

pub use channel::{ChannelTransport, mesh};
pub use fast::FastKernel;
pub use pool::{CpuPool, PoolRun, WorkerRun};
pub use reference::ReferenceKernel;

use super::{Device, Role, Workspace};
use crate::error::Failure;
use crate::program::{LocalCopy, Part, RankProgram};

/// Main memory of one worker thread, in elements of `T` (f32 or f64). Clones share one count.
#[derive(Clone, Debug)]
pub struct CpuDevice<T> {
    meter: Arc<Meter>,
    elements: PhantomData<T>,
}

/// Elements in buffers that are alive.
#[derive(Debug, Default)]
struct Meter {
    live: AtomicUsize,
    peak: AtomicUsize,
}

impl<T> Default for CpuDevice<T> {
    fn default() -> Self {
        Self {
            meter: Arc::default(),
            elements: PhantomData,
        }
    }
}

impl<T: Float> CpuDevice<T> {
    /// Elements in buffers of this device that are alive, wherever they are.
    #[must_use]
    pub fn live_elements(&self) -> usize {
        self.meter.live.load(Ordering::Relaxed)
    }

    /// Most elements that were alive at once.
    #[must_use]
    pub fn peak_elements(&self) -> usize {
        self.meter.peak.load(Ordering::Relaxed)
    }

    /// A buffer that holds `data`.
    #[must_use]
    pub fn buffer(&self, data: Vec<T>) -> CpuBuffer<T> {
        let live = self.meter.live.fetch_add(data.len(), Ordering::Relaxed) + data.len();
        self.meter.peak.fetch_max(live, Ordering::Relaxed);
        CpuBuffer {
            data,
            meter: Arc::clone(&self.meter),
        }
    }
}

/// Elements of one worker; counted by its device until dropped.
#[derive(Debug)]
pub struct CpuBuffer<T> {
    data: Vec<T>,
    meter: Arc<Meter>,
}

impl<T> CpuBuffer<T> {
    /// The elements.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.data
    }

    /// The elements, to write.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.data
    }
}

impl<T> Drop for CpuBuffer<T> {
    fn drop(&mut self) {
        self.meter
            .live
            .fetch_sub(self.data.len(), Ordering::Relaxed);
    }
}

impl<T: Float> Device for CpuDevice<T> {
    type Buffer = CpuBuffer<T>;
    type Queue = ();
    type Event = ();

    fn queue(&self, _role: Role) -> Result<(), Failure> {
        Ok(())
    }

    fn record(&self, _queue: &()) -> Result<(), Failure> {
        Ok(())
    }

    fn order_after(&self, _queue: &(), _event: &()) -> Result<(), Failure> {
        Ok(())
    }

    fn synchronize(&self, _queue: &()) -> Result<(), Failure> {
        Ok(())
    }

    fn zeros(&self, _queue: &(), elements: usize) -> Result<Self::Buffer, Failure> {
        Ok(self.buffer(vec![T::zero(); elements]))
    }

    fn len(&self, buffer: &Self::Buffer) -> usize {
        buffer.data.len()
    }

    fn gather(
        &self,
        _queue: &(),
        program: &RankProgram,
        tensors: &Workspace<Self::Buffer>,
        parts: &[Part],
        elements: usize,
    ) -> Result<Self::Buffer, Failure> {
        let mut packed = Vec::with_capacity(elements);
        for part in parts {
            let data = tensors.get(part.tensor).as_slice();
            for run in runs(program, part) {
                packed.extend_from_slice(&data[run]);
            }
        }
        Ok(self.buffer(packed))
    }

    fn scatter(
        &self,
        _queue: &(),
        program: &RankProgram,
        tensors: &mut Workspace<Self::Buffer>,
        parts: &[Part],
        message: Self::Buffer,
    ) -> Result<(), Failure> {
        let mut rest = message.as_slice();
        for part in parts {
            let data = tensors.get_mut(part.tensor).as_mut_slice();
            for run in runs(program, part) {
                let (piece, after) = rest.split_at(run.len());
                put(&mut data[run], piece, part.tensor.accumulates());
                rest = after;
            }
        }
        Ok(())
    }

    fn clear(
        &self,
        _queue: &(),
        program: &RankProgram,
        tensors: &mut Workspace<Self::Buffer>,
        parts: &[Part],
    ) -> Result<(), Failure> {
        for part in parts {
            let data = tensors.get_mut(part.tensor).as_mut_slice();
            for run in runs(program, part) {
                data[run].fill(T::zero());
            }
        }
        Ok(())
    }

    fn copy(
        &self,
        _queue: &(),
        program: &RankProgram,
        tensors: &mut Workspace<Self::Buffer>,
        copies: &[LocalCopy],
    ) -> Result<(), Failure> {
        for copy in copies {
            let Some(from) = tensors.take(copy.from.tensor) else {
                return Err(Failure::MissingState {
                    what: copy.from.tensor.name(),
                });
            };
            let data = tensors.get_mut(copy.to.tensor).as_mut_slice();
            for (to_run, from_run) in runs(program, &copy.to).zip(runs(program, &copy.from)) {
                let piece = &from.as_slice()[from_run];
                put(&mut data[to_run], piece, copy.to.tensor.accumulates());
            }
            tensors.bind(copy.from.tensor, from);
        }
        Ok(())
    }

    /// CPU time of the calling thread: other workers on the same core do not count.
    fn busy_ns(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

/// Element ranges of a part, row by row.
fn runs(program: &RankProgram, part: &Part) -> impl Iterator<Item = std::ops::Range<usize>> {
    let shape = program.shape(part.tensor);
    let (stride, head) = (shape.stride(), part.head as usize * shape.width);
    let len = part.heads as usize * shape.width;
    (part.row as usize..(part.row + part.rows) as usize).map(move |row| {
        let start = row * stride + head;
        start..start + len
    })
}

fn put<T: Float>(to: &mut [T], from: &[T], add: bool) {
    if add {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = *to + from;
        }
    } else {
        to.copy_from_slice(from);
    }
}
