//! Megatron indexes, whole and broken.

use libra_bench::workload::{IdxSamples, LengthSource};
use proptest::prelude::*;

use crate::compressed::{gzip, zstd};
use crate::idx_twin;
use crate::read::{cumulative, plain, read};

/// An index, field by field, so that a test can break any of them. As its layout says: magic, version, the type of a
/// token, numbers of sequences and of document indices; then lengths, offsets in bytes and document indices.
#[derive(Clone)]
pub(crate) struct Index {
    magic: Vec<u8>,
    version: u64,
    code: u8,
    sequences: u64,
    documents: u64,
    pub(crate) lengths: Vec<i32>,
    offsets: Vec<i64>,
    indices: Vec<i64>,
}

impl Index {
    /// Documents, each the lengths of its sequences, of tokens of two bytes.
    pub(crate) fn new(documents: &[&[i32]]) -> Self {
        let lengths = documents.concat();
        let mut offsets = Vec::new();
        let mut offset = 0;
        for length in &lengths {
            offsets.push(offset);
            offset += 2 * i64::from(*length);
        }
        let mut indices = vec![0];
        for document in documents {
            indices.push(indices[indices.len() - 1] + document.len() as i64);
        }
        Self {
            magic: b"MMIDIDX\0\0".to_vec(),
            version: 1,
            code: 8,
            sequences: lengths.len() as u64,
            documents: indices.len() as u64,
            lengths,
            offsets,
            indices,
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.magic.clone();
        bytes.extend(self.version.to_le_bytes());
        bytes.push(self.code);
        bytes.extend(self.sequences.to_le_bytes());
        bytes.extend(self.documents.to_le_bytes());
        bytes.extend(self.lengths.iter().flat_map(|length| length.to_le_bytes()));
        bytes.extend(self.offsets.iter().flat_map(|offset| offset.to_le_bytes()));
        bytes.extend(self.indices.iter().flat_map(|index| index.to_le_bytes()));
        bytes
    }
}

fn samples(idx: IdxSamples) -> LengthSource {
    LengthSource {
        idx: Some(idx),
        ..LengthSource::default()
    }
}

/// Two sequences, none, one empty sequence, one, three with an empty one among them.
const DOCUMENTS: [&[i32]; 5] = [&[3, 4], &[], &[0], &[9], &[1, 0, 5]];

#[test]
fn a_sample_is_a_document_or_a_sequence_and_has_tokens() {
    let file = Index::new(&DOCUMENTS).bytes();
    assert_eq!(read("a.idx", &file, &plain()).unwrap(), [7, 9, 6]);
    let documents = samples(IdxSamples::Documents);
    assert_eq!(read("a.idx", &file, &documents).unwrap(), [7, 9, 6]);
    let sequences = samples(IdxSamples::Sequences);
    let expected = [3, 4, 9, 1, 5];
    assert_eq!(read("a.idx", &file, &sequences).unwrap(), expected);
    for (name, file) in [("a.idx.gz", gzip(&file)), ("a.idx.zst", zstd(&file))] {
        assert_eq!(read(name, &file, &plain()).unwrap(), [7, 9, 6], "{name}");
        assert_eq!(read(name, &file, &sequences).unwrap(), expected, "{name}");
    }
}

#[test]
fn modes_of_a_multimodal_dataset_are_passed_over() {
    let mut file = Index::new(&DOCUMENTS).bytes();
    file.extend([0, 1, 0, 1, 0, 1, 1]);
    assert_eq!(read("a.idx", &file, &plain()).unwrap(), [7, 9, 6]);
}

#[test]
fn a_dataset_may_have_more_tokens_than_31_bits_count() {
    let half = 1 << 30;
    let documents: [&[i32]; 3] = [&[i32::MAX, half], &[half, half], &[i32::MAX]];
    let lengths = read("a.idx", &Index::new(&documents).bytes(), &plain()).unwrap();
    assert_eq!(lengths, [3_221_225_471, 2_147_483_648, 2_147_483_647]);
    let documents: [&[i32]; 2] = [&[7], &[i32::MAX, i32::MAX, 2]];
    let error = read("a.idx", &Index::new(&documents).bytes(), &plain()).unwrap_err();
    assert_eq!(
        error.to_string().rsplit('/').next(),
        Some("a.idx, document 2: 4294967296 tokens are too many; a sample has 1 to 4294967295")
    );
}

#[test]
fn every_code_of_a_token_type_has_its_bytes() {
    for (code, bytes) in [
        (1, 1),
        (2, 1),
        (3, 2),
        (4, 4),
        (5, 8),
        (6, 8),
        (7, 4),
        (8, 2),
    ] {
        let index = Index {
            code,
            offsets: vec![0, 3 * bytes],
            ..Index::new(&[&[3], &[4]])
        };
        assert_eq!(read("a.idx", &index.bytes(), &plain()).unwrap(), [3, 4]);
    }
}

#[test]
fn every_broken_field_is_told_with_its_place_and_what_is_legal() {
    let good = Index::new(&DOCUMENTS);
    let change = |change: fn(&mut Index)| {
        let mut index = good.clone();
        change(&mut index);
        index.bytes()
    };
    let cases: [(Vec<u8>, &str); 21] = [
        (
            change(|index| index.magic[3] = b'X'),
            "a.idx: is not a Megatron .idx: the first nine bytes are not MMIDIDX\\0\\0",
        ),
        (b"MMIDIDX".to_vec(), "the first nine bytes are not MMIDIDX"),
        (
            good.bytes()[..33].to_vec(),
            "the header of 34 bytes ends after 33",
        ),
        (change(|index| index.version = 2), "version 2, legal is 1"),
        (
            change(|index| index.code = 0),
            "type code 0 of tokens, legal are 1 to 8",
        ),
        (
            change(|index| index.code = 9),
            "type code 9 of tokens, legal are 1 to 8",
        ),
        (
            change(|index| index.code = 4),
            "a.idx, sequence 2: offset 6, the lengths before it end at 12 with 4 bytes a token",
        ),
        (
            change(|index| index.sequences = 8),
            "8 sequences and 6 document indices take 178 bytes, 186 with modes, the file has 166",
        ),
        (
            change(|index| index.sequences = u64::MAX),
            "18446744073709551615 sequences and 6 document indices take",
        ),
        (
            change(|index| index.documents = 7),
            "7 sequences and 7 document indices take 174 bytes, 181 with modes, the file has 166",
        ),
        (
            change(|index| index.documents = 0),
            "0 document indices, legal is at least the first, 0",
        ),
        (
            good.bytes()[..165].to_vec(),
            "7 sequences and 6 document indices take 166 bytes, 173 with modes, the file has 165",
        ),
        (
            change(|index| index.lengths[1] = -4),
            "a.idx, sequence 2: -4 is negative",
        ),
        (
            change(|index| index.lengths[1] = 5),
            "a.idx, sequence 3: offset 14, the lengths before it end at 16 with 2 bytes a token",
        ),
        (
            change(|index| index.offsets[0] = 2),
            "a.idx, sequence 1: offset 2, the lengths before it end at 0",
        ),
        (
            change(|index| index.offsets[6] = -1),
            "a.idx, sequence 7: offset -1, the lengths before it end at 34",
        ),
        (
            change(|index| index.indices[0] = 1),
            "a.idx, document index 1: 1, legal is 0",
        ),
        (
            change(|index| index.indices[2] = 1),
            "a.idx, document index 3: 1, legal is 2 to 7, the number of sequences",
        ),
        (
            change(|index| index.indices[3] = 8),
            "a.idx, document index 4: 8, legal is 2 to 7, the number of sequences",
        ),
        (
            change(|index| index.indices[3] = -1),
            "a.idx, document index 4: -1, legal is 2 to 7",
        ),
        (
            change(|index| index.indices[5] = 6),
            "a.idx, document index 6: 6 is the last, legal is 7, the number of sequences",
        ),
    ];
    for (file, message) in cases {
        let error = read("a.idx", &file, &plain())
            .expect_err(message)
            .to_string();
        assert!(error.contains(message), "{error}\n{message}");
    }
}

#[test]
fn an_index_without_tokens_has_no_samples() {
    let error = read("a.idx", &Index::new(&[&[], &[0]]).bytes(), &plain()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("a.idx: holds no samples in 2 documents"),
        "{error}"
    );
    let error = read("a.idx", &Index::new(&[]).bytes(), &plain()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("a.idx: holds no samples in 0 documents"),
        "{error}"
    );
}

#[test]
fn what_does_not_apply_to_an_index_is_refused() {
    let file = Index::new(&DOCUMENTS).bytes();
    let error = read("a.idx", &file, &cumulative()).unwrap_err().to_string();
    assert!(
        error.contains("a.idx: holds lengths; reading them as cumulative"),
        "{error}"
    );
    let error = read("a.txt", b"7\n", &samples(IdxSamples::Sequences))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a.txt: is not an .idx, so its samples cannot be sequences"),
        "{error}"
    );
}

