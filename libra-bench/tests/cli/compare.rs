//! Two reports side by side.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Done, run_at};

fn compare(at: &Path, flags: &str) -> Done {
    let line = format!("compare a.json b.json {flags}");
    run_at(at, &line.split_whitespace().collect::<Vec<_>>())
}

/// Two reports with these cases.
fn reports(a: Value, b: Value) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (file, cases) in [("a.json", a), ("b.json", b)] {
        let report =
            json!({ "schema": 1, "command": "run", "seed": 7, "config": {}, "cases": cases });
        fs::write(folder.path().join(file), report.to_string()).expect("written");
    }
    folder
}

#[test]
fn a_report_is_as_good_as_itself() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    let line = "sweep linux-6.1 --tokens 32K --gbs 16 --dp 8 --cp 4 -P 2,4 -o a.json -o b.json";
    assert_eq!(run_at(at, &line.split(' ').collect::<Vec<_>>()).code, 0);
    let done = compare(at, "--fail-above 0% --format json");
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let cases = report["cases"].as_array().expect("a list");
    assert!(cases.len() > 60, "{}", cases.len());
    assert!(
        cases
            .iter()
            .all(|case| case["ratio"] == 1.0 && case["over"] == false)
    );
    assert_eq!(
        (&cases[0]["case"], &report["only_a"]),
        (&json!("pool_size=2"), &json!([]))
    );
}

#[test]
fn plans_in_other_folders_are_the_same_pools() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    for (file, plans) in [("a.json", "first"), ("b.json", "second")] {
        let line = format!("plan linux-6.1 --preset tiny -o {file} -o {plans}");
        assert_eq!(run_at(at, &line.split(' ').collect::<Vec<_>>()).code, 0);
    }
    let done = compare(at, "--fail-above 0% --no-timings");
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    assert!(!done.stdout.contains("only in"), "{}", done.stdout);
}

#[test]
fn what_is_worse_by_more_than_the_threshold_ends_in_5() {
    let case = |ns: [u64; 3], tflops: f64, excess: f64| json!({ "method": "libra", "forward_ns": ns, "forward_tflops": tflops, "work_excess": excess, "tiles": ns[0] });
    let before = case([90, 100, 110], 2.0, 0.03);
    for (after, flags, code) in [
        (case([100, 104, 99], 2.0, 0.03), "--fail-above 5%", 0),
        (case([900, 106, 99], 2.0, 0.03), "--fail-above 5%", 5),
        (case([900, 106, 99], 2.0, 0.03), "--fail-above 0.07", 0),
        (case([900, 106, 99], 2.0, 0.03), "", 0),
        (case([1, 1, 1], 9.0, 0.0), "--fail-above 5%", 0),
        (case([90, 100, 110], 1.9, 0.03), "--fail-above 5%", 5),
        (case([90, 100, 110], 2.0, 0.09), "--fail-above 5%", 5),
        (case([90, 100, 110], 2.0, 0.08), "--fail-above 5%", 0),
        // Times are left out, and so is what is worse of them.
        (
            case([900, 106, 99], 2.0, 0.03),
            "--fail-above 5% --no-timings",
            0,
        ),
    ] {
        let folder = reports(json!([before]), json!([after]));
        let done = compare(folder.path(), flags);
        assert_eq!(done.code, code, "{flags} {after}: {}", done.stdout);
        let message = "error: 1 number is worse by more than 5 %\n";
        assert_eq!(done.stderr, if code == 5 { message } else { "" });
    }
}

#[test]
fn the_table_shows_what_differs() {
    let method = |name: &str, ns: [u64; 2], bytes: u64| json!({ "method": name, "forward_ns": ns, "moved_bytes": bytes, "wrong": 0 });
    let folder = reports(
        json!([
            method("ulysses", [10, 12], 7),
            method("libra", [10, 20], 100),
            method("a", [1, 1], 1)
        ]),
        json!([
            method("libra", [20, 40], 90),
            method("ulysses", [10, 12], 7),
            method("b", [1, 1], 1)
        ]),
    );
    let done = compare(folder.path(), "--fail-above 20%");
    assert_eq!(done.code, 5);
    insta::assert_snapshot!(
        "compare",
        done.stdout
            .lines()
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n")
    );
    let all = compare(folder.path(), "--all --format csv").stdout;
    assert_eq!(all.lines().count(), 1 + 2 * 3);
}

#[test]
fn what_cannot_be_compared_is_said() {
    let good = || reports(json!([{ "method": "libra", "wrong": 0 }]), json!([]));
    let message = |at: &TempDir| {
        let done = compare(at.path(), "");
        assert_eq!(
            (done.code, done.stdout.as_str()),
            (3, ""),
            "{}",
            done.stderr
        );
        done.stderr.trim_end().to_owned()
    };
    assert_eq!(
        message(&good()),
        "error: a.json and b.json have no case with a number in common; only in a.json: -"
    );
    for (text, said) in [
        (
            "",
            "is no report in JSON: EOF while parsing a value at line 1 column 0",
        ),
        ("3", "is no report in JSON: it is not an object"),
        ("{}", "is no report in JSON: it has no schema"),
        (
            r#"{"schema":2}"#,
            "is no report in JSON: its schema is 2, legal is 1",
        ),
        (
            r#"{"schema":1}"#,
            "is no report in JSON: it names no command",
        ),
        (
            r#"{"schema":1,"command":"run"}"#,
            "is no report in JSON: it has no list of cases",
        ),
        (
            r#"{"schema":1,"command":"run","cases":[1]}"#,
            "is no report in JSON: case 0 is not an object",
        ),
    ] {
        let folder = good();
        fs::write(folder.path().join("b.json"), text).expect("written");
        assert_eq!(message(&folder), format!("error: b.json: {said}"));
    }
    let folder = good();
    let other = r#"{"schema":1,"command":"plan","cases":[]}"#;
    fs::write(folder.path().join("b.json"), other).expect("written");
    assert_eq!(
        message(&folder),
        "error: a.json is of \"run\" and b.json of \"plan\"; legal are two reports of one command"
    );
    fs::remove_file(folder.path().join("b.json")).expect("it is there");
    assert!(message(&folder).starts_with("error: b.json: cannot be read: "));
    let done = compare(folder.path(), "--fail-above much");
    assert_eq!(done.code, 2);
    assert!(
        done.stderr
            .contains("legal is 0 or more, such as 5% or 0.05"),
        "{}",
        done.stderr
    );
}
