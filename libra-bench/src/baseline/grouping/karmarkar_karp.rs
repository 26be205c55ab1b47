//! Balanced differencing, the Karmarkar–Karp method where every pool has the same number of members: BLDM. Yakir 1996,
//! Mathematics of Operations Research 21:85; Michiels, Korst, Aarts, van Leeuwen 2003. Training frameworks of
//! reinforcement learning (verl) group sequences so.
//!
//! Sequences sorted by work are taken K at a time, each of the K the first member of a part. The two tuples of parts that
//! differ most within become one, heaviest on lightest, until one tuple is left. At most 643/360 times the best for P = 6
//! and 4603/2520 for P = 7; behind LPT on heavy tails. O(D log D).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Grouping, by_weight, load, pools_of};

/// One part of each pool, heaviest first.
type Parts = Vec<(u128, Vec<usize>)>;

/// Pools of `pool_size` by differencing.
pub(crate) fn karmarkar_karp(work: &[u64], pool_size: usize) -> Grouping {
    let pools = pools_of(work, pool_size);
    let part = |&member: &usize| (u128::from(work[member]), vec![member]);
    let mut tuples: Vec<Option<Parts>> = (by_weight(work).chunks(pools))
        .map(|members| Some(members.iter().map(part).collect()))
        .collect();
    let spread = |parts: &Parts| parts[0].0 - parts[pools - 1].0;
    // The one that came first of equals.
    let key = |tuple: usize, parts: &Parts| (spread(parts), Reverse(tuple));
    let mut heap: BinaryHeap<(u128, Reverse<usize>)> = (tuples.iter().enumerate())
        .filter_map(|(tuple, parts)| Some(key(tuple, parts.as_ref()?)))
        .collect();
    loop {
        let mut next = || {
            heap.pop()
                .and_then(|(_, Reverse(tuple))| tuples[tuple].take())
        };
        let (first, second) = (next(), next());
        match (first, second) {
            (Some(first), Some(second)) => {
                let merged = merged(work, first, second);
                heap.push(key(tuples.len(), &merged));
                tuples.push(Some(merged));
            }
            (last, _) => {
                let parts = last.into_iter().flatten();
                return parts.map(|(_, members)| members).collect();
            }
        }
    }
}

/// The heaviest part of one with the lightest of the other, and so on.
fn merged(work: &[u64], first: Parts, second: Parts) -> Parts {
    let pairs = first.into_iter().zip(second.into_iter().rev());
    let join = |((_, mut members), (_, more)): ((u128, Vec<usize>), (u128, Vec<usize>))| {
        members.extend(more);
        (load(work, &members), members)
    };
    let mut parts: Parts = pairs.map(join).collect();
    parts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    parts
}

#[cfg(test)]
mod tests {
    use super::super::tests::heaviest;
    use super::*;

    #[test]
    fn eight_numbers_by_hand() {
        // (8,7) (6,5) (4,2) (2,2): 4,2 on 8,7 gives 11,10; on 6,5 gives 16,16; on 2,2 gives 18,18.
        let work = [8, 7, 6, 5, 4, 2, 2, 2];
        let grouping = karmarkar_karp(&work, 4);
        assert_eq!(heaviest(&work, &grouping), 18);
        assert!(grouping.iter().all(|pool| load(&work, pool) == 18));
    }

    #[test]
    fn a_lone_sequence_is_a_pool() {
        assert_eq!(karmarkar_karp(&[5], 1), [[0]]);
    }
}
