//! What a sweep that ended early has done, from its report.

use std::path::Path;

use serde_json::{Map, Value};

use super::combinations::Combination;
use crate::failure::Failure;
use crate::identity::FileIdentity;
use crate::report::{self, Report};

/// Of each combination the case that `path` holds, if any. `report` is the report of this sweep: both must agree in all
/// that decides a number.
pub(super) fn cases(
    path: &Path,
    report: &Report,
    combinations: &[Combination],
) -> Result<Vec<Option<Value>>, Failure> {
    let mut cases = vec![None; combinations.len()];
    if !path.exists() {
        return Ok(cases);
    }
    let other = |differs: String| Failure::Resume {
        path: path.to_owned(),
        differs,
    };
    let found = report::read(path)?;
    let own = report.head();
    for name in ["command", "seed", "commit"] {
        differs(name, &found[name], &own[name]).map_or(Ok(()), |text| Err(other(text)))?;
    }
    let version = |head: &Value| head["environment"]["version"].clone();
    if let Some(text) = differs("version", &version(&found), &version(&own)) {
        return Err(other(text));
    }
    let empty = Map::new();
    let config = |head: &'_ Value| head["config"].as_object().unwrap_or(&empty).clone();
    let (theirs, ours) = (config(&found), config(&own));
    if let Some(text) = file_differs(&theirs, &ours) {
        return Err(other(text));
    }
    for name in ours.keys().chain(theirs.keys()) {
        let value = |config: &Map<String, Value>| config.get(name).cloned().unwrap_or_default();
        if let Some(text) = differs(&format!("config.{name}"), &value(&theirs), &value(&ours)) {
            return Err(other(text));
        }
    }
    // Cases lie in the order of the combinations; some may be missing.
    let mut left = combinations.iter().enumerate();
    for case in found["cases"].as_array().into_iter().flatten() {
        let is_of =
            |one: &Combination| (one.json().iter()).all(|(name, value)| case[name] == *value);
        let Some((place, _)) = left.find(|(_, one)| is_of(one)) else {
            return Err(other(
                "a case is of no combination asked for here".to_owned(),
            ));
        };
        // One that was interrupted is done again.
        if case["interrupted"] != Value::Bool(true) {
            cases[place] = Some(case.clone());
        }
    }
    Ok(cases)
}

/// A file that both were made from and that was another then.
fn file_differs(there: &Map<String, Value>, here: &Map<String, Value>) -> Option<String> {
    let files = |config: &Map<String, Value>| -> Vec<FileIdentity> {
        let files = config.get("files").cloned().unwrap_or_default();
        serde_json::from_value(files).unwrap_or_default()
    };
    let theirs = files(there);
    files(here).into_iter().find_map(|own| {
        let other = theirs.iter().find(|other| other.file == own.file)?;
        (*other != own).then(|| format!("{} has {other} there and {own} here", own.file))
    })
}

fn differs(name: &str, there: &Value, here: &Value) -> Option<String> {
    (there != here).then(|| format!("{name} is {there} there and {here} here"))
}
