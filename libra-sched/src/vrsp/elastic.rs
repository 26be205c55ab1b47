//! Elastic pools: larger ones, for a step, where the certificate proves that P cannot balance.
//!
//! A pool of s sequences has s·CP workers, so what has to be equal is the load per sequence. An
//! outlier that is too heavy beside P−1 others may be light beside 2P−1: such pools take the place
//! of two neighbours of one GA index, four for 4P. Sizes are P, 2P, 4P … up to the cap, as far as
//! they divide DP; larger pools come first, so that every GA index holds exactly DP sequences.
//!
//! 1. If the bound at P is not above the mean by more than the threshold: certified VRSP.
//! 2. For each sequence, heaviest first: the smallest size that can dilute it, with the lightest
//!    others, to the threshold; until P will do.
//! 3. Pools of these sizes are filled heaviest first, each sequence into the pool that is lightest
//!    per sequence after it, and improved by trades.
//! 4. While the worst pool is above the threshold: it is merged to twice its size, or if it has the
//!    largest, one more such pool is made; the best of all these stands, if it is better than
//!    certified VRSP at P.
//!
//! The bound with a cap of S: the j heaviest sequences lie in pools of n ≤ jS places together, for
//! some n, so that one of them has at least their work and that of the n − j lightest over n, per
//! sequence. O(K²·D) at worst, O(K·D) for the few merges that outliers need.
//!
//! Beyond the *paper*, whose pools all have P sequences.

use std::fmt;
use std::str::FromStr;

use super::bound::{BoundKind, PoolBound};
use super::pools::Pools;
use super::ranked::Ranked;
use super::{Scratch, SequencePlacement, finish, place_with};
use crate::error::{Error, check_divides, check_limit};
use crate::ids::PoolId;
use crate::lengths::{MAX_WORKERS, WindowShape, check_total};

/// How far pools may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Elastic {
    most: u32,
    above_ppm: u32,
}

impl Elastic {
    /// Every pool has P sequences.
    pub const OFF: Self = Self {
        most: 1,
        above_ppm: 20_000,
    };

    /// Pools of up to `most`·P sequences, where the bound at P is above 1.02 times the mean.
    ///
    /// # Errors
    /// Unless `most` is a power of two.
    pub fn new(most: u32) -> Result<Self, Error> {
        if most.is_power_of_two() {
            return Ok(Self { most, ..Self::OFF });
        }
        Err(not_a_cap(&most.to_string()))
    }

    /// With this threshold over the mean, in millionths.
    #[must_use]
    pub const fn above_ppm(self, above_ppm: u32) -> Self {
        Self { above_ppm, ..self }
    }

    /// The cap, in multiples of P.
    #[must_use]
    pub const fn most(&self) -> u32 {
        self.most
    }

    /// Sequences of the largest pool that `shape` allows: at most the cap, a divisor of DP.
    #[must_use]
    pub fn largest(&self, shape: &WindowShape) -> u32 {
        let mut size = shape.pool_size();
        while u64::from(size) * 2 <= u64::from(shape.pool_size()) * u64::from(self.most)
            && shape.dp().is_multiple_of(size * 2)
        {
            size *= 2;
        }
        size
    }
}

impl fmt::Display for Elastic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.most.fmt(f)
    }
}

impl FromStr for Elastic {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // What is no number is no power of two either.
        text.parse()
            .map_or_else(|_| Err(not_a_cap(text)), Self::new)
    }
}

fn not_a_cap(value: &str) -> Error {
    Error::UnknownName {
        what: "elastic cap",
        value: value.to_owned(),
        legal: "1, 2, 4, 8 and further powers of two",
    }
}

impl Default for Elastic {
    fn default() -> Self {
        Self::OFF
    }
}

/// Pools of P and more sequences, and why they were merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElasticPlacement {
    /// Who shares a pool; its bound is that of its largest pool's size.
    pub placement: SequencePlacement,
    /// What no placement goes below in pools of P.
    pub before: PoolBound,
    /// What no placement goes below in pools of up to the largest legal size.
    pub after: PoolBound,
    /// Sequences of a pool that is not merged, P.
    pub pool_size: usize,
}

impl ElasticPlacement {
    /// Pools of more than P sequences.
    pub fn merged(&self) -> impl Iterator<Item = PoolId> + '_ {
        let pools = (0..self.placement.pools()).map(PoolId::new);
        pools.filter(|&pool| self.placement.pool_size(pool) > self.pool_size)
    }
}

