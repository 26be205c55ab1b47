//! One line a case. A list becomes its items parted by semicolons; an object one column a key.

use serde_json::Value;

use super::Report;

pub(super) fn text(report: &Report) -> String {
    let rows: Vec<Vec<(String, String)>> = report
        .cases
        .iter()
        .map(|case| {
            let mut row = Vec::new();
            flatten("", case, &mut row);
            row
        })
        .collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |fields: &mut dyn Iterator<Item = &str>| {
        writer.write_record(fields).expect("memory takes it all");
    };
    if !names.is_empty() {
        write(&mut names.iter().copied());
    }
    for row in &rows {
        let field = |name: &&str| row.iter().find(|(have, _)| have == name);
        write(
            &mut names
                .iter()
                .map(|name| field(name).map_or("", |(_, text)| text)),
        );
    }
    let bytes = writer.into_inner().expect("memory takes it all");
    String::from_utf8(bytes).expect("fields are text")
}

fn flatten(prefix: &str, value: &Value, row: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let name = if prefix.is_empty() {
                    key.clone()
                } else {
                    format!("{prefix}_{key}")
                };
                flatten(&name, value, row);
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(scalar).collect();
            row.push((prefix.to_owned(), items.join(";")));
        }
        other => row.push((prefix.to_owned(), scalar(other))),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
