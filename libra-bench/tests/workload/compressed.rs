//! Compressed files, whole and cut off.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::array::npy;
use crate::idx::Index;
use crate::read::{cumulative, plain, read};

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ::zstd::encode_all(bytes, 1).expect("memory can be written")
}

#[test]
fn a_compressed_file_is_what_it_was() {
    let npy = npy("'<u2'", "(3,)", b"\x03\0\x01\0\x02\0");
    let cases: [(&str, &[u8]); 4] = [
        ("a.txt", b"3\n1\n2\n"),
        ("a.csv", b"name,tokens\nx,3\ny,1\nz,2\n"),
        (
            "a.jsonl",
            b"{\"length\":3}\n{\"length\":1}\n{\"length\":2}\n",
        ),
        ("a.npy", &npy),
    ];
    for (name, content) in cases {
        for (suffix, content) in [
            ("gz", gzip(content)),
            ("GZ", gzip(content)),
            // Members one after the other are one content.
            ("gz", [gzip(&content[..4]), gzip(&content[4..])].concat()),
            ("zst", zstd(content)),
            ("zst", [zstd(&content[..4]), zstd(&content[4..])].concat()),
        ] {
            let name = format!("{name}.{suffix}");
            match read(&name, &content, &plain()) {
                Ok(lengths) => assert_eq!(lengths, [3, 1, 2], "{name}"),
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
    let sums = read("a.txt.gz", &gzip(b"0\n3\n4\n6\n"), &cumulative());
    assert_eq!(sums.unwrap(), [3, 1, 2]);
}

#[test]
fn data_that_are_cut_off_are_told_with_what_was_read() {
    let lines: String = (1..2000_u32)
        .map(|line| format!("{}\n", line * line % 1009 + 1))
        .collect();
    for (name, whole, coding) in [
        ("a.txt.gz", gzip(lines.as_bytes()), "gzip"),
        ("a.txt.zst", zstd(lines.as_bytes()), "zstd"),
    ] {
        for end in 1..whole.len() {
            let error = read(name, &whole[..end], &plain()).expect_err("cut off");
            let cause = std::error::Error::source(&error)
                .expect("a cause")
                .to_string();
            let message = format!("the {coding} data are damaged or cut off after ");
            assert!(cause.starts_with(&message), "{name} {end}: {cause}");
            assert!(error.to_string().ends_with("cannot be read"), "{error}");
        }
        assert!(
            read(name, b"3\n1\n2\n", &plain()).is_err(),
            "{name} is not compressed"
        );
    }
    let lengths: Vec<i32> = (1..200).map(|line| line * line % 1009 + 1).collect();
    let elements: Vec<u8> = lengths.iter().flat_map(|n| n.to_le_bytes()).collect();
    let objects: Vec<String> = (lengths.iter())
        .map(|n| format!("{{\"length\":{n}}}\n"))
        .collect();
    let documents: Vec<&[i32]> = lengths.chunks(3).collect();
    for (name, content) in [
        ("a.csv", lines.as_bytes()),
        ("a.jsonl", objects.concat().as_bytes()),
        ("a.npy", &npy("'<i4'", "(199,)", &elements)),
        ("a.idx", &Index::new(&documents).bytes()),
    ] {
        for (suffix, whole) in [("gz", gzip(content)), ("zst", zstd(content))] {
            let name = format!("{name}.{suffix}");
            assert!(read(&name, &whole, &plain()).is_ok(), "{name}");
            for end in (1..whole.len()).step_by(5) {
                let error = read(&name, &whole[..end], &plain()).expect_err("cut off");
                assert!(
                    error.to_string().ends_with("cannot be read"),
                    "{name} {end}: {error}"
                );
            }
        }
    }
    // gzip has a checksum; in zstd it is optional, and left out here.
    let mut damaged = gzip(lines.as_bytes());
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x55;
    assert!(read("a.txt.gz", &damaged, &plain()).is_err());
}

#[test]
fn an_array_of_unknown_size_must_be_what_its_header_promises() {
    for (body, found) in [
        (&b"\x03\0\x01\0\x02"[..], 5),
        (&b"\x03\0\x01\0\x02\0\x07"[..], 7),
    ] {
        let file = npy("'<u2'", "(3,)", body);
        let error = read("a.npy.gz", &gzip(&file), &plain())
            .unwrap_err()
            .to_string();
        let message = format!(
            "dtype '<u2' and shape (3,) promise 6 bytes after the header, the file has {found}"
        );
        assert!(error.contains(&message), "{error}");
    }
    let file = npy("'<u2'", "(3,)", b"");
    let error = read("a.npy.gz", &gzip(&file[..60]), &plain())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("header of 128 bytes is cut off, the file has 60"),
        "{error}"
    );
    let error = read("a.npy.zst", &zstd(&file[..5]), &plain())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("header of 10 bytes is cut off, the file has 5"),
        "{error}"
    );
}
