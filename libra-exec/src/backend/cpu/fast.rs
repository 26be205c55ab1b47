//! Attention in f32 tiles over matrix products: a flash-style kernel for the CPU.
//!
//! Queries and keys are taken in tiles; scores of a tile are one matrix product, the softmax is
//! kept as a running maximum and sum per query (Milakov and Gimelshein 2018; Dao et al. 2022), and
//! backward recomputes the weights from log-sum-exp. Sums are in f32.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder, linalg::general_mat_mul, s};

use super::reference::{Column, Names, Source, delta_of, kv_names, lent, own_delta, softmax_scale};
use super::{CpuBuffer, CpuDevice};
use crate::backend::{Kernel, Workspace};
use crate::error::Failure;
use crate::program::{Entry, KeySource, RankProgram};

/// Queries of a tile.
const Q_TILE: usize = 64;
/// Keys of a tile.
const K_TILE: usize = 128;

/// The fast f32 kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct FastKernel;

/// eˣ for x ≤ 0 to about 1e-7 relative, in operations that a compiler turns into vector code.
///
/// x = n·ln 2 + r with |r| ≤ ln 2 / 2; eʳ by its Taylor polynomial of degree 7; 2ⁿ by exponent
/// bits. Below −87 the answer is 0.
fn exp(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_145_75;
    const LN2_LOW: f32 = 1.428_606_8e-6;
    // Adding and taking away 1.5·2²³ rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    let clamped = x.max(-87.0);
    let n = (clamped * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = (clamped - n * LN2_HIGH) - n * LN2_LOW;
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = p * r + 1.0;
    let p = p * r + 1.0;
    let power = f32::from_bits((((n as i32) + 127) as u32) << 23);
    if x < -87.0 { 0.0 } else { p * power }
}

/// Rows `first..first + rows` of one head as a matrix.
fn matrix(data: &[f32], at: Column, first: usize, rows: usize) -> ArrayView2<'_, f32> {
    let shape = (rows, at.width).strides((at.stride, 1));
    let data = &data[at.offset + first * at.stride..];
    ArrayView2::from_shape(shape, data).expect("a column lies within its tensor")
}

fn matrix_mut(data: &mut [f32], at: Column, first: usize, rows: usize) -> ArrayViewMut2<'_, f32> {
    let shape = (rows, at.width).strides((at.stride, 1));
    let data = &mut data[at.offset + first * at.stride..];
    ArrayViewMut2::from_shape(shape, data).expect("a column lies within its tensor")
}

/// Tiles of the keys of `source` that some query of `rows` (entry-local) reads; none reaches into a
/// gap between them.
fn key_tiles(
    program: &RankProgram,
    entry: &Entry,
    source: &KeySource<'_>,
    rows: &Range<usize>,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let keys = program.keys(entry, source, rows.clone());
    keys.iter()
        .flat_map(|keys| tiles(keys.start as usize..keys.end as usize, K_TILE))
}

/// Keys of `tile` that one query reads, as places in the tile, and those that it does not.
struct Seen {
    read: [Range<usize>; 2],
    hidden: [Range<usize>; 3],
}

impl Seen {
    fn new(
        program: &RankProgram,
        entry: &Entry,
        source: &KeySource<'_>,
        row: usize,
        tile: &Range<usize>,
    ) -> Self {
        let keys = program.keys(entry, source, row..row + 1);
        let place = |key: u32| (key as usize).clamp(tile.start, tile.end) - tile.start;
        let mut keys = keys.iter().map(|keys| place(keys.start)..place(keys.end));
        let first = keys.next().unwrap_or(0..0);
        let second = keys.next().unwrap_or(first.end..first.end);
        Self {
            hidden: [
                0..first.start,
                first.end..second.start,
                second.end..tile.len(),
            ],
            read: [first, second],
        }
    }
}

fn tiles(range: Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range
        .step_by(step)
        .map(move |start| start..(start + step).min(end))
}

/// Memory of one call.
struct Scratch {
    scores: Vec<f32>,
    d_scores: Vec<f32>,
    largest: [f32; Q_TILE],
    total: [f32; Q_TILE],
}

impl Scratch {
    fn new() -> Self {
        Self {
            scores: vec![0.0; Q_TILE * K_TILE],
            d_scores: vec![0.0; Q_TILE * K_TILE],
            largest: [0.0; Q_TILE],
            total: [0.0; Q_TILE],
        }
    }
}

fn tile_of(data: &mut [f32], rows: usize, keys: usize) -> ArrayViewMut2<'_, f32> {
    ArrayViewMut2::from_shape((rows, keys), &mut data[..rows * keys]).expect("tiles fit scratch")
}

