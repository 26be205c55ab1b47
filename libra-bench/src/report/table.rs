//! Columns for people: heads and remarks begin with `#`, rows do not.

use super::{Block, Column, Report, Table};

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    for block in &report.blocks {
        match block {
            Block::Note(note) if note.is_empty() => text += "#\n",
            Block::Note(note) => text += &format!("# {note}\n"),
            Block::Line(line) => text += &format!("{line}\n"),
            Block::Table(table) => text += &table_text(table),
            Block::Reproduce(command) => text += &format!("# Reproduce: {command}\n"),
        }
    }
    text
}

fn table_text(table: &Table) -> String {
    let widths: Vec<usize> = (table.columns.iter().enumerate())
        .map(|(index, column)| {
            let cells = table.rows.iter().map(|row| width(&row[index]));
            let heads = [width(column.name), width(column.unit)];
            cells.chain(heads).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    let mut line = |start: &str, cells: Vec<&str>| {
        let mut line = start.to_owned();
        for ((cell, column), &width) in cells.into_iter().zip(&table.columns).zip(&widths) {
            line += if line.len() > start.len() { "  " } else { " " };
            line += &aligned(cell, column, width);
        }
        text += line.trim_end();
        text.push('\n');
    };
    let heads = &table.columns;
    line("#", heads.iter().map(|column| column.name).collect());
    if heads.iter().any(|column| !column.unit.is_empty()) {
        line("#", heads.iter().map(|column| column.unit).collect());
    }
    for row in &table.rows {
        line(" ", row.iter().map(String::as_str).collect());
    }
    text
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn aligned(text: &str, column: &Column, to: usize) -> String {
    let blanks = " ".repeat(to - width(text));
    if column.is_text {
        format!("{text}{blanks}")
    } else {
        format!("{blanks}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_right_and_text_left() {
        let table = Table {
            columns: vec![Column::text("method"), Column::number("time", "ms")],
            rows: vec![
                vec!["libra".into(), "1.5".into()],
                vec!["a".into(), "12 µs".into()],
            ],
        };
        assert_eq!(
            table_text(&table),
            "# method   time\n#            ms\n  libra     1.5\n  a       12 µs\n"
        );
    }
}
