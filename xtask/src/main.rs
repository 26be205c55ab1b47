//! Development tasks. `cargo xtask help` lists them.

#![forbid(unsafe_code)]

mod bless;
mod book;
mod ci;
mod deps;
mod fuzz;
mod icount;
mod markdown;
mod process;
mod tidy;
mod tools;
mod tree;

use std::process::ExitCode;

use process::{Outcome, Trouble, heading};
use tree::Tree;

const HELP: &str = "\
Usage: cargo xtask TASK

  ci [--only GROUP,GROUP] [--list]   everything continuous integration runs
  bless                              rewrite golden plans, malformed plans, snapshots and icount.tsv
  icount [--bless]                   instructions per planning call, against libra-bench/benches/icount.tsv
  tidy                               stage order, file sizes, dead files, links, leftover markers
  deps                               dependency directions, licences and minimum compiler versions
  book                               chapters and links of docs/; builds the pages where mdbook is installed
  fuzz [SECONDS]                     every fuzz target for SECONDS each (5), and a canary that must crash
  help                               this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&Tree::of_this_workspace(), &words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Trouble::Shown) => ExitCode::FAILURE,
        Err(trouble) => {
            eprintln!("xtask: {trouble}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(tree: &Tree, words: &[&str]) -> Outcome {
    match words {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["ci", options @ ..] => ci::main(tree, options),
        ["bless"] => bless::main(tree),
        ["icount"] => headed(tree, "icount: against the committed counts", icount::check),
        ["icount", "--bless"] => headed(tree, "icount: writing the counts", icount::bless),
        ["tidy"] => headed(
            tree,
            "tidy: stages, dead files, sizes, markers, links",
            tidy::main,
        ),
        ["deps"] => headed(tree, "deps: directions, licences, compilers", deps::main),
        ["book"] => headed(tree, "book: chapters, links and anchors", book::main),
        ["fuzz"] => fuzz_for(tree, fuzz::SMOKE_SECONDS),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds @ 1..) => fuzz_for(tree, seconds),
            _ => Err(Trouble::failed(format!(
                "seconds is `{seconds}`, not a number from 1"
            ))),
        },
        _ => Err(Trouble::failed(format!(
            "unknown task `{}`\n\n{HELP}",
            words.join(" ")
        ))),
    }
}

fn fuzz_for(tree: &Tree, seconds: u64) -> Outcome {
    let text = format!("fuzz: {seconds} s a target");
    headed(tree, &text, |tree| fuzz::main(tree, seconds))
}

fn headed(tree: &Tree, text: &str, task: impl FnOnce(&Tree) -> Outcome) -> Outcome {
    heading(text);
    task(tree)
}
