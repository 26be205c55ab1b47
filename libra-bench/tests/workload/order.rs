//! Orders of samples.

use std::fs;

use libra_bench::workload::{LengthSource, Lengths, Order, open};
use proptest::prelude::*;

/// A stream of 1, 2, 3 and so on.
fn counting(end: u64) -> (tempfile::TempDir, Lengths) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.txt");
    let text: String = (1..=end).map(|length| format!("{length}\n")).collect();
    fs::write(&path, text).expect("written");
    let spec = path.to_str().expect("the path is UTF-8").to_owned();
    let lengths = open(&[spec], &LengthSource::default()).expect("readable");
    (folder, lengths)
}

fn ordered(end: u64, order: &str, seed: u64) -> Vec<u64> {
    let order: Order = order.parse().expect("an order");
    let (_folder, lengths) = counting(end);
    order.apply(lengths, seed).into_vec().expect("readable")
}

#[test]
fn orders_are_the_same_on_every_machine() {
    assert_eq!(ordered(8, "as-is", 7), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(ordered(8, "windowed:3", 7), WINDOWED);
    assert_eq!(ordered(8, "shuffled", 7), SHUFFLED);
}

const WINDOWED: [u64; 8] = [1, 4, 5, 2, 7, 3, 6, 8];
const SHUFFLED: [u64; 8] = [4, 7, 5, 6, 3, 2, 8, 1];

#[test]
fn every_order_of_a_full_shuffle_is_as_likely() {
    // 24 orders of four, 4800 times: about 200 each, and five standard deviations are 69.
    let mut counts = std::collections::BTreeMap::new();
    for seed in 0..4800 {
        *counts.entry(ordered(4, "shuffled", seed)).or_insert(0_u32) += 1;
    }
    assert_eq!(counts.len(), 24);
    assert!(
        counts.values().all(|count| count.abs_diff(200) < 69),
        "{counts:?}"
    );
}

#[test]
fn an_order_is_written_as_it_is_read() {
    for order in [
        "as-is",
        "windowed:1",
        "windowed:64K",
        "windowed:1G",
        "shuffled",
    ] {
        assert_eq!(order.parse::<Order>().expect("legal").to_string(), order);
    }
    for (order, problem) in [
        ("", "is not an order"),
        ("random", "is not an order"),
        ("windowed", "is not an order"),
        ("windowed:0", "has no such number of places"),
        ("windowed:2G", "has no such number of places"),
        ("windowed:x", "has no such number of places"),
    ] {
        let error = order.parse::<Order>().unwrap_err();
        assert_eq!(
            error,
            format!(
                "`{order}` {problem}; legal is as-is, windowed:N with N from 1 to 1073741824, or shuffled"
            )
        );
    }
}

#[test]
fn what_an_order_holds_is_four_bytes_a_sample() {
    assert_eq!(Order::AsIs.held_bytes(1000), 0);
    assert_eq!(Order::Windowed(64).held_bytes(1000), 256);
    assert_eq!(Order::Windowed(64).held_bytes(10), 40);
    assert_eq!(Order::Shuffled.held_bytes(1000), 4000);
}

#[test]
fn an_error_in_the_lengths_comes_through_an_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.txt");
    fs::write(&path, "7\n0\n").expect("written");
    let spec = path.to_str().expect("the path is UTF-8");
    for order in [
        Order::AsIs,
        Order::Windowed(1),
        Order::Windowed(9),
        Order::Shuffled,
    ] {
        let lengths = open(&[spec], &LengthSource::default()).expect("it is there");
        let mut lengths = order.apply(lengths, 7);
        while lengths.next().is_some() {}
        let error = lengths
            .take_error()
            .expect("the second length is 0")
            .to_string();
        assert!(error.contains("line 2: the sample has 0 tokens"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn an_order_drops_and_doubles_nothing(end in 1..3000_u64, places in 1..200_u32, seed in any::<u64>()) {
        let windowed = format!("windowed:{places}");
        for order in [windowed.as_str(), "shuffled"] {
            let mut lengths = ordered(end, order, seed);
            prop_assert_eq!(&ordered(end, order, seed), &lengths);
            lengths.sort_unstable();
            prop_assert_eq!(lengths, (1..=end).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_sample_comes_earlier_than_the_buffer_lets_it(end in 1..3000_u64, places in 1..200_u32, seed in any::<u64>()) {
        let lengths = ordered(end, &format!("windowed:{places}"), seed);
        for (place, length) in (1..).zip(lengths) {
            prop_assert!(length < place + u64::from(places), "{length} at {place}");
        }
    }
}
