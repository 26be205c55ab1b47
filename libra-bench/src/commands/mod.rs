//! What the program can do: one file a command. Each makes a report and says which exit code it stands for.

mod check;
mod corpus;
mod demo;
mod doctor;
mod plan;
mod run;
mod show;
mod sweep;

use std::io::{self, IsTerminal};

use clap::ColorChoice;

use crate::cli::{Cli, Command, Format, GlobalArgs};
use crate::failure::Failure;
use crate::progress::{Progress, ProgressMode};
use crate::report::Report;
use crate::units::format_time_ns;
use crate::{exit, interrupt};

/// A report and an exit code.
type Outcome = Result<(Report, u8), Failure>;

/// Flags of every command, as commands use them.
#[derive(Clone, Debug)]
struct Context {
    global: GlobalArgs,
}

/// Does what `cli` asks for and returns the exit code.
pub(crate) fn run(cli: &Cli) -> u8 {
    interrupt::listen();
    let mut context = Context {
        global: cli.global.clone(),
    };
    if let Command::Show { json: true, .. } = cli.command {
        context.global.format = Format::Json;
    }
    let done = planning_threads(context.global.threads)
        .and_then(|threads| threads.install(|| dispatch(&context, &cli.command)))
        .and_then(|(report, code)| {
            if code == exit::INTERRUPTED {
                context.warn("interrupted; what follows was finished before");
            }
            let mut stdout = io::stdout().lock();
            let written = report.write(context.global.format, &mut stdout);
            written.map(|()| code).map_err(Failure::Stdout)
        });
    done.unwrap_or_else(|failure| {
        context.say("error", "31", &failure.message());
        failure.exit()
    })
}

fn dispatch(context: &Context, command: &Command) -> Outcome {
    match command {
        Command::Demo { window } => demo::run(context, *window),
        Command::Corpus {
            workload,
            windows,
            corpus,
        } => corpus::run(context, workload, windows, corpus),
        Command::Plan {
            workload,
            windows,
            cluster,
            plan,
            output,
        } => plan::run(context, workload, windows, cluster, plan, output.as_deref()),
        Command::Sweep {
            workload,
            windows,
            cluster,
            plan,
            over,
        } => sweep::run(context, workload, windows, cluster, plan, over),
        Command::Show {
            file,
            worker,
            transfers,
            json: _,
            gpus_per_node,
        } => show::run(file, *worker, *transfers, *gpus_per_node),
        Command::Check { files } => check::run(context, files),
        Command::Run {
            workload,
            cluster,
            plan,
            measure,
        } => run::run(context, workload, cluster, plan, measure),
        Command::Doctor => doctor::run(),
    }
}

fn planning_threads(threads: usize) -> Result<rayon::ThreadPool, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|source| Failure::Threads { threads, source })
}

/// Done, or interrupted.
fn code() -> u8 {
    if interrupt::requested() {
        exit::INTERRUPTED
    } else {
        exit::DONE
    }
}

impl Context {
    fn progress(&self, what: &'static str, steps: u64) -> Progress {
        let mode = if self.global.quiet {
            ProgressMode::Off
        } else {
            self.global.progress
        };
        Progress::new(mode, what, steps)
    }

    fn warn(&self, text: &str) {
        if !self.global.quiet {
            self.say("warning", "33", text);
        }
    }

    fn detail(&self, text: &str) {
        if self.global.verbose {
            self.say("note", "36", text);
        }
    }

    fn say(&self, kind: &str, colour: &str, text: &str) {
        if self.is_coloured() {
            eprintln!("\x1b[1;{colour}m{kind}\x1b[0m: {text}");
        } else {
            eprintln!("{kind}: {text}");
        }
    }

    fn is_coloured(&self) -> bool {
        match self.global.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                io::stderr().is_terminal() && !refused
            }
        }
    }

    /// A time for people, `-` where none is to be shown.
    fn time(&self, time_ns: Option<u64>) -> String {
        match time_ns.filter(|_| !self.global.no_timings) {
            Some(time_ns) => format_time_ns(time_ns),
            None => "-".to_owned(),
        }
    }

    /// A time in milliseconds for a column, `-` where none is to be shown.
    fn milliseconds(&self, time_ns: Option<u64>) -> String {
        match time_ns.filter(|_| !self.global.no_timings) {
            Some(time_ns) => format!("{:.2}", time_ns as f64 / 1e6),
            None => "-".to_owned(),
        }
    }
}

/// An excess for a column.
fn excess(value: f64) -> String {
    // Rounding may leave a zero with a sign.
    format!("{:.3}", value + 0.0).replace("-0.000", "0.000")
}

/// A share for a column.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.1}", part as f64 * 100.0 / whole as f64)
}

/// The name of a path as it was typed.
fn typed(path: &std::path::Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Flags of `global` that change what is printed.
fn global_flags(global: &GlobalArgs) -> Vec<String> {
    if global.no_timings {
        vec!["--no-timings".to_owned()]
    } else {
        Vec::new()
    }
}
