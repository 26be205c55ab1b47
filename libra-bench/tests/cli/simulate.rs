//! Simulated steps: fields, sums, errors, traces.

use serde_json::Value;

use super::{json, run, run_at, stdout};

/// A window that is planned quickly.
const WINDOW: &str =
    "linux-6.1 --tokens 32K --gbs 8 --dp 4 --cp 4 -P 4 --q-heads 8 --kv-heads 4 --head-dim 64 -M 2";

fn number(case: &Value, field: &str) -> f64 {
    case[field]
        .as_f64()
        .unwrap_or_else(|| panic!("{field} is a number: {case}"))
}

#[test]
fn the_simulate_report_has_every_promised_field() {
    let report = json(&format!("simulate {WINDOW} --windows 2"));
    assert_eq!(report["command"], "simulate");
    let cases = report["cases"].as_array().expect("a list");
    let methods: Vec<&Value> = cases.iter().map(|case| &case["method"]).collect();
    assert_eq!(methods, ["ulysses", "paper", "libra"]);
    for case in cases {
        for field in [
            "straggler_ms_mean",
            "straggler_ms_max",
            "compute_ms_mean",
            "comm_ms_mean",
            "exposed_ms_mean",
            "speedup_mean",
            "speedup_max",
            "step_ms_mean",
            "tokens_per_s",
        ] {
            assert!(number(case, field) > 0.0, "{field}");
        }
        assert!(number(case, "straggler_ms_mean") <= number(case, "straggler_ms_max"));
        assert!(number(case, "compute_ms_mean") <= number(case, "straggler_ms_mean"));
        // Two windows of two GA indices.
        assert_eq!(case["straggler_ns"].as_array().map(Vec::len), Some(4));
        assert_eq!(case["step_ns"].as_array().map(Vec::len), Some(2));
        assert_eq!(case["windows"], 2);
        let ratio = number(&cases[0], "straggler_ms_mean") / number(case, "straggler_ms_mean");
        assert!((ratio - number(case, "speedup_mean")).abs() < 1e-9);
    }
    assert_eq!(number(&cases[0], "speedup_mean"), 1.0);
    assert_eq!(report["config"]["cluster"]["name"], "h200");
}

#[test]
fn without_ulysses_nothing_is_over_ulysses() {
    let report = json(&format!("simulate {WINDOW} --method libra"));
    assert_eq!(report["cases"][0]["speedup_mean"], Value::Null);
}

#[test]
fn the_command_below_the_table_prints_the_table() {
    let line = format!(
        "simulate {WINDOW} --method ulysses,tap --backward stash --cluster h100 --pp 2 --model qwen3-8b"
    );
    let printed = stdout(&line);
    let again = printed
        .lines()
        .find_map(|line| line.strip_prefix("# Reproduce: libra-bench "));
    assert_eq!(stdout(again.expect("a command")), printed);
    assert_eq!(stdout(&format!("{line} --threads 1")), printed);
}

#[test]
fn a_cluster_file_is_read_and_refused_with_what_is_legal() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("mine.toml");
    let text = include_str!("../../profiles/h200.toml");
    let simulate = |text: &str, more: &[&str]| {
        std::fs::write(&path, text).expect("written");
        let mut arguments = vec![
            "simulate",
            "linux-6.1",
            "--preset",
            "tiny",
            "--cluster",
            "mine.toml",
        ];
        arguments.extend(more);
        run_at(folder.path(), &arguments)
    };
    let done = simulate(text, &[]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    for (from, to, message) in [
        (
            "nics = 8",
            "nics = 3",
            "mine.toml: node.nics is 3; legal is a divisor or a multiple of the 8 GPUs of a node",
        ),
        ("nics = 8", "nics = -1", "line 7, column 8"),
        (
            "h200-fa3",
            "h300",
            "h300: neither a file nor a built-in kernel table; legal are h200-fa3,",
        ),
        (
            "name =",
            "nodes = 1\nname =",
            "mine.toml: 1 nodes of 8 are 8 GPUs, DP*CP*PP asks for 16",
        ),
    ] {
        let done = simulate(&text.replacen(from, to, 1), &["--pp", "2"]);
        assert!(done.stderr.contains(message), "{}", done.stderr);
        assert_eq!((done.code, done.stdout.as_str()), (3, ""));
    }
    let done = simulate(text, &["--gpus-per-node", "4"]);
    let message = "error: --gpus-per-node 4: nodes of the cluster mine.toml have 8 GPUs\n";
    assert_eq!((done.code, done.stderr.as_str()), (3, message));
}

