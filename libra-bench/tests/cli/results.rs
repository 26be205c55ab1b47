//! Executed pools: right in every mode, told about in JSON.

use serde_json::Value;

use super::json;

/// A pool of the bundled corpus at a size for tests: 4 sequences of 256 tokens on 8 workers.
const POOL: &str = "run linux-6.1 --tokens 32K --gbs 8 --dp 4 --cp 2 -P 4 -B 2K \
                    --q-heads 8 --kv-heads 2 --head-dim 8 --scale 128";

fn wrong(report: &Value) -> Vec<u64> {
    let cases = report["cases"].as_array().expect("a list").iter();
    cases
        .map(|case| case["wrong"].as_u64().expect("a number"))
        .collect()
}

#[test]
fn results_in_f64_are_exact_in_every_mode() {
    for backward in ["recompute", "stash", "refetch"] {
        for layout in ["contiguous", "zigzag"] {
            for mask in ["causal", "full", "window:4096,sinks:512"] {
                let flags = format!("--backward {backward} --layout {layout} --mask {mask}");
                let report = json(&format!("{POOL} --dtype f64 {flags}"));
                assert_eq!(wrong(&report), [0, 0], "{flags}");
            }
        }
    }
}

#[test]
fn results_in_f32_are_as_good_as_plain_attention() {
    for mask in ["causal", "full"] {
        let report = json(&format!("{POOL} --mask {mask} --backward stash"));
        assert_eq!(wrong(&report), [0, 0], "{mask}");
        for case in report["cases"].as_array().expect("a list") {
            let number = |field: &str| case[field].as_f64().expect("a number");
            assert!(number("max_abs_error") <= 2.0 * number("reference_abs_error"));
        }
    }
}

#[test]
fn every_kind_of_mask_is_computed_from_ranges() {
    for mask in [
        "causal+2000",
        "window:4096",
        "two-sided:1000,3000",
        "chunked:8192",
        "block:1024,local:3,sinks:1",
        "prefix:5000",
        "keys:3000..9000",
    ] {
        let flags = format!("--kv range --mask {mask} --dtype f64");
        let report = json(&format!("{POOL} {flags}"));
        assert_eq!(wrong(&report), [0, 0], "{mask}");
        assert_eq!(report["config"]["mask"], mask);
        let report = json(&format!("{POOL} --kv range --mask {mask}"));
        assert_eq!(wrong(&report), [0, 0], "{mask} in f32");
    }
}

#[test]
fn gradients_that_are_exactly_nothing_are_not_wrong_in_f32() {
    // Samples of one token: one key each, so dQ and dK are 0.
    let report = json("run --dist lognormal:1,0 --preset tiny");
    assert_eq!(wrong(&report), [0, 0]);
}

#[test]
fn a_slack_without_limit_is_named_in_json() {
    let report = json("plan linux-6.1 --preset tiny --slack inf");
    assert_eq!(report["config"]["slack"], "inf");
}

#[test]
fn the_run_report_has_every_promised_field() {
    let report = json(&format!("{POOL} -r 2 -w 0"));
    assert_eq!(report["command"], "run");
    assert!(report["plan_id"].is_string());
    let cases = report["cases"].as_array().expect("a list");
    let methods: Vec<&Value> = cases.iter().map(|case| &case["method"]).collect();
    assert_eq!(methods, ["ulysses", "libra"]);
    for case in cases {
        for field in [
            "forward_ns",
            "backward_ns",
            "forward_mean_ns",
            "backward_mean_ns",
        ] {
            assert_eq!(case[field].as_array().map(Vec::len), Some(2), "{field}");
        }
        for field in [
            "workers",
            "forward_tflops",
            "exposed_fraction",
            "max_abs_error",
            "reference_abs_error",
            "wrong",
            "moved_bytes",
        ] {
            assert!(case[field].is_number(), "{field}");
        }
        assert_eq!(case["backend"], "cpu");
        assert_eq!(case["workers"], 8);
    }
}

#[test]
fn every_placement_computes_the_same() {
    for placement in ["home", "paper", "ulysses"] {
        let report = json(&format!("{POOL} --dtype f64 --placement {placement}"));
        assert_eq!(wrong(&report), [0, 0], "{placement}");
    }
}

#[test]
fn every_route_computes_the_same() {
    for backward in ["recompute", "stash", "refetch"] {
        let flags = format!("--dtype f64 --kv-route node --gpus-per-node 4 --backward {backward}");
        let report = json(&format!("{POOL} {flags}"));
        assert_eq!(wrong(&report), [0, 0], "{backward}");
    }
}

#[test]
fn a_merged_pool_is_executed_to_the_last_bit() {
    let flags = "--dist lognormal:4,1,0.02,0.9 --preset tiny --elastic 2";
    let report = json(&format!("plan {flags}"));
    let pools = report["cases"].as_array().expect("a list");
    assert_eq!(pools[0]["pool_size"], 4, "twice P");
    assert_eq!(report["summary"]["merged"][0]["pool_sizes"][0], 4);
    let sequences: u64 = pools
        .iter()
        .filter_map(|pool| pool["pool_size"].as_u64())
        .sum();
    assert_eq!(sequences, 8);
    let report = json(&format!("run {flags} --dtype f64"));
    assert_eq!(wrong(&report), [0, 0]);
    assert_eq!(report["cases"][1]["workers"], 8, "CP of each sequence");
}

#[test]
fn a_merged_pool_runs_with_everything_else() {
    // Speeds are those of a pool of P: a merged one has each of them twice.
    let merged = "--dist lognormal:4,1,0.02,0.9 --preset tiny --elastic 2 --tiles adaptive";
    let moved = "--kv range --kv-route node --gpus-per-node 3 --speeds 1=0.5";
    for mask in ["causal", "window:6,sinks:2", "block:4,local:1,sinks:1"] {
        let costs = "--costs ../docs/src/data/costs-h100.json";
        let flags = format!("{merged} {moved} --mask {mask} --dtype f64");
        let report = json(&format!("run {flags} {costs}"));
        assert_eq!(wrong(&report), [0, 0], "{mask}");
        assert_eq!(report["cases"][1]["workers"], 8, "{mask}");
    }
}

#[test]
fn empty_sequences_have_no_results_to_be_wrong() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("a.txt"), "30\n40\n").expect("written");
    for pool in ["0", "3"] {
        for dtype in ["f32", "f64"] {
            let arguments = [
                "run",
                "a.txt",
                "--preset",
                "tiny",
                "--fill-last",
                "--pool",
                pool,
                "--dtype",
                dtype,
                "--format",
                "json",
            ];
            let done = super::run_at(folder.path(), &arguments);
            assert_eq!((done.code, done.stderr.as_str()), (0, ""));
            let report: Value = serde_json::from_str(&done.stdout).expect("JSON");
            assert_eq!(wrong(&report), [0, 0], "pool {pool} in {dtype}");
        }
    }
}
