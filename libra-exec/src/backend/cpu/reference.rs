//! Attention a query at a time, every sum in ascending order: exact twin of unsharded attention.
//!
//! A query's scores, softmax and output are computed by the same operations in the same order
//! wherever the query runs, so O and dQ do not depend on the plan, to the last bit. A query that
//! reads no key has O 0, log-sum-exp −∞ and gradient 0.

use std::ops::Range;

use libra_sched::KeyRanges;
use num_traits::Float;

use super::{CpuBuffer, CpuDevice};
use crate::backend::{Kernel, Workspace};
use crate::error::Failure;
use crate::program::{Entry, KeySource, KvView, RankProgram, Tensor};

/// The slow, exact kernel, in f64 or f32.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReferenceKernel;

/// Rows of one head of a tensor.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub(super) offset: usize,
    pub(super) stride: usize,
    pub(super) width: usize,
}

impl Column {
    pub(super) fn new(program: &RankProgram, tensor: Tensor, row: u32, head: u32) -> Self {
        let shape = program.shape(tensor);
        let offset = row as usize * shape.stride() + head as usize * shape.width;
        Self {
            offset,
            stride: shape.stride(),
            width: shape.width,
        }
    }

    pub(super) fn row(self, index: usize) -> Range<usize> {
        let start = self.offset + index * self.stride;
        start..start + self.width
    }
}

/// The tensors an entry works on: its own or the staged ones.
#[derive(Clone, Copy)]
pub(super) struct Names {
    pub(super) q: Tensor,
    pub(super) o: Tensor,
    pub(super) lse: Tensor,
    pub(super) d_o: Tensor,
    pub(super) d_q: Tensor,
}

impl Names {
    pub(super) fn of(entry: &Entry) -> Self {
        if entry.staged {
            Self {
                q: Tensor::StagedQ,
                o: Tensor::StagedO,
                lse: Tensor::StagedLse,
                d_o: Tensor::StagedDO,
                d_q: Tensor::StagedDQ,
            }
        } else {
            Self {
                q: Tensor::Q,
                o: Tensor::O,
                lse: Tensor::Lse,
                d_o: Tensor::DO,
                d_q: Tensor::DQ,
            }
        }
    }
}

impl KvView {
    /// Rows of `keys`, counted from the view's first.
    fn places(&self, keys: KeyRanges) -> impl Iterator<Item = usize> + use<> {
        let first = self.first;
        let place =
            move |keys: Range<u32>| (keys.start - first) as usize..(keys.end - first) as usize;
        keys.iter().flat_map(place)
    }
}

/// K, V, dK and dV of a view.
pub(super) fn kv_names(view: &KvView) -> [Tensor; 4] {
    if view.staged {
        [
            Tensor::StagedK,
            Tensor::StagedV,
            Tensor::StagedDK,
            Tensor::StagedDV,
        ]
    } else {
        [Tensor::K, Tensor::V, Tensor::DK, Tensor::DV]
    }
}

/// 1/√d_qk.
pub(super) fn softmax_scale<T: Float>(program: &RankProgram) -> T {
    T::one()
        / T::from(program.heads.dim_qk())
            .expect("widths are small")
            .sqrt()
}

fn dot<T: Float>(a: &[T], b: &[T]) -> T {
    a.iter().zip(b).fold(T::zero(), |sum, (&a, &b)| sum + a * b)
}

/// `to += by · from`.
fn add_scaled<T: Float>(to: &mut [T], by: T, from: &[T]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = *to + by * from;
    }
}

/// Takes a tensor out while others are read; whoever takes it binds it again.
pub(super) fn lent<T>(
    tensors: &mut Workspace<CpuBuffer<T>>,
    tensor: Tensor,
) -> Result<CpuBuffer<T>, Failure> {
    tensors.take(tensor).ok_or(Failure::MissingState {
        what: tensor.name(),
    })
}

