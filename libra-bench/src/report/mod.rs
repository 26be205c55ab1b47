//! What a command found out, and how it is written: one file a format.

mod csv;
mod json;
mod md;
mod read;
mod table;

pub(crate) use read::read;

use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::cli::Format;

/// Version of the JSON documents.
pub(crate) const SCHEMA: u32 = 1;

/// The name and version of this program.
pub(crate) const PROGRAM: &str = concat!("libra-bench ", env!("CARGO_PKG_VERSION"));

/// Results of one command: for people in order, for programs as one object a case.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// Name of the command.
    pub(crate) command: &'static str,
    /// Seed, where one was used.
    pub(crate) seed: Option<u64>,
    /// Id of the plan, where there is one.
    pub(crate) plan_id: Option<String>,
    /// The command line that reports the same.
    pub(crate) reproduce: String,
    /// Threads for planning.
    pub(crate) threads: usize,
    /// What was asked for.
    pub(crate) config: Value,
    /// One object a case.
    pub(crate) cases: Vec<Value>,
    /// More for the top level of the document.
    pub(crate) more: Map<String, Value>,
    /// What a page of it shows, where that is not the document.
    pub(crate) page: Option<String>,
    /// For people.
    pub(crate) blocks: Vec<Block>,
}

/// A part of what people read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Block {
    /// A remark; empty to part what follows.
    Note(String),
    /// A line of its own.
    Line(String),
    /// Numbers.
    Table(Table),
    /// The command line that prints the table above.
    Reproduce(String),
}

/// Columns under heads of one or two lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    /// Heads.
    pub(crate) columns: Vec<Column>,
    /// One text a column.
    pub(crate) rows: Vec<Vec<String>>,
}

/// Head of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Column {
    /// Upper line.
    pub(crate) name: &'static str,
    /// Lower line: the unit.
    pub(crate) unit: &'static str,
    /// Text is set left, numbers right.
    pub(crate) is_text: bool,
}

impl Column {
    /// A column of numbers.
    pub(crate) const fn number(name: &'static str, unit: &'static str) -> Self {
        Self {
            name,
            unit,
            is_text: false,
        }
    }

    /// A column of text.
    pub(crate) const fn text(name: &'static str) -> Self {
        Self {
            name,
            unit: "",
            is_text: true,
        }
    }
}

impl Report {
    /// An empty report.
    pub(crate) fn new(command: &'static str, reproduce: String) -> Self {
        Self {
            command,
            seed: None,
            plan_id: None,
            reproduce,
            threads: rayon::current_num_threads(),
            config: Value::Null,
            cases: Vec::new(),
            more: Map::new(),
            page: None,
            blocks: Vec::new(),
        }
    }

    /// Program, plan format, commit and seed.
    pub(crate) fn header(&mut self) {
        let mut line = format!("{PROGRAM}  plan-format {}", libra_sched::wire::VERSION);
        if let Some(seed) = self.seed {
            line += &format!("  seed {seed}");
        }
        if let Some(commit) = commit() {
            line += &format!("  commit {commit}");
        }
        self.note(line);
    }

    /// Adds a remark.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Note(text.into()));
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Line(text.into()));
    }

    /// Adds a table.
    pub(crate) fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    /// Adds the command line that prints the table above.
    pub(crate) fn reproduce(&mut self, command: impl Into<String>) {
        self.blocks.push(Block::Reproduce(command.into()));
    }

    /// The JSON document.
    pub(crate) fn document(&self) -> Value {
        json::document(self)
    }

    /// The report as it is written.
    pub(crate) fn text(&self, format: Format) -> String {
        match format {
            Format::Table => table::text(self),
            Format::Json => json::text(self),
            Format::Csv => csv::text(self),
            Format::Md => md::text(self),
        }
    }

    /// What a JSON document says beside the cases.
    pub(crate) fn head(&self) -> Value {
        json::head(self)
    }

    /// Writes the report; a reader that has gone is no failure.
    pub(crate) fn write(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        let text = self.text(format);
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }
}

/// The commit this program was built from, if the build said so.
pub(crate) fn commit() -> Option<&'static str> {
    option_env!("LIBRA_COMMIT").filter(|commit| !commit.is_empty())
}
