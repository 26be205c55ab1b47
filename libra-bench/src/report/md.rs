//! Markdown: paragraphs and tables.

use super::{Block, Report, Table};

pub(super) fn text(report: &Report) -> String {
    let mut paragraphs: Vec<String> = Vec::new();
    for block in &report.blocks {
        match block {
            Block::Note(text) | Block::Line(text) if text.is_empty() => {}
            Block::Note(text) | Block::Line(text) => paragraphs.push(text.clone()),
            Block::Table(table) => paragraphs.push(table_text(table)),
            Block::Reproduce(command) => paragraphs.push(format!("Reproduce: `{command}`")),
        }
    }
    paragraphs.join("\n\n") + "\n"
}

fn table_text(table: &Table) -> String {
    let heads = table.columns.iter().map(|column| match column.unit {
        "" => column.name.to_owned(),
        unit => format!("{} {unit}", column.name).trim().to_owned(),
    });
    let rule = (table.columns.iter()).map(|column| if column.is_text { ":--" } else { "--:" });
    let mut lines = vec![line(heads), line(rule.map(str::to_owned))];
    for row in &table.rows {
        lines.push(line(row.iter().map(|cell| cell.replace('|', r"\|"))));
    }
    lines.join("\n")
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}
