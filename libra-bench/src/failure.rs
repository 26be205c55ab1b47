//! Why a command did not do what it was asked for, and which exit code says so.

use std::error::Error;
use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use libra_exec::{ExecError, Failure as ExecFailure};
use libra_sched::{DecodeError, WorkerId};

use crate::exit;
use crate::page::DocumentError;
use crate::simulate::ClusterError;
use crate::units::format_bytes;
use crate::workload::{DistributionError, InputError, PackError, bundled};

/// A command that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Neither lengths nor a distribution.
    #[error("no lengths were given")]
    NoLengths,
    /// A length source.
    #[error(transparent)]
    Input(#[from] InputError),
    /// An order of what has no end.
    #[error(
        "drawn lengths have no end, so they cannot be shuffled; legal is --order as-is or windowed:N"
    )]
    EndlessShuffle,
    /// Samples that do not pack.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// A distribution.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// Shapes that do not go together, or a plan that does not fit.
    #[error(transparent)]
    Shape(#[from] libra_sched::Error),
    /// The corpus ends before the window that was asked for.
    #[error("pool {pool} does not exist; the window has pools 0 to {last}")]
    NoPool {
        /// The pool.
        pool: u32,
        /// The last one.
        last: u32,
    },
    /// A window with more samples than fit in memory.
    #[error(
        "the distribution fills a window with more than {limit} samples; lower --tokens or --gbs"
    )]
    TooManySamples {
        /// Most samples.
        limit: u64,
    },
    /// A plot of a format that there is none of.
    #[error("{}: the histogram is drawn as SVG; legal is a file name that ends in .svg", path.display())]
    PlotSuffix {
        /// The path asked for.
        path: PathBuf,
    },
    /// A method needs what the shapes do not give.
    #[error("ulysses splits the query heads over CP workers: {0}")]
    Ulysses(#[source] libra_sched::Error),
    /// One of several methods cannot run the pool.
    #[error("{method} cannot run the pool")]
    Method {
        /// Its name.
        method: &'static str,
        /// Why not.
        source: Box<Failure>,
    },
    /// A run that this machine cannot hold.
    #[error("the pool would hold about {} of tensors, the limit is {}", format_bytes(*bytes), format_bytes(*limit))]
    TooMuchMemory {
        /// Estimate.
        bytes: u64,
        /// Most.
        limit: u64,
        /// Divisor of the tokens that would do.
        scale: u64,
    },
    /// A run that would take too long.
    #[error(
        "the pool asks for {operations:.1e} multiplications a method, the limit is {limit:.1e}"
    )]
    TooMuchWork {
        /// Pairs × heads × head width.
        operations: f64,
        /// Most.
        limit: f64,
        /// Divisor of the tokens that would do.
        scale: u64,
    },
    /// Values of `--over` that are not those of a flag, or too many of them.
    #[error("--over: {0}")]
    Over(String),
    /// A cluster file or a kernel table.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Plans for nodes that the cluster does not have.
    #[error("--gpus-per-node {asked}: nodes of the cluster {cluster} have {gpus} GPUs")]
    NodeSize {
        /// What was asked for.
        asked: u32,
        /// The cluster.
        cluster: String,
        /// GPUs of its nodes.
        gpus: u32,
    },
    /// Values of `-o` that are not those of the command.
    #[error("-o: {0}")]
    Output(String),
    /// `--resume` without a file to go on with.
    #[error("--resume goes on with the .json file of -o; {0}")]
    ResumeFile(String),
    /// A report of another sweep.
    #[error("{}: is of another sweep: {differs}", path.display())]
    Resume {
        /// The file.
        path: PathBuf,
        /// What differs, with both values.
        differs: String,
    },
    /// A file that is no report of this program.
    #[error("{}: is no report in JSON: {why}", path.display())]
    NoReport {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Two reports with nothing to compare.
    #[error("{}", .0)]
    Incomparable(String),
    /// A plan file that cannot be read.
    #[error("{}: cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file that is not a table of costs.
    #[error("{}: is no table of costs", path.display())]
    CostFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        source: serde_json::Error,
    },
    /// Times or speeds that cannot be.
    #[error("{place}")]
    Measured {
        /// Where they were given.
        place: String,
        /// What is wrong with them.
        source: libra_sched::Error,
    },
    /// A word of a list of speeds that says nothing.
    #[error("--speeds: `{word}` gives no worker a speed; {why}")]
    SpeedList {
        /// The word.
        word: String,
        /// What would be legal.
        why: String,
    },
    /// A file that is not a plan.
    #[error("{}: cannot be decoded", path.display())]
    Decode {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// A plan that breaks its own rules.
    #[error("{}: the plan breaks {count} of its rules, the first: {first}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// How many violations.
        count: usize,
        /// The first.
        first: String,
    },
    /// A worker that the plan does not have.
    #[error("{worker} does not exist; the plan has workers 0 to {last}")]
    NoWorker {
        /// The worker.
        worker: WorkerId,
        /// The last one.
        last: u32,
    },
    /// A file or directory that cannot be written.
    #[error("{}: cannot be written", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file that is no document of ours.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Stdout cannot be written.
    #[error("stdout cannot be written")]
    Stdout(#[source] io::Error),
    /// Threads for planning cannot be made.
    #[error("no {threads} threads for planning")]
    Threads {
        /// How many.
        threads: usize,
        /// Why not.
        source: rayon::ThreadPoolBuildError,
    },
    /// Execution failed.
    #[error("the pool did not run through")]
    Exec(#[from] ExecError),
    /// The planner made a plan that breaks its own rules.
    #[error(
        "window {window}, pool {pool}: the plan made breaks {count} of its rules, the first: {first}"
    )]
    Planner {
        /// The window.
        window: u64,
        /// The pool.
        pool: u32,
        /// How many violations.
        count: usize,
        /// The first.
        first: String,
    },
}

