//! `simulate`: methods side by side on a cluster that exists on paper only.

use serde_json::json;

use super::plan::{config, line, words};
use super::{Context, Outcome, code};
use crate::cli::{ClusterArgs, PlanArgs, SimulateArgs, WindowArgs, WorkloadArgs};
use crate::failure::Failure;
use crate::measure::Source;
use crate::preset::Settings;
use crate::report::{Column, Report, Table};
use crate::simulate::cluster::Cluster;
use crate::simulate::model::Model;
use crate::simulate::step::MethodTimes;
use crate::simulate::windows::Request;
use crate::units::format_bytes;
use crate::{interrupt, store};

pub(super) fn run(
    context: &Context,
    workload: &WorkloadArgs,
    windows: &WindowArgs,
    cluster: &ClusterArgs,
    plan: &PlanArgs,
    simulate: &SimulateArgs,
) -> Outcome {
    let source = Source::new(workload)?;
    let mut machines = Cluster::read(&simulate.cluster)?;
    let model = simulate.model.as_deref().map(Model::read).transpose()?;
    let plan = match &model {
        Some(model) => {
            let file = &mut machines.file;
            file.model = model.section(&file.model, file.gpu.peak_tflops);
            &model.heads(plan)
        }
        None => plan,
    };
    let settings = settings(workload, cluster, plan, &machines)?;
    settings.refuse_sparse("simulation")?;
    let shapes = settings.shapes()?;
    let methods = &simulate.method.0;
    let request = Request {
        source: &source,
        settings: &settings,
        shapes: &shapes,
        cluster: &machines,
        methods,
        windows: windows.windows.unwrap_or(1),
        backward: simulate.backward,
    };
    let steps = request.windows.saturating_mul(methods.len() as u64);
    let progress = context.progress("simulated", steps);
    let done = request.run(simulate.trace.is_some(), || progress.step())?;
    drop(progress);
    if let Some(path) = &simulate.trace {
        store::write_file(path, done.trace.text().as_bytes())?;
    }
    let found = done.methods.first().map_or(0, |case| case.windows);
    if (found as u64) < request.windows && !interrupt::requested() {
        let asked = request.windows;
        context.warn(&format!(
            "{asked} windows asked for, the corpus has {found}"
        ));
    }
    let mut report = Report::new("simulate", line(&reproducing(context, &request, simulate)));
    report.seed = Some(settings.seed);
    report.config = config(&source, &settings, request.windows);
    report.config["cluster"] = json!(machines.file);
    report.config["kernel"] = json!(machines.kernel.name());
    report.config["model"] = json!(model);
    report.config["backward"] = json!(simulate.backward.to_string());
    report.config["methods"] = json!(simulate.method.names());
    describe(&mut report, &request, &done.methods);
    report.cases = (done.methods.iter())
        .map(|case| serde_json::to_value(case).expect("numbers and text"))
        .collect();
    Ok((report, code()))
}

/// Plans are made for nodes of the cluster; a preset's own are overruled.
fn settings(
    workload: &WorkloadArgs,
    cluster: &ClusterArgs,
    plan: &PlanArgs,
    machines: &Cluster,
) -> Result<Settings, Failure> {
    let gpus = machines.file.node.gpus;
    match cluster.gpus_per_node {
        Some(asked) if asked != gpus => Err(Failure::NodeSize {
            asked,
            cluster: machines.source.clone(),
            gpus,
        }),
        _ => {
            let cluster = ClusterArgs {
                gpus_per_node: Some(gpus),
                ..cluster.clone()
            };
            Ok(Settings::new(workload, &cluster, plan))
        }
    }
}

/// The words that simulate the same.
fn reproducing(context: &Context, request: &Request<'_>, simulate: &SimulateArgs) -> Vec<String> {
    let mut words = words(
        "simulate",
        request.source,
        request.settings,
        request.windows,
    );
    let model = simulate.model.clone().unwrap_or_default();
    for (name, value, default) in [
        ("--cluster", simulate.cluster.clone(), "h200"),
        ("--model", model, ""),
        ("--method", simulate.method.names(), "ulysses,paper,libra"),
        ("--backward", simulate.backward.to_string(), "recompute"),
    ] {
        if value != default {
            words.extend([name.to_owned(), value]);
        }
    }
    words.extend(super::global_flags(&context.global));
    words
}

fn describe(report: &mut Report, request: &Request<'_>, cases: &[MethodTimes]) {
    let file = &request.cluster.file;
    let (shape, model) = (&request.shapes.window, &file.model);
    report.header();
    report.note(request.settings.line());
    report.note(format!("lengths {}", request.source.name()));
    report.note(format!(
        "cluster {}: {} GPUs in nodes of {}, kernel {}, NVLink {} GB/s, {} NICs a node of {} GB/s",
        file.name,
        u64::from(shape.dp()) * u64::from(shape.cp()) * u64::from(request.shapes.pp),
        file.node.gpus,
        request.cluster.kernel.name(),
        file.nvlink.bandwidth_gb_s,
        file.node.nics,
        file.nic.bandwidth_gb_s * file.nic.efficiency,
    ));
    report.note("");
    report.table(table(cases));
    report.note("straggler: attention of one layer forward until the slowest of the groups side by side is done");
    report.note(
        "work, messages, waits: mean of workers in attention, at their busiest port, for messages; busiest: of all ports side by side",
    );
    report.note(format!(
        "step: forward and backward ({}) of {} layers with {} us a token beside attention, PP {}",
        request.backward,
        model.layers,
        (model.linear_us_per_token * 1e3).round() / 1e3,
        request.shapes.pp,
    ));
    if cases.iter().any(|case| !case.step_equivalent) {
        report.note("*: trains on other samples in a step than the corpus' order gives");
    }
    report.reproduce(report.reproduce.clone());
}

fn table(cases: &[MethodTimes]) -> Table {
    let ms = |time: f64| format!("{time:.2}");
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
    let row = |case: &MethodTimes| {
        let mark = if case.step_equivalent { "" } else { "*" };
        vec![
            format!("{}{mark}", case.method),
            ms(case.straggler_ms_mean),
            ms(case.straggler_ms_max),
            ratio(case.speedup_mean),
            ratio(case.speedup_max),
            ms(case.compute_ms_mean),
            ms(case.comm_ms_mean),
            ms(case.busiest_port_ms_mean),
            ms(case.exposed_ms_mean),
            format_bytes(case.cross_node_bytes_mean as u64),
            format!("{:.3}", case.step_ms_mean / 1e3),
            format!("{:.0}", case.tokens_per_s),
        ]
    };
    Table {
        columns: vec![
            Column::text("method"),
            Column::number("straggler", "mean ms"),
            Column::number("", "max ms"),
            Column::number("ulysses over it", "mean"),
            Column::number("", "max"),
            Column::number("work", "ms"),
            Column::number("messages", "ms"),
            Column::number("busiest", "port ms"),
            Column::number("waits", "ms"),
            Column::number("x-node", "bytes"),
            Column::number("step", "mean s"),
            Column::number("tokens", "a second"),
        ],
        rows: cases.iter().map(row).collect(),
    }
}
