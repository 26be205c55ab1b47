//! What the program can do: one file a command. Each makes a report and says which exit code it stands for.

mod check;
mod compare;
mod corpus;
mod demo;
mod doctor;
mod figures;
mod plan;
mod report;
mod run;
mod show;
mod simulate;
mod sweep;

use std::io::{self, IsTerminal};
use std::path::Path;

use clap::ColorChoice;

use crate::cli::{Cli, Command, Format, GlobalArgs, Output};
use crate::failure::Failure;
use crate::page::{self, Document};
use crate::progress::{Progress, ProgressMode};
use crate::report::Report;
use crate::units::format_time_ns;
use crate::{exit, interrupt, store};

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
    let done = (context.check_outputs(other_output(&cli.command)))
        .and_then(|()| trace(&cli.command).map_or(Ok(()), store::check_writable))
        .and_then(|()| planning_threads(context.global.threads))
        .and_then(|threads| threads.install(|| dispatch(&context, &cli.command)))
        .and_then(|(report, code)| {
            if code == exit::INTERRUPTED {
                context.warn("interrupted; what follows was finished before");
            }
            let saved = context.save(&report);
            let mut stdout = io::stdout().lock();
            let written = report.write(context.global.format, &mut stdout);
            saved.and(written.map(|()| code).map_err(Failure::Stdout))
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
        } => plan::run(context, workload, windows, cluster, plan),
        Command::Sweep {
            workload,
            windows,
            cluster,
            plan,
            sweep,
        } => sweep::run(context, workload, windows, cluster, plan, sweep),
        Command::Simulate {
            workload,
            windows,
            cluster,
            plan,
            simulate,
        } => simulate::run(context, workload, windows, cluster, plan, simulate),
        Command::Show {
            file,
            worker,
            transfers,
            json: _,
            gpus_per_node,
            nodes_per_pod,
        } => show::run(file, *worker, *transfers, [*gpus_per_node, *nodes_per_pod]),
        Command::Check { files } => check::run(context, files),
        Command::Run {
            workload,
            cluster,
            plan,
            measure,
        } => run::run(context, workload, cluster, plan, measure),
        Command::Compare(asked) => compare::run(context, asked),
        Command::Figures { figures } => figures::run(context, figures),
        Command::Report { report } => report::run(context, report),
        Command::Doctor => doctor::run(),
    }
}

/// What a command writes to a name after `-o` that is no report's.
fn other_output(command: &Command) -> Option<&'static str> {
    match command {
        Command::Corpus { .. } => Some("the picture of the histogram"),
        Command::Plan { .. } => Some("the directory of the plans"),
        _ => None,
    }
}

/// Where a command writes timelines.
fn trace(command: &Command) -> Option<&Path> {
    match command {
        Command::Simulate { simulate, .. } => simulate.trace.as_deref(),
        Command::Run { measure, .. } => measure.trace.as_deref(),
        _ => None,
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
    /// Refuses files that could not be written, before anything is done. A name that is no report's is for `other`,
    /// which only some commands write.
    fn check_outputs(&self, other: Option<&str>) -> Result<(), Failure> {
        for output in &self.global.output {
            match output {
                Output::Stdout => {}
                Output::File(path, _) | Output::Page(path) => store::check_writable(path)?,
                Output::Other(_) if other.is_some() => {}
                Output::Other(path) => {
                    let name = typed(path);
                    return Err(Failure::Output(format!(
                        "`{name}` names no format; legal is a file that ends in .json, .csv, .md, .txt or .html, or - \
                         for stdout"
                    )));
                }
            }
        }
        match (other, self.others().nth(1)) {
            (Some(what), Some(second)) => {
                let second = typed(second);
                Err(Failure::Output(format!(
                    "{what} is one; `{second}` is another"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Names after `-o` that are no report's.
    fn others(&self) -> impl Iterator<Item = &Path> {
        self.global.output.iter().filter_map(|output| match output {
            Output::Other(path) => Some(path.as_path()),
            Output::Stdout | Output::File(..) | Output::Page(_) => None,
        })
    }

    /// Where reports go beside stdout.
    fn files(&self) -> impl Iterator<Item = (&Path, Format)> {
        self.global.output.iter().filter_map(|output| match output {
            Output::File(path, format) => Some((path.as_path(), *format)),
            Output::Stdout | Output::Page(_) | Output::Other(_) => None,
        })
    }

    /// Where pages go.
    fn pages(&self) -> impl Iterator<Item = &Path> {
        self.global.output.iter().filter_map(|output| match output {
            Output::Page(path) => Some(path.as_path()),
            Output::Stdout | Output::File(..) | Output::Other(_) => None,
        })
    }

    /// Writes the files that were asked for.
    fn save(&self, report: &Report) -> Result<(), Failure> {
        let write = |(path, format)| store::write_file(path, report.text(format).as_bytes());
        self.files().try_for_each(write)?;
        self.pages().try_for_each(|path| {
            let page = match &report.page {
                Some(page) => page,
                None => {
                    let own = Document::new(report.command.to_owned(), report.document())?;
                    &page::page(&page::sections(&[own]))
                }
            };
            store::write_file(path, page.as_bytes())
        })
    }

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
fn typed(path: &Path) -> String {
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
