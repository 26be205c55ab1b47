//! Files beside stdout.

use std::fs;

use super::{Done, run_at};

const PLAN: [&str; 5] = ["plan", "linux-6.1", "--preset", "tiny", "--no-timings"];

fn with(at: &std::path::Path, flags: &[&str]) -> Done {
    run_at(at, &[&PLAN[..], flags].concat())
}

#[test]
fn a_file_holds_what_stdout_would_in_its_format() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    let files = [
        "-o", "a.json", "-o", "a.csv", "-o", "a.md", "-o", "a.txt", "-o", "-",
    ];
    let done = with(at, &files);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    for (file, format) in [
        ("a.json", "json"),
        ("a.csv", "csv"),
        ("a.md", "md"),
        ("a.txt", "table"),
    ] {
        let written = fs::read_to_string(at.join(file)).expect("written");
        assert_eq!(written, with(at, &["--format", format]).stdout, "{file}");
    }
    assert_eq!(
        fs::read_to_string(at.join("a.txt")).expect("written"),
        done.stdout
    );
    assert_eq!(
        fs::read_dir(at).expect("a folder").count(),
        4,
        "nothing else is left"
    );
}

#[test]
fn every_command_that_reports_writes_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    assert_eq!(with(at, &["-o", "plans", "-o", "plan.json"]).code, 0);
    let plan = "plans/window-0000-pool-001.plan";
    assert!(at.join(plan).is_file());
    for line in [
        "corpus linux-6.1",
        "sweep linux-6.1 --preset tiny",
        &format!("show {plan}"),
        &format!("check {plan}"),
        "run linux-6.1 --preset tiny",
        "compare plan.json plan.json",
        "doctor",
    ] {
        let words: Vec<&str> = line.split(' ').chain(["-o", "out.txt"]).collect();
        let done = run_at(at, &words);
        assert_eq!(done.code, 0, "{line}: {}", done.stderr);
        let written = fs::read_to_string(at.join("out.txt")).expect("written");
        assert_eq!(written, done.stdout, "{line}");
        assert!(!written.is_empty());
    }
}

#[test]
fn files_that_cannot_be_written_are_refused_before_anything_is_done() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    fs::create_dir(at.join("taken.json")).expect("made");
    for (words, code, message) in [
        (
            "sweep linux-6.1 -o a.pdf",
            2,
            "error: -o: `a.pdf` names no format; legal is a file that ends in .json, .csv, .md, .txt or .html, or - \
             for stdout",
        ),
        (
            "corpus linux-6.1 -o a.pdf",
            2,
            "error: a.pdf: the histogram is drawn as SVG; legal is a file name that ends in .svg",
        ),
        (
            "plan linux-6.1 -o a -o b",
            2,
            "error: -o: the directory of the plans is one; `b` is another",
        ),
        (
            "plan linux-6.1 -o nowhere/a.json",
            3,
            "error: nowhere/a.json: cannot be written: No such file or directory (os error 2)",
        ),
        (
            "plan linux-6.1 -o taken.json",
            3,
            "error: taken.json: cannot be written: it is a directory",
        ),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let done = run_at(at, &words);
        assert_eq!(done.stderr.trim_end(), message);
        assert_eq!((done.code, done.stdout.as_str()), (code, ""));
    }
    assert_eq!(fs::read_dir(at).expect("a folder").count(), 1);
}
