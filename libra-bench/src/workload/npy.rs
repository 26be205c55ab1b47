//! NumPy vectors of integers, in blocks.
//!
//! A block is decoded by a loop without branches that also says whether all of it are lengths; only a block that has
//! something else is looked at number by number.

use std::io::Read;
use std::path::Path;

use npyz::{DType, Endianness, NpyHeader, TypeChar};

use super::TOKENS_MAX;
use super::collect::Collector;
use super::content::{Content, read_up_to};
use super::error::InputError;
use super::lengths::{BLOCK, Blocks};

/// Longest header accepted. NumPy writes 128 bytes for a vector and itself refuses to read more than 10,000.
const HEADER_BYTES_MAX: usize = 10_000;

/// The elements of an array.
pub(super) struct Elements<R> {
    source: R,
    element: Element,
    /// As NumPy writes it.
    dtype: String,
    count: u64,
    /// How many were read.
    read: u64,
    bytes: Vec<u8>,
    numbers: Collector,
}

/// How an element lies in its bytes.
#[derive(Debug, Clone, Copy)]
struct Element {
    is_signed: bool,
    size: usize,
    is_big_endian: bool,
}

impl<R: Read + Send> Elements<R> {
    /// An array of `bytes` bytes, header included, where that is known.
    pub(super) fn new(
        mut source: R,
        bytes: Option<u64>,
        path: &Path,
        cumulative: bool,
    ) -> Result<Self, InputError> {
        let (header, header_bytes) = read_header(&mut source, bytes, path)?;
        let found = bytes.map(|bytes| bytes - header_bytes);
        let (element, count) = check_vector(&header, found, path)?;
        Ok(Self {
            source,
            element,
            dtype: header.dtype().descr(),
            count,
            read: 0,
            bytes: Vec::new(),
            numbers: Collector::new(path, "element", cumulative),
        })
    }

    fn wrong_size(&self, found: u64) -> InputError {
        InputError::Size {
            path: self.numbers.path().to_owned(),
            dtype: self.dtype.clone(),
            count: self.count,
            expected: u128::from(self.count) * self.element.size as u128,
            found,
        }
    }
}

impl Elements<Content> {
    /// An array in a file.
    pub(super) fn open(source: Content, path: &Path, cumulative: bool) -> Result<Self, InputError> {
        let bytes = source.known_bytes();
        Self::new(source, bytes, path, cumulative)
    }
}

impl<R: Read + Send> Blocks for Elements<R> {
    fn fill(&mut self, block: &mut Vec<u32>) -> Result<(), InputError> {
        // The first number of running sums may be no length, and an empty block is the end.
        while block.is_empty() {
            let size = self.element.size;
            let wanted = (self.count - self.read).min(BLOCK as u64) as usize;
            // At the end one byte more is asked for: there must be none.
            self.bytes.resize((wanted * size).max(1), 0);
            let filled = read_up_to(&mut self.source, &mut self.bytes)
                .map_err(|source| InputError::io(self.numbers.path(), source))?;
            if filled != wanted * size {
                return Err(self.wrong_size(self.read * size as u64 + filled as u64));
            }
            if wanted == 0 {
                return self.numbers.finish(self.count);
            }
            let first = self.read + 1;
            self.read += wanted as u64;
            let bytes = &self.bytes[..filled];
            if self.numbers.is_plain() && self.element.decode(bytes, block) {
                let tokens = block.iter().copied().map(u64::from).sum();
                return self.numbers.count(self.read, wanted as u64, tokens);
            }
            block.clear();
            for (number, bytes) in (first..).zip(bytes.chunks_exact(size)) {
                let value = self.element.value(bytes);
                if self.element.is_signed && (value as i64) < 0 {
                    return Err(self.numbers.negative(number, (value as i64).to_string()));
                }
                self.numbers.push(block, number, value)?;
            }
        }
        Ok(())
    }
}

impl Element {
    /// Appends the numbers in `bytes` to `block` and says whether all of them are lengths.
    fn decode(self, bytes: &[u8], block: &mut Vec<u32>) -> bool {
        match (self.is_signed, self.size, self.is_big_endian) {
            (false, 1, _) => decode(bytes, block, |[byte]: [u8; 1]| byte.into()),
            (true, 1, _) => decode(bytes, block, |[byte]: [u8; 1]| byte as i8 as u64),
            (false, 2, false) => decode(bytes, block, |bytes| u16::from_le_bytes(bytes).into()),
            (false, 2, true) => decode(bytes, block, |bytes| u16::from_be_bytes(bytes).into()),
            (true, 2, false) => decode(bytes, block, |bytes| i16::from_le_bytes(bytes) as u64),
            (true, 2, true) => decode(bytes, block, |bytes| i16::from_be_bytes(bytes) as u64),
            (false, 4, false) => decode(bytes, block, |bytes| u32::from_le_bytes(bytes).into()),
            (false, 4, true) => decode(bytes, block, |bytes| u32::from_be_bytes(bytes).into()),
            (true, 4, false) => decode(bytes, block, |bytes| i32::from_le_bytes(bytes) as u64),
            (true, 4, true) => decode(bytes, block, |bytes| i32::from_be_bytes(bytes) as u64),
            // Of eight bytes, negative numbers are too large as they are.
            (_, _, false) => decode(bytes, block, u64::from_le_bytes),
            (_, _, true) => decode(bytes, block, u64::from_be_bytes),
        }
    }

