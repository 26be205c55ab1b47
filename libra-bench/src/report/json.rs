//! One JSON document. Names carry their unit; nothing of the environment but what is listed here.

use serde_json::{Map, Value, json};

use super::{Report, SCHEMA, commit};

/// All but the cases and what comes beside them.
pub(super) fn head(report: &Report) -> Value {
    json!({
        "schema": SCHEMA,
        "command": report.command,
        "seed": report.seed,
        "commit": commit(),
        "plan_id": report.plan_id,
        "reproduce": report.reproduce,
        "config": report.config,
        "environment": {
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
            "threads": report.threads,
            "version": env!("CARGO_PKG_VERSION"),
        },
    })
}

pub(super) fn text(report: &Report) -> String {
    let text = serde_json::to_string_pretty(&document(report));
    text.expect("keys of the document are strings") + "\n"
}

/// The whole document.
pub(super) fn document(report: &Report) -> Value {
    let mut document = match head(report) {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    document.extend(report.more.clone());
    document.insert("cases".to_owned(), Value::Array(report.cases.clone()));
    Value::Object(document)
}
