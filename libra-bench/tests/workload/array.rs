//! NumPy arrays, whole and broken.

use proptest::prelude::*;

use crate::read::{column, plain, read};

/// A version 1 file, as `numpy.save` writes it.
pub(crate) fn npy(dtype: &str, shape: &str, body: &[u8]) -> Vec<u8> {
    npy_with_header(
        &format!("{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}"),
        body,
    )
}

fn npy_with_header(header: &str, body: &[u8]) -> Vec<u8> {
    let text = format!("{header:<117}\n");
    let text_bytes = u16::try_from(text.len()).expect("the header is short");
    [
        b"\x93NUMPY\x01\x00",
        &text_bytes.to_le_bytes()[..],
        text.as_bytes(),
        body,
    ]
    .concat()
}

#[test]
fn a_broken_array_is_told_with_dtype_shape_and_bytes() {
    let three = b"\x03\0\0\0\x01\0\0\0\x02\0\0\0";
    let good = npy("'<u4'", "(3,)", three);
    let deep = format!("{}{}", "(".repeat(50), ")".repeat(50));
    let cases: [(&[u8], &str); 22] = [
        (
            &good[..good.len() - 1],
            "dtype '<u4' and shape (3,) promise 12 bytes after the header, the file has 11",
        ),
        (
            &npy("'<u4'", "(2,)", three),
            "promise 8 bytes after the header, the file has 12",
        ),
        (
            &npy("'<u4'", "(999999999999,)", three),
            "promise 3999999999996 bytes after the header, the file has 12",
        ),
        (&good[..5], "header of 10 bytes is cut off, the file has 5"),
        (
            &good[..60],
            "header of 128 bytes is cut off, the file has 60",
        ),
        (b"not an array", "the first six bytes are not \\x93NUMPY"),
        (b"\x93NUMPY\x09\0\0\0\0\0", "unsupported version: (9, 0)"),
        (
            b"\x93NUMPY\x02\0\xff\xff\xff\xff",
            "header text of 4294967295 bytes, legal is up to 10000",
        ),
        (
            &npy("'<f4'", "(3,)", three),
            "dtype '<f4' is not an integer; legal are i1, i2, i4, i8, u1",
        ),
        (
            &npy("'|b1'", "(3,)", b"\x01\x01\x01"),
            "dtype '|b1' is not an integer",
        ),
        (&npy("'|O'", "(3,)", three), "dtype '|O' is not an integer"),
        (
            &npy("[('n', '<u4')]", "(3,)", three),
            "dtype [('n', '<u4'), ] is not an integer",
        ),
        (
            &npy("'<u4'", "(3, 1)", three),
            "shape (3, 1) has 2 dimensions; legal is 1",
        ),
        (
            &npy("'<u4'", "()", b"\x03\0\0\0"),
            "shape () has 0 dimensions; legal is 1",
        ),
        (&npy("'<u4'", "(0,)", b""), "holds no samples in 0 elements"),
        (
            &npy("'<u4'", "(9223372036854775808, 4)", three),
            "is not that of a vector",
        ),
        (&npy("'<u4'", &deep, three), "is not that of a vector"),
        (
            &npy("'<u3'", "(3,)", three),
            "is not a NumPy vector of integers: ",
        ),
        (
            &npy_with_header("{'descr': '<u4'}", three),
            "dict is missing key",
        ),
        (
            &npy("'<u4'", "(3,)", b"\x03\0\0\0\0\0\0\0\x02\0\0\0"),
            "a.npy, element 2: the sample has 0 tokens",
        ),
        (
            &npy("'<i4'", "(2,)", b"\x03\0\0\0\xfe\xff\xff\xff"),
            "a.npy, element 2: -2 is negative",
        ),
        (
            &npy("'<u8'", "(1,)", b"\0\0\0\0\x01\0\0\0"),
            "element 1: 4294967296 tokens are too many",
        ),
    ];
    for (content, message) in cases {
        let shown = String::from_utf8_lossy(content);
        let error = read("a.npy", content, &plain())
            .expect_err(message)
            .to_string();
        assert!(error.contains(message), "{shown:?}: {error}");
    }
    let error = read("a.npy", &good, &column("n")).unwrap_err().to_string();
    assert!(error.contains("a.npy: has no columns"), "{error}");
}

/// Reads a body element by element, by hand.
fn read_slowly(dtype: &str, body: &[u8]) -> Vec<i128> {
    let size = usize::from(dtype.as_bytes()[2] - b'0');
    let mut values = Vec::new();
    for start in (0..body.len()).step_by(size) {
        let mut bytes = body[start..start + size].to_vec();
        if dtype.starts_with('>') {
            bytes.reverse();
        }
        let mut value = 0_i128;
        for (place, byte) in bytes.iter().enumerate() {
            value += i128::from(*byte) << (8 * place);
        }
        if &dtype[1..2] == "i" && value >= 1 << (8 * size - 1) {
            value -= 1 << (8 * size);
        }
        values.push(value);
    }
    values
}

const DTYPES: [&str; 14] = [
    "|u1", "|i1", "<u2", ">u2", "<i2", ">i2", "<u4", ">u4", "<i4", ">i4", "<u8", ">u8", "<i8",
    ">i8",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn an_array_reads_as_a_slow_reader_reads_it(
        dtype in prop::sample::select(&DTYPES[..]),
        lengths in prop::collection::vec(1..=u32::MAX, 1..40),
        flips in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let size = usize::from(dtype.as_bytes()[2] - b'0');
        let mut body: Vec<u8> = Vec::new();
        for length in &lengths {
            let mut bytes = u64::from(*length).to_le_bytes()[..size].to_vec();
            if dtype.starts_with('>') {
                bytes.reverse();
            }
            body.extend(bytes);
        }
        for (index, flip) in flips.iter().enumerate() {
            let at = (usize::from(*flip) * 31 + index) % body.len();
            body[at] ^= flip;
        }
        let slow = read_slowly(dtype, &body);
        let file = npy(&format!("'{dtype}'"), &format!("({},)", slow.len()), &body);
        let bad = slow.iter().position(|value| !(1..=i128::from(u32::MAX)).contains(value));
        match (read("a.npy", &file, &plain()), bad) {
            (Ok(fast), None) => {
                prop_assert_eq!(fast.into_iter().map(i128::from).collect::<Vec<_>>(), slow);
            }
            (Err(error), Some(bad)) => {
                let place = format!("a.npy, element {}: ", bad + 1);
                prop_assert!(error.to_string().contains(&place), "{error}");
            }
            (read, bad) => prop_assert!(false, "{read:?} {bad:?}"),
        }
    }

    #[test]
    fn no_header_panics(
        flips in prop::collection::vec((0..128_usize, any::<u8>()), 0..6),
        shape in "[(\\[{]{0,3}[-+0-9x_, ]{0,24}[)\\]}]{0,3}",
    ) {
        let mut file = npy("'<u4'", &shape, &[1; 12]);
        for (at, byte) in flips {
            file[at] = byte;
        }
        let _ = read("a.npy", &file, &plain());
    }
}
