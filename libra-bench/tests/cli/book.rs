//! Tables of the book that `simulate` prints the numbers of: `cargo xtask ci --only figures` compares them, and
//! `-- --ignored` with `LIBRA_BLESS=1` writes them.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::json;

/// Corpora, as flags and for people.
const CORPORA: [&str; 2] = ["calibrated-256k", "calibrated-1m --preset 1m"];

fn cases(flags: &str) -> Vec<Value> {
    let report = json(&format!("simulate {flags}"));
    report["cases"].as_array().expect("a list").clone()
}

fn number(case: &Value, field: &str) -> f64 {
    case[field].as_f64().expect("a number")
}

/// Whether the book has `table`; writes it there if it is to be blessed.
fn compare_with_book(name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/data");
    let path = path.join(name);
    if std::env::var_os("LIBRA_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, table).expect("the book is there");
    }
    let held = std::fs::read_to_string(&path).expect("blessed");
    assert!(
        held == table,
        "{name} is not what `simulate` says; bless it\n{table}"
    );
}

#[test]
#[ignore = "simulates for half a minute: cargo xtask ci --only figures"]
fn the_books_scaling_of_replicas_is_that_of_today() {
    let ulysses = |corpus: &str, more: &str| {
        let line = format!(
            "--dist {corpus} --pack best-fit --windows 16 --model qwen3-30b-a3b --method ulysses {more}"
        );
        cases(&line).remove(0)
    };
    let [h200, h100, alone] = ["", "--cluster h100", "--dp 1 -P 1"]
        .map(|more| CORPORA.map(|corpus| ulysses(corpus, more)));
    let percents = |cases: &[Value; 2], field| [0, 1].map(|at| 100.0 * number(&cases[at], field));
    // Speed over one replica's, over 16 of them.
    let steps = [0, 1].map(|at| {
        let [one, all] = [&alone[at], &h200[at]].map(|case| number(case, "step_ms_mean"));
        100.0 * one / all / 16.0
    });
    let mut table = "| 16 replicas, Ulysses | 256K | 1M |\n| :-- | --: | --: |\n".to_owned();
    for (name, [short, long]) in [
        ("the paper", [47.7, 27.6]),
        (
            "attention alone, H200",
            percents(&h200, "dp_step_efficiency"),
        ),
        (
            "attention alone, H100",
            percents(&h100, "dp_step_efficiency"),
        ),
        ("whole steps, H200", steps),
        (
            "attention alone, replicas in lockstep, H200",
            percents(&h200, "dp_efficiency"),
        ),
    ] {
        let _ = writeln!(table, "| {name} | {short:.1} % | {long:.1} % |");
    }
    compare_with_book("scaling.md", &table);
}

#[test]
#[ignore = "simulates for a minute: cargo xtask ci --only figures"]
fn the_books_stragglers_are_those_of_today() {
    let methods = ["paper", "libra", "wlb", "distca"];
    let mut table = "| corpus | KV heads | paper | libra | wlb | distca | paper's busiest port over its work |\n\
                     | :-- | --: | --: | --: | --: | --: | --: |\n"
        .to_owned();
    for (name, flags, kv_heads) in [
        (
            "calibrated-256k",
            "--dist calibrated-256k --pack best-fit --dp 32",
            &[8, 16, 32][..],
        ),
        (
            "calibrated-1m",
            "--dist calibrated-1m --pack best-fit --preset 1m",
            &[8, 16, 32],
        ),
        ("linux-6.1, 256K", "linux-6.1 --dp 32", &[8, 16, 32]),
        ("linux-6.1, 1M", "linux-6.1 --preset 1m", &[16]),
    ] {
        for kv_heads in kv_heads {
            let cases = cases(&format!(
                "{flags} --windows 8 --method ulysses,{} --q-heads 128 --kv-heads {kv_heads}",
                methods.join(",")
            ));
            let over = |case: &Value| ["speedup_mean", "speedup_max"].map(|at| number(case, at));
            let [paper, libra] = [&cases[1], &cases[2]].map(over);
            assert!(
                libra[0] > paper[0] && libra[1] > paper[1],
                "{name}, {kv_heads}"
            );
            let _ = write!(table, "| {name} | {kv_heads} |");
            for case in &cases[1..] {
                let [mean, worst] = over(case);
                let _ = write!(table, " {mean:.2}, {worst:.2} |");
            }
            let port = number(&cases[1], "busiest_port_ms_mean");
            let _ = writeln!(
                table,
                " {:.1} |",
                port / number(&cases[1], "compute_ms_mean")
            );
        }
    }
    compare_with_book("stragglers.md", &table);
}
