use std::fmt::Display;
use std::io::{BufReader, Read};
use std::path::Path;

use npyz::{DType, NpyFile, NpyHeader, TypeChar};

use super::collect::Collector;
use super::error::InputError;

/// Longest header accepted. NumPy writes 128 bytes for a vector and itself refuses to read more than 10,000.
const HEADER_BYTES_MAX: usize = 10_000;

/// Reads a vector of integers from a source of `bytes` bytes.
pub(super) fn read(
    mut source: impl Read,
    bytes: u64,
    path: &Path,
    cumulative: bool,
) -> Result<Vec<u64>, InputError> {
    let (header, header_bytes) = read_header(&mut source, bytes, path)?;
    let (type_char, size, count) = check_vector(&header, bytes - header_bytes, path)?;
    let mut lengths = Collector::new(path, "element", cumulative);
    lengths.reserve(count);
    let array = NpyFile::with_header(header, BufReader::new(source));
    match (type_char, size) {
        (TypeChar::Uint, 1) => push_all::<u8>(array, &mut lengths, path),
        (TypeChar::Uint, 2) => push_all::<u16>(array, &mut lengths, path),
        (TypeChar::Uint, 4) => push_all::<u32>(array, &mut lengths, path),
        (TypeChar::Uint, _) => push_all::<u64>(array, &mut lengths, path),
        (_, 1) => push_all::<i8>(array, &mut lengths, path),
        (_, 2) => push_all::<i16>(array, &mut lengths, path),
        (_, 4) => push_all::<i32>(array, &mut lengths, path),
        (_, _) => push_all::<i64>(array, &mut lengths, path),
    }?;
    lengths.finish(count)
}

/// Kind, size and number of the elements, which take exactly the `found` bytes after the header.
fn check_vector(
    header: &NpyHeader,
    found: u64,
    path: &Path,
) -> Result<(TypeChar, u64, u64), InputError> {
    let path = path.to_owned();
    let dtype = header.dtype().descr();
    let (type_char, size) = match header.dtype() {
        DType::Plain(plain) => (plain.type_char(), plain.size_field()),
        _ => return Err(InputError::DType { path, dtype }),
    };
    if !matches!(type_char, TypeChar::Int | TypeChar::Uint) {
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
    if expected != u128::from(found) {
        return Err(InputError::Size {
            path,
            dtype,
            count,
            expected,
            found,
        });
    }
    Ok((type_char, size, count))
}

fn push_all<T>(
    array: NpyFile<impl Read>,
    lengths: &mut Collector<'_>,
    path: &Path,
) -> Result<(), InputError>
where
    T: npyz::Deserialize + Copy + Display,
    u64: TryFrom<T>,
{
    let dtype = array.dtype().descr();
    let elements = array.data::<T>().map_err(|_| InputError::DType {
        path: path.to_owned(),
        dtype,
    })?;
    for (number, element) in (1..).zip(elements) {
        let element = element.map_err(|source| InputError::Io {
            path: path.to_owned(),
            source,
        })?;
        match u64::try_from(element) {
            Ok(value) => lengths.push(number, value)?,
            // Every element fits in 64 bits, so only a negative one fails.
            Err(_) => return Err(lengths.negative(number, element.to_string())),
        }
    }
    Ok(())
}

/// The parsed header and how many bytes it took.
fn read_header(
    source: &mut impl Read,
    bytes: u64,
    path: &Path,
) -> Result<(NpyHeader, u64), InputError> {
    let refuse = |problem: String| InputError::Header {
        path: path.to_owned(),
        problem,
    };
    let mut header = Vec::new();
    let mut read_to = |len: usize, header: &mut Vec<u8>| {
        if len as u64 > bytes {
            return Err(refuse(format!(
                "header of {len} bytes is cut off, the file has {bytes}"
            )));
        }
        let start = header.len();
        header.resize(len, 0);
        (source.read_exact(&mut header[start..])).map_err(|source| InputError::Io {
            path: path.to_owned(),
            source,
        })
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
