//! Time of attention on one GPU, from a table of measured speeds.
//!
//! A piece of attention is as fast as whole causal documents of the length that has as many pairs: n = √(2 pairs). Its
//! speed is interpolated in log n and in log heads, where a launch counts as the heads that the table's tokens would
//! need for as many rows (queries × heads): both say how many blocks share the GPU. Beyond the table its edge holds.
//! Times of a launch's pieces add up, which makes its speed their harmonic mean; a launch itself takes `launch_us`.
//!
//! Operations: 2 (d_qk + d_v) a pair and head forward, 2.5 times as many backward (two products become five).

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cluster::{check_range, read_file};
use super::cluster_error::ClusterError;
use super::program::Attention;

/// Kernel tables by name.
const TABLES: [(&str, &str); 4] = [
    ("h200-fa3", include_str!("../../profiles/h200-fa3.toml")),
    ("h100-fa3", include_str!("../../profiles/h100-fa3.toml")),
    (
        "h100-fa3-varlen",
        include_str!("../../profiles/h100-fa3-varlen.toml"),
    ),
    (
        "h100-fa2-varlen",
        include_str!("../../profiles/h100-fa2-varlen.toml"),
    ),
];

/// Rows of a tile of queries: a kernel computes no fewer.
const TILE_QUERIES: f64 = 128.0;

/// Backward operations over forward.
const BACKWARD_OPERATIONS: f64 = 2.5;

/// Measured speeds, as in a file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KernelTable {
    /// For people.
    pub(crate) name: String,
    /// Tokens of one measurement.
    pub(crate) tokens: u64,
    /// Document lengths, ascending: one row each.
    pub(crate) lengths: Vec<u64>,
    /// Query heads, ascending: one column each.
    pub(crate) heads: Vec<u64>,
    /// 10¹² operations a second.
    pub(crate) forward_tflops: Vec<Vec<f64>>,
    /// Likewise, by backward's own operations.
    pub(crate) backward_tflops: Option<Vec<Vec<f64>>>,
    /// Backward speed over forward speed where there is no table.
    pub(crate) backward_over_forward: Option<f64>,
    /// Of one launch, beside its operations.
    pub(crate) launch_us: f64,
}

/// A direction of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// O from Q, K, V.
    Forward,
    /// dQ, dK, dV from dO.
    Backward,
}

/// A table that can be, ready to be asked.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    table: KernelTable,
    log_lengths: Vec<f64>,
    log_heads: Vec<f64>,
    peak_tflops: f64,
}

impl KernelTable {
    /// A built-in table, or a file, TOML or (by its suffix) JSON, in `folder`.
    ///
    /// # Errors
    /// No such thing, another format, or numbers that cannot be.
    pub(crate) fn read(name: &str, folder: &Path) -> Result<Self, ClusterError> {
        let (text, is_json) = match TABLES.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => ((*text).to_owned(), false),
            None => {
                let path = folder.join(name);
                let known = || TABLES.map(|(name, _)| name).join(", ");
                let text = read_file(name, &path, "kernel table", known)?;
                (
                    text,
                    path.extension().is_some_and(|suffix| suffix == "json"),
                )
            }
        };
        let table: Result<Self, String> = if is_json {
            serde_json::from_str(&text).map_err(|error| error.to_string())
        } else {
            toml::from_str(&text).map_err(|error| error.to_string())
        };
        let table = table.map_err(|problem| ClusterError::Format {
            path: name.to_owned(),
            problem: problem.trim_end().to_owned(),
        })?;
        table.check(name)?;
        Ok(table)
    }

    fn check(&self, path: &str) -> Result<(), ClusterError> {
        let refuse = |field: &str, value: String, legal: String| ClusterError::Value {
            path: path.to_owned(),
            field: field.to_owned(),
            value,
            legal,
        };
        for (field, axis) in [("lengths", &self.lengths), ("heads", &self.heads)] {
            let ascends = axis.windows(2).all(|pair| pair[0] < pair[1]);
            if axis.first().is_none_or(|&first| first == 0) || !ascends {
                let legal = "ascending numbers from 1, at least one".to_owned();
                return Err(refuse(field, format!("{axis:?}"), legal));
            }
        }
        check_range(path, "tokens", self.tokens as f64, [1.0, 1e12])?;
        check_range(path, "launch_us", self.launch_us, [0.0, 1e6])?;
        if let Some(ratio) = self.backward_over_forward {
            check_range(path, "backward_over_forward", ratio, [0.001, 1e3])?;
        }
        if self.backward_tflops.is_some() == self.backward_over_forward.is_some() {
            let legal = "either backward_tflops or backward_over_forward".to_owned();
            let both = self.backward_tflops.is_some();
            let found = if both { "both" } else { "missing" };
            return Err(refuse("backward", found.to_owned(), legal));
        }
        let forward = Some(("forward_tflops", &self.forward_tflops));
        let backward = self.backward_tflops.as_ref();
        for (field, rows) in forward
            .into_iter()
            .chain(backward.map(|rows| ("backward_tflops", rows)))
        {
            let (lengths, heads) = (self.lengths.len(), self.heads.len());
            if rows.len() != lengths || rows.iter().any(|row| row.len() != heads) {
                let legal =
                    format!("{lengths} rows of {heads} numbers: one a length, one a head count");
                return Err(refuse(field, "of another shape".to_owned(), legal));
            }
            for &speed in rows.iter().flatten() {
                check_range(path, field, speed, [1e-6, 1e6])?;
            }
        }
        Ok(())
    }
}

