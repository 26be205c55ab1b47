//! Documents that the commands wrote: what a page needs of them, and nothing if it is not there.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::report::SCHEMA;

/// Why a file is no document of ours.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentError {
    /// It cannot be read.
    #[error("{path}: cannot be read")]
    Read {
        /// The file.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// It is not JSON.
    #[error("{path}: is not JSON")]
    Json {
        /// The file.
        path: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// It is something else.
    #[error(
        "{path}: is neither a report nor a trace; `libra-bench COMMAND --format json` writes reports"
    )]
    Foreign {
        /// The file.
        path: String,
    },
    /// A program that is newer than this one wrote it.
    #[error("{path}: has schema {schema}, this program reads up to {SCHEMA}")]
    Newer {
        /// The file.
        path: String,
        /// Its schema.
        schema: u64,
    },
}

/// One document.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// Where it was.
    pub(crate) name: String,
    /// Command that wrote it; `trace` for events over time.
    pub(crate) command: String,
    /// All of it.
    pub(crate) value: Value,
}

impl Document {
    /// Reads `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, DocumentError> {
        let name = path.to_string_lossy().into_owned();
        let bytes = fs::read(path).map_err(|source| DocumentError::Read {
            path: name.clone(),
            source,
        })?;
        let value = serde_json::from_slice(&bytes).map_err(|source| DocumentError::Json {
            path: name.clone(),
            source,
        })?;
        Self::new(name, value)
    }

    /// A document that was at `name`.
    pub(crate) fn new(name: String, value: Value) -> Result<Self, DocumentError> {
        let command = match (value["command"].as_str(), value["schema"].as_u64()) {
            (Some(_), Some(schema)) if schema > u64::from(SCHEMA) => {
                return Err(DocumentError::Newer { path: name, schema });
            }
            (Some(command), Some(_)) => command.to_owned(),
            _ if value["traceEvents"].is_array() => "trace".to_owned(),
            _ => return Err(DocumentError::Foreign { path: name }),
        };
        Ok(Self {
            name,
            command,
            value,
        })
    }

    /// Its cases; none where it has none.
    pub(crate) fn cases(&self) -> &[Value] {
        self.value["cases"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Whether one of `commands` wrote it.
    pub(crate) fn is_of(&self, commands: &[&str]) -> bool {
        commands.contains(&self.command.as_str())
    }
}

/// A text, a number or nothing, for a cell.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// All numbers of a list.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(Value::as_f64).collect()
}
