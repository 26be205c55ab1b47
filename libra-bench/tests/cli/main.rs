//! The built program: what it prints, what it writes and how it ends.

mod book;
mod compare;
mod conduct;
mod corpora;
mod errors;
mod figures;
mod outputs;
mod plans;
mod readable;
mod report;
mod reproduce;
mod results;
mod resume;
mod run_methods;
mod simulate;
mod sweep;
mod traces;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a run of the program left.
#[derive(Debug)]
struct Done {
    code: i32,
    stdout: String,
    stderr: String,
}

/// The program in an empty environment but for what it needs to run, in the folder `at`.
fn program(at: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_libra-bench"));
    command.current_dir(at).stdin(Stdio::null());
    // The help's width and colours depend on them.
    command.env_remove("COLUMNS").env_remove("CLICOLOR_FORCE");
    command
}

fn run_at(at: &Path, arguments: &[&str]) -> Done {
    let output = program(at).args(arguments).output();
    let output = output.expect("the program is built");
    Done {
        code: output.status.code().expect("no signal ends it"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

fn run(line: &str) -> Done {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    run_at(Path::new("."), &arguments)
}

/// Stdout of a run that must go well.
fn stdout(line: &str) -> String {
    let done = run(line);
    assert_eq!(done.code, 0, "{line}: {}", done.stderr);
    done.stdout
}

fn json(line: &str) -> Value {
    let text = stdout(&format!("{line} --format json"));
    serde_json::from_str(&text).expect("JSON")
}
