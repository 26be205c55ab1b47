//! What a corpus is.

use libra_bench::workload::stats::{expected_excess, pool_size_for, work};
use libra_bench::workload::{Bucket, CorpusStats, Packed, PackedStats};
use proptest::prelude::*;

#[test]
fn percentiles_are_lengths_that_occur() {
    let lengths: Vec<u64> = (1..=1000).rev().collect();
    let stats = CorpusStats::of(&lengths).expect("the corpus has samples");
    let percentiles = [
        stats.min_tokens,
        stats.p50_tokens,
        stats.p75_tokens,
        stats.p90_tokens,
        stats.p99_tokens,
        stats.p999_tokens,
        stats.max_tokens,
    ];
    assert_eq!(percentiles, [1, 500, 750, 900, 990, 999, 1000]);
    assert_eq!(
        (stats.samples, stats.tokens, stats.mean_tokens),
        (1000, 500_500, 500.5)
    );
    assert_eq!((stats.long_token_share, stats.long_work_share), (0.0, 0.0));
    assert_eq!(CorpusStats::of(&[]), None);
}

#[test]
fn long_samples_are_those_over_32k() {
    let stats = CorpusStats::of(&[32_768, 98_304]).expect("the corpus has samples");
    assert_eq!((stats.long_token_share, stats.long_work_share), (0.75, 0.9));
}

#[test]
fn the_histogram_has_a_bucket_for_every_power_of_two_between() {
    let stats = CorpusStats::of(&[2, 3, 16, 31]).expect("the corpus has samples");
    let bucket = |from, count, sum| Bucket { from, count, sum };
    assert_eq!(
        stats.histogram,
        [
            bucket(2, 2, 5),
            bucket(4, 0, 0),
            bucket(8, 0, 0),
            bucket(16, 2, 47)
        ]
    );
}

#[test]
fn packed_work_is_the_sum_of_squares() {
    let window = Packed {
        seq_tokens: 8,
        sequences: vec![vec![8], vec![4, 4], vec![]],
    };
    let stats = PackedStats::of([&window]).expect("the window has work");
    assert_eq!(
        (stats.sequences, stats.tokens, stats.padding_tokens),
        (3, 16, 8)
    );
    assert_eq!(
        (stats.work_mean, stats.work_max, stats.work_max_over_mean),
        (32.0, 64, 2.0)
    );
    // Deviations 32, 0 and 32 from a mean of 32.
    assert!(
        (stats.work_cv - (2.0_f64 / 3.0).sqrt()).abs() < 1e-12,
        "{}",
        stats.work_cv
    );
    assert_eq!(
        stats
            .histogram
            .first()
            .map(|bucket| (bucket.from, bucket.count)),
        Some((0, 1))
    );
    assert_eq!(PackedStats::of([&Packed::default()]), None);
    assert_eq!(work(&[u64::MAX, 1]), u64::MAX);
    assert_eq!(work(&[u64::from(u32::MAX)]), 18_446_744_065_119_617_025);
}

#[test]
fn a_pool_is_as_large_as_its_target_needs() {
    // 1.16 / sqrt(8) * sqrt(2 ln 16) = 0.966.
    assert!((expected_excess(1.16, 8, 128) - 0.9658).abs() < 1e-3);
    assert_eq!(expected_excess(1.16, 128, 128), 0.0);
    assert_eq!(pool_size_for(1.16, 128, 0.97), 8);
    assert_eq!(pool_size_for(1.16, 128, 0.96), 16);
    assert_eq!(pool_size_for(1.16, 128, 0.0), 128);
    assert_eq!(pool_size_for(0.0, 128, 0.0), 1);
    // Of 96 the divisors are tried, not the powers of two.
    assert_eq!(pool_size_for(1.0, 96, 0.97), 6);
    assert_eq!(pool_size_for(f64::NAN, 6, 0.1), 6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_histogram_counts_every_sample_once(lengths in prop::collection::vec(1..=u64::from(u32::MAX), 1..50)) {
        let stats = CorpusStats::of(&lengths).unwrap();
        for (bucket, next) in stats.histogram.iter().zip(&stats.histogram[1..]) {
            prop_assert_eq!(bucket.from * 2, next.from);
        }
        for bucket in &stats.histogram {
            let within = |length: &&u64| length.ilog2() == bucket.from.ilog2();
            prop_assert_eq!(lengths.iter().filter(within).count() as u64, bucket.count);
            let sum: u128 = lengths.iter().filter(within).map(|&length| u128::from(length)).sum();
            prop_assert_eq!(sum, bucket.sum);
        }
        prop_assert_eq!(stats.histogram.iter().map(|bucket| bucket.count).sum::<u64>(), stats.samples);
    }
}
