//! Time of the slowest worker, by method: simulated, or measured on this machine.

use serde_json::Value;

use super::document::{cell, numbers};
use super::parts::{Grid, figures};
use super::{Document, Section};
use crate::plot::{Axes, Axis, Figure, Mark, Panel, Series, value_text};

pub(super) fn section(documents: &[Document]) -> Section {
    let draw = |(nth, document): (usize, &Document)| match document.command.as_str() {
        "simulate" => simulated(nth, document),
        "run" | "demo" => measured(nth, document),
        _ => None,
    };
    let drawn: Vec<_> = documents.iter().enumerate().filter_map(draw).collect();
    Section {
        id: "stragglers",
        title: "Stragglers",
        content: if drawn.is_empty() {
            Err(
                "time of the slowest worker: `simulate`, `run` or `demo` with --format json, times included",
            )
        } else {
            Ok(figures(
                drawn.iter().map(|(drawn, grid)| (drawn, Some(grid))),
            ))
        },
    }
}

fn simulated(nth: usize, document: &Document) -> Option<(Figure, Grid)> {
    let fields = [
        "straggler_ms_mean",
        "straggler_ms_max",
        "compute_ms_mean",
        "comm_ms_mean",
        "exposed_ms_mean",
        "speedup_mean",
        "speedup_max",
    ];
    let heads = [
        "method",
        "slowest, mean ms",
        "worst ms",
        "computing ms",
        "moving ms",
        "exposed ms",
        "faster, mean",
        "worst",
    ];
    let mut grid = Grid::new(
        format!("{}: attention of a layer, by method", document.name),
        &heads,
    );
    let mut bars = Vec::new();
    for case in document.cases() {
        let Some(method) = case["method"].as_str() else {
            continue;
        };
        let mut row = vec![method.to_owned()];
        row.extend(fields.map(|field| case[field].as_f64().map_or("-".to_owned(), value_text)));
        grid.rows.push(row);
        if let (Some(mean), Some(worst)) = (case[fields[0]].as_f64(), case[fields[1]].as_f64()) {
            bars.push((method.to_owned(), [mean, worst]));
        }
    }
    let names = ["mean of steps", "worst step"];
    draw(
        format!("stragglers-{nth}"),
        format!("Slowest worker, simulated: {}", document.name),
        names,
        bars,
        grid,
    )
}

/// Least of the runs: what disturbs a run only makes it longer.
fn measured(nth: usize, document: &Document) -> Option<(Figure, Grid)> {
    let least = |value: &Value| {
        numbers(value)
            .into_iter()
            .reduce(f64::min)
            .map(|ns| ns / 1e6)
    };
    let heads = [
        "method",
        "element",
        "workers",
        "forward, busiest ms",
        "mean worker ms",
        "backward, busiest ms",
        "largest error",
        "wrong",
    ];
    let mut grid = Grid::new(
        format!("{}: executed on the CPU, results checked", document.name),
        &heads,
    );
    let mut bars = Vec::new();
    for case in document.cases() {
        let Some(method) = case["method"].as_str() else {
            continue;
        };
        let times =
            ["forward_ns", "forward_mean_ns", "backward_ns"].map(|field| least(&case[field]));
        let mut row = vec![
            method.to_owned(),
            cell(&case["dtype"]),
            cell(&case["workers"]),
        ];
        row.extend(times.map(|time| time.map_or("-".to_owned(), value_text)));
        row.push(
            case["max_abs_error"]
                .as_f64()
                .map_or("-".to_owned(), |error| format!("{error:.1e}")),
        );
        row.push(cell(&case["wrong"]));
        grid.rows.push(row);
        if let [Some(busiest), Some(mean), _] = times {
            bars.push((
                format!("{method} {}", cell(&case["dtype"])),
                [mean, busiest],
            ));
        }
    }
    let names = ["mean worker", "busiest worker"];
    draw(
        format!("stragglers-{nth}"),
        format!("Forward, measured: {}", document.name),
        names,
        bars,
        grid,
    )
}

fn draw(
    id: String,
    title: String,
    names: [&str; 2],
    bars: Vec<(String, [f64; 2])>,
    grid: Grid,
) -> Option<(Figure, Grid)> {
    let (_, slowest) = bars.last()?;
    let last = format!(
        "{}: {} ms and {} ms.",
        bars.last()?.0,
        value_text(slowest[0]),
        value_text(slowest[1])
    );
    let series = [0, 1].map(|which| Series {
        name: names[which].to_owned(),
        colour: which,
        mark: Mark::Bars,
        points: bars
            .iter()
            .enumerate()
            .map(|(nth, (_, values))| (nth as f64, values[which]))
            .collect(),
    });
    let drawn = Figure {
        id,
        title,
        description: format!(
            "Shorter is better: milliseconds of the {} and of the {}. {last}",
            names[0], names[1]
        ),
        panels: vec![Panel::Axes(Axes {
            title: "time, ms".to_owned(),
            x: Axis::names("", bars.iter().map(|(name, _)| name)),
            y: Axis::linear("ms", bars.iter().flat_map(|(_, values)| *values)),
            series: series.into(),
        })],
    };
    Some((drawn, grid))
}