impl<T: Float> Kernel<CpuDevice<T>> for ReferenceKernel {
    fn forward(
        &self,
        _device: &CpuDevice<T>,
        _queue: &(),
        program: &RankProgram,
        tensors: &mut Workspace<CpuBuffer<T>>,
        step: u32,
    ) -> Result<(), Failure> {
        let mut scores = Vec::new();
        for entry in program.entries_of(step) {
            let names = Names::of(entry);
            let mut o = lent(tensors, names.o)?;
            let mut lse = lent(tensors, names.lse)?;
            for head in program.heads_of(entry, step) {
                let (o, lse) = (o.as_mut_slice(), lse.as_mut_slice());
                forward_head(program, tensors, entry, head, &mut scores, o, lse);
            }
            tensors.bind(names.o, o);
            tensors.bind(names.lse, lse);
        }
        Ok(())
    }

    fn delta(
        &self,
        _device: &CpuDevice<T>,
        _queue: &(),
        program: &RankProgram,
        tensors: &mut Workspace<CpuBuffer<T>>,
    ) -> Result<(), Failure> {
        own_delta(program, tensors)
    }

    fn backward(
        &self,
        _device: &CpuDevice<T>,
        _queue: &(),
        program: &RankProgram,
        tensors: &mut Workspace<CpuBuffer<T>>,
        step: u32,
    ) -> Result<(), Failure> {
        for entry in program.entries_of(step) {
            for head in program.heads_of(entry, step) {
                for source in program.key_sources(entry, head) {
                    self.backward_head(program, tensors, entry, head, &source)?;
                }
            }
        }
        Ok(())
    }
}

/// O and log-sum-exp of one head of an entry.
fn forward_head<T: Float>(
    program: &RankProgram,
    tensors: &Workspace<CpuBuffer<T>>,
    entry: &Entry,
    head: u32,
    scores: &mut Vec<T>,
    o: &mut [T],
    lse: &mut [T],
) {
    let scale = softmax_scale::<T>(program);
    let names = Names::of(entry);
    let column = program.q_column(entry, head);
    let q_at = Column::new(program, names.q, entry.row, column);
    let o_at = Column::new(program, names.o, entry.row, column);
    let lse_at = Column::new(program, names.lse, entry.row, column);
    let q = tensors.get(names.q).as_slice();
    let sources: Vec<Source<'_, T>> = program
        .key_sources(entry, head)
        .map(|source| Source::new(program, tensors, source))
        .collect();
    for row in 0..entry.rows as usize {
        let q = &q[q_at.row(row)];
        let out = &mut o[o_at.row(row)];
        let at = lse_at.row(row).start;
        // What earlier keys gave, as one more key: of weight exp(LSE) and value O.
        let mut largest = if entry.continues {
            lse[at]
        } else {
            out.fill(T::zero());
            T::neg_infinity()
        };
        let keys = |source: &Source<'_, T>| {
            let keys = program.keys(entry, &source.source, row..row + 1);
            source.source.view.places(keys)
        };
        scores.clear();
        for source in &sources {
            let score = |key| dot(q, &source.k[source.k_at.row(key)]) * scale;
            scores.extend(keys(source).map(score));
        }
        if scores.is_empty() {
            lse[at] = largest;
            continue;
        }
        let before = largest;
        largest = scores.iter().copied().fold(largest, T::max);
        let mut total = T::zero();
        if before > T::neg_infinity() {
            total = (before - largest).exp();
            out.iter_mut().for_each(|value| *value = *value * total);
        }
        let mut scores = scores.iter();
        for source in &sources {
            for (key, &score) in keys(source).zip(scores.by_ref()) {
                let weight = (score - largest).exp();
                total = total + weight;
                add_scaled(out, weight, &source.v[source.v_at.row(key)]);
            }
        }
        for value in out {
            *value = *value / total;
        }
        lse[at] = largest + total.ln();
    }
}

/// Keys of one sample, and their K and V.
pub(super) struct Source<'a, T> {
    source: KeySource<'a>,
    pub(super) k: &'a [T],
    pub(super) v: &'a [T],
    pub(super) k_at: Column,
    pub(super) v_at: Column,
}

impl<'a, T: Float> Source<'a, T> {
    pub(super) fn new(
        program: &RankProgram,
        tensors: &'a Workspace<CpuBuffer<T>>,
        source: KeySource<'a>,
    ) -> Self {
        let view = source.view;
        let [k, v, ..] = kv_names(view);
        Self {
            source,
            k: tensors.get(k).as_slice(),
            v: tensors.get(v).as_slice(),
            k_at: Column::new(program, k, view.row, view.head),
            v_at: Column::new(program, v, view.row, view.head),
        }
    }
}

