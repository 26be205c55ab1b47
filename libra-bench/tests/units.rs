//! Numbers as people type and read them.

use libra_bench::exit;
use libra_bench::units::{
    LIST_ITEMS_MAX, format_bytes, format_count, format_time_ns, parse_count, parse_counts,
};
use proptest::prelude::*;

#[test]
fn counts_take_suffixes_of_1024_and_underscores() {
    let cases = [
        ("0", 0),
        ("17", 17),
        ("8_192", 8192),
        ("256K", 262_144),
        ("256k", 262_144),
        ("1M", 1 << 20),
        ("3g", 3 << 30),
        (" 4K ", 4096),
        ("18446744073709551615", u64::MAX),
    ];
    for (text, count) in cases {
        assert_eq!(parse_count(text), Ok(count), "{text}");
    }
}

#[test]
fn a_wrong_count_is_told_with_its_text_and_what_is_legal() {
    let cases = [
        ("", "`` lacks a number; legal is a whole number"),
        ("-3", "`-3` is negative; legal is 0 to"),
        ("-3K", "`-3K` is negative"),
        ("-", "`-` is not a number"),
        ("1.5K", "`1.5K` is not whole; legal is a whole number"),
        ("2.", "`2.` is not whole"),
        ("K", "`K` is not a number"),
        ("12T", "`12T` is not a number"),
        ("12KB", "`12KB` is not a number"),
        ("_1", "`_1` is not a number"),
        ("1_", "`1_` is not a number"),
        ("1e6", "`1e6` is not a number"),
        ("٣", "`٣` is not a number"),
        (
            "18446744073709551616",
            "`18446744073709551616` is too large",
        ),
        ("17179869184G", "`17179869184G` is too large"),
    ];
    for (text, message) in cases {
        let error = parse_count(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn lists_and_ranges_include_their_ends() {
    let cases: [(&str, &[u64]); 7] = [
        ("8", &[8]),
        ("2,4,8", &[2, 4, 8]),
        ("1..4", &[1, 2, 3, 4]),
        ("5..5", &[5]),
        ("2K..32K*2", &[2048, 4096, 8192, 16384, 32768]),
        ("1..20*3", &[1, 3, 9]),
        ("1,3..4,1K..2K*2", &[1, 3, 4, 1024, 2048]),
    ];
    for (text, counts) in cases {
        assert_eq!(parse_counts(text).as_deref(), Ok(counts), "{text}");
    }
    let top = parse_counts("1..18446744073709551615*2").expect("64 powers of two fit");
    assert_eq!(top.len(), 64);
    assert_eq!(
        parse_counts("1..1024").expect("as many as are legal").len(),
        LIST_ITEMS_MAX
    );
}

#[test]
fn a_wrong_list_is_told_with_its_text_and_what_is_legal() {
    let cases = [
        ("", "`` lacks a number"),
        ("2,,4", "`2,,4` lacks a number"),
        ("2,4,", "`2,4,` lacks a number"),
        ("2,x", "`x` is not a number"),
        ("4..", "`4..` lacks a number"),
        ("..4", "`..4` lacks a number"),
        ("1..4*", "`1..4*` lacks a number"),
        ("1..4..8", "`4..8` is not a number"),
        ("8..2", "range `8..2` ends at 2, below its start 8"),
        ("2..8*1", "multiplies 2 by 1 and never reaches its end"),
        ("0..8*2", "multiplies 0 by 2 and never reaches its end"),
        (
            "1..1025",
            "`1..1025` stands for 1025 numbers; legal is at most 1024",
        ),
        (
            "7,1..1024",
            "`7,1..1024` stands for 1025 numbers; legal is at most 1024",
        ),
        (
            "0..18446744073709551615",
            "stands for 18446744073709551615 numbers",
        ),
    ];
    for (text, message) in cases {
        let error = parse_counts(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
    let long = vec!["1"; 1025].join(",");
    let error = parse_counts(&long).unwrap_err().to_string();
    assert!(error.contains("stands for 1025 numbers"), "{error}");
    assert!(error.len() < 300, "{error}");
}

#[test]
fn sizes_and_times_are_rounded_before_their_unit_is_chosen() {
    let sizes = [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (50_251_000_000, "46.8 GiB"),
        ((1 << 30) - 1, "1.0 GiB"),
        (u64::MAX, "16.0 EiB"),
    ];
    for (bytes, text) in sizes {
        assert_eq!(format_bytes(bytes), text);
    }
    let times = [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (12_449, "12.4 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (9_996_000, "10.0 ms"),
        (99_960_000, "100 ms"),
        (3_054_000_000, "3.05 s"),
        (7_200_000_000_000, "7200 s"),
    ];
    for (time_ns, text) in times {
        assert_eq!(format_time_ns(time_ns), text);
    }
}

#[test]
fn counts_are_printed_with_the_largest_suffix_that_divides_them() {
    let cases = [
        (0, "0"),
        (1000, "1000"),
        (1536, "1536"),
        (262_144, "256K"),
        (1 << 20, "1M"),
        (3 << 30, "3G"),
    ];
    for (count, text) in cases {
        assert_eq!(format_count(count), text);
    }
}

#[test]
fn exit_codes_are_public_and_fixed() {
    let codes = [
        exit::DONE,
        exit::UNEXPECTED,
        exit::USAGE,
        exit::INPUT,
        exit::CHECK,
        exit::COMPARISON,
        exit::ENVIRONMENT,
        exit::TIMEOUT,
        exit::INTERRUPTED,
    ];
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 130]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_printed_count_reads_back_as_itself(digits in any::<u64>(), shift in 0..64_u32) {
        let count = digits << shift;
        prop_assert_eq!(parse_count(&format_count(count)), Ok(count));
    }

    #[test]
    fn no_text_panics(text in "[-0-9KkMG_.,*x ]{0,24}") {
        let _ = parse_count(&text);
        if let Ok(counts) = parse_counts(&text) {
            prop_assert!((1..=LIST_ITEMS_MAX).contains(&counts.len()));
        }
    }
}
