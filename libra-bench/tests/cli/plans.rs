//! Plans on disk: equal for equal inputs, right, and told about in JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use libra_sched::{verify, wire};
use serde_json::Value;

use super::{json, run_at};

/// Three windows of a real corpus, small enough for a test.
const FLAGS: [&str; 10] = [
    "linux-6.1",
    "--tokens",
    "64K",
    "--gbs",
    "32",
    "-B",
    "1K",
    "--windows",
    "3",
    "-q",
];

fn plan_into(folder: &Path, threads: &str) -> BTreeMap<String, Vec<u8>> {
    let arguments = [
        &["plan"],
        &FLAGS[..],
        &["-o", "plans/new", "--threads", threads],
    ]
    .concat();
    let done = run_at(folder, &arguments);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let entries = fs::read_dir(folder.join("plans/new")).expect("the folder is made");
    entries
        .map(|entry| entry.expect("readable"))
        .map(|entry| {
            let name = entry.file_name().into_string().expect("a plain name");
            (name, fs::read(entry.path()).expect("readable"))
        })
        .collect()
}

#[test]
fn equal_inputs_give_equal_files_on_any_number_of_threads() {
    let folders = [0; 2].map(|_| tempfile::tempdir().expect("a temporary folder"));
    let one = plan_into(folders[0].path(), "1");
    let four = plan_into(folders[1].path(), "4");
    assert!(one == four, "one thread and four write different plans");
    // Written again over what is there.
    assert!(one == plan_into(folders[0].path(), "4"));

    let names: Vec<&str> = one.keys().map(String::as_str).collect();
    assert_eq!(
        names.len(),
        12,
        "three windows of four pools, and nothing else"
    );
    assert_eq!(names[0], "window-0000-pool-000.plan");
    assert_eq!(names[11], "window-0002-pool-003.plan");
    for bytes in one.values() {
        let opened = wire::open(bytes).expect("a plan");
        assert_eq!(verify::check(&opened.plan), []);
    }
    let opened = wire::open(&one["window-0002-pool-003.plan"]).expect("a plan");
    assert_eq!(
        opened.provenance,
        concat!(
            "libra-bench ",
            env!("CARGO_PKG_VERSION"),
            ": libra-bench plan linux-6.1 --tokens 64K --gbs 32 --skip-windows 2 -B 1K; pool 3"
        )
    );
}

#[test]
fn a_window_planned_alone_is_the_same_plan() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let all = plan_into(folder.path(), "0");
    let alone = tempfile::tempdir().expect("a temporary folder");
    let arguments = [
        "plan",
        "linux-6.1",
        "--tokens",
        "64K",
        "--gbs",
        "32",
        "-B",
        "1K",
        "--skip-windows",
        "2",
        "-o",
        "out",
    ];
    assert_eq!(run_at(alone.path(), &arguments).code, 0);
    let name = "window-0002-pool-003.plan";
    let bytes = fs::read(alone.path().join("out").join(name)).expect("written");
    assert!(bytes == all[name]);
}

#[test]
fn checked_and_shown_plans_are_what_was_planned() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    plan_into(folder.path(), "0");
    let file = "plans/new/window-0001-pool-002.plan";
    let read = |command: &str, flags: &[&str]| -> Value {
        let arguments = [&[command, file, "--format", "json"], flags].concat();
        let done = run_at(folder.path(), &arguments);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""));
        serde_json::from_str(&done.stdout).expect("JSON")
    };
    let checked = read("check", &[]);
    assert_eq!(checked["violations"], Value::Array(Vec::new()));
    let shown = read("show", &[]);
    assert_eq!(checked["cases"][0]["plan_id"], shown["plan_id"]);
    assert_eq!(shown["cases"].as_array().map(Vec::len), Some(64));
    assert_eq!(shown["backward"].as_array().map(Vec::len), Some(3));

    // Every byte of the audit is a transfer in the list and a message of some worker.
    let moved = &shown["plan"]["moved_bytes"];
    let sum = |values: &Value, key: &str| -> u64 {
        let values = values.as_array().expect("a list").iter();
        values
            .map(|value| value[key].as_u64().expect("a number"))
            .sum()
    };
    let transfers = read("show", &["--transfers"]);
    assert_eq!(moved, &Value::from(sum(&transfers["transfers"], "bytes")));
    let mut messages = 0;
    for worker in 0..64 {
        let one = read("show", &["--worker", &worker.to_string()]);
        let forward = one["messages"].as_array().expect("a list").iter();
        let forward: Vec<Value> = forward
            .filter(|m| m["pass"] == "forward")
            .cloned()
            .collect();
        messages += sum(&Value::Array(forward), "sent_bytes");
    }
    assert_eq!(moved, &Value::from(messages));
}

