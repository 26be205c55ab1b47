//! What tells a file from another of the same name: its size and a digest of its bytes.
//!
//! Not its time: a copy has another and holds the same, and a report would differ between machines. The digest is XXH3
//! of 64 bits, against mistakes and not against malice, of all bytes up to 256 MiB. Of a larger file it is of 256 blocks
//! of 1 MiB, the first, the last and others evenly between, so that one of any size costs a fraction of a second. A
//! change of a large file then goes unnoticed where it keeps the size and every one of those blocks.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

/// A block of a large file.
const BLOCK_BYTES: u64 = 1 << 20;
/// Blocks of a large file.
const BLOCKS: u64 = 256;

/// A file as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileIdentity {
    /// As named on the command line.
    pub(crate) file: String,
    /// Its size.
    pub(crate) bytes: u64,
    /// Sixteen hexadecimal digits.
    pub(crate) xxh3: String,
}

impl FileIdentity {
    /// Of the regular file at `path`.
    ///
    /// # Errors
    /// It is something else, or cannot be read.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        // Opening a pipe waits for its writer.
        if !fs::metadata(path)?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Self::in_blocks(path, BLOCK_BYTES, BLOCKS)
    }

    fn in_blocks(path: &Path, block_bytes: u64, blocks: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let mut digest = Digest::default();
        if bytes <= block_bytes * blocks {
            io::copy(&mut file, &mut digest)?;
        } else {
            let last = u128::from(bytes - block_bytes);
            for block in 0..blocks {
                let at = last * u128::from(block) / u128::from(blocks - 1);
                file.seek(SeekFrom::Start(at as u64))?;
                io::copy(&mut (&mut file).take(block_bytes), &mut digest)?;
            }
        }
        Ok(Self {
            file: path.display().to_string(),
            bytes,
            xxh3: format!("{:016x}", digest.0.digest()),
        })
    }
}

impl fmt::Display for FileIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes with digest {}", self.bytes, self.xxh3)
    }
}

#[derive(Default)]
struct Digest(Xxh3Default);

impl io::Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(content: &[u8], block_bytes: u64, blocks: u64) -> String {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        fs::write(&path, content).expect("written");
        let identity = FileIdentity::in_blocks(&path, block_bytes, blocks).expect("readable");
        assert_eq!(identity.bytes, content.len() as u64);
        identity.xxh3
    }

    #[test]
    fn every_byte_of_a_small_file_counts() {
        let content: Vec<u8> = (0..60).collect();
        let whole = digest_of(&content, 20, 3);
        assert_eq!(
            whole,
            format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&content))
        );
        for at in 0..content.len() {
            let mut other = content.clone();
            other[at] ^= 1;
            assert_ne!(digest_of(&other, 20, 3), whole, "{at}");
        }
    }

    #[test]
    fn of_a_large_file_the_ends_and_blocks_between_count() {
        let content: Vec<u8> = (0..99).collect();
        let whole = digest_of(&content, 10, 4);
        // Blocks begin at 0, 29, 59 and 89.
        let counts = |at: usize| {
            [0..10, 29..39, 59..69, 89..99]
                .iter()
                .any(|b| b.contains(&at))
        };
        for at in 0..content.len() {
            let mut other = content.clone();
            other[at] ^= 1;
            assert_eq!(digest_of(&other, 10, 4) != whole, counts(at), "{at}");
        }
    }
}
