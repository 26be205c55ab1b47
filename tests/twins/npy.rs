//! Lengths of a NumPy vector, decoded slowly: every number byte by byte.

// Tests and fuzz bodies include this file by its path; not all of them use all of it.
#![allow(dead_code, unreachable_pub)]

/// The types that hold lengths, as NumPy writes them.
pub const DTYPES: [&str; 14] = [
    "|u1", "|i1", "<u2", ">u2", "<i2", ">i2", "<u4", ">u4", "<i4", ">i4", "<u8", ">u8", "<i8",
    ">i8",
];

/// The header's text and what follows it; `None` where there is no header.
pub fn split(file: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = file.strip_prefix(b"\x93NUMPY")?;
    let (version, rest) = rest.split_at_checked(2)?;
    let (size, rest) = rest.split_at_checked(if version[0] < 2 { 2 } else { 4 })?;
    let digit = |sum: usize, byte: &u8| sum * 256 + usize::from(*byte);
    rest.split_at_checked(size.iter().rev().fold(0, digit))
}

/// The type and the number of elements in a header that is written exactly as NumPy writes it.
pub fn header_of_numpy(text: &[u8]) -> Option<(&'static str, u64)> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.strip_suffix('\n')?.trim_end_matches(' ');
    let text = text.strip_prefix("{'descr': '")?;
    let (dtype, text) = text.split_at_checked(3)?;
    let count = text.strip_prefix("', 'fortran_order': False, 'shape': (")?;
    let count = count.strip_suffix(",), }")?;
    let is_number = count.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = count.len() <= 9 && (count == "0" || !count.starts_with('0'));
    let dtype = DTYPES.into_iter().find(|known| *known == dtype)?;
    (is_number && is_short).then(|| Some((dtype, count.parse().ok()?)))?
}

/// The numbers in `body`; `None` where a part of one is left over.
pub fn numbers(dtype: &str, body: &[u8]) -> Option<Vec<i128>> {
    let size = usize::from(dtype.as_bytes()[2] - b'0');
    let mut numbers = Vec::new();
    for bytes in body.chunks(size) {
        if bytes.len() < size {
            return None;
        }
        let mut number = 0;
        for (place, byte) in bytes.iter().enumerate() {
            let power = if dtype.starts_with('>') {
                size - 1 - place
            } else {
                place
            };
            number += i128::from(*byte) << (8 * power);
        }
        let is_negative = dtype.contains('i') && number >= 1 << (8 * size - 1);
        numbers.push(number - if is_negative { 1 << (8 * size) } else { 0 });
    }
    Some(numbers)
}

/// `numbers` as lengths, or as running sums of lengths, with or without a leading 0; `None` where they are none.
pub fn lengths(numbers: &[i128], cumulative: bool) -> Option<Vec<u64>> {
    let mut lengths = Vec::new();
    for (at, &number) in numbers.iter().enumerate() {
        if cumulative && at == 0 && number == 0 {
            continue;
        }
        let length = match cumulative && at > 0 {
            true => number - numbers[at - 1],
            false => number,
        };
        if number < 0 || !(1..=i128::from(u32::MAX)).contains(&length) {
            return None;
        }
        lengths.push(length as u64);
    }
    (!lengths.is_empty()).then_some(lengths)
}
