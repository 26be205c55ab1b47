//! Pools near the proved bound: LPT, then trades, then an exact split of pool pairs.
//!
//! 1. **Start**: Alg. 1. Where the bound comes from outliers and the search from there stays above
//!    it, once more with the heaviest sequence beside exactly the P−1 lightest and Alg. 1 for the
//!    others; the lighter of the two results stands.
//! 2. **Trade**: the heaviest pool trades one member with another pool so that the heavier of the
//!    two becomes as light as can be, over all partners, or two members for two where no single one
//!    helps; until the bound, or until no trade helps. Members are kept sorted, so the best pair of
//!    two pools is found by a merge, and most partners are ruled out by the sum of the loads.
//! 3. **Split** (small windows): the heaviest pool and a partner are divided anew in the best of all
//!    C(2P, P) ways, by meeting in the middle, for each partner in turn, until no division helps.
//!
//! Every step lowers the heaviest pool or ends the search, and the number of steps is bounded, so
//! the answer depends on the weights alone, never on a clock.
//!
//! Source: the exchange neighbourhood of Babel, Kellerer and Kotov (1998) for exact-cardinality
//! partitioning; Horowitz and Sahni (1974) for meeting in the middle.

use super::bound::{BoundKind, PoolBound};
use super::{SequencePlacement, paper};
use crate::ids::SequenceId;

/// Two members are traded for two only while the heaviest pool is above the bound by more than one
/// part in 2 to this: a fortieth of a per cent, below what a step's jitter lets anybody see.
const NEAR_BITS: u32 = 12;
/// Windows of at most this many sequences get the exact split of pairs.
const SMALL_WINDOW: usize = 64;
/// Pools of at most this many sequences: a split lists 2^P subsets a half.
const SPLIT_POOL: usize = 12;
/// Splits tried at the most, improving or not.
const SPLITS: usize = 256;

/// Members of the pools with their weights, each pool ascending by (weight, id), and the loads.
struct Pools {
    size: usize,
    members: Vec<(u64, u32)>,
    loads: Vec<u64>,
}

/// Pools of `pool_size`, at `bound` or as near as the search comes.
pub(super) fn place(
    scratch: &mut paper::Scratch,
    work: &[u64],
    total: u64,
    pool_size: usize,
    bound: PoolBound,
) -> SequencePlacement {
    let search = |start: SequencePlacement| {
        let mut pools = Pools::new(start, work);
        pools.trade_until(bound.load, 4 * work.len());
        if work.len() <= SMALL_WINDOW && pool_size <= SPLIT_POOL {
            pools.split_until(bound.load);
        }
        pools
    };
    let pools = search(paper::place(scratch, work, total, pool_size));
    let outlier = matches!(bound.kind, BoundKind::Heaviest { .. }) && work.len() > pool_size;
    if outlier && pools.load() > bound.load {
        let beside = search(beside_outlier(scratch, work, total, pool_size));
        if beside.load() < pools.load() {
            return beside.finish();
        }
    }
    pools.finish()
}

impl Pools {
    fn new(start: SequencePlacement, work: &[u64]) -> Self {
        let size = start.pool_size;
        let weigh = |&id: &SequenceId| (work[id.index()], id.0);
        let mut pools = Self {
            size,
            members: start.members.iter().map(weigh).collect(),
            loads: start.loads,
        };
        pools
            .members
            .chunks_mut(size)
            .for_each(<[_]>::sort_unstable);
        pools
    }

    /// Load of the heaviest pool.
    fn load(&self) -> u64 {
        self.loads[self.heaviest()]
    }

    fn pool(&self, pool: usize) -> &[(u64, u32)] {
        &self.members[pool * self.size..][..self.size]
    }

    /// The heaviest pool, the first of equals.
    fn heaviest(&self) -> usize {
        let key = |&pool: &usize| (self.loads[pool], std::cmp::Reverse(pool));
        (0..self.loads.len())
            .max_by_key(key)
            .expect("a window has a pool")
    }

