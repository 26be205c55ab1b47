//! Programs of methods that no plan describes: queries stay, K and V travel from worker to worker, and each step adds
//! what its keys give.
//!
//! A plan computes a query's whole softmax in one place. Here a compute step covers own queries × the keys that are there,
//! and its result is merged into O and log-sum-exp of the steps before (Milakov and Gimelshein 2018; Dao et al. 2022).
//! Backward the same steps use the finished log-sum-exp: dQ adds up at home, dK and dV beside the keys, from where they
//! travel on or home.
//!
//! [`Steps`] puts such programs together and makes a [`RankProgram`] a worker, which the same executor runs. A pass has
//! numbered exchanges of K and V ([`Leg::Dispatch`](crate::program::Leg::Dispatch)), backward also of their gradients ([`Leg::Return`](crate::program::Leg::Return)); both passes have
//! the same compute steps in the same order.
//!
//! ```
//! use libra_exec::cpu::{CpuPool, ReferenceKernel};
//! use libra_exec::steps::{Piece, Steps, ring};
//! use libra_sched::{ElementBytes, HeadSplit, Mask, PackedLengths, SampleId};
//!
//! // Five tokens of one sample: worker 0 holds three of them.
//! let lengths = PackedLengths::new(5, [[5u32]])?;
//! let piece = |start, end| vec![Piece { sample: SampleId(0), start, end }];
//! let heads = HeadSplit::new(4, 2, 8, 8, 1, 1)?;
//! let held = vec![piece(0, 3), piece(3, 5)];
//! let mut steps = Steps::new(lengths, held, &heads, Mask::Causal, ElementBytes::F64)?;
//! ring(&mut steps, &[0, 1], 0..1);
//! let programs = steps.finish();
//! // One hop of K and V forward: 3 and 2 tokens of 2 KV heads.
//! let sent: Vec<u64> = programs.workers().iter().map(|w| w.forward.sent_bytes()).collect();
//! assert_eq!(sent, [3 * 2 * 16 * 8, 2 * 2 * 16 * 8]);
//! let inputs = programs.random_inputs::<f64>(7);
//! CpuPool::of_steps(programs, ReferenceKernel).run(&inputs)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocks;
mod messages;
mod ring;

use std::ops::Range;

use libra_sched::{
    BackwardMode, ElementBytes, Error, HeadSplit, Mask, PackedLengths, PlanId, SampleId, WorkerId,
};
use xxhash_rust::xxh3::Xxh3Default;

use crate::program::{Computes, Exchange, Pass, RankProgram, Step, Tensor, TensorShape};
use crate::tensors::{PoolTensors, Share};
use messages::Transfer;

pub use messages::Route;
pub use ring::ring;

/// Consecutive tokens of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Piece {
    /// The sample.
    pub sample: SampleId,
    /// First token, counted from the sample's.
    pub start: u32,
    /// One past the last.
    pub end: u32,
}

impl Piece {
    /// Number of tokens.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // A piece has tokens.
    pub const fn len(&self) -> u32 {
        self.end - self.start
    }
}

/// Where K and V, or their gradients, lie at a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In its own tensors.
    Own,
    /// Where an exchange of K and V has put them, until another one of the same buffer arrives.
    Arrived(u32),
}

/// A piece and the row of its first token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Located {
    piece: Piece,
    row: u32,
}

/// Programs in the making.
#[derive(Clone, Debug)]
pub struct Steps {
    lengths: PackedLengths,
    heads: HeadSplit,
    mask: Mask,
    bytes: ElementBytes,
    /// Buffer of every exchange of K and V.
    buffers: Vec<u32>,
    /// Exchanges of gradients.
    returns: u32,
    workers: Vec<Worker>,
}

