//! What is proved of every window's pools.

use std::collections::BTreeMap;

use serde_json::Value;

use super::parts::{Grid, excess, figures};
use super::{Document, Section};
use crate::plot::{Axes, Axis, Figure, Mark, Panel, Series};

/// Heaviest pool in arrival order, as placed, at the bound, and placed over the bound.
const FIELDS: [&str; 4] = [
    "inter_arrival_excess",
    "inter_excess",
    "inter_bound_excess",
    "inter_gap",
];
/// Windows from which on a picture tells more than the table.
const DRAWN_MIN: usize = 4;
/// Windows of a table.
const ROWS_MAX: usize = 200;

pub(super) fn section(documents: &[Document]) -> Section {
    let found = documents
        .iter()
        .filter_map(|document| Some((windows(document)?, document)));
    let found: Vec<(Vec<Row>, &Document)> = found.collect();
    let drawn = found
        .iter()
        .enumerate()
        .filter(|(_, (rows, _))| rows.len() >= DRAWN_MIN);
    let drawn: Vec<Figure> = drawn
        .map(|(nth, (rows, document))| scatter(nth, rows, document))
        .collect();
    Section {
        id: "certificates",
        title: "Certificates",
        content: if found.is_empty() {
            Err("what no grouping goes below: `plan` and `demo` with --format json")
        } else {
            Ok(maud::html! {
                @for (rows, document) in &found { (grid(rows, document).draw()) }
                (figures(drawn.iter().map(|drawn| (drawn, None))))
            })
        },
    }
}

/// A window's name, and [`FIELDS`] of it.
type Row = (String, [f64; 4]);

/// Of every window; of all together where the document keeps no more.
fn windows(document: &Document) -> Option<Vec<Row>> {
    let row = |of: &dyn Fn(&str) -> Option<f64>| -> Option<[f64; 4]> {
        let values: Option<Vec<f64>> = FIELDS.iter().map(|field| of(field)).collect();
        values?.try_into().ok()
    };
    // Every pool of a window says the same of it.
    let mut windows: BTreeMap<u64, &Value> = BTreeMap::new();
    for case in document.cases() {
        if let Some(window) = case["window"].as_u64() {
            windows.entry(window).or_insert(case);
        }
    }
    if windows.is_empty() {
        let summary = document.value.get("summary")?;
        let values = row(&|field| summary[field]["max"].as_f64())?;
        return Some(vec![("worst".to_owned(), values)]);
    }
    let of_window = |(window, case): (u64, &Value)| {
        Some((window.to_string(), row(&|field| case[field].as_f64())?))
    };
    windows.into_iter().map(of_window).collect()
}

fn grid(rows: &[Row], document: &Document) -> Grid {
    let reason = document.value["summary"]["inter_bound"]
        .as_str()
        .unwrap_or("several reasons");
    let more = match rows.len().saturating_sub(ROWS_MAX) {
        0 => String::new(),
        more => format!("; {more} more windows are in the file"),
    };
    let mut grid = Grid::new(
        format!(
            "{}: heaviest pool over mean, less 1; bound proved from {reason}{more}",
            document.name
        ),
        &[
            "window",
            "arrival order",
            "placed",
            "proved bound",
            "placed over bound",
            "verdict",
        ],
    );
    for (window, values) in rows.iter().take(ROWS_MAX) {
        let mut row = vec![window.clone()];
        row.extend(values.map(excess));
        row.push(
            if values[3] == 0.0 {
                "proved best"
            } else {
                "not proved best"
            }
            .to_owned(),
        );
        grid.rows.push(row);
    }
    grid
}

/// What arrival order and what placement leave, window by window.
fn scatter(nth: usize, rows: &[Row], document: &Document) -> Figure {
    let series = |name: &str, colour, field: usize| Series {
        name: name.to_owned(),
        colour,
        mark: Mark::Points,
        points: (rows.iter().enumerate())
            .map(|(nth, (_, values))| (nth as f64, values[field]))
            .collect(),
    };
    let values = rows
        .iter()
        .flat_map(|(_, values)| values[..3].iter().copied());
    Figure {
        id: format!("windows-{nth}"),
        title: format!("Windows: {}", document.name),
        description: "What is left between pools, window by window; points on the bottom are smaller than the axis shows."
            .to_owned(),
        panels: vec![Panel::Axes(Axes {
            title: "heaviest pool over mean, less 1".to_owned(),
            x: Axis::names("window", rows.iter().map(|(window, _)| window)),
            y: Axis::log("R - 1", values),
            series: vec![
                series("arrival order", 1, 0),
                series("placed", 0, 1),
                series("proved bound", 5, 2),
            ],
        })],
    }
}
