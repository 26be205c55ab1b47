//! The bundled corpus and the generator.

use libra_bench::workload::{
    CorpusStats, Distribution, IdxSamples, LengthSource, Packer, WindowOptions, bundled, load,
};
use proptest::prelude::*;

#[test]
fn the_bundled_corpus_is_what_its_readme_says() {
    let lengths = bundled::lengths("linux-6.1").expect("the corpus is part of the program");
    let stats = CorpusStats::of(&lengths).expect("the corpus has samples");
    let counted = [
        stats.samples,
        stats.tokens,
        stats.min_tokens,
        stats.p50_tokens,
        stats.p90_tokens,
        stats.p99_tokens,
        stats.p999_tokens,
        stats.max_tokens,
    ];
    assert_eq!(
        counted,
        [
            78_549,
            324_641_182,
            1,
            969,
            7_190,
            31_214,
            280_067,
            5_986_155
        ]
    );
    assert_eq!(format!("{:.0}", stats.mean_tokens), "4133");
    assert_eq!(format!("{:.1}", 100.0 * stats.long_token_share), "39.5");
    assert_eq!(format!("{:.1}", 100.0 * stats.long_work_share), "99.1");
    let packed = Packer::ConcatenateAndCut
        .pack(lengths, 256 << 10)
        .expect("256K is legal");
    let windows = packed
        .windows(&WindowOptions::default())
        .expect("128 is legal");
    assert_eq!(windows.filter_map(Result::ok).count(), 9);
    let readme = include_str!("../../corpora/README.md");
    for number in [
        "78,549",
        "324,641,182",
        "969",
        "7,190",
        "31,214",
        "280,067",
        "5,986,155",
    ] {
        assert!(readme.contains(&format!("| {number} |")), "{number}");
    }
}

#[test]
fn a_bundled_corpus_is_selected_by_name() {
    let options = LengthSource::default();
    let lengths = load("linux-6.1", &options).expect("the corpus is part of the program");
    assert_eq!(lengths[..4], [5105, 14, 37, 15]);
    assert_eq!(
        load("bundled:linux-6.1", &options).expect("the corpus has two names"),
        lengths
    );
    assert_eq!(bundled::names().collect::<Vec<_>>(), ["linux-6.1"]);
}

#[test]
fn what_does_not_apply_to_a_bundled_corpus_is_refused() {
    let message = |spec: &str, options| load(spec, &options).unwrap_err().to_string();
    let none = message("bundled:linux", LengthSource::default());
    assert_eq!(none, "`linux` is not a bundled corpus; legal are linux-6.1");
    let sums = message(
        "linux-6.1",
        LengthSource {
            cumulative: true,
            ..LengthSource::default()
        },
    );
    assert!(
        sums.contains("bundled corpus `linux-6.1` holds lengths"),
        "{sums}"
    );
    let column = LengthSource {
        column: Some("n".to_owned()),
        ..LengthSource::default()
    };
    assert!(message("linux-6.1", column).contains("linux-6.1: has no columns"));
    let sequences = LengthSource {
        idx: Some(IdxSamples::Sequences),
        ..LengthSource::default()
    };
    assert_eq!(
        message("linux-6.1", sequences),
        "linux-6.1: is not an .idx, so its samples cannot be sequences"
    );
}

fn distribution(text: &str) -> Distribution {
    text.parse().expect("the distribution is legal")
}

fn draw(text: &str, limit_tokens: u64, seed: u64, samples: usize) -> Vec<u64> {
    let drawn = distribution(text)
        .samples(limit_tokens, seed)
        .expect("the limit is legal");
    drawn.take(samples).collect()
}

#[test]
fn drawn_lengths_are_the_same_on_every_machine() {
    assert_eq!(
        draw("lognormal:607,1.7", 262_144, 7, 8),
        [795, 54, 8, 164, 45942, 900, 4940, 3087]
    );
    let with_outliers = draw("lognormal:607,1.7,0.5,0.7", 262_144, 7, 8);
    assert_eq!(
        with_outliers,
        [795, 8, 246548, 253205, 197778, 67, 251111, 418]
    );
    let mut digest = 0_u64;
    for length in draw("lognormal:607,1.7,0.001,0.7", 262_144, 1, 100_000) {
        digest = digest.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ length;
    }
    assert_eq!(digest, 4_156_172_518_999_495_944);
}

