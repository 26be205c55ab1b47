//! Random small pools for the executor's tests.
#![allow(dead_code)] // Every test target uses a part of it.

use libra_sched::{
    BackwardMode, CostTable, ElementBytes, Fragment, HeadSplit, KvFetch, KvRoute, LayoutKind, Mask,
    Measured, PackedLengths, Placer, PlanConfig, PoolPlan, SampleId, Slack, Tiling, TokenLayout,
    Topology, plan::Scratch, plan_pool_measured,
};
use proptest::prelude::*;

/// A pool small enough to run in milliseconds, and how to run it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) plan: PoolPlan,
    pub(crate) mode: BackwardMode,
    pub(crate) seed: u64,
}

/// h_q, h_kv, H, M: shards of several KV heads, shared KV heads, uneven cuts, one head each.
const HEADS: [(u32, u32, u32, u32); 12] = [
    (4, 4, 2, 1),
    (4, 4, 1, 4),
    (4, 2, 2, 2),
    (4, 1, 2, 2),
    (4, 1, 4, 1),
    (8, 2, 4, 2),
    (8, 2, 2, 4),
    (8, 4, 2, 2),
    (6, 2, 3, 2),
    (6, 2, 3, 1),
    (12, 4, 6, 2),
    (12, 2, 1, 12),
];

fn layout(slots: u32, tokens: u32) -> impl Strategy<Value = (TokenLayout, u32)> {
    let regular = (0..2usize, 1..5u32, 1..3u32).prop_map(move |(kind, ranks, tensor)| {
        let kind = [LayoutKind::Contiguous, LayoutKind::Zigzag][kind];
        let layout = TokenLayout::grid(kind, slots, tokens, ranks, tensor);
        (layout.expect("a legal grid"), tensor)
    });
    let explicit = proptest::collection::vec(
        proptest::collection::vec((1..tokens, 0..3u32), 0..5),
        slots as usize,
    )
    .prop_map(move |slots| {
        let fragments = slots
            .into_iter()
            .map(|mut cuts| {
                cuts.push((tokens, 0));
                cuts.sort_unstable();
                cuts.dedup_by_key(|cut| cut.0);
                let mut start = 0;
                cuts.into_iter()
                    .map(|(end, rank)| {
                        let fragment = Fragment { start, end, rank };
                        start = end;
                        fragment
                    })
                    .collect()
            })
            .collect();
        (
            TokenLayout::explicit(tokens, 3, 1, fragments).expect("legal fragments"),
            1,
        )
    });
    prop_oneof![3 => regular, 1 => explicit]
}

fn lengths(slots: u32, tokens: u32) -> impl Strategy<Value = PackedLengths> {
    let sequence = proptest::collection::vec(1..=tokens, 0..8).prop_map(move |samples| {
        let mut left = tokens;
        let mut kept = Vec::new();
        for sample in samples {
            if sample <= left {
                kept.push(sample);
                left -= sample;
            }
        }
        kept
    });
    proptest::collection::vec(sequence, slots as usize)
        .prop_map(move |s| PackedLengths::new(tokens.into(), s).expect("fits by construction"))
}

/// Every kind of mask, with numbers below, at and beyond the lengths of samples.
pub(crate) fn masks() -> impl Strategy<Value = Mask> {
    let number = || prop_oneof![6 => 1u32..8, 3 => 1u32..30, 1 => Just(u32::MAX)];
    let or_none = || prop_oneof![1 => Just(0u32), 3 => number()];
    prop_oneof![
        2 => Just(Ok(Mask::Causal)),
        1 => Just(Ok(Mask::Full)),
        1 => number().prop_map(Mask::causal_with_offset),
        3 => (number(), or_none()).prop_map(|(window, sinks)| Mask::window(window, sinks)),
        1 => (or_none(), or_none()).prop_map(|(left, right)| Ok(Mask::two_sided(left, right))),
        1 => number().prop_map(Mask::chunked),
        3 => (1u32..6, 1u32..4, 0u32..3).prop_map(|(b, n, s)| Mask::block_causal(b, n, s)),
        1 => number().prop_map(Mask::prefix),
        2 => (0u32..12, 1u32..12).prop_map(|(start, keys)| Mask::restricted(start, start + keys)),
    ]
    .prop_map(|mask| mask.expect("the numbers are legal"))
}

/// A mask of each kind that short samples feel.
pub(crate) fn each_kind() -> Vec<Mask> {
    let forms = "causal full causal+2 window:3 window:2,sinks:2 two-sided:2,1 chunked:4 \
        block:2,local:1,sinks:1 block:2,local:2 prefix:4 keys:1..4";
    let parsed = forms.split_whitespace().map(str::parse);
    parsed.map(|mask| mask.expect("a legal form")).collect()
}

