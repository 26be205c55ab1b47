//! `cargo xtask icount`: instructions per planning call under callgrind.
//!
//! Counts repeat on a shared machine where seconds do not. Each case runs for one iteration and for eleven;
//! a tenth of the difference is one iteration, free of start-up and set-up.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::process::{Outcome, Trouble, capture, cargo, output, verdict};
use crate::tools;
use crate::tree::Tree;

const COMMITTED: &str = "libra-bench/benches/icount.tsv";
const BENCH: [&str; 6] = [
    "bench",
    "-p",
    "libra-bench",
    "--bench",
    "planning",
    "--no-run",
];
const ITERATIONS: (u64, u64) = (1, 11);

/// Allowed change, in percent, with the compiler the committed counts came from.
// Code of one crate is divided among codegen units anew whenever some of it changes; that alone has
// moved the count of an untouched body by 4.7 %.
const TOLERANCE_PERCENT: u64 = 5;
/// Allowed increase, in percent, with any other compiler.
const OTHER_COMPILER_PERCENT: u64 = 10;

/// Instructions per iteration, by case.
type Counts = BTreeMap<String, u64>;

#[derive(Debug, PartialEq, Eq)]
struct Committed {
    /// `rustc -V` when the counts were taken.
    rustc: String,
    counts: Counts,
}

pub(crate) fn check(tree: &Tree) -> Outcome {
    let committed = parse(&tree.read(COMMITTED)?)?;
    let rustc = rustc_version()?;
    let measured = measure(tree)?;
    let same_compiler = rustc == committed.rustc;
    if !same_compiler {
        println!(
            "committed with {}, measured with {rustc}: only {OTHER_COMPILER_PERCENT} % more is a failure",
            committed.rustc
        );
    }
    let rows = compare(&committed.counts, &measured, same_compiler);
    print!("{}", table(&rows));
    let problems = rows.iter().filter(|row| row.verdict.is_failure());
    verdict(
        &problems
            .map(|row| format!("{}: {}", row.case, row.verdict.words()))
            .collect::<Vec<_>>(),
    )
}

pub(crate) fn bless(tree: &Tree) -> Outcome {
    let committed = Committed {
        rustc: rustc_version()?,
        counts: measure(tree)?,
    };
    fs::write(tree.root().join(COMMITTED), render(&committed))
        .map_err(|error| Trouble::failed(format!("{COMMITTED}: {error}")))?;
    print!("{}", render(&committed));
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    More,
    Fewer,
    NotCommitted,
    NotMeasured,
}

impl Verdict {
    fn of(committed: Option<u64>, measured: Option<u64>, same_compiler: bool) -> Self {
        let (Some(committed), Some(measured)) = (committed, measured) else {
            return if committed.is_none() {
                Self::NotCommitted
            } else {
                Self::NotMeasured
            };
        };
        let more_percent = if same_compiler {
            TOLERANCE_PERCENT
        } else {
            OTHER_COMPILER_PERCENT
        };
        if measured * 100 > committed * (100 + more_percent) {
            Self::More
        } else if measured * 100 < committed * (100 - TOLERANCE_PERCENT) {
            Self::Fewer
        } else {
            Self::Same
        }
    }

    fn is_failure(self) -> bool {
        !matches!(self, Self::Same | Self::Fewer)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::More => "more instructions than committed",
            Self::Fewer => "fewer: bless it",
            Self::NotCommitted => "not committed: bless it",
            Self::NotMeasured => "no such case any more: bless it",
        }
    }
}

struct Row {
    case: String,
    committed: Option<u64>,
    measured: Option<u64>,
    verdict: Verdict,
}

fn compare(committed: &Counts, measured: &Counts, same_compiler: bool) -> Vec<Row> {
    let mut cases: Vec<&String> = committed.keys().chain(measured.keys()).collect();
    cases.sort();
    cases.dedup();
    let row = |case: &String| {
        let (committed, measured) = (committed.get(case).copied(), measured.get(case).copied());
        let verdict = Verdict::of(committed, measured, same_compiler);
        Row {
            case: case.clone(),
            committed,
            measured,
            verdict,
        }
    };
    cases.into_iter().map(row).collect()
}

fn table(rows: &[Row]) -> String {
    let width = rows
        .iter()
        .map(|row| row.case.len())
        .max()
        .unwrap_or(0)
        .max("case".len());
    let count = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    let mut text = format!(
        "{:<width$} {:>14} {:>14} {:>7}  verdict\n",
        "case", "committed", "measured", "ratio"
    );
    for row in rows {
        let ratio = match (row.committed, row.measured) {
            (Some(committed), Some(measured)) => {
                format!("{:.4}", measured as f64 / committed as f64)
            }
            _ => "-".to_owned(),
        };
        let (committed, measured) = (count(row.committed), count(row.measured));
        let verdict = row.verdict.words();
        let _ = writeln!(
            text,
            "{:<width$} {committed:>14} {measured:>14} {ratio:>7}  {verdict}",
            row.case
        );
    }
    text
}

fn parse(text: &str) -> Result<Committed, Trouble> {
    let mut committed = Committed {
        rustc: String::new(),
        counts: Counts::new(),
    };
    for (line, number) in text.lines().zip(1..) {
        if let Some(comment) = line.strip_prefix("# ") {
            if comment.starts_with("rustc ") {
                comment.clone_into(&mut committed.rustc);
            }
            continue;
        }
        let bad = || {
            Trouble::failed(format!(
                "{COMMITTED}:{number}: not a case, a tab and a count: `{line}`"
            ))
        };
        let (case, count) = line.split_once('\t').ok_or_else(bad)?;
        if (case, count) == ("case", "instructions") {
            continue;
        }
        let count = count.parse().map_err(|_| bad())?;
        committed.counts.insert(case.to_owned(), count);
    }
    Ok(committed)
}

