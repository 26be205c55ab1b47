//! Lengths of a Megatron index, decoded slowly: the whole file in memory, every number on its own.
//!
//! `None` is a file that is no index, contradicts itself or holds no sample.

// Tests and fuzz bodies include this file by its path; not all of them use all of it.
#![allow(dead_code, unreachable_pub)]

/// Bytes of a token by its type's code, from 1 on: u8, i8, i16, i32, i64, f64, f32, u16.
const TOKEN_BYTES: [i128; 8] = [1, 1, 2, 4, 8, 8, 4, 2];

/// What an index holds.
struct Tables {
    lengths: Vec<i128>,
    indices: Vec<i128>,
}

/// Tokens of every sequence that has any.
pub fn sequences(file: &[u8]) -> Option<Vec<u64>> {
    samples(tables(file)?.lengths)
}

/// Tokens of every document that has any.
pub fn documents(file: &[u8]) -> Option<Vec<u64>> {
    let Tables { lengths, indices } = tables(file)?;
    if indices[0] != 0 || indices[indices.len() - 1] != lengths.len() as i128 {
        return None;
    }
    let mut sums = Vec::new();
    for pair in indices.windows(2) {
        if pair[0] > pair[1] || pair[1] > lengths.len() as i128 {
            return None;
        }
        sums.push(lengths[pair[0] as usize..pair[1] as usize].iter().sum());
    }
    samples(sums)
}

/// Lengths without the empty ones, of which at least one is left; none is beyond 32 bits.
fn samples(lengths: Vec<i128>) -> Option<Vec<u64>> {
    let mut samples = Vec::new();
    for length in lengths {
        if length > i128::from(u32::MAX) {
            return None;
        }
        if length > 0 {
            samples.push(length as u64);
        }
    }
    (!samples.is_empty()).then_some(samples)
}

fn tables(file: &[u8]) -> Option<Tables> {
    let mut rest = file.strip_prefix(b"MMIDIDX\0\0")?;
    let version = number(&mut rest, 8)?;
    let token_bytes = *TOKEN_BYTES.get(usize::try_from(number(&mut rest, 1)? - 1).ok()?)?;
    let (sequences, indices) = (number(&mut rest, 8)?, number(&mut rest, 8)?);
    if version != 1 || indices == 0 {
        return None;
    }
    let lengths = signed_numbers(&mut rest, sequences, 4)?;
    let offsets = signed_numbers(&mut rest, sequences, 8)?;
    let indices = signed_numbers(&mut rest, indices, 8)?;
    let modes = rest.len() as i128;
    if modes != 0 && modes != sequences {
        return None;
    }
    for at in 0..lengths.len() {
        let before: i128 = lengths[..at].iter().sum();
        if lengths[at] < 0 || offsets[at] != before * token_bytes {
            return None;
        }
    }
    Some(Tables { lengths, indices })
}

/// The next little-endian number of `size` bytes.
fn number(rest: &mut &[u8], size: usize) -> Option<i128> {
    let (bytes, after) = rest.split_at_checked(size)?;
    *rest = after;
    let digit = |sum: i128, byte: &u8| sum * 256 + i128::from(*byte);
    Some(bytes.iter().rev().fold(0, digit))
}

/// The next `count` numbers, in two's complement.
fn signed_numbers(rest: &mut &[u8], count: i128, size: usize) -> Option<Vec<i128>> {
    let mut numbers = Vec::new();
    let half = 1 << (8 * size - 1);
    while (numbers.len() as i128) < count {
        let number = number(rest, size)?;
        numbers.push(if number < half {
            number
        } else {
            number - 2 * half
        });
    }
    Some(numbers)
}
