//! Sample lengths from files and bundled corpora.
//!
//! The suffix decides the format: `.txt` has one length a line, blank lines and `#` comments aside; `.npy` an integer
//! vector; `.csv` a column and `.jsonl` a field, or bare integers. Whatever is wrong with a file is an [`InputError`]
//! that says where. Rows of a `.csv` are counted with its header and without blank lines.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

use super::collect::Collector;
use super::error::{InputError, Place};
use super::{bundled, npy};

/// How to read a source of lengths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LengthSource {
    /// Column of a `.csv`, or field of a `.jsonl`. Without it: `length`, else `tokens`, else the only one.
    pub column: Option<String>,
    /// The numbers are running sums of the lengths, with or without a leading 0.
    pub cumulative: bool,
}

/// Lengths of a bundled corpus (`linux-6.1` or `bundled:linux-6.1`), or else of the file at the path `spec`.
pub fn load(spec: &str, options: &LengthSource) -> Result<Vec<u64>, InputError> {
    let name = match spec.strip_prefix("bundled:") {
        Some(name) => name,
        None if bundled::names().any(|name| name == spec) => spec,
        None => return read_lengths(Path::new(spec), options),
    };
    let lengths = bundled::lengths(name)?;
    refuse_column(Path::new(name), options)?;
    if options.cumulative {
        return Err(InputError::NotCumulative {
            name: name.to_owned(),
        });
    }
    Ok(lengths)
}

/// Lengths of the samples of a file, in the file's order.
pub fn read_lengths(path: &Path, options: &LengthSource) -> Result<Vec<u64>, InputError> {
    let fail = |source| io_error(path, source);
    let metadata = std::fs::metadata(path).map_err(fail)?;
    if !metadata.is_file() {
        let kind = if metadata.is_dir() {
            "directory"
        } else {
            "special file"
        };
        return Err(InputError::NotAFile {
            path: path.to_owned(),
            kind,
        });
    }
    let suffix = path.extension().unwrap_or_default();
    let format = Format::of(suffix).ok_or_else(|| InputError::Suffix {
        path: path.to_owned(),
        suffix: suffix.to_string_lossy().into_owned(),
    })?;
    if metadata.len() == 0 {
        return Err(InputError::Empty {
            path: path.to_owned(),
        });
    }
    let file = File::open(path).map_err(fail)?;
    match format {
        Format::Text => read_text(BufReader::new(file), path, options),
        Format::Csv => read_csv(file, path, options),
        Format::JsonLines => read_json_lines(BufReader::new(file), path, options),
        Format::Npy => {
            refuse_column(path, options)?;
            npy::read(file, metadata.len(), path, options.cumulative)
        }
    }
}

enum Format {
    Text,
    Npy,
    Csv,
    JsonLines,
}

impl Format {
    fn of(suffix: &OsStr) -> Option<Self> {
        match suffix.to_str()?.to_ascii_lowercase().as_str() {
            "txt" => Some(Self::Text),
            "npy" => Some(Self::Npy),
            "csv" => Some(Self::Csv),
            "jsonl" => Some(Self::JsonLines),
            _ => None,
        }
    }
}

fn io_error(path: &Path, source: io::Error) -> InputError {
    match source.kind() {
        io::ErrorKind::NotFound => InputError::Missing {
            path: path.to_owned(),
        },
        _ => InputError::Io {
            path: path.to_owned(),
            source,
        },
    }
}

fn refuse_column(path: &Path, options: &LengthSource) -> Result<(), InputError> {
    match options.column.clone() {
        Some(column) => Err(InputError::NoColumns {
            path: path.to_owned(),
            column,
        }),
        None => Ok(()),
    }
}

fn read_text(
    source: impl BufRead,
    path: &Path,
    options: &LengthSource,
) -> Result<Vec<u64>, InputError> {
    refuse_column(path, options)?;
    let mut lengths = Collector::new(path, "line", options.cumulative);
    let lines = for_each_line(source, path, |number, line| {
        match line.split('#').next().unwrap_or_default().trim() {
            "" => Ok(()),
            length => lengths.push_text(number, length),
        }
    })?;
    lengths.finish(lines)
}

