//! Trades between pools: the heaviest pool gives one or two members for as many of another.
//!
//! The trade is the one that leaves the heavier of the two pools lightest, over all partners. Members
//! are kept heaviest first, so the best trade of two pools is found by a merge; pairs of members
//! are listed once and again only for pools that changed. Most partners are ruled out by the sum of
//! the two loads. O(D) a step with one member, O(D·P) with two.
//!
//! Source: the exchange neighbourhood of Babel, Kellerer and Kotov (1998) for exact-cardinality
//! partitioning.

use std::cmp::Reverse;

use super::pools::Pools;
use super::ranked::Ranked;

/// Two members are traded for two only while the heaviest pool is above the bound by more than one
/// part in 2 to this: a fortieth of a per cent, below what a step's jitter lets anybody see.
pub(super) const NEAR_BITS: u32 = 12;
/// Pools beyond this many members trade single ones only: pairs would be 2,016 a pool.
const PAIRS_POOL: usize = 64;

/// Trades of other pools, one after the other, while the heaviest pool has none that helps.
const ASIDE: u32 = 4;

/// One or two members of a pool: their weight and places, twice the same place for one.
type Bundle = (u64, [u32; 2]);

/// Members of one pool for members of a lighter one.
#[derive(Clone, Copy, Debug)]
struct Trade {
    /// The heavier of the two weighed loads after it.
    after: u64,
    from: usize,
    to: usize,
    give: [u32; 2],
    take: [u32; 2],
}

/// Lists that trades are found in.
#[derive(Clone, Debug, Default)]
pub(super) struct Trades {
    /// Members of a pool as bundles of one, pool by pool.
    singles: Vec<Bundle>,
    /// Bundles of two, pool by pool, heaviest first; empty until they are needed.
    pairs: Vec<Vec<Bundle>>,
    order: Vec<usize>,
}

impl Trades {
    /// Lists the members of `pools`, which are heaviest first.
    pub(super) fn start(&mut self, ranked: &Ranked, pools: &Pools) {
        self.singles.clear();
        let weigh = |(place, &rank): (u32, &u32)| (ranked.weights()[rank as usize], [place; 2]);
        let members = (0..).zip(&pools.members).map(weigh);
        self.singles.extend(members);
        self.pairs.iter_mut().for_each(Vec::clear);
        self.pairs
            .resize_with(pools.len().max(self.pairs.len()), Vec::new);
    }

    /// Best trades until the heaviest pool is at `bound` (weighed), or none helps, or `steps`.
    ///
    /// Where none of the heaviest pool helps, the next pool that has one trades a single member:
    /// other members then meet the heaviest pool.
    pub(super) fn run(&mut self, ranked: &Ranked, pools: &mut Pools, bound: u64, steps: usize) {
        let (mut worst, mut aside) = (u64::MAX, 0);
        for _ in 0..steps {
            let from = pools.heaviest();
            let weighed = pools.weighed(from);
            if weighed <= bound {
                return;
            }
            if weighed < worst {
                (worst, aside) = (weighed, 0);
            }
            let far = weighed - bound > bound >> NEAR_BITS;
            let mut trade = self.best(pools, from, bound, false);
            if trade.is_none() && far {
                trade = self.best(pools, from, bound, true);
                if trade.is_none() && aside < ASIDE {
                    aside += 1;
                    trade = self.best_aside(pools, bound);
                }
            }
            let Some(trade) = trade else {
                return;
            };
            self.apply(ranked, pools, trade);
        }
    }