#[test]
fn drawn_lengths_follow_their_distribution() {
    let stats = CorpusStats::of(&draw("lognormal:607,1.7", 262_144, 3, 200_000)).expect("samples");
    assert!(
        (590..=625).contains(&stats.p50_tokens),
        "{}",
        stats.p50_tokens
    );
    // The normal distribution's 0.75 and 0.99 quantiles are 0.6745 and 2.3263.
    assert!(
        (1_850..=1_970).contains(&stats.p75_tokens),
        "{}",
        stats.p75_tokens
    );
    assert!(
        (29_500..=34_000).contains(&stats.p99_tokens),
        "{}",
        stats.p99_tokens
    );

    let outliers = draw("lognormal:607,1.0,0.25,0.5", 262_144, 3, 100_000);
    let long = outliers.iter().filter(|&&length| length >= 131_072).count();
    assert!((24_500..=25_500).contains(&long), "{long}");
}

#[test]
fn a_wrong_distribution_is_told_with_what_is_legal() {
    let cases = [
        ("", "it has no `:`"),
        ("normal:5,1", "`normal` is not a known one"),
        ("lognormal:607", "it has 1 parameters"),
        ("lognormal:607,1,0.1", "it has 3 parameters"),
        ("lognormal:607,1,0.1,0.5,9", "it has 5 parameters"),
        ("lognormal:0,1", "median is `0`"),
        ("lognormal:8G,1", "median is `8G`"),
        ("lognormal:nan,1", "median is `nan`"),
        ("lognormal:607,-1", "sigma is `-1`"),
        ("lognormal:607,inf", "sigma is `inf`"),
        ("lognormal:607,1,2,0.5", "share is `2`"),
        ("lognormal:607,1,0.1,0", "from is `0`"),
    ];
    for (text, message) in cases {
        let error = text.parse::<Distribution>().unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
        assert!(error.contains("legal is lognormal:MEDIAN,SIGMA"), "{error}");
    }
    for limit_tokens in [0, 1 << 32] {
        let error = distribution("lognormal:607,1")
            .samples(limit_tokens, 0)
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&format!("up to {limit_tokens} tokens")),
            "{error}"
        );
    }
}

#[test]
fn calibrated_distributions_have_the_quantiles_they_say() {
    for (name, limit, median, p99) in [
        ("calibrated-256k", 262_144, 607, 33_800),
        ("calibrated-1m", 1 << 20, 644, 73_000),
    ] {
        let drawn = distribution(name).samples(limit, 7).expect("a legal limit");
        let mut lengths: Vec<u64> = drawn.take(400_000).collect();
        lengths.sort_unstable();
        let near = |found: u64, said: u64| found.abs_diff(said) * 50 <= said;
        assert!(near(lengths[200_000], median), "{}", lengths[200_000]);
        assert!(near(lengths[396_000], p99), "{}", lengths[396_000]);
    }
    let named = distribution("calibrated-256k");
    assert_eq!(named.to_string().parse(), Ok(named));
}

#[test]
fn a_distribution_prints_as_it_is_written() {
    assert_eq!(
        distribution("lognormal:1K,2.0").to_string(),
        "lognormal:1024,2"
    );
    assert_eq!(
        distribution("lognormal:607,1.7,0.001,0.7").to_string(),
        "lognormal:607,1.7,0.001,0.7"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn drawn_lengths_stay_within_their_limits_and_repeat(
        median in 1..100_000_u64,
        sigma in 0.0..10.0_f64,
        share in 0.0..=1.0_f64,
        limit in 1..=u64::from(u32::MAX),
        seed in any::<u64>(),
    ) {
        let text = format!("lognormal:{median},{sigma},{share},0.001");
        let lengths = draw(&text, limit, seed, 200);
        prop_assert!(lengths.iter().all(|length| (1..=limit).contains(length)));
        prop_assert_eq!(draw(&text, limit, seed, 200), lengths);
    }
}