impl Kernel<CpuDevice<f32>> for FastKernel {
    fn forward(
        &self,
        _device: &CpuDevice<f32>,
        _queue: &(),
        program: &RankProgram,
        tensors: &mut Workspace<CpuBuffer<f32>>,
        step: u32,
    ) -> Result<(), Failure> {
        let mut scratch = Scratch::new();
        for entry in program.entries_of(step) {
            let names = Names::of(entry);
            let mut o = lent(tensors, names.o)?;
            let mut lse = lent(tensors, names.lse)?;
            for head in program.heads_of(entry, step) {
                let (o, lse) = (o.as_mut_slice(), lse.as_mut_slice());
                forward_head(&mut scratch, program, tensors, entry, head, o, lse);
            }
            tensors.bind(names.o, o);
            tensors.bind(names.lse, lse);
        }
        Ok(())
    }

    fn delta(
        &self,
        _device: &CpuDevice<f32>,
        _queue: &(),
        program: &RankProgram,
        tensors: &mut Workspace<CpuBuffer<f32>>,
    ) -> Result<(), Failure> {
        own_delta(program, tensors)
    }

    fn backward(
        &self,
        _device: &CpuDevice<f32>,
        _queue: &(),
        program: &RankProgram,
        tensors: &mut Workspace<CpuBuffer<f32>>,
        step: u32,
    ) -> Result<(), Failure> {
        let mut scratch = Scratch::new();
        for entry in program.entries_of(step) {
            for head in program.heads_of(entry, step) {
                for source in program.key_sources(entry, head) {
                    backward_head(&mut scratch, program, tensors, entry, head, &source)?;
                }
            }
        }
        Ok(())
    }
}

fn forward_head(
    scratch: &mut Scratch,
    program: &RankProgram,
    tensors: &Workspace<CpuBuffer<f32>>,
    entry: &Entry,
    head: u32,
    o: &mut [f32],
    lse: &mut [f32],
) {
    let scale = softmax_scale::<f32>(program);
    let names = Names::of(entry);
    let column = program.q_column(entry, head);
    let q_at = Column::new(program, names.q, entry.row, column);
    let o_at = Column::new(program, names.o, entry.row, column);
    let lse_at = Column::new(program, names.lse, entry.row, column);
    let q = tensors.get(names.q).as_slice();
    for rows in tiles(0..entry.rows as usize, Q_TILE) {
        let count = rows.len();
        let q = matrix(q, q_at, rows.start, count);
        let mut out = matrix_mut(o, o_at, rows.start, count);
        if entry.continues {
            for row in 0..count {
                // What earlier keys gave, as one more key: of weight exp(LSE) and value O.
                let before = lse[lse_at.row(rows.start + row).start];
                scratch.largest[row] = before;
                scratch.total[row] = f32::from(u8::from(before > f32::NEG_INFINITY));
            }
        } else {
            out.fill(0.0);
            scratch.largest.fill(f32::NEG_INFINITY);
            scratch.total.fill(0.0);
        }
        for source in program.key_sources(entry, head) {
            let Source {
                k, v, k_at, v_at, ..
            } = Source::new(program, tensors, source);
            for tile in key_tiles(program, entry, &source, &rows) {
                let place = tile.start - source.view.first as usize;
                let mut scores = tile_of(&mut scratch.scores, count, tile.len());
                let k = matrix(k, k_at, place, tile.len());
                general_mat_mul(scale, &q, &k.t(), 0.0, &mut scores);
                for row in 0..count {
                    let mut scores = scores.row_mut(row);
                    let scores = scores
                        .as_slice_mut()
                        .expect("rows of scratch are contiguous");
                    let seen = Seen::new(program, entry, &source, rows.start + row, &tile);
                    let (largest, total) = (&mut scratch.largest[row], &mut scratch.total[row]);
                    let shrink = soften(scores, seen, largest, total);
                    if shrink != 1.0 {
                        out.row_mut(row).mapv_inplace(|value| value * shrink);
                    }
                }
                let v = matrix(v, v_at, place, tile.len());
                general_mat_mul(1.0, &scores, &v, 1.0, &mut out);
            }
        }
        for row in 0..count {
            let total = scratch.total[row];
            // A query that reads no key: O stays 0, and log-sum-exp becomes −∞.
            if total > 0.0 {
                out.row_mut(row).mapv_inplace(|value| value / total);
            }
            lse[lse_at.row(rows.start + row).start] = scratch.largest[row] + total.ln();
        }
    }
}

