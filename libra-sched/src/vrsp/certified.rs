//! Pools near the proved bound: Alg. 1, then trades, then exact splits of pool pairs.
//!
//! 1. **Start**: Alg. 1. Where the bound comes from outliers and the search from there stays above
//!    it, once more with the heaviest sequence beside exactly the P−1 lightest and Alg. 1 for the
//!    others; the lighter of the two results stands.
//! 2. **Trade** until the bound, or until no trade helps: `trades.rs`.
//! 3. **Split** (small windows): the heaviest pool and a partner are divided anew in the best way,
//!    for each partner in turn, until no division helps.
//! 4. **Search** (small windows that are still far from the bound): all placements, until the best
//!    is proved or a number of steps is used up.
//!
//! Every step lowers the heaviest pool or ends the search, and the number of steps is bounded, so
//! the answer depends on the weights alone, never on a clock.

use super::bound::{BoundKind, PoolBound};
use super::exact::Exact;
use super::paper;
use super::pools::Pools;
use super::ranked::Ranked;
use super::split::{SPLIT_POOL, Split};
use super::trades::{NEAR_BITS, Trades};

/// Windows of at most this many sequences get the exact split of pairs.
const SMALL_WINDOW: usize = 64;
/// Splits tried at the most, improving or not.
const SPLITS: usize = 256;

/// Memory of the search.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    trades: Trades,
    split: Split,
    exact: Exact,
    partners: Vec<usize>,
    other: Pools,
}

impl Search {
    /// Fills `pools` of one size, to `bound` or as near as the search comes; the bound, or a better
    /// one that was proved on the way.
    pub(super) fn place(
        &mut self,
        heap: &mut paper::Heap,
        ranked: &Ranked,
        size: usize,
        bound: PoolBound,
        pools: &mut Pools,
    ) -> PoolBound {
        paper::fill(heap, ranked, size, pools);
        self.improve(ranked, pools, bound.load);
        let outlier = matches!(bound.kind, BoundKind::Heaviest { .. }) && pools.len() > 1;
        if outlier && pools.worst() > bound.load {
            let mut other = std::mem::take(&mut self.other);
            beside_outlier(heap, ranked, size, &mut other);
            self.improve(ranked, &mut other, bound.load);
            if other.worst() < pools.worst() {
                pools.copy_from(&other);
            }
            self.other = other;
        }
        let far = pools.worst() - bound.load > bound.load >> NEAR_BITS;
        if far && ranked.len() <= SMALL_WINDOW && self.exact.run(ranked, pools, bound.load) {
            let load = pools.worst();
            // What meets the bound needs no other proof.
            if load > bound.load {
                let kind = BoundKind::Search;
                return PoolBound {
                    load,
                    kind,
                    ..bound
                };
            }
        }
        bound
    }

    /// Trades, and splits in a small window, until `bound` (weighed) or none helps.
    pub(super) fn improve(&mut self, ranked: &Ranked, pools: &mut Pools, bound: u64) {
        pools.sort();
        let steps = 4 * ranked.len();
        self.trades.start(ranked, pools);
        self.trades.run(ranked, pools, bound, steps);
        if ranked.len() <= SMALL_WINDOW && pools.pool(0).len() <= SPLIT_POOL {
            self.split_until(ranked, pools, bound);
        }
    }

    /// Divides the heaviest pool and a partner anew, partners from the lightest on, until the
    /// heaviest pool is at `bound` or no partner helps.
    fn split_until(&mut self, ranked: &Ranked, pools: &mut Pools, bound: u64) {
        let mut left = SPLITS;
        loop {
            let from = pools.heaviest();
            self.partners.clear();
            self.partners
                .extend((0..pools.len()).filter(|&pool| pool != from));
            self.partners
                .sort_unstable_by_key(|&pool| (pools.weighed(pool), pool));
            let mut improved = false;
            for &to in &self.partners {
                if pools.weighed(from) <= bound || left == 0 {
                    return;
                }
                left -= 1;
                improved = self.split.divide(ranked, pools, from, to);
                if improved {
                    break;
                }
            }
            if !improved {
                return;
            }
            self.trades.start(ranked, pools);
            self.trades.run(ranked, pools, bound, 4 * ranked.len());
        }
    }
}

/// Alg. 1 with the heaviest sequence and the P−1 lightest set apart as the last pool.
fn beside_outlier(heap: &mut paper::Heap, ranked: &Ranked, size: usize, pools: &mut Pools) {
    let count = ranked.len() / size;
    let lightest = ranked.len() + 1 - size;
    paper::fill_ranks(heap, ranked, 1..lightest as u32, size, pools);
    let last = pools.places(count - 1);
    pools.members[last.start] = 0;
    for (place, rank) in (last.start + 1..last.end).zip(lightest as u32..) {
        pools.members[place] = rank;
    }
    pools.loads[count - 1] = ranked.heaviest(1) + ranked.lightest(size - 1);
}
