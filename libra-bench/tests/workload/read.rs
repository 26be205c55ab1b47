//! Length files, whole and broken.

use std::fs;
use std::path::Path;

use libra_bench::workload::{InputError, LengthSource, load, read_lengths};
use proptest::prelude::*;

use crate::array::npy;

pub(crate) fn plain() -> LengthSource {
    LengthSource::default()
}

pub(crate) fn column(name: &str) -> LengthSource {
    LengthSource {
        column: Some(name.to_owned()),
        ..LengthSource::default()
    }
}

pub(crate) fn cumulative() -> LengthSource {
    LengthSource {
        cumulative: true,
        ..LengthSource::default()
    }
}

pub(crate) fn read(
    name: &str,
    content: &[u8],
    options: &LengthSource,
) -> Result<Vec<u64>, InputError> {
    let dir = tempfile::tempdir().expect("the temporary directory is writable");
    let path = dir.path().join(name);
    fs::write(&path, content).expect("the temporary directory is writable");
    read_lengths(&path, options)
}

#[test]
fn every_format_gives_the_lengths_in_order() {
    let cases: [(&str, &[u8], LengthSource); 20] = [
        ("a.txt", b"3\n1\n2\n", plain()),
        ("a.TXT", b"3\n1\n2", plain()),
        (
            "a.txt",
            b"# corpus\r\n\r\n 3 \r\n1 # short\r\n2\r\n",
            plain(),
        ),
        ("a.txt", b"\xef\xbb\xbf3\n1\n2\n", plain()),
        ("a.txt", b"0\n3\n4\n6\n", cumulative()),
        ("a.txt", b"3\n4\n6\n", cumulative()),
        ("a.csv", b"3\n1\n2\n", plain()),
        ("a.csv", b"length\n3\n1\n2\n", plain()),
        (
            "a.csv",
            b"\xef\xbb\xbflength,tokens\n3,7\n1,7\n2,7\n",
            plain(),
        ),
        ("a.csv", b"name,tokens\nx,3\n\"y,z\",1\n\n,2\n", plain()),
        ("a.csv", b"words\n3\n1\n2\n", plain()),
        (
            "a.csv",
            b"length,words\n9,3\n9,\" 1\"\n9,2\n",
            column("words"),
        ),
        ("a.csv", b"sum\n0\n3\n4\n6\n", cumulative()),
        ("a.jsonl", b"3\n1\n\n2\n", plain()),
        (
            "a.jsonl",
            b"{\"length\":3}\n{\"text\":[],\"length\":1}\n{\"length\":2}\n",
            plain(),
        ),
        (
            "a.jsonl",
            b"{\"id\":0,\"tokens\":3}\n{\"tokens\":1}\n{\"tokens\":2,\"length\":9}\n",
            plain(),
        ),
        (
            "a.jsonl",
            b"{\"n\":3}\n{\"n\":1,\"m\":9}\n{\"n\":2}",
            plain(),
        ),
        (
            "a.jsonl",
            b"{\"length\":9,\"n\":3}\n{\"n\":1}\n{\"n\":2}\n",
            column("n"),
        ),
        (
            "a.npy",
            &npy("'<u2'", "(3,)", b"\x03\0\x01\0\x02\0"),
            plain(),
        ),
        (
            "a.npy",
            &npy("'>i2'", "(4,)", b"\0\0\0\x03\0\x04\0\x06"),
            cumulative(),
        ),
    ];
    for (name, content, options) in cases {
        let shown = String::from_utf8_lossy(content);
        match read(name, content, &options) {
            Ok(lengths) => assert_eq!(lengths, [3, 1, 2], "{name} {shown:?} {options:?}"),
            Err(error) => panic!("{name} {shown:?} {options:?}: {error}"),
        }
    }
}