impl Kernel {
    /// Of a table that [`KernelTable::read`] made.
    pub(crate) fn new(table: KernelTable, peak_tflops: f64) -> Self {
        let logs = |axis: &[u64]| axis.iter().map(|&x| libm::log(x as f64)).collect();
        Self {
            log_lengths: logs(&table.lengths),
            log_heads: logs(&table.heads),
            table,
            peak_tflops,
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.table.name
    }

    /// Nanoseconds of one launch over `pieces`, whose heads are `width` = d_qk + d_v elements wide.
    pub(crate) fn launch_ns(&self, pieces: &[Attention], width: u32, direction: Direction) -> f64 {
        let rows: f64 = pieces
            .iter()
            .filter(|piece| piece.pairs > 0)
            .map(|piece| f64::from(piece.queries) * f64::from(piece.heads))
            .sum();
        if rows == 0.0 {
            return 0.0;
        }
        let heads = self.column(rows / self.table.tokens as f64);
        let operations = 2.0 * f64::from(width);
        let mut time_ns = self.table.launch_us * 1e3;
        for piece in pieces.iter().filter(|piece| piece.pairs > 0) {
            let fill = (TILE_QUERIES / f64::from(piece.queries)).max(1.0);
            let pairs = piece.pairs as f64 * fill;
            let (speed, more) = self.speed(pairs, heads, direction);
            time_ns += operations * pairs * f64::from(piece.heads) * more / (speed * 1e3);
        }
        time_ns
    }

    /// 10¹² operations a second at `pairs` a head, and operations over forward's.
    fn speed(&self, pairs: f64, heads: Place, direction: Direction) -> (f64, f64) {
        let length = place(&self.log_lengths, 0.5 * libm::log(2.0 * pairs));
        let forward = |rows: &[Vec<f64>]| interpolate(rows, length, heads);
        let (speed, more) = match (direction, &self.table.backward_tflops) {
            (Direction::Forward, _) => (forward(&self.table.forward_tflops), 1.0),
            (Direction::Backward, Some(rows)) => (forward(rows), BACKWARD_OPERATIONS),
            (Direction::Backward, None) => {
                let ratio = self.table.backward_over_forward.unwrap_or(1.0);
                (
                    forward(&self.table.forward_tflops) * ratio,
                    BACKWARD_OPERATIONS,
                )
            }
        };
        (speed.min(self.peak_tflops), more)
    }

    fn column(&self, heads: f64) -> Place {
        place(&self.log_heads, libm::log(heads))
    }
}

/// Between which marks of an axis, and how far from the first.
type Place = (usize, f64);

/// The edges hold beyond the marks.
fn place(marks: &[f64], at: f64) -> Place {
    let after = marks.partition_point(|&mark| mark <= at);
    if after == 0 {
        return (0, 0.0);
    }
    match marks.get(after) {
        None => (after - 1, 0.0),
        Some(next) => {
            let first = marks[after - 1];
            (after - 1, (at - first) / (next - first))
        }
    }
}

fn interpolate(rows: &[Vec<f64>], (row, down): Place, (column, right): Place) -> f64 {
    let along = |row: &[f64]| mix(row[column], row.get(column + 1), right);
    let next = rows.get(row + 1).map(|row| along(row));
    mix(along(&rows[row]), next.as_ref(), down)
}

fn mix(first: f64, second: Option<&f64>, share: f64) -> f64 {
    second.map_or(first, |second| first + (second - first) * share)
}
