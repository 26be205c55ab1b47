//! Combinations as rows. A row is made of a case's JSON, so that one read from a file prints as one just measured.

use serde_json::Value;

use super::super::Context;
use super::front::{Point, front};
use crate::report::{Column, Table};
use crate::units::format_bytes;

/// Where a case stands among the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// No other has a lower worst R − 1 and not more bytes, or fewer bytes and not a higher worst R − 1.
    pub(super) pareto_bytes: bool,
    /// The same of the busiest port's time.
    pub(super) pareto_port: bool,
}

/// The places of `points`; nothing for what was interrupted.
pub(super) fn places(points: &[Option<Point>]) -> Vec<Option<Place>> {
    let on_front = |of: fn(&Point) -> f64| {
        let points = points.iter().flatten();
        let costs: Vec<[f64; 2]> = points
            .map(|point| [of(point), point.worst_excess])
            .collect();
        front(&costs).into_iter()
    };
    let mut bytes = on_front(|point| point.worker_bytes);
    let mut port = on_front(|point| point.port_us);
    let place = |point: &Option<Point>| {
        point.as_ref()?;
        Some(Place {
            pareto_bytes: bytes.next()?,
            pareto_port: port.next()?,
        })
    };
    points.iter().map(place).collect()
}

/// A number of a case.
pub(super) fn number(case: &Value, name: &str) -> f64 {
    case[name].as_f64().unwrap_or(f64::NAN)
}

/// The names of combinations, their cases and places. With `beside` what Algorithm 2 costs is compared.
pub(super) fn table(
    context: &Context,
    rows: &[(&str, &Value)],
    places: &[Option<Place>],
    beside: bool,
) -> Table {
    let mut columns = vec![
        Column::text("combination"),
        Column::number("pools", "mean R-1"),
        Column::number("gap", "max %"),
        Column::number("workers", "max R-1"),
        Column::number("worst", "mean R-1"),
        Column::number("worst", "max R-1"),
        Column::number("a worker", "moves"),
        Column::number("a pool", "moves"),
        Column::number("at least", "bytes"),
        Column::number("x-node", "bytes"),
        Column::number("staged", "at most"),
        Column::number("port", "ms"),
    ];
    if beside {
        columns.extend([
            Column::number("bytes", "of alg 2"),
            Column::number("x-node", "of alg 2"),
            Column::number("port", "of alg 2"),
        ]);
    }
    columns.extend([
        Column::number("VRSP", ""),
        Column::number("plan", "ms"),
        Column::text("front"),
    ]);
    let row = |(&(name, case), place): (&(&str, &Value), &Option<Place>)| {
        let fixed = |name: &str| format!("{:.4}", number(case, name) + 0.0);
        let bytes = |name: &str| format_bytes(number(case, name) as u64);
        let mut row = vec![
            name.to_owned(),
            fixed("inter_excess_mean"),
            format!("{:.3}", number(case, "inter_gap_max") * 100.0),
            fixed("intra_excess_max"),
            fixed("worst_excess_mean"),
            fixed("worst_excess_max"),
            bytes("worker_moved_bytes_mean"),
            bytes("moved_bytes_mean"),
            bytes("moved_bytes_bound_mean"),
            bytes("cross_node_bytes_mean"),
            bytes("max_staged_bytes_max"),
            format!("{:.2}", number(case, "busiest_port_us_mean") / 1e3),
        ];
        if beside {
            let ratios = [
                "moved_bytes_ratio",
                "cross_node_bytes_ratio",
                "busiest_port_ratio",
            ];
            row.extend(ratios.map(|name| format!("{:.3}", number(case, name))));
        }
        row.extend([
            context.time(case["vrsp_ns_median"].as_u64()),
            context.milliseconds(case["plan_ns_median"].as_u64()),
            match place {
                None => format!("interrupted, {} windows", number(case, "windows")),
                Some(place) => front_name(*place).to_owned(),
            },
        ]);
        row
    };
    Table {
        rows: rows.iter().zip(places).map(row).collect(),
        columns,
    }
}

fn front_name(place: Place) -> &'static str {
    match (place.pareto_bytes, place.pareto_port) {
        (true, true) => "bytes, port",
        (true, false) => "bytes",
        (false, true) => "port",
        (false, false) => "-",
    }
}
