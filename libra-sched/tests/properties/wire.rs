use libra_sched::audit::audit;
use libra_sched::{
    BackwardMode, DecodeError, Fragment, HeadSplit, KvMove, KvRoute, LayoutKind, PackedLengths,
    Placer, PlanConfig, PlanId, PoolPlan, SampleId, TileId, TileMove, TokenLayout, Topology,
    WorkerId, plan_pool, reverse, verify, wire,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::cases::{cases, runs};
use crate::plan_file::{
    ENTRY, HEADER, PlanFile, Section, at, put_u32, put_u64, seal, section, u32_at,
};

/// Two sequences, twelve tokens, four workers.
fn small() -> PoolPlan {
    let pool = PackedLengths::new(12, [vec![8u64, 4], vec![3, 3, 3]]).unwrap();
    let layout = TokenLayout::new(LayoutKind::Zigzag, 2, 12, 2).unwrap();
    let heads = HeadSplit::new(4, 2, 2, 3, 2, 2).unwrap();
    plan_pool(&pool, &layout, &heads, &PlanConfig::paper(6)).unwrap()
}

/// As `small`, through nodes of two workers.
fn routed() -> PoolPlan {
    let pool = PackedLengths::new(12, [vec![8u64, 4], vec![3, 3, 3]]).unwrap();
    let layout = TokenLayout::new(LayoutKind::Zigzag, 2, 12, 2).unwrap();
    let heads = HeadSplit::new(4, 1, 2, 3, 2, 2).unwrap();
    let config = PlanConfig {
        kv_route: KvRoute::Node(Topology::new(2).unwrap()),
        ..PlanConfig::paper(2)
    };
    let plan = plan_pool(&pool, &layout, &heads, &config).unwrap();
    assert!(!plan.exchange.forward.is_empty());
    plan
}

/// Whatever decodes can be read by everything that reads plans.
fn exercise(plan: &PoolPlan) {
    let _ = (verify::check(plan), PlanId::of(plan));
    // A file may claim 2^28 workers; tables of one entry a worker are then gigabytes.
    if plan.layout.workers() <= 1 << 16 {
        let _ = audit(plan, Topology::default()).intra_excess();
        for mode in BackwardMode::ALL {
            let _ = reverse::derive(plan, mode).cost.moved_bytes();
        }
    }
    assert_eq!(wire::decode(&wire::encode(plan)).as_ref(), Ok(plan));
}

proptest! {
    #![proptest_config(runs(300))]

    #[test]
    fn a_plan_survives_its_bytes_and_bytes_survive_their_plan(case in cases(), note in ".{0,40}") {
        let plan = case.plan();
        let bytes = wire::encode_with(&plan, &note);
        let opened = wire::open(&bytes).unwrap();
        prop_assert_eq!(&opened.plan, &plan);
        prop_assert_eq!(&opened.provenance, &note);
        prop_assert_eq!(opened.id, PlanId::of(&plan));
        prop_assert_eq!(wire::encode_with(&opened.plan, &opened.provenance), bytes);
    }

    #[test]
    fn the_byte_table_of_the_format_describes_every_file(case in cases(), note in "[a-z]{0,9}") {
        let bytes = wire::encode_with(&case.plan(), &note);
        prop_assert_eq!(PlanFile::parse(&bytes).bytes(), bytes);
    }

    #[test]
    fn random_bytes_are_not_a_plan(bytes in prop::collection::vec(any::<u8>(), 0..200), magic: bool) {
        let mut bytes = bytes;
        if magic && bytes.len() >= 8 {
            bytes[..8].copy_from_slice(b"LIBRAPLN");
        }
        prop_assert!(wire::decode(&bytes).is_err());
    }
}

/// Numbers at which counts, ids and sums go wrong.
fn numbers() -> impl Strategy<Value = u32> {
    let edges = vec![
        0,
        1,
        2,
        3,
        4,
        12,
        13,
        1 << 16,
        (1 << 28) - 1,
        1 << 28,
        1 << 30,
        1 << 31,
        u32::MAX - 1,
        u32::MAX,
    ];
    prop_oneof![4 => select(edges), 1 => any::<u32>()]
}

/// Writes `value` to a `field` of the `index`-th item of a `list` of `plan`, where it has one.
fn damage(plan: &mut PoolPlan, list: u32, index: Index, field: u32, value: u32) {
    fn item<T>(list: &mut [T], index: Index) -> Option<&mut T> {
        (!list.is_empty()).then(|| &mut list[index.index(list.len())])
    }
    let tile_move = |m: &mut TileMove| match field % 3 {
        0 => m.tile = TileId(value),
        1 => m.src = WorkerId(value),
        _ => m.dst = WorkerId(value),
    };
    let kv_move = |m: &mut KvMove| match field % 6 {
        0 => m.dst = WorkerId(value),
        1 => m.sample = SampleId(value),
        2 => m.span = value,
        3 => m.start = value,
        4 => m.end = value,
        _ => m.src = WorkerId(value),
    };
    match list {
        0 => item(&mut plan.tiles, index)
            .into_iter()
            .for_each(|tile| match field {
                0 => tile.slot = value,
                1 => tile.start = value,
                2 => tile.end = value,
                3 => tile.shard = value,
                4 => tile.q_home = WorkerId(value),
                5 => tile.first_sample = SampleId(value),
                6 => tile.samples = value,
                7 => tile.work = u64::from(value) << 32 | u64::from(value),
                _ => tile.reserved = value,
            }),
        1 => item(&mut plan.workers, index)
            .into_iter()
            .for_each(|w| *w = WorkerId(value)),
        2 => item(&mut plan.q_chunks, index)
            .into_iter()
            .for_each(|chunk| *chunk = value),
        3 => item(&mut plan.kv_chunks, index)
            .into_iter()
            .for_each(|chunks| chunks[field as usize % 2] = value),
        4 => item(&mut plan.exchange.q, index)
            .into_iter()
            .for_each(tile_move),
        5 => item(&mut plan.exchange.o, index)
            .into_iter()
            .for_each(tile_move),
        6 => item(&mut plan.exchange.kv, index)
            .into_iter()
            .for_each(kv_move),
        11 => item(&mut plan.exchange.forward, index)
            .into_iter()
            .for_each(kv_move),
        7 => plan.bytes.activation = value,
        8 => plan.bytes.statistic = value,
        9 => plan.exchange.o.clear(),
        10 => plan.exchange.q.extend(plan.exchange.q.clone()),
        _ => plan.workers.truncate(value as usize),
    }
}

proptest! {
    #![proptest_config(runs(2000))]

    #[test]
    fn a_damaged_plan_decodes_to_an_error_or_to_what_can_be_read(
        changes in prop::collection::vec((0u32..13, any::<Index>(), 0u32..9, numbers()), 1..4),
        is_routed: bool,
    ) {
        let mut plan = if is_routed { routed() } else { small() };
        for (list, index, field, value) in changes {
            damage(&mut plan, list, index, field, value);
        }
        if let Ok(decoded) = wire::decode(&wire::encode(&plan)) {
            prop_assert_eq!(&decoded, &plan);
            exercise(&decoded);
        }
    }

    #[test]
    fn a_damaged_file_with_right_digests_decodes_to_an_error_or_to_what_can_be_read(
        cuts in prop::collection::vec((any::<Index>(), numbers()), 1..4),
        in_shape: bool,
        is_routed: bool,
    ) {
        let plan = if is_routed { routed() } else { small() };
        let mut bytes = wire::encode_with(&plan, "note");
        // The shape is the first section: 80 of some two thousand bytes, but most of the meaning.
        let shape = HEADER + (13 + usize::from(is_routed)) * ENTRY;
        let range = if in_shape { shape..shape + 80 } else { HEADER..bytes.len() };
        for (place, value) in cuts {
            let word = range.start + 4 * place.index(range.len() / 4);
            put_u32(&mut bytes, word, value);
        }
        seal(&mut bytes);
        // An optional section with an unknown id is skipped, so it cannot be written again.
        let sections = (bytes.len() - HEADER) / ENTRY;
        let sections = sections.min(u32_at(&bytes, at::SECTIONS) as usize);
        let is_known = (0..sections)
            .all(|index| u32_at(&bytes, HEADER + index * ENTRY) <= section::FORWARDS);
        if let Ok(opened) = wire::open(&bytes) {
            let again = wire::encode_with(&opened.plan, &opened.provenance);
            prop_assert!(again == bytes || !is_known);
            exercise(&opened.plan);
        }
    }

    #[test]
    fn a_section_of_any_size_decodes_to_an_error_or_to_what_can_be_read(
        which in 0usize..13,
        words in 0usize..40,
        value in numbers(),
    ) {
        let mut file = PlanFile::parse(&wire::encode(&routed()));
        file.sections[which].data.resize(4 * words, 0);
        if words > 0 {
            put_u32(&mut file.sections[which].data, 4 * (words - 1), value);
        }
        if let Ok(plan) = wire::decode(&file.bytes()) {
            exercise(&plan);
        }
    }
}

#[test]
fn every_flipped_bit_is_an_error() {
    let plans = [
        (small(), ""),
        (small(), "made by a test"),
        (routed(), "also"),
    ];
    for (plan, note) in plans {
        let bytes = wire::encode_with(&plan, note);
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(wire::decode(&flipped).is_err(), "bit {bit}");
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = wire::encode_with(&small(), "made by a test");
    for length in 0..bytes.len() {
        assert!(wire::decode(&bytes[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn appended_bytes_are_an_error_even_if_the_header_counts_them() {
    for count in 1..40 {
        let mut bytes = wire::encode(&small());
        bytes.extend(vec![0; count]);
        assert!(wire::decode(&bytes).is_err(), "{count} more");
        let length = bytes.len() as u64;
        put_u64(&mut bytes, at::BYTES, length);
        seal(&mut bytes);
        assert!(wire::decode(&bytes).is_err(), "{count} more, counted");
    }
}

#[test]
fn another_version_is_an_error_that_names_both() {
    let mut file = PlanFile::parse(&wire::encode(&small()));
    file.version = 2;
    let error = wire::decode(&file.bytes()).unwrap_err();
    let (found, supported) = (2, wire::VERSION);
    assert_eq!(error, DecodeError::Version { found, supported });
    assert_eq!(
        error.to_string(),
        "plan format 2, this library reads format 1"
    );
}

#[test]
fn an_unknown_section_is_refused_where_required_and_skipped_where_optional() {
    let plan = small();
    let later = |flags, note: &str| {
        let mut file = PlanFile::parse(&wire::encode_with(&plan, note));
        file.sections.push(Section {
            id: 77,
            flags,
            element_bytes: 1,
            data: b"something new".to_vec(),
        });
        file.bytes()
    };
    for note in ["", "a note"] {
        let refused = wire::decode(&later(1, note));
        assert_eq!(refused, Err(DecodeError::UnknownSection { id: 77 }));
        let opened = wire::open(&later(0, note)).unwrap();
        assert_eq!((&opened.plan, opened.provenance.as_str()), (&plan, note));
        assert_eq!(opened.id, PlanId::of(&plan));
    }
    // Skipped, but not unprotected.
    let bytes = later(0, "");
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(wire::decode(&flipped).is_err(), "bit {bit}");
    }
}

#[test]
fn no_section_follows_the_last_id() {
    let mut file = PlanFile::parse(&wire::encode_with(&routed(), "note"));
    let note = &mut file.sections[12];
    (note.id, note.element_bytes) = (u32::MAX, 1);
    let error = wire::decode(&file.bytes()).unwrap_err();
    let text = "section forwards: is missing or out of order, id, found 14, expected 4294967295";
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_missing_repeated_or_moved_section_is_an_error() {
    let file = PlanFile::parse(&wire::encode(&routed()));
    for index in 0..file.sections.len() {
        let mut without = file.clone();
        without.sections.remove(index);
        assert!(wire::decode(&without.bytes()).is_err(), "without {index}");
        let mut twice = file.clone();
        twice.sections.insert(index, file.sections[index].clone());
        assert!(wire::decode(&twice.bytes()).is_err(), "twice {index}");
        for other in 0..index {
            let mut swapped = file.clone();
            swapped.sections.swap(index, other);
            assert!(
                wire::decode(&swapped.bytes()).is_err(),
                "{other} and {index}"
            );
        }
    }
}

#[test]
fn a_count_past_the_end_is_an_error() {
    let bytes = wire::encode(&small());
    let huge = [u64::MAX, 1 << 63, 1 << 40, bytes.len() as u64];
    for entry in 0..12 {
        for (field, value) in [8, 16].into_iter().flat_map(|f| huge.map(|v| (f, v))) {
            let mut damaged = bytes.clone();
            put_u64(&mut damaged, HEADER + entry * ENTRY + field, value);
            seal(&mut damaged);
            assert!(wire::decode(&damaged).is_err(), "{entry}, {field}: {value}");
        }
    }
    for sections in [0, 1, 11, 13, 1 << 20, u32::MAX] {
        let mut damaged = bytes.clone();
        put_u32(&mut damaged, at::SECTIONS, sections);
        seal(&mut damaged);
        assert!(wire::decode(&damaged).is_err(), "{sections} sections");
    }
}

#[test]
fn provenance_that_is_no_text_is_an_error() {
    let mut file = PlanFile::parse(&wire::encode_with(&small(), "note"));
    file.section(section::PROVENANCE).data = vec![b'a', 0xff];
    let error = wire::decode(&file.bytes()).unwrap_err();
    let text = "section provenance: is not UTF-8 from byte, found 1, expected 0";
    assert_eq!(error.to_string(), text);
}

/// One sequence at the first of two workers, its tile at the second.
fn away() -> PoolPlan {
    let pool = PackedLengths::new(4, [vec![4u64]]).unwrap();
    let fragments = vec![vec![Fragment {
        start: 0,
        end: 4,
        rank: 0,
    }]];
    let layout = TokenLayout::explicit(4, 2, 1, fragments).unwrap();
    let heads = HeadSplit::new(1, 1, 1, 1, 1, 1).unwrap();
    let mut config = PlanConfig::paper(4);
    config.placer = Placer::Home;
    let mut plan = plan_pool(&pool, &layout, &heads, &config).unwrap();
    let (tile, home, worker) = (TileId(0), WorkerId(0), WorkerId(1));
    let route = |src, dst| TileMove { tile, src, dst };
    plan.workers = vec![worker];
    plan.exchange.q = vec![route(home, worker)];
    plan.exchange.o = vec![route(worker, home)];
    plan
}

#[test]
fn bytes_that_only_backward_moves_are_summed_before_a_plan_is_accepted() {
    // A refetch moves two statistics for every Q move; here no O move makes up for the second.
    let mut plan = away();
    plan.exchange.o.clear();
    plan.exchange.q = vec![plan.exchange.q[0]; 1 << 19];
    plan.heads = HeadSplit::new(1 << 12, 1, 1, 1, 1, 1).unwrap();
    plan.q_chunks = vec![0; 1 << 12];
    // 2^64 at 2^30 bytes each: 2^2 tokens, 2^12 heads, 2^19 moves: 2^33 statistics, twice.
    let mut refused = Vec::new();
    for step in 1..16u32 {
        plan.bytes.statistic = step << 28;
        match wire::decode(&wire::encode(&plan)) {
            Ok(plan) => exercise(&plan),
            Err(_) => refused.push(step),
        }
    }
    assert_eq!(refused, (4..16).collect::<Vec<_>>());
}

#[test]
fn every_plan_that_can_be_made_can_be_read_however_many_bytes_it_moves() {
    let small = small();
    let mut config = PlanConfig::paper(1);
    let mut made = 0;
    for power in 0..60 {
        // Element bytes, head widths and head counts grow in turn.
        config.bytes.activation = 1 << power.min(31);
        let dim = 1 << (power.clamp(31, 47) - 31);
        let times = 1 << (power.max(47) - 47);
        let heads = HeadSplit::new(4 * times, 2 * times, dim, dim, 4, 1).unwrap();
        let Ok(plan) = plan_pool(&small.lengths, &small.layout, &heads, &config) else {
            break;
        };
        exercise(&plan);
        made += 1;
    }
    // The next one would exceed 64 bits.
    assert!((48..60).contains(&made), "{made} plans");
}

#[test]
fn provenance_is_no_part_of_the_plan_id() {
    let plan = small();
    let id = |note| wire::open(&wire::encode_with(&plan, note)).unwrap().id;
    assert_eq!(id("here"), id("there"));
    assert_eq!(id(""), PlanId::of(&plan));
}
