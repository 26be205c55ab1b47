//! Rust sources as far as the rules need them: what is code, and which paths it names.

/// What a byte of a source belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Code,
    Comment,
    Literal,
}

/// The kind of each byte. Quotes belong to their literal, slashes to their comment.
pub(super) fn kinds(text: &str) -> Vec<Kind> {
    let bytes = text.as_bytes();
    let mut kinds = vec![Kind::Code; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (kind, length) = if rest.starts_with(b"//") {
            (
                Kind::Comment,
                rest.iter()
                    .position(|byte| *byte == b'\n')
                    .unwrap_or(rest.len()),
            )
        } else if rest.starts_with(b"/*") {
            (Kind::Comment, block_comment(rest))
        } else if rest[0] == b'"' {
            (Kind::Literal, quoted(rest, b'"'))
        } else if let Some(length) = raw_string(bytes, at) {
            (Kind::Literal, length)
        } else if is_character(&text[at..]) {
            (Kind::Literal, quoted(rest, b'\''))
        } else {
            // A whole character, so that the next step starts at one.
            (
                Kind::Code,
                text[at..].chars().next().map_or(1, char::len_utf8),
            )
        };
        kinds[at..at + length].fill(kind);
        at += length;
    }
    kinds
}

/// The text with everything but code blanked; lines and columns stay.
pub(super) fn only_code(text: &str) -> String {
    blanked(text, |kind| kind == Kind::Code)
}

/// The text with literals blanked.
pub(super) fn without_literals(text: &str) -> String {
    blanked(text, |kind| kind != Kind::Literal)
}

fn blanked(text: &str, keep: impl Fn(Kind) -> bool) -> String {
    let pairs = text.bytes().zip(kinds(text));
    let bytes = pairs.map(|(byte, kind)| {
        if keep(kind) || byte == b'\n' {
            byte
        } else {
            b' '
        }
    });
    String::from_utf8(bytes.collect())
        .expect("comments and literals begin and end between characters")
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// The length of a literal that ends at the next mark that is not escaped.
fn quoted(rest: &[u8], mark: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == mark => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of `r"…"` or `r#"…"#` at `at`, where one starts there.
fn raw_string(bytes: &[u8], at: usize) -> Option<usize> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
    // `br"` and `cr"` are raw too; any other word that ends in `r` is not.
    let starts_word = !is_word(before)
        || matches!(before, b'b' | b'c')
            && at.checked_sub(2).is_none_or(|two| !is_word(bytes[two]));
    let rest = bytes[at..].strip_prefix(b"r").filter(|_| starts_word)?;
    let hashes = rest.iter().take_while(|byte| **byte == b'#').count();
    let body = rest[hashes..].strip_prefix(b"\"")?;
    let end = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
    let length = body
        .windows(end.len())
        .position(|window| window == end)
        .map_or(body.len(), |found| found + end.len());
    Some(1 + hashes + 1 + length)
}

/// Whether a `'` starts a character rather than a lifetime.
fn is_character(rest: &str) -> bool {
    let mut characters = rest.chars();
    characters.next() == Some('\'')
        && match characters.next() {
            Some('\\') => true,
            Some(first) => first != '\'' && characters.next() == Some('\''),
            None => false,
        }
}

/// Code with items under `#[cfg(test)]` blanked.
pub(super) fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = code.to_owned();
    while let Some(start) = kept.find(MARK) {
        let item = &kept[start + MARK.len()..];
        let length = MARK.len() + item_length(item);
        let blank: String = kept[start..start + length]
            .bytes()
            .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
            .collect();
        kept.replace_range(start..start + length, &blank);
    }
    kept
}

/// Up to the item's closing brace, or its semicolon where it has no braces.
fn item_length(item: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in item.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

/// A path that starts at the crate's root.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) line: usize,
    /// What follows `crate`.
    pub(super) segments: Vec<String>,
}

impl Named {
    /// The segment, or nothing.
    pub(super) fn segment(&self, index: usize) -> &str {
        self.segments.get(index).map_or("", String::as_str)
    }
}

