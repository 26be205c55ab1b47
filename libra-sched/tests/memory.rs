//! Decoding allocates in proportion to the bytes it is given, whatever they claim; VRSP with a used scratch allocates
//! its result alone.

use libra_sched::vrsp::{self, Vrsp};
use libra_sched::{
    HeadSplit, LayoutKind, PackedLengths, PlanConfig, SampleId, TokenLayout, plan_pool, wire,
};

mod counting;
#[path = "../../tests/src/plan_file.rs"]
mod plan_file;

use counting::asked;
use plan_file::{ENTRY, HEADER, PlanFile, at, put_u32, put_u64, seal, section};

fn assert_modest(what: &str, bytes: &[u8]) {
    let (_, peak, total) = asked(|| wire::open(bytes));
    let limit = 4 * bytes.len() + 16 * 1024;
    assert!(
        peak <= limit && total <= limit,
        "{what}: {} bytes, {peak} at once and {total} in all",
        bytes.len()
    );
}

fn plan(sequences: u32, tokens: u32, heads: &HeadSplit, block: u32) -> Vec<u8> {
    let lengths = vec![vec![1u32; tokens as usize]; sequences as usize];
    let pool = PackedLengths::new(tokens.into(), lengths).unwrap();
    let layout = TokenLayout::new(LayoutKind::Zigzag, sequences, tokens, 4).unwrap();
    wire::encode(&plan_pool(&pool, &layout, heads, &PlanConfig::paper(block)).unwrap())
}

#[test]
fn decoding_a_plan_allocates_little_more_than_the_plan() {
    let narrow = HeadSplit::new(4, 2, 2, 3, 4, 1).unwrap();
    assert_modest("small", &plan(2, 12, &narrow, 6));
    assert_modest("many samples", &plan(8, 4096, &narrow, 512));
    let tokens = 4096u32;
    let pool = PackedLengths::new(tokens.into(), vec![vec![1u32; 4096]; 8]).unwrap();
    let parents: Vec<_> = (0..8 * 4096u32)
        .map(|sample| (sample % 4096 > 0).then(|| SampleId(sample / 4096 * 4096)))
        .collect();
    let pool = pool.with_parents(&parents).unwrap();
    let layout = TokenLayout::new(LayoutKind::Zigzag, 8, tokens, 4).unwrap();
    let tree = plan_pool(&pool, &layout, &narrow, &PlanConfig::paper(512)).unwrap();
    assert_modest("many parents", &wire::encode(&tree));
    assert_modest("many tiles", &plan(4, 512, &narrow, 2));
    for (q_heads, kv_heads, shards) in [
        (1 << 16, 1 << 16, 1 << 16),
        (1 << 16, 1 << 16, 1),
        (1 << 16, 1 << 8, 1 << 16),
        (1 << 16, 1, 1 << 16),
        (3 << 14, 1 << 14, 1 << 13),
    ] {
        let heads = HeadSplit::new(q_heads, kv_heads, 1, 1, shards, 1).unwrap();
        let what = format!("{q_heads} and {kv_heads} heads in {shards} shards");
        assert_modest(&what, &plan(1, 2, &heads, 2));
    }
}

#[test]
fn counts_that_a_file_only_claims_allocate_nothing() {
    let heads = HeadSplit::new(4, 2, 2, 3, 2, 2).unwrap();
    let bytes = plan(2, 12, &heads, 6);
    for sections in [13, 1 << 16, 1 << 28, u32::MAX] {
        let mut damaged = bytes.clone();
        put_u32(&mut damaged, at::SECTIONS, sections);
        seal(&mut damaged);
        assert_modest("sections", &damaged);
    }
    for entry in 0..12 {
        for field in [8, 16] {
            for value in [1 << 20, 1 << 40, u64::MAX - 15] {
                let mut damaged = bytes.clone();
                put_u64(&mut damaged, HEADER + entry * ENTRY + field, value);
                seal(&mut damaged);
                assert_modest("a section's place", &damaged);
            }
        }
    }
    for word in 0..16 {
        for value in [1 << 12, 1 << 16, 1 << 28, 1 << 30, u32::MAX] {
            let mut file = PlanFile::parse(&bytes);
            put_u32(&mut file.section(section::SHAPE).data, 4 * word, value);
            assert_modest("a scalar of the shape", &file.bytes());
        }
    }
    let mut damaged = bytes.clone();
    put_u64(&mut damaged, at::BYTES, 1 << 40);
    assert_modest("the length", &damaged);
}

#[test]
fn vrsp_with_a_used_scratch_allocates_its_result_alone() {
    let mut state = 7u64;
    let mut weight = |heavy: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        1000 + (state >> 54) + heavy
    };
    // Small enough for splits, with giants that call for a search of all, large enough for trades alone, and with an
    // outlier.
    for (pools, giants, heavy) in [(6, 0, 0), (4, 23, 0), (16, 0, 0), (16, 0, 20_000)] {
        let mut work: Vec<u64> = (0..pools * 8).map(|_| weight(0)).collect();
        work[3] = weight(heavy);
        work[8..8 + giants].fill(2500);
        for vrsp in [Vrsp::Arrival, Vrsp::Paper, Vrsp::Certified] {
            let mut scratch = vrsp::Scratch::default();
            let first = vrsp::place_with(&mut scratch, &work, 8, vrsp);
            let (second, _, total) = asked(|| vrsp::place_with(&mut scratch, &work, 8, vrsp));
            // Sequences, first member of each pool and the end, loads.
            let result = work.len() * 4 + (pools + 1) * 4 + pools * 8;
            assert_eq!(total, result, "{vrsp}");
            assert_eq!(first, second);
        }
    }
}
