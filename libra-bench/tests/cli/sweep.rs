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
    let over = "--over placement=paper,export --over slack=0.03,0.1";
    let flags = format!("-H 8 -B 1K --kv range {over} --beside paper");
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
            "tokens",
            "gbs",
            "pool_size",
            "cp",
            "head_shards",
            "block_tokens",
            "chunks",
            "tiles_mean",
            "inter_bound_excess_mean",
            "tile_bound_excess_mean",
            "worst_excess_max",
            "max_send_bytes_mean",
            "max_recv_bytes_mean",
            "max_staged_bytes_max",
            "intra_node_bytes_mean",
            "cross_node_bytes_mean",
            "worker_moved_bytes_mean",
            "busiest_port_us_mean",
            "vrsp_ns_median",
            "plan_ns_median",
        ] {
            assert!(number(case, field) >= 0.0, "{field}");
        }
    }
    // Runs move less than Algorithm 2 does.
    assert!(number(&cases[2], "moved_bytes_ratio") < number(&cases[0], "moved_bytes_ratio"));
}

#[test]
fn algorithm_2_beside_itself_is_even() {
    let report = json(&format!(
        "sweep {WINDOW} --vrsp paper --kv whole --kv-route direct --placement paper --beside paper"
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
fn the_worst_worker_is_that_of_all_pools() {
    let plan = json(&format!("plan {WINDOW} --windows 3"));
    let mut worst = [f64::NEG_INFINITY; 3];
    for pool in plan["cases"].as_array().expect("a list") {
        // Loads over the mean of the window: the pool's times that of its heaviest worker in it.
        let pools = (1.0 + number(pool, "pool_excess")) * (1.0 + number(pool, "intra_excess"));
        let window = &mut worst[number(pool, "window") as usize];
        *window = window.max(pools - 1.0);
    }
    let sweep = json(&format!("sweep {WINDOW} --windows 3"));
    let case = &sweep["cases"][0];
    let (mean, max) = (
        worst.iter().sum::<f64>() / 3.0,
        worst.into_iter().fold(0.0, f64::max),
    );
    assert!((number(case, "worst_excess_mean") - mean).abs() < 1e-12);
    assert!((number(case, "worst_excess_max") - max).abs() < 1e-12);
}

#[test]
fn no_number_depends_on_the_threads() {
    let line = "sweep --dist lognormal:12,1 --preset tiny --windows 300 -P 1,2,4 --beside paper --no-timings";
    let one = json(&format!("{line} --threads 1"));
    let five = json(&format!("{line} --threads 5"));
    assert_eq!(one["cases"], five["cases"]);
    assert_eq!(one["cases"][1]["windows"], 300);
}

#[test]
fn a_list_after_a_flag_is_swept_over() {
    let lists = stdout(&format!(
        "sweep {WINDOW} -P 2,4 --block=1K..4K*2 --no-timings"
    ));
    let over = stdout(&format!(
        "sweep {WINDOW} --over P=2,4 --over B=1K,2K,4K --no-timings"
    ));
    assert_eq!(lists, over);
    let done = run("sweep linux-6.1 -P 4..2");
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    assert!(
        done.stderr.contains("legal is a range upwards"),
        "{}",
        done.stderr
    );
    // One value of these may have a comma.
    let done = run("sweep linux-6.1 --preset tiny --mask window:6,sinks:2");
    assert_eq!(done.code, 0, "{}", done.stderr);
}

#[test]
fn as_many_plans_are_verified_as_asked_for() {
    let windows = "sweep --dist lognormal:12,1 --preset tiny --windows 50";
    for (flags, verified) in [
        // Four pools a window: those of the first, then numbers 61, 122 and 183.
        ("", 7.0),
        ("--verify all", 200.0),
        ("--verify none", 0.0),
    ] {
        let report = json(&format!("{windows} {flags}"));
        let case = &report["cases"][0];
        assert_eq!(number(case, "verified_pools"), verified, "{flags}");
        assert_eq!(number(case, "pools"), 200.0);
    }
}

#[test]
fn no_combination_on_the_front_is_beaten() {
    let report = json(&format!("sweep {WINDOW} -P 1,2,4 -H 1,8 --slack 0.01,0.3"));
    let cases = report["cases"].as_array().expect("a list");
    for (mark, cost) in [
        ("pareto_bytes", "worker_moved_bytes_mean"),
        ("pareto_port", "busiest_port_us_mean"),
    ] {
        for case in cases {
            let costs = |case: &Value| (number(case, cost), number(case, "worst_excess_mean"));
            let own = costs(case);
            let beats = |other: &Value| {
                let other = costs(other);
                other.0 <= own.0 && other.1 <= own.1 && other != own
            };
            assert_eq!(case[mark], !cases.iter().any(beats), "{mark}: {case}");
        }
    }
    let name = &report["recommended"]["combination"];
    assert!(
        name.as_str().is_some_and(|name| name.starts_with("-P ")),
        "{name}"
    );
    let one = json(&format!("sweep {WINDOW}"));
    assert_eq!(one["recommended"], Value::Null);
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
        ("--over H=1 -H 2,4", 2, "--over: -H is there twice"),
        ("--over H=1,3", 3, "h_q is 32, not a multiple of H 3"),
    ] {
        let done = run(&format!("sweep linux-6.1 {flags}"));
        assert!(done.stderr.contains(message), "{flags}: {}", done.stderr);
        assert_eq!((done.code, done.stdout.as_str()), (code, ""), "{flags}");
    }
}

#[test]
fn fewer_windows_than_asked_for_are_told_once() {
    let line = "sweep linux-6.1 --skip-windows 7 --windows 9 -P 8,16 --placement home";
    let done = run(line);
    let said = "warning: -P 8: 9 windows asked for, the corpus has 2\n";
    assert_eq!((done.code, done.stderr.as_str()), (0, said));
}
