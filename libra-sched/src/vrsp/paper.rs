//! Alg. 1: longest-processing-time-first into pools of exactly P sequences.
//!
//! *Paper*: §4.2, Alg. 1. Graham's LPT (1969) with a cardinality limit: a full pool leaves the
//! heap. O(D log D) for the sort, O(D log K) for the heap.

use std::cmp::Reverse;
use std::ops::Add;

use binary_heap_plus::{BinaryHeap, MinComparator, PeekMut};

use super::pools::Pools;
use super::ranked::Ranked;

/// Memory of the heap.
#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    open: Vec<(u64, u32)>,
    packed: Vec<u64>,
    filled: Vec<u32>,
}

/// Alg. 1 over sorted work, into `pools` of one size.
pub(super) fn fill(heap: &mut Heap, ranked: &Ranked, pool_size: usize, pools: &mut Pools) {
    fill_ranks(heap, ranked, 0..ranked.len() as u32, pool_size, pools);
}

/// Alg. 1 over some ranks, which fill the first of `pools`; pools beyond them stay empty.
pub(super) fn fill_ranks(
    heap: &mut Heap,
    ranked: &Ranked,
    ranks: std::ops::Range<u32>,
    pool_size: usize,
    pools: &mut Pools,
) {
    let Heap {
        open,
        packed,
        filled,
    } = heap;
    pools.reset(std::iter::repeat_n(pool_size, ranked.len() / pool_size));
    filled.clear();
    filled.resize(pools.len(), 0);
    let Pools { members, loads, .. } = pools;
    let loads = &mut loads[..ranks.len() / pool_size];
    let order = ranks.map(|rank| (ranked.weights()[rank as usize], rank));
    let bits = usize::BITS - (loads.len().max(1) - 1).leading_zeros();
    if ranked.total().leading_zeros() >= bits {
        pour_packed(packed, filled, order, pool_size, members, loads, bits);
    } else {
        pour(open, filled, order, pool_size, members, loads);
    }
}

/// Alg. 1 over any weights with a total order: members and loads of every pool.
pub(super) fn fill_keys<Load>(weights: &[Load], pool_size: usize) -> (Vec<u32>, Vec<Load>)
where
    Load: Copy + Ord + Default + Add<Output = Load>,
{
    let pools = weights.len() / pool_size;
    let mut order: Vec<(Load, u32)> = weights.iter().copied().zip(0..).collect();
    order.sort_unstable_by_key(|&(weight, index)| (Reverse(weight), index));
    let (mut members, mut loads) = (vec![0; weights.len()], vec![Load::default(); pools]);
    pour(
        &mut Vec::new(),
        &mut vec![0; pools],
        order.into_iter(),
        pool_size,
        &mut members,
        &mut loads,
    );
    (members, loads)
}

/// As [`pour`], where a load and a pool fit one word: one comparison orders (load, pool).
fn pour_packed(
    open: &mut Vec<u64>,
    filled: &mut [u32],
    order: impl Iterator<Item = (u64, u32)>,
    pool_size: usize,
    members: &mut [u32],
    loads: &mut [u64],
    bits: u32,
) {
    let low = (1u64 << bits) - 1;
    open.clear();
    open.extend(0..loads.len() as u64);
    let mut heap = BinaryHeap::from_vec_cmp(std::mem::take(open), MinComparator);
    for (weight, index) in order {
        let mut lightest = heap
            .peek_mut()
            .expect("K pools of P slots for K*P sequences");
        let pool = (*lightest & low) as usize;
        *lightest += weight << bits;
        members[pool * pool_size + filled[pool] as usize] = index;
        filled[pool] += 1;
        if filled[pool] as usize == pool_size {
            loads[pool] = *lightest >> bits;
            PeekMut::pop(lightest);
        }
    }
    *open = heap.into_vec();
}

/// The loop of Alg. 1: the next of `order`, heaviest first, goes to the lightest open pool.
fn pour<Load>(
    open: &mut Vec<(Load, u32)>,
    filled: &mut [u32],
    order: impl Iterator<Item = (Load, u32)>,
    pool_size: usize,
    members: &mut [u32],
    loads: &mut [Load],
) where
    Load: Copy + Ord + Default + Add<Output = Load>,
{
    open.clear();
    open.extend((0..loads.len() as u32).map(|pool| (Load::default(), pool)));
    let mut heap = BinaryHeap::from_vec_cmp(std::mem::take(open), MinComparator);
    for (weight, index) in order {
        let mut lightest = heap
            .peek_mut()
            .expect("K pools of P slots for K*P sequences");
        let pool = lightest.1 as usize;
        lightest.0 = lightest.0 + weight;
        members[pool * pool_size + filled[pool] as usize] = index;
        filled[pool] += 1;
        if filled[pool] as usize == pool_size {
            loads[pool] = lightest.0;
            PeekMut::pop(lightest);
        }
    }
    *open = heap.into_vec();
}