/// Scores of one query to weights by the running maximum and sum; returns by what O so far shrinks.
fn soften(scores: &mut [f32], seen: Seen, largest_yet: &mut f32, total_yet: &mut f32) -> f32 {
    for hidden in seen.hidden {
        scores[hidden].fill(f32::NEG_INFINITY);
    }
    let largest = scores.iter().copied().fold(*largest_yet, f32::max);
    if largest == f32::NEG_INFINITY {
        scores.fill(0.0);
        return 1.0;
    }
    let shrink = exp(*largest_yet - largest);
    let mut total = 0.0;
    for score in scores.iter_mut() {
        *score = exp(*score - largest);
        total += *score;
    }
    *total_yet = *total_yet * shrink + total;
    *largest_yet = largest;
    shrink
}

/// Gradients of one head of an entry by the keys of one source.
fn backward_head(
    scratch: &mut Scratch,
    program: &RankProgram,
    tensors: &mut Workspace<CpuBuffer<f32>>,
    entry: &Entry,
    head: u32,
    source: &KeySource<'_>,
) -> Result<(), Failure> {
    let scale = softmax_scale::<f32>(program);
    let names = Names::of(entry);
    let column = program.q_column(entry, head);
    let view = source.view;
    let [k_name, v_name, d_k_name, d_v_name] = kv_names(view);
    let mut d_q = lent(tensors, names.d_q)?;
    let mut d_k = lent(tensors, d_k_name)?;
    let mut d_v = lent(tensors, d_v_name)?;
    let own = |tensor| Column::new(program, tensor, entry.row, column);
    let keyed = |tensor| Column::new(program, tensor, view.row, view.head);
    let data = |tensor| tensors.get(tensor).as_slice();
    let (q, k, v) = (data(names.q), data(k_name), data(v_name));
    let (d_o, lse) = (data(names.d_o), data(names.lse));

    for rows in tiles(0..entry.rows as usize, Q_TILE) {
        let count = rows.len();
        let q = matrix(q, own(names.q), rows.start, count);
        let d_o = matrix(d_o, own(names.d_o), rows.start, count);
        let mut d_q = matrix_mut(d_q.as_mut_slice(), own(names.d_q), rows.start, count);
        for row in 0..count {
            let at = rows.start + row;
            scratch.largest[row] = lse[own(names.lse).row(at).start];
            scratch.total[row] = delta_of(program, tensors, entry, column, at);
        }
        for tile in key_tiles(program, entry, source, &rows) {
            let place = tile.start - view.first as usize;
            let k = matrix(k, keyed(k_name), place, tile.len());
            let v = matrix(v, keyed(v_name), place, tile.len());
            let mut weights = tile_of(&mut scratch.scores, count, tile.len());
            let mut d_scores = tile_of(&mut scratch.d_scores, count, tile.len());
            general_mat_mul(scale, &q, &k.t(), 0.0, &mut weights);
            general_mat_mul(1.0, &d_o, &v.t(), 0.0, &mut d_scores);
            for row in 0..count {
                let seen = Seen::new(program, entry, source, rows.start + row, &tile);
                let (lse, delta) = (scratch.largest[row], scratch.total[row]);
                let mut weights = weights.slice_mut(s![row, ..]);
                let mut d_scores = d_scores.slice_mut(s![row, ..]);
                let weights = weights
                    .as_slice_mut()
                    .expect("rows of scratch are contiguous");
                let d_scores = d_scores
                    .as_slice_mut()
                    .expect("rows of scratch are contiguous");
                for read in seen.read {
                    let weights = weights[read.clone()].iter_mut();
                    for (weight, d_score) in weights.zip(&mut d_scores[read]) {
                        *weight = exp(*weight - lse);
                        *d_score = *weight * (*d_score - delta);
                    }
                }
                for hidden in seen.hidden {
                    weights[hidden.clone()].fill(0.0);
                    d_scores[hidden].fill(0.0);
                }
            }
            let mut d_v = matrix_mut(d_v.as_mut_slice(), keyed(d_v_name), place, tile.len());
            general_mat_mul(1.0, &weights.t(), &d_o, 1.0, &mut d_v);
            general_mat_mul(scale, &d_scores, &k, 1.0, &mut d_q);
            let mut d_k = matrix_mut(d_k.as_mut_slice(), keyed(d_k_name), place, tile.len());
            general_mat_mul(scale, &d_scores.t(), &q, 1.0, &mut d_k);
        }
    }
    tensors.bind(names.d_q, d_q);
    tensors.bind(d_k_name, d_k);
    tensors.bind(d_v_name, d_v);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::exp;

    #[test]
    fn exp_is_within_a_few_ulps_of_the_library() {
        for step in 0..880_000 {
            let x = -(step as f32) * 1e-4;
            let (fast, right) = (f64::from(exp(x)), f64::from(x).exp());
            let error = (fast - right).abs();
            assert!(
                error <= 3e-7 * right || right < 1.7e-38,
                "exp({x}) = {fast}, not {right}"
            );
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
    }
}