#[test]
fn a_route_through_nodes_saves_bytes_between_them_and_shows_every_forward() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let read = |arguments: &[&str]| -> Value {
        let done = run_at(folder.path(), arguments);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""));
        serde_json::from_str(&done.stdout).expect("JSON")
    };
    let planned = |route: &str| {
        let arguments = "plan linux-6.1 --preset paper-256k --tokens 64K --gbs 32 -B 1K --kv range --format json";
        let mut arguments: Vec<&str> = arguments.split(' ').collect();
        arguments.extend(["--windows", "1", "--kv-route", route, "-o", route]);
        read(&arguments)
    };
    let (direct, node) = (planned("direct"), planned("node"));
    let again = node["reproduce"].as_str().expect("a command");
    assert!(again.contains(" --kv-route node"), "{again}");
    assert_eq!(node["config"]["kv_route"], "node");
    let number = |case: &Value, field: &str| case[field].as_u64().expect("a number");
    let cases = |report: &Value| report["cases"].as_array().cloned().expect("a list");
    for (direct, node) in cases(&direct).iter().zip(&cases(&node)) {
        let saved = number(direct, "cross_node_bytes") - number(node, "cross_node_bytes");
        assert!(saved > 0);
        assert_eq!(saved, number(node, "forward_bytes"));
        assert_eq!(number(direct, "forward_bytes"), 0);
        assert_eq!(number(direct, "kv_bytes"), number(node, "kv_bytes"));
        assert!(number(node, "busiest_port_bytes") <= number(direct, "busiest_port_bytes"));
    }

    let file = "node/window-0000-pool-001.plan";
    let show = |flags: &[&str]| read(&[&["show", file, "--format", "json"], flags].concat());
    let shown = show(&["--transfers"]);
    let transfers = shown["transfers"].as_array().expect("a list").iter();
    let forwards: Vec<&Value> = transfers.filter(|t| t["what"] == "forward").collect();
    assert_eq!(shown["plan"]["forwards"], forwards.len());
    let bytes: u64 = forwards.iter().map(|t| number(t, "bytes")).sum();
    assert_eq!(shown["plan"]["forward_bytes"], bytes);
    // A relay's messages have them as a leg of their own, and their gradients on the way back.
    let relay = forwards[0]["src"].to_string();
    let messages = show(&["--worker", &relay])["messages"].clone();
    let of_leg = |pass: &str, leg: &str, side: &str| -> u64 {
        let messages = messages.as_array().expect("a list").iter();
        let mine = messages.filter(|m| m["pass"] == pass && m["leg"] == leg);
        mine.map(|m| number(m, side)).sum()
    };
    let from_relay = forwards.iter().filter(|t| t["src"] == forwards[0]["src"]);
    let from_relay: u64 = from_relay.map(|t| number(t, "bytes")).sum();
    assert_eq!(of_leg("forward", "relay", "sent_bytes"), from_relay);
    assert_eq!(of_leg("backward", "gather", "received_bytes"), from_relay);
}

