//! `run`: one pool for real, methods side by side.

use serde_json::{Value, json};

use super::plan::{first_window, line};
use super::{Context, Outcome, code, excess};
use crate::baseline::method::Method;
use crate::cli::{ClusterArgs, Dtype, MeasureArgs, Methods, PlanArgs, WorkloadArgs};
use crate::failure::Failure;
use crate::measure::{
    Chosen, Exact, ExecuteOptions, MethodCase, Pool, Source, WindowPlan, add_timeline, execute,
    least,
};
use crate::preset::{Settings, Shapes};
use crate::report::{Column, Report, Table};
use crate::simulate::trace::TraceEvents;
use crate::units::format_bytes;
use crate::{exit, store};

/// What is executed unless methods are named.
const USUAL: [Method; 2] = [Method::Ulysses, Method::Libra];

/// Mean computing time of a worker below which times and work were seen to part: with 1 to 6 ms, the busiest worker's
/// share of the time differed from its share of the work by up to a factor of three.
const SHORT_NS: u64 = 10_000_000;

pub(super) fn run(
    context: &Context,
    workload: &WorkloadArgs,
    cluster: &ClusterArgs,
    plan: &PlanArgs,
    measure: &MeasureArgs,
) -> Outcome {
    let source = Source::new(workload)?;
    let settings = Settings::new(workload, cluster, plan);
    let shapes = settings.shapes()?;
    settings.refuse_sparse("execution")?;
    let window = first_window(&source, &settings, &shapes)?;
    let execution = Execution {
        source,
        settings,
        shapes,
        measure: measure.clone(),
    };
    let mut words = execution.words();
    words.extend(super::global_flags(&context.global));
    let mut report = Report::new("run", line(&words));
    report.seed = Some(execution.settings.seed);
    report.config = execution.config();
    report.header();
    report.note(execution.settings.line());
    report.note(format!("lengths {}", execution.source.name()));
    report.note("");
    let cases = execution.run(context, &window, &mut None, &mut report)?;
    if let Some(path) = &measure.trace {
        let mut trace = TraceEvents::default();
        for case in &cases {
            let gpus_per_node = execution.settings.gpus_per_node;
            add_timeline(&mut trace, case.method, &case.last, gpus_per_node);
        }
        store::write_file(path, trace.text().as_bytes())?;
    }
    report.reproduce(report.reproduce.clone());
    let code = verdict(context, &cases);
    Ok((report, code))
}

/// One pool to execute.
pub(super) struct Execution {
    pub(super) source: Source,
    pub(super) settings: Settings,
    pub(super) shapes: Shapes,
    pub(super) measure: MeasureArgs,
}

impl Execution {
    /// Executes the pool of `window` and adds table and cases to `report`. What is `exact` is kept for another
    /// precision of the same pool.
    pub(super) fn run(
        &self,
        context: &Context,
        window: &WindowPlan,
        exact: &mut Option<Exact>,
        report: &mut Report,
    ) -> Result<Vec<MethodCase>, Failure> {
        let MeasureArgs {
            pool, scale, dtype, ..
        } = self.measure;
        let (runs, warmup) = (self.measure.runs(), self.measure.warmup());
        let methods = &self.measure.method.0;
        let chosen = Chosen { pool, scale, dtype };
        let scaled = Pool::new(window, &self.shapes, chosen, methods)?;
        let plan_id = scaled.plan_id().map(|id| id.to_string());
        let options = ExecuteOptions {
            dtype,
            backward: self.measure.backward,
            runs,
            warmup,
            timeout: self.measure.timeout,
        };
        let steps = methods.len() as u64 * (u64::from(runs) + u64::from(warmup));
        let progress = context.progress("executed", steps);
        let exact = exact.get_or_insert_with(|| Exact::new(&scaled, self.settings.seed));
        let mut cases = execute(&scaled, exact, &options, || progress.step())?;
        drop(progress);
        self.describe(report, window, &scaled);
        report.table(table(context, &cases, self.names_methods()));
        add_remarks(context, report, &cases);
        self.add_left_out(report);
        if context.global.no_timings {
            cases.iter_mut().for_each(forget_times);
        }
        let values = cases.iter().map(|case| {
            let mut value = serde_json::to_value(case).expect("numbers and text");
            let id = plan_id
                .as_ref()
                .filter(|_| case.method == Method::Libra.name());
            value["plan_id"] = json!(id);
            value
        });
        report.cases.extend(values);
        report.plan_id = plan_id;
        Ok(cases)
    }