fn render(committed: &Committed) -> String {
    let mut text = format!(
        "# {}\n# Instructions per iteration (several calls: `counted` in the bench) under callgrind, written by `cargo xtask icount --bless`.\n\
         case\tinstructions\n",
        committed.rustc
    );
    for (case, count) in &committed.counts {
        let _ = writeln!(text, "{case}\t{count}");
    }
    text
}

fn rustc_version() -> Result<String, Trouble> {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    Ok(capture(Command::new(program).arg("-V"))?.trim().to_owned())
}

fn measure(tree: &Tree) -> Result<Counts, Trouble> {
    tools::debian("valgrind", "valgrind")?;
    let messages = capture(cargo(tree, &BENCH).arg("--message-format=json-render-diagnostics"))?;
    let program = executable(&messages)
        .ok_or_else(|| Trouble::failed("cargo named no executable for the bench"))?;
    let listed = capture(
        Command::new(&program)
            .arg("--icount-list")
            .current_dir(tree.root()),
    )?;
    let cases: Vec<&str> = listed
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if cases.is_empty() {
        return Err(Trouble::failed("`--icount-list` names no case"));
    }
    let mut counts = Counts::new();
    for case in cases {
        let once = instructions(tree, &program, case, ITERATIONS.0)?;
        let often = instructions(tree, &program, case, ITERATIONS.1)?;
        let per_iteration = often.saturating_sub(once) / (ITERATIONS.1 - ITERATIONS.0);
        if per_iteration == 0 {
            return Err(Trouble::failed(format!(
                "{case}: {once} and {often} instructions, so iterations do nothing"
            )));
        }
        counts.insert(case.to_owned(), per_iteration);
    }
    Ok(counts)
}

/// The bench's program, from cargo's messages.
fn executable(messages: &str) -> Option<String> {
    let named = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_ours = message["target"]["name"] == "planning";
        message["executable"]
            .as_str()
            .filter(|_| is_ours)
            .map(str::to_owned)
    };
    messages.lines().filter_map(named).next_back()
}

fn instructions(tree: &Tree, program: &str, case: &str, iterations: u64) -> Result<u64, Trouble> {
    let mut command = Command::new("valgrind");
    command.args([
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        program,
        "--icount",
        case,
    ]);
    let output = output(command.arg(iterations.to_string()).current_dir(tree.root()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match collected(&said) {
        Some(count) if output.status.success() => Ok(count),
        _ => Err(Trouble::failed(format!(
            "{case}, {iterations} iterations: {}\n{said}",
            output.status
        ))),
    }
}

/// The total in callgrind's `==pid== Collected : N`.
fn collected(said: &str) -> Option<u64> {
    let mut counts = said
        .lines()
        .filter_map(|line| line.split_once("Collected : "));
    counts.next_back()?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(&str, u64)]) -> Counts {
        pairs
            .iter()
            .map(|(case, count)| ((*case).to_owned(), *count))
            .collect()
    }

    fn verdicts(
        committed: &[(&str, u64)],
        measured: &[(&str, u64)],
        same_compiler: bool,
    ) -> Vec<Verdict> {
        let rows = compare(&counts(committed), &counts(measured), same_compiler);
        rows.iter().map(|row| row.verdict).collect()
    }

    #[test]
    fn five_percent_more_passes_and_six_fails() {
        let committed = [("a", 100), ("b", 100), ("c", 100)];
        let measured = [("a", 105), ("b", 106), ("c", 94)];
        assert_eq!(
            verdicts(&committed, &measured, true),
            [Verdict::Same, Verdict::More, Verdict::Fewer]
        );
        assert!(Verdict::More.is_failure() && !Verdict::Fewer.is_failure());
    }

    #[test]
    fn another_compiler_may_cost_ten_percent() {
        let committed = [("a", 100), ("b", 100)];
        assert_eq!(
            verdicts(&committed, &[("a", 110), ("b", 111)], false),
            [Verdict::Same, Verdict::More]
        );
    }

    #[test]
    fn a_case_on_one_side_only_fails() {
        let verdicts = verdicts(&[("a", 1)], &[("b", 1)], true);
        assert_eq!(verdicts, [Verdict::NotMeasured, Verdict::NotCommitted]);
        assert!(verdicts.into_iter().all(Verdict::is_failure));
    }

    #[test]
    fn committed_counts_survive_writing_and_reading() {
        let committed = Committed {
            rustc: "rustc 1.95.0 (abc 2026-04-14)".into(),
            counts: counts(&[("vrsp/8", 7)]),
        };
        assert_eq!(parse(&render(&committed)).unwrap(), committed);
        assert!(parse("vrsp 7\n").is_err());
    }

    #[test]
    fn the_total_is_read_from_what_callgrind_says() {
        assert_eq!(
            collected("==9== Events    : Ir\n==9== Collected : 1234\n==9==\n"),
            Some(1234)
        );
        assert_eq!(collected("==9== nothing\n"), None);
    }

    #[test]
    fn the_program_is_the_one_of_the_bench() {
        let messages = "noise\n\
            {\"target\":{\"name\":\"libra_bench\"},\"executable\":null}\n\
            {\"target\":{\"name\":\"planning\"},\"executable\":\"/t/planning-1\"}\n";
        assert_eq!(executable(messages).as_deref(), Some("/t/planning-1"));
    }
}
