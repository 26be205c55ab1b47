//! `run --method`: every method executes, and what does not is refused by name.

use serde_json::Value;

use super::{json, run, stdout};

#[test]
fn the_table_in_the_book_is_what_run_prints() {
    let line = "run linux-6.1 --q-heads 8 --kv-heads 2 --head-dim 8 --scale 256 --method all";
    let printed = stdout(&format!("{line} -r 1 -w 0 --no-timings -q"));
    let rows = printed
        .lines()
        .filter(|line| !line.starts_with("# Reproduce"));
    let printed: Vec<&str> = rows.map(str::trim_end).collect();
    let printed = printed.join("\n");
    let text = format!("```text\n$ libra-bench {line} --no-timings\n{printed}\n```\n");
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/src/data/run-methods.md"
    );
    if std::env::var_os("LIBRA_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(file, &text).expect("written");
    }
    let there = std::fs::read_to_string(file).expect("written with `cargo xtask bless`");
    assert_eq!(there, text);
}

fn cases(report: &Value) -> &Vec<Value> {
    report["cases"].as_array().expect("a list")
}

#[test]
fn all_methods_compute_unsharded_attention() {
    for dtype in ["f64", "f32"] {
        let report = json(&format!(
            "run linux-6.1 --preset tiny --method all -r 1 -w 0 --dtype {dtype}"
        ));
        let cases = cases(&report);
        assert_eq!(cases.len(), 18);
        for case in cases {
            assert_eq!(case["wrong"], 0, "{dtype}: {case}");
            assert_eq!(case["workers"], 4, "CP of each of P sequences: {case}");
            assert!(case["forward_tflops"].is_number(), "{case}");
        }
        // All compute the same pairs.
        let mean = |case: &Value| {
            let number = |name: &str| case[name].as_f64().expect("a number");
            number("work_max") / (1.0 + number("work_excess"))
        };
        let first = mean(&cases[0]);
        assert!(
            cases
                .iter()
                .all(|case| (mean(case) / first - 1.0).abs() < 1e-9)
        );
    }
}

#[test]
fn the_usual_methods_may_be_named() {
    let usual = stdout("run linux-6.1 --preset tiny --no-timings");
    let named = stdout("run linux-6.1 --preset tiny --no-timings --method ulysses,libra");
    assert_eq!(usual, named);
}

#[test]
fn libra_is_placed_as_the_flags_say() {
    let moved = |flags: &str| {
        let report = json(&format!(
            "run linux-6.1 --preset tiny --method libra {flags}"
        ));
        assert!(report["plan_id"].is_string());
        cases(&report)[0]["moved_bytes"].as_u64().expect("a number")
    };
    assert!(moved("--placement home") < moved("--placement paper"));
}

#[test]
fn a_method_that_cannot_run_the_pool_is_named() {
    let done = run("run linux-6.1 --preset tiny --method ulysses,tap --max-recv-bytes 4K");
    assert_eq!(done.code, 3);
    assert!(
        done.stderr.starts_with("error: tap cannot run the pool: w"),
        "{}",
        done.stderr
    );
}

#[test]
fn what_is_not_executed_is_refused_by_name() {
    let done = run("run linux-6.1 --preset tiny --method ulysses,wlb-published");
    assert_eq!(done.code, 2);
    assert!(
        done.stderr
            .contains("wlb-published is not executed: it keeps samples for later steps"),
        "{}",
        done.stderr
    );
    assert!(
        done.stderr.contains("legal is all, ulysses, "),
        "{}",
        done.stderr
    );
    let all = stdout("run linux-6.1 --preset tiny --method all --no-timings");
    assert!(
        all.contains("# wlb-published is not executed: it keeps"),
        "{all}"
    );
}
