//! What `plan` and `demo` print: a line a pool, and the balance before and after.

use libra_sched::Tiling;
use serde_json::Value;

use super::Planned;
use crate::commands::{Context, excess, percent};
use crate::measure::{AdaptiveCase, PoolCase, Summary};
use crate::preset::Settings;
use crate::report::{Column, Report, Table};
use crate::units::format_bytes;

/// A line a pool.
pub(super) fn pool_table(context: &Context, pools: &[PoolCase]) -> Table {
    let merged = pools.windows(2).any(|w| w[0].pool_size != w[1].pool_size);
    let mut columns = vec![
        Column::number("window", ""),
        Column::number("pool", ""),
        Column::number("ga", ""),
        Column::number("tiles", ""),
        Column::number("load", "R-1"),
        Column::number("home", "R-1"),
        Column::number("libra", "R-1"),
        Column::number("bound", "R-1"),
        Column::number("moved", "bytes"),
        Column::number("of it", "x-node %"),
        Column::number("most recv", "bytes"),
        Column::number("plan", "ms"),
    ];
    if merged {
        columns.insert(2, Column::number("of", "sequences"));
    }
    let row = |case: &PoolCase| {
        let mut row = vec![
            case.window.to_string(),
            case.pool.to_string(),
            case.ga.to_string(),
            case.tiles.to_string(),
            format!("{:+.3}", case.pool_excess),
            excess(case.home_excess),
            excess(case.intra_excess),
            excess(case.tile_bound_excess),
            format_bytes(case.moved_bytes),
            percent(case.cross_node_bytes, case.moved_bytes),
            format_bytes(case.max_recv_bytes),
            context.milliseconds(case.plan_ns),
        ];
        if merged {
            row.insert(2, case.pool_size.to_string());
        }
        row
    };
    Table {
        columns,
        rows: pools.iter().map(row).collect(),
    }
}

/// The balance before and after, what no placement goes below, and what it costs.
pub(in crate::commands) fn add_summary(context: &Context, report: &mut Report, done: &Planned) {
    let summary = &done.summary;
    report.note("imbalance: heaviest over mean, less 1; 0 is perfect");
    if summary.time_excess.is_some() {
        report.note("time: by measured costs and speeds; bounds are known for work alone");
    }
    report.table(balance_table(summary));
    report
        .note("without libra: pools in arrival order, every tile computed where its queries live");
    add_orders(report, done);
    report.note(format!(
        "moved a pool and layer forward: {}, Q and O {}, K and V {}; {} % cross nodes",
        format_bytes(summary.moved_bytes_mean.mean()),
        format_bytes(summary.qo_bytes_mean.mean()),
        format_bytes(summary.kv_bytes_mean.mean()),
        percent(
            summary.cross_node_bytes_mean.mean(),
            summary.moved_bytes_mean.mean()
        ),
    ));
    if summary.cross_pod_bytes_mean.mean() > 0 {
        let share = percent(
            summary.cross_pod_bytes_mean.mean(),
            summary.moved_bytes_mean.mean(),
        );
        report.note(format!("of it between pods: {share} %"));
    }
    if summary.forward_bytes_mean.mean() > 0 {
        report.note(format!(
            "of it forwarded within nodes {}; through the busiest port between nodes {}",
            format_bytes(summary.forward_bytes_mean.mean()),
            format_bytes(summary.busiest_port_bytes_mean.mean()),
        ));
    }
    if !context.global.no_timings {
        report.note(format!(
            "planned in {} a window (VRSP) and {} a pool (tiles, placement, exchange)",
            context.time(summary.vrsp_ns_median.median()),
            context.time(summary.plan_ns_median.median()),
        ));
    }
    let mut value = serde_json::to_value(summary).expect("numbers and text");
    if context.global.no_timings {
        value["vrsp_ns_median"] = Value::Null;
        value["plan_ns_median"] = Value::Null;
    }
    report.more.insert("summary".to_owned(), value);
    if let Some((_, detail)) = &done.detail {
        let value = serde_json::to_value(detail).expect("numbers");
        report.more.insert("detail".to_owned(), value);
    }
}

