//! Lengths as a stream: pulled in blocks, so that a source of any size takes constant memory and one indirect call a
//! block.

use std::fmt;

use super::error::InputError;

/// Lengths of a block, about: 256 KiB of them.
pub(super) const BLOCK: usize = 1 << 16;

/// A source of lengths, block by block.
pub(super) trait Blocks: Send {
    /// Fills the empty `block` with the next lengths; leaves it empty at the end.
    fn fill(&mut self, block: &mut Vec<u32>) -> Result<(), InputError>;
}

/// Sample lengths one after the other, from files, a bundled corpus or a distribution.
///
/// As an iterator it ends at the first error too: whoever reaches the end asks [`Self::take_error`] whether it was one.
pub struct Lengths {
    blocks: Box<dyn Blocks>,
    block: Vec<u32>,
    /// The next of the block.
    next: usize,
    ended: bool,
    error: Option<InputError>,
}

impl Lengths {
    pub(super) fn new(blocks: impl Blocks + 'static) -> Self {
        Self {
            blocks: Box::new(blocks),
            block: Vec::new(),
            next: 0,
            ended: false,
            error: None,
        }
    }

    /// The lengths that are at hand, at least one, or nothing at the end. Faster than one by one.
    pub fn next_block(&mut self) -> Result<Option<&[u32]>, InputError> {
        if self.next == self.block.len() {
            self.refill();
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let block = &self.block[self.next..];
        self.next = self.block.len();
        Ok((!block.is_empty()).then_some(block))
    }

    /// Why the lengths ended before their source did, if they did.
    pub fn take_error(&mut self) -> Option<InputError> {
        self.error.take()
    }

    /// All lengths that are left.
    pub fn into_vec(mut self) -> Result<Vec<u64>, InputError> {
        let mut lengths = Vec::new();
        while let Some(block) = self.next_block()? {
            lengths.extend(block.iter().copied().map(u64::from));
        }
        Ok(lengths)
    }

    fn refill(&mut self) {
        self.block.clear();
        self.next = 0;
        if self.ended {
            return;
        }
        if let Err(error) = self.blocks.fill(&mut self.block) {
            // Lengths before the error in its block are not handed out: the error is at hand now.
            self.block.clear();
            self.error = Some(error);
        }
        self.ended = self.block.is_empty();
    }
}

impl Iterator for Lengths {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.next == self.block.len() {
            self.refill();
        }
        let length = *self.block.get(self.next)?;
        self.next += 1;
        Some(u64::from(length))
    }
}

impl fmt::Debug for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lengths")
            .field("at_hand", &(self.block.len() - self.next))
            .field("ended", &self.ended)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

/// Lengths that lie in memory.
pub(super) struct Held {
    lengths: Vec<u32>,
    next: usize,
}

impl Held {
    pub(super) fn new(lengths: Vec<u32>) -> Self {
        Self { lengths, next: 0 }
    }
}

impl Blocks for Held {
    fn fill(&mut self, block: &mut Vec<u32>) -> Result<(), InputError> {
        let end = self.lengths.len().min(self.next + BLOCK);
        block.extend_from_slice(&self.lengths[self.next..end]);
        self.next = end;
        Ok(())
    }
}
