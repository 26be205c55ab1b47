//! `cargo xtask tidy`: what no compiler checks.
//!
//! Each rule is a function from texts to problems, so that its tests can show it a text that breaks it.

mod mentions;
mod modules;
mod source;
mod stages;
mod text;

use std::collections::BTreeMap;

use crate::markdown;
use crate::process::{Outcome, Trouble, verdict};
use crate::tree::Tree;

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Files by path from the root.
type Texts = BTreeMap<String, String>;

pub(crate) fn main(tree: &Tree) -> Outcome {
    let paths = tree.files("")?;
    let texts = read_all(tree, &paths)?;
    let sources: Texts = texts
        .iter()
        .filter(|(path, _)| path.ends_with(".rs"))
        .map(|(p, t)| (p.clone(), t.clone()))
        .collect();

    let mut problems = stages::problems(&sources);
    problems.extend(modules::unreachable_files(&sources));
    problems.extend(modules::missing_attributes(&sources));
    problems.extend(
        texts
            .iter()
            .flat_map(|(path, text)| text::problems(path, text)),
    );
    match texts.get(ARCHITECTURE) {
        Some(text) => problems.extend(mentions::problems(ARCHITECTURE, text, &paths, &sources)),
        None => problems.push(format!("{ARCHITECTURE}: does not exist")),
    }
    for page in paths.iter().filter(|path| path.ends_with(".md")) {
        problems.extend(markdown::broken_links(tree, page)?);
    }
    for warning in texts
        .iter()
        .filter_map(|(path, text)| text::size_warning(path, text))
    {
        println!("{warning}");
    }
    verdict(&problems)?;
    println!("{} sources, {} files", sources.len(), paths.len());
    Ok(())
}

fn read_all(tree: &Tree, paths: &[String]) -> Result<Texts, Trouble> {
    let is_text = |path: &&String| {
        [".rs", ".toml", ".md"]
            .iter()
            .any(|end| path.ends_with(end))
    };
    paths
        .iter()
        .filter(is_text)
        .map(|path| Ok((path.clone(), tree.read(path)?)))
        .collect()
}
