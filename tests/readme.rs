//! The README shows what `demo` prints.
//!
//! This test has no harness, so that it can be the command it checks: started with `demo` it is `libra-bench`, and
//! nothing has to be built a second time.

#![forbid(unsafe_code)]

use std::fs;
use std::process::{Command, ExitCode};

use libra_tests::blessed::{assert_holds, at};

const README: &str = "README.md";
const BEGIN: &str = "<!-- demo:begin -->\n";
const END: &str = "<!-- demo:end -->\n";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("demo") {
        return libra_bench::main();
    }
    let readme = fs::read_to_string(at(README)).expect("the README can be read");
    assert_holds(README, with_block(&readme, &demo()).as_bytes());
    println!("{README} shows what the demo prints");
    ExitCode::SUCCESS
}

/// What `libra-bench demo` prints, times left out.
fn demo() -> String {
    let this = std::env::current_exe().expect("this program knows where it is");
    let run = Command::new(this)
        .args(["demo", "--no-timings", "--quiet"])
        .output()
        .expect("this program can start itself");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "the demo failed: {errors}");
    String::from_utf8(run.stdout).expect("the demo prints text")
}

/// `readme` with `shown` between its markers.
fn with_block(readme: &str, shown: &str) -> String {
    let (before, rest) = readme
        .split_once(BEGIN)
        .expect("the README has both markers");
    let (_, after) = rest.split_once(END).expect("the README has both markers");
    format!("{before}{BEGIN}```text\n{shown}```\n{END}{after}")
}
