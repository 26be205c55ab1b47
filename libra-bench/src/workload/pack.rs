//! Packing samples into sequences, one at a time and without holding the corpus.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use super::TOKENS_MAX;

/// How samples become packed sequences.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Packer {
    /// The samples in a row, cut every `seq_tokens` tokens. The parts of a cut sample are samples of their own.
    #[default]
    ConcatenateAndCut,
    /// Whole samples only. Each goes to the open sequence with the least room that still holds it, on a tie to the one
    /// opened first. Where none holds it a sequence is opened, and if that is one too many the fullest is closed.
    /// A sequence without room is closed at once; at the end the fullest is closed first. What room is left in a closed
    /// sequence is padding.
    BestFit {
        /// Most sequences open at a time. One window's worth is a good number.
        open_sequences: u64,
    },
}

/// Why samples cannot be packed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// The sequence length is out of range.
    #[error("a sequence of {seq_tokens} tokens is not legal; it has 1 to 4294967295")]
    SequenceTokens {
        /// The sequence length.
        seq_tokens: u64,
    },
    /// The number of sequences of a window is out of range.
    #[error("a window of {gbs} sequences is not legal; it has 1 to 1048576")]
    WindowSequences {
        /// Sequences of a window.
        gbs: u64,
    },
    /// Best-fit has nowhere to put a sample.
    #[error("best-fit with 0 open sequences is not legal; it has at least 1")]
    NoOpenSequence,
    /// A sample has no tokens.
    #[error("sample {row} has 0 tokens; legal is at least 1")]
    Zero {
        /// Which sample, counted from 1.
        row: u64,
    },
    /// A sample does not fit in a sequence, and best-fit does not cut.
    #[error(
        "sample {row} has {length} tokens, a sequence only {seq_tokens}, and best-fit does not cut samples"
    )]
    SampleTooLong {
        /// Which sample, counted from 1.
        row: u64,
        /// Its tokens.
        length: u64,
        /// Tokens of a sequence.
        seq_tokens: u64,
    },
    /// The corpus ends before the first window that was asked for.
    #[error(
        "the corpus has {tokens} tokens, packed into {sequences} sequences; windows of {gbs} sequences \
         of {seq_tokens} tokens with the first {skip} skipped need {needed} tokens"
    )]
    TooShort {
        /// Tokens that are there.
        tokens: u64,
        /// Packed sequences they make.
        sequences: u64,
        /// Sequences of a window.
        gbs: u64,
        /// Tokens of a sequence.
        seq_tokens: u64,
        /// Windows to skip.
        skip: u64,
        /// Tokens that would do.
        needed: u128,
    },
}

/// Divides each length by `factor`, rounding up, for runs at a smaller size.
pub fn scale(
    lengths: impl IntoIterator<Item = u64>,
    factor: NonZeroU64,
) -> impl Iterator<Item = u64> {
    lengths
        .into_iter()
        .map(move |length| length.div_ceil(factor.get()))
}

impl Packer {
    /// Packs samples into sequences of at most `seq_tokens` tokens, one at a time.
    pub fn pack<I>(self, lengths: I, seq_tokens: u64) -> Result<Sequences<I::IntoIter>, PackError>
    where
        I: IntoIterator<Item = u64>,
    {
        if !(1..=TOKENS_MAX).contains(&seq_tokens) {
            return Err(PackError::SequenceTokens { seq_tokens });
        }
        let state = match self {
            Self::ConcatenateAndCut => State::Cut { rest: 0 },
            Self::BestFit { open_sequences: 0 } => return Err(PackError::NoOpenSequence),
            Self::BestFit { open_sequences } => State::Fit {
                open_sequences,
                opened: 0,
                open: BTreeMap::new(),
            },
        };
        Ok(Sequences {
            samples: Numbered {
                lengths: lengths.into_iter(),
                row: 0,
            },
            seq_tokens,
            state,
            failed: false,
        })
    }
}