#[test]
fn pods_of_one_node_are_nodes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let read = |arguments: &str| -> Value {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let done = run_at(folder.path(), &arguments);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""));
        serde_json::from_str(&done.stdout).expect("JSON")
    };
    let window = "plan linux-6.1 --tokens 64K --gbs 16 --windows 1 --format json -o plans";
    let one = read(&format!("{window} --nodes-per-pod 1"));
    let again = one["reproduce"].as_str().expect("a command");
    assert!(again.contains(" --nodes-per-pod 1"), "{again}");
    assert_eq!(one["config"]["nodes_per_pod"], 1);
    let case = &one["cases"][0];
    assert!(case["cross_node_bytes"].as_u64() > Some(0));
    assert_eq!(case["cross_pod_bytes"], case["cross_node_bytes"]);

    // The file does not know pods; who shows it may say them.
    let file = "plans/window-0000-pool-000.plan";
    let show = |flags: &str| read(&format!("show {file} --format json{flags}"));
    assert_eq!(show("")["plan"]["cross_pod_bytes"], 0);
    let pods = show(" --nodes-per-pod 1");
    assert_eq!(pods["plan"]["cross_pod_bytes"], case["cross_pod_bytes"]);
    assert_eq!(pods["config"]["nodes_per_pod"], 1);
    assert_eq!(
        read(&window.replace(" -o plans", ""))["cases"][0]["cross_pod_bytes"],
        0
    );
}

#[test]
fn the_plan_report_has_every_promised_field() {
    let report = json("plan linux-6.1 --preset tiny --windows 2");
    for field in [
        "schema",
        "command",
        "seed",
        "commit",
        "config",
        "environment",
        "cases",
    ] {
        assert!(report.get(field).is_some(), "{field}");
    }
    assert_eq!(
        (&report["schema"], &report["command"]),
        (&1.into(), &"plan".into())
    );
    let cases = report["cases"].as_array().expect("a list");
    assert_eq!(cases.len(), 8, "two windows of four pools");
    for (case, index) in cases.iter().zip(0u64..) {
        for field in [
            "pool",
            "ga",
            "plan_id",
            "file",
            "tiles",
            "kv_groups",
            "work_total",
            "inter_excess",
            "inter_bound_excess",
            "inter_gap",
            "pool_size",
            "intra_excess",
            "tile_bound_excess",
            "qo_bytes",
            "kv_bytes",
            "moved_bytes",
            "max_send_bytes",
            "max_recv_bytes",
            "cross_node_bytes",
            "cross_pod_bytes",
            "forward_bytes",
            "busiest_port_bytes",
        ] {
            assert!(case.get(field).is_some(), "{field}");
        }
        assert_eq!(case["window"], index / 4);
        assert_eq!(case["pool"], index % 4);
        assert_eq!(case["ga"], index % 4 / 2);
        assert_eq!(case["file"], Value::Null);
        let number = |field: &str| case[field].as_f64().expect("a number");
        assert!(number("inter_excess") >= number("inter_bound_excess"));
        assert!(number("intra_excess") >= number("tile_bound_excess"));
        assert_eq!(
            number("moved_bytes"),
            number("qo_bytes") + number("kv_bytes")
        );
    }
}

#[test]
fn an_incomplete_window_is_filled_only_when_asked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("a.txt"), "30\n40\n50\n").expect("written");
    let arguments = [
        "plan",
        "a.txt",
        "--preset",
        "tiny",
        "--fill-last",
        "--format",
        "json",
    ];
    let done = run_at(folder.path(), &arguments);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(report["cases"].as_array().map(Vec::len), Some(4));
}

