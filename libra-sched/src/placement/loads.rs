//! Worker loads with their (load, id) minimum.

/// A load and the worker that carries it in one word, ordered by (load, id).
pub(super) trait Key: Copy + Ord {
    /// Larger than any worker's key.
    const LAST: Self;

    fn new(load: u64, worker: u32, bits: u32) -> Self;
    fn worker(self, bits: u32) -> u32;
    fn load(self, bits: u32) -> u64;
}

/// For loads that leave `bits` free above them.
impl Key for u64 {
    const LAST: Self = Self::MAX;

    fn new(load: u64, worker: u32, bits: u32) -> Self {
        load << bits | Self::from(worker)
    }

    fn worker(self, bits: u32) -> u32 {
        (self & ((1 << bits) - 1)) as u32
    }

    fn load(self, bits: u32) -> u64 {
        self >> bits
    }
}

/// For any load.
impl Key for u128 {
    const LAST: Self = Self::MAX;

    fn new(load: u64, worker: u32, bits: u32) -> Self {
        Self::from(load) << bits | Self::from(worker)
    }

    fn worker(self, bits: u32) -> u32 {
        (self & ((1 << bits) - 1)) as u32
    }

    fn load(self, bits: u32) -> u64 {
        (self >> bits) as u64
    }
}

/// A tournament: node 1 is the root, 2n and 2n+1 are the children of n, the last half are the
/// workers. Each node holds the least key below it, so an update climbs only as far as that
/// changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads<K> {
    /// Bits of a worker id.
    bits: u32,
    workers: usize,
    nodes: Vec<K>,
}

/// Bits that the ids `0..workers` take.
pub(super) fn id_bits(workers: usize) -> u32 {
    usize::BITS - workers.saturating_sub(1).leading_zeros()
}

impl<K: Key> Loads<K> {
    pub(super) fn reset(&mut self, workers: usize) {
        let leaves = workers.next_power_of_two();
        self.bits = id_bits(workers);
        self.workers = workers;
        self.nodes.clear();
        self.nodes.resize(2 * leaves, K::LAST);
        for (worker, leaf) in (0..workers as u32).zip(&mut self.nodes[leaves..]) {
            *leaf = K::new(0, worker, self.bits);
        }
        for node in (1..leaves).rev() {
            self.nodes[node] = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
        }
    }

    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// Keys by worker; more may follow that are no worker's.
    pub(super) fn keys(&self) -> &[K] {
        &self.nodes[self.nodes.len() / 2..]
    }

    /// Loads by worker.
    pub(super) fn read(&self, into: &mut Vec<u64>) {
        let keys = &self.keys()[..self.workers];
        into.clear();
        into.extend(keys.iter().map(|key| key.load(self.bits)));
    }

    /// The least (load, id).
    pub(super) fn lightest(&self) -> K {
        self.nodes[1]
    }

    pub(super) fn add(&mut self, worker: u32, work: u64) {
        let mut node = self.nodes.len() / 2 + worker as usize;
        let mut least = K::new(self.nodes[node].load(self.bits) + work, worker, self.bits);
        // Loads only grow: a node that does not change leaves those above it as they are.
        while self.nodes[node] != least {
            self.nodes[node] = least;
            if node == 1 {
                break;
            }
            least = least.min(self.nodes[node ^ 1]);
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Loads};

    fn check<K: Key + Default>(workers: usize) {
        let mut loads = Loads::<K>::default();
        loads.reset(workers);
        let (mut state, mut all) = (1u64, Vec::new());
        for _ in 0..500 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let worker = (state >> 33) as usize % workers;
            loads.add(worker as u32, state >> 61);
            loads.read(&mut all);
            let least = (0..workers).min_by_key(|&w| (all[w], w));
            assert_eq!(Some(loads.lightest().worker(loads.bits()) as usize), least);
        }
    }

    #[test]
    fn the_lightest_is_the_first_of_the_least_loads() {
        for workers in [1, 2, 3, 5, 64, 65, 100] {
            check::<u64>(workers);
            check::<u128>(workers);
        }
    }
}
