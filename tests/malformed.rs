//! Plan files named by their defect, and the error that each one gives.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use libra_sched::wire;
use libra_tests::blessed::{assert_holds, at, is_blessing};
use libra_tests::cases::named;
use libra_tests::plan_file::{
    ENTRY, HEADER, PlanFile, Section, at as field, put_u32, put_u64, seal, section, u32_at, u64_at,
};

const FOLDER: &str = "tests/malformed";

/// A right file with a note, 13 sections.
fn right() -> Vec<u8> {
    let cases = named();
    let named = &cases[0];
    wire::encode_with(&named.case.plan(), named.name)
}

/// `right` with `damage` done to its bytes.
fn bytes(damage: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = right();
    damage(&mut bytes);
    bytes
}

/// As [`bytes`], with digests that hold afterwards.
fn sealed(damage: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = bytes(damage);
    seal(&mut bytes);
    bytes
}

/// `right` taken apart, damaged, and put together with digests that hold.
fn parts(damage: impl FnOnce(&mut PlanFile)) -> Vec<u8> {
    let mut file = PlanFile::parse(&right());
    damage(&mut file);
    file.bytes()
}

/// `right` with one u32 of section `id` replaced.
fn word(id: u32, word: usize, value: u32) -> Vec<u8> {
    parts(|file| put_u32(&mut file.section(id).data, 4 * word, value))
}

/// `right` with another mask and its three numbers.
fn mask_words(words: [u32; 4]) -> Vec<u8> {
    parts(|file| {
        for (at, value) in [10, 14, 15, 16].into_iter().zip(words) {
            put_u32(&mut file.section(section::SHAPE).data, 4 * at, value);
        }
    })
}

/// Offset of the table entry of `id`.
fn entry(id: u32) -> usize {
    HEADER + (id as usize - 1) * ENTRY
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let (shape, tiles) = (section::SHAPE, section::TILES);
    let mut files = vec![
        ("empty", Vec::new()),
        ("wrong_magic", bytes(|b| b[7] = b'M')),
        ("text_file", b"8 4\n3 3 3\n".to_vec()),
        ("truncated_magic", right()[..5].to_vec()),
        ("truncated_header", right()[..40].to_vec()),
        ("truncated_half", bytes(|b| b.truncate(b.len() / 2))),
        ("trailing_byte", bytes(|b| b.push(0))),
        ("version_2", sealed(|b| put_u32(b, field::VERSION, 2))),
        ("checksum_off_by_one", bytes(|b| b[field::CHECKSUM] ^= 1)),
        (
            "plan_id_off_by_one",
            bytes(|b| {
                b[field::PLAN_ID] ^= 1;
                let id: [u8; 16] = b[field::PLAN_ID..][..16]
                    .try_into()
                    .expect("16 bytes were cut");
                seal(b);
                b[field::PLAN_ID..][..16].copy_from_slice(&id);
                reseal_header(b);
            }),
        ),
        (
            "section_bit_flipped",
            bytes(|b| {
                let offset = u64_at(b, entry(tiles) + 8) as usize;
                b[offset] ^= 1;
            }),
        ),
        (
            "note_bit_flipped",
            bytes(|b| {
                let offset = u64_at(b, entry(section::PROVENANCE) + 8) as usize;
                b[offset] ^= 1;
            }),
        ),
        ("header_zeros_set", bytes(|b| b[63] = 1)),
        (
            "sections_past_end",
            sealed(|b| put_u32(b, field::SECTIONS, 1 << 28)),
        ),
        (
            "section_past_end",
            sealed(|b| put_u64(b, entry(tiles) + 16, 40 << 20)),
        ),
        (
            "section_offset_moved",
            sealed(|b| {
                let offset = u64_at(b, entry(tiles) + 8) + 16;
                put_u64(b, entry(tiles) + 8, offset);
            }),
        ),
        (
            "section_missing",
            parts(|f| {
                f.sections.remove(tiles as usize - 1);
            }),
        ),
        (
            "sections_missing_at_end",
            parts(|f| f.sections.truncate(11)),
        ),
        ("sections_swapped", parts(|f| f.sections.swap(8, 9))),
        (
            "section_twice",
            parts(|f| {
                let again = f.sections[8].clone();
                f.sections.insert(8, again);
            }),
        ),
        (
            "unknown_required_section",
            parts(|f| {
                f.sections.push(Section {
                    id: 99,
                    flags: 1,
                    element_bytes: 4,
                    data: vec![0; 8],
                });
            }),
        ),
        (
            "required_section_marked_optional",
            sealed(|b| put_u32(b, entry(tiles) + 4, 0)),
        ),
        ("unknown_flag", sealed(|b| put_u32(b, entry(tiles) + 4, 3))),
        (
            "element_bytes_wrong",
            sealed(|b| put_u32(b, entry(tiles) + 24, 20)),
        ),
        (
            "part_of_an_element",
            parts(|f| {
                f.section(tiles).data.pop();
            }),
        ),
        (
            "padding_not_zero",
            sealed(|b| {
                let end = u64_at(b, entry(section::SEQUENCES) + 8) as usize + 12;
                b[end] = 1;
            }),
        ),
        (
            "bytes_after_last_section",
            sealed(|b| {
                b.extend([0; 16]);
                let length = b.len() as u64;
                put_u64(b, field::BYTES, length);
            }),
        ),
        (
            "note_not_utf8",
            parts(|f| f.section(section::PROVENANCE).data = vec![b'a', 0xff]),
        ),
        (
            "two_shapes",
            parts(|f| f.section(shape).data.extend([0; 80])),
        ),
    ];
    files.extend(contents());
    files.extend(routes());
    files.extend(trees());
    files
}

