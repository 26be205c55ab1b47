//! Lengths from the index of a Megatron indexed dataset, `.idx`.
//!
//! The layout, all numbers little-endian: the nine bytes `MMIDIDX\0\0`; version 1 in eight bytes; one byte for the
//! type of a token; n sequences and d document indices in eight bytes each; then n lengths in tokens (i32), n offsets
//! in bytes of the `.bin` (i64), and d document indices (i64). Document k is the sequences from index k up to index
//! k + 1; the first index is 0, the last is n. A multimodal dataset ends with n modes of a byte each.
//! (Megatron Core, `megatron/core/datasets/indexed_dataset.py`.)
//!
//! A sample is a document: the sum of its sequences; or a sequence where [`IdxSamples::Sequences`] asks for it. Samples
//! without tokens are left out. The three tables are read side by side, each through a handle of its own, in constant
//! memory; every offset must be where the lengths before it end, which catches most damage.

mod table;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use self::table::Table;
use super::TOKENS_MAX;
use super::collect::Collector;
use super::content::{Content, read_up_to};
use super::error::InputError;
use super::lengths::Blocks;

const MAGIC: &[u8; 9] = b"MMIDIDX\0\0";
const VERSION: u64 = 1;
const HEADER_BYTES: u64 = 34;
/// Bytes of a token by its type's code, less 1: u8, i8, i16, i32, i64, f64, f32, u16.
const TOKEN_BYTES: [u64; 8] = [1, 1, 2, 4, 8, 8, 4, 2];

/// What counts as a sample of a Megatron `.idx`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IdxSamples {
    /// A document: all its sequences together.
    #[default]
    Documents,
    /// Each sequence.
    Sequences,
}

impl fmt::Display for IdxSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Documents => "documents",
            Self::Sequences => "sequences",
        })
    }
}

impl FromStr for IdxSamples {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "documents" => Ok(Self::Documents),
            "sequences" => Ok(Self::Sequences),
            _ => Err(format!(
                "`{text}` is not legal; one of documents, sequences"
            )),
        }
    }
}

/// The samples of an index.
pub(super) struct Index {
    header: Header,
    /// Whether the file's size was not known before it was read.
    is_decoded: bool,
    sequences: Sequences,
    documents: Option<Documents>,
    numbers: Collector,
}

impl Index {
    pub(super) fn open(
        source: Content,
        path: &Path,
        samples: IdxSamples,
    ) -> Result<Self, InputError> {
        let is_decoded = source.known_bytes().is_none();
        let (header, source) = Header::read(source, path)?;
        let documents = match samples {
            IdxSamples::Sequences => None,
            IdxSamples::Documents => Some(Documents::open(&header, path)?),
        };
        let unit = match samples {
            IdxSamples::Documents => "document",
            IdxSamples::Sequences => "sequence",
        };
        Ok(Self {
            sequences: Sequences::open(&header, source, path)?,
            documents,
            numbers: Collector::new(path, unit, false),
            header,
            is_decoded,
        })
    }

    /// Whether what follows the tables that were read is what the header says.
    fn check_rest(&mut self) -> Result<(), InputError> {
        let path = self.numbers.path();
        let (read, rest) = match &mut self.documents {
            Some(documents) => (self.header.tables_bytes(), documents.indices.rest(path)?),
            None => {
                let read = u128::from(HEADER_BYTES) + 12 * u128::from(self.header.sequences);
                (read, self.sequences.offsets.rest(path)?)
            }
        };
        let checked = self.header.check_size(read + u128::from(rest));
        checked.map_err(|problem| InputError::Index {
            path: path.to_owned(),
            problem,
        })
    }
}

impl Blocks for Index {
    fn fill(&mut self, block: &mut Vec<u32>) -> Result<(), InputError> {
        while block.is_empty() {
            let sequences = &mut self.sequences;
            let (read, samples) = match &mut self.documents {
                Some(documents) => (
                    documents.fill(sequences, block)?,
                    documents.indices.rows - 1,
                ),
                None => (sequences.fill(block)?, sequences.lengths.rows),
            };
            if read == 0 {
                if self.is_decoded {
                    self.check_rest()?;
                }
                return self.numbers.finish(samples);
            }
            let tokens = block.iter().copied().map(u64::from).sum();
            self.numbers.count(samples, block.len() as u64, tokens)?;
        }
        Ok(())
    }
}