/// One worker's part.
#[derive(Clone, Debug, Default)]
struct Worker {
    held: Vec<Located>,
    rows: u32,
    /// What exchanges bring, by exchange, with rows counted within their buffer.
    arrivals: Vec<Vec<Located>>,
    keys: Vec<Vec<Transfer>>,
    gradients: Vec<Vec<Transfer>>,
    forward: Vec<Step>,
    backward: Vec<Step>,
    blocks: Vec<Block>,
}

/// What a compute step covers.
#[derive(Clone, Debug)]
struct Block {
    places: Vec<Place>,
    samples: Range<usize>,
}

/// Programs of all workers, and what each of them holds.
#[derive(Clone, Debug)]
pub struct StepPrograms {
    lengths: PackedLengths,
    heads: HeadSplit,
    workers: Vec<RankProgram>,
    shares: Vec<Share>,
}

impl Steps {
    /// Programs of as many workers as `held` has lists of pieces. All heads are one shard.
    ///
    /// # Errors
    /// Lengths in which samples continue others; a token that nobody holds, that is held twice, or that is not there.
    pub fn new(
        lengths: PackedLengths,
        mut held: Vec<Vec<Piece>>,
        heads: &HeadSplit,
        mask: Mask,
        bytes: ElementBytes,
    ) -> Result<Self, Error> {
        if lengths.has_parents() {
            return Err(Error::Combination {
                what: "execution",
                value: "by steps".to_owned(),
                with: "samples that continue others",
                legal: "plans",
            });
        }
        held.iter_mut().for_each(|own| own.sort_unstable());
        check_held(&lengths, &held)?;
        let (q_heads, kv_heads) = (heads.q_heads(), heads.kv_heads());
        Ok(Self {
            heads: HeadSplit::new(q_heads, kv_heads, heads.dim_qk(), heads.dim_v(), 1, 1)?,
            lengths,
            mask,
            bytes,
            buffers: Vec::new(),
            returns: 0,
            workers: held.into_iter().map(Worker::new).collect(),
        })
    }

    /// What `worker` holds of `samples`, by (sample, token).
    #[must_use]
    pub fn held(&self, worker: u32, samples: &Range<usize>) -> Vec<Piece> {
        let held = of_samples(&self.workers[worker as usize].held, samples);
        held.iter().map(|located| located.piece).collect()
    }

    /// Samples of the sequences.
    #[must_use]
    pub const fn lengths(&self) -> &PackedLengths {
        &self.lengths
    }

    /// Which keys a query reads.
    #[must_use]
    pub const fn mask(&self) -> Mask {
        self.mask
    }

    /// Number of workers.
    #[must_use]
    pub const fn workers(&self) -> u32 {
        self.workers.len() as u32
    }

    /// A new exchange of K and V, without a message, which arrives in buffer `buffer` of its receivers.
    pub fn keys_exchange(&mut self, buffer: u32) -> u32 {
        self.buffers.push(buffer);
        self.buffers.len() as u32 - 1
    }

    /// A new exchange of gradients, without a message.
    pub const fn gradients_exchange(&mut self) -> u32 {
        self.returns += 1;
        self.returns - 1
    }

    /// `worker` does `step` forward.
    pub fn forward(&mut self, worker: u32, step: Step) {
        self.workers[worker as usize].forward.push(step);
    }

    /// `worker` does `step` backward.
    pub fn backward(&mut self, worker: u32, step: Step) {
        self.workers[worker as usize].backward.push(step);
    }

    /// The next compute step of `worker`: its queries of `samples` over the keys at `places`. Both passes take a worker's
    /// compute steps in the order in which they were made.
    pub fn block(&mut self, worker: u32, places: Vec<Place>, samples: Range<usize>) -> Step {
        let blocks = &mut self.workers[worker as usize].blocks;
        blocks.push(Block { places, samples });
        Step::Compute(blocks.len() as u32 - 1)
    }

    /// The programs.
    #[must_use]
    pub fn finish(self) -> StepPrograms {
        let id = self.digest();
        let rank = |worker: usize| self.rank(worker, id);
        StepPrograms {
            workers: (0..self.workers.len()).map(rank).collect(),
            shares: self.workers.iter().map(|w| self.share(w)).collect(),
            lengths: self.lengths,
            heads: self.heads,
        }
    }