/// Packed sequences, one at a time: each the lengths of its samples.
#[derive(Debug, Clone)]
pub struct Sequences<I> {
    samples: Numbered<I>,
    pub(super) seq_tokens: u64,
    state: State,
    failed: bool,
}

#[derive(Debug, Clone)]
enum State {
    /// Tokens of the sample at hand that are still to be placed.
    Cut { rest: u64 },
    /// Open sequences by room and the order of opening.
    Fit {
        open_sequences: u64,
        opened: u64,
        open: BTreeMap<(u64, u64), Vec<u64>>,
    },
}

impl<I> Sequences<I> {
    /// The source of lengths.
    pub fn lengths_mut(&mut self) -> &mut I {
        &mut self.samples.lengths
    }
}

impl<I: Iterator<Item = u64>> Sequences<I> {
    fn pack_next(&mut self) -> Result<Option<Vec<u64>>, PackError> {
        match &mut self.state {
            State::Cut { rest } => cut_next(&mut self.samples, rest, self.seq_tokens),
            State::Fit {
                open_sequences,
                opened,
                open,
            } => {
                while let Some((row, length)) = self.samples.take()? {
                    if length > self.seq_tokens {
                        return Err(PackError::SampleTooLong {
                            row,
                            length,
                            seq_tokens: self.seq_tokens,
                        });
                    }
                    let (room, id, mut sequence) = match best_fit(open, length) {
                        Some(found) => found,
                        None => {
                            *opened += 1;
                            (self.seq_tokens, *opened, Vec::new())
                        }
                    };
                    sequence.push(length);
                    if room == length {
                        return Ok(Some(sequence));
                    }
                    let one_too_many = open.len() as u64 == *open_sequences;
                    let closed = if one_too_many { open.pop_first() } else { None };
                    open.insert((room - length, id), sequence);
                    if let Some((_, closed)) = closed {
                        return Ok(Some(closed));
                    }
                }
                Ok(open.pop_first().map(|(_, sequence)| sequence))
            }
        }
    }
}

impl<I: Iterator<Item = u64>> Iterator for Sequences<I> {
    type Item = Result<Vec<u64>, PackError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.pack_next();
        self.failed = next.is_err();
        next.transpose()
    }
}

/// The next `seq_tokens` tokens of the row of samples, or what is left of it.
fn cut_next(
    samples: &mut Numbered<impl Iterator<Item = u64>>,
    rest: &mut u64,
    seq_tokens: u64,
) -> Result<Option<Vec<u64>>, PackError> {
    let mut sequence = Vec::new();
    let mut room = seq_tokens;
    while room > 0 {
        if *rest == 0 {
            match samples.take()? {
                Some((_, length)) => *rest = length,
                None => break,
            }
        }
        let part = room.min(*rest);
        sequence.push(part);
        room -= part;
        *rest -= part;
    }
    Ok((!sequence.is_empty()).then_some(sequence))
}

/// Takes out the open sequence with the least room for `length` more tokens.
fn best_fit(
    open: &mut BTreeMap<(u64, u64), Vec<u64>>,
    length: u64,
) -> Option<(u64, u64, Vec<u64>)> {
    let (&(room, id), _) = open.range((length, 0)..).next()?;
    open.remove(&(room, id))
        .map(|sequence| (room, id, sequence))
}

/// Samples with their row numbers; zero lengths are refused.
#[derive(Debug, Clone)]
struct Numbered<I> {
    lengths: I,
    row: u64,
}

impl<I: Iterator<Item = u64>> Numbered<I> {
    fn take(&mut self) -> Result<Option<(u64, u64)>, PackError> {
        let Some(length) = self.lengths.next() else {
            return Ok(None);
        };
        self.row += 1;
        if length == 0 {
            return Err(PackError::Zero { row: self.row });
        }
        Ok(Some((self.row, length)))
    }
}
