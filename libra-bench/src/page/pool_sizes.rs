//! What larger pools give and cost: imbalance and the busiest port over P from sweeps, times from simulations.

use serde_json::Value;

use super::curves::Curves;
use super::document::cell;
use super::parts::{Grid, excess, figures};
use super::{Document, Section, pool_times};
use crate::plot::{Figure, value_text};

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
pub(super) fn section(documents: &[Document]) -> Section {
    let draw = |(nth, document): (usize, &Document)| {
        document
            .is_of(&["sweep"])
            .then(|| draw(nth, document))
            .flatten()
    };
    let mut drawn: Vec<_> = documents.iter().enumerate().filter_map(draw).collect();
    drawn.extend(pool_times::draw(documents));
    Section {
        id: "pool-sizes",
        title: "Pool sizes",
        content: if drawn.is_empty() {
            Err(
                "what larger pools give and cost: `sweep --over P=2,4,8,16 --format json`; in time: `simulate --format json` \
                 with one P and with others",
            )
        } else {
            Ok(figures(
                drawn.iter().map(|(drawn, grid)| (drawn, Some(grid))),
            ))
        },
    }
}

fn draw(nth: usize, document: &Document) -> Option<(Figure, Grid)> {
    let curves = curves(document.cases());
    if curves.sizes().len() < 2 {
        return None;
    }
    let mut grid = Grid::new(
        format!("{}: means over windows and pools", document.name),
        &["P", "settings", "slowest worker, R - 1", "busiest port, ms"],
    );
    for (size, name, &[imbalance, port]) in curves.places() {
        grid.rows.push(vec![
            size.to_string(),
            name.to_owned(),
            excess(imbalance),
            value_text(port),
        ]);
    }
    let drawn = Figure {
        id: format!("pool-sizes-{nth}"),
        title: format!("What larger pools give and cost: {}", document.name),
        description: format!(
            "Larger pools are more even and move more. Left the work of the slowest worker over the mean, less 1, pools and \
             workers together; right the time of the busiest port.{}",
            curves.left_out()
        ),
        panels: vec![
            curves.panel("slowest worker over mean, less 1", "R - 1", 0),
            curves.panel("busiest port of a layer forward", "ms", 1),
        ],
    };
    Some((drawn, grid))
}

/// Imbalance and time of the busiest port in ms, by what tells cases apart beside P.
fn curves(cases: &[Value]) -> Curves<2> {
    let differs = |field: &str| {
        cases
            .windows(2)
            .any(|pair| pair[0][field] != pair[1][field])
    };
    let telling: Vec<&(&str, &str)> = SETTINGS
        .iter()
        .filter(|(field, _)| differs(field))
        .collect();
    let mut curves = Curves::default();
    for case in cases {
        let place = || {
            let (pools, workers) = (
                case["inter_excess_mean"].as_f64()?,
                case["intra_excess_mean"].as_f64()?,
            );
            let port = case["busiest_port_us_mean"].as_f64()? / 1e3;
            let imbalance = (1.0 + pools) * (1.0 + workers) - 1.0;
            Some((case["pool_size"].as_u64()?, [imbalance, port]))
        };
        let name: Vec<String> = telling
            .iter()
            .map(|(field, name)| format!("{name} {}", cell(&case[*field])))
            .collect();
        let name = if name.is_empty() {
            "libra".to_owned()
        } else {
            name.join(", ")
        };
        if let Some((size, values)) = place() {
            curves.add(name, size, values);
        }
    }
    curves
}
