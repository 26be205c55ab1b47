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
    packed_order: Vec<u64>,
    packed_open: Vec<u64>,
    filled: Vec<u32>,
}

/// Alg. 1 over integer work that adds up to `total`.
pub(super) fn place(
    scratch: &mut Scratch,
    work: &[u64],
    total: u64,
    pool_size: usize,
) -> SequencePlacement {
    // An index and a load share a word where both fit: one comparison orders (load, id).
    let bits = usize::BITS - (work.len() - 1).leading_zeros();
    if total.leading_zeros() >= bits {
        place_packed(scratch, work, bits, pool_size)
    } else {
        place_keys(work, pool_size)
    }
}

/// Alg. 1 where `total << bits` fits a word and an index fits `bits`.
fn place_packed(
    scratch: &mut Scratch,
    work: &[u64],
    bits: u32,
    pool_size: usize,
) -> SequencePlacement {
    let Scratch {
        packed_order: order,
        packed_open: open,
        filled,
    } = scratch;
    let pools = work.len() / pool_size;
    let low = (1u64 << bits) - 1;
    // Complemented indices: the largest key is the heaviest sequence with the smallest index.
    order.clear();
    order.extend((0..).zip(work).map(|(index, &w)| w << bits | (low - index)));
    order.sort_unstable();
    filled.clear();
    filled.resize(pools, 0);
    open.clear();
    open.extend(0..pools as u64);

    let mut members = vec![SequenceId::default(); work.len()];
    let mut loads = vec![0; pools];
    let mut heap = BinaryHeap::from_vec_cmp(std::mem::take(open), MinComparator);
    for key in order.iter().rev() {
        let mut lightest = heap
            .peek_mut()
            .expect("K pools of P slots for K*P sequences");
        let pool = (*lightest & low) as usize;
        *lightest += key & !low;
        members[pool * pool_size + filled[pool] as usize] = SequenceId((low - (key & low)) as u32);
        filled[pool] += 1;
        if filled[pool] as usize == pool_size {
            loads[pool] = *lightest >> bits;
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

/// Alg. 1 over any weights with a total order.
pub(super) fn place_keys<Load>(weights: &[Load], pool_size: usize) -> SequencePlacement<Load>
where
    Load: Copy + Ord + Default + Add<Output = Load>,
{
    let pools = weights.len() / pool_size;
    let mut order: Vec<(Load, u32)> = weights.iter().copied().zip(0..).collect();
    order.sort_unstable_by_key(|&(weight, index)| (Reverse(weight), index));
    let mut filled = vec![0; pools];
    let open = (0..pools as u32)
        .map(|pool| (Load::default(), pool))
        .collect();
    let mut members = vec![SequenceId::default(); weights.len()];
    let mut loads = vec![Load::default(); pools];
    let mut heap = BinaryHeap::from_vec_cmp(open, MinComparator);
    for (weight, index) in order {
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
    SequencePlacement {
        pool_size,
        members,
        loads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_words_decide_as_pairs_do() {
        let mut state = 7u64;
        for round in 0..300 {
            let (pools, pool_size) = (1 + round % 9, 1 + round % 5);
            let work: Vec<u64> = (0..pools * pool_size)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    // Few distinct values: ties are what the two could decide differently.
                    state >> 61
                })
                .collect();
            let total = work.iter().sum();
            let packed = place(&mut Scratch::default(), &work, total, pool_size);
            assert_eq!(packed, place_keys(&work, pool_size), "{work:?}");
        }
    }

    #[test]
    fn work_that_leaves_no_room_for_an_index_is_placed_all_the_same() {
        let work = [u64::MAX / 4; 4];
        let placed = place(&mut Scratch::default(), &work, u64::MAX - 3, 2);
        assert_eq!(placed.loads(), [u64::MAX / 4 * 2; 2]);
    }
}
