//! Grouping packed sequences into windows, one at a time.

use super::pack::{PackError, Sequences};

/// Most sequences of a window.
const GBS_MAX: u64 = 1 << 20;

/// One window: the packed sequences of one optimizer step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packed {
    /// Most tokens a sequence holds.
    pub seq_tokens: u64,
    /// Lengths of each sequence's samples. What they lack to `seq_tokens` is padding at the tail.
    pub sequences: Vec<Vec<u64>>,
}

impl Packed {
    /// Tokens of all samples.
    pub fn tokens(&self) -> u64 {
        self.sequences.iter().flatten().sum()
    }

    /// Tokens of padding.
    pub fn padding_tokens(&self) -> u64 {
        (self.seq_tokens * self.sequences.len() as u64).saturating_sub(self.tokens())
    }
}

/// Which windows to make of packed sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowOptions {
    /// Sequences of a window (the global batch size).
    pub gbs: u64,
    /// Windows to pass over at the start.
    pub skip: u64,
    /// Whether empty sequences fill up an incomplete last window. Without it that window is dropped.
    pub fill_last: bool,
}

impl Default for WindowOptions {
    fn default() -> Self {
        Self {
            gbs: 128,
            skip: 0,
            fill_last: false,
        }
    }
}

/// Windows, one at a time. If there is not a single one, the first item says so.
#[derive(Debug, Clone)]
pub struct Windows<I> {
    sequences: Sequences<I>,
    options: WindowOptions,
    seen: Counts,
    dropped: Counts,
    /// Windows skipped or returned.
    passed: u64,
    ended: bool,
    failed: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    sequences: u64,
    tokens: u64,
}

impl<I: Iterator<Item = u64>> Sequences<I> {
    /// Groups the sequences into windows.
    pub fn windows(self, options: &WindowOptions) -> Result<Windows<I>, PackError> {
        if !(1..=GBS_MAX).contains(&options.gbs) {
            return Err(PackError::WindowSequences { gbs: options.gbs });
        }
        Ok(Windows {
            sequences: self,
            options: *options,
            seen: Counts::default(),
            dropped: Counts::default(),
            passed: 0,
            ended: false,
            failed: false,
        })
    }
}

impl<I> Windows<I> {
    /// The source of lengths.
    pub fn lengths_mut(&mut self) -> &mut I {
        self.sequences.lengths_mut()
    }

    /// Sequences of the incomplete last window that were dropped; known when the iterator has ended.
    pub fn dropped_sequences(&self) -> u64 {
        self.dropped.sequences
    }

    /// Tokens of the dropped sequences.
    pub fn dropped_tokens(&self) -> u64 {
        self.dropped.tokens
    }
}

impl<I: Iterator<Item = u64>> Windows<I> {
    fn next_window(&mut self) -> Result<Option<Packed>, PackError> {
        let WindowOptions {
            gbs,
            skip,
            fill_last,
        } = self.options;
        while !self.ended {
            let before = self.seen;
            let mut sequences = Vec::new();
            while !self.ended && (sequences.len() as u64) < gbs {
                match self.sequences.next().transpose()? {
                    Some(sequence) => {
                        self.seen.sequences += 1;
                        self.seen.tokens = self.seen.tokens.saturating_add(sequence.iter().sum());
                        sequences.push(sequence);
                    }
                    None => self.ended = true,
                }
            }
            let complete = !self.ended || (fill_last && !sequences.is_empty());
            if !complete {
                self.dropped.sequences = self.seen.sequences - before.sequences;
                self.dropped.tokens = self.seen.tokens - before.tokens;
                break;
            }
            self.passed += 1;
            if self.passed > skip {
                sequences.resize(gbs as usize, Vec::new());
                return Ok(Some(Packed {
                    seq_tokens: self.sequences.seq_tokens,
                    sequences,
                }));
            }
        }
        if self.passed > skip {
            return Ok(None);
        }
        let seq_tokens = self.sequences.seq_tokens;
        let needed = (u128::from(skip) + 1) * u128::from(gbs) * u128::from(seq_tokens);
        let Counts { sequences, tokens } = self.seen;
        Err(PackError::TooShort {
            tokens,
            sequences,
            gbs,
            seq_tokens,
            skip,
            needed,
        })
    }
}

impl<I: Iterator<Item = u64>> Iterator for Windows<I> {
    type Item = Result<Packed, PackError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.next_window();
        self.failed = next.is_err();
        next.transpose()
    }
}
