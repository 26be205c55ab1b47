//! A table of an index, block by block.

use std::io;
use std::path::Path;

use super::super::content::{Content, read_up_to};
use super::super::error::InputError;
use super::super::lengths::BLOCK;

/// A table of numbers of `SIZE` bytes, read in blocks.
pub(super) struct Table<const SIZE: usize> {
    source: Content,
    name: &'static str,
    pub(super) rows: u64,
    /// How many were read.
    pub(super) read: u64,
    /// Those at hand.
    pub(super) bytes: Vec<u8>,
}

impl<const SIZE: usize> Table<SIZE> {
    pub(super) fn new(source: Content, name: &'static str, rows: u64) -> Self {
        Self {
            source,
            name,
            rows,
            read: 0,
            bytes: Vec::new(),
        }
    }

    /// The table that begins `skip` bytes after the file does.
    pub(super) fn open(
        path: &Path,
        skip: u128,
        name: &'static str,
        rows: u64,
    ) -> Result<Self, InputError> {
        let mut source = Content::open(path)?;
        let skipped = match u64::try_from(skip) {
            Ok(skip) => source.skip(skip),
            Err(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        };
        let table = Self::new(source, name, rows);
        match skipped {
            Ok(()) => Ok(table),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(table.cut_off(path, 0))
            }
            Err(error) => Err(InputError::io(path, error)),
        }
    }

    /// The next numbers, as many as the table has up to a block.
    pub(super) fn next(&mut self, path: &Path) -> Result<&[[u8; SIZE]], InputError> {
        let rows = (self.rows - self.read).min(BLOCK as u64);
        self.bytes.resize(rows as usize * SIZE, 0);
        let filled = read_up_to(&mut self.source, &mut self.bytes);
        let filled = filled.map_err(|error| InputError::io(path, error))?;
        if filled < self.bytes.len() {
            let row = self.read + (filled / SIZE) as u64;
            return Err(self.cut_off(path, row));
        }
        self.read += rows;
        Ok(self.bytes.as_chunks::<SIZE>().0)
    }

    /// How many bytes of the file follow those that were read.
    pub(super) fn rest(&mut self, path: &Path) -> Result<u64, InputError> {
        io::copy(&mut self.source, &mut io::sink()).map_err(|error| InputError::io(path, error))
    }

    fn cut_off(&self, path: &Path, row: u64) -> InputError {
        InputError::Index {
            path: path.to_owned(),
            problem: format!("the file ends after {row} of {} {}", self.rows, self.name),
        }
    }
}
