//! Work of pools and workers without Libra, with it, and at best.

use super::parts::{Grid, excess, figures};
use super::{Document, Section};
use crate::plot::{Axes, Axis, Figure, Mark, Panel, Series};

/// Rows of the figure: name, and the fields of `summary` without, with and at best.
const ROWS: [(&str, [&str; 3]); 2] = [
    (
        "pools of a window",
        ["inter_arrival_excess", "inter_excess", "inter_bound_excess"],
    ),
    (
        "workers of a pool",
        ["home_excess", "intra_excess", "tile_bound_excess"],
    ),
];
const NAMES: [&str; 3] = ["without", "with Libra", "at best"];
const COLOURS: [usize; 3] = [1, 0, 5];

pub(super) fn section(documents: &[Document]) -> Section {
    let drawn: Vec<_> = documents
        .iter()
        .enumerate()
        .filter_map(|(nth, document)| draw(nth, document))
        .collect();
    Section {
        id: "balance",
        title: "Balance",
        content: if drawn.is_empty() {
            Err("work of pools and workers: `plan` and `demo` with --format json")
        } else {
            Ok(figures(
                drawn.iter().map(|(drawn, grid)| (drawn, Some(grid))),
            ))
        },
    }
}

fn draw(nth: usize, document: &Document) -> Option<(Figure, Grid)> {
    let summary = document.value.get("summary")?;
    let mut grid = Grid::new(
        format!("{}: heaviest over mean, less 1", document.name),
        &["work of", "statistic", NAMES[0], NAMES[1], NAMES[2]],
    );
    let mut names = Vec::new();
    let mut values = NAMES.map(|_| Vec::new());
    for (name, fields) in ROWS {
        for statistic in ["mean", "max"] {
            let row: Option<Vec<f64>> = fields
                .iter()
                .map(|field| summary[field][statistic].as_f64())
                .collect();
            let row = row?;
            for (values, value) in values.iter_mut().zip(&row) {
                values.push((names.len() as f64, *value));
            }
            let (word, short) = if statistic == "mean" {
                ("mean", "")
            } else {
                ("worst", ", worst")
            };
            let (first, _) = name.split_once(' ').expect("two words");
            names.push(format!("{first}{short}"));
            let mut cells = vec![name.to_owned(), word.to_owned()];
            cells.extend(row.into_iter().map(excess));
            grid.rows.push(cells);
        }
    }
    let all: Vec<f64> = values.iter().flatten().map(|&(_, y)| y).collect();
    let series = (0..NAMES.len()).map(|at| Series {
        name: NAMES[at].to_owned(),
        colour: COLOURS[at],
        mark: Mark::Bars,
        points: values[at].clone(),
    });
    let [before, after] =
        [&values[0], &values[1]].map(|values| values.iter().map(|&(_, y)| y).fold(0.0, f64::max));
    let drawn = Figure {
        id: format!("balance-{nth}"),
        title: format!("Work of pools and workers: {}", document.name),
        description: format!(
            "Heaviest over mean, less 1; 0 is perfect. At worst {} without Libra and {} with it.",
            excess(before),
            excess(after)
        ),
        panels: vec![Panel::Axes(Axes {
            title: "heaviest over mean, less 1".to_owned(),
            x: Axis::names("", names),
            y: Axis::linear("R - 1", all.into_iter()),
            series: series.collect(),
        })],
    };
    Some((drawn, grid))
}
