//! One pool worker by worker: loads before and after, and who sends to whom.

use super::document::numbers;
use super::parts::{Grid, figures};
use super::{Document, Section};
use crate::plot::{Axes, Axis, Figure, Heat, Mark, Panel, Series, value_text};
use crate::units::format_bytes;

const NEEDS: &str = "one pool worker by worker: `plan` and `demo` with --format json";

pub(super) fn loads(documents: &[Document]) -> Section {
    let drawn: Vec<_> = documents
        .iter()
        .enumerate()
        .filter_map(|(nth, document)| strip(nth, document))
        .collect();
    Section {
        id: "loads",
        title: "Loads of workers",
        content: if drawn.is_empty() {
            Err(NEEDS)
        } else {
            Ok(figures(
                drawn.iter().map(|(drawn, grid)| (drawn, Some(grid))),
            ))
        },
    }
}

pub(super) fn traffic(documents: &[Document]) -> Section {
    let drawn: Vec<_> = documents
        .iter()
        .enumerate()
        .filter_map(|(nth, document)| matrix(nth, document))
        .collect();
    Section {
        id: "traffic",
        title: "Traffic",
        content: if drawn.is_empty() {
            Err(NEEDS)
        } else {
            Ok(figures(drawn.iter().map(|drawn| (drawn, None))))
        },
    }
}

/// Loads over their mean, were tiles at home and as placed.
fn strip(nth: usize, document: &Document) -> Option<(Figure, Grid)> {
    let detail = document.value.get("detail")?;
    let mean = detail["load_mean"].as_f64().filter(|&mean| mean > 0.0)?;
    let per_load = detail["workers_per_load"].as_u64()?.max(1);
    let over_mean = |field: &str| -> Vec<f64> {
        numbers(&detail[field])
            .into_iter()
            .map(|load| load / mean)
            .collect()
    };
    let (before, after) = (over_mean("home_loads"), over_mean("loads"));
    if before.is_empty() || before.len() != after.len() {
        return None;
    }
    let names: Vec<u64> = (0..before.len() as u64).map(|bar| bar * per_load).collect();
    let mut grid = Grid::new(
        "load over mean, by worker",
        &["worker", "at home", "placed"],
    );
    for ((name, before), after) in names.iter().zip(&before).zip(&after) {
        grid.rows.push(vec![
            name.to_string(),
            format!("{before:.3}"),
            format!("{after:.3}"),
        ]);
    }
    let most = |loads: &[f64]| value_text(loads.iter().copied().fold(0.0, f64::max));
    let description = format!(
        "Work of each worker over the mean. At home, where queries live, the heaviest has {} times the mean; as placed {}.{}",
        most(&before),
        most(&after),
        if per_load > 1 {
            format!(" A bar is the heaviest of {per_load} workers.")
        } else {
            String::new()
        },
    );
    let y = Axis::linear("over mean", before.iter().chain(&after).copied());
    let series = |name: &str, colour, mark, loads: &[f64]| Series {
        name: name.to_owned(),
        colour,
        mark,
        points: loads
            .iter()
            .enumerate()
            .map(|(nth, &load)| (nth as f64, load))
            .collect(),
    };
    let drawn = Figure {
        id: format!("loads-{nth}"),
        title: format!("Loads before and after: {}", document.name),
        description,
        panels: vec![Panel::Axes(Axes {
            title: pool_name(document),
            x: Axis::names("worker", names),
            y,
            series: vec![
                series("at home", 1, Mark::Behind, &before),
                series("placed", 0, Mark::Bars, &after),
            ],
        })],
    };
    Some((drawn, grid))
}

fn matrix(nth: usize, document: &Document) -> Option<Figure> {
    let detail = document.value.get("detail")?;
    let rows: Vec<Vec<f64>> = detail["traffic_bytes"]
        .as_array()?
        .iter()
        .map(numbers)
        .collect();
    if rows.is_empty() || rows.iter().any(|row| row.len() != rows.len()) {
        return None;
    }
    let per_row = detail["workers_per_row"].as_u64()?.max(1);
    let names: Vec<String> = (0..rows.len() as u64)
        .map(|row| (row * per_row).to_string())
        .collect();
    let total: f64 = rows.iter().flatten().sum();
    let most = rows.iter().flatten().copied().fold(0.0, f64::max);
    let pairs = rows.iter().flatten().filter(|&&bytes| bytes > 0.0).count();
    Some(Figure {
        id: format!("traffic-{nth}"),
        title: format!("Who sends to whom: {}", document.name),
        description: format!(
            "Bytes of one layer forward, the darker the more. {} in all between {pairs} of {} pairs, at most {} from one to another.",
            format_bytes(total as u64),
            rows.len() * rows.len(),
            format_bytes(most as u64),
        ),
        panels: vec![Panel::Heat(Heat {
            title: pool_name(document),
            x_label: if per_row > 1 {
                format!("to, {per_row} workers a column")
            } else {
                "to worker".to_owned()
            },
            y_label: "from".to_owned(),
            columns: names.clone(),
            rows: names,
            values: rows
                .into_iter()
                .map(|row| row.into_iter().map(Some).collect())
                .collect(),
            text: |bytes| format_bytes(bytes as u64),
        })],
    })
}

fn pool_name(document: &Document) -> String {
    let detail = &document.value["detail"];
    let number = |field: &str| detail[field].as_u64().unwrap_or(0);
    format!(
        "pool {} of window {}: most uneven at home",
        number("pool"),
        number("window")
    )
}
