use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::bundled;
use super::idx::IdxSamples;

/// Where in a length source something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, or the name of a bundled corpus.
    pub path: PathBuf,
    /// What is counted: `line` in text, `row` in CSV, `element` in arrays.
    pub unit: &'static str,
    /// Which one, counted from 1.
    pub number: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} {}", self.path.display(), self.unit, self.number)
    }
}

/// Why a length source cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// There is neither such a file nor such a bundled corpus.
    #[error("{path}: no such file, nor a bundled corpus ({names})", path = path.display(), names = bundled::list())]
    Missing {
        /// What was asked for.
        path: PathBuf,
    },
    /// No bundled corpus has this name.
    #[error("`{name}` is not a bundled corpus; legal are {names}", names = bundled::list())]
    Bundled {
        /// What was asked for.
        name: String,
    },
    /// The path leads to something other than a regular file.
    #[error("{path}: is a {kind}; legal is a regular file", path = path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// The operating system refused, or failed, to read.
    #[error("{path}: cannot be read", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file's suffix stands for no format known here.
    #[error(
        "{path}: suffix `{suffix}` is not that of a length file; legal are .txt, .npy, .csv, .jsonl, .idx, .parquet, \
         .arrow and .feather, the first five also with .gz or .zst",
        path = path.display()
    )]
    Suffix {
        /// The file.
        path: PathBuf,
        /// Its suffix without the point, or nothing.
        suffix: String,
    },
    /// The format's reader was left out when this was built.
    #[error("{path}: {format} files are not read by this build; those with the feature `columnar` of libra-bench do", path = path.display())]
    NotBuilt {
        /// The file.
        path: PathBuf,
        /// What it is.
        format: &'static str,
    },
    /// A column was named for a source that has none.
    #[error("{path}: has no columns, yet column `{column}` was asked for; columns are legal for .csv, .jsonl, .parquet, .arrow and .feather", path = path.display())]
    NoColumns {
        /// The source.
        path: PathBuf,
        /// The column.
        column: String,
    },
    /// A bundled corpus holds lengths, not their running sums.
    #[error("bundled corpus `{name}` holds lengths; reading them as cumulative is not legal")]
    NotCumulative {
        /// The corpus.
        name: String,
    },
    /// An index holds lengths, not their running sums.
    #[error("{path}: holds lengths; reading them as cumulative is not legal", path = path.display())]
    IdxCumulative {
        /// The file.
        path: PathBuf,
    },
    /// What counts as a sample was said for a source that is not an index.
    #[error("{path}: is not an .idx, so its samples cannot be {samples}", path = path.display())]
    NotAnIndex {
        /// The source.
        path: PathBuf,
        /// What was asked for.
        samples: IdxSamples,
    },
    /// A format that compresses its columns, compressed as a whole.
    #[error("{path}: must be decompressed first: its columns are read where they lie", path = path.display())]
    CompressedTwice {
        /// The file.
        path: PathBuf,
    },
    /// The file has no bytes.
    #[error("{path}: is empty (0 bytes); legal is at least one sample", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file has content, and no sample among it.
    #[error("{path}: holds no samples in {entries} {unit}s; legal is at least one", path = path.display())]
    NoSamples {
        /// The file.
        path: PathBuf,
        /// How many lines, rows or elements there are.
        entries: u64,
        /// What they are called.
        unit: &'static str,
    },
    /// The text is not UTF-8.
    #[error("{place}: is not UTF-8 text")]
    NotUtf8 {
        /// Where.
        place: Place,
    },
    /// Something stands where a whole number should.
    #[error("{place}: `{value}` is not a whole number; a sample has 1 to 4294967295 tokens")]
    NotAnInteger {
        /// Where.
        place: Place,
        /// What stands there, shortened.
        value: String,
    },
    /// A number is below zero.
    #[error("{place}: {value} is negative; a sample has 1 to 4294967295 tokens")]
    Negative {
        /// Where.
        place: Place,
        /// The number.
        value: String,
    },
    /// A sample has no tokens.
    #[error("{place}: the sample has 0 tokens; legal is 1 to 4294967295")]
    Zero {
        /// Where.
        place: Place,
    },
    /// A sample has more tokens than are supported.
    #[error("{place}: {value} tokens are too many; a sample has 1 to 4294967295")]
    TooLong {
        /// Where.
        place: Place,
        /// The length.
        value: String,
    },
    /// The samples together have more tokens than can be counted.
    #[error("{place}: {value} more tokens bring the corpus past 18446744073709551615")]
    Total {
        /// Where.
        place: Place,
        /// The length that no longer fits.
        value: u64,
    },
    /// Running sums go down.
    #[error(
        "{place}: {value} follows {previous}; cumulative lengths are legal only in ascending order"
    )]
    Descending {
        /// Where.
        place: Place,
        /// The sum there.
        value: u64,
        /// The sum before it.
        previous: u64,
    },
    /// The column asked for, or a default one, is not there.
    #[error("{place}: no column {column}; the columns are {present}")]
    MissingColumn {
        /// Where the columns are named.
        place: Place,
        /// The column or columns looked for.
        column: String,
        /// The columns that are there.
        present: String,
    },
    /// A line or row does not follow its format.
    #[error("{place}: {problem}")]
    Malformed {
        /// Where.
        place: Place,
        /// What is wrong with it.
        problem: String,
    },
    /// The file is not a NumPy array, or not a plain one.
    #[error("{path}: is not a NumPy vector of integers: {problem}", path = path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong with its header.
        problem: String,
    },
    /// The array's elements are not integers.
    #[error("{path}: dtype {dtype} is not an integer; legal are i1, i2, i4, i8, u1, u2, u4, u8", path = path.display())]
    DType {
        /// The file.
        path: PathBuf,
        /// The type as NumPy writes it.
        dtype: String,
    },
    /// The array is not a vector.
    #[error("{path}: shape {shape} has {dimensions} dimensions; legal is 1", path = path.display(), dimensions = dimensions)]
    Shape {
        /// The file.
        path: PathBuf,
        /// The shape as NumPy writes it.
        shape: String,
        /// How many dimensions that is.
        dimensions: usize,
    },
    /// The file holds fewer or more bytes than its header promises.
    #[error(
        "{path}: dtype {dtype} and shape ({count},) promise {expected} bytes after the header, the file has {found}",
        path = path.display()
    )]
    Size {
        /// The file.
        path: PathBuf,
        /// The type as NumPy writes it.
        dtype: String,
        /// How many elements are promised.
        count: u64,
        /// How many bytes they take.
        expected: u128,
        /// How many bytes there are.
        found: u64,
    },
    /// The file is not the index of a Megatron dataset, or not a whole one.
    #[error("{path}: is not a Megatron .idx: {problem}", path = path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The file is not of the format its suffix says, or damaged.
    #[error("{path}: cannot be read as {format}: {problem}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The format.
        format: &'static str,
        /// What its reader says.
        problem: String,
    },
    /// The column asked for, or a default one, is not among those of the file.
    #[error("{path}: no column {column}; the columns are {present}", path = path.display())]
    NoSuchColumn {
        /// The file.
        path: PathBuf,
        /// The column or columns looked for.
        column: String,
        /// The columns that are there.
        present: String,
    },
    /// The column holds something other than lengths.
    #[error(
        "{path}: column `{column}` holds {found}; legal are whole numbers, or lists of them, whose lengths count",
        path = path.display()
    )]
    ColumnType {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What it holds.
        found: String,
    },
    /// Samples are drawn in an order for which there are too many.
    #[error(
        "the corpus has more than {limit} samples, all that a full shuffle holds in memory, at 4 bytes each; \
         legal is --order windowed:N, which holds N"
    )]
    TooManyToShuffle {
        /// Most samples.
        limit: usize,
    },
}

impl InputError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            _ => Self::Io { path, source },
        }
    }
}
