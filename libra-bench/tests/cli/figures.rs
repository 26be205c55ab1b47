//! `figures`: pictures, numbers and the summary.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{json, run, run_at, stdout};

const QUICK: &str = "--windows 2";
const ALL: [&str; 9] = ["1", "3", "4", "8", "11", "12", "14", "15", "16"];
/// On two clusters.
const TWICE: [&str; 3] = ["12", "15", "16"];

/// All figures of small windows: stdout in JSON, and every file by its name.
fn small() -> (String, Vec<(String, String)>) {
    let at = tempfile::tempdir().expect("a folder");
    let words = ["figures", "--out", "out/deep", "--small", "--windows", "1"];
    let done = run_at(at.path(), &[&words[..], &["--format", "json"]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let folder = at.path().join("out/deep");
    let entries = fs::read_dir(&folder).expect("made");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("listed")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    let read = |name: String| {
        let text = fs::read_to_string(folder.join(&name)).expect("text");
        (name, text)
    };
    (done.stdout, names.into_iter().map(read).collect())
}

#[test]
fn equal_commands_write_equal_files_of_which_every_number_of_the_summary_is_a_row() {
    let (summary, files) = small();
    assert!((summary.clone(), files.clone()) == small());
    let text = |name: String| {
        let found = files.iter().find(|(own, _)| *own == name);
        &found.unwrap_or_else(|| panic!("no {name}")).1
    };
    assert_eq!(files.len(), 2 * (ALL.len() + TWICE.len()));
    let twice = TWICE.map(|figure| (figure, "-beside"));
    for (figure, suffix) in ALL.map(|figure| (figure, "")).into_iter().chain(twice) {
        let picture = text(format!("figure-{figure}{suffix}.svg"));
        assert!(picture.contains(&format!("Figure {figure}: ")), "{figure}");
        assert!(
            !picture.contains("NaN") && !picture.contains("inf"),
            "{figure}"
        );
        let nodes = match suffix {
            "" => "(h200-nvl64, nodes of 64)",
            _ => "(h200, nodes of 8)",
        };
        let has_cluster = !["4", "8"].contains(&figure);
        assert_eq!(picture.contains(nodes), has_cluster, "{figure}{suffix}");
    }
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    let cases = summary["cases"].as_array().expect("a list");
    let published = include_str!("../../published/points.csv");
    assert_eq!(cases.len(), published.lines().count() - 1);
    for case in cases {
        let figure = case["figure"].as_str().expect("a number");
        assert_rows(text(format!("figure-{figure}.csv")), case, "ours");
        let is_twice = TWICE.contains(&figure);
        assert_eq!(case["beside"].is_number(), is_twice, "{case}");
        if is_twice {
            assert_rows(text(format!("figure-{figure}-beside.csv")), case, "beside");
        }
    }
}

/// The file's rows of `case` are that number of ours and the paper's.
fn assert_rows(file: &str, case: &Value, ours: &str) {
    let mut reader = csv::Reader::from_reader(file.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("CSV")).collect();
    let named = |row: &&csv::StringRecord| {
        ["corpus", "method", "at", "quantity"]
            .iter()
            .zip(row.iter())
            .all(|(field, value)| case[*field] == value)
    };
    let values: Vec<f64> = (rows.iter().filter(named))
        .map(|row| row[4].parse().expect("a number"))
        .collect();
    let expected = [ours, "paper"].map(|whose| case[whose].as_f64().expect("measured"));
    assert_eq!(values.len(), 2, "{case}");
    for (value, expected) in values.iter().zip(expected) {
        assert!((value - expected).abs() < 1e-7, "{value}, {case}");
    }
}

#[test]
fn core_attention_is_what_simulate_says_of_it() {
    let at = tempfile::tempdir().expect("a folder");
    let out = at.path().display();
    let cases = json(&format!(
        "figures --out {out} --only 12 --small --windows 1"
    ));
    let drawn = |corpus: &str, whose: &str| {
        let cases = cases["cases"].as_array().expect("a list").iter();
        let mut mean = cases.filter(|case| {
            case["corpus"] == corpus
                && case["quantity"] == "speedup over ulysses"
                && case["at"] == "mean"
        });
        mean.next().expect("published")[whose]
            .as_f64()
            .expect("measured")
    };
    for (corpus, flags) in [
        (
            "256k",
            "--preset paper-256k --tokens 16K -B 256 --dp 32 --gbs 32",
        ),
        (
            "1m",
            "--preset paper-1m --tokens 64K -B 512 --dp 16 --gbs 16",
        ),
    ] {
        for (cluster, whose) in [("h200-nvl64", "ours"), ("h200", "beside")] {
            let simulated = json(&format!(
                "simulate --dist calibrated-{corpus} {flags} --pack best-fit --q-heads 128 --kv-heads 8 \
                 --method ulysses,paper --cluster {cluster}"
            ));
            let speedup = simulated["cases"][1]["speedup_mean"]
                .as_f64()
                .expect("a number");
            assert!(
                (speedup - drawn(corpus, whose)).abs() < 1e-9,
                "{corpus}, {cluster}: {speedup}"
            );
        }
    }
}

#[test]
fn a_cluster_beside_itself_is_measured_once() {
    let at = tempfile::tempdir().expect("a folder");
    let line = format!(
        "figures --out {} --only 12 --small --windows 1 --cluster h200",
        at.path().display()
    );
    let table = stdout(&line);
    assert!(!table.contains("beside"), "{table}");
    assert!(table.contains("--cluster h200 --small"), "{table}");
    let files = fs::read_dir(at.path()).expect("made").count();
    assert_eq!(files, 2);
    let rows = fs::read_to_string(at.path().join("figure-12.csv")).expect("written");
    let source = ",libra-bench figures --only 12 --windows 1 --seed 7 --cluster h200 --small\n";
    assert!(rows.contains(source), "{rows}");
}

#[test]
fn a_cluster_that_does_not_exist_is_refused_before_anything_is_made() {
    for flag in ["--cluster", "--beside"] {
        let done = run(&format!("figures --out nowhere --only 12 {flag} h300"));
        let message = "error: h300: neither a file nor a built-in cluster; legal are h200, h200-nvl64, h100\n";
        assert_eq!((done.code, done.stderr.as_str()), (3, message));
        assert!(!Path::new("nowhere").exists());
    }
}

#[test]
fn the_summary_has_every_published_number_of_the_figures_asked_for() {
    let at = tempfile::tempdir().expect("a folder");
    let line = format!("figures --out {} --only 8 {QUICK}", at.path().display());
    let cases = json(&line)["cases"].as_array().expect("a list").clone();
    let published = include_str!("../../published/points.csv");
    assert_eq!(
        cases.len(),
        published
            .lines()
            .filter(|line| line.starts_with("8,"))
            .count()
    );
    for case in cases {
        assert_eq!(case["figure"], "8");
        assert!(
            case["paper"].is_number() && case["ours"].is_number(),
            "{case}"
        );
    }
    assert!(!at.path().join("figure-4.svg").exists());
    let table = stdout(&line);
    assert!(table.contains("256k, vrsp, P=8: R-1"), "{table}");
    assert!(table.contains("--only 8 --windows 2 --seed 7"), "{table}");
}

#[test]
fn numbers_in_a_file_name_their_source() {
    let at = tempfile::tempdir().expect("a folder");
    stdout(&format!(
        "figures --out {} --only 4 {QUICK}",
        at.path().display()
    ));
    let text = fs::read_to_string(at.path().join("figure-4.csv")).expect("written");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("corpus,method,at,quantity,value,source"));
    for line in lines {
        let ours = line.ends_with(",libra-bench figures --only 4 --windows 2 --seed 7");
        assert!(ours || line.contains("\"paper, section "), "{line}");
    }
}

#[test]
fn a_figure_that_is_not_made_is_refused_with_those_that_are() {
    let done = run("figures --out nowhere --only 2");
    assert_eq!(done.code, 2);
    assert!(
        done.stderr
            .contains("[possible values: 1, 3, 4, 8, 11, 12, 14, 15, 16]"),
        "{}",
        done.stderr
    );
    assert!(!Path::new("nowhere").exists());
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_of_the_input() {
    let at = tempfile::tempdir().expect("a folder");
    fs::write(at.path().join("file"), "").expect("written");
    let done = run_at(
        at.path(),
        &[
            "figures",
            "--out",
            "file/out",
            "--only",
            "4",
            "--windows",
            "1",
        ],
    );
    assert_eq!(done.code, 3);
    assert!(
        done.stderr.contains("file/out: cannot be written"),
        "{}",
        done.stderr
    );
}

/// The book shows what the command with its defaults writes; `LIBRA_BLESS=1` writes it there.
#[test]
fn the_books_figures_are_those_of_today() {
    compare_with_book("3,4,8", &["figure-4.svg", "figure-8.svg"], "figures.md");
}

/// Likewise; `cargo xtask ci --only figures` compares them, and `-- --ignored` with `LIBRA_BLESS=1` writes them.
#[test]
#[ignore = "simulates for a minute: cargo xtask ci --only figures"]
fn the_books_figures_of_two_clusters_are_those_of_today() {
    let pictures = [
        "figure-12.svg",
        "figure-12-beside.svg",
        "figure-15.svg",
        "figure-15-beside.svg",
        "figure-16.svg",
        "figure-16-beside.svg",
    ];
    compare_with_book("12,15,16", &pictures, "figures-nodes.md");
}

/// Likewise.
#[test]
#[ignore = "simulates for a minute: cargo xtask ci --only figures"]
fn the_books_figures_of_training_are_those_of_today() {
    let pictures = ["figure-1.svg", "figure-11.svg"];
    compare_with_book("1,11,14", &pictures, "figures-training.md");
}

fn compare_with_book(only: &str, pictures: &[&str], table: &str) {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/data");
    let at = tempfile::tempdir().expect("a folder");
    let done = run_at(
        at.path(),
        &["figures", "--out", ".", "--only", only, "--format", "md"],
    );
    assert_eq!(done.code, 0, "{}", done.stderr);
    let rows = done.stdout.lines().filter(|line| line.starts_with('|'));
    let mut texts = vec![(table, rows.map(|line| format!("{line}\n")).collect())];
    texts.extend(pictures.iter().map(|name| {
        let text = fs::read_to_string(at.path().join(name)).expect("written");
        (*name, text)
    }));
    for (name, text) in texts {
        let path = book.join(name);
        if std::env::var_os("LIBRA_BLESS").is_some_and(|value| value == "1") {
            fs::write(&path, &text).expect("the book is there");
        }
        let held = fs::read_to_string(&path).expect("blessed");
        assert!(
            held == text,
            "{name} is not what `figures` writes; bless it"
        );
    }
}
