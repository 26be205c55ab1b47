//! Reports that were written before.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::SCHEMA;
use crate::failure::Failure;

/// The JSON report in `path`.
///
/// # Errors
/// A file that cannot be read, is no JSON, is no report, or is one of another schema.
pub(crate) fn read(path: &Path) -> Result<Value, Failure> {
    let refuse = |why: String| Failure::NoReport {
        path: path.to_owned(),
        why,
    };
    // A pipe would be waited for and a device read without end.
    let text = fs::metadata(path).and_then(|found| match found.is_file() {
        true => fs::read(path),
        false => Err(std::io::Error::other("it is not a regular file")),
    });
    let text = text.map_err(|source| Failure::Read {
        path: path.to_owned(),
        source,
    })?;
    let report: Value = serde_json::from_slice(&text).map_err(|error| refuse(error.to_string()))?;
    if !report.is_object() {
        return Err(refuse("it is not an object".to_owned()));
    }
    match &report["schema"] {
        Value::Null => return Err(refuse("it has no schema".to_owned())),
        schema if *schema != SCHEMA => {
            return Err(refuse(format!("its schema is {schema}, legal is {SCHEMA}")));
        }
        _ => {}
    }
    if !report["command"].is_string() {
        return Err(refuse("it names no command".to_owned()));
    }
    let cases = report["cases"].as_array();
    match cases.and_then(|cases| cases.iter().position(|case| !case.is_object())) {
        Some(case) => Err(refuse(format!("case {case} is not an object"))),
        None if cases.is_none() => Err(refuse("it has no list of cases".to_owned())),
        None => Ok(report),
    }
}
