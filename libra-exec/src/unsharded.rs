//! Attention without a plan: one loop over samples, heads, queries and keys.
//!
//! The yardstick of every backend. It shares no code with the kernels; it reads lengths, head
//! counts and mask, never tiles or moves.

// Indices are the formula's: this is the one place that must read like the definition.
#![allow(clippy::needless_range_loop)]

use libra_sched::{Mask, PoolPlan, SampleId};
use num_traits::Float;

use crate::tensors::{PoolOutputs, PoolTensors};

/// Forward and backward of every sample of the pool, in `T` throughout.
///
/// softmax(Q·Kᵀ/√d_qk + mask)·V with keys in ascending order; sums over keys and over elements in
/// ascending order; dK and dV summed over query heads, then queries, ascending. Of a query that
/// reads no key, O and dQ are 0. A sample's ancestors stand before it, the root first.
#[must_use]
pub fn attention<T: Float>(plan: &PoolPlan, inputs: &PoolTensors<T>) -> PoolOutputs<T> {
    let like = |slots: &[Vec<T>]| slots.iter().map(|s| vec![T::zero(); s.len()]).collect();
    let mut out = PoolOutputs {
        o: like(&inputs.d_o),
        d_q: like(&inputs.q),
        d_k: like(&inputs.k),
        d_v: like(&inputs.v),
    };
    for slot in 0..plan.lengths.sequences() {
        for sample in plan.lengths.samples_of(slot) {
            let tokens = plan.lengths.tokens(SampleId::new(sample));
            for head in 0..plan.heads.q_heads() as usize {
                for query in 0..tokens.end - tokens.start {
                    let query = tokens.start + query;
                    one_query(plan, inputs, &mut out, slot, sample, head, query);
                }
            }
        }
    }
    out
}

#[allow(clippy::too_many_arguments)] // The loop variables of one flat loop nest.
fn one_query<T: Float>(
    plan: &PoolPlan,
    inputs: &PoolTensors<T>,
    out: &mut PoolOutputs<T>,
    slot: usize,
    sample: usize,
    head: usize,
    query: u32,
) {
    let (h_q, h_kv) = (
        plan.heads.q_heads() as usize,
        plan.heads.kv_heads() as usize,
    );
    let (d_qk, d_v) = (plan.heads.dim_qk() as usize, plan.heads.dim_v() as usize);
    let kv_head = head * h_kv / h_q;
    let keys = keys_of(plan, sample, query);
    let at = |token: usize, heads: usize, head: usize, width: usize| (token * heads + head) * width;
    let scale = T::one() / T::from(d_qk).expect("widths are small").sqrt();
    let q_at = at(query as usize, h_q, head, d_qk);
    let o_at = at(query as usize, h_q, head, d_v);
    let dot = |a: &[T], b: &[T]| {
        let mut sum = T::zero();
        for i in 0..a.len() {
            sum = sum + a[i] * b[i];
        }
        sum
    };

    let q = &inputs.q[slot][q_at..q_at + d_qk];
    let mut scores = vec![T::zero(); keys.len()];
    let mut largest = T::neg_infinity();
    for j in 0..keys.len() {
        let k_at = at(keys[j], h_kv, kv_head, d_qk);
        scores[j] = dot(q, &inputs.k[slot][k_at..k_at + d_qk]) * scale;
        largest = largest.max(scores[j]);
    }
    let mut total = T::zero();
    let mut o = vec![T::zero(); d_v];
    for j in 0..keys.len() {
        let weight = (scores[j] - largest).exp();
        total = total + weight;
        let v_at = at(keys[j], h_kv, kv_head, d_v);
        for i in 0..d_v {
            o[i] = o[i] + weight * inputs.v[slot][v_at + i];
        }
    }
    let lse = largest + total.ln();
    if keys.is_empty() {
        return; // O and dQ are 0 from the start.
    }
    for i in 0..d_v {
        o[i] = o[i] / total;
    }
    out.o[slot][o_at..o_at + d_v].copy_from_slice(&o);

    let d_o = &inputs.d_o[slot][o_at..o_at + d_v];
    let delta = dot(d_o, &o);
    for j in 0..keys.len() {
        let (k_at, v_at) = (
            at(keys[j], h_kv, kv_head, d_qk),
            at(keys[j], h_kv, kv_head, d_v),
        );
        let weight = (scores[j] - lse).exp();
        let d_weight = dot(d_o, &inputs.v[slot][v_at..v_at + d_v]);
        let d_score = weight * (d_weight - delta) * scale;
        for i in 0..d_v {
            out.d_v[slot][v_at + i] = out.d_v[slot][v_at + i] + weight * d_o[i];
        }
        for i in 0..d_qk {
            let k = inputs.k[slot][k_at + i];
            out.d_q[slot][q_at + i] = out.d_q[slot][q_at + i] + d_score * k;
            out.d_k[slot][k_at + i] = out.d_k[slot][k_at + i] + d_score * q[i];
        }
    }
}

/// Tokens of the sequence that token `query` of `sample` reads: all of its ancestors, from the root on,
/// and what the mask gives it of its own sample.
fn keys_of(plan: &PoolPlan, sample: usize, query: u32) -> Vec<usize> {
    let mut above: Vec<SampleId> = plan.lengths.ancestors(SampleId::new(sample)).collect();
    above.reverse();
    let above = above
        .into_iter()
        .flat_map(|sample| plan.lengths.tokens(sample));
    let tokens = plan.lengths.tokens(SampleId::new(sample));
    let (start, len) = (tokens.start, tokens.end - tokens.start);
    let own = tokens.filter(|&key| reads(plan.mask, len, query - start, key - start));
    above.chain(own).map(|key| key as usize).collect()
}

/// Whether `query` reads `key` in a sample of `len` tokens: the definition of every mask, key by key.
fn reads(mask: Mask, len: u32, query: u32, key: u32) -> bool {
    let (len, query, key) = (i64::from(len), i64::from(query), i64::from(key));
    let within = |from: i64, to: i64| from <= key && key < to;
    let to_itself = key <= query;
    match mask {
        Mask::Causal => to_itself,
        Mask::Full => within(0, len),
        Mask::Offset { offset, .. } => key <= query + i64::from(offset),
        Mask::Window { window, sinks, .. } => {
            to_itself && (key > query - i64::from(window) || key < i64::from(sinks))
        }
        Mask::TwoSided { left, right, .. } => {
            within(query - i64::from(left), query + i64::from(right) + 1)
        }
        Mask::Chunked { chunk, .. } => {
            to_itself && key / i64::from(chunk) == query / i64::from(chunk)
        }
        Mask::Block {
            block,
            local,
            sinks,
            ..
        } => {
            let (own, of_key) = (query / i64::from(block), key / i64::from(block));
            to_itself && (of_key > own - i64::from(local) || of_key < i64::from(sinks))
        }
        Mask::Prefix { prefix, .. } => to_itself || key < i64::from(prefix),
        Mask::Keys { start, end, .. } => to_itself && within(start.into(), end.into()),
        // A mask of a later library: better no answer than that of another mask.
        other => unreachable!("mask {other} has no reference"),
    }
}
