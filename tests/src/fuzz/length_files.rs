//! Bytes that may be a file of lengths: its reader answers as a slow decoder of the same bytes does.

use std::io::Write;

use arbitrary::{Result, Unstructured};
use libra_bench::workload::{IdxSamples, InputError, LengthSource, read_lengths};

use crate::twins;

/// Bytes that may be a Megatron index: reading gives the lengths that its slow twin finds, or an error where the twin
/// finds none. The same for an index made of the bytes and damaged.
///
/// # Panics
/// On a bug.
pub fn idx(bytes: &[u8]) {
    check_index(bytes);
    if let Ok(file) = damaged(&mut Unstructured::new(bytes), index) {
        check_index(&file);
    }
}

/// Bytes that may be a NumPy array, likewise. Headers may be written in more ways than the twin knows: lengths from one
/// of those are the elements of a type that it names.
///
/// # Panics
/// On a bug.
pub fn npy(bytes: &[u8]) {
    check_array(bytes);
    if let Ok(file) = damaged(&mut Unstructured::new(bytes), array) {
        check_array(&file);
    }
}

fn check_index(file: &[u8]) {
    for (samples, expected) in [
        (IdxSamples::Documents, twins::idx::documents(file)),
        (IdxSamples::Sequences, twins::idx::sequences(file)),
    ] {
        let options = LengthSource {
            idx: Some(samples),
            ..LengthSource::default()
        };
        assert_eq!(read("idx", file, &options), expected, "{samples}: {file:?}");
    }
}

fn check_array(file: &[u8]) {
    for cumulative in [false, true] {
        let options = LengthSource {
            cumulative,
            ..LengthSource::default()
        };
        let found = read("npy", file, &options);
        let Some((header, body)) = twins::npy::split(file) else {
            assert_eq!(found, None, "{file:?}");
            continue;
        };
        let as_type = |dtype: &str| {
            let numbers = twins::npy::numbers(dtype, body)?;
            Some((
                numbers.len() as u64,
                twins::npy::lengths(&numbers, cumulative)?,
            ))
        };
        match (twins::npy::header_of_numpy(header), found) {
            (Some((dtype, count)), found) if file[6..8] == [1, 0] => {
                let expected = as_type(dtype).filter(|(elements, _)| *elements == count);
                assert_eq!(found, expected.map(|(_, lengths)| lengths), "{file:?}");
            }
            (_, None) => {}
            (_, Some(found)) => {
                let text = String::from_utf8_lossy(header);
                let is_it = |dtype: &&str| {
                    // Of one byte, any order will do.
                    text.contains(&dtype[1..])
                        && as_type(dtype).is_some_and(|(_, lengths)| lengths == found)
                };
                let dtype = twins::npy::DTYPES.iter().find(|dtype| is_it(dtype));
                assert!(dtype.is_some(), "{found:?} in {file:?}");
            }
        }
    }
}

/// What the reader of files with this suffix makes of `content`; an error says which file it is about.
fn read(suffix: &str, content: &[u8], options: &LengthSource) -> Option<Vec<u64>> {
    let file = tempfile::Builder::new()
        .suffix(&format!(".{suffix}"))
        .tempfile();
    let mut file = file.expect("the temporary folder can be written");
    file.write_all(content)
        .expect("the temporary folder can be written");
    let told = |error: InputError| {
        let path = file.path().display().to_string();
        assert!(error.to_string().starts_with(&path), "{error}");
    };
    read_lengths(file.path(), options).map_err(told).ok()
}

/// A file in which some bytes may be overwritten, and which may be cut or continued.
fn damaged(
    u: &mut Unstructured<'_>,
    file: impl Fn(&mut Unstructured<'_>) -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let mut file = file(u)?;
    for _ in 0..u.int_in_range(0..=3)? {
        let place = u.choose_index(file.len())?;
        file[place] = u.arbitrary()?;
    }
    match u.int_in_range(0..=7)? {
        0 => file.truncate(u.choose_index(file.len())?),
        1 => file.extend_from_slice(u.bytes(u.len().min(16))?),
        _ => {}
    }
    Ok(file)
}

/// A whole index of a few sequences.
fn index(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let code = u.int_in_range(1..=8u8)?;
    let token_bytes = [1, 1, 2, 4, 8, 8, 4, 2][usize::from(code) - 1];
    let lengths = (0..u.int_in_range(0..=12)?).map(|_| match u.ratio(1, 8)? {
        true => u.int_in_range(i32::MAX - 1..=i32::MAX),
        false => u.int_in_range(0..=9),
    });
    let lengths: Vec<i32> = lengths.collect::<Result<_>>()?;
    let mut indices = vec![0];
    let mut end = 0;
    for _ in 0..u.int_in_range(0..=6)? {
        end = u.int_in_range(end..=lengths.len())?;
        indices.push(end as i64);
    }
    indices.push(lengths.len() as i64);
    let mut file = b"MMIDIDX\0\0\x01\0\0\0\0\0\0\0".to_vec();
    file.push(code);
    file.extend((lengths.len() as u64).to_le_bytes());
    file.extend((indices.len() as u64).to_le_bytes());
    file.extend(lengths.iter().flat_map(|length| length.to_le_bytes()));
    let mut offset = 0_i64;
    for length in &lengths {
        file.extend(offset.to_le_bytes());
        offset += i64::from(*length) * token_bytes;
    }
    file.extend(indices.iter().flat_map(|index: &i64| index.to_le_bytes()));
    if u.ratio(1, 4)? {
        // Modes.
        file.extend(lengths.iter().map(|_| 1));
    }
    Ok(file)
}

/// A whole vector of a few numbers.
fn array(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let dtype = *u.choose(&twins::npy::DTYPES)?;
    let size = usize::from(dtype.as_bytes()[2] - b'0');
    let count = u.int_in_range(0..=12)?;
    let text = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({count},), }}");
    let mut file = b"\x93NUMPY\x01\0\x76\0".to_vec();
    file.extend(format!("{text:<117}\n").bytes());
    for _ in 0..count {
        let number = u.int_in_range(0..=u32::MAX)? >> u.choose(&[31, 28, 24, 0])?;
        let mut bytes = u64::from(number).to_le_bytes()[..size].to_vec();
        if dtype.starts_with('>') {
            bytes.reverse();
        }
        file.extend(bytes);
    }
    Ok(file)
}