impl Failure {
    /// The exit code that stands for it.
    pub(crate) fn exit(&self) -> u8 {
        match self {
            Self::NoLengths
            | Self::Over(_)
            | Self::Output(_)
            | Self::ResumeFile(_)
            | Self::EndlessShuffle
            | Self::PlotSuffix { .. } => exit::USAGE,
            Self::Broken { .. } | Self::Planner { .. } => exit::CHECK,
            Self::Exec(error) => match error.kind {
                ExecFailure::Stalled { .. }
                | ExecFailure::Aborted { .. }
                | ExecFailure::Closed { .. } => exit::TIMEOUT,
                _ => exit::UNEXPECTED,
            },
            Self::Method { source, .. } => source.exit(),
            Self::Stdout(_) | Self::Threads { .. } => exit::UNEXPECTED,
            _ => exit::INPUT,
        }
    }

    /// What the user may do about it.
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoLengths => {
                let names: Vec<_> = bundled::names().collect();
                let names = names.join(", ");
                Some(format!(
                    "name a file of lengths, a bundled corpus ({names}), or --dist lognormal:607,1.7"
                ))
            }
            Self::Pack(PackError::TooShort { .. }) => Some(
                "lower --gbs, --tokens or --skip-windows; --fill-last fills the last window with empty sequences"
                    .to_owned(),
            ),
            Self::Pack(PackError::SampleTooLong { .. }) => {
                Some("raise --tokens, or cut samples with --pack concat".to_owned())
            }
            Self::TooMuchMemory { scale, .. } | Self::TooMuchWork { scale, .. } => {
                Some(format!("--scale {scale} divides the tokens and fits"))
            }
            Self::Broken { path, .. } => {
                Some(format!("libra-bench check {} lists them all", path.display()))
            }
            Self::Resume { .. } => Some("without --resume the file is written anew".to_owned()),
            Self::Method { source, .. } => source.hint(),
            Self::Ulysses(_) => Some("lower --cp, or raise --q-heads".to_owned()),
            Self::Planner { .. } => Some("this is a bug in Libra; please report the command".to_owned()),
            Self::Exec(error) if matches!(error.kind, ExecFailure::Stalled { .. }) => {
                Some("raise --timeout if the machine is only slow".to_owned())
            }
            _ => None,
        }
    }

    /// The whole chain of causes in one line, and a line of advice where there is some.
    pub(crate) fn message(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let said = error.to_string();
            // Some messages quote their cause.
            if !text.ends_with(&said) {
                let _ = write!(text, ": {said}");
            }
            cause = error.source();
        }
        if let Some(hint) = self.hint() {
            let _ = write!(text, "\nhint: {hint}");
        }
        text
    }
}