/// `pool`, one in three times as trees: each number says whether and how far back a sample's parent is.
fn with_parents(pool: PackedLengths, draws: &[u32]) -> PackedLengths {
    let mut parents = vec![None; pool.samples()];
    for sequence in 0..pool.sequences() {
        let samples = pool.samples_of(sequence);
        for sample in samples.clone() {
            let back = draws.get(sample % draws.len().max(1)).copied().unwrap_or(0) as usize;
            let parent = sample.checked_sub(back).filter(|p| samples.contains(p));
            parents[sample] = parent.filter(|_| back > 0).map(SampleId::new);
        }
    }
    pool.with_parents(&parents).expect("parents are earlier")
}

/// Any mask or tree, layout, head split, chunk count, placer, block size, tiling, route, backward mode, and measured times.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    (1..4u32, 8..28u32)
        .prop_flat_map(|(slots, tokens)| {
            (
                lengths(slots, tokens),
                layout(slots, tokens),
                0..HEADS.len(),
            )
        })
        .prop_flat_map(|(pool, (layout, tensor), heads)| {
            (
                Just((pool, layout, tensor, heads)),
                masks(),
                1..12u32,
                prop_oneof![Just(0u32), Just(30_000), Just(u32::MAX)],
                0..8u32,
                0..3usize,
                (1..5u32, 1..5u32),
                (
                    any::<u64>(),
                    prop_oneof![
                        2 => Just(Vec::new()),
                        1 => proptest::collection::vec(0u32..4, 1..6),
                    ],
                ),
            )
        })
        .prop_map(
            |(
                (pool, layout, tensor, heads),
                mask,
                block,
                slack,
                placer,
                mode,
                dims,
                (seed, tree),
            )| {
                let pool = with_parents(pool, &tree);
                let mask = if pool.has_parents() {
                    Mask::Causal
                } else {
                    mask
                };
                let (q_heads, kv_heads, shards, chunks) = fitting(heads, tensor);
                let heads = HeadSplit::new(q_heads, kv_heads, dims.0, dims.1, shards, chunks)
                    .expect("the table holds legal splits");
                let placer = match placer {
                    0 => Placer::Home,
                    1 if shards.is_multiple_of(layout.cp()) => Placer::HeadShard,
                    2 | 3 => Placer::Export(
                        Slack::from_ppm(slack).expect("a legal slack"),
                        Topology::new(1 + dims.0).expect("a node has a worker"),
                    ),
                    _ => Placer::Paper(Slack::from_ppm(slack).expect("a legal slack")),
                };
                let config = PlanConfig {
                    mask,
                    block_tokens: block,
                    tiling: Tiling::ALL[(seed / 16 % 2) as usize],
                    placer,
                    bytes: ElementBytes::F64,
                    kv_fetch: KvFetch::ALL[(seed % 2) as usize],
                    // Nodes of 1, 2, 3 and 8 workers, and one larger than any pool.
                    kv_route: match [0, 1, 2, 2, 3, 3, 8, 99][(seed / 2 % 8) as usize] {
                        0 => KvRoute::Direct,
                        gpus => KvRoute::Node(Topology::new(gpus).expect("positive")),
                    },
                    max_recv_bytes: None,
                };
                // One in four by times at which a pair of short samples takes longer.
                let slow = 1.0 + (seed / 128 % 64) as f64;
                let times = [vec![36.0 * slow], vec![300.0]];
                let costs = CostTable::new(Mask::Causal, &[8, 24], &[1], &times);
                let costs = costs.expect("positive times");
                let measured = Measured {
                    costs: (seed / 32 % 4 == 0).then_some(&costs),
                    speeds: None,
                };
                let mut scratch = Scratch::default();
                let plan =
                    plan_pool_measured(&mut scratch, &pool, &layout, &heads, &config, measured);
                let plan = plan.expect("a legal request");
                Case {
                    plan,
                    mode: BackwardMode::ALL[mode],
                    seed,
                }
            },
        )
}

/// The first split from `index` on that fits the tensor ranks.
fn fitting(index: usize, tensor: u32) -> (u32, u32, u32, u32) {
    let fits = |h: &&(u32, u32, u32, u32)| h.1.is_multiple_of(tensor) && h.2.is_multiple_of(tensor);
    *HEADS
        .iter()
        .cycle()
        .skip(index)
        .find(fits)
        .expect("(4, 2, 2, 2) fits one and two ranks")
}

/// Largest |a − b| over slots, relative to the largest |b| (1 where all are 0).
pub(crate) fn relative_difference(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    let (a, b) = (a.concat(), b.concat());
    assert_eq!(a.len(), b.len());
    let size = b.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let difference = a.iter().zip(&b).fold(0.0f64, |m, (x, y)| {
        let d = (x - y).abs();
        if d.is_nan() { f64::INFINITY } else { m.max(d) }
    });
    difference / if size == 0.0 { 1.0 } else { size }
}