/// Calls `visit` with each line, numbered from 1, and returns how many there were.
fn for_each_line(
    mut source: impl BufRead,
    path: &Path,
    mut visit: impl FnMut(u64, &str) -> Result<(), InputError>,
) -> Result<u64, InputError> {
    let mut bytes = Vec::new();
    let mut number = 0;
    while source
        .read_until(b'\n', &mut bytes)
        .map_err(|error| io_error(path, error))?
        > 0
    {
        number += 1;
        let line = std::str::from_utf8(&bytes).map_err(|_| InputError::NotUtf8 {
            place: Place {
                path: path.to_owned(),
                unit: "line",
                number,
            },
        })?;
        // Some editors put a byte order mark first.
        let line = match line.strip_prefix('\u{feff}') {
            Some(rest) if number == 1 => rest,
            _ => line,
        };
        visit(number, line)?;
        bytes.clear();
    }
    Ok(number)
}

fn read_csv(file: File, path: &Path, options: &LengthSource) -> Result<Vec<u64>, InputError> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .trim(csv::Trim::All)
        .from_reader(BufReader::new(file));
    let mut lengths = Collector::new(path, "row", options.cumulative);
    let mut record = csv::StringRecord::new();
    let mut column = None;
    let mut rows = 0;
    while reader
        .read_record(&mut record)
        .map_err(|error| csv_error(path, error))?
    {
        rows += 1;
        let index = match column {
            Some(index) => index,
            None => {
                let (first, wanted) =
                    (record.iter().collect::<Vec<_>>(), options.column.as_deref());
                let (index, is_header) = choose_csv_column(&first, wanted)
                    .ok_or_else(|| lengths.missing_column(rows, wanted, &first))?;
                column = Some(index);
                if is_header {
                    continue;
                }
                index
            }
        };
        // csv refuses records of unequal lengths, so the column is there.
        lengths.push_text(rows, &record[index])?;
    }
    lengths.finish(rows)
}

/// The column to read, and whether the first row names the columns.
fn choose_csv_column(first: &[&str], wanted: Option<&str>) -> Option<(usize, bool)> {
    match (first, wanted) {
        ([field], None) if is_number_like(field) => Some((0, false)),
        _ => choose_column(first, wanted).map(|index| (index, true)),
    }
}

fn csv_error(path: &Path, error: csv::Error) -> InputError {
    let number = error.position().map_or(0, csv::Position::record) + 1;
    let place = Place {
        path: path.to_owned(),
        unit: "row",
        number,
    };
    match error.into_kind() {
        csv::ErrorKind::Io(source) => io_error(path, source),
        csv::ErrorKind::Utf8 { .. } => InputError::NotUtf8 { place },
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => InputError::Malformed {
            place,
            problem: format!("{len} columns, the rows before have {expected_len}"),
        },
        other => InputError::Malformed {
            place,
            problem: format!("not CSV: {other:?}"),
        },
    }
}

fn read_json_lines(
    source: impl BufRead,
    path: &Path,
    options: &LengthSource,
) -> Result<Vec<u64>, InputError> {
    let mut lengths = Collector::new(path, "line", options.cumulative);
    // The first object decides, so that no line silently takes its length from another field.
    let mut field: Option<String> = options.column.clone();
    let lines = for_each_line(source, path, |number, line| {
        if line.trim().is_empty() {
            return Ok(());
        }
        let value: Value = serde_json::from_str(line).map_err(|error| InputError::Malformed {
            place: lengths.place(number),
            problem: format!("not JSON from column {} on", error.column()),
        })?;
        let length = match &value {
            Value::Object(object) => {
                let names: Vec<&str> = object.keys().map(String::as_str).collect();
                let index = choose_column(&names, field.as_deref())
                    .ok_or_else(|| lengths.missing_column(number, field.as_deref(), &names))?;
                &object[field
                    .get_or_insert_with(|| names[index].to_owned())
                    .as_str()]
            }
            _ if options.column.is_some() => {
                return Err(lengths.missing_column(number, field.as_deref(), &[]));
            }
            bare => bare,
        };
        lengths.push_json(number, length)
    })?;
    lengths.finish(lines)
}

/// Whether a lone first field is meant as a number; a wrong one must not pass for a column's name.
fn is_number_like(field: &str) -> bool {
    field.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
}

fn choose_column(names: &[&str], wanted: Option<&str>) -> Option<usize> {
    let find = |wanted: &str| names.iter().position(|name| *name == wanted);
    match wanted {
        Some(wanted) => find(wanted),
        None => find("length")
            .or_else(|| find("tokens"))
            .or((names.len() == 1).then_some(0)),
    }
}
