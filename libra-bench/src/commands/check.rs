//! `check`: is this a plan, and does it keep its own rules?

use std::fs;
use std::path::{Path, PathBuf};

use libra_sched::{verify, wire};
use serde_json::{Value, json};

use super::{Context, Outcome, code, typed};
use crate::exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::preset::command_line;
use crate::report::Report;

/// A plan file, decoded.
pub(super) fn open(path: &Path) -> Result<(Vec<u8>, wire::Decoded), Failure> {
    // A pipe would be waited for and a device read without end.
    let whole = fs::metadata(path).and_then(|found| {
        if found.is_file() {
            fs::read(path)
        } else {
            Err(std::io::Error::other("it is not a regular file"))
        }
    });
    let bytes = whole.map_err(|source| Failure::Read {
        path: path.to_owned(),
        source,
    })?;
    let decoded = wire::open(&bytes).map_err(|source| Failure::Decode {
        path: path.to_owned(),
        source,
    })?;
    Ok((bytes, decoded))
}

pub(super) fn run(context: &Context, files: &[PathBuf]) -> Outcome {
    let names: Vec<String> = files.iter().map(|file| typed(file)).collect();
    let words = ["libra-bench", "check"].into_iter();
    let command = command_line(words.chain(names.iter().map(String::as_str)));
    let mut report = Report::new("check", command);
    report.config = json!({ "files": names });
    let mut all: Vec<Value> = Vec::new();
    let (mut unreadable, progress) = (false, context.progress("checked", files.len() as u64));
    for (path, name) in files.iter().zip(&names) {
        if interrupt::requested() {
            break;
        }
        match open(path) {
            Ok((_, decoded)) => {
                let found = verify::check(&decoded.plan);
                let violations: Vec<String> = found.iter().map(ToString::to_string).collect();
                show(&mut report, name, &decoded.id.to_string(), &violations);
                all.extend(violations.into_iter().map(Value::String));
            }
            Err(failure) => {
                context.say("error", "31", &failure.message());
                unreadable = true;
                report.cases.push(json!({
                    "file": name, "plan_id": null, "violations": [], "error": failure.message(),
                }));
            }
        }
        progress.step();
    }
    drop(progress);
    if !report.blocks.is_empty() {
        report.reproduce(report.reproduce.clone());
    }
    let verdict = match (all.is_empty(), unreadable) {
        (false, _) => exit::CHECK,
        (true, true) => exit::INPUT,
        (true, false) => code(),
    };
    report
        .more
        .insert("violations".to_owned(), Value::Array(all));
    Ok((report, verdict))
}

fn show(report: &mut Report, name: &str, id: &str, violations: &[String]) {
    match violations.len() {
        0 => report.line(format!("{name}: ok {id}")),
        1 => report.line(format!("{name}: 1 violation, plan {id}")),
        count => report.line(format!("{name}: {count} violations, plan {id}")),
    }
    for violation in violations {
        report.line(format!("  {violation}"));
    }
    report.cases.push(json!({
        "file": name, "plan_id": id, "violations": violations,
    }));
}