/// Files of a plan with two hops, and without what belongs to one.
fn routes() -> Vec<(&'static str, Vec<u8>)> {
    let two_hops = named().into_iter().find(|named| named.name == "two_hops");
    let two_hops = wire::encode(&two_hops.expect("a case has that name").case.plan());
    let routed = |damage: fn(&mut PlanFile)| {
        let mut file = PlanFile::parse(&two_hops);
        damage(&mut file);
        file.bytes()
    };
    const GPUS: usize = 4 * 17;
    vec![
        (
            "forwards_missing",
            parts(|f| put_u32(&mut f.section(section::SHAPE).data, GPUS, 2)),
        ),
        (
            "forwards_without_route",
            routed(|f| put_u32(&mut f.section(section::SHAPE).data, GPUS, 0)),
        ),
        (
            "forwards_marked_optional",
            routed(|f| f.section(section::FORWARDS).flags = 0),
        ),
        (
            "forwards_before_o_moves",
            routed(|f| f.sections.swap(11, 12)),
        ),
        (
            "forward_to_missing_worker",
            routed(|f| put_u32(&mut f.section(section::FORWARDS).data, 0, 6)),
        ),
        (
            "forward_backwards",
            routed(|f| put_u32(&mut f.section(section::FORWARDS).data, 12, 4)),
        ),
        (
            "part_of_a_forward",
            routed(|f| f.section(section::FORWARDS).data.truncate(92)),
        ),
    ]
}

/// Files whose frame is right and whose numbers are not.
fn contents() -> Vec<(&'static str, Vec<u8>)> {
    let (shape, tiles, kv) = (section::SHAPE, section::TILES, section::KV_MOVES);
    vec![
        ("kv_fetch_unknown", word(shape, 13, 2)),
        ("shape_reserved_set", word(shape, 18, 1)),
        ("mask_unknown", word(shape, 10, 9)),
        ("mask_number_without_mask", word(shape, 14, 1)),
        ("mask_number_too_many", mask_words([5, 4, 1, 0])),
        ("mask_offset_zero", mask_words([2, 0, 0, 0])),
        ("mask_window_zero", mask_words([3, 0, 2, 0])),
        ("mask_chunk_zero", mask_words([5, 0, 0, 0])),
        ("mask_local_blocks_zero", mask_words([6, 4, 0, 1])),
        ("mask_prefix_zero", mask_words([7, 0, 0, 0])),
        ("mask_keys_backwards", mask_words([8, 5, 4, 0])),
        ("shards_do_not_divide_heads", word(shape, 8, 3)),
        ("chunks_do_not_divide_shard", word(shape, 9, 2)),
        ("head_width_zero", word(shape, 6, 0)),
        ("slots_beyond_lengths", word(shape, 1, 3)),
        ("query_heads_beyond_table", word(shape, 4, 1 << 16)),
        ("workers_overflow", word(shape, 2, 1 << 30)),
        ("tensor_ranks_do_not_divide_shards", word(shape, 3, 4)),
        ("sample_empty", word(section::SAMPLES, 0, 0)),
        ("sample_too_long", word(section::SAMPLES, 0, 13)),
        ("sequence_too_long", word(section::SAMPLES, 0, 9)),
        ("sequences_not_rising", word(section::SEQUENCES, 1, 9)),
        ("fragment_gap", word(section::FRAGMENTS, 3, 7)),
        ("fragment_rank_missing", word(section::FRAGMENTS, 2, 2)),
        ("slots_not_rising", word(section::SLOTS, 1, 9)),
        ("chunk_missing", word(section::Q_HEADS, 0, 1)),
        ("tile_of_missing_slot", word(tiles, 0, 2)),
        ("tile_backwards", word(tiles, 1, 6)),
        ("tile_of_missing_shard", word(tiles, 3, 2)),
        ("tile_home_missing", word(tiles, 4, 4)),
        ("tile_sample_of_another_slot", word(tiles, 5, 2)),
        ("tile_reserved_set", word(tiles, 7, 1)),
        (
            "tile_work_overflows",
            parts(|f| {
                for high_half_of_work in [9, 19] {
                    put_u32(&mut f.section(tiles).data, 4 * high_half_of_work, 1 << 31);
                }
            }),
        ),
        ("worker_missing", word(section::WORKERS, 0, 4)),
        (
            "workers_too_few",
            parts(|f| f.section(section::WORKERS).data.truncate(28)),
        ),
        ("q_move_of_missing_tile", word(10, 0, 8)),
        ("o_move_to_missing_worker", word(12, 2, 4)),
        ("kv_move_to_missing_worker", word(kv, 0, 4)),
        ("kv_move_of_missing_sample", word(kv, 1, 5)),
        ("kv_move_of_missing_span", word(kv, 2, 2)),
        ("kv_move_backwards", word(kv, 3, 8)),
        ("kv_move_beyond_sequence", word(kv, 4, 13)),
    ]
}