    /// Names the program: heads, mask, what every worker holds, and every message.
    fn digest(&self) -> PlanId {
        let mut hasher = Xxh3Default::new();
        let heads = &self.heads;
        let widths = [
            heads.q_heads(),
            heads.kv_heads(),
            heads.dim_qk(),
            heads.dim_v(),
        ];
        hasher.update(self.mask.to_string().as_bytes());
        let mut add = |number: u32| hasher.update(&number.to_le_bytes());
        widths.into_iter().for_each(&mut add);
        for worker in &self.workers {
            add(worker.held.len() as u32);
            for Piece { sample, start, end } in worker.held.iter().map(|l| l.piece) {
                [sample.0, start, end].into_iter().for_each(&mut add);
            }
            for exchange in worker.keys.iter().chain(&worker.gradients) {
                add(exchange.len() as u32);
                for transfer in exchange {
                    transfer.numbers().for_each(&mut add);
                }
            }
        }
        PlanId(hasher.digest128().to_le_bytes())
    }

    fn rank(&self, number: usize, plan_id: PlanId) -> RankProgram {
        let worker = &self.workers[number];
        let first_rows = self.first_rows(worker);
        let blocks::Blocks {
            entries,
            ends,
            pieces,
            kv_views,
        } = self.blocks(worker, &first_rows);
        let exchanges = |lists: &[Vec<Transfer>], count: usize| -> Vec<Exchange> {
            let exchange = |transfers: &Vec<Transfer>| self.exchange(transfers, &first_rows);
            let mut all: Vec<Exchange> = lists.iter().map(exchange).collect();
            // Numbered for all workers alike; forward has none of gradients.
            all.resize_with(count, Exchange::default);
            all
        };
        let computes = ends.len();
        let pass = |steps: &[Step], returns: u32| Pass {
            steps: steps.to_vec(),
            dispatch: exchanges(&worker.keys, self.buffers.len()),
            relay: Vec::new(),
            gather: Vec::new(),
            back: exchanges(&worker.gradients, returns as usize),
            copies_in: vec![Vec::new(); self.buffers.len()],
            copies_out: vec![Vec::new(); computes],
        };
        RankProgram {
            worker: WorkerId::new(number),
            workers: self.workers(),
            plan_id,
            heads: self.heads.clone(),
            mask: self.mask,
            // Queries, O and log-sum-exp never leave; K and V travel again.
            mode: BackwardMode::Refetch,
            first_q_head: 0,
            shapes: self.shapes(worker.rows, first_rows[first_rows.len() - 1]),
            entries,
            computes: Computes::Blocks(ends),
            pieces,
            ancestors: Vec::new(),
            kv_views,
            forward: pass(&worker.forward, 0),
            backward: pass(&worker.backward, self.returns),
        }
    }

    fn shapes(&self, rows: u32, staged: u32) -> [TensorShape; Tensor::ALL.len()] {
        let heads = &self.heads;
        let shape = |rows: u32, heads: u32, width: u32| TensorShape {
            rows: rows as usize,
            heads: heads as usize,
            width: width as usize,
        };
        let (q, kv) = (heads.q_heads(), heads.kv_heads());
        Tensor::ALL.map(|tensor| match tensor {
            Tensor::Q | Tensor::DQ => shape(rows, q, heads.dim_qk()),
            Tensor::O | Tensor::DO => shape(rows, q, heads.dim_v()),
            Tensor::Lse | Tensor::Delta => shape(rows, q, 1),
            Tensor::K | Tensor::DK => shape(rows, kv, heads.dim_qk()),
            Tensor::V | Tensor::DV => shape(rows, kv, heads.dim_v()),
            Tensor::StagedK | Tensor::StagedDK => shape(staged, kv, heads.dim_qk()),
            Tensor::StagedV | Tensor::StagedDV => shape(staged, kv, heads.dim_v()),
            _ => TensorShape::default(),
        })
    }