    fn names_methods(&self) -> bool {
        self.measure.method.0 != USUAL
    }

    /// Which methods `all` leaves out, and why.
    fn add_left_out(&self, report: &mut Report) {
        let left_out: Vec<(Method, &str)> = Method::not_executed().collect();
        if self.measure.method.0.len() + left_out.len() == Method::ALL.len() {
            for (method, why) in left_out {
                report.note(format!("{method} is not executed: {why}"));
            }
        }
    }

    fn describe(&self, report: &mut Report, window: &WindowPlan, pool: &Pool) {
        let MeasureArgs {
            backward,
            scale,
            dtype,
            pool: index,
            ..
        } = self.measure;
        let size = match scale {
            1 => String::new(),
            _ => format!(" at 1/{scale} of its tokens"),
        };
        report.note(format!(
            "executed: window {}, pool {index}{size}, forward and backward ({backward}), {dtype}",
            window.window
        ));
        report.note(pool.line.clone());
    }

    /// The words of the `run` command.
    pub(super) fn words(&self) -> Vec<String> {
        let MeasureArgs {
            backend: _,
            pool,
            scale,
            dtype,
            backward,
            timeout: _,
            ..
        } = self.measure;
        let (runs, warmup) = (self.measure.runs(), self.measure.warmup());
        let (usual_runs, usual_warmup) = MeasureArgs::usual(dtype);
        let mut words = vec!["run".to_owned()];
        words.extend(self.source.words());
        words.extend(self.settings.flags());
        for (name, value, default) in [
            ("--pool", pool.to_string(), "0".to_owned()),
            ("--scale", scale.to_string(), "1".to_owned()),
            (
                "--method",
                self.measure.method.names(),
                Methods(USUAL.to_vec()).names(),
            ),
            ("--dtype", dtype.to_string(), "f32".to_owned()),
            ("--backward", backward.to_string(), "recompute".to_owned()),
            ("-r", runs.to_string(), usual_runs.to_string()),
            ("-w", warmup.to_string(), usual_warmup.to_string()),
        ] {
            if value != default {
                words.extend([name.to_owned(), value]);
            }
        }
        words
    }

    /// What was asked for, in JSON.
    pub(super) fn config(&self) -> Value {
        let mut config = super::plan::config(&self.source, &self.settings, 1);
        let measure = &self.measure;
        config["backend"] = json!(measure.backend.to_string());
        config["pool"] = json!(measure.pool);
        config["scale"] = json!(measure.scale);
        config["methods"] = json!(measure.method.names());
        config["dtype"] = json!(measure.dtype.to_string());
        config["backward"] = json!(measure.backward.to_string());
        config["runs"] = json!(measure.runs());
        config["warmup"] = json!(measure.warmup());
        config["timeout_ms"] = json!(measure.timeout.as_millis() as u64);
        config
    }
}

/// One row a method; with `is_wide` what backward moves too, and how long workers wait.
fn table(context: &Context, cases: &[MethodCase], is_wide: bool) -> Table {
    let mut columns = vec![
        Column::text("method"),
        Column::number("workers", ""),
        Column::number("work", "R-1"),
        Column::number("forward", "busiest ms"),
        Column::number("forward", "mean ms"),
        Column::number("time", "R-1"),
        Column::number("backward", "busiest ms"),
        Column::number("moved", "forward"),
        Column::number("wrong", ""),
    ];
    if is_wide {
        let more = [Column::number("", "backward"), Column::number("waits", "%")];
        columns.splice(8..8, more);
    }
    let row = |case: &MethodCase| {
        let (busiest, mean) = (least(&case.forward_ns), least(&case.forward_mean_ns));
        let ratio = match (busiest, mean) {
            (Some(busiest), Some(mean @ 1..)) if !context.global.no_timings => {
                excess(busiest as f64 / mean as f64 - 1.0)
            }
            _ => "-".to_owned(),
        };
        let mut row = vec![
            case.method.to_owned(),
            case.workers.to_string(),
            excess(case.work_excess),
            context.milliseconds(busiest),
            context.milliseconds(mean),
            ratio,
            context.milliseconds(least(&case.backward_ns)),
            format_bytes(case.moved_bytes),
            case.wrong.to_string(),
        ];
        if is_wide {
            let waits = case.exposed_fraction.filter(|_| !context.global.no_timings);
            let waits = waits.map_or("-".to_owned(), |share| format!("{:.0}", 100.0 * share));
            row.splice(8..8, [format_bytes(case.backward_moved_bytes), waits]);
        }
        row
    };
    Table {
        columns,
        rows: cases.iter().map(row).collect(),
    }
}