    /// Best-improvement trades until the heaviest pool is at `bound`, or none helps, or `steps`:
    /// one member for one, and two for two where that fails.
    fn trade_until(&mut self, bound: u64, steps: usize) {
        for _ in 0..steps {
            let from = self.heaviest();
            if self.loads[from] <= bound {
                return;
            }
            let far = self.loads[from] - bound > bound >> NEAR_BITS;
            let pairs = || if far { self.best_trade(from, 2) } else { None };
            let Some(trade) = self.best_trade(from, 1).or_else(pairs) else {
                return;
            };
            self.apply(from, trade);
        }
    }

    /// The trade of `count` members for as many that leaves the heavier of two pools lightest.
    fn best_trade(&self, from: usize, count: usize) -> Option<Trade> {
        let gives = bundles(self.pool(from), count);
        let heavy = self.loads[from];
        let key = |&pool: &usize| (self.loads[pool], pool);
        let lightest = (0..self.loads.len()).min_by_key(key)?;
        let mut best: Option<Trade> = None;
        // The lightest partner first: what it leaves rules most others out.
        for to in std::iter::once(lightest).chain(0..self.loads.len()) {
            let light = self.loads[to];
            // No trade leaves less than half of both.
            let ruled_out = best.is_some_and(|best| best.after < (heavy + light).div_ceil(2));
            if light < heavy && !ruled_out {
                let takes = bundles(self.pool(to), count);
                let found = best_pair(&gives, &takes, heavy, light);
                let trade = found.map(|(after, give, take)| Trade {
                    after,
                    to,
                    give,
                    take,
                });
                best = best.into_iter().chain(trade).min();
            }
        }
        best
    }

    fn apply(&mut self, from: usize, trade: Trade) {
        let mut difference = 0;
        for (give, take) in trade.give.into_iter().zip(trade.take) {
            let (give, take) = (
                from * self.size + give as usize,
                trade.to * self.size + take as usize,
            );
            difference += i128::from(self.members[give].0) - i128::from(self.members[take].0);
            self.members.swap(give, take);
            if trade.give[0] == trade.give[1] {
                break;
            }
        }
        let difference = u64::try_from(difference).expect("a trade makes the heavier pool lighter");
        self.loads[from] -= difference;
        self.loads[trade.to] += difference;
        for pool in [from, trade.to] {
            self.members[pool * self.size..][..self.size].sort_unstable();
        }
    }

    /// Divides the heaviest pool and a partner anew, partners from the lightest on, until the
    /// heaviest pool is at `bound` or no partner helps.
    fn split_until(&mut self, bound: u64) {
        let mut left = SPLITS;
        loop {
            let from = self.heaviest();
            let mut partners: Vec<usize> = (0..self.loads.len()).filter(|&p| p != from).collect();
            partners.sort_by_key(|&pool| (self.loads[pool], pool));
            let mut improved = false;
            for to in partners {
                if self.loads[from] <= bound || left == 0 {
                    return;
                }
                left -= 1;
                improved = self.split(from, to);
                if improved {
                    break;
                }
            }
            if !improved {
                return;
            }
            self.trade_until(bound, 4 * self.members.len());
        }
    }

    /// Divides two pools in the best way; whether that is better than before.
    fn split(&mut self, a: usize, b: usize) -> bool {
        let mut both: Vec<(u64, u32)> = [self.pool(a), self.pool(b)].concat();
        both.sort_unstable();
        let sum: u64 = self.loads[a] + self.loads[b];
        let before = self.loads[a].max(self.loads[b]);
        let (mask, load) = best_half(&both, self.size, sum / 2);
        if load.max(sum - load) >= before {
            return false;
        }
        let (mut at_a, mut at_b) = (a * self.size, b * self.size);
        for (place, &member) in both.iter().enumerate() {
            let at = if mask >> place & 1 == 1 {
                &mut at_a
            } else {
                &mut at_b
            };
            self.members[*at] = member;
            *at += 1;
        }
        self.loads[a] = load;
        self.loads[b] = sum - load;
        true
    }

    fn finish(self) -> SequencePlacement {
        SequencePlacement {
            pool_size: self.size,
            // Heaviest first within a pool, as Alg. 1 assigns them.
            members: self
                .members
                .chunks(self.size)
                .flat_map(|pool| pool.iter().rev().map(|&(_, id)| SequenceId(id)))
                .collect(),
            loads: self.loads,
        }
    }
}

