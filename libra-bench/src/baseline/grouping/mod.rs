//! Sequences into pools of equal size by what others use, or by chance. A grouping is a list of pools, each a list of
//! positions in the work given.

mod folding;
mod karmarkar_karp;
mod swap;

pub(crate) use folding::folding;
pub(crate) use karmarkar_karp::karmarkar_karp;
pub(crate) use swap::{folding_swap_converged, folding_swap_weak};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Pools, each of positions in what was grouped.
pub(crate) type Grouping = Vec<Vec<usize>>;

/// Pools of `pool_size` in arrival order.
///
/// # Panics
/// As all groupings: unless P divides the number of sequences, as it does in a window's shape.
pub(crate) fn arrival(work: &[u64], pool_size: usize) -> Grouping {
    in_order((0..work.len()).collect(), pool_size)
}

/// Pools of `pool_size` by chance: a shuffle (Fisher–Yates) of the arrival order.
pub(crate) fn random(work: &[u64], pool_size: usize, seed: u64) -> Grouping {
    let mut numbers = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut positions: Vec<usize> = (0..work.len()).collect();
    for last in (1..positions.len()).rev() {
        // The high half of a product: uniform but for 2^-32 at so few positions.
        let other = (u128::from(numbers.next_u64()) * (last as u128 + 1)) >> 64;
        positions.swap(last, other as usize);
    }
    in_order(positions, pool_size)
}

fn in_order(positions: Vec<usize>, pool_size: usize) -> Grouping {
    pools_of(&positions, pool_size);
    positions.chunks(pool_size).map(<[usize]>::to_vec).collect()
}

/// Number of pools, K.
fn pools_of<T>(sequences: &[T], pool_size: usize) -> usize {
    let count = sequences.len();
    assert!(
        count > 0 && pool_size > 0 && count.is_multiple_of(pool_size),
        "{count} sequences make no pools of {pool_size}: a window's shape has whole ones"
    );
    count / pool_size
}

/// Positions, heaviest first, the first of equals first.
fn by_weight(work: &[u64]) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..work.len()).collect();
    positions.sort_by_key(|&position| (std::cmp::Reverse(work[position]), position));
    positions
}

/// Sum of the work of a pool's members.
fn load(work: &[u64], pool: &[usize]) -> u128 {
    pool.iter().map(|&member| u128::from(work[member])).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Group = fn(&[u64], usize) -> Grouping;

    const ALL: [Group; 6] = [
        arrival,
        |work, size| random(work, size, 7),
        folding,
        folding_swap_weak,
        folding_swap_converged,
        karmarkar_karp,
    ];

    pub(super) fn heaviest(work: &[u64], grouping: &[Vec<usize>]) -> u128 {
        let loads = grouping.iter().map(|pool| load(work, pool));
        loads.max().expect("a pool")
    }

    /// The lightest heaviest pool of all groupings.
    fn optimum(work: &[u64], pool_size: usize) -> u128 {
        fn fill(work: &[u64], size: usize, at: usize, pools: &mut [(u128, usize)]) -> u128 {
            if at == work.len() {
                return pools.iter().map(|pool| pool.0).max().expect("a pool");
            }
            let mut best = u128::MAX;
            for pool in 0..pools.len() {
                if pools[pool].1 < size {
                    pools[pool].0 += u128::from(work[at]);
                    pools[pool].1 += 1;
                    best = best.min(fill(work, size, at + 1, pools));
                    pools[pool].0 -= u128::from(work[at]);
                    pools[pool].1 -= 1;
                }
            }
            best
        }
        let mut pools = vec![(0, 0); work.len() / pool_size];
        fill(work, pool_size, 0, &mut pools)
    }

    proptest! {
        #[test]
        fn every_sequence_is_in_one_pool_and_every_pool_is_full(
            work in prop::collection::vec(prop_oneof![0..9u64, 0..1_000_000u64], 24),
            size in prop::sample::select(vec![1usize, 2, 3, 4, 6, 8, 12, 24]),
        ) {
            for group in ALL {
                let grouping = group(&work, size);
                prop_assert!(grouping.iter().all(|pool| pool.len() == size));
                let mut members: Vec<usize> = grouping.concat();
                members.sort_unstable();
                prop_assert_eq!(members, (0..24).collect::<Vec<_>>());
            }
        }

        #[test]
        fn swaps_never_make_it_worse_and_none_is_below_the_optimum(
            work in prop::collection::vec(0..60u64, 8),
            size in prop::sample::select(vec![2usize, 4]),
        ) {
            let of = |group: Group| heaviest(&work, &group(&work, size));
            let optimum = optimum(&work, size);
            prop_assert!(of(folding_swap_weak) <= of(folding));
            prop_assert!(of(folding_swap_converged) <= of(folding));
            for group in ALL {
                prop_assert!(of(group) >= optimum);
            }
            if size == 2 {
                // Heaviest with lightest cannot be bettered.
                prop_assert_eq!((of(folding), of(karmarkar_karp)), (optimum, optimum));
            }
        }
    }

    #[test]
    #[should_panic(expected = "3 sequences make no pools of 2")]
    fn sequences_that_do_not_divide_are_no_window() {
        folding(&[1, 2, 3], 2);
    }

    #[test]
    fn chance_depends_on_the_seed_alone() {
        let work = [0; 64];
        assert_eq!(random(&work, 8, 1), random(&work, 8, 1));
        assert_ne!(random(&work, 8, 1), random(&work, 8, 2));
        assert_ne!(random(&work, 8, 1), arrival(&work, 8));
    }
}