    /// The best trade of a single member of the heaviest pool that has one.
    fn best_aside(&mut self, pools: &Pools, bound: u64) -> Option<Trade> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(0..pools.len());
        order.sort_unstable_by_key(|&pool| (Reverse(pools.weighed(pool)), pool));
        let trade = |&pool: &usize| self.best(pools, pool, bound, false);
        let found = order.iter().find_map(trade);
        self.order = order;
        found
    }

    /// The trade of `from` that leaves the heavier of two pools lightest, the lightest partner
    /// first; the first that leaves both at `bound` will do.
    fn best(&mut self, pools: &Pools, from: usize, bound: u64, in_pairs: bool) -> Option<Trade> {
        let key = |&pool: &usize| (pools.weighed(pool), pool);
        let lightest = (0..pools.len()).min_by_key(key)?;
        let heavy = pools.weighed(from);
        let mut best: Option<Trade> = None;
        let mut most = heavy;
        for to in std::iter::once(lightest).chain(0..pools.len()) {
            let least = evened(pools, from, to);
            if pools.weighed(to) >= heavy || least >= most {
                continue;
            }
            let found = if in_pairs {
                self.list_pairs(pools, from);
                self.list_pairs(pools, to);
                best_pair(&self.pairs[from], &self.pairs[to], pools, (from, to), most)
            } else {
                let of = |pool| &self.singles[pools.places(pool)];
                best_pair(of(from), of(to), pools, (from, to), most)
            };
            if let Some(trade) = found {
                most = trade.after;
                best = Some(trade);
                if most <= bound {
                    break;
                }
            }
        }
        best
    }

    /// Lists the pairs of `pool` unless they are listed.
    fn list_pairs(&mut self, pools: &Pools, pool: usize) {
        let members = &self.singles[pools.places(pool)];
        let pairs = &mut self.pairs[pool];
        if !pairs.is_empty() || members.len() > PAIRS_POOL {
            return;
        }
        for (at, &(first, [a, _])) in members.iter().enumerate() {
            let pair = |&(second, [b, _]): &Bundle| (first + second, [a, b]);
            pairs.extend(members[at + 1..].iter().map(pair));
        }
        pairs.sort_unstable_by(|a, b| b.cmp(a));
    }

    fn apply(&mut self, ranked: &Ranked, pools: &mut Pools, trade: Trade) {
        let mut difference = 0;
        let count = if trade.give[0] == trade.give[1] { 1 } else { 2 };
        for (give, take) in trade.give.into_iter().zip(trade.take).take(count) {
            let (give, take) = (give as usize, take as usize);
            difference += i128::from(self.singles[give].0) - i128::from(self.singles[take].0);
            pools.members.swap(give, take);
        }
        let difference = u64::try_from(difference).expect("a trade makes the heavier pool lighter");
        pools.loads[trade.from] -= difference;
        pools.loads[trade.to] += difference;
        for pool in [trade.from, trade.to] {
            let places = pools.places(pool);
            pools.members[places.clone()].sort_unstable();
            for place in places {
                self.singles[place].0 = ranked.weights()[pools.members[place] as usize];
            }
            self.pairs[pool].clear();
        }
    }
}

/// The weighed load of two pools if what one of them has too much could be moved to the other.
fn evened(pools: &Pools, a: usize, b: usize) -> u64 {
    let (ca, cb) = (pools.scale[a], pools.scale[b]);
    if ca == cb {
        // Half of both, rounded up: most pools, and no division.
        let (la, lb) = (pools.loads[a], pools.loads[b]);
        return (la / 2 + lb / 2 + ((la | lb) & 1)) * ca;
    }
    // Equal loads per sequence: (L_a + L_b) / (s_a + s_b), in weighed units.
    let sum = u128::from(pools.loads[a]) + u128::from(pools.loads[b]);
    (sum * u128::from(ca * cb)).div_ceil(u128::from(ca + cb)) as u64
}

/// The trade whose difference is nearest to what evens the two loads, if it leaves them below
/// `most`. Both lists fall, so the partner's place only moves on.
fn best_pair(
    gives: &[Bundle],
    takes: &[Bundle],
    pools: &Pools,
    (from, to): (usize, usize),
    most: u64,
) -> Option<Trade> {
    let (heavy, light) = (pools.loads[from], pools.loads[to]);
    let (cf, ct) = (pools.scale[from], pools.scale[to]);
    let apart = heavy * cf - light * ct;
    let half = apart / (cf + ct);
    let mut best = None;
    let mut most = most;
    let mut next = 0;
    for &(weight, give) in gives {
        // First partner whose weight leaves a difference of more than half.
        while next < takes.len() && weight.saturating_sub(half) <= takes[next].0 {
            next += 1;
        }
        for &(other, take) in &takes[next.saturating_sub(1)..(next + 1).min(takes.len())] {
            let difference = weight.saturating_sub(other);
            if difference > 0 && difference < heavy {
                let after = ((heavy - difference) * cf).max((light + difference) * ct);
                if after < most {
                    most = after;
                    best = Some(Trade {
                        after,
                        from,
                        to,
                        give,
                        take,
                    });
                }
            }
        }
    }
    best
}