    fn share(&self, worker: &Worker) -> Share {
        let tokens = worker.held.iter().map(|Located { piece, .. }| {
            let first = self.lengths.tokens(piece.sample).start;
            let sequence = self.sequence_of(piece.sample);
            (sequence, first + piece.start..first + piece.end)
        });
        Share {
            tokens: tokens.collect(),
            q_heads: 0..self.heads.q_heads(),
            kv_heads: 0..self.heads.kv_heads(),
        }
    }

    fn sequence_of(&self, sample: SampleId) -> usize {
        let (mut first, mut end) = (0, self.lengths.sequences());
        while end - first > 1 {
            let middle = usize::midpoint(first, end);
            if self.lengths.samples_of(middle).start <= sample.index() {
                first = middle;
            } else {
                end = middle;
            }
        }
        first
    }
}

/// Every token of every sample is held once.
fn check_held(lengths: &PackedLengths, held: &[Vec<Piece>]) -> Result<(), Error> {
    let mut all = held.concat();
    all.sort_unstable();
    let mut pieces = all.into_iter().peekable();
    for sample in (0..lengths.samples()).map(SampleId::new) {
        let mut next = 0;
        while let Some(piece) = pieces.next_if(|piece| piece.sample == sample) {
            check_start(piece.start, next)?;
            if piece.end <= piece.start {
                let name = "tokens of a piece";
                return Err(Error::Zero { name });
            }
            next = piece.end;
        }
        check_start(lengths.length(sample), next)?;
    }
    match pieces.next() {
        None => Ok(()),
        Some(piece) => Err(Error::OutOfRange {
            name: "sample of a piece",
            value: piece.sample.0.into(),
            count: lengths.samples() as u64,
        }),
    }
}

/// A piece, or the end of a sample, comes where the piece before ends.
fn check_start(start: u32, before: u32) -> Result<(), Error> {
    if start == before {
        return Ok(());
    }
    Err(Error::Mismatch {
        name: "token of a sample",
        left: start.into(),
        left_of: "where its next held piece starts, or it ends",
        right: before.into(),
        right_of: "where the pieces held before end",
    })
}

/// Those of `located`, which are by (sample, token), that are of `samples`.
fn of_samples<'a>(located: &'a [Located], samples: &Range<usize>) -> &'a [Located] {
    let before = |end: usize| located.partition_point(|l| l.piece.sample.index() < end);
    &located[before(samples.start)..before(samples.end)]
}

impl Worker {
    fn new(held: Vec<Piece>) -> Self {
        let mut worker = Self::default();
        for piece in held {
            let row = worker.rows;
            worker.held.push(Located { piece, row });
            worker.rows += piece.len();
        }
        worker
    }
}

impl StepPrograms {
    /// One a worker.
    #[must_use]
    pub fn workers(&self) -> &[RankProgram] {
        &self.workers
    }

    /// Samples of the sequences that inputs and results are of.
    #[must_use]
    pub const fn lengths(&self) -> &PackedLengths {
        &self.lengths
    }

    /// Head counts.
    #[must_use]
    pub const fn heads(&self) -> &HeadSplit {
        &self.heads
    }

    /// Work of every worker: query–key pairs × query heads.
    #[must_use]
    pub fn loads(&self) -> Vec<u64> {
        self.workers.iter().map(RankProgram::work).collect()
    }

    /// As [`PoolTensors::random`].
    #[must_use]
    pub fn random_inputs<T: num_traits::Float>(&self, seed: u64) -> PoolTensors<T> {
        PoolTensors::random_of(&self.lengths, &self.heads, seed)
    }

    pub(crate) fn into_parts(self) -> (PackedLengths, HeadSplit, Vec<RankProgram>, Vec<Share>) {
        (self.lengths, self.heads, self.workers, self.shares)
    }
}
