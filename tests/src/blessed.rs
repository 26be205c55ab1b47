//! Committed files that hold what the code makes: compared, or written where `LIBRA_BLESS=1`.

use std::fs;
use std::path::{Path, PathBuf};

/// The repository's file or folder `path`.
#[must_use]
pub fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Whether this run writes what it would otherwise compare.
#[must_use]
pub fn is_blessing() -> bool {
    std::env::var_os("LIBRA_BLESS").is_some_and(|value| value == "1")
}

/// The repository's file `path` must hold `bytes`.
///
/// # Panics
/// If it does not, naming the first difference.
pub fn assert_holds(path: &str, bytes: &[u8]) {
    let file = at(path);
    if is_blessing() {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        fs::write(&file, bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
        return;
    }
    let there = fs::read(&file)
        .unwrap_or_else(|error| panic!("{path}: {error}; write it with `cargo xtask bless`"));
    if there != bytes {
        panic!(
            "{path} differs: {}; if that is meant, `cargo xtask bless`",
            difference(&there, bytes)
        );
    }
}

fn difference(there: &[u8], made: &[u8]) -> String {
    if let (Ok(there), Ok(made)) = (std::str::from_utf8(there), std::str::from_utf8(made)) {
        let (mut there, mut made) = (there.lines(), made.lines());
        for line in 1.. {
            match (there.next(), made.next()) {
                (None, None) => break,
                (left, right) if left == right => {}
                (left, right) => {
                    let (left, right) = (left.unwrap_or("nothing"), right.unwrap_or("nothing"));
                    return format!("line {line} has\n  {left}\nand should have\n  {right}\n");
                }
            }
        }
    }
    let byte = there
        .iter()
        .zip(made)
        .position(|(left, right)| left != right);
    let byte = byte.unwrap_or(there.len().min(made.len()));
    format!(
        "{} bytes against {}, first at {byte}",
        there.len(),
        made.len()
    )
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_difference_names_its_line_or_byte() {
        assert!(difference(b"a\nb\n", b"a\nc\n").starts_with("line 2 has\n  b\n"));
        assert!(difference(&[0xff, 1], &[0xff, 2]).ends_with("first at 1"));
        assert!(difference(&[0xff, 1], &[0xff, 1, 2]).starts_with("2 bytes against 3"));
    }
}
