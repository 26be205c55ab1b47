//! `demo`: the main job on a bundled corpus, nothing else to install.

use super::plan::{Planned, add_summary, first_window, line, words};
use super::run::{Execution, default_measure, verdict};
use super::{Context, Outcome};
use crate::cli::{ClusterArgs, Dtype, PlanArgs, WorkloadArgs};
use crate::interrupt;
use crate::measure::Source;
use crate::preset::Settings;
use crate::report::Report;

/// The bundled corpus.
const CORPUS: &str = "linux-6.1";
/// What is executed has this part of the tokens, so that checking it takes seconds.
const SCALE: u32 = 128;

pub(super) fn run(context: &Context, window: u64) -> Outcome {
    let source = Source::bundled(CORPUS);
    let workload = WorkloadArgs {
        skip_windows: window,
        ..WorkloadArgs::default()
    };
    let plan = PlanArgs::default();
    let settings = Settings::new(&workload, &ClusterArgs::default(), &plan);
    let shapes = settings.shapes()?;

    let mut own = vec!["demo".to_owned()];
    if window != 0 {
        own.extend(["--window".to_owned(), window.to_string()]);
    }
    own.extend(super::global_flags(&context.global));
    let mut report = Report::new("demo", line(&own));
    report.seed = Some(settings.seed);
    report.config = super::plan::config(&source, &settings, 1);
    report.header();
    report.note(settings.line());
    report.note(format!(
        "lengths {}: every file of a kernel source tree, packed; window {window}",
        source.name()
    ));
    report.note("");

    let planned = first_window(&source, &settings, &shapes)?;
    let progress = context.progress("planned", shapes.window.pools().into());
    let pools = planned.plan_pools(&shapes, || progress.step())?;
    drop(progress);
    let mut done = Planned::default();
    for (case, plan) in &pools {
        done.consider(case, plan, &shapes);
    }
    done.add(&planned, pools.into_iter().map(|(case, _)| case).collect());
    add_summary(context, &mut report, &done);
    report.reproduce(line(&words("plan", &source, &settings, 1)));

    let small = PlanArgs {
        q_heads: Some(8),
        kv_heads: Some(2),
        head_dim: Some(8),
        ..plan
    };
    let (mut all, mut exact) = (Vec::new(), None);
    for dtype in [Dtype::F64, Dtype::F32] {
        if interrupt::requested() {
            break;
        }
        let settings = Settings::new(&workload, &ClusterArgs::default(), &small);
        let execution = Execution {
            source: source.clone(),
            shapes: settings.shapes()?,
            settings,
            measure: default_measure(dtype, SCALE),
        };
        report.note("");
        all.extend(execution.run(context, &planned, &mut exact, &mut report)?);
        report.reproduce(line(&execution.words()));
    }
    let verdict = verdict(context, &all);
    Ok((report, verdict))
}
