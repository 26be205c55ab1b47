//! What larger pools give and cost: imbalance and the busiest port over P, from sweeps.

use std::collections::BTreeMap;

use serde_json::Value;

use super::document::cell;
use super::parts::{Grid, excess, figures};
use super::{Document, Section};
use crate::plot::{Axes, Axis, Figure, Mark, Panel, Series, value_text};

/// Settings that tell one curve from another.
const SETTINGS: [(&str, &str); 11] = [
    ("head_shards", "H"),
    ("block_tokens", "B"),
    ("chunks", "M"),
    ("slack", "slack"),
    ("vrsp", "VRSP"),
    ("placement", "placement"),
    ("kv", "kv"),
    ("kv_route", "route"),
    ("gbs", "GBS"),
    ("cp", "CP"),
    ("tokens", "L"),
];
/// Curves that are told apart.
const CURVES_MAX: usize = crate::plot::COLOURS;

/// P, imbalance and time of the busiest port in ms.
type Place = (u64, f64, f64);

pub(super) fn section(documents: &[Document]) -> Section {
    let draw = |(nth, document): (usize, &Document)| {
        document
            .is_of(&["sweep"])
            .then(|| draw(nth, document))
            .flatten()
    };
    let drawn: Vec<_> = documents.iter().enumerate().filter_map(draw).collect();
    Section {
        id: "pool-sizes",
        title: "Pool sizes",
        content: if drawn.is_empty() {
            Err("what larger pools give and cost: `sweep --over P=2,4,8,16 --format json`")
        } else {
            Ok(figures(
                drawn.iter().map(|(drawn, grid)| (drawn, Some(grid))),
            ))
        },
    }
}

fn draw(nth: usize, document: &Document) -> Option<(Figure, Grid)> {
    let curves = curves(document.cases());
    let mut sizes: Vec<u64> = curves.values().flatten().map(|&(size, ..)| size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 {
        return None;
    }
    let mut grid = Grid::new(
        format!("{}: means over windows and pools", document.name),
        &["P", "settings", "slowest worker, R - 1", "busiest port, ms"],
    );
    for (name, places) in &curves {
        for (size, imbalance, port) in places {
            grid.rows.push(vec![
                size.to_string(),
                name.clone(),
                excess(*imbalance),
                value_text(*port),
            ]);
        }
    }
    let series = |value: fn(&Place) -> f64| -> Vec<Series> {
        let series = |(colour, (name, places)): (usize, (&String, &Vec<Place>))| Series {
            name: name.clone(),
            colour,
            mark: Mark::Line,
            points: (places.iter())
                .filter_map(|place| {
                    Some((
                        sizes.iter().position(|&size| size == place.0)? as f64,
                        value(place),
                    ))
                })
                .collect(),
        };
        curves
            .iter()
            .take(CURVES_MAX)
            .enumerate()
            .map(series)
            .collect()
    };
    let panel = |title: &str, label: &str, value: fn(&Place) -> f64| {
        let series = series(value);
        let values = series
            .iter()
            .flat_map(|series| &series.points)
            .map(|&(_, y)| y);
        Panel::Axes(Axes {
            title: title.to_owned(),
            x: Axis::names("P, sequences of a pool", &sizes),
            y: Axis::linear(label, values),
            series,
        })
    };
    let left_out = curves.len().saturating_sub(CURVES_MAX);
    let drawn = Figure {
        id: format!("pool-sizes-{nth}"),
        title: format!("What larger pools give and cost: {}", document.name),
        description: format!(
            "Larger pools are more even and move more. Left the work of the slowest worker over the mean, less 1, pools and \
             workers together; right the time of the busiest port.{}",
            if left_out > 0 {
                format!(" {left_out} more curves are in the table alone.")
            } else {
                String::new()
            }
        ),
        panels: vec![
            panel("slowest worker over mean, less 1", "R - 1", |place| place.1),
            panel("busiest port of a layer forward", "ms", |place| place.2),
        ],
    };
    Some((drawn, grid))
}

/// By what tells cases apart beside P.
fn curves(cases: &[Value]) -> BTreeMap<String, Vec<Place>> {
    let differs = |field: &str| {
        cases
            .windows(2)
            .any(|pair| pair[0][field] != pair[1][field])
    };
    let telling: Vec<&(&str, &str)> = SETTINGS
        .iter()
        .filter(|(field, _)| differs(field))
        .collect();
    let mut curves: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    for case in cases {
        let place = (|| {
            let (pools, workers) = (
                case["inter_excess_mean"].as_f64()?,
                case["intra_excess_mean"].as_f64()?,
            );
            let port = case["busiest_port_us_mean"].as_f64()? / 1e3;
            Some((
                case["pool_size"].as_u64()?,
                (1.0 + pools) * (1.0 + workers) - 1.0,
                port,
            ))
        })();
        let name: Vec<String> = telling
            .iter()
            .map(|(field, name)| format!("{name} {}", cell(&case[*field])))
            .collect();
        let name = if name.is_empty() {
            "libra".to_owned()
        } else {
            name.join(", ")
        };
        curves.entry(name).or_default().extend(place);
    }
    for places in curves.values_mut() {
        places.sort_by_key(|&(size, ..)| size);
    }
    curves
}
