//! `plan`: VRSP, then every pool, then files.

mod tables;

use std::path::Path;

use libra_sched::vrsp::GaOrder;
use libra_sched::{PoolPlan, audit, wire};
use serde_json::{Value, json};

pub(super) use tables::add_summary;
use tables::{add_granularity, pool_table};

use super::{Context, Outcome, code};
use crate::cli::{ClusterArgs, PlanArgs, ProxyKind, WindowArgs, WorkloadArgs};
use crate::failure::Failure;
use crate::measure::{Detail, Inter, PoolCase, Source, Summary, WindowPlan, Windows};
use crate::preset::{Settings, Shapes, command_line};
use crate::report::{PROGRAM, Report};
use crate::units::format_count;
use crate::{interrupt, store};

pub(super) fn run(
    context: &Context,
    workload: &WorkloadArgs,
    windows: &WindowArgs,
    cluster: &ClusterArgs,
    plan: &PlanArgs,
) -> Outcome {
    let output = context.others().next();
    let source = Source::new(workload)?;
    let settings = Settings::new(workload, cluster, plan);
    let shapes = settings.shapes()?;
    if output.is_some() {
        settings.refuse_sparse("plans that are written")?;
    }
    let count = windows.windows.unwrap_or(1);
    let mut stream = Windows::new(&source, &settings)?;
    let mut done = Planned {
        balanced: settings.ga_order == GaOrder::Balanced,
        ..Planned::default()
    };
    let progress = context.progress(
        "planned",
        count.saturating_mul(shapes.window.pools().into()),
    );
    while done.inters.len() < count as usize && !interrupt::requested() {
        let Some(window) = stream.next(&shapes)? else {
            report_end(context, &stream, count, done.inters.len());
            break;
        };
        let pools = window.plan_pools(&shapes, || progress.step())?;
        let mut cases = Vec::with_capacity(pools.len());
        for (mut case, plan) in pools {
            done.consider(&case, &plan, &shapes);
            if let Some(directory) = output {
                let origin = provenance(&source, &settings, &case);
                case.file = Some(write(directory, &case, &wire::encode_with(&plan, &origin))?);
            }
            cases.push(case);
        }
        done.add(&window, cases);
    }
    drop(progress);

    let mut words = words("plan", &source, &settings, count);
    if let Some(directory) = output {
        words.extend(["-o".to_owned(), super::typed(directory)]);
    }
    words.extend(super::global_flags(&context.global));
    let mut report = Report::new("plan", line(&words));
    report.seed = Some(settings.seed);
    report.config = config(&source, &settings, count);
    report.header();
    report.note(settings.line());
    report.note(format!("lengths {}", source.name()));
    if let ProxyKind::Sparse(sparse) = settings.proxy {
        report.note(format!(
            "pools are those of {sparse}; tiles, workers and Q and O are those of {} attention, K and V at most",
            settings.mask
        ));
    }
    report.note("");
    report.table(pool_table(context, &done.pools));
    report.note("");
    add_summary(context, &mut report, &done);
    add_granularity(&mut report, &settings, &done.pools);
    report.reproduce(report.reproduce.clone());
    if context.global.no_timings {
        done.forget_times();
    }
    report.cases = (done.pools.iter())
        .map(|case| serde_json::to_value(case).expect("numbers and text"))
        .collect();
    Ok((report, code()))
}

/// What has been planned.
#[derive(Default)]
pub(super) struct Planned {
    pub(super) summary: Summary,
    pub(super) inters: Vec<Inter>,
    pub(super) pools: Vec<PoolCase>,
    /// Whether pools run in balanced order.
    pub(super) balanced: bool,
    /// The pool whose workers are most uneven at home, and how uneven.
    detail: Option<(f64, Detail)>,
}

impl Planned {
    pub(super) fn add(&mut self, window: &WindowPlan, cases: Vec<PoolCase>) {
        self.summary.add(&window.inter, &cases);
        self.inters.push(window.inter.clone());
        self.pools.extend(cases);
    }

    /// Keeps the details of a pool if no other was more uneven at home.
    pub(super) fn consider(&mut self, case: &PoolCase, plan: &PoolPlan, shapes: &Shapes) {
        let most = self.detail.as_ref().map(|(excess, _)| *excess);
        if most.is_none_or(|most| case.home_excess > most) {
            let audit = audit::audit(plan, shapes.topology);
            self.detail = Some((case.home_excess, Detail::new(case, plan, &audit)));
        }
    }

    pub(super) fn forget_times(&mut self) {
        self.pools.iter_mut().for_each(|pool| pool.plan_ns = None);
    }
}

/// Says why there are fewer windows than were asked for, and what was left over.
fn report_end(context: &Context, stream: &Windows, asked: u64, found: usize) {
    context.warn(&format!(
        "{asked} windows asked for, the corpus has {found}"
    ));
    if let (sequences @ 1.., tokens) = stream.dropped() {
        context.detail(&format!(
            "{sequences} sequences with {tokens} tokens at the end fill no window; --fill-last takes them"
        ));
    }
}

/// Writes a plan; returns its path.
fn write(directory: &Path, case: &PoolCase, bytes: &[u8]) -> Result<String, Failure> {
    store::make_directory(directory)?;
    let name = format!("window-{:04}-pool-{:03}.plan", case.window, case.pool);
    store::write(directory, &name, bytes)?;
    Ok(super::typed(&directory.join(name)))
}

/// Where a plan comes from: equal for equal inputs, wherever and by however many threads it is made.
fn provenance(source: &Source, settings: &Settings, case: &PoolCase) -> String {
    let one = Settings {
        skip_windows: case.window,
        ..settings.clone()
    };
    let command = line(&words("plan", source, &one, 1));
    format!("{PROGRAM}: {command}; pool {}", case.pool)
}

/// The words of a command that plans windows.
pub(super) fn words(
    command: &str,
    source: &Source,
    settings: &Settings,
    windows: u64,
) -> Vec<String> {
    let mut words = vec![command.to_owned()];
    words.extend(source.words());
    if windows != 1 {
        words.extend(["--windows".to_owned(), format_count(windows)]);
    }
    words.extend(settings.flags());
    words
}

/// A command line of this program.
pub(super) fn line(words: &[String]) -> String {
    let words = words.iter().map(String::as_str);
    command_line(std::iter::once("libra-bench").chain(words))
}

/// What was asked for, in JSON.
pub(super) fn config(source: &Source, settings: &Settings, windows: u64) -> Value {
    let mut config = settings.json();
    config["lengths"] = json!(source.name());
    config["windows"] = json!(windows);
    config
}

/// Plans the next window of `source`, as `demo` and `run` need it.
pub(super) fn first_window(
    source: &Source,
    settings: &Settings,
    shapes: &Shapes,
) -> Result<WindowPlan, Failure> {
    let window = Windows::new(source, settings)?.next(shapes)?;
    Ok(window.expect("windows say why there is not a single one"))
}
