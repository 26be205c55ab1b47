//! Pareto and histogram distributions.

use std::fs;

use libra_bench::workload::{CorpusStats, Distribution, DistributionError, Lengths};

fn draw(text: &str, limit_tokens: u64, samples: usize) -> Vec<u64> {
    let distribution: Distribution = text.parse().expect("the distribution is legal");
    let drawn = distribution.samples(limit_tokens, 7).expect("legal");
    drawn.take(samples).collect()
}

#[test]
fn drawn_lengths_are_the_same_on_every_machine() {
    assert_eq!(draw("pareto:100,1.2", 1 << 20, 6), PARETO);
    assert_eq!(draw("magi-attention", 1 << 20, 6), MAGI);
}

const PARETO: [u64; 6] = [105, 117, 287, 159, 1584, 169];
const MAGI: [u64; 6] = [57, 1377, 5657, 1288, 8619, 113];

#[test]
fn a_stream_of_drawn_lengths_is_what_the_iterator_gives() {
    let distribution: Distribution = "pareto:1,1".parse().expect("legal");
    let samples = distribution.samples(4096, 7).expect("legal");
    let stream = Lengths::from(samples.clone());
    assert!(stream.take(20_000).eq(samples.take(20_000)));
}

#[test]
fn a_pareto_tail_falls_by_its_exponent() {
    let lengths = draw("pareto:100,1.5", u64::from(u32::MAX), 200_000);
    assert!(lengths.iter().all(|&length| length >= 100));
    // Above 100 x with probability x^-1.5: 1/8 and 1/64.
    for (above, expected) in [(400, 25_000_u64), (1600, 3_125)] {
        let found = lengths.iter().filter(|&&length| length > above).count() as u64;
        assert!(found.abs_diff(expected) * 20 < expected, "{above}: {found}");
    }
    assert!(draw("pareto:100,0.1", 5000, 1000).contains(&5000));
}

#[test]
fn the_bundled_histogram_has_the_shares_it_was_published_with() {
    let lengths = draw("magi-attention", 1 << 20, 200_000);
    let bounds = [
        (1, 10, 0.22),
        (11, 50, 2.91),
        (201, 500, 28.19),
        (1025, 2048, 15.65),
        (16_385, 32_768, 0.85),
        (131_073, 200_704, 0.14),
    ];
    for (from, to, per_cent) in bounds {
        let found = lengths
            .iter()
            .filter(|length| (from..=to).contains(*length))
            .count();
        let found = found as f64 * 100.0 / lengths.len() as f64;
        let deviation = (per_cent * (100.0 - per_cent) / lengths.len() as f64).sqrt();
        assert!(
            (found - per_cent).abs() < 5.0 * deviation,
            "{from}..={to}: {found}"
        );
    }
    assert_eq!(
        lengths.iter().max().map(|&longest| longest <= 200_704),
        Some(true)
    );
}

#[test]
fn a_histogram_is_read_from_a_file_and_drawn_within_its_buckets() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.hist");
    fs::write(&path, "# bound weight\n10, 0\n20\t3 # most\n\n1000 1\n").expect("written");
    for (flag, middle) in [("", 141), (",uniform", 510)] {
        let text = format!("histogram:{}{flag}", path.display());
        assert_eq!(
            text.parse::<Distribution>().expect("legal").to_string(),
            text
        );
        let lengths = draw(&text, 4096, 100_000);
        assert!(lengths.iter().all(|length| (11..=1000).contains(length)));
        let long: Vec<u64> = lengths
            .iter()
            .copied()
            .filter(|&length| length > 20)
            .collect();
        assert!(long.len().abs_diff(25_000) < 700, "{}", long.len());
        // The median of a bucket is its geometric or arithmetic mean.
        let median = CorpusStats::of(&long).expect("samples").p50_tokens;
        assert!(median.abs_diff(middle) * 20 < middle, "{median}");
    }
}

#[test]
fn a_broken_histogram_is_told_with_line_and_what_is_legal() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.hist");
    for (text, message) in [
        (
            "10 1\n10 2\n",
            "line 2: bound `10`, legal is 11 to 4294967295",
        ),
        ("0 1\n", "line 1: bound `0`, legal is 1 to 4294967295"),
        (
            "4294967296 1\n",
            "line 1: bound `4294967296`, legal is 1 to 4294967295",
        ),
        (
            "10\n",
            "line 1: 1 numbers, legal are a bound and its weight",
        ),
        (
            "10 1 2\n",
            "line 1: 3 numbers, legal are a bound and its weight",
        ),
        ("10 -1\n", "line 1: weight `-1`, legal is 0 to 1e18"),
        ("10 nan\n", "line 1: weight `nan`, legal is 0 to 1e18"),
        (
            "10 0\n20 0\n",
            "2 buckets without weight, legal is at least one with",
        ),
        ("", "0 buckets without weight, legal is at least one with"),
    ] {
        fs::write(&path, text).expect("written");
        let distribution = format!("histogram:{}", path.display());
        let error = distribution
            .parse::<Distribution>()
            .expect("legal")
            .samples(64, 7);
        let Err(DistributionError::Histogram {
            source_name,
            problem,
        }) = error
        else {
            panic!("{text:?}: {error:?}");
        };
        assert_eq!(
            (source_name.as_str(), problem.as_str()),
            (path.to_str().unwrap(), message)
        );
    }
    let error = "histogram:src"
        .parse::<Distribution>()
        .expect("legal")
        .samples(64, 7);
    assert_eq!(
        error.unwrap_err().to_string(),
        "histogram src: legal is a regular file of at most 1048576 bytes"
    );
}

#[test]
fn a_wrong_distribution_is_told_with_what_is_legal() {
    for (text, message) in [
        ("pareto:100", "it has 1 parameters"),
        ("pareto:0,1", "min is `0`"),
        ("pareto:1,0", "alpha is `0`"),
        ("pareto:1,101", "alpha is `101`"),
        ("histogram:", "it names no file"),
        ("magi", "it has no `:`"),
    ] {
        let error = text.parse::<Distribution>().unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
        assert!(error.contains("pareto:MIN,ALPHA"), "{error}");
    }
    assert_eq!(
        "magi-attention"
            .parse::<Distribution>()
            .unwrap()
            .to_string(),
        "magi-attention"
    );
    assert_eq!(
        "pareto:1K,1.50"
            .parse::<Distribution>()
            .unwrap()
            .to_string(),
        "pareto:1024,1.5"
    );
}
