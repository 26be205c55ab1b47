//! Folding, then swaps between pools, once or until none helps. What the paper compares with under the name
//! Zigzag+Swap is not defined there; its residuals are those of the weak variant.

use std::cmp::Reverse;

use super::{Grouping, folding, load};

/// Folding and one pass: pools ranked by load, the i-th heaviest swaps one pair with the i-th lightest, the first that
/// lowers the heavier of the two. O(D·P).
pub(crate) fn folding_swap_weak(work: &[u64], pool_size: usize) -> Grouping {
    let mut grouping = folding(work, pool_size);
    let mut ranked: Vec<usize> = (0..grouping.len()).collect();
    ranked.sort_by_key(|&pool| (Reverse(load(work, &grouping[pool])), pool));
    for place in 0..ranked.len() / 2 {
        let (heavy, light) = (ranked[place], ranked[ranked.len() - 1 - place]);
        let found = swaps(work, &grouping, heavy, light).next();
        if let Some(swap) = found {
            swap.carry_out(&mut grouping);
        }
    }
    grouping
}

/// Folding and the best swap of the heaviest pool with any other, again and again until none lowers it: the exchange
/// optimum, at most 2 − 2/(K+1) times the best (Schuurman and Vredeveld 2007). O(D·P) a swap.
pub(crate) fn folding_swap_converged(work: &[u64], pool_size: usize) -> Grouping {
    let mut grouping = folding(work, pool_size);
    loop {
        let loads: Vec<u128> = grouping.iter().map(|pool| load(work, pool)).collect();
        let ranked = |&pool: &usize| (loads[pool], Reverse(pool));
        let Some(heavy) = (0..grouping.len()).max_by_key(ranked) else {
            return grouping;
        };
        let all = (0..grouping.len()).flat_map(|light| swaps(work, &grouping, heavy, light));
        // The least heavier load, the first of equals.
        let Some(best) = all.min_by_key(|swap| swap.heavier) else {
            return grouping;
        };
        best.carry_out(&mut grouping);
    }
}

/// A member of one pool for one of another.
#[derive(Clone, Copy, Debug)]
struct Swap {
    /// Pool and place of both.
    ends: [(usize, usize); 2],
    /// Load of the heavier pool afterwards.
    heavier: u128,
}

impl Swap {
    fn carry_out(self, grouping: &mut Grouping) {
        let [(a, i), (b, j)] = self.ends;
        let (from, to) = (grouping[a][i], grouping[b][j]);
        (grouping[a][i], grouping[b][j]) = (to, from);
    }
}

/// Swaps that lower the heavier of `heavy` and `light`, in order of their places.
fn swaps<'a>(
    work: &'a [u64],
    grouping: &'a Grouping,
    heavy: usize,
    light: usize,
) -> impl Iterator<Item = Swap> + 'a {
    let (above, below) = (load(work, &grouping[heavy]), load(work, &grouping[light]));
    let pairs = (0..grouping[heavy].len())
        .flat_map(move |i| (0..grouping[light].len()).map(move |j| (i, j)));
    pairs.filter_map(move |(i, j)| {
        let (from, to) = (work[grouping[heavy][i]], work[grouping[light][j]]);
        let moved = u128::from(from.checked_sub(to)?);
        let heavier = (above - moved).max(below + moved);
        (moved > 0 && heavier < above).then_some(Swap {
            ends: [(heavy, i), (light, j)],
            heavier,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::heaviest;
    use super::*;

    #[test]
    fn a_pass_swaps_once_where_convergence_goes_on() {
        // Folded: 20 3 2 1, 10 3 2 1, 9 4 2 1.
        let work = [20, 10, 9, 4, 3, 3, 2, 2, 2, 1, 1, 1];
        let of = |grouping: Grouping| heaviest(&work, &grouping);
        assert_eq!(of(folding(&work, 4)), 26);
        // 3 for 2 with the lightest; then only 20 and the three lightest are best.
        assert_eq!(of(folding_swap_weak(&work, 4)), 25);
        assert_eq!(of(folding_swap_converged(&work, 4)), 23);
    }
}
