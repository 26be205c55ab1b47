//! The best of all placements of a small window, where the trades stop far from the bound.
//!
//! Depth first, pool by pool: the heaviest sequence left and every choice of companions among the
//! distinct weights left, as long as the pool stays below the best so far and leaves the others no
//! more than they can take below it. Windows that are far from the bound have many equal giants, so
//! that choices are few. The number of steps is limited: the answer is then whatever was found, and
//! nothing is proved.
//!
//! Source: bin completion, Martello and Toth (1990) and Korf (2002), with exact cardinalities.

use super::pools::Pools;
use super::ranked::Ranked;

/// Choices looked at, at the most.
const STEPS: u32 = 20_000;

/// What the search holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Exact {
    /// Distinct weights, heaviest first.
    weights: Vec<u64>,
    /// How many of each are left.
    left: Vec<u32>,
    /// How many of each every pool takes: now, and in the best placement found.
    taken: Vec<u32>,
    best: Vec<u32>,
    /// Where the next member of every pool is written.
    places: Vec<usize>,
    pools: usize,
    size: u32,
    /// Heaviest load that would still be better.
    most: u64,
    steps: u32,
}

impl Exact {
    /// Finds a better placement than `pools` of one size, if it exists and the steps suffice.
    /// Whether what `pools` then hold is proved to be the best.
    pub(super) fn run(&mut self, ranked: &Ranked, pools: &mut Pools, bound: u64) -> bool {
        self.start(ranked, pools);
        let worst = pools.worst();
        self.next_pool(0, ranked.total(), 0, bound);
        if self.most + 1 < worst {
            self.write(pools);
        }
        self.steps > 0
    }

    fn start(&mut self, ranked: &Ranked, pools: &Pools) {
        self.weights.clear();
        self.left.clear();
        for &weight in ranked.weights() {
            if self.weights.last() != Some(&weight) {
                self.weights.push(weight);
                self.left.push(0);
            }
            let last = self.left.len() - 1;
            self.left[last] += 1;
        }
        self.pools = pools.len();
        self.size = pools.pool(0).len() as u32;
        self.taken.clear();
        self.taken.resize(self.pools * self.weights.len(), 0);
        self.best.clear();
        self.most = pools.worst() - 1;
        self.steps = STEPS;
    }

    /// Fills pool `pool` and those after it with what is left, `work` together; the heaviest so far
    /// has `worst`.
    fn next_pool(&mut self, pool: usize, work: u64, worst: u64, bound: u64) {
        if pool == self.pools {
            self.best.clone_from(&self.taken);
            self.most = worst.saturating_sub(1);
            return;
        }
        let heaviest = self.left.iter().position(|&left| left > 0);
        let at = heaviest.expect("every pool has its sequences");
        self.left[at] -= 1;
        self.taken[pool * self.weights.len() + at] += 1;
        let choice = Choice {
            pool,
            work,
            worst,
            bound,
        };
        self.choose(choice, at, self.size - 1, self.weights[at]);
        self.left[at] += 1;
        self.taken[pool * self.weights.len() + at] -= 1;
    }

    /// Chooses the last `places` members of a pool of `load` from weight `at` on.
    fn choose(&mut self, choice: Choice, at: usize, places: u32, load: u64) {
        let Choice {
            pool,
            work,
            worst,
            bound,
        } = choice;
        // Nothing is better than the bound.
        if self.steps == 0 || self.most < bound {
            return;
        }
        self.steps -= 1;
        let others = (self.pools - pool - 1) as u64;
        let least = work.saturating_sub(others.saturating_mul(self.most));
        if load > self.most || worst > self.most {
            return;
        }
        if places == 0 {
            if load >= least {
                self.next_pool(pool + 1, work - load, worst.max(load), bound);
            }
            return;
        }
        let Some((light, heavy)) = self.range(at, places) else {
            return;
        };
        if load + light > self.most || load + heavy < least {
            return;
        }
        let place = pool * self.weights.len() + at;
        for count in (0..=places.min(self.left[at])).rev() {
            self.left[at] -= count;
            self.taken[place] += count;
            let load = load + u64::from(count) * self.weights[at];
            self.choose(choice, at + 1, places - count, load);
            self.left[at] += count;
            self.taken[place] -= count;
        }
    }

    /// The lightest and the heaviest `places` members from weight `at` on; `None` if too few are left.
    fn range(&self, at: usize, places: u32) -> Option<(u64, u64)> {
        let sum = |order: &mut dyn Iterator<Item = usize>| {
            let (mut missing, mut sum) = (places, 0);
            for at in order {
                let count = missing.min(self.left[at]);
                sum += u64::from(count) * self.weights[at];
                missing -= count;
                if missing == 0 {
                    return Some(sum);
                }
            }
            None
        };
        let all = at..self.weights.len();
        Some((sum(&mut all.clone().rev())?, sum(&mut all.clone())?))
    }

    /// The best placement found, into `pools`.
    fn write(&mut self, pools: &mut Pools) {
        self.places.clear();
        self.places
            .extend((0..self.pools).map(|pool| pools.places(pool).start));
        pools.loads.fill(0);
        // Equal weights have consecutive ranks.
        let mut next = 0;
        for (at, &weight) in self.weights.iter().enumerate() {
            for (pool, place) in self.places.iter_mut().enumerate() {
                let count = self.best[pool * self.weights.len() + at];
                for _ in 0..count {
                    pools.members[*place] = next;
                    *place += 1;
                    next += 1;
                }
                pools.loads[pool] += u64::from(count) * weight;
            }
        }
    }
}

/// The pool that is being filled.
#[derive(Clone, Copy, Debug)]
struct Choice {
    pool: usize,
    /// Work of what was left before it.
    work: u64,
    /// Heaviest pool before it.
    worst: u64,
    bound: u64,
}