struct Header {
    token_bytes: u64,
    sequences: u64,
    /// One more than documents.
    indices: u64,
}

impl Header {
    /// The header, and the file behind it.
    fn read(mut source: Content, path: &Path) -> Result<(Self, Content), InputError> {
        let refuse = |problem: String| InputError::Index {
            path: path.to_owned(),
            problem,
        };
        let mut bytes = [0; HEADER_BYTES as usize];
        let filled =
            read_up_to(&mut source, &mut bytes).map_err(|error| InputError::io(path, error))?;
        if !bytes[..filled].starts_with(MAGIC) {
            return Err(refuse(
                "the first nine bytes are not MMIDIDX\\0\\0".to_owned(),
            ));
        }
        if filled < bytes.len() {
            return Err(refuse(format!(
                "the header of 34 bytes ends after {filled}"
            )));
        }
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let (version, code) = (number(9), bytes[17]);
        if version != VERSION {
            return Err(refuse(format!("version {version}, legal is 1")));
        }
        let token_bytes = usize::from(code)
            .checked_sub(1)
            .and_then(|index| TOKEN_BYTES.get(index));
        let header = Self {
            token_bytes: *token_bytes
                .ok_or_else(|| refuse(format!("type code {code} of tokens, legal are 1 to 8")))?,
            sequences: number(18),
            indices: number(26),
        };
        if header.indices == 0 {
            return Err(refuse(
                "0 document indices, legal is at least the first, 0".to_owned(),
            ));
        }
        if let Some(found) = source.known_bytes() {
            header.check_size(found.into()).map_err(refuse)?;
        }
        Ok((header, source))
    }

    /// Bytes of the header and the three tables.
    fn tables_bytes(&self) -> u128 {
        u128::from(HEADER_BYTES) + 12 * u128::from(self.sequences) + 8 * u128::from(self.indices)
    }

    /// Whether a file of `found` bytes holds the tables, and nothing more than modes.
    fn check_size(&self, found: u128) -> Result<(), String> {
        let (sequences, indices, expected) = (self.sequences, self.indices, self.tables_bytes());
        let with_modes = expected + u128::from(sequences);
        if [expected, with_modes].contains(&found) {
            return Ok(());
        }
        Err(format!(
            "{sequences} sequences and {indices} document indices take {expected} bytes, {with_modes} with modes, the \
             file has {found}"
        ))
    }
}

/// Lengths of sequences, checked against their offsets.
struct Sequences {
    path: PathBuf,
    token_bytes: u64,
    lengths: Table<4>,
    offsets: Table<8>,
    /// Where the next sequence begins in the `.bin`.
    offset: u64,
    /// Lengths at hand, and the next of them.
    at_hand: Vec<u32>,
    next: usize,
}

impl Sequences {
    fn open(header: &Header, source: Content, path: &Path) -> Result<Self, InputError> {
        let rows = header.sequences;
        let skip = u128::from(HEADER_BYTES) + 4 * u128::from(rows);
        Ok(Self {
            path: path.to_owned(),
            token_bytes: header.token_bytes,
            lengths: Table::new(source, "lengths", rows),
            offsets: Table::open(path, skip, "offsets", rows)?,
            offset: 0,
            at_hand: Vec::new(),
            next: 0,
        })
    }

    /// Takes the next lengths at hand; there may be none left.
    fn load(&mut self) -> Result<(), InputError> {
        let first = self.lengths.read;
        let lengths = self.lengths.next(&self.path)?;
        self.at_hand.clear();
        self.next = 0;
        let mut signs = 0;
        self.at_hand.extend(lengths.iter().map(|bytes| {
            let length = u32::from_le_bytes(*bytes);
            signs |= length;
            length
        }));
        let bad = match signs > i32::MAX as u32 {
            true => self
                .at_hand
                .iter()
                .position(|&length| length > i32::MAX as u32),
            false => None,
        };
        if let Some(bad) = bad {
            let value = self.at_hand[bad] as i32;
            return Err(Collector::new(&self.path, "sequence", false)
                .negative(first + bad as u64 + 1, value.to_string()));
        }
        let offsets = self.offsets.next(&self.path)?;
        // Sums of 32-bit lengths of at most eight bytes a token: 2^61 bytes are 2^27 files of this size.
        let mut offset = self.offset;
        let mut differs = 0;
        for (found, length) in offsets.iter().zip(&self.at_hand) {
            differs |= u64::from_le_bytes(*found) ^ offset;
            offset = offset.wrapping_add(u64::from(*length) * self.token_bytes);
        }
        if differs != 0 {
            return Err(self.wrong_offset(first));
        }
        self.offset = offset;
        Ok(())
    }

