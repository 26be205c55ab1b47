//! `sweep`: combinations of settings over the same lengths, one row each.

use clap::Parser;
use serde_json::{Value, json};

use super::plan::{config, line, words};
use super::{Context, Outcome, code};
use crate::cli::{ClusterArgs, Over, PlanArgs, WindowArgs, WorkloadArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::measure::{Source, SweepCase, combination};
use crate::preset::Settings;
use crate::report::{Column, Report, Table};
use crate::units::format_bytes;

/// Combinations of one sweep.
const MOST_COMBINATIONS: usize = 10_000;

/// Flags of a combination, parsed as the command line is.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, args_override_self = true)]
struct Flags {
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    plan: PlanArgs,
}

/// Settings of a row, and the flags that tell it from the others.
struct Combination {
    words: Vec<String>,
    settings: Settings,
}

pub(super) fn run(
    context: &Context,
    workload: &WorkloadArgs,
    windows: &WindowArgs,
    cluster: &ClusterArgs,
    plan: &PlanArgs,
    over: &[Over],
) -> Outcome {
    let source = Source::new(workload)?;
    let base = Settings::new(workload, cluster, plan);
    let count = windows.windows.unwrap_or(1);
    let combinations = combinations(&base, over)?;
    let mut pools = 0u64;
    for one in &combinations {
        let window = one.settings.shapes()?.window;
        // Each pool is planned as asked for, and by Algorithm 2.
        let planned = count.saturating_mul(2 * u64::from(window.pools()));
        pools = pools.saturating_add(planned);
    }
    let progress = context.progress("planned", pools);
    let mut rows = Vec::new();
    for one in &combinations {
        if interrupt::requested() {
            break;
        }
        if let Some(case) = combination(&source, &one.settings, count, || progress.step())? {
            if (case.windows as u64) < count && !interrupt::requested() {
                context.warn(&format!(
                    "{count} windows asked for, the corpus has {}",
                    case.windows
                ));
            }
            rows.push((one, case));
        }
    }
    drop(progress);

    let mut words = words("sweep", &source, &base, count);
    for over in over {
        words.extend(["--over".to_owned(), over.to_string()]);
    }
    words.extend(super::global_flags(&context.global));
    let mut report = Report::new("sweep", line(&words));
    report.seed = Some(base.seed);
    report.config = config(&source, &base, count);
    report.config["over"] = json!(over.iter().map(Over::to_string).collect::<Vec<_>>());
    report.header();
    report.note(base.line());
    report.note(format!("lengths {}", source.name()));
    report.note("");
    report.table(table(context, &rows));
    report.note("pools, workers: heaviest over mean, less 1; gap: over what is proved, less 1");
    report.note("of alg 2: over what Algorithm 2 with whole groups costs on the same pools");
    report.reproduce(report.reproduce.clone());
    report.cases = rows
        .iter()
        .map(|(one, case)| json_case(context, one, case))
        .collect();
    Ok((report, code()))
}

/// All combinations, the last flag's values changing fastest.
fn combinations(base: &Settings, over: &[Over]) -> Result<Vec<Combination>, Failure> {
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    for Over { flag, values } in over {
        let longer = |words: &Vec<String>| {
            let words = words.clone();
            values.iter().map(move |value| {
                let mut words = words.clone();
                words.extend([flag.clone(), value.clone()]);
                words
            })
        };
        if all.len().saturating_mul(values.len()) > MOST_COMBINATIONS {
            return Err(Failure::Over(format!(
                "more than {MOST_COMBINATIONS} combinations"
            )));
        }
        all = all.iter().flat_map(longer).collect();
    }
    let combination = |words: Vec<String>| {
        let typed = base.flags().into_iter().chain(words.iter().cloned());
        let flags = Flags::try_parse_from(typed).map_err(|error| {
            // The first paragraph: the rest is about the usage of no command at all.
            let text = error.to_string();
            let text = text.trim_start_matches("error: ").split("\n\n").next();
            Failure::Over(text.unwrap_or_default().trim().to_owned())
        })?;
        Ok(Combination {
            settings: Settings::new(&flags.workload, &flags.cluster, &flags.plan),
            words,
        })
    };
    all.into_iter().map(combination).collect()
}

fn table(context: &Context, rows: &[(&Combination, SweepCase)]) -> Table {
    let ratio = |value: f64| format!("{value:.3}");
    let share = |value: f64| format!("{:.3}", value * 100.0);
    let bytes = |value: f64| format_bytes(value as u64);
    let row = |(one, case): &(&Combination, SweepCase)| {
        vec![
            one.words.join(" "),
            format!("{:.4}", case.inter_excess_mean),
            share(case.inter_gap_mean),
            share(case.inter_gap_max),
            format!("{:.4}", case.intra_excess_max),
            bytes(case.moved_bytes_mean),
            bytes(case.moved_bytes_bound_mean),
            ratio(case.moved_bytes_ratio),
            bytes(case.cross_node_bytes_mean),
            ratio(case.cross_node_bytes_ratio),
            format!("{:.2}", case.busiest_port_us_mean / 1e3),
            ratio(case.busiest_port_ratio),
            context.time(case.vrsp_ns_median),
            context.milliseconds(case.plan_ns_median),
        ]
    };
    Table {
        columns: vec![
            Column::text("combination"),
            Column::number("pools", "mean R-1"),
            Column::number("gap", "mean %"),
            Column::number("gap", "max %"),
            Column::number("workers", "max R-1"),
            Column::number("moved", "bytes"),
            Column::number("at least", "bytes"),
            Column::number("of alg 2", ""),
            Column::number("x-node", "bytes"),
            Column::number("of alg 2", ""),
            Column::number("port", "ms"),
            Column::number("of alg 2", ""),
            Column::number("VRSP", ""),
            Column::number("plan", "ms"),
        ],
        rows: rows.iter().map(row).collect(),
    }
}

/// The settings of a row, and its numbers.
fn json_case(context: &Context, one: &Combination, case: &SweepCase) -> Value {
    let mut value = one.settings.json();
    let numbers = serde_json::to_value(case).expect("numbers");
    for (name, number) in numbers.as_object().into_iter().flatten() {
        value[name] = number.clone();
    }
    if context.global.no_timings {
        value["vrsp_ns_median"] = Value::Null;
        value["plan_ns_median"] = Value::Null;
    }
    value
}
