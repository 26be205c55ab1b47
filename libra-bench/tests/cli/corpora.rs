//! Where lengths come from, and what `corpus` says about them.

use std::fs;

use serde_json::Value;

use super::{Done, json, run, run_at, stdout};

const TINY: [&str; 2] = ["--preset", "tiny"];

fn corpus_at(folder: &tempfile::TempDir, words: &[&str]) -> Done {
    run_at(folder.path(), &[&["corpus"], words, &TINY].concat())
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

/// The last line of a table without its begin.
fn reproduced(done: &Done) -> &str {
    let last = done.stdout.lines().last().unwrap_or_default();
    last.strip_prefix("# Reproduce: libra-bench ")
        .unwrap_or_else(|| panic!("{done:?}"))
}

#[test]
fn files_are_read_one_after_the_other() {
    let files = folder(&[
        ("a.txt", "500\n"),
        ("b.csv", "length\n7\n"),
        ("c.txt", "9\n"),
    ]);
    let done = corpus_at(&files, &["a.txt", "b.csv", "c.txt", "--format", "json"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let found: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(found["samples"]["samples"], 3);
    assert_eq!(found["samples"]["tokens"], 516);
    assert_eq!(found["config"]["lengths"], "a.txt b.csv c.txt");
    // Files that are not there are told before the first is read.
    let done = corpus_at(&files, &["a.txt", "none.txt"]);
    assert_eq!(
        (done.code, done.stderr.as_str()),
        (
            3,
            "error: none.txt: no such file, nor a bundled corpus (linux-6.1)\n"
        )
    );
}

#[test]
fn an_error_in_the_middle_of_a_file_ends_every_command() {
    let text = "64\n".repeat(20) + "x\n";
    let files = folder(&[("a.txt", &text)]);
    let message =
        "error: a.txt, line 21: `x` is not a whole number; a sample has 1 to 4294967295 tokens\n";
    for words in [
        &["corpus", "a.txt"][..],
        &["plan", "a.txt", "--windows", "3"],
        &["sweep", "a.txt", "--windows", "3", "--over", "P=2"],
        &["corpus", "a.txt", "--order", "windowed:4"],
        &["corpus", "a.txt", "--order", "shuffled"],
        &["plan", "a.txt", "--order", "shuffled"],
    ] {
        let done = run_at(files.path(), &[words, &TINY].concat());
        assert_eq!((done.code, done.stderr.as_str()), (3, message), "{words:?}");
        assert_eq!(done.stdout, "", "{words:?}");
    }
}

#[test]
fn a_corpus_shorter_than_a_window_is_described_and_warned_of() {
    let files = folder(&[("a.txt", "30\n40\n")]);
    let done = corpus_at(&files, &["a.txt"]);
    assert_eq!(done.code, 0);
    assert_eq!(
        done.stderr,
        "warning: the corpus has 70 tokens, packed into 2 sequences; windows of 8 sequences of 64 tokens with the \
         first 0 skipped need 512 tokens\n"
    );
    assert!(
        done.stdout.contains("  samples               2\n"),
        "{}",
        done.stdout
    );
    assert!(!done.stdout.contains("packed:"), "{}", done.stdout);
}

#[test]
fn an_order_is_named_in_the_table_and_in_its_command() {
    let lines: String = (1..=200).map(|length| format!("{length}\n")).collect();
    let files = folder(&[("a.txt", &lines)]);
    let mut tables = Vec::new();
    for order in ["windowed:16", "shuffled"] {
        let done = corpus_at(&files, &["a.txt", "--order", order, "--seed", "3"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(
            done.stdout
                .contains(&format!("# lengths a.txt ({order})\n")),
            "{}",
            done.stdout
        );
        let again: Vec<&str> = reproduced(&done).split(' ').collect();
        assert_eq!(
            again.join(" "),
            format!("corpus a.txt --order {order} --preset tiny --seed 3")
        );
        assert_eq!(run_at(files.path(), &again).stdout, done.stdout);
        tables.push(done.stdout);
    }
    assert!(
        tables[0].contains("# order windowed:16, 64 B of lengths in memory\n"),
        "{}",
        tables[0]
    );
    assert!(
        tables[1].contains("# order shuffled, 800 B of lengths in memory\n"),
        "{}",
        tables[1]
    );
    let done = run("corpus --dist lognormal:12,1 --order shuffled");
    assert_eq!(
        (done.code, done.stderr.as_str()),
        (
            2,
            "error: drawn lengths have no end, so they cannot be shuffled; legal is --order as-is or windowed:N\n"
        )
    );
    let done = run("corpus linux-6.1 --order random");
    assert_eq!(done.code, 2);
    assert!(
        done.stderr
            .contains("`random` is not an order; legal is as-is,"),
        "{}",
        done.stderr
    );
}

#[test]
fn every_excess_asked_for_names_its_pool_size() {
    let found = json("corpus linux-6.1 --excess 0.3 --excess 0.01");
    let asked = found["pool_size_for"].as_array().expect("a list");
    assert_eq!(asked.len(), 2);
    assert_eq!(
        (asked[0]["excess"].as_f64(), asked[1]["excess"].as_f64()),
        (Some(0.3), Some(0.01))
    );
    assert_eq!(asked[1]["pool_size"], 128);
    let done = run("corpus linux-6.1 --excess much");
    assert_eq!(done.code, 2);
    assert!(
        done.stderr
            .contains("`much` is not an excess; legal is a number from 0"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_histogram_of_shares_sums_to_one_and_is_drawn() {
    let at = tempfile::tempdir().expect("a temporary folder");
    let done = run_at(at.path(), &["corpus", "linux-6.1", "-o", "lengths.svg"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let svg = fs::read_to_string(at.path().join("lengths.svg")).expect("it is drawn");
    let buckets = json("corpus linux-6.1")["samples"]["shares"]
        .as_array()
        .expect("a list")
        .clone();
    // Ground, frame, three in the legend, and three bars a bucket.
    assert_eq!(svg.matches("<rect ").count(), 5 + 3 * buckets.len());
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    for share in ["sample_share", "token_share", "work_share"] {
        let sum: f64 = buckets
            .iter()
            .filter_map(|bucket| bucket[share].as_f64())
            .sum();
        assert!((sum - 1.0).abs() < 1e-9, "{share}: {sum}");
    }
    let done = run_at(at.path(), &["corpus", "linux-6.1", "-o", "lengths.png"]);
    assert_eq!(
        (done.code, done.stderr.as_str()),
        (
            2,
            "error: lengths.png: the histogram is drawn as SVG; legal is a file name that ends in .svg\n"
        )
    );
    let done = run_at(at.path(), &["corpus", "linux-6.1", "-o", "no/lengths.svg"]);
    assert_eq!(done.code, 3);
    assert!(
        done.stderr
            .starts_with("error: no/lengths.svg: cannot be written: "),
        "{}",
        done.stderr
    );
}

#[test]
fn distributions_of_every_kind_are_described() {
    for dist in ["pareto:4,1.3", "magi-attention", "calibrated-256k"] {
        let text = stdout(&format!("corpus --dist {dist} --preset tiny --windows 2"));
        assert!(
            text.contains("# packed: 2 windows of 8 sequences"),
            "{text}"
        );
    }
    let files = folder(&[("a.hist", "8 1\n32 2\n"), ("b.hist", "8 1\n8 2\n")]);
    let done = corpus_at(&files, &["--dist", "histogram:a.hist,uniform"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(
        reproduced(&done),
        "corpus --dist histogram:a.hist,uniform --preset tiny"
    );
    let done = corpus_at(&files, &["--dist", "histogram:b.hist"]);
    assert_eq!(
        (done.code, done.stderr.as_str()),
        (
            3,
            "error: histogram b.hist: line 2: bound `8`, legal is 9 to 4294967295\n"
        )
    );
}
