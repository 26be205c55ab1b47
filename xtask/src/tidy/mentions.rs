//! Paths and names in a description of the code exist in the code.

use std::collections::BTreeSet;

use super::Texts;
use super::source::only_code;
use crate::markdown::code_spans;

/// Roots of paths that are not ours to check.
const FOREIGN: &[&str] = &[
    "std", "core", "alloc", "clippy", "proptest", "insta", "ndarray", "cudarc", "mpi", "bytemuck",
];

pub(super) fn problems(page: &str, text: &str, paths: &[String], sources: &Texts) -> Vec<String> {
    let names = Names::of(sources);
    let mut problems = Vec::new();
    for span in code_spans(text) {
        let missing = if is_path(&span.text) {
            expand(&span.text)
                .into_iter()
                .filter(|pattern| !path_exists(pattern, paths))
                .collect::<Vec<_>>()
        } else if span.text.contains("::") {
            expand(&path_of(&span.text))
                .into_iter()
                .filter(|name| !names.know(name))
                .collect()
        } else {
            continue;
        };
        problems.extend(
            missing
                .into_iter()
                .map(|what| format!("{page}:{}: `{what}` does not exist", span.line)),
        );
    }
    problems
}

fn is_path(span: &str) -> bool {
    let ends = [".rs", ".toml", ".md", "/"];
    !span.contains([' ', ':']) && span.len() > 1 && ends.iter().any(|end| span.ends_with(end))
}

/// Every word and module of our crates.
struct Names {
    crates: BTreeSet<String>,
    words: BTreeSet<String>,
}

impl Names {
    fn of(sources: &Texts) -> Self {
        let (mut crates, mut words) = (BTreeSet::new(), BTreeSet::new());
        for (path, text) in sources {
            let Some((folder, file)) = path.split_once("/src/") else {
                continue;
            };
            crates.insert(folder.replace('-', "_"));
            words.extend(file.trim_end_matches(".rs").split('/').map(str::to_owned));
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            words.extend(only_code(text).split(|c| !is_word(c)).map(str::to_owned));
        }
        // The folder `tests` holds the crate `libra_tests`, and `docs` has no `src` of Rust.
        crates.extend(["crate", "libra_tests", "libra_docs"].map(str::to_owned));
        Self { crates, words }
    }

    /// Whether every part of `a::b::c` is a crate or occurs in code; a comment's word does not count.
    fn know(&self, name: &str) -> bool {
        let mut parts = name.split("::").filter(|part| !part.is_empty());
        let Some(root) = parts.next() else {
            return true;
        };
        if FOREIGN.contains(&root) {
            return true;
        }
        let knows = |part: &str| self.words.contains(part);
        (self.crates.contains(root) || knows(root)) && parts.all(knows)
    }
}

/// The path at the start of `place::name(…)` or `Type::new(…)?`.
fn path_of(span: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || "_:{},*".contains(c);
    let braces_closed = span.replace(", ", ",");
    let end = braces_closed
        .find(|c| !is_part(c))
        .unwrap_or(braces_closed.len());
    braces_closed[..end]
        .replace("::*", "")
        .trim_end_matches([',', ':'])
        .to_owned()
}

/// `a/{b,c}/d` as `a/b/d` and `a/c/d`.
fn expand(pattern: &str) -> Vec<String> {
    let parts = pattern
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (choices, after))) = parts else {
        return vec![pattern.to_owned()];
    };
    choices
        .split(',')
        .flat_map(|choice| expand(&format!("{before}{}{after}", choice.trim())))
        .collect()
}

/// Whether a file or folder fits, from the root or from a crate's `src`; `*` stands for one name.
fn path_exists(pattern: &str, paths: &[String]) -> bool {
    let wanted: Vec<&str> = pattern.trim_end_matches('/').split('/').collect();
    let fits = |path: &str| {
        let names: Vec<&str> = path.split('/').collect();
        let is_same_kind =
            names.len() > wanted.len() || !pattern.ends_with('/') && names.len() == wanted.len();
        is_same_kind
            && wanted
                .iter()
                .zip(names)
                .all(|(wanted, name)| *wanted == "*" || *wanted == name)
    };
    let in_crate = |path: &String| path.split_once("/src/").is_some_and(|(_, file)| fits(file));
    // Hidden folders are not walked, and few are named.
    pattern.starts_with('.') || paths.iter().any(|path| fits(path) || in_crate(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let source = "pub struct PoolPlan;\npub fn place() {}\n// pub fn gone() {}\n";
        let sources: Texts = [(
            "libra-sched/src/vrsp/paper.rs".to_owned(),
            source.to_owned(),
        )]
        .into();
        let paths = [
            "Cargo.toml",
            "docs/src/a.md",
            "libra-sched/src/vrsp/paper.rs",
        ]
        .map(str::to_owned);
        problems("ARCHITECTURE.md", text, &paths, &sources)
    }

    #[test]
    fn what_exists_passes() {
        let text = "`Cargo.toml` `docs/` `docs/src/` `vrsp/{paper}.rs` `*/src/vrsp/paper.rs` `libra_sched::vrsp::place(x)?`
            `vrsp::{paper, place}` `crate::PoolPlan` `std::gone` `plain words`\n```\n`gone.rs`\n```\n";
        assert_eq!(check(text), [""; 0]);
    }

    #[test]
    fn what_does_not_exist_is_reported() {
        assert_eq!(
            check("`docs/b.md`"),
            ["ARCHITECTURE.md:1: `docs/b.md` does not exist"]
        );
        for bad in [
            "gone/",
            "vrsp/{paper,gone}.rs",
            "Cargo.toml/",
            "vrsp::gone",
            "gone::place",
            "libra_exec::place",
        ] {
            assert_eq!(check(&format!("`{bad}`")).len(), 1, "{bad}");
        }
    }
}