/// What adaptive tiles did, and what to do where fixed ones stand in the way.
pub(super) fn add_granularity(report: &mut Report, settings: &Settings, pools: &[PoolCase]) {
    let adaptive: Vec<_> = (pools.iter())
        .filter_map(|pool| Some((pool, pool.adaptive.as_ref()?)))
        .collect();
    if !adaptive.is_empty() {
        let mean = |of: fn(&(&PoolCase, &AdaptiveCase)) -> usize| {
            adaptive.iter().map(of).sum::<usize>() / adaptive.len()
        };
        let worst = |of: fn(&(&PoolCase, &AdaptiveCase)) -> f64| {
            excess(adaptive.iter().map(of).fold(0.0, f64::max))
        };
        report.note(format!(
            "adaptive tiles, mean of {}: {} as cut, {} after splits, {} after merges; at best, worst: {}, then {}",
            adaptive.len(),
            mean(|(_, tiles)| tiles.fixed_tiles),
            mean(|(_, tiles)| tiles.placed_tiles),
            mean(|(pool, _)| pool.tiles),
            worst(|(_, tiles)| tiles.fixed_bound_excess),
            worst(|(pool, _)| pool.tile_bound_excess),
        ));
    }
    let coarse = || pools.iter().filter_map(|pool| pool.coarse.as_ref());
    if let Some(worst) = coarse().min_by_key(|coarse| coarse.safe_block_tokens) {
        let or = match settings.tiles {
            Tiling::Fixed => ", and so does --tiles adaptive",
            _ => "",
        };
        report.note(format!(
            "tiles too heavy for slack {} in {} of {} pools; B up to {} always does{or}",
            settings.slack,
            coarse().count(),
            pools.len(),
            worst.safe_block_tokens,
        ));
        report.note(format!(
            "by H*L/(2*phi*CP), phi {:.2}, one block of {:.0} fills a mean worker; two should fit",
            worst.phi, worst.rule_block_tokens,
        ));
    }
}

/// Which pools were merged and why, and what the order of pools is good for.
fn add_orders(report: &mut Report, done: &Planned) {
    for merged in done.inters.iter().filter_map(|inter| inter.merged.as_ref()) {
        let sizes: Vec<String> = merged.pool_sizes.iter().map(usize::to_string).collect();
        report.note(format!(
            "window {}: pools of {} sequences, since those of P are at best {} over the mean ({}); with the cap {}",
            merged.window,
            sizes.join(", "),
            excess(merged.bound_excess_before),
            merged.bound,
            excess(merged.bound_excess_after),
        ));
    }
    if done.balanced {
        let mut windows = (0u32, [0f64; 2]);
        for [ordered, paper] in done.inters.iter().filter_map(|inter| inter.ga_excess) {
            windows = (
                windows.0 + 1,
                [windows.1[0].max(ordered), windows.1[1].max(paper)],
            );
        }
        if let (1.., [ordered, paper]) = windows {
            report.note(format!(
                "GA order: a step waits {ordered:.4} over the mean, in paper order {paper:.4} (worst window)"
            ));
        }
    }
}

fn balance_table(summary: &Summary) -> Table {
    let row = |name: String, numbers: [f64; 3], bound: &str| {
        let [before, after, least] = numbers.map(excess);
        vec![name, before, after, least, bound.to_owned()]
    };
    let (before, after, least) = (
        summary.inter_arrival_excess,
        summary.inter_excess,
        summary.inter_bound_excess,
    );
    let mut rows = Vec::new();
    let bound = summary.inter_bound.as_str();
    if summary.windows == 1 {
        rows.push(row(
            format!("{} pools of the window", summary.pools),
            [before.max(), after.max(), least.max()],
            bound,
        ));
    } else {
        let name = format!("pools of a window, mean of {}", summary.windows);
        rows.push(row(
            name,
            [before.mean(), after.mean(), least.mean()],
            bound,
        ));
        let name = "pools of a window, worst".to_owned();
        rows.push(row(name, [before.max(), after.max(), least.max()], bound));
    }
    let (before, after, least) = (
        summary.home_excess,
        summary.intra_excess,
        summary.tile_bound_excess,
    );
    let name = format!("workers of a pool, mean of {}", summary.pools);
    rows.push(row(
        name,
        [before.mean(), after.mean(), least.mean()],
        "these tiles",
    ));
    let name = "workers of a pool, worst".to_owned();
    rows.push(row(
        name,
        [before.max(), after.max(), least.max()],
        "these tiles",
    ));
    if let (Some(before), Some(after)) = (summary.home_time_excess, summary.time_excess) {
        let mut row = |name: String, before, after| {
            let cells = vec![
                name,
                excess(before),
                excess(after),
                "-".to_owned(),
                "-".to_owned(),
            ];
            rows.push(cells);
        };
        let name = format!("time of workers, mean of {}", summary.pools);
        row(name, before.mean(), after.mean());
        row(
            "time of workers, worst".to_owned(),
            before.max(),
            after.max(),
        );
    }
    Table {
        columns: vec![
            Column::text("work of"),
            Column::number("without", ""),
            Column::number("libra", ""),
            Column::number("at best", ""),
            Column::text("proved from"),
        ],
        rows,
    }
}
