//! Pools being filled and searched: members by rank, sizes that may differ, loads that compare.

/// Pools of given sizes. Only sizes that divide the largest one are compared, so that a load per
/// sequence is an integer: the *weighed* load, load × largest size / own size.
#[derive(Clone, Debug, Default)]
pub(super) struct Pools {
    /// First member of every pool, and the number of members.
    pub(super) first: Vec<u32>,
    /// Largest size over own size.
    pub(super) scale: Vec<u64>,
    /// Ranks, pool by pool.
    pub(super) members: Vec<u32>,
    pub(super) loads: Vec<u64>,
}

impl Pools {
    /// Empty pools of `sizes`, each a divisor of the largest.
    pub(super) fn reset(&mut self, sizes: impl Iterator<Item = usize> + Clone) {
        let largest = sizes.clone().max().unwrap_or(1);
        self.first.clear();
        self.first.push(0);
        self.scale.clear();
        let mut end = 0;
        for size in sizes {
            end += size;
            self.first.push(end as u32);
            // Divisions show where a window is placed in microseconds.
            let scale = if size == largest { 1 } else { largest / size };
            self.scale.push(scale as u64);
        }
        self.members.clear();
        self.members.resize(end, 0);
        self.loads.clear();
        self.loads.resize(self.scale.len(), 0);
    }

    /// As `other`, in the memory that is here.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.first.clone_from(&other.first);
        self.scale.clone_from(&other.scale);
        self.members.clone_from(&other.members);
        self.loads.clone_from(&other.loads);
    }

    /// Number of pools.
    pub(super) fn len(&self) -> usize {
        self.loads.len()
    }

    /// Places of `pool` in `members`.
    pub(super) fn places(&self, pool: usize) -> std::ops::Range<usize> {
        self.first[pool] as usize..self.first[pool + 1] as usize
    }

    /// Members of `pool`.
    pub(super) fn pool(&self, pool: usize) -> &[u32] {
        &self.members[self.places(pool)]
    }

    /// Load of `pool` as it compares with others.
    pub(super) fn weighed(&self, pool: usize) -> u64 {
        self.loads[pool] * self.scale[pool]
    }

    /// The heaviest pool by weighed load, the first of equals.
    pub(super) fn heaviest(&self) -> usize {
        let mut best = (self.weighed(0), 0);
        for pool in 1..self.len() {
            let weighed = self.weighed(pool);
            if weighed > best.0 {
                best = (weighed, pool);
            }
        }
        best.1
    }

    /// Weighed load of the heaviest pool.
    pub(super) fn worst(&self) -> u64 {
        self.weighed(self.heaviest())
    }

    /// Members of every pool heaviest first.
    pub(super) fn sort(&mut self) {
        for pool in 0..self.len() {
            let places = self.places(pool);
            self.members[places].sort_unstable();
        }
    }
}
