//! Sizes, white space and leftover markers.

use super::source::{Kind, kinds, without_literals};

const LINES_MAX: usize = 600;
const LINES_WARN: usize = 400;

/// Words that mark unfinished work. Literals may hold them.
const MARKERS: &[&str] = &["TODO", "FIXME", "XXX", "HACK", "dbg!"];

pub(super) fn problems(path: &str, text: &str) -> Vec<String> {
    let mut problems = white_space(path, text);
    if path.ends_with(".rs") {
        problems.extend(markers(path, &without_literals(text)));
        let lines = text.lines().count();
        if is_in_src(path) && lines > LINES_MAX {
            problems.push(format!(
                "{path}: {lines} lines, more than {LINES_MAX}: find the second idea in it"
            ));
        }
    } else {
        problems.extend(markers(path, text));
    }
    problems
}

pub(super) fn size_warning(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    let is_long =
        path.ends_with(".rs") && is_in_src(path) && (LINES_WARN + 1..=LINES_MAX).contains(&lines);
    is_long.then(|| format!("note: {path}: {lines} lines, more than {LINES_WARN}"))
}

fn is_in_src(path: &str) -> bool {
    path.contains("/src/")
}

fn white_space(path: &str, text: &str) -> Vec<String> {
    let is_rust = path.ends_with(".rs");
    let kinds = if is_rust {
        kinds(text)
    } else {
        vec![Kind::Code; text.len()]
    };
    let mut problems = Vec::new();
    let mut start = 0;
    for (line, number) in text.split('\n').zip(1..) {
        let is_literal = |at: usize| kinds.get(start + at) == Some(&Kind::Literal);
        if line.ends_with([' ', '\t', '\r']) && !is_literal(line.len() - 1) {
            problems.push(format!(
                "{path}:{number}: white space at the end of the line"
            ));
        }
        if is_rust && line.match_indices('\t').any(|(at, _)| !is_literal(at)) {
            problems.push(format!("{path}:{number}: a tab"));
        }
        start += line.len() + 1;
    }
    problems
}

fn markers(path: &str, text: &str) -> Vec<String> {
    let on_line = |(line, number): (&str, usize)| {
        let found = MARKERS
            .iter()
            .filter(|marker| holds_word(line, marker))
            .collect::<Vec<_>>();
        found
            .into_iter()
            .map(move |marker| format!("{path}:{number}: leftover `{marker}`"))
    };
    text.lines().zip(1..).flat_map(on_line).collect()
}

fn holds_word(line: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_in_code_and_comments_but_not_in_literals() {
        let text = "// TODO: x\nlet a = \"FIXME\"; // XXXL\ndbg!(a);\n";
        assert_eq!(
            problems("a/src/b.rs", text),
            [
                "a/src/b.rs:1: leftover `TODO`",
                "a/src/b.rs:3: leftover `dbg!`"
            ]
        );
        assert_eq!(problems("README.md", "FIXME\n").len(), 1);
    }

    #[test]
    fn white_space_is_found_outside_literals() {
        let text = "let a = \"x \n\ty\";\t\nb;\n\tc;\n";
        let found = problems("a/src/b.rs", text);
        assert_eq!(
            found,
            [
                "a/src/b.rs:2: white space at the end of the line",
                "a/src/b.rs:2: a tab",
                "a/src/b.rs:4: a tab"
            ]
        );
        assert_eq!(problems("a.md", "b  \n").len(), 1);
    }

    #[test]
    fn long_files_warn_and_then_fail() {
        let lines = |count: usize| "a;\n".repeat(count);
        assert!(
            problems("a/src/b.rs", &lines(600)).is_empty()
                && size_warning("a/src/b.rs", &lines(401)).is_some()
        );
        assert_eq!(problems("a/src/b.rs", &lines(601)).len(), 1);
        assert!(problems("a/tests/b.rs", &lines(601)).is_empty());
    }
}