#[test]
fn numbers_do_not_depend_on_the_form_in_which_lengths_come() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lengths: Vec<u32> = (1..120).collect();
    let lines = lengths.iter().map(|length| format!("{length}\n"));
    fs::write(folder.path().join("a.txt"), lines.collect::<String>()).expect("written");
    let rows = lengths.iter().map(|length| format!("x,{length}\n"));
    let rows = std::iter::once("name,tokens_in\n".to_owned()).chain(rows);
    fs::write(folder.path().join("a.csv"), rows.collect::<String>()).expect("written");
    let mut sum = 0;
    let sums = lengths.iter().map(|length| {
        sum += length;
        format!("{{\"end\": {sum}}}\n")
    });
    fs::write(folder.path().join("a.jsonl"), sums.collect::<String>()).expect("written");
    let ids = [
        &["a.txt"][..],
        &["a.csv", "--column", "tokens_in"],
        &["a.jsonl", "--column", "end", "--cumulative"],
    ]
    .map(|source| {
        let flags = ["--preset", "tiny", "--format", "csv", "--no-timings"];
        let done = run_at(folder.path(), &[&["plan"], source, &flags].concat());
        assert_eq!((done.code, done.stderr.as_str()), (0, ""));
        done.stdout
    });
    assert!(ids[0] == ids[1] && ids[0] == ids[2]);
}

#[test]
fn measured_times_and_speeds_are_told_and_equal_speeds_change_nothing() {
    let line = "plan linux-6.1 --tokens 64K --gbs 32 -B 1K -H 4";
    let ids = |report: &Value| -> Vec<Value> {
        let cases = report["cases"].as_array().expect("cases");
        cases.iter().map(|case| case["plan_id"].clone()).collect()
    };
    let plain = json(line);
    assert_eq!(plain["cases"][0].get("time_excess"), None);
    assert_eq!(plain["summary"].get("time_excess"), None);

    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("speeds.txt");
    fs::write(&file, "0.9\n".repeat(64)).expect("written");
    let equal = json(&format!("{line} --speeds {}", file.display()));
    assert_eq!(ids(&equal), ids(&plain));

    let costs = "--costs ../docs/src/data/costs-h100.json";
    let measured = json(&format!("{line} {costs} --speeds 3=0.5,9=0.25"));
    assert_ne!(ids(&measured), ids(&plain));
    assert_eq!(measured["config"]["speeds"], "3=0.5,9=0.25");
    for case in measured["cases"].as_array().expect("cases") {
        let number = |name: &str| case[name].as_f64().expect("a number");
        assert!(number("time_excess") <= 0.031, "{case}");
        assert!(number("home_time_excess") > number("time_excess"));
        // Who takes less time here does more work than others there.
        assert!(number("intra_excess") > number("time_excess"));
    }
}

#[test]
fn adaptive_tiles_reach_the_slack_that_fixed_ones_miss() {
    let line = "plan linux-6.1 --preset paper-256k --tokens 64K --gbs 32 -B 4K -H 1";
    let (fixed, adaptive) = (json(line), json(&format!("{line} --tiles adaptive")));
    let number = |case: &Value, name: &str| case[name].as_f64().expect("a number");
    let cases = |report: &Value| report["cases"].as_array().expect("cases").clone();
    let mut missed = 0;
    for (fixed, adaptive) in cases(&fixed).iter().zip(cases(&adaptive)) {
        assert_eq!(number(&adaptive, "fixed_tiles"), number(fixed, "tiles"));
        assert_eq!(
            number(&adaptive, "fixed_bound_excess"),
            number(fixed, "tile_bound_excess")
        );
        assert!(number(&adaptive, "placed_tiles") >= number(fixed, "tiles"));
        assert!(number(&adaptive, "tiles") < number(&adaptive, "placed_tiles"));
        assert!(number(&adaptive, "intra_excess") <= 0.031, "{adaptive}");
        let misses = number(fixed, "tile_bound_excess") > 0.03;
        missed += usize::from(misses);
        assert_eq!(fixed.get("safe_block_tokens").is_some(), misses);
        assert_eq!(fixed.get("fixed_tiles"), None);
    }
    assert!(missed > 0);

    // The block that is said to do does.
    let safe = cases(&fixed)
        .iter()
        .filter_map(|case| case["safe_block_tokens"].as_u64())
        .min()
        .expect("a pool misses the slack");
    let line = format!("plan linux-6.1 --preset paper-256k --tokens 64K --gbs 32 -B {safe} -H 1");
    for case in cases(&json(&line)) {
        assert!(number(&case, "tile_bound_excess") < 1e-6, "{case}");
    }
}