impl ReferenceKernel {
    /// Gradients of one head of an entry by the keys of one source. Sources come in the order in which
    /// forward read them, so dQ adds up as without a plan.
    fn backward_head<T: Float>(
        self,
        program: &RankProgram,
        tensors: &mut Workspace<CpuBuffer<T>>,
        entry: &Entry,
        head: u32,
        source: &KeySource<'_>,
    ) -> Result<(), Failure> {
        let scale = softmax_scale::<T>(program);
        let names = Names::of(entry);
        let column = program.q_column(entry, head);
        let view = source.view;
        let [k_name, v_name, d_k_name, d_v_name] = kv_names(view);
        let mut d_q = lent(tensors, names.d_q)?;
        let mut d_k = lent(tensors, d_k_name)?;
        let mut d_v = lent(tensors, d_v_name)?;

        let own = |tensor| Column::new(program, tensor, entry.row, column);
        let keyed = |tensor| Column::new(program, tensor, view.row, view.head);
        let (q_at, d_q_at, d_o_at) = (own(names.q), own(names.d_q), own(names.d_o));
        let lse_at = own(names.lse);
        let (k_at, v_at) = (keyed(k_name), keyed(v_name));
        let (d_k_at, d_v_at) = (keyed(d_k_name), keyed(d_v_name));
        let (q, k, v) = (
            tensors.get(names.q).as_slice(),
            tensors.get(k_name).as_slice(),
            tensors.get(v_name).as_slice(),
        );
        let (d_o, lse) = (
            tensors.get(names.d_o).as_slice(),
            tensors.get(names.lse).as_slice(),
        );
        for row in 0..entry.rows as usize {
            let keys = program.keys(entry, source, row..row + 1);
            let (q, d_o) = (&q[q_at.row(row)], &d_o[d_o_at.row(row)]);
            let lse = lse[lse_at.row(row).start];
            let delta = delta_of(program, tensors, entry, column, row);
            let d_q = &mut d_q.as_mut_slice()[d_q_at.row(row)];
            for key in view.places(keys) {
                let (k, v) = (&k[k_at.row(key)], &v[v_at.row(key)]);
                let weight = (dot(q, k) * scale - lse).exp();
                let d_score = weight * (dot(d_o, v) - delta) * scale;
                add_scaled(&mut d_v.as_mut_slice()[d_v_at.row(key)], weight, d_o);
                add_scaled(d_q, d_score, k);
                add_scaled(&mut d_k.as_mut_slice()[d_k_at.row(key)], d_score, q);
            }
        }
        tensors.bind(names.d_q, d_q);
        tensors.bind(d_k_name, d_k);
        tensors.bind(d_v_name, d_v);
        Ok(())
    }
}

/// δ of one query and head: fetched where it was sent along, else from O and dO, by one formula.
pub(super) fn delta_of<T: Float>(
    program: &RankProgram,
    tensors: &Workspace<CpuBuffer<T>>,
    entry: &Entry,
    column: u32,
    row: usize,
) -> T {
    let names = Names::of(entry);
    if entry.staged && program.mode == libra_sched::BackwardMode::Refetch {
        let at = Column::new(program, Tensor::StagedDelta, entry.row, column);
        return tensors.get(Tensor::StagedDelta).as_slice()[at.row(row).start];
    }
    let at = Column::new(program, names.o, entry.row, column);
    let (o, d_o) = (
        tensors.get(names.o).as_slice(),
        tensors.get(names.d_o).as_slice(),
    );
    dot(&d_o[at.row(row)], &o[at.row(row)])
}

/// δ of every own row and head.
pub(super) fn own_delta<T: Float>(
    program: &RankProgram,
    tensors: &mut Workspace<CpuBuffer<T>>,
) -> Result<(), Failure> {
    let mut delta = lent(tensors, Tensor::Delta)?;
    let shape = program.shape(Tensor::O);
    let (o, d_o) = (
        tensors.get(Tensor::O).as_slice(),
        tensors.get(Tensor::DO).as_slice(),
    );
    for (at, delta) in delta.as_mut_slice().iter_mut().enumerate() {
        let range = at * shape.width..(at + 1) * shape.width;
        *delta = dot(&d_o[range.clone()], &o[range]);
    }
    tensors.bind(Tensor::Delta, delta);
    Ok(())
}