/// Every `crate::…` path in code, groups written out. `depth` is how many `super` lead from the file to the root.
pub(super) fn crate_paths(code: &str, depth: usize) -> Vec<Named> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match root_length(&tokens[at..], depth) {
            Some(length) => at = read_tree(&tokens, at + length, &[], &mut found),
            None => at += 1,
        }
    }
    found
}

#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Join,
    Mark(char),
}

fn tokens(code: &str) -> Vec<(usize, Token<'_>)> {
    let mut found = Vec::new();
    for (text, line) in code.lines().zip(1..) {
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (token, length) = if word > 0 {
                (Token::Word(&rest[..word]), word)
            } else if rest.starts_with("::") {
                (Token::Join, 2)
            } else {
                (Token::Mark(first), first.len_utf8())
            };
            rest = &rest[length..];
            if !matches!(token, Token::Mark(mark) if mark.is_whitespace()) {
                found.push((line, token));
            }
        }
    }
    found
}

/// How many tokens at the start spell the crate's root and a `::`.
fn root_length(tokens: &[(usize, Token<'_>)], depth: usize) -> Option<usize> {
    let is = |at: usize, token: &Token<'_>| tokens.get(at).is_some_and(|(_, found)| found == token);
    if is(0, &Token::Word("crate")) && is(1, &Token::Join) {
        return Some(2);
    }
    let is_super =
        |step: usize| is(2 * step, &Token::Word("super")) && is(2 * step + 1, &Token::Join);
    (depth > 0 && (0..depth).all(is_super)).then_some(2 * depth)
}

fn read_tree(
    tokens: &[(usize, Token<'_>)],
    at: usize,
    prefix: &[String],
    found: &mut Vec<Named>,
) -> usize {
    let Some((line, token)) = tokens.get(at) else {
        return at;
    };
    let extended = |word: &str| [prefix, &[word.to_owned()]].concat();
    match token {
        Token::Word(word) if matches!(tokens.get(at + 1), Some((_, Token::Join))) => {
            read_tree(tokens, at + 2, &extended(word), found)
        }
        Token::Word(word) => {
            found.push(Named {
                line: *line,
                segments: extended(word),
            });
            at + 1
        }
        Token::Mark('{') => {
            let mut at = at + 1;
            while let Some((_, token)) = tokens.get(at) {
                at = match token {
                    Token::Mark('}') => return at + 1,
                    Token::Mark(',') => at + 1,
                    // `as name` adds nothing to what is named.
                    Token::Word("as") => at + 2,
                    _ => read_tree(tokens, at, prefix, found),
                };
            }
            at
        }
        Token::Mark('*') => {
            found.push(Named {
                line: *line,
                segments: extended("*"),
            });
            at + 1
        }
        // `crate::name::<T>` ends at its last word.
        _ => {
            found.push(Named {
                line: *line,
                segments: prefix.to_vec(),
            });
            at + 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        let text = "a \"b // \\\" c\" d // e\nf /* g /* h */ i */ j 'k' '\\'' l<'m> r#\"n\" o\"# p b\"q\" br\"r\" s";
        let code: Vec<_> = only_code(text)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        assert_eq!(code.join(" "), "a d f j l<'m> p b b s");
        assert_eq!(only_code(text).len(), text.len());
        assert!(without_literals("\"TODO\" // é\n").ends_with("// é\n"));
    }

    #[test]
    fn test_modules_are_left_out_and_lines_stay() {
        let code = without_tests(
            "a;\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\nc;\n#[cfg(test)]\nuse d;\ne;\n",
        );
        assert_eq!(
            code.split_whitespace().collect::<Vec<_>>(),
            ["a;", "c;", "e;"]
        );
        assert_eq!(code.lines().position(|line| line == "c;"), Some(5));
    }

    #[test]
    fn groups_and_supers_are_written_out() {
        let code = "use crate::{error::Error, tiles::{self, ShTile as Tile}};\nfn f() { super::super::plan::read::<T>(); super::near(); }\n";
        let paths: Vec<_> = crate_paths(code, 2)
            .into_iter()
            .map(|named| (named.line, named.segments.join("::")))
            .collect();
        let expected = [
            (1, "error::Error"),
            (1, "tiles::self"),
            (1, "tiles::ShTile"),
            (2, "plan::read"),
        ];
        assert_eq!(paths, expected.map(|(line, path)| (line, path.to_owned())));
    }
}
