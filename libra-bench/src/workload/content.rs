//! The bytes of a file, decompressed where its last suffix is `.gz` or `.zst`.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::error::InputError;

/// How a file's bytes are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Plain,
    Gzip,
    Zstd,
}

impl Coding {
    /// By the last suffix, and the path without it.
    pub(super) fn of(path: &Path) -> (Self, &Path) {
        let inner = || Path::new(path.file_stem().unwrap_or_default());
        let suffix = path.extension().and_then(|suffix| suffix.to_str());
        match suffix.map(str::to_ascii_lowercase).as_deref() {
            Some("gz") => (Self::Gzip, inner()),
            Some("zst") => (Self::Zstd, inner()),
            _ => (Self::Plain, path),
        }
    }
}

/// A file that is read from its begin.
pub(super) enum Content {
    /// As it lies on the disk, and its bytes.
    Plain(File, u64),
    /// Decompressed on the way; its bytes are known at the end.
    Decoded(Box<dyn Read + Send>),
}

impl Content {
    pub(super) fn open(path: &Path) -> Result<Self, InputError> {
        let fail = |source| InputError::io(path, source);
        let file = File::open(path).map_err(fail)?;
        Ok(match Coding::of(path).0 {
            Coding::Plain => {
                let bytes = file.metadata().map_err(fail)?.len();
                Self::Plain(file, bytes)
            }
            Coding::Gzip => decoded("gzip", MultiGzDecoder::new(BufReader::new(file))),
            Coding::Zstd => {
                let decoder = zstd::Decoder::new(file).map_err(fail)?;
                decoded("zstd", decoder)
            }
        })
    }

    /// How many bytes there are, where that is known.
    pub(super) fn known_bytes(&self) -> Option<u64> {
        match self {
            Self::Plain(_, bytes) => Some(*bytes),
            Self::Decoded(_) => None,
        }
    }

    /// Passes over the next `bytes` bytes, or fails where there are fewer.
    pub(super) fn skip(&mut self, bytes: u64) -> io::Result<()> {
        match self {
            Self::Plain(file, _) => {
                let relative = i64::try_from(bytes).map_err(|_| io::ErrorKind::UnexpectedEof)?;
                file.seek(SeekFrom::Current(relative)).map(|_| ())
            }
            Self::Decoded(reader) => {
                let skipped = io::copy(&mut reader.take(bytes), &mut io::sink())?;
                match skipped == bytes {
                    true => Ok(()),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                }
            }
        }
    }
}

/// As many of the next bytes as fit in `buffer`, fewer only at the end.
pub(super) fn read_up_to(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file, _) => file.read(buffer),
            Self::Decoded(reader) => reader.read(buffer),
        }
    }
}

fn decoded(coding: &'static str, reader: impl Read + Send + 'static) -> Content {
    Content::Decoded(Box::new(Decoded {
        coding,
        reader,
        bytes: 0,
    }))
}

/// A decoder whose errors say how far it came.
struct Decoded<R> {
    coding: &'static str,
    reader: R,
    bytes: u64,
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer).map_err(|error| {
            let (coding, bytes) = (self.coding, self.bytes);
            // The kind is not kept: a reader must not take it for the end of what was compressed.
            io::Error::other(format!(
                "the {coding} data are damaged or cut off after {bytes} bytes of content: {error}"
            ))
        })?;
        self.bytes += read as u64;
        Ok(read)
    }
}
