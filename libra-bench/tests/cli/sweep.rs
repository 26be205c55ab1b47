//! Combinations side by side.

use serde_json::Value;

use super::{json, run, stdout};

const WINDOW: &str = "linux-6.1 --tokens 32K --gbs 16 --dp 8 --cp 4 -P 4 --gpus-per-node 4";

fn number(case: &Value, field: &str) -> f64 {
    case[field]
        .as_f64()
        .unwrap_or_else(|| panic!("{field} is a number: {case}"))
}

#[test]
fn every_combination_is_a_case_with_its_settings_and_numbers() {
    let flags = "-H 8 -B 1K --kv range --over placement=paper,export --over slack=0.03,0.1";
    let report = json(&format!("sweep {WINDOW} --windows 2 {flags}"));
    let cases = report["cases"].as_array().expect("a list");
    let named: Vec<(&str, f64)> = cases
        .iter()
        .map(|case| {
            (
                case["placement"].as_str().expect("text"),
                number(case, "slack"),
            )
        })
        .collect();
    let expected = [
        ("paper", 0.03),
        ("paper", 0.1),
        ("export", 0.03),
        ("export", 0.1),
    ];
    assert_eq!(named, expected);
    for case in cases {
        assert_eq!(number(case, "windows"), 2.0);
        let moved = number(case, "qo_bytes_mean") + number(case, "kv_bytes_mean");
        assert!((moved - number(case, "moved_bytes_mean")).abs() < 1.0);
        assert!(number(case, "moved_bytes_bound_mean") <= moved);
        assert!(number(case, "intra_excess_max") <= number(case, "slack") + 1e-9);
        assert!(number(case, "inter_gap_mean") <= number(case, "inter_gap_max"));
        for field in [
            "max_send_bytes_mean",
            "max_recv_bytes_mean",
            "cross_node_bytes_mean",
        ] {
            assert!(number(case, field) > 0.0, "{field}");
        }
    }
    // Runs move less than Algorithm 2 does.
    assert!(number(&cases[2], "moved_bytes_ratio") < number(&cases[0], "moved_bytes_ratio"));
}

#[test]
fn algorithm_2_beside_itself_is_even() {
    let report = json(&format!(
        "sweep {WINDOW} --vrsp paper --kv whole --kv-route direct --placement paper"
    ));
    let case = &report["cases"][0];
    for field in [
        "moved_bytes_ratio",
        "cross_node_bytes_ratio",
        "busiest_port_ratio",
    ] {
        assert_eq!(number(case, field), 1.0, "{field}");
    }
}

#[test]
fn the_numbers_are_those_of_plan() {
    let flags = "-H 4 -B 2K --placement export --kv range --kv-route node";
    let plan = json(&format!("plan {WINDOW} --windows 2 {flags}"));
    let pools = plan["cases"].as_array().expect("a list");
    let swept = "-B 2K --placement export --kv range --kv-route node --over H=4";
    let sweep = json(&format!("sweep {WINDOW} --windows 2 {swept}"));
    let case = &sweep["cases"][0];
    for (field, of) in [
        ("moved_bytes_mean", "moved_bytes"),
        ("kv_bytes_mean", "kv_bytes"),
    ] {
        let sum: f64 = pools.iter().map(|pool| number(pool, of)).sum();
        let mean = sum / pools.len() as f64;
        assert!((number(case, field) - mean).abs() < 1.0, "{field}");
    }
}

#[test]
fn the_command_below_the_table_prints_the_table() {
    let line = format!("sweep {WINDOW} --over H=1,8 --over placement=home,export --no-timings");
    let printed = stdout(&line);
    let again = printed
        .lines()
        .find_map(|line| line.strip_prefix("# Reproduce: libra-bench "));
    assert_eq!(stdout(again.expect("a command")), printed);
}

#[test]
fn what_cannot_be_swept_is_refused_with_what_can() {
    for (flags, code, message) in [
        (
            "--over Q=1",
            2,
            "no flag `Q` to sweep over; legal is P, H, B, M,",
        ),
        ("--over H=", 2, "`H=` lacks a value; legal is H=VALUE,VALUE"),
        ("--over H=1,,2", 2, "`H=1,,2` lacks a value"),
        (
            "--over placement=best",
            2,
            "invalid value 'best' for '--placement <PLACEMENT>'",
        ),
        ("--over H=1,3", 3, "h_q is 32, not a multiple of H 3"),
    ] {
        let done = run(&format!("sweep linux-6.1 {flags}"));
        assert!(done.stderr.contains(message), "{flags}: {}", done.stderr);
        assert_eq!((done.code, done.stdout.as_str()), (code, ""), "{flags}");
    }
}
