//! Lengths that are counted on their way to the packer.

use crate::failure::Failure;
use crate::interrupt;
use crate::workload::{CorpusStats, LengthCounts, Lengths};

/// Most samples that drawn lengths put into one window, which is in memory as a whole.
const WINDOW_SAMPLES_MAX: u64 = 100_000_000;

/// A source, and what came from it.
pub(super) struct Counted {
    lengths: Lengths,
    counts: LengthCounts,
    is_drawn: bool,
    /// Samples since the window began.
    in_window: u64,
}

impl Counted {
    pub(super) fn new(lengths: Lengths, is_drawn: bool) -> Self {
        Self {
            lengths,
            counts: LengthCounts::default(),
            is_drawn,
            in_window: 0,
        }
    }

    /// Begins the next window, unless the one before broke off.
    pub(super) fn begin_window(&mut self) -> Result<(), Failure> {
        if self.is_full() {
            let limit = WINDOW_SAMPLES_MAX;
            return Err(Failure::TooManySamples { limit });
        }
        self.in_window = 0;
        match self.lengths.take_error() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Counts what no window took.
    pub(super) fn drain(&mut self) -> Result<(), Failure> {
        while !interrupt::requested() {
            match self.lengths.next_block()? {
                Some(block) => self.counts.add_all(block),
                None => break,
            }
        }
        Ok(())
    }

    pub(super) fn stats(&self) -> Option<CorpusStats> {
        self.counts.stats()
    }

    fn is_full(&self) -> bool {
        self.is_drawn && self.in_window == WINDOW_SAMPLES_MAX
    }
}

impl Iterator for Counted {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.is_full() {
            return None;
        }
        let length = self.lengths.next()?;
        self.in_window += 1;
        self.counts.add(length as u32);
        Some(length)
    }
}