#[test]
fn every_truncation_is_an_error() {
    let whole = Index::new(&DOCUMENTS).bytes();
    for end in 0..whole.len() {
        let cut = &whole[..end];
        assert!(read("a.idx", cut, &plain()).is_err(), "{end}");
        assert!(
            read("a.idx", cut, &samples(IdxSamples::Sequences)).is_err(),
            "{end}"
        );
        // Where the size is not known beforehand, too.
        let error = read("a.idx.gz", &gzip(cut), &plain())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a.idx.gz: is not a Megatron .idx: the "),
            "{end}: {error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(
        documents in prop::collection::vec(prop::collection::vec(0..5_000_i32, 0..4), 1..40),
        // Tables longer than a block.
        repeated in prop::sample::select(&[1_usize, 1, 1, 4000][..]),
    ) {
        let slices: Vec<&[i32]> = documents.iter().map(Vec::as_slice).collect();
        let file = Index::new(&slices.repeat(repeated)).bytes();
        let sums = documents.iter().map(|sequences| sequences.iter().map(|&length| length as u64).sum());
        let by_document: Vec<u64> = sums.filter(|&sum| sum > 0).collect();
        let flat = documents.concat().into_iter().map(|length| length as u64);
        let by_sequence: Vec<u64> = flat.filter(|&length| length > 0).collect();
        match read("a.idx", &file, &plain()) {
            Ok(read) => prop_assert_eq!(read, by_document.repeat(repeated)),
            Err(error) => prop_assert!(by_document.is_empty(), "{error}"),
        }
        match read("a.idx", &file, &samples(IdxSamples::Sequences)) {
            Ok(read) => prop_assert_eq!(read, by_sequence.repeat(repeated)),
            Err(error) => prop_assert!(by_sequence.is_empty(), "{error}"),
        }
    }

    #[test]
    fn a_damaged_index_is_read_as_its_slow_twin_reads_it_or_refused(
        documents in prop::collection::vec(prop::collection::vec(0..9_i32, 0..4), 0..8),
        with_modes in any::<bool>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        end in prop::option::weighted(0.2, any::<prop::sample::Index>()),
        more in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let slices: Vec<&[i32]> = documents.iter().map(Vec::as_slice).collect();
        let mut file = Index::new(&slices).bytes();
        if with_modes {
            file.extend(documents.concat().iter().map(|_| 1));
        }
        for (at, byte) in flips {
            let at = at.index(file.len());
            file[at] = byte;
        }
        match end {
            Some(end) => file.truncate(1 + end.index(file.len() - 1)),
            None if more.len() < 4 => file.extend(more),
            None => {}
        }
        for (unit, expected) in [
            (IdxSamples::Documents, idx_twin::documents(&file)),
            (IdxSamples::Sequences, idx_twin::sequences(&file)),
        ] {
            let options = samples(unit);
            prop_assert_eq!(read("a.idx", &file, &options).ok(), expected.clone());
            prop_assert_eq!(read("a.idx.gz", &gzip(&file), &options).ok(), expected);
        }
    }
}

#[test]
fn what_follows_the_tables_is_told_where_the_size_is_not_known_beforehand_too() {
    let mut file = Index::new(&DOCUMENTS).bytes();
    file.extend([0; 8]);
    for unit in [IdxSamples::Documents, IdxSamples::Sequences] {
        for (name, content) in [
            ("a.idx", file.clone()),
            ("a.idx.gz", gzip(&file)),
            ("a.idx.zst", zstd(&file)),
        ] {
            let error = read(name, &content, &samples(unit))
                .unwrap_err()
                .to_string();
            let message = "7 sequences and 6 document indices take 166 bytes, 173 with modes, the file has 174";
            assert!(error.contains(message), "{error}");
        }
    }
}