/// Certified VRSP, with larger pools where `elastic` allows and the bound calls for them.
///
/// # Errors
/// Unless there are GBS sequences; if pools at the cap have over [`MAX_WORKERS`] workers, or the
/// work times cap/P exceeds 64 bits.
///
/// ```
/// use libra_sched::WindowShape;
/// use libra_sched::vrsp::{Elastic, Vrsp, elastic, place};
/// // One index of four replicas: 30 is too heavy for any pool of two.
/// let shape = WindowShape::new(64, 8, 4, 1, 2)?;
/// let work = [30, 6, 6, 6, 6, 4, 3, 3];
/// assert_eq!(place(&work, 2, Vrsp::Certified)?.loads().iter().max(), Some(&33));
/// let placed = elastic(&work, &shape, Elastic::new(2)?)?;
/// // In a pool of four it has 40 a pool, 10 a sequence; the mean is 8.
/// assert_eq!(placed.placement.loads(), [40, 12, 12]);
/// assert_eq!(placed.merged().count(), 1);
/// assert_eq!((placed.before.load, placed.after.load), (33, 40));
/// # Ok::<(), libra_sched::Error>(())
/// ```
pub fn elastic(
    work: &[u64],
    shape: &WindowShape,
    elastic: Elastic,
) -> Result<ElasticPlacement, Error> {
    elastic_with(&mut Scratch::default(), work, shape, elastic)
}

/// As [`elastic`], reusing `scratch`; the answer does not depend on what it held.
///
/// # Errors
/// As [`elastic`].
pub fn elastic_with(
    scratch: &mut Scratch,
    work: &[u64],
    shape: &WindowShape,
    elastic: Elastic,
) -> Result<ElasticPlacement, Error> {
    if work.len() != shape.gbs() as usize {
        return Err(Error::SequenceCount {
            found: work.len(),
            expected: shape.gbs() as usize,
            why: "GBS",
        });
    }
    let pool_size = shape.pool_size() as usize;
    let largest = elastic.largest(shape) as usize;
    let workers = largest as u128 * u128::from(shape.cp());
    check_limit("workers of the largest pool", workers, MAX_WORKERS.into())?;
    let plain = place_with(scratch, work, pool_size, super::Vrsp::Certified)?;
    let before = plain.bound();
    let scale = (largest / pool_size) as u64;
    let total: u128 = work.iter().map(|&w| u128::from(w)).sum();
    check_total(
        "work of the window times the elastic cap",
        total * u128::from(scale),
    )?;

    let ranked = &scratch.ranked;
    let goal = Goal::new(ranked, largest, elastic.above_ppm);
    let after = if largest == pool_size {
        before
    } else {
        capped(ranked, largest)
    };
    let heaviest = plain.loads().iter().copied().max().unwrap_or(0);
    let mut placement = plain;
    if before.load * scale > goal.load && largest > pool_size {
        let mut search = Merge {
            pool_size,
            goal,
            sizes: Vec::new(),
        };
        if let Some((pools, worst)) = search.run(scratch)
            && worst < heaviest * scale
        {
            let size = pools.pool(0).len();
            let bound = capped(&scratch.ranked, size);
            placement = finish(&scratch.ranked, &pools, bound);
        }
    }
    Ok(ElasticPlacement {
        placement,
        before,
        after,
        pool_size,
    })
}

/// What no placement goes below where pools have any sizes up to `pool_size`: load of a pool of
/// `pool_size`.
///
/// # Errors
/// If `pool_size` does not divide the number of sequences, or the work times it exceeds 64 bits.
pub fn lower_bound_up_to(work: &[u64], pool_size: usize) -> Result<PoolBound, Error> {
    check_divides(
        "number of sequences",
        work.len() as u64,
        "largest pool",
        pool_size as u64,
    )?;
    let total: u128 = work.iter().map(|&w| u128::from(w)).sum();
    check_total(
        "work of the window times the pool size",
        total * pool_size as u128,
    )?;
    let mut ranked = Ranked::default();
    ranked.read(work)?;
    ranked.sum_up();
    Ok(capped(&ranked, pool_size))
}

/// Loads of a pool of `size` sequences that are light enough.
#[derive(Clone, Copy, Debug)]
struct Goal {
    size: usize,
    load: u64,
}

impl Goal {
    fn new(ranked: &Ranked, size: usize, above_ppm: u32) -> Self {
        let parts = u128::from(ranked.total()) * size as u128 * (1_000_000 + u128::from(above_ppm));
        let load = parts / 1_000_000 / ranked.len() as u128;
        let load = u64::try_from(load).unwrap_or(u64::MAX);
        Self { size, load }
    }
}

