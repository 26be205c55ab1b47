//! The command line.

mod args;
mod compare;
mod output;
mod simulate;
mod sweep;
mod values;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{ColorChoice, Parser, Subcommand};

pub(crate) use args::{
    ClusterArgs, CorpusArgs, FiguresArgs, MeasureArgs, PlanArgs, ReportArgs, WindowArgs,
    WorkloadArgs,
};
pub(crate) use compare::CompareArgs;
pub(crate) use output::Output;
pub(crate) use simulate::{Methods, SimulateArgs};
pub(crate) use sweep::{Beside, Over, SweepArgs, Verify, with_lists_as_over};
pub(crate) use values::{Backend, Dtype, Format, Pack, Placement, ProxyKind, Route};

use crate::progress::ProgressMode;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXITS: &str = "Exit codes: 0 done, 1 unexpected (a bug), 2 usage, 3 input unreadable or impossible, \
4 check failed, 5 comparison over threshold, 6 environment, 7 timed out, 130 interrupted.";

/// Asks what Libra would do to a corpus, and shows it.
///
/// Libra balances the attention work of long-context training: it groups packed sequences into pools of near-equal work
/// and spreads each pool's attention tiles over the pool's workers. `libra-bench demo` shows all of it on a bundled
/// corpus.
#[derive(Debug, Parser)]
#[command(name = "libra-bench", version, styles = STYLES, after_help = EXITS, max_term_width = 100)]
#[command(propagate_version = false, infer_subcommands = false)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
}

/// Flags of every command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct GlobalArgs {
    /// How results are written to stdout
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        help_heading = "Output"
    )]
    pub(crate) format: Format,
    /// Write results to FILE too, as its suffix says: .json, .csv, .md, .txt for the table, or .html for a page of
    /// figures; may be repeated.
    /// `plan` takes any other name for a directory, made if need be, and writes the plans there
    #[arg(
        short,
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Output"
    )]
    pub(crate) output: Vec<Output>,
    /// No progress, no warnings; errors are still shown
    #[arg(short, long, global = true, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// More about what is done, on stderr
    #[arg(
        short,
        long,
        global = true,
        help_heading = "Output",
        conflicts_with = "quiet"
    )]
    pub(crate) verbose: bool,
    /// Colours on stderr
    #[arg(long, global = true, default_value = "auto", help_heading = "Output")]
    pub(crate) color: ColorChoice,
    /// Progress on stderr
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        help_heading = "Output"
    )]
    pub(crate) progress: ProgressMode,
    /// Print `-` for every time, so that equal inputs print equal results
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) no_timings: bool,
    /// Threads for planning and for reference results, 0 for one a core; no result depends on it
    #[arg(
        long,
        global = true,
        value_name = "N",
        default_value_t = 0,
        value_parser = values::threads,
        help_heading = "Measure"
    )]
    pub(crate) threads: usize,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plan a bundled corpus at full size, then execute one pool scaled down, every result checked
    Demo {
        /// Which window of the corpus
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = values::count)]
        window: u64,
    },
    /// Describe sample lengths, before and after packing
    Corpus {
        #[command(flatten)]
        workload: WorkloadArgs,
        #[command(flatten)]
        windows: WindowArgs,
        #[command(flatten)]
        corpus: CorpusArgs,
    },
    /// Group sequences into pools, plan each pool, write the plans
    Plan {
        #[command(flatten)]
        workload: WorkloadArgs,
        #[command(flatten)]
        windows: WindowArgs,
        #[command(flatten)]
        cluster: ClusterArgs,
        #[command(flatten)]
        plan: PlanArgs,
    },
    /// Plan many combinations of settings over the same lengths, and name the one to take
    Sweep {
        #[command(flatten)]
        workload: WorkloadArgs,
        #[command(flatten)]
        windows: WindowArgs,
        #[command(flatten)]
        cluster: ClusterArgs,
        #[command(flatten)]
        plan: PlanArgs,
        #[command(flatten)]
        sweep: SweepArgs,
    },
    /// Simulate training steps on a cluster, several methods side by side
    ///
    /// Every message and every attention call of every worker is simulated, as the executor would run them. What
    /// links, GPUs and the rest of the model take is in a cluster file.
    Simulate {
        #[command(flatten)]
        workload: WorkloadArgs,
        #[command(flatten)]
        windows: WindowArgs,
        #[command(flatten)]
        cluster: ClusterArgs,
        #[command(flatten)]
        plan: PlanArgs,
        #[command(flatten)]
        simulate: SimulateArgs,
    },
    /// Show a plan for people
    Show {
        /// The plan file
        #[arg(value_name = "PLAN")]
        file: PathBuf,
        /// Everything about one worker: its tiles and its messages
        #[arg(long, value_name = "W", value_parser = values::count_u32)]
        worker: Option<u32>,
        /// Every transfer
        #[arg(long)]
        transfers: bool,
        /// Same as --format json
        #[arg(long)]
        json: bool,
        /// Workers of one node, for bytes between nodes [default: as planned, else 8]
        #[arg(long, value_name = "N", value_parser = values::count_u32)]
        gpus_per_node: Option<u32>,
        /// Nodes of one pod, for bytes between pods [default: all]
        #[arg(long, value_name = "N", value_parser = values::count_u32)]
        nodes_per_pod: Option<u32>,
    },
    /// Decode and verify plans
    Check {
        /// The plan files
        #[arg(value_name = "PLAN", required = true)]
        files: Vec<PathBuf>,
    },
    /// Execute one pool, methods side by side, results checked against unsharded attention
    ///
    /// Sequences are packed and grouped into pools at full size. With --scale N the borders of the chosen pool's
    /// samples are then divided by N and rounded up, as are L and B; samples that become empty vanish. So each sequence
    /// keeps its proportions and fits.
    Run {
        #[command(flatten)]
        workload: WorkloadArgs,
        #[command(flatten)]
        cluster: ClusterArgs,
        #[command(flatten)]
        plan: PlanArgs,
        #[command(flatten)]
        measure: MeasureArgs,
    },
    /// Compare two reports of one command in JSON, number by number
    Compare(CompareArgs),
    /// Draw figures of the paper from our own numbers, beside those it published
    Figures {
        #[command(flatten)]
        figures: FiguresArgs,
    },
    /// Make one HTML page from reports that other commands wrote with --format json, and from traces
    Report {
        #[command(flatten)]
        report: ReportArgs,
    },
    /// Describe this machine for a bug report
    Doctor,
}
