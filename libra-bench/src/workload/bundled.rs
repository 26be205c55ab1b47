//! Corpora that ship inside the program, so that a first run needs no file. `corpora/README.md` describes them.

use std::path::Path;

use super::error::InputError;
use super::npy;

struct Corpus {
    name: &'static str,
    npy: &'static [u8],
}

const CORPORA: &[Corpus] = &[Corpus {
    name: "linux-6.1",
    npy: include_bytes!("../../corpora/linux-6.1-files.npy"),
}];

/// Names of all bundled corpora.
pub fn names() -> impl Iterator<Item = &'static str> {
    CORPORA.iter().map(|corpus| corpus.name)
}

/// Lengths of a bundled corpus, in tokens, in the corpus's order.
pub fn lengths(name: &str) -> Result<Vec<u64>, InputError> {
    let corpus =
        (CORPORA.iter().find(|corpus| corpus.name == name)).ok_or_else(|| InputError::Bundled {
            name: name.to_owned(),
        })?;
    npy::read(
        corpus.npy,
        corpus.npy.len() as u64,
        Path::new(corpus.name),
        false,
    )
}

/// The names for a message.
pub(super) fn list() -> String {
    names().collect::<Vec<_>>().join(", ")
}