/// Files of a right plan whose samples have parents, damaged there.
fn trees() -> Vec<(&'static str, Vec<u8>)> {
    let cases = named();
    let tree = cases.iter().find(|named| named.case.pool.has_parents());
    let right = wire::encode(&tree.expect("one has parents").case.plan());
    let damaged = |damage: &dyn Fn(&mut PlanFile)| {
        let mut file = PlanFile::parse(&right);
        damage(&mut file);
        file.bytes()
    };
    let parent = |sample: usize, parent: u32| {
        damaged(&|file| put_u32(&mut file.section(section::PARENTS).data, 4 * sample, parent))
    };
    vec![
        ("parent_later", parent(1, 2)),
        ("parent_itself", parent(3, 3)),
        ("parent_in_another_sequence", parent(7, 5)),
        ("parent_missing", parent(1, 1000)),
        (
            "parents_too_few",
            damaged(&|file| file.section(section::PARENTS).data.truncate(32)),
        ),
        (
            "parents_of_none",
            damaged(&|file| file.section(section::PARENTS).data.fill(0xff)),
        ),
        (
            "parents_marked_optional",
            damaged(&|file| file.section(section::PARENTS).flags = 0),
        ),
        (
            "parents_twice",
            damaged(&|file| {
                let again = file.section(section::PARENTS).clone();
                file.sections.push(again);
            }),
        ),
        (
            "parents_under_full_mask",
            damaged(&|file| put_u32(&mut file.section(section::SHAPE).data, 40, 1)),
        ),
    ]
}

/// The checksum alone is made to hold again, whatever the plan id says.
fn reseal_header(bytes: &mut [u8]) {
    let mut file = PlanFile::parse(bytes);
    let note = file.section(section::PROVENANCE).data.clone();
    let table = HEADER + ENTRY * u32_at(bytes, field::SECTIONS) as usize;
    put_u64(bytes, field::CHECKSUM, 0);
    let covered = [&bytes[..table], &note].concat();
    put_u64(bytes, field::CHECKSUM, xxhash_rust::xxh3::xxh3_64(&covered));
}

#[test]
fn every_malformed_file_gives_its_error() {
    assert!(wire::decode(&right()).is_ok());
    let mut text = String::new();
    for (name, bytes) in files() {
        let path = format!("{FOLDER}/{name}.plan");
        assert_holds(&path, &bytes);
        let committed = fs::read(at(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        match wire::decode(&committed) {
            Ok(_) => panic!("{path} decodes"),
            Err(error) => writeln!(text, "{name}.plan: {error}").expect("a string takes it"),
        }
    }
    assert_holds(&format!("{FOLDER}/expected.txt"), text.as_bytes());
}

#[test]
fn every_malformed_file_is_listed() {
    if is_blessing() {
        return;
    }
    let there: BTreeSet<String> = fs::read_dir(at(FOLDER))
        .expect("the folder can be listed")
        .map(|entry| entry.expect("the folder can be listed").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let mut made: BTreeSet<String> = files()
        .iter()
        .map(|(name, _)| format!("{name}.plan"))
        .collect();
    made.insert("expected.txt".to_owned());
    assert_eq!(there, made);
}