/// Members of the heaviest pool for members of another; ordered by what it leaves, then by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Trade {
    /// The heavier of the two loads after it.
    after: u64,
    to: usize,
    give: [u32; 2],
    take: [u32; 2],
}

/// One or two members of a pool: their weight and places, twice the same place for one.
type Bundle = (u64, [u32; 2]);

/// All bundles of `count` (1 or 2) members, by (weight, places).
fn bundles(pool: &[(u64, u32)], count: usize) -> Vec<Bundle> {
    let places = 0..pool.len() as u32;
    let weight = |place: u32| pool[place as usize].0;
    if count == 1 {
        return places.map(|place| (weight(place), [place; 2])).collect();
    }
    let mut pairs: Vec<Bundle> = places
        .clone()
        .flat_map(|a| (a + 1..places.end).map(move |b| (a, b)))
        .map(|(a, b)| (weight(a) + weight(b), [a, b]))
        .collect();
    pairs.sort_unstable();
    pairs
}

/// The pair whose difference is nearest to half the difference of the loads. Both lists rise, so
/// the partner's place only moves up.
fn best_pair(
    gives: &[Bundle],
    takes: &[Bundle],
    heavy: u64,
    light: u64,
) -> Option<(u64, [u32; 2], [u32; 2])> {
    let half = (heavy - light) / 2;
    let mut best = None;
    let mut below = 0;
    for &(weight, give) in gives {
        // First partner whose weight leaves a difference of at most half.
        while below < takes.len() && weight.saturating_sub(takes[below].0) > half {
            below += 1;
        }
        for &(other, take) in &takes[below.saturating_sub(1)..(below + 1).min(takes.len())] {
            let difference = weight.saturating_sub(other);
            if difference > 0 && difference < heavy - light {
                let after = (heavy - difference).max(light + difference);
                if best.is_none_or(|best| (after, give, take) < best) {
                    best = Some((after, give, take));
                }
            }
        }
    }
    best
}

/// Alg. 1 with the heaviest sequence and the P−1 lightest set apart as the first pool.
fn beside_outlier(
    scratch: &mut paper::Scratch,
    work: &[u64],
    total: u64,
    size: usize,
) -> SequencePlacement {
    let mut order: Vec<(u64, u32)> = work.iter().copied().zip(0..).collect();
    order.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let rest = &order[1..=work.len() - size];
    let apart: Vec<(u64, u32)> = [&order[..1], &order[work.len() - size + 1..]].concat();
    let load: u64 = apart.iter().map(|&(weight, _)| weight).sum();
    let weights: Vec<u64> = rest.iter().map(|&(weight, _)| weight).collect();
    let placed = paper::place(scratch, &weights, total - load, size);
    let of_rest = placed
        .members
        .iter()
        .map(|id| SequenceId(rest[id.index()].1));
    SequencePlacement {
        pool_size: size,
        members: apart
            .iter()
            .map(|&(_, id)| SequenceId(id))
            .chain(of_rest)
            .collect(),
        loads: std::iter::once(load).chain(placed.loads).collect(),
    }
}

/// The subset of `size` of the `2·size` members whose sum is nearest to `target`: its bit mask and
/// sum, the least mask of equals.
fn best_half(members: &[(u64, u32)], size: usize, target: u64) -> (u64, u64) {
    let (low, high) = members.split_at(size);
    let by_count = |half: &[(u64, u32)]| -> Vec<Vec<(u64, u32)>> {
        let mut lists = vec![Vec::new(); size + 1];
        for mask in 0u32..1 << size {
            let sum = (0..size)
                .filter(|&i| mask >> i & 1 == 1)
                .map(|i| half[i].0)
                .sum();
            lists[mask.count_ones() as usize].push((sum, mask));
        }
        lists.iter_mut().for_each(|list| list.sort_unstable());
        lists
    };
    let (lows, highs) = (by_count(low), by_count(high));
    let mut best = (u64::MAX, u64::MAX, 0);
    for count in 0..=size {
        let (lows, highs) = (&lows[count], &highs[size - count]);
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