#[test]
fn a_broken_text_file_is_told_with_line_and_value() {
    let cases: [(&str, &[u8], LengthSource, &str); 35] = [
        (
            "a.txt",
            b"7\n4K\n",
            plain(),
            "a.txt, line 2: `4K` is not a whole number; a sample has 1 to 4294967295 tokens",
        ),
        (
            "a.csv",
            b"tokens\n4096 tokens\n",
            plain(),
            "a.csv, row 2: `4096 tokens` is not a whole number",
        ),
        (
            "a.csv",
            b"size_bytes\n4096\n",
            plain(),
            "row 1: no column `length` or `tokens`; the columns are size_bytes",
        ),
        (
            "a.jsonl",
            b"{\"chars\":4096}\n",
            plain(),
            "line 1: no column `length` or `tokens`; the columns are chars",
        ),
        (
            "a.jsonl",
            b"{\"length\":7}\n{\"length\":7.25}\n",
            plain(),
            "line 2: `7.25` is not a whole number",
        ),
        (
            "a.txt",
            b"",
            plain(),
            "a.txt: is empty (0 bytes); legal is at least one sample",
        ),
        (
            "a.txt",
            b"\n# none\n",
            plain(),
            "a.txt: holds no samples in 2 lines",
        ),
        (
            "a.txt",
            b"7\n0\n",
            plain(),
            "a.txt, line 2: the sample has 0 tokens; legal is 1 to 4294967295",
        ),
        (
            "a.txt",
            b"7\n\n-5\n",
            plain(),
            "a.txt, line 3: -5 is negative",
        ),
        (
            "a.txt",
            b"7\n1.5\n",
            plain(),
            "a.txt, line 2: `1.5` is not a whole number",
        ),
        (
            "a.txt",
            b"7 8\n",
            plain(),
            "line 1: `7 8` is not a whole number",
        ),
        (
            "a.txt",
            b"4294967296\n",
            plain(),
            "line 1: 4294967296 tokens are too many; a sample has 1 to 4294967295",
        ),
        (
            "a.txt",
            b"99999999999999999999999\n",
            plain(),
            "line 1: 99999999999999999999999 tokens are too many",
        ),
        (
            "a.txt",
            b"7\n\xff\n",
            plain(),
            "a.txt, line 2: is not UTF-8 text",
        ),
        (
            "a.txt",
            b"3\n5\n4\n",
            cumulative(),
            "line 3: 4 follows 5; cumulative lengths are legal only in ascending",
        ),
        (
            "a.txt",
            b"0\n3\n3\n",
            cumulative(),
            "line 3: the sample has 0 tokens",
        ),
        (
            "a.txt",
            b"0\n0\n3\n",
            cumulative(),
            "line 2: the sample has 0 tokens",
        ),
        ("a.txt", b"0\n", cumulative(), "holds no samples in 1 lines"),
        (
            "a.txt",
            b"3\n4294967299\n",
            cumulative(),
            "line 2: 4294967296 tokens are too many",
        ),
        (
            "a.txt",
            b"3\n",
            column("n"),
            "a.txt: has no columns, yet column `n` was asked for",
        ),
        ("a.csv", b"length\n", plain(), "holds no samples in 1 rows"),
        (
            "a.csv",
            b"a,b\n1,2\n",
            plain(),
            "row 1: no column `length` or `tokens`; the columns are a, b",
        ),
        (
            "a.csv",
            b"a,b\n1,2\n",
            column("c"),
            "row 1: no column `c`; the columns are a, b",
        ),
        (
            "a.csv",
            b"1\n2\n",
            column("c"),
            "row 1: no column `c`; the columns are 1",
        ),
        (
            "a.csv",
            b"length,n\n1,2\n\n3\n",
            plain(),
            "row 3: 1 columns, the rows before have 2",
        ),
        (
            "a.csv",
            b"n\n7\n\n\nx\n",
            plain(),
            "a.csv, row 3: `x` is not a whole number",
        ),
        (
            "a.csv",
            b"1.5\n2\n",
            plain(),
            "row 1: `1.5` is not a whole number",
        ),
        (
            "a.csv",
            b"n\n7\n\xff\n",
            plain(),
            "row 3: is not UTF-8 text",
        ),
        (
            "a.jsonl",
            b"7\n{\"length\":\n",
            plain(),
            "a.jsonl, line 2: not JSON from column ",
        ),
        (
            "a.jsonl",
            b"{\"a\":1,\"b\":2}\n",
            plain(),
            "line 1: no column `length` or `tokens`; the columns are a, b",
        ),
        (
            "a.jsonl",
            b"{\"tokens\":1}\n{\"length\":2}\n",
            plain(),
            "line 2: no column `tokens`; the columns are length",
        ),
        (
            "a.jsonl",
            b"7\n",
            column("n"),
            "line 1: no column `n`; the columns are none",
        ),
        (
            "a.jsonl",
            b"{\"length\":\"7\"}\n",
            plain(),
            "line 1: `\"7\"` is not a whole number",
        ),
        (
            "a.jsonl",
            b"{\"length\":-7}\n",
            plain(),
            "line 1: -7 is negative",
        ),
        (
            "a.jsonl",
            b"[7]\n",
            plain(),
            "line 1: `[7]` is not a whole number",
        ),
    ];
    for (name, content, options, message) in cases {
        let shown = String::from_utf8_lossy(content);
        let error = read(name, content, &options)
            .expect_err(message)
            .to_string();
        assert!(error.contains(message), "{name} {shown:?}: {error}");
    }
}

