//! Which documents the page is made of, and the commands that make them again.

use maud::html;

use super::document::cell;
use super::parts::Grid;
use super::{Document, Section};

pub(super) fn section(documents: &[Document]) -> Section {
    let mut grid = Grid::new(
        "Documents of this page",
        &[
            "file", "command", "lengths", "windows", "seed", "commit", "program", "machine",
            "threads",
        ],
    );
    for document in documents {
        let value = &document.value;
        let (config, environment) = (&value["config"], &value["environment"]);
        let machine = match (environment["os"].as_str(), environment["arch"].as_str()) {
            (Some(os), Some(arch)) => format!("{os} {arch}"),
            _ => "-".to_owned(),
        };
        let own = [&value["seed"], &value["commit"], &environment["version"]].map(cell);
        let [seed, commit, program] = own;
        grid.rows.push(vec![
            document.name.clone(),
            document.command.clone(),
            cell(&config["lengths"]),
            cell(&config["windows"]),
            seed,
            commit,
            program,
            machine,
            cell(&environment["threads"]),
        ]);
    }
    let commands = documents
        .iter()
        .filter_map(|document| Some((&document.name, document.value["reproduce"].as_str()?)));
    Section {
        id: "inputs",
        title: "Inputs",
        content: Ok(html! {
            (grid.draw())
            @for (name, command) in commands {
                p { (name) " again: " code { (command) } }
            }
        }),
    }
}
