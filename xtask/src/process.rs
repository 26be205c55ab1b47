//! Running other programs, and saying why a task did not succeed.

use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use crate::tree::Tree;

/// Why a task did not succeed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The thing checked is wrong.
    Failed(String),
    /// The check could not be made, for want of a tool.
    CannotRun(String),
    /// Something went wrong, and the output ends with saying so.
    Shown,
}

impl Trouble {
    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }

    pub(crate) fn cannot_run(why: impl Into<String>) -> Self {
        Self::CannotRun(why.into())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) | Self::CannotRun(why) => f.write_str(why),
            Self::Shown => f.write_str("see above"),
        }
    }
}

/// What a task comes to.
pub(crate) type Outcome = Result<(), Trouble>;

/// Announces a task or a step.
pub(crate) fn heading(text: &str) {
    eprintln!("\n== {text}");
}

/// A cargo call in the workspace root.
pub(crate) fn cargo(tree: &Tree, arguments: &[&str]) -> Command {
    // Cargo names itself to what it runs, so that a task uses the toolchain it was built with.
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(tree.root());
    command
}

/// Runs a command whose output the reader sees.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let line = echo(command);
    let status = command
        .status()
        .map_err(|error| Trouble::failed(format!("`{line}`: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Trouble::failed(format!("`{line}`: {status}")))
    }
}

/// Runs a command whose output the reader sees; where it fails, the reason carries what `pick` keeps
/// of its standard output, so that the end of a long log tells what went wrong.
pub(crate) fn run_picking(command: &mut Command, pick: fn(&str) -> bool) -> Outcome {
    let line = echo(command);
    let unable = |error: std::io::Error| Trouble::failed(format!("`{line}`: {error}"));
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(unable)?;
    let mut kept = Vec::new();
    for shown in BufReader::new(child.stdout.take().expect("piped above")).lines() {
        let shown = shown.map_err(unable)?;
        println!("{shown}");
        if pick(&shown) {
            kept.push(shown);
        }
    }
    let status = child.wait().map_err(unable)?;
    if status.success() {
        return Ok(());
    }
    kept.dedup();
    let reasons: String = kept.iter().map(|line| format!("\n    {line}")).collect();
    Err(Trouble::failed(format!("`{line}`: {status}{reasons}")))
}

/// Runs a command and returns its standard output; its standard error goes to the reader.
pub(crate) fn capture(command: &mut Command) -> Result<String, Trouble> {
    let line = echo(command);
    let output = output(command.stderr(Stdio::inherit()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Trouble::failed(format!("`{line}`: {}", output.status)))
    }
}

/// Runs a command and returns whatever it said and how it ended.
pub(crate) fn output(command: &mut Command) -> Result<Output, Trouble> {
    command
        .output()
        .map_err(|error| Trouble::failed(format!("`{}`: {error}", line(command))))
}

/// Whether a probe such as `valgrind --version` runs and succeeds.
pub(crate) fn answers(command: &mut Command) -> bool {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Passes when there are no problems, and prints them otherwise.
pub(crate) fn verdict(problems: &[String]) -> Outcome {
    for problem in problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => Ok(()),
        1 => Err(Trouble::failed("1 problem")),
        count => Err(Trouble::failed(format!("{count} problems"))),
    }
}

fn echo(command: &Command) -> String {
    let line = line(command);
    eprintln!("$ {line}");
    line
}

/// The command as one would type it, with the variables it sets.
fn line(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let variables = variables.map(|(name, value)| format!("{}={}", plain(name), quoted(value)));
    let program = command.get_program();
    let program = if std::env::var_os("CARGO").is_some_and(|cargo| cargo == program) {
        "cargo".to_owned()
    } else {
        plain(program)
    };
    let arguments = command.get_args().map(quoted);
    variables
        .chain([program])
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}

fn plain(text: &OsStr) -> String {
    text.to_string_lossy().into_owned()
}

fn quoted(text: &OsStr) -> String {
    let text = plain(text);
    if text.is_empty() || text.contains([' ', '\'', '"']) {
        format!("{text:?}")
    } else {
        text
    }
}
