//! Alg. 1: longest-processing-time-first into pools of exactly P sequences.
//!
//! *Paper*: §4.2, Alg. 1. Graham's LPT (1969) with a cardinality limit: a full pool leaves the
//! heap. O(D log D) for the sort, O(D log K) for the heap.

use std::cmp::Reverse;
use std::ops::Add;

use binary_heap_plus::{BinaryHeap, MinComparator, PeekMut};

use super::SequencePlacement;
use crate::ids::SequenceId;

/// Memory that [`super::place_with`] reuses.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    order: Vec<(u64, u32)>,
    open: Vec<(u64, u32)>,
    filled: Vec<u32>,
}

/// Alg. 1 over integer work.
pub(super) fn place(scratch: &mut Scratch, work: &[u64], pool_size: usize) -> SequencePlacement {
    let Scratch {
        order,
        open,
        filled,
    } = scratch;
    fill(order, open, filled, work, pool_size)
}

/// Alg. 1 over any weights with a total order.
pub(super) fn place_keys<Load>(weights: &[Load], pool_size: usize) -> SequencePlacement<Load>
where
    Load: Copy + Ord + Default + Add<Output = Load>,
{
    fill(
        &mut Vec::new(),
        &mut Vec::new(),
        &mut Vec::new(),
        weights,
        pool_size,
    )
}

fn fill<Load>(
    order: &mut Vec<(Load, u32)>,
    open: &mut Vec<(Load, u32)>,
    filled: &mut Vec<u32>,
    weights: &[Load],
    pool_size: usize,
) -> SequencePlacement<Load>
where
    Load: Copy + Ord + Default + Add<Output = Load>,
{
    let pools = weights.len() / pool_size;
    order.clear();
    order.extend(
        weights
            .iter()
            .zip(0..)
            .map(|(&weight, index)| (weight, index)),
    );
    order.sort_unstable_by_key(|&(weight, index)| (Reverse(weight), index));
    filled.clear();
    filled.resize(pools, 0);
    open.clear();
    open.extend((0..pools as u32).map(|pool| (Load::default(), pool)));

    let mut members = vec![SequenceId::default(); weights.len()];
    let mut loads = vec![Load::default(); pools];
    let mut heap = BinaryHeap::from_vec_cmp(std::mem::take(open), MinComparator);
    for &(weight, index) in order.iter() {
        let mut lightest = heap
            .peek_mut()
            .expect("K pools of P slots for K*P sequences");
        let pool = lightest.1 as usize;
        lightest.0 = lightest.0 + weight;
        members[pool * pool_size + filled[pool] as usize] = SequenceId(index);
        filled[pool] += 1;
        if filled[pool] as usize == pool_size {
            loads[pool] = lightest.0;
            PeekMut::pop(lightest);
        }
    }
    *open = heap.into_vec();
    SequencePlacement {
        pool_size,
        members,
        loads,
    }
}
