//! Every source file is part of its crate, and every crate says what it thinks of `unsafe`.

use std::collections::BTreeSet;

use super::Texts;
use super::source::only_code;

/// What the root of each crate states.
const ATTRIBUTES: &[(&str, &str)] = &[
    ("libra-sched/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("libra-exec/src/lib.rs", "#![deny(unsafe_code)]"),
    ("libra-bench/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("libra-bench/src/main.rs", "#![forbid(unsafe_code)]"),
    ("tests/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("xtask/src/main.rs", "#![forbid(unsafe_code)]"),
];

pub(super) fn missing_attributes(sources: &Texts) -> Vec<String> {
    let states = |root: &str, attribute: &str| {
        sources
            .get(root)
            .is_some_and(|text| only_code(text).lines().any(|line| line.trim() == attribute))
    };
    let missing = ATTRIBUTES
        .iter()
        .filter(|(root, attribute)| !states(root, attribute));
    missing
        .map(|(root, attribute)| format!("{root}: does not state `{attribute}`"))
        .collect()
}

/// Files in a crate's `src` that no `mod` leads to.
pub(super) fn unreachable_files(sources: &Texts) -> Vec<String> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&str> = sources
        .keys()
        .map(String::as_str)
        .filter(|path| is_root(path))
        .collect();
    while let Some(path) = waiting.pop() {
        if reached.insert(path) {
            let candidates = declared(&sources[path])
                .into_iter()
                .flat_map(|name| files_of(path, &name));
            waiting.extend(
                candidates
                    .filter_map(|file| sources.get_key_value(&file))
                    .map(|(path, _)| path.as_str()),
            );
        }
    }
    let in_src = sources.keys().filter(|path| crate_file(path).is_some());
    let dead = in_src.filter(|path| !reached.contains(path.as_str()));
    dead.map(|path| format!("{path}: no `mod` leads to it"))
        .collect()
}

/// The part of a path below a crate's `src`.
fn crate_file(path: &str) -> Option<&str> {
    path.split_once("/src/").map(|(_, file)| file)
}

fn is_root(path: &str) -> bool {
    crate_file(path)
        .is_some_and(|file| matches!(file, "lib.rs" | "main.rs") || file.starts_with("bin/"))
}

/// The names in `mod name;`.
fn declared(text: &str) -> Vec<String> {
    let code = only_code(text);
    let name = |line: &str| {
        let words: Vec<&str> = line.trim().strip_suffix(';')?.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "mod")?;
        // Before `mod` stand only a visibility and attributes.
        let before_is_fine = words[..at].iter().all(|word| {
            word.starts_with("pub") || word.starts_with("#[") || word.ends_with([')', ']'])
        });
        words
            .get(at + 1)
            .filter(|_| before_is_fine && words.len() == at + 2)
            .map(|name| (*name).to_owned())
    };
    code.lines().filter_map(name).collect()
}

/// Where the module `name` declared in the file `path` may be.
fn files_of(path: &str, name: &str) -> [String; 2] {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = match file {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        _ => path.trim_end_matches(".rs").to_owned(),
    };
    [
        format!("{folder}/{name}.rs"),
        format!("{folder}/{name}/mod.rs"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Texts {
        files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn a_file_without_a_declaration_is_dead() {
        let sources = sources(&[
            ("a/src/lib.rs", "pub mod b;\npub(crate) mod d;\n// mod e;\n"),
            ("a/src/b.rs", "mod c;\n"),
            ("a/src/b/c.rs", ""),
            ("a/src/d/mod.rs", "#[cfg(test)] mod f;\n"),
            ("a/src/d/f.rs", ""),
            ("a/src/e.rs", ""),
            ("a/tests/g.rs", ""),
        ]);
        assert_eq!(
            unreachable_files(&sources),
            ["a/src/e.rs: no `mod` leads to it"]
        );
    }

    #[test]
    fn a_root_that_permits_unsafe_code_is_reported() {
        let all = ATTRIBUTES
            .iter()
            .map(|(root, attribute)| ((*root).to_owned(), format!("//! Doc.\n{attribute}\n")));
        let mut sources: Texts = all.collect();
        assert_eq!(missing_attributes(&sources), [""; 0]);
        sources.insert(
            "tests/src/lib.rs".into(),
            "// #![forbid(unsafe_code)]\n".into(),
        );
        assert_eq!(
            missing_attributes(&sources),
            ["tests/src/lib.rs: does not state `#![forbid(unsafe_code)]`"]
        );
    }
}