    /// One number, with its sign spread over 64 bits.
    fn value(self, bytes: &[u8]) -> u64 {
        let digit = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let value = if self.is_big_endian {
            bytes.iter().fold(0, digit)
        } else {
            bytes.iter().rev().fold(0, digit)
        };
        let unused = u64::BITS - 8 * self.size as u32;
        if self.is_signed {
            ((value << unused) as i64 >> unused) as u64
        } else {
            value
        }
    }
}

fn decode<const SIZE: usize>(
    bytes: &[u8],
    block: &mut Vec<u32>,
    value: impl Fn([u8; SIZE]) -> u64,
) -> bool {
    let mut are_lengths = true;
    let (elements, _) = bytes.as_chunks::<SIZE>();
    block.extend(elements.iter().map(|bytes| {
        let value = value(*bytes);
        // Zero wraps around to the largest number.
        are_lengths &= value.wrapping_sub(1) < TOKENS_MAX;
        value as u32
    }));
    are_lengths
}

/// What the elements are and how many, which take exactly the `found` bytes after the header where that is known.
fn check_vector(
    header: &NpyHeader,
    found: Option<u64>,
    path: &Path,
) -> Result<(Element, u64), InputError> {
    let path = path.to_owned();
    let dtype = header.dtype().descr();
    let plain = match header.dtype() {
        DType::Plain(plain) => plain,
        _ => return Err(InputError::DType { path, dtype }),
    };
    let (type_char, size) = (plain.type_char(), plain.size_field());
    let is_integer = matches!(type_char, TypeChar::Int | TypeChar::Uint);
    if !is_integer || !matches!(size, 1 | 2 | 4 | 8) {
        return Err(InputError::DType { path, dtype });
    }
    let &[count] = header.shape() else {
        let sizes: Vec<String> = header.shape().iter().map(u64::to_string).collect();
        let (shape, dimensions) = (format!("({})", sizes.join(", ")), sizes.len());
        return Err(InputError::Shape {
            path,
            shape,
            dimensions,
        });
    };
    let expected = u128::from(count) * u128::from(size);
    if let Some(found) = found.filter(|found| expected != u128::from(*found)) {
        return Err(InputError::Size {
            path,
            dtype,
            count,
            expected,
            found,
        });
    }
    let element = Element {
        is_signed: type_char == TypeChar::Int,
        size: size as usize,
        is_big_endian: plain.endianness() == Endianness::Big,
    };
    Ok((element, count))
}

/// The parsed header and how many bytes it took.
fn read_header(
    source: &mut impl Read,
    bytes: Option<u64>,
    path: &Path,
) -> Result<(NpyHeader, u64), InputError> {
    let refuse = |problem: String| InputError::Header {
        path: path.to_owned(),
        problem,
    };
    let mut header = Vec::new();
    let mut read_to = |len: usize, header: &mut Vec<u8>| {
        let cut_off = |found: u64| {
            refuse(format!(
                "header of {len} bytes is cut off, the file has {found}"
            ))
        };
        if let Some(bytes) = bytes.filter(|bytes| len as u64 > *bytes) {
            return Err(cut_off(bytes));
        }
        let start = header.len();
        header.resize(len, 0);
        let filled = read_up_to(source, &mut header[start..])
            .map_err(|source| InputError::io(path, source))?;
        match start + filled == len {
            true => Ok(()),
            false => Err(cut_off((start + filled) as u64)),
        }
    };
    read_to(10, &mut header)?;
    if !header.starts_with(b"\x93NUMPY") {
        return Err(refuse("the first six bytes are not \\x93NUMPY".to_owned()));
    }
    // From version 2 on the text's length takes four bytes.
    let text_bytes = if header[6] < 2 {
        usize::from(u16::from_le_bytes([header[8], header[9]]))
    } else {
        read_to(12, &mut header)?;
        u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize
    };
    let start = header.len();
    if text_bytes > HEADER_BYTES_MAX {
        return Err(refuse(format!(
            "header text of {text_bytes} bytes, legal is up to {HEADER_BYTES_MAX}"
        )));
    }
    read_to(start + text_bytes, &mut header)?;
    if !is_plain(&header[start..]) {
        let text: String = String::from_utf8_lossy(&header[start..])
            .chars()
            .take(120)
            .collect();
        return Err(refuse(format!(
            "header `{}` is not that of a vector",
            text.trim_end()
        )));
    }
    let parsed = NpyHeader::from_reader(&header[..]).map_err(|error| refuse(error.to_string()))?;
    Ok((parsed, header.len() as u64))
}

/// Whether npyz can be trusted with a header's text.
///
/// Its parser takes time exponential in the nesting, and its product of the dimensions can overflow. The keys `descr`,
/// `fortran_order`, `shape` and a truth value have ten hexadecimal digits among their letters, so 26 leave 16 to the
/// dimensions, whose product is then below 2^64 however they are spelled.
fn is_plain(text: &[u8]) -> bool {
    const DEPTH_MAX: i64 = 4;
    const HEX_DIGITS_MAX: usize = 26;
    let mut depth = 0_i64;
    let mut depth_max = 0;
    for byte in text {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            // Below zero the text is broken, and going there must not buy depth elsewhere.
            b')' | b']' | b'}' => depth = (depth - 1).max(0),
            _ => {}
        }
        depth_max = depth_max.max(depth);
    }
    let hex_digits = text.iter().filter(|byte| byte.is_ascii_hexdigit()).count();
    depth_max <= DEPTH_MAX && hex_digits <= HEX_DIGITS_MAX
}