/// How many times less, or more, something has become.
fn times(less: f64) -> String {
    if less < 1.0 {
        format!("{:.2}x more", 1.0 / less)
    } else {
        format!("{less:.2}x less")
    }
}

/// What `wrong` stands for, what times are, and what improved.
fn add_remarks(context: &Context, report: &mut Report, cases: &[MethodCase]) {
    if let [ulysses, libra] = cases
        && [ulysses.method, libra.method] == USUAL.map(Method::name)
    {
        let ratio = |of: fn(&MethodCase) -> &Vec<u64>| {
            let (ulysses, libra) = (least(of(ulysses))?, least(of(libra))?);
            (libra > 0 && !context.global.no_timings).then(|| ulysses as f64 / libra as f64)
        };
        let work = ulysses.work_max as f64 / libra.work_max.max(1) as f64;
        let mut text = format!("with libra the busiest worker has {} work", times(work));
        let (forward, backward) = (
            ratio(|case| &case.forward_ns),
            ratio(|case| &case.backward_ns),
        );
        if let (Some(forward), Some(backward)) = (forward, backward) {
            let (forward, backward) = (times(forward), times(backward));
            text += &format!("; its time: {forward} forward, {backward} backward");
        }
        report.note(text);
    }
    let merges = cases.iter().any(|case| case.merged);
    let legal = match cases.first().map(|case| case.dtype.as_str()) {
        Some("f64") if merges => {
            "O and dQ that differ by a bit from unsharded attention, or by over 1e-12 where steps are merged; dK and dV by over 1e-12"
        }
        Some("f64") => {
            "O and dQ that differ by a bit from unsharded attention, dK and dV by over 1e-12"
        }
        _ => "elements further off than twice the worst of plain f32 attention, measured in f64",
    };
    report.note(format!("wrong: {legal}"));
    if context.global.no_timings {
        return;
    }
    let of_runs = match cases.first().map_or(0, |case| case.forward_ns.len()) {
        0 | 1 => String::new(),
        runs => format!(", least of {runs} runs"),
    };
    report.note(format!(
        "times: CPU time of computing{of_runs}, as workers share the cores of this machine"
    ));
    let mean = cases
        .iter()
        .filter_map(|case| least(&case.forward_mean_ns))
        .min();
    if mean.is_some_and(|mean| mean < SHORT_NS) {
        report.note(
            "times this short follow the work only loosely; a smaller --scale makes them longer",
        );
    }
}

fn forget_times(case: &mut MethodCase) {
    case.forward_ns.clear();
    case.forward_mean_ns.clear();
    case.backward_ns.clear();
    case.backward_mean_ns.clear();
    case.forward_tflops = None;
    case.exposed_fraction = None;
}

/// The exit code, and a word about every method whose results are wrong.
pub(super) fn verdict(context: &Context, cases: &[MethodCase]) -> u8 {
    let mut verdict = code();
    for case in cases.iter().filter(|case| case.wrong > 0) {
        let wrong = &case.wrong_in;
        context.say(
            "error",
            "31",
            &format!(
                "{} in {}: {} wrong elements (O {}, dQ {}, dK {}, dV {}, differing between runs {}), off by up to {:e}",
                case.method, case.dtype, case.wrong, wrong.o, wrong.d_q, wrong.d_k, wrong.d_v,
                wrong.unsteady, case.max_abs_error,
            ),
        );
        verdict = exit::CHECK;
    }
    verdict
}

/// Flags of `run` at their defaults.
pub(super) fn default_measure(dtype: Dtype, scale: u32) -> MeasureArgs {
    MeasureArgs {
        backend: crate::cli::Backend::Cpu,
        pool: 0,
        scale,
        method: Methods(USUAL.to_vec()),
        dtype,
        backward: libra_sched::BackwardMode::Recompute,
        runs: None,
        warmup: None,
        timeout: std::time::Duration::from_secs(600),
        trace: None,
    }
}
