//! What `compare` takes.

use std::path::PathBuf;

use clap::Args;

/// Two reports, and what is too much.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Measure")]
pub(crate) struct CompareArgs {
    /// The report to compare with, as --format json or -o FILE.json writes it
    #[arg(value_name = "A.json")]
    pub(crate) a: PathBuf,
    /// The report to judge
    #[arg(value_name = "B.json")]
    pub(crate) b: PathBuf,
    /// End with exit code 5 where a number of B is worse by more than this, 5% or 0.05: times, bytes and excesses where
    /// larger, speeds where smaller
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) fail_above: Option<f64>,
    /// Show numbers that are equal, too
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
}

/// A share as `5%` or `0.05`.
fn share(text: &str) -> Result<f64, String> {
    let (digits, unit) = match text.strip_suffix('%') {
        Some(digits) => (digits, 0.01),
        None => (text, 1.0),
    };
    let share = digits.trim().parse::<f64>().map(|share| share * unit);
    let legal = share.ok().filter(|share| (0.0..=1e6).contains(share));
    legal.ok_or_else(|| format!("`{text}` is not a share; legal is 0 or more, such as 5% or 0.05"))
}
