//! Asking what Libra would do to a corpus, and showing it.
//!
//! The command line is read by `cli`, filled up from a `preset`, and run by one of `commands`. What they find out with
//! `measure` becomes a `report`, which goes to stdout; progress, warnings and errors go to stderr. [`exit`] lists the
//! exit codes.

#![forbid(unsafe_code)]

mod baseline;
mod cli;
mod commands;
mod failure;
mod figures;
mod identity;
mod interrupt;
mod measure;
mod measured;
mod page;
mod plot;
mod preset;
mod progress;
mod report;
mod store;

pub mod exit;
pub mod simulate;
pub mod units;
pub mod workload;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;

/// Reads the command line of this process, does what it asks for and says how it went.
#[must_use]
pub fn main() -> ExitCode {
    let words = cli::with_lists_as_over(std::env::args_os());
    let cli = match cli::Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() {
                exit::USAGE
            } else {
                exit::DONE
            };
            // Nobody is left to be told where the terminal is gone.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    // The panic's own message is on stderr by then.
    let code = catch_unwind(AssertUnwindSafe(|| commands::run(&cli))).unwrap_or(exit::UNEXPECTED);
    ExitCode::from(code)
}
