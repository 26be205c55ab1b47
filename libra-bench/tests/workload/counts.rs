//! Counted lengths against sorted ones.

use libra_bench::workload::{CorpusStats, LengthCounts, Share};
use proptest::prelude::*;

/// The share of the samples from `from` up to `to`, from the definition.
fn share(lengths: &[u64], from: u64, to: u64) -> (u64, [f64; 3]) {
    let within = || {
        lengths
            .iter()
            .copied()
            .filter(|length| (from..to).contains(length))
    };
    let ratio = |of: fn(u64) -> u128| {
        let part: u128 = within().map(of).sum();
        let whole: u128 = lengths.iter().copied().map(of).sum();
        part as f64 / whole as f64
    };
    let shares = [
        ratio(|_| 1),
        ratio(u128::from),
        ratio(|length| u128::from(length).pow(2)),
    ];
    (within().count() as u64, shares)
}

fn shares(share: &Share) -> (u64, [f64; 3]) {
    (
        share.samples,
        [share.sample_share, share.token_share, share.work_share],
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn counts_say_what_sorting_says(
        lengths in prop::collection::vec(prop_oneof![1..100_u64, 1..5_000_000_u64, 1..=u64::from(u32::MAX)], 1..60),
    ) {
        let stats = CorpusStats::of(&lengths).expect("samples");
        let mut sorted = lengths.clone();
        sorted.sort_unstable();
        for (thousandths, found) in [
            (500, stats.p50_tokens),
            (750, stats.p75_tokens),
            (900, stats.p90_tokens),
            (990, stats.p99_tokens),
            (999, stats.p999_tokens),
        ] {
            let exact = sorted[(sorted.len() * thousandths).div_ceil(1000) - 1];
            if exact < 1 << 22 {
                prop_assert_eq!(found, exact);
            } else {
                prop_assert!(found >= exact && found - exact <= exact / 1024, "{found} {exact}");
            }
        }
        prop_assert_eq!((stats.min_tokens, stats.max_tokens), (sorted[0], sorted[sorted.len() - 1]));
        prop_assert_eq!(stats.tokens, lengths.iter().sum::<u64>());
        for bucket in &stats.shares {
            prop_assert_eq!(shares(bucket), share(&lengths, bucket.tokens, 2 * bucket.tokens));
        }
        for tail in stats.tails.iter().filter(|tail| tail.tokens < 1 << 22) {
            prop_assert_eq!(shares(tail), share(&lengths, tail.tokens + 1, u64::MAX));
        }
        prop_assert_eq!(stats.long_token_share, share(&lengths, 32_769, u64::MAX).1[1]);
    }
}

#[test]
fn counting_one_by_one_and_in_blocks_is_the_same() {
    let lengths = [5, 5_000_000, 7, 5, u32::MAX];
    let (mut singly, mut together) = (LengthCounts::default(), LengthCounts::default());
    lengths.iter().for_each(|length| singly.add(*length));
    together.add_all(&lengths);
    assert_eq!(singly.stats(), together.stats());
    assert_eq!(LengthCounts::default().stats(), None);
}