/// What no placement in pools of up to `size` sequences goes below: load of a pool of `size`.
fn capped(ranked: &Ranked, size: usize) -> PoolBound {
    let per = |sum: u64, places: usize| {
        let load = (u128::from(sum) * size as u128).div_ceil(places as u128);
        // Only few places make it too large, and those are not the least.
        u64::try_from(load).unwrap_or(u64::MAX)
    };
    let mut best = PoolBound {
        load: per(ranked.total(), ranked.len()),
        pool_size: size,
        kind: BoundKind::Mean,
    };
    for j in 1..=ranked.len() {
        let mut load = u64::MAX;
        // The sum is convex in the number of places, so that their mean falls and then rises.
        for places in (j..=ranked.len().min(j * size)).rev() {
            let next = per(ranked.heaviest(j) + ranked.lightest(places - j), places);
            if next > load || next <= best.load {
                load = load.min(next);
                break;
            }
            load = next;
        }
        if load > best.load {
            let sequences = j as u32;
            best.load = load;
            best.kind = BoundKind::Heaviest { sequences };
        }
    }
    best
}

/// The search for sizes.
struct Merge {
    pool_size: usize,
    goal: Goal,
    /// Sizes of all pools, largest first.
    sizes: Vec<usize>,
}

impl Merge {
    /// Pools and the weighed load of the worst, if any pool can be merged.
    fn run(&mut self, scratch: &mut Scratch) -> Option<(Pools, u64)> {
        let Scratch { ranked, search, .. } = scratch;
        self.start(ranked);
        let mut best: Option<(Pools, u64)> = None;
        let mut pools = Pools::default();
        loop {
            let largest = self.sizes[0];
            let bound = capped(ranked, largest).load;
            fill(ranked, &self.sizes, &mut pools);
            search.improve(ranked, &mut pools, bound);
            let worst = pools.worst() * (self.goal.size / largest) as u64;
            if largest > self.pool_size && best.as_ref().is_none_or(|best| worst < best.1) {
                best = Some((pools.clone(), worst));
            }
            let heaviest = pools.heaviest();
            if worst <= self.goal.load || !self.grow(self.sizes[heaviest]) {
                return best;
            }
        }
    }

    /// For each outlier the smallest pool that can dilute it.
    fn start(&mut self, ranked: &Ranked) {
        let mut left = ranked.len();
        self.sizes.clear();
        for &weight in ranked.weights() {
            let mut size = self.pool_size;
            let load = |size: usize| {
                let sum = u128::from(weight) + u128::from(ranked.lightest(size - 1));
                sum * (self.goal.size / size) as u128
            };
            while size < self.goal.size && load(size) > self.goal.load.into() {
                size *= 2;
            }
            if size == self.pool_size || size > left {
                break;
            }
            left -= size;
            self.sizes.push(size);
        }
        self.sizes.sort_unstable_by(|a, b| b.cmp(a));
        let plain = std::iter::repeat_n(self.pool_size, left / self.pool_size);
        self.sizes.extend(plain);
    }

    /// Merges one more pool, twice as large as `size` or of the largest size; false if too few
    /// pools of P are left.
    fn grow(&mut self, size: usize) -> bool {
        let (goes, comes) = if size < self.goal.size {
            (Some(size), 2 * size)
        } else {
            (None, size)
        };
        let taken = (comes - goes.unwrap_or(0)) / self.pool_size;
        let plain = |&&size: &&usize| size == self.pool_size;
        let free = self.sizes.iter().filter(plain).count();
        if free < taken + usize::from(goes == Some(self.pool_size)) {
            return false;
        }
        if let Some(at) = goes.and_then(|goes| self.sizes.iter().position(|&s| s == goes)) {
            self.sizes.remove(at);
        }
        self.sizes.truncate(self.sizes.len() - taken);
        let at = self.sizes.partition_point(|&size| size >= comes);
        self.sizes.insert(at, comes);
        true
    }
}

/// Heaviest first, each into the pool that is lightest per sequence after it.
fn fill(ranked: &Ranked, sizes: &[usize], pools: &mut Pools) {
    pools.reset(sizes.iter().copied());
    let mut filled = vec![0; sizes.len()];
    for (rank, &weight) in (0..).zip(ranked.weights()) {
        let open = (0..sizes.len()).filter(|&pool| filled[pool] < sizes[pool]);
        let key = |&pool: &usize| ((pools.loads[pool] + weight) * pools.scale[pool], pool);
        let pool = open.min_by_key(key).expect("as many places as sequences");
        let place = pools.places(pool).start + filled[pool];
        pools.members[place] = rank;
        pools.loads[pool] += weight;
        filled[pool] += 1;
    }
}