    /// The first offset of the block from sequence `first` on that is not where the lengths before it end.
    fn wrong_offset(&self, first: u64) -> InputError {
        let mut expected = self.offset;
        let mut row = first;
        let offsets = self.offsets.bytes.as_chunks::<8>().0;
        for (found, length) in offsets.iter().zip(&self.at_hand) {
            let found = i64::from_le_bytes(*found);
            row += 1;
            if i128::from(found) != i128::from(expected) {
                return InputError::Malformed {
                    place: Collector::new(&self.path, "sequence", false).place(row),
                    problem: format!(
                        "offset {found}, the lengths before it end at {expected} with {} bytes a token",
                        self.token_bytes
                    ),
                };
            }
            expected = expected.wrapping_add(u64::from(*length) * self.token_bytes);
        }
        unreachable!("some offset of the block differs")
    }

    /// Appends the lengths of sequences that have tokens and returns how many sequences were passed.
    fn fill(&mut self, block: &mut Vec<u32>) -> Result<usize, InputError> {
        self.load()?;
        block.extend(self.at_hand.iter().copied().filter(|&length| length > 0));
        Ok(self.at_hand.len())
    }
}

/// Where documents begin and end.
struct Documents {
    indices: Table<8>,
    /// Sequences before the next document.
    begin: u64,
}

impl Documents {
    fn open(header: &Header, path: &Path) -> Result<Self, InputError> {
        let skip = u128::from(HEADER_BYTES) + 12 * u128::from(header.sequences);
        Ok(Self {
            indices: Table::open(path, skip, "document indices", header.indices)?,
            begin: 0,
        })
    }

    /// Appends the lengths of documents that have tokens and returns how many indices were read.
    fn fill(
        &mut self,
        sequences: &mut Sequences,
        block: &mut Vec<u32>,
    ) -> Result<usize, InputError> {
        let path = sequences.path.clone();
        // Counted from 0: index k ends document k, counted from 1.
        let first = self.indices.read;
        let total = sequences.lengths.rows;
        let rows = self.indices.rows;
        let indices = self.indices.next(&path)?;
        let malformed = |index: u64, problem: String| InputError::Malformed {
            place: Collector::new(&path, "document index", false).place(index + 1),
            problem,
        };
        let mut begin = self.begin;
        block.reserve(indices.len());
        for (index, bytes) in (first..).zip(indices) {
            let end = u64::from_le_bytes(*bytes);
            if index == 0 && end != 0 {
                return Err(malformed(index, format!("{}, legal is 0", end as i64)));
            }
            if end < begin || end > total {
                let legal = format!("legal is {begin} to {total}, the number of sequences");
                return Err(malformed(index, format!("{}, {legal}", end as i64)));
            }
            if index + 1 == rows && end != total {
                return Err(malformed(
                    index,
                    format!("{end} is the last, legal is {total}, the number of sequences"),
                ));
            }
            // Most documents are one sequence: no loop for them.
            if end == begin + 1
                && let Some(&length) = sequences.at_hand.get(sequences.next)
            {
                sequences.next += 1;
                begin = end;
                if length > 0 {
                    block.push(length);
                }
                continue;
            }
            let mut tokens = 0;
            while begin < end {
                if sequences.next == sequences.at_hand.len() {
                    sequences.load()?;
                }
                let lengths = &sequences.at_hand[sequences.next..];
                let taken = lengths.len().min((end - begin) as usize);
                tokens += lengths[..taken].iter().copied().map(u64::from).sum::<u64>();
                sequences.next += taken;
                begin += taken as u64;
            }
            if tokens > TOKENS_MAX {
                return Err(InputError::TooLong {
                    place: Collector::new(&path, "document", false).place(index),
                    value: tokens.to_string(),
                });
            }
            if tokens > 0 {
                block.push(tokens as u32);
            }
        }
        self.begin = begin;
        Ok(indices.len())
    }
}