#[test]
fn an_object_that_is_cut_off_is_told_with_its_line() {
    let whole = "{\"id\":\"é\",\"length\":30}\n{\"id\":\"ü\",\"length\":41}";
    let second = whole.find('\n').expect("two lines") + 1;
    for end in 1..whole.len() {
        let found = read("a.jsonl", &whole.as_bytes()[..end], &plain());
        // Nothing tells lines that are whole from all lines.
        if end == second || end == second - 1 {
            assert_eq!(found.unwrap(), [30]);
            continue;
        }
        let error = found.expect_err("cut off").to_string();
        let line = if end < second { 1 } else { 2 };
        assert!(
            error.contains(&format!("a.jsonl, line {line}: ")),
            "{end}: {error}"
        );
    }
    assert_eq!(
        read("a.jsonl", whole.as_bytes(), &plain()).unwrap(),
        [30, 41]
    );
}

#[test]
fn a_json_number_is_told_by_what_is_wrong_with_it() {
    let cases = [
        ("7.5", "`7.5` is not a whole number"),
        ("7.0", "`7.0` is not a whole number"),
        ("null", "`null` is not a whole number"),
        ("4294967296", "4294967296 tokens are too many"),
        ("18446744073709551616", "tokens are too many"),
        ("-18446744073709551616", "is negative"),
    ];
    for (number, message) in cases {
        let error = read("a.jsonl", number.as_bytes(), &plain())
            .expect_err(message)
            .to_string();
        assert!(error.contains(message), "{number}: {error}");
    }
}

#[test]
fn a_path_that_leads_to_no_length_file_is_told_with_what_is_legal() {
    let dir = tempfile::tempdir().expect("the temporary directory is writable");
    let message = |name: &str| {
        let path = dir.path().join(name);
        load(path.to_str().expect("the path is UTF-8"), &plain())
            .unwrap_err()
            .to_string()
    };
    assert!(
        message("none.txt").contains("none.txt: no such file, nor a bundled corpus (linux-6.1)")
    );
    assert!(message("").contains("is a directory; legal is a regular file"));
    for (name, suffix) in [
        ("a.pdf", "`pdf`"),
        ("a", "``"),
        ("a.gz", "`gz`"),
        ("a.csv.xz", "`xz`"),
    ] {
        fs::write(dir.path().join(name), "7\n").expect("the temporary directory is writable");
        let error = message(name);
        assert!(
            error.contains(&format!("suffix {suffix} is not that of a length file")),
            "{error}"
        );
        assert!(
            error.contains(
                "legal are .txt, .npy, .csv, .jsonl, .idx, .parquet, .arrow and .feather, \
                 the first five also with .gz or .zst"
            ),
            "{error}"
        );
    }
    fs::write(dir.path().join("a.parquet.gz"), "7\n").expect("the temporary directory is writable");
    let error = message("a.parquet.gz");
    assert!(
        error.contains("a.parquet.gz: must be decompressed first"),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_text_panics(
        suffix in prop::sample::select(&["txt", "csv", "jsonl"][..]),
        content in prop::collection::vec(any::<u8>(), 0..80),
        line in "[-0-9a\"{}:,\\[\\]e.\r\n]{0,60}",
        sums in any::<bool>(),
    ) {
        let options = LengthSource { cumulative: sums, ..LengthSource::default() };
        let name = format!("a.{suffix}");
        let _ = read(&name, &content, &options);
        let _ = read(&name, line.as_bytes(), &options);
    }

    #[test]
    fn running_sums_give_the_lengths_they_sum(
        lengths in prop::collection::vec(1..=u64::from(u32::MAX), 1..20),
        leading_zero in any::<bool>(),
    ) {
        let mut sum = 0;
        let mut text = String::from(if leading_zero { "0\n" } else { "" });
        for length in &lengths {
            sum += length;
            text += &format!("{sum}\n");
        }
        prop_assert_eq!(read("a.txt", text.as_bytes(), &cumulative()).unwrap(), lengths);
    }
}

#[test]
fn an_unreadable_file_keeps_the_reason_as_its_source() {
    let error = read_lengths(Path::new("a\0b.txt"), &plain()).unwrap_err();
    assert!(error.to_string().ends_with("cannot be read"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}
