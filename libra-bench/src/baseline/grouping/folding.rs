//! Folding, or zigzag: sequences sorted, heaviest first, in rows of K, every other row from right to left; a column is a
//! pool. At most 2 − 1/K times the best for P > 2, the best for P = 2. O(D log D).

use super::{Grouping, by_weight, pools_of};

/// Pools of `pool_size`, folded.
pub(crate) fn folding(work: &[u64], pool_size: usize) -> Grouping {
    let pools = pools_of(work, pool_size);
    let mut grouping = vec![Vec::with_capacity(pool_size); pools];
    for (row, members) in by_weight(work).chunks(pools).enumerate() {
        for (column, &member) in members.iter().enumerate() {
            let pool = if row % 2 == 0 {
                column
            } else {
                pools - 1 - column
            };
            grouping[pool].push(member);
        }
    }
    grouping
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rows_fold_heaviest_on_lightest() {
        let grouping = folding(&[1, 9, 4, 6, 3, 5], 2);
        assert_eq!(grouping, [[1, 0], [3, 4], [5, 2]]);
    }
}
