//! `cargo xtask ci`: the groups, in order, and what came of them.

use std::time::Instant;

use crate::process::{Outcome, Trouble, capture, cargo, heading, run, run_picking};
use crate::tree::Tree;
use crate::{book, deps, fuzz, icount, tidy, tools};

/// One thing CI checks.
struct Group {
    name: &'static str,
    what: &'static str,
    check: fn(&Tree) -> Outcome,
}

const GROUPS: &[Group] = &[
    Group {
        name: "fmt",
        what: "sources are formatted",
        check: fmt,
    },
    Group {
        name: "clippy",
        what: "no warnings from the compiler or clippy",
        check: clippy,
    },
    Group {
        name: "sched-alone",
        what: "libra-sched builds by itself",
        check: sched_alone,
    },
    Group {
        name: "test",
        what: "unit, property, snapshot and documentation tests",
        check: test,
    },
    Group {
        name: "docs",
        what: "rustdoc without warnings",
        check: docs,
    },
    Group {
        name: "golden-release",
        what: "golden plans under optimisation",
        check: golden_release,
    },
    Group {
        name: "demo",
        what: "the README's command",
        check: demo,
    },
    Group {
        name: "figures",
        what: "simulated figures and tables of the book",
        check: figures,
    },
    Group {
        name: "report",
        what: "the page of reports in a browser",
        check: report,
    },
    Group {
        name: "bench-builds",
        what: "benchmarks compile",
        check: bench_builds,
    },
    Group {
        name: "tidy",
        what: "stage order, sizes, links, markers",
        check: tidy::main,
    },
    Group {
        name: "deps",
        what: "directions, licences, compiler versions",
        check: deps::main,
    },
    Group {
        name: "book",
        what: "chapters and links of the book",
        check: book::main,
    },
    Group {
        name: "fuzz-smoke",
        what: "each fuzz target for some seconds",
        check: fuzz_smoke,
    },
    Group {
        name: "icount",
        what: "instructions per planning call",
        check: icount::check,
    },
];

/// What became of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Passed,
    Failed,
    Skipped,
}

impl Mark {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

struct Row {
    name: &'static str,
    mark: Mark,
    seconds: f64,
    note: String,
}

pub(crate) fn main(tree: &Tree, options: &[&str]) -> Outcome {
    let groups = match options {
        [] => GROUPS.iter().collect(),
        ["--only", names] => chosen(names)?,
        ["--list"] => {
            GROUPS
                .iter()
                .for_each(|group| println!("{:<16}{}", group.name, group.what));
            return Ok(());
        }
        _ => return Err(Trouble::failed("ci takes `--only GROUP,GROUP` or `--list`")),
    };
    let rows: Vec<Row> = groups
        .into_iter()
        .map(|group| run_group(tree, group))
        .collect();
    print!("{}", summary(&rows));
    if rows.iter().all(|row| row.mark == Mark::Passed) {
        Ok(())
    } else {
        Err(Trouble::Shown)
    }
}

fn chosen(names: &str) -> Result<Vec<&'static Group>, Trouble> {
    let names: Vec<&str> = names.split(',').collect();
    if let Some(unknown) = names
        .iter()
        .find(|name| GROUPS.iter().all(|group| group.name != **name))
    {
        return Err(Trouble::failed(format!(
            "no group `{unknown}`; `cargo xtask ci --list` names them"
        )));
    }
    Ok(GROUPS
        .iter()
        .filter(|group| names.contains(&group.name))
        .collect())
}

fn run_group(tree: &Tree, group: &Group) -> Row {
    heading(&format!("{}: {}", group.name, group.what));
    let start = Instant::now();
    let (mark, note) = match (group.check)(tree) {
        Ok(()) => (Mark::Passed, String::new()),
        Err(Trouble::Failed(why)) => (Mark::Failed, why),
        Err(trouble @ Trouble::Shown) => (Mark::Failed, trouble.to_string()),
        Err(Trouble::CannotRun(why)) => (Mark::Skipped, why),
    };
    let seconds = start.elapsed().as_secs_f64();
    let row = Row {
        name: group.name,
        mark,
        seconds,
        note,
    };
    eprintln!("-- {}", line(&row));
    row
}

fn line(row: &Row) -> String {
    let Row {
        name,
        mark,
        seconds,
        note,
    } = row;
    format!("{name:<16}{:<8}{seconds:>8.1} s  {note}", mark.word())
        .trim_end()
        .to_owned()
}

/// A table of groups, and a last line for machines.
fn summary(rows: &[Row]) -> String {
    let count = |mark| rows.iter().filter(|row| row.mark == mark).count();
    let table: String = rows.iter().map(|row| line(row) + "\n").collect();
    let (passed, failed, skipped) = (
        count(Mark::Passed),
        count(Mark::Failed),
        count(Mark::Skipped),
    );
    format!("\n{table}\n{passed} passed, {failed} failed, {skipped} skipped\n")
}

