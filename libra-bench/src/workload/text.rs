//! Lengths in text: `.txt`, `.csv` and `.jsonl`.

use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

use super::collect::{Collector, choose_column};
use super::content::Content;
use super::error::{InputError, Place};
use super::lengths::{BLOCK, Blocks};
use super::read::LengthSource;

/// Lines of a `.txt` or `.jsonl`.
pub(super) struct Lines {
    source: BufReader<Content>,
    bytes: Vec<u8>,
    /// How many were read.
    lines: u64,
    numbers: Collector,
    kind: Kind,
}

enum Kind {
    Plain,
    Json {
        /// As asked for.
        column: Option<String>,
        /// As found: the first object decides, so that no line silently takes its length from another field.
        field: Option<String>,
    },
}

impl Lines {
    /// A length a line.
    pub(super) fn plain(source: Content, path: &Path, options: &LengthSource) -> Self {
        Self::new(source, path, options, Kind::Plain)
    }

    /// A JSON value a line.
    pub(super) fn json(source: Content, path: &Path, options: &LengthSource) -> Self {
        let (column, field) = (options.column.clone(), options.column.clone());
        Self::new(source, path, options, Kind::Json { column, field })
    }

    fn new(source: Content, path: &Path, options: &LengthSource, kind: Kind) -> Self {
        Self {
            source: BufReader::with_capacity(BLOCK, source),
            bytes: Vec::new(),
            lines: 0,
            numbers: Collector::new(path, "line", options.cumulative),
            kind,
        }
    }
}

impl Blocks for Lines {
    fn fill(&mut self, block: &mut Vec<u32>) -> Result<(), InputError> {
        let numbers = &mut self.numbers;
        while block.len() < BLOCK {
            self.bytes.clear();
            let read = self.source.read_until(b'\n', &mut self.bytes);
            if read.map_err(|error| InputError::io(numbers.path(), error))? == 0 {
                return numbers.finish(self.lines);
            }
            self.lines += 1;
            let line = std::str::from_utf8(&self.bytes).map_err(|_| InputError::NotUtf8 {
                place: numbers.place(self.lines),
            })?;
            // Some editors put a byte order mark first.
            let line = match line.strip_prefix('\u{feff}') {
                Some(rest) if self.lines == 1 => rest,
                _ => line,
            };
            match &mut self.kind {
                Kind::Plain => match line.split('#').next().unwrap_or_default().trim() {
                    "" => {}
                    length => numbers.push_text(block, self.lines, length)?,
                },
                Kind::Json { column, field } => {
                    push_json_line(numbers, block, (self.lines, line), column.as_deref(), field)?;
                }
            }
        }
        Ok(())
    }
}

fn push_json_line(
    numbers: &mut Collector,
    block: &mut Vec<u32>,
    (number, line): (u64, &str),
    column: Option<&str>,
    field: &mut Option<String>,
) -> Result<(), InputError> {
    if line.trim().is_empty() {
        return Ok(());
    }
    let value: Value = serde_json::from_str(line).map_err(|error| InputError::Malformed {
        place: numbers.place(number),
        problem: format!("not JSON from column {} on", error.column()),
    })?;
    let length = match &value {
        Value::Object(object) => {
            let names: Vec<&str> = object.keys().map(String::as_str).collect();
            let index = choose_column(&names, field.as_deref())
                .ok_or_else(|| numbers.missing_column(number, field.as_deref(), &names))?;
            &object[field
                .get_or_insert_with(|| names[index].to_owned())
                .as_str()]
        }
        _ if column.is_some() => {
            return Err(numbers.missing_column(number, field.as_deref(), &[]));
        }
        bare => bare,
    };
    numbers.push_json(block, number, length)
}

/// Rows of a `.csv`.
pub(super) struct Rows {
    reader: csv::Reader<Content>,
    record: csv::StringRecord,
    wanted: Option<String>,
    /// Which column, once the first row has decided.
    column: Option<usize>,
    rows: u64,
    numbers: Collector,
}

impl Rows {
    pub(super) fn new(source: Content, path: &Path, options: &LengthSource) -> Self {
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .trim(csv::Trim::All)
            .buffer_capacity(BLOCK)
            .from_reader(source);
        Self {
            reader,
            record: csv::StringRecord::new(),
            wanted: options.column.clone(),
            column: None,
            rows: 0,
            numbers: Collector::new(path, "row", options.cumulative),
        }
    }
}

impl Blocks for Rows {
    fn fill(&mut self, block: &mut Vec<u32>) -> Result<(), InputError> {
        let numbers = &mut self.numbers;
        while block.len() < BLOCK {
            let read = self.reader.read_record(&mut self.record);
            if !read.map_err(|error| csv_error(numbers.path(), error))? {
                return numbers.finish(self.rows);
            }
            self.rows += 1;
            let index = match self.column {
                Some(index) => index,
                None => {
                    let first: Vec<&str> = self.record.iter().collect();
                    let wanted = self.wanted.as_deref();
                    let (index, is_header) = choose_csv_column(&first, wanted)
                        .ok_or_else(|| numbers.missing_column(self.rows, wanted, &first))?;
                    self.column = Some(index);
                    if is_header {
                        continue;
                    }
                    index
                }
            };
            // csv refuses records of unequal lengths, so the column is there.
            numbers.push_text(block, self.rows, &self.record[index])?;
        }
        Ok(())
    }
}

/// The column to read, and whether the first row names the columns.
fn choose_csv_column(first: &[&str], wanted: Option<&str>) -> Option<(usize, bool)> {
    match (first, wanted) {
        ([field], None) if is_number_like(field) => Some((0, false)),
        _ => choose_column(first, wanted).map(|index| (index, true)),
    }
}

/// Whether a lone first field is meant as a number; a wrong one must not pass for a column's name.
fn is_number_like(field: &str) -> bool {
    field.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
}

fn csv_error(path: &Path, error: csv::Error) -> InputError {
    let number = error.position().map_or(0, csv::Position::record) + 1;
    let place = Place {
        path: path.to_owned(),
        unit: "row",
        number,
    };
    match error.into_kind() {
        csv::ErrorKind::Io(source) => InputError::io(path, source),
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
