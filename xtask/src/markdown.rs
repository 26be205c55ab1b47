//! As much of Markdown as a link check needs.

use std::collections::BTreeSet;

use crate::process::Trouble;
use crate::tree::Tree;

/// Something found on a line, counted from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Targets of `[text](target)` and `[label]: target`, outside code.
pub(crate) fn links(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    for (line, prose) in prose(text) {
        let (prose, _) = split_spans(prose);
        let targets = inline_targets(&prose)
            .into_iter()
            .chain(defined_target(&prose));
        found.extend(targets.map(|text| Found { line, text }));
    }
    found
}

/// Contents of `` `spans` `` outside fenced code.
pub(crate) fn code_spans(text: &str) -> Vec<Found> {
    let spans = |(line, prose)| {
        split_spans(prose)
            .1
            .into_iter()
            .map(move |text| Found { line, text })
    };
    prose(text).flat_map(spans).collect()
}

/// The anchors that headings give, as mdBook and the usual forges spell them.
pub(crate) fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let anchor = slug(title.trim());
        let numbered = |count: usize| {
            if count == 0 {
                anchor.clone()
            } else {
                format!("{anchor}-{count}")
            }
        };
        let free = (0..).map(numbered).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

/// The links of `file` that lead nowhere, as `file:line: why`.
pub(crate) fn broken_links(tree: &Tree, file: &str) -> Result<Vec<String>, Trouble> {
    let text = tree.read(file)?;
    let exists = |path: &str| tree.exists(path);
    let anchors_of = |path: &str| {
        if path == file {
            Some(anchors(&text))
        } else {
            Some(anchors(&tree.read(path).ok()?))
        }
    };
    Ok(links(&text)
        .iter()
        .filter_map(|link| broken(file, link, exists, anchors_of))
        .collect())
}

fn broken(
    file: &str,
    link: &Found,
    exists: impl Fn(&str) -> bool,
    anchors_of: impl Fn(&str) -> Option<BTreeSet<String>>,
) -> Option<String> {
    if is_external(&link.text) {
        return None;
    }
    let (target, anchor) = match link.text.split_once('#') {
        Some((target, anchor)) => (target, Some(anchor)),
        None => (link.text.as_str(), None),
    };
    let at = format!("{file}:{}", link.line);
    let Some(path) = resolve(file, target) else {
        return Some(format!("{at}: link `{target}` leaves the repository"));
    };
    if !exists(&path) {
        return Some(format!(
            "{at}: link `{target}` leads to `{path}`, which does not exist"
        ));
    }
    let anchor = anchor.filter(|_| path.ends_with(".md"))?;
    let known = anchors_of(&path).is_some_and(|anchors| anchors.contains(anchor));
    (!known).then(|| format!("{at}: `{path}` has no heading `#{anchor}`"))
}

/// The path, from the root, that a relative link in `file` leads to.
pub(crate) fn resolve(file: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(file.to_owned());
    }
    let mut folders: Vec<&str> = file.split('/').collect();
    folders.pop();
    for step in target.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                folders.pop()?;
            }
            name => folders.push(name),
        }
    }
    Some(folders.join("/"))
}

/// Whether the target begins with a scheme, such as `https:`.
fn is_external(target: &str) -> bool {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        scheme.len() > 1
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '+')
    })
}

/// Lines outside fenced code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let trimmed = line.trim_start();
        let opening = ["```", "~~~"]
            .into_iter()
            .find(|mark| trimmed.starts_with(mark));
        match (fence, opening) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, Some(mark)) => fence = Some(mark),
            (None, None) => return Some((index + 1, line)),
        }
        None
    })
}

/// A line without its code spans, and the spans.
fn split_spans(line: &str) -> (String, Vec<String>) {
    let (mut prose, mut spans) = (String::new(), Vec::new());
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].chars().take_while(|c| *c == '`').count();
        let (before, after) = (&rest[..start], &rest[start + ticks..]);
        prose.push_str(before);
        // Every opening of one tick is a span here; a span over two lines is prose.
        let Some(end) = after.find(&"`".repeat(ticks)) else {
            rest = after;
            continue;
        };
        spans.push(after[..end].trim().to_owned());
        rest = &after[end + ticks..];
    }
    prose.push_str(rest);
    (prose, spans)
}

fn inline_targets(prose: &str) -> Vec<String> {
    let starts = prose.match_indices("](").map(|(at, mark)| at + mark.len());
    starts
        .filter_map(|start| Some(destination(prose[start..].split_once(')')?.0)))
        .collect()
}

fn defined_target(prose: &str) -> Option<String> {
    let (label, target) = prose.trim_start().strip_prefix('[')?.split_once("]: ")?;
    // A footnote defines a text, not a target.
    (!label.starts_with('^')).then(|| destination(target))
}

/// The target without the title that may follow it.
fn destination(text: &str) -> String {
    text.split_whitespace()
        .next()
        .unwrap_or("")
        .trim_matches(['<', '>'])
        .to_owned()
}

fn slug(title: &str) -> String {
    let kept = title.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ if c.is_alphanumeric() => Some(c),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A plan, by hand\n[one](a.md#x) and ![two](b.png \"title\")\n```\n[no](c.md)\n```\n`[no](d.md)`\n[ref]: e.md\n";

    fn targets(text: &str) -> Vec<String> {
        links(text).into_iter().map(|link| link.text).collect()
    }

    #[test]
    fn links_in_code_are_not_links() {
        assert_eq!(targets(PAGE), ["a.md#x", "b.png", "e.md"]);
    }

    #[test]
    fn headings_become_anchors_and_repeats_are_numbered() {
        let anchors = anchors("# A plan, by `hand`\n## Why\n## Why\n```\n# not this\n```\n#tag\n");
        assert_eq!(
            anchors.into_iter().collect::<Vec<_>>(),
            ["a-plan-by-hand", "why", "why-1"]
        );
    }

    #[test]
    fn spans_are_found_on_their_lines() {
        let spans = code_spans("a `x.rs` b\n``y `z` ``\n");
        assert_eq!(
            spans[0],
            Found {
                line: 1,
                text: "x.rs".into()
            }
        );
        assert_eq!(spans[1].text, "y `z`");
    }

    #[test]
    fn a_link_to_nothing_is_broken() {
        let why = |target: &str| {
            let link = Found {
                line: 3,
                text: target.into(),
            };
            let anchors = |_: &str| Some(anchors("# Here\n"));
            broken(
                "docs/src/a.md",
                &link,
                |path| path == "README.md" || path == "docs/src/a.md",
                anchors,
            )
        };
        assert_eq!(why("../../README.md"), None);
        assert_eq!(why("#here"), None);
        assert_eq!(why("https://example.org/a.md"), None);
        assert!(why("gone.md").unwrap().contains("docs/src/gone.md"));
        assert!(why("../../README.md#there").unwrap().contains("#there"));
        assert!(why("../../../README.md").unwrap().contains("leaves"));
    }
}
