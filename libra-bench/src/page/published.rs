//! The paper's numbers beside ours, from `figures`.

use super::document::cell;
use super::parts::Grid;
use super::{Document, Section};
use crate::plot::value_text;

pub(super) fn section(documents: &[Document]) -> Section {
    let grids: Vec<Grid> = documents
        .iter()
        .filter(|document| document.is_of(&["figures"]))
        .map(grid)
        .collect();
    Section {
        id: "published",
        title: "Beside the paper",
        content: if grids.is_empty() {
            Err("published numbers beside ours: `figures --format json`")
        } else {
            Ok(maud::html! { @for grid in &grids { (grid.draw()) } })
        },
    }
}

fn grid(document: &Document) -> Grid {
    let heads = [
        "figure",
        "corpus",
        "method",
        "at",
        "quantity",
        "paper",
        "ours",
        "beside",
        "why they may differ",
    ];
    let mut grid = Grid::new(format!("{}: published numbers", document.name), &heads);
    for case in document.cases() {
        let mut row: Vec<String> = ["figure", "corpus", "method", "at", "quantity"]
            .map(|field| cell(&case[field]))
            .into();
        row.extend(
            ["paper", "ours", "beside"]
                .map(|field| case[field].as_f64().map_or("-".to_owned(), value_text)),
        );
        row.push(cell(&case["why"]));
        grid.rows.push(row);
    }
    grid
}
