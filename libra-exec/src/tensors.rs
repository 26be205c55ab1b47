//! Tensors of a whole pool, slot by slot: what a check compares, not what a worker holds.

use std::ops::Range;

use libra_sched::{HeadSplit, PackedLengths, PoolPlan, WorkerId};
use num_traits::Float;

/// Inputs of one attention layer of a pool, forward and backward.
///
/// Each tensor is a list of slots, each (L tokens, heads, width) row-major; padding rows are
/// there and read by nobody.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolTensors<T> {
    /// Queries: (L, h_q, d_qk).
    pub q: Vec<Vec<T>>,
    /// Keys: (L, h_kv, d_qk).
    pub k: Vec<Vec<T>>,
    /// Values: (L, h_kv, d_v).
    pub v: Vec<Vec<T>>,
    /// Gradient of the outputs: (L, h_q, d_v).
    pub d_o: Vec<Vec<T>>,
}

/// Results of one attention layer of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolOutputs<T> {
    /// Outputs: (L, h_q, d_v).
    pub o: Vec<Vec<T>>,
    /// Gradient of the queries: (L, h_q, d_qk).
    pub d_q: Vec<Vec<T>>,
    /// Gradient of the keys: (L, h_kv, d_qk).
    pub d_k: Vec<Vec<T>>,
    /// Gradient of the values: (L, h_kv, d_v).
    pub d_v: Vec<Vec<T>>,
}

/// What one worker holds of the tensors of a pool, in the order of its rows.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    /// Slots and tokens of them.
    pub(crate) tokens: Vec<(usize, Range<u32>)>,
    /// Query heads.
    pub(crate) q_heads: Range<u32>,
    /// KV heads.
    pub(crate) kv_heads: Range<u32>,
}

impl Share {
    /// Of `worker` of `plan`.
    pub(crate) fn of(plan: &PoolPlan, worker: WorkerId) -> Self {
        let layout = &plan.layout;
        let (slot, rank, tensor) = layout.place_of(worker);
        let held = layout
            .held(slot, rank)
            .map(|tokens| (slot as usize, tokens));
        Self {
            tokens: held.collect(),
            q_heads: layout.q_heads_of(&plan.heads, tensor),
            kv_heads: layout.kv_heads_of(&plan.heads, tensor),
        }
    }
}

impl<T: Float> PoolTensors<T> {
    /// Values in −1..1 that depend only on `seed` and the shape.
    #[must_use]
    pub fn random(plan: &PoolPlan, seed: u64) -> Self {
        Self::random_of(&plan.lengths, &plan.heads, seed)
    }

    /// As [`PoolTensors::random`], for the sequences of `lengths`.
    #[must_use]
    pub fn random_of(lengths: &PackedLengths, heads: &HeadSplit, seed: u64) -> Self {
        let (slots, tokens) = (lengths.sequences() as u64, lengths.seq_tokens() as usize);
        let fill = |what: u64, heads: u32, width: u32| -> Vec<Vec<T>> {
            let elements = tokens * heads as usize * width as usize;
            (0..slots)
                .map(|slot| values(&[seed, what, slot], elements))
                .collect()
        };
        Self {
            q: fill(0, heads.q_heads(), heads.dim_qk()),
            k: fill(1, heads.kv_heads(), heads.dim_qk()),
            v: fill(2, heads.kv_heads(), heads.dim_v()),
            d_o: fill(3, heads.q_heads(), heads.dim_v()),
        }
    }

    /// The same values in another precision.
    #[must_use]
    pub fn cast<U: Float>(&self) -> PoolTensors<U> {
        PoolTensors {
            q: cast(&self.q),
            k: cast(&self.k),
            v: cast(&self.v),
            d_o: cast(&self.d_o),
        }
    }
}

impl<T: Float> PoolOutputs<T> {
    /// The same values in another precision.
    #[must_use]
    pub fn cast<U: Float>(&self) -> PoolOutputs<U> {
        PoolOutputs {
            o: cast(&self.o),
            d_q: cast(&self.d_q),
            d_k: cast(&self.d_k),
            d_v: cast(&self.d_v),
        }
    }
}

fn cast<T: Float, U: Float>(slots: &[Vec<T>]) -> Vec<Vec<U>> {
    let convert = |&value: &T| U::from(value).expect("floats convert to floats");
    slots
        .iter()
        .map(|slot| slot.iter().map(convert).collect())
        .collect()
}

/// SplitMix64 (Steele, Lea, Flood 2014) over a keyed stream, as f32-exact values in −1..1, so that
/// every precision starts from the same numbers.
fn values<T: Float>(key: &[u64], elements: usize) -> Vec<T> {
    let mut state = key.iter().fold(0, |state, &word| mix(state ^ word));
    (0..elements)
        .map(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let bits = (mix(state) >> 40) as i32 - (1 << 23);
            T::from(bits).expect("24 bits fit a float") / T::from(1 << 23).expect("a power of two")
        })
        .collect()
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
