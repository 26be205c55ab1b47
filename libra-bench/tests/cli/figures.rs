//! `figures`: pictures, numbers and the summary.

use std::fs;
use std::path::Path;

use super::{json, run, run_at, stdout};

const QUICK: &str = "--windows 2";

#[test]
fn equal_commands_write_equal_files() {
    let texts = [0, 1].map(|_| {
        let at = tempfile::tempdir().expect("a folder");
        let done = run_at(
            at.path(),
            &["figures", "--out", "out/deep", "--windows", "2"],
        );
        assert_eq!(done.code, 0, "{}", done.stderr);
        let mut names: Vec<String> = fs::read_dir(at.path().join("out/deep"))
            .expect("made")
            .map(|entry| {
                entry
                    .expect("listed")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "figure-4.csv",
                "figure-4.svg",
                "figure-8.csv",
                "figure-8.svg"
            ]
        );
        let files: Vec<String> = names
            .iter()
            .map(|name| fs::read_to_string(at.path().join("out/deep").join(name)).expect("text"))
            .collect();
        (done.stdout, files)
    });
    assert_eq!(texts[0], texts[1]);
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
        done.stderr.contains("[possible values: 4, 8]"),
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
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/data");
    let at = tempfile::tempdir().expect("a folder");
    let done = run_at(at.path(), &["figures", "--out", ".", "--format", "md"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let picture = |name: &str| fs::read_to_string(at.path().join(name)).expect("written");
    let table = done.stdout.lines().filter(|line| line.starts_with('|'));
    let table: String = table.map(|line| format!("{line}\n")).collect();
    for (name, text) in [
        ("figure-4.svg", picture("figure-4.svg")),
        ("figure-8.svg", picture("figure-8.svg")),
        ("figures.md", table),
    ] {
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
