//! Corpora that ship inside the program, so that a first run needs no file. `corpora/README.md` describes them.

use std::path::Path;

use super::error::InputError;
use super::lengths::{Blocks, Lengths};
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
    Lengths::new(elements(name)?).into_vec()
}

pub(super) fn open(name: &str) -> Result<Box<dyn Blocks>, InputError> {
    Ok(Box::new(elements(name)?))
}

/// Whether there is a corpus of that name.
pub(super) fn check(name: &str) -> Result<(), InputError> {
    find(name).map(|_| ())
}

fn elements(name: &str) -> Result<npy::Elements<&'static [u8]>, InputError> {
    let corpus = find(name)?;
    let bytes = corpus.npy.len() as u64;
    npy::Elements::new(corpus.npy, Some(bytes), Path::new(corpus.name), false)
}

fn find(name: &str) -> Result<&'static Corpus, InputError> {
    let found = CORPORA.iter().find(|corpus| corpus.name == name);
    found.ok_or_else(|| InputError::Bundled {
        name: name.to_owned(),
    })
}

/// The names for a message.
pub(super) fn list() -> String {
    names().collect::<Vec<_>>().join(", ")
}
