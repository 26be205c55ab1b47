//! Sample lengths from files and bundled corpora.
//!
//! The suffix decides the format: `.txt` has one length a line, blank lines and `#` comments aside; `.npy` an integer
//! vector; `.csv` a column and `.jsonl` a field, or bare integers; `.parquet`, `.arrow` and `.feather` a column of
//! integers or of lists; `.idx` the sequences and documents of a Megatron dataset. The first four and `.idx` may be
//! compressed, as `.gz` or `.zst`. Files are read as far as lengths are asked for, so an error may come late. Whatever
//! is wrong with a file is an [`InputError`] that says where. Rows of a `.csv` are counted with its header and without
//! blank lines.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

#[cfg(feature = "columnar")]
use super::columnar;
#[cfg(not(feature = "columnar"))]
use super::columnar_absent as columnar;
use super::content::{Coding, Content};
use super::error::InputError;
use super::idx::{IdxSamples, Index};
use super::lengths::{Blocks, Lengths};
use super::{bundled, npy, text};

/// How to read a source of lengths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LengthSource {
    /// Column of a table, or field of a `.jsonl`. Without it: `length`, else `tokens`, else the only one.
    pub column: Option<String>,
    /// The numbers are running sums of the lengths, with or without a leading 0.
    pub cumulative: bool,
    /// What a sample of a Megatron `.idx` is: its documents, if nothing else is said.
    pub idx: Option<IdxSamples>,
}

/// Lengths of bundled corpora (`linux-6.1` or `bundled:linux-6.1`) and of the files at the other paths in `specs`, one
/// after the other. That they are there is checked at once, what they hold as it is read.
pub fn open<S: AsRef<str>>(specs: &[S], options: &LengthSource) -> Result<Lengths, InputError> {
    let sources = specs.iter().map(|spec| Source::of(spec.as_ref(), options));
    Ok(Lengths::new(Chain {
        waiting: sources.collect::<Result<_, _>>()?,
        options: options.clone(),
        current: None,
    }))
}

/// Those of `specs` that are files, by the same checks as [`open`].
pub(crate) fn files<S: AsRef<str>>(
    specs: &[S],
    options: &LengthSource,
) -> Result<Vec<PathBuf>, InputError> {
    let mut files = Vec::new();
    for spec in specs {
        if let Source::File(path, _) = Source::of(spec.as_ref(), options)? {
            files.push(path);
        }
    }
    Ok(files)
}

/// All lengths of a bundled corpus, or else of the file at the path `spec`.
pub fn load(spec: &str, options: &LengthSource) -> Result<Vec<u64>, InputError> {
    open(&[spec], options)?.into_vec()
}

/// Lengths of the samples of a file, in the file's order.
pub fn read_lengths(path: &Path, options: &LengthSource) -> Result<Vec<u64>, InputError> {
    let file = Source::file(path, options)?;
    let chain = Chain {
        waiting: VecDeque::from([file]),
        options: options.clone(),
        current: None,
    };
    Lengths::new(chain).into_vec()
}

/// Sources one after the other, each opened when the one before has ended.
struct Chain {
    waiting: VecDeque<Source>,
    options: LengthSource,
    current: Option<Box<dyn Blocks>>,
}

impl Blocks for Chain {
    fn fill(&mut self, block: &mut Vec<u32>) -> Result<(), InputError> {
        loop {
            if let Some(current) = &mut self.current {
                current.fill(block)?;
                if !block.is_empty() {
                    return Ok(());
                }
            }
            match self.waiting.pop_front() {
                Some(next) => self.current = Some(next.open(&self.options)?),
                None => return Ok(()),
            }
        }
    }
}

/// A source that is there, and suits the options.
enum Source {
    Bundled(String),
    File(PathBuf, Format),
}

impl Source {
    fn of(spec: &str, options: &LengthSource) -> Result<Self, InputError> {
        let name = match spec.strip_prefix("bundled:") {
            Some(name) => name,
            None if bundled::names().any(|name| name == spec) => spec,
            None => return Self::file(Path::new(spec), options),
        };
        bundled::check(name)?;
        let path = Path::new(name);
        refuse_column(path, options)?;
        refuse_idx(path, options)?;
        if options.cumulative {
            return Err(InputError::NotCumulative {
                name: name.to_owned(),
            });
        }
        Ok(Self::Bundled(name.to_owned()))
    }