#[test]
fn a_model_gives_layers_and_the_heads_that_are_not_given() {
    let heads = |flags: &str| {
        let line = format!("simulate linux-6.1 --preset tiny --windows 1 --method libra {flags}");
        let report = json(&line);
        let config = &report["config"];
        let names = ["q_heads", "kv_heads", "head_dim"];
        let layers = config["cluster"]["model"]["layers"].as_u64();
        (
            names.map(|name| config[name].as_u64().expect("a count")),
            layers,
        )
    };
    assert_eq!(heads(""), ([4, 2, 8], Some(36)));
    let moe = "--model qwen3-30b-a3b";
    assert_eq!(heads(moe), ([32, 4, 128], Some(48)));
    let given = format!("{moe} --q-heads 128 --kv-heads 16");
    assert_eq!(heads(&given), ([128, 16, 128], Some(48)));
    let report = json(&format!("simulate linux-6.1 --preset tiny {moe}"));
    // 2 * 56,885,248 operations at half of 989 TFLOP/s.
    let time_us = number(&report["config"]["cluster"]["model"], "linear_us_per_token");
    assert!((time_us - 0.23007).abs() < 1e-5, "{time_us}");
    assert_eq!(report["config"]["model"]["active_parameters"], 56_885_248);
}

#[test]
fn a_cluster_at_the_limits_of_what_is_legal_ends_in_large_numbers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let slow = include_str!("../../profiles/h200.toml")
        .replace("bandwidth_gb_s = 50", "bandwidth_gb_s = 0.001")
        .replace("latency_us = 17", "latency_us = 1000000")
        .replace("peak_tflops = 989", "peak_tflops = 0.001")
        .replace("layers = 36", "layers = 10000")
        .replace(
            "linear_us_per_token = 0.78",
            "linear_us_per_token = 1000000",
        );
    std::fs::write(folder.path().join("slow.toml"), slow).expect("written");
    let line = "simulate --dist lognormal:600,2 --tokens 256K --gbs 16 --cluster slow.toml --method all -q";
    let done = run_at(folder.path(), &line.split(' ').collect::<Vec<_>>());
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    for (flags, code, message) in [
        (
            "--method lyra",
            2,
            "method \"lyra\" is unknown; one of all, ulysses",
        ),
        (
            "--cluster h300",
            3,
            "h300: neither a file nor a built-in cluster; legal are h200, h200-nvl64, h100",
        ),
        (
            "--model gpt-1",
            3,
            "gpt-1: neither a file nor a built-in model; legal are qwen3-8b, qwen3-30b-a3b, qwen3-235b-a22b",
        ),
        (
            "--cp 8 --method ulysses",
            3,
            "ulysses splits the query heads over CP workers",
        ),
        ("--proxy moba:512,top:3", 3, "proxy"),
    ] {
        let done = run(&format!("simulate linux-6.1 --preset tiny {flags}"));
        assert!(done.stderr.contains(message), "{flags}: {}", done.stderr);
        assert_eq!((done.code, done.stdout.as_str()), (code, ""), "{flags}");
    }
}

#[test]
fn bounded_pools_are_ahead_of_all_replicas_at_once_and_those_of_none() {
    let report = json(
        "simulate --dist calibrated-256k --pack best-fit --gbs 16 --windows 2 --q-heads 128 --kv-heads 8 \
         --method ulysses,distca,paper,libra,wlb",
    );
    let cases = report["cases"].as_array().expect("a list");
    for field in ["straggler_ms_mean", "straggler_ms_max"] {
        let times: Vec<f64> = cases.iter().map(|case| number(case, field)).collect();
        let [ulysses, distca, paper, libra, _] = times[..] else {
            panic!("five methods: {times:?}");
        };
        assert!(
            ulysses > distca && distca > paper && paper > libra,
            "{field}: {times:?}"
        );
    }
    let port = |at: usize| number(&cases[at], "busiest_port_ms_mean");
    assert!(port(1) > port(2) && port(2) > port(3));
    // One sample is most of the heaviest sequence, and repacking cuts none.
    let worst = |at: usize| number(&cases[at], "straggler_ms_max");
    let ratio = worst(4) / worst(0);
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

#[test]
fn more_pipeline_stages_have_fewer_layers_and_a_bubble() {
    let step = |pp: u32| {
        let report = json(&format!("simulate {WINDOW} --method ulysses --pp {pp}"));
        number(&report["cases"][0], "step_ms_mean")
    };
    // Two microbatches: four stages take five rounds of a quarter of the layers instead of two of all.
    let ratio = step(4) / step(1);
    assert!((0.5..0.8).contains(&ratio), "{ratio}");
}

#[test]
fn a_trace_has_all_bytes_of_the_slowest_group() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut arguments: Vec<&str> = vec!["simulate"];
    arguments.extend(WINDOW.split(' '));
    arguments.extend(["--method", "ulysses,libra", "--trace", "out.json"]);
    let done = run_at(folder.path(), &arguments);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let text = std::fs::read_to_string(folder.path().join("out.json")).expect("written");
    super::traces::check(&serde_json::from_str(&text).expect("JSON"));
    for title in [
        "ulysses, replicas",
        "libra, replicas",
        "node 0",
        "w0 NIC out",
    ] {
        assert!(text.contains(title), "{title}");
    }
}
