//! The best partition into pools of exactly P sequences, by trying every one of them.

// Tests and benches include this file by its path; none of them uses all of it.
#![allow(dead_code, unreachable_pub)]

/// Load of the heaviest pool in the best partition of `work`.
pub fn optimum(work: &[u64], pool_size: usize) -> u64 {
    let pools = work.len() / pool_size;
    let mut search = Search {
        work,
        pool_size,
        loads: vec![0; pools],
        filled: vec![0; pools],
        best: u64::MAX,
    };
    search.assign(0);
    search.best
}

/// Largest load per sequence, times the largest of `sizes`, in the best partition of `work` into
/// pools of any of these sizes, each a divisor of the largest.
pub fn best_of_sizes(work: &[u64], sizes: &[usize]) -> u64 {
    let largest = *sizes.iter().max().expect("a size");
    let left: Vec<usize> = (0..work.len()).collect();
    let mut best = u64::MAX;
    fill_next(work, sizes, largest, &left, 0, &mut best);
    best
}

fn fill_next(
    work: &[u64],
    sizes: &[usize],
    largest: usize,
    left: &[usize],
    worst: u64,
    best: &mut u64,
) {
    let Some((&first, others)) = left.split_first() else {
        *best = worst.min(*best);
        return;
    };
    for &size in sizes.iter().filter(|&&size| size <= left.len()) {
        // Every choice of the first one's companions.
        for mask in 0u32..1 << others.len() {
            if mask.count_ones() as usize + 1 != size {
                continue;
            }
            let inside = |at: usize| mask >> at & 1 == 1;
            let chosen = (0..others.len()).filter(|&at| inside(at));
            let load = work[first] + chosen.map(|at| work[others[at]]).sum::<u64>();
            let rest: Vec<usize> = (0..others.len())
                .filter(|&at| !inside(at))
                .map(|at| others[at])
                .collect();
            let weighed = load * (largest / size) as u64;
            fill_next(work, sizes, largest, &rest, worst.max(weighed), best);
        }
    }
}

struct Search<'a> {
    work: &'a [u64],
    pool_size: usize,
    loads: Vec<u64>,
    filled: Vec<usize>,
    best: u64,
}

impl Search<'_> {
    fn assign(&mut self, next: usize) {
        let Some(&work) = self.work.get(next) else {
            let heaviest = self.loads.iter().copied().max().unwrap_or(0);
            self.best = self.best.min(heaviest);
            return;
        };
        for pool in 0..self.loads.len() {
            if self.filled[pool] == self.pool_size {
                continue;
            }
            let first_of_pool = self.filled[pool] == 0;
            self.loads[pool] += work;
            self.filled[pool] += 1;
            self.assign(next + 1);
            self.loads[pool] -= work;
            self.filled[pool] -= 1;
            // Empty pools are alike: the first stands for all.
            if first_of_pool {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::optimum;

    #[test]
    fn small_partitions_are_known() {
        assert_eq!(optimum(&[9, 1, 1, 1], 2), 10);
        assert_eq!(optimum(&[4, 3, 2, 1], 2), 5);
        // Without the cardinality 5 = 2+2+1 would do.
        assert_eq!(optimum(&[5, 2, 2, 1], 2), 6);
        assert_eq!(optimum(&[3, 3, 2, 2, 1, 1], 3), 6);
    }
}