    fn file(path: &Path, options: &LengthSource) -> Result<Self, InputError> {
        let metadata = std::fs::metadata(path).map_err(|error| InputError::io(path, error))?;
        if !metadata.is_file() {
            let kind = if metadata.is_dir() {
                "directory"
            } else {
                "special file"
            };
            return Err(InputError::NotAFile {
                path: path.to_owned(),
                kind,
            });
        }
        let format = Format::of(path)?;
        if metadata.len() == 0 {
            return Err(InputError::Empty {
                path: path.to_owned(),
            });
        }
        if !format.has_columns() {
            refuse_column(path, options)?;
        }
        match format {
            Format::Idx if options.cumulative => Err(InputError::IdxCumulative {
                path: path.to_owned(),
            }),
            Format::Idx => Ok(Self::File(path.to_owned(), format)),
            _ => refuse_idx(path, options).map(|()| Self::File(path.to_owned(), format)),
        }
    }

    fn open(self, options: &LengthSource) -> Result<Box<dyn Blocks>, InputError> {
        let (path, format) = match self {
            Self::Bundled(name) => return bundled::open(&name),
            Self::File(path, format) => (path, format),
        };
        let path = path.as_path();
        let content = || Content::open(path);
        Ok(match format {
            Format::Text => Box::new(text::Lines::plain(content()?, path, options)),
            Format::JsonLines => Box::new(text::Lines::json(content()?, path, options)),
            Format::Csv => Box::new(text::Rows::new(content()?, path, options)),
            Format::Npy => Box::new(npy::Elements::open(content()?, path, options.cumulative)?),
            Format::Idx => {
                let samples = options.idx.unwrap_or_default();
                Box::new(Index::open(content()?, path, samples)?)
            }
            Format::Parquet => columnar::open_parquet(path, options)?,
            Format::Arrow => columnar::open_arrow(path, options)?,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Npy,
    Csv,
    JsonLines,
    Idx,
    Parquet,
    Arrow,
}

impl Format {
    fn of(path: &Path) -> Result<Self, InputError> {
        let (coding, inner) = Coding::of(path);
        let refuse = |suffix: &OsStr| InputError::Suffix {
            path: path.to_owned(),
            suffix: suffix.to_string_lossy().into_owned(),
        };
        let suffix = inner.extension().unwrap_or_default();
        let format = match suffix.to_str().map(str::to_ascii_lowercase).as_deref() {
            Some("txt") => Self::Text,
            Some("npy") => Self::Npy,
            Some("csv") => Self::Csv,
            Some("jsonl") => Self::JsonLines,
            Some("idx") => Self::Idx,
            Some("parquet") => Self::Parquet,
            Some("arrow" | "feather") => Self::Arrow,
            _ => return Err(refuse(path.extension().unwrap_or_default())),
        };
        let is_packed = matches!(format, Self::Parquet | Self::Arrow);
        if is_packed && coding != Coding::Plain {
            return Err(InputError::CompressedTwice {
                path: path.to_owned(),
            });
        }
        Ok(format)
    }

    fn has_columns(self) -> bool {
        match self {
            Self::Csv | Self::JsonLines | Self::Parquet | Self::Arrow => true,
            Self::Text | Self::Npy | Self::Idx => false,
        }
    }
}

fn refuse_column(path: &Path, options: &LengthSource) -> Result<(), InputError> {
    match options.column.clone() {
        Some(column) => Err(InputError::NoColumns {
            path: path.to_owned(),
            column,
        }),
        None => Ok(()),
    }
}

fn refuse_idx(path: &Path, options: &LengthSource) -> Result<(), InputError> {
    match options.idx {
        Some(samples) => Err(InputError::NotAnIndex {
            path: path.to_owned(),
            samples,
        }),
        None => Ok(()),
    }
}
