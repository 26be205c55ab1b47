use libra_sched::Mask;
use proptest::prelude::*;

use crate::cases::{masks, runs};

fn cut() -> impl Strategy<Value = (u32, [u32; 3])> {
    (1u32..200).prop_flat_map(|len| {
        (Just(len), [0..=len, 0..=len, 0..=len]).prop_map(|(len, mut cuts)| {
            cuts.sort_unstable();
            (len, cuts)
        })
    })
}

proptest! {
    #![proptest_config(runs(800))]

    #[test]
    fn pairs_of_adjacent_ranges_add_up(mask in masks(), (len, [a, b, c]) in cut()) {
        prop_assert_eq!(mask.pairs(len, a..b) + mask.pairs(len, b..c), mask.pairs(len, a..c));
    }

    #[test]
    fn pairs_are_the_keys_of_each_query_counted(mask in masks(), (len, [a, _, c]) in cut()) {
        let counted: usize = (a..c).map(|query| mask.keys_of(len, query).len()).sum();
        prop_assert_eq!(mask.pairs(len, a..c), counted as u64);
    }

    #[test]
    fn keys_of_a_range_are_the_union_of_its_queries_keys(
        mask in masks(),
        (len, [a, _, c]) in cut(),
    ) {
        prop_assume!(a < c);
        let first = (a..c).map(|query| mask.keys_of(len, query).start).min();
        let last = (a..c).map(|query| mask.keys_of(len, query).end).max();
        let keys = mask.keys(len, a..c);
        prop_assert_eq!((Some(keys.start), Some(keys.end)), (first, last));
        let read = |key: &u32| (a..c).any(|query| mask.keys_of(len, query).contains(key));
        prop_assert!(keys.clone().all(|key| read(&key)));
    }

    #[test]
    fn pair_counts_of_the_longest_samples_do_not_wrap(len: u32, x: u32) {
        let (wide_len, wide_x) = (u128::from(len), u128::from(x));
        let causal = u128::from(Mask::Causal.cum_pairs(len, x));
        prop_assert_eq!(causal, wide_x * (wide_x + 1) / 2);
        prop_assert_eq!(u128::from(Mask::Full.cum_pairs(len, x)), wide_len * wide_x);
    }
}

#[test]
fn names_of_masks_parse_back() {
    for mask in Mask::ALL {
        assert_eq!(mask.to_string().parse(), Ok(mask));
    }
    assert_eq!(
        Mask::Causal.cum_pairs(u32::MAX, u32::MAX),
        9_223_372_034_707_292_160
    );
}
