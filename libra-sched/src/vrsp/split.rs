//! The best division of two pools of equal size, out of all C(2P, P).
//!
//! O(2^P·P) by meeting in the middle.
//!
//! Source: Horowitz and Sahni (1974).

use super::pools::Pools;
use super::ranked::Ranked;

/// Pools of at most this many sequences: a split lists 2^P subsets a half.
pub(super) const SPLIT_POOL: usize = 12;

/// Lists of subsets.
#[derive(Clone, Debug, Default)]
pub(super) struct Split {
    both: Vec<u32>,
    lows: Vec<Vec<(u64, u32)>>,
    highs: Vec<Vec<(u64, u32)>>,
}

impl Split {
    /// Divides pools `a` and `b` in the best way; whether that is better than before.
    pub(super) fn divide(
        &mut self,
        ranked: &Ranked,
        pools: &mut Pools,
        a: usize,
        b: usize,
    ) -> bool {
        let size = pools.pool(a).len();
        if size != pools.pool(b).len() || size > SPLIT_POOL {
            return false;
        }
        self.both.clear();
        self.both.extend_from_slice(pools.pool(a));
        self.both.extend_from_slice(pools.pool(b));
        self.both.sort_unstable();
        let sum = pools.loads[a] + pools.loads[b];
        let before = pools.loads[a].max(pools.loads[b]);
        let (mask, load) = self.best_half(ranked.weights(), size, sum / 2);
        if load.max(sum - load) >= before {
            return false;
        }
        let (mut at_a, mut at_b) = (pools.places(a).start, pools.places(b).start);
        for (place, &member) in self.both.iter().enumerate() {
            let at = if mask >> place & 1 == 1 {
                &mut at_a
            } else {
                &mut at_b
            };
            pools.members[*at] = member;
            *at += 1;
        }
        pools.loads[a] = load;
        pools.loads[b] = sum - load;
        true
    }

    /// The subset of `size` of the `2·size` members whose sum is nearest to `target`: its bit mask
    /// and sum, the least mask of equals.
    fn best_half(&mut self, weights: &[u64], size: usize, target: u64) -> (u64, u64) {
        let (low, high) = self.both.split_at(size);
        list(&mut self.lows, weights, low);
        list(&mut self.highs, weights, high);
        let mut best = (u64::MAX, u64::MAX, 0);
        for count in 0..=size {
            let (lows, highs) = (&self.lows[count], &self.highs[size - count]);
            // As the low half's sum rises, the high half's falls.
            let mut above = highs.len();
            for &(sum, mask) in lows {
                while above > 0 && sum + highs[above - 1].0 > target {
                    above -= 1;
                }
                for at in [above.wrapping_sub(1), above] {
                    if let Some(&(other, other_mask)) = highs.get(at) {
                        let load = sum + other;
                        let mask = u64::from(mask) | u64::from(other_mask) << size;
                        best = best.min((load.abs_diff(target), mask, load));
                    }
                }
            }
        }
        (best.1, best.2)
    }
}

/// Subsets of `half` by their size, each list rising by sum.
fn list(lists: &mut Vec<Vec<(u64, u32)>>, weights: &[u64], half: &[u32]) {
    lists.iter_mut().for_each(Vec::clear);
    lists.resize_with(lists.len().max(half.len() + 1), Vec::new);
    for mask in 0u32..1 << half.len() {
        let mut sum = 0;
        let mut left = mask;
        while left > 0 {
            sum += weights[half[left.trailing_zeros() as usize] as usize];
            left &= left - 1;
        }
        lists[mask.count_ones() as usize].push((sum, mask));
    }
    lists.iter_mut().for_each(|list| list.sort_unstable());
}
