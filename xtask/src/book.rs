//! `cargo xtask book`: the book's chapters, links and anchors.

use std::collections::BTreeSet;
use std::process::Command;

use crate::markdown;
use crate::process::{Outcome, answers, run, verdict};
use crate::tree::Tree;

const SOURCES: &str = "docs/src";
const SUMMARY: &str = "docs/src/SUMMARY.md";

pub(crate) fn main(tree: &Tree) -> Outcome {
    let pages: Vec<String> = tree
        .files(SOURCES)?
        .into_iter()
        .filter(|file| file.ends_with(".md"))
        .collect();
    let mut problems = unlisted(&tree.read(SUMMARY)?, &pages);
    for page in &pages {
        problems.extend(markdown::broken_links(tree, page)?);
    }
    verdict(&problems)?;
    println!("{} pages, all listed, all links resolve", pages.len());
    build(tree)
}

fn build(tree: &Tree) -> Outcome {
    if answers(Command::new("mdbook").arg("--version")) {
        return run(Command::new("mdbook")
            .args(["build", "docs"])
            .current_dir(tree.root()));
    }
    println!("html not built: mdbook is not installed");
    Ok(())
}

/// The pages that the summary leaves out.
fn unlisted(summary: &str, pages: &[String]) -> Vec<String> {
    let links = markdown::links(summary);
    let listed: BTreeSet<String> = links
        .iter()
        .filter_map(|link| markdown::resolve(SUMMARY, &link.text))
        .collect();
    let missing = pages
        .iter()
        .filter(|page| *page != SUMMARY && !listed.contains(*page));
    missing
        .map(|page| format!("{page}: not listed in {SUMMARY}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_outside_the_summary_is_reported() {
        let pages = ["SUMMARY.md", "a.md", "deep/b.md"].map(|page| format!("{SOURCES}/{page}"));
        assert_eq!(
            unlisted("- [A](a.md)\n- [B](./deep/b.md)\n", &pages),
            [""; 0]
        );
        assert_eq!(
            unlisted("- [A](a.md)\n", &pages),
            ["docs/src/deep/b.md: not listed in docs/src/SUMMARY.md"]
        );
    }
}