fn fmt(tree: &Tree) -> Outcome {
    tools::component(tree, "fmt", "rustfmt")?;
    run(&mut cargo(tree, &["fmt", "--all", "--check"]))?;
    run(&mut cargo(
        tree,
        &["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"],
    ))
}

fn clippy(tree: &Tree) -> Outcome {
    tools::component(tree, "clippy", "clippy")?;
    run(&mut cargo(
        tree,
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    ))
}

fn sched_alone(tree: &Tree) -> Outcome {
    run(&mut cargo(
        tree,
        &["check", "-p", "libra-sched", "--no-default-features"],
    ))
}

fn test(tree: &Tree) -> Outcome {
    run_picking(
        cargo(tree, &["test", "--workspace", "--no-fail-fast"]).env("INSTA_UPDATE", "no"),
        tells_of_a_failed_test,
    )
}

/// The name of a failed test, where it panicked and why.
fn tells_of_a_failed_test(line: &str) -> bool {
    line.ends_with("... FAILED") || line.contains("panicked at") || line.starts_with("Test failed")
}

fn docs(tree: &Tree) -> Outcome {
    run(cargo(tree, &["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn golden_release(tree: &Tree) -> Outcome {
    let arguments = ["test", "--release", "-p", "libra-tests", "--test", "golden"];
    run(cargo(tree, &arguments).env("INSTA_UPDATE", "no"))
}

fn demo(tree: &Tree) -> Outcome {
    // Built first, so that the seconds shown are the demo's own.
    run(&mut cargo(tree, &["build", "--release"]))?;
    let start = Instant::now();
    let shown = capture(&mut cargo(
        tree,
        &["run", "--release", "--quiet", "--", "demo"],
    ))?;
    let seconds = start.elapsed().as_secs_f64();
    print!("{shown}");
    println!("demo: {seconds:.1} s");
    if has_table(&shown) {
        Ok(())
    } else {
        Err(Trouble::failed("the demo printed no table"))
    }
}

/// A table has lines of several columns that hold numbers.
fn has_table(shown: &str) -> bool {
    let is_row = |line: &&str| {
        let cells = line.split_whitespace();
        cells
            .filter(|cell| cell.starts_with(|first: char| first.is_ascii_digit()))
            .count()
            >= 2
    };
    shown.lines().filter(is_row).count() >= 2
}

/// Tests that simulate for a minute each are ignored elsewhere.
fn figures(tree: &Tree) -> Outcome {
    let tests = ["test", "-p", "libra-bench", "--test", "cli"];
    run_picking(
        cargo(tree, &tests).args(["--", "--ignored"]),
        tells_of_a_failed_test,
    )
}

/// Tests that need a browser are ignored elsewhere; it comes first, so that none is skipped.
fn report(tree: &Tree) -> Outcome {
    tools::debian("chromium", "chromium")?;
    let tests = [
        "test",
        "-p",
        "libra-bench",
        "--test",
        "page",
        "--no-fail-fast",
    ];
    run_picking(
        cargo(tree, &tests).args(["--", "--ignored", "--test-threads", "2"]),
        tells_of_a_failed_test,
    )
}

fn bench_builds(tree: &Tree) -> Outcome {
    run(&mut cargo(tree, &["bench", "--no-run"]))
}

fn fuzz_smoke(tree: &Tree) -> Outcome {
    fuzz::main(tree, fuzz::SMOKE_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, mark: Mark) -> Row {
        Row {
            name,
            mark,
            seconds: 1.25,
            note: String::new(),
        }
    }

    #[test]
    fn the_last_line_counts_groups() {
        let rows = [
            row("fmt", Mark::Passed),
            row("docs", Mark::Failed),
            row("icount", Mark::Skipped),
        ];
        let text = summary(&rows);
        assert_eq!(text.lines().last(), Some("1 passed, 1 failed, 1 skipped"));
        assert!(
            text.contains("fmt             passed       1.2 s\n"),
            "{text}"
        );
    }

    #[test]
    fn groups_are_chosen_by_name_and_keep_their_order() {
        let names: Vec<_> = chosen("tidy,fmt")
            .unwrap()
            .iter()
            .map(|group| group.name)
            .collect();
        assert_eq!(names, ["fmt", "tidy"]);
        assert!(chosen("fmt,typo").is_err());
    }

    #[test]
    fn the_end_of_the_log_names_failed_tests() {
        assert!(tells_of_a_failed_test("test vrsp::bound ... FAILED"));
        assert!(!tells_of_a_failed_test("test vrsp::bound ... ok"));
    }

    #[test]
    fn prose_is_not_a_table() {
        assert!(!has_table("Hello.\nThis took 3 of 4 s.\n"));
        assert!(has_table("pools  max  mean\n8  2.08  1.0\n16  1.5  1.0\n"));
    }
}
