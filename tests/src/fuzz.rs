//! Bodies of the fuzz targets: each panics on a bug and on nothing else.

mod length_files;

use arbitrary::{Arbitrary, Result, Unstructured};
use libra_sched::audit::audit;
use libra_sched::error::divisors;
use libra_sched::vrsp::{self as sched_vrsp, Vrsp, lower_bound};
use libra_sched::{
    BackwardMode, CostTable, ElementBytes, Fragment, HeadSplit, KvFetch, KvRoute, LayoutKind, Mask,
    PackedLengths, Placer, PlanConfig, PlanId, PoolId, PoolPlan, SampleId, Slack, Tiling,
    TokenLayout, Topology, reverse, verify, wire,
};

use crate::cases::Case;
use crate::plan_file::PlanFile;
use crate::twins;

pub use length_files::{idx, npy};

/// Bytes that may be a plan: decoding gives an error, or a plan that everything can read.
///
/// # Panics
/// On a bug.
pub fn decode(bytes: &[u8]) {
    if let Ok(plan) = wire::decode(bytes) {
        read_everywhere(&plan);
    }
}

/// What decodes encodes to the bytes it came from; what is planned survives its bytes.
///
/// # Panics
/// On a bug.
pub fn roundtrip(bytes: &[u8]) {
    if let Ok(opened) = wire::open(bytes) {
        let known = |section: &crate::plan_file::Section| section.id <= 13;
        // Optional sections of later libraries are skipped, so they cannot be written again.
        if PlanFile::parse(bytes).sections.iter().all(known) {
            let again = wire::encode_with(&opened.plan, &opened.provenance);
            assert!(
                again == bytes,
                "a plan that decodes encodes to the same bytes"
            );
        }
        assert_eq!(opened.id, PlanId::of(&opened.plan));
        return;
    }
    let Ok(case) = case(&mut Unstructured::new(bytes)) else {
        return;
    };
    let plan = case.plan();
    let bytes = wire::encode(&plan);
    assert_eq!(wire::decode(&bytes).as_ref(), Ok(&plan));
}

/// A pool made of the bytes: its plan passes verification and equals its slow twins.
///
/// # Panics
/// On a bug.
pub fn plan_verify(bytes: &[u8]) {
    let Ok(case) = case(&mut Unstructured::new(bytes)) else {
        return;
    };
    let Case {
        pool,
        layout,
        heads,
        config,
        ..
    } = &case;
    let plan = case.plan();
    let violations = verify::check(&plan);
    assert!(violations.is_empty(), "{case:?}: {violations:?}");
    // Merged tiles are not those that were placed.
    let by_work = case.costs.is_none() && config.tiling == Tiling::Fixed;
    if let (Placer::Paper(slack), true) = (config.placer, by_work) {
        let twin = twins::placement::place(pool, layout, heads, config.bytes, &plan.tiles, slack);
        assert_eq!(
            (&plan.workers, &plan.loads()),
            (&twin.0, &twin.1),
            "{case:?}"
        );
    }
    let keys = twins::exchange::keys(
        pool,
        layout,
        heads,
        &plan.tiles,
        &plan.workers,
        config.mask,
        config.kv_fetch,
    )
    .len();
    let moved = |m: &libra_sched::KvMove| m.tokens() as usize * heads.kv_of_span(m.span).len();
    let fetched = plan.exchange.kv.iter().chain(&plan.exchange.forward);
    let moved: usize = fetched.map(moved).sum();
    assert_eq!(moved, keys, "{case:?}");
    read_everywhere(&plan);
}

/// Weights made of the bytes: Algorithm 1 equals its twin, certified pools are no heavier, and no bound is above the
/// optimum.
///
/// # Panics
/// On a bug.
pub fn vrsp(bytes: &[u8]) {
    let Ok((work, pool_size)) = window(&mut Unstructured::new(bytes)) else {
        return;
    };
    let placed = sched_vrsp::place(&work, pool_size, Vrsp::Paper).expect("P divides the window");
    let (members, loads) = twins::vrsp::place(&work, pool_size);
    assert_eq!(placed.loads(), loads, "{work:?} by {pool_size}");
    for (pool, members) in members.iter().enumerate() {
        let placed = placed
            .members(PoolId::new(pool))
            .iter()
            .map(|member| member.0);
        assert!(
            placed.eq(members.iter().copied()),
            "{work:?} by {pool_size}"
        );
    }
    let bound = lower_bound(&work, pool_size)
        .expect("P divides the window")
        .load;
    let heaviest = loads.iter().copied().max().unwrap_or(0);
    assert!(bound <= heaviest, "{work:?} by {pool_size}");
    let certified = sched_vrsp::place(&work, pool_size, Vrsp::Certified);
    let certified = certified.expect("P divides the window");
    let least = certified.loads().iter().copied().max().unwrap_or(0);
    assert!(
        certified.bound().load >= bound && certified.bound().load <= least && least <= heaviest,
        "{work:?} by {pool_size}"
    );
    if work.len() <= 8 {
        let optimum = twins::brute::optimum(&work, pool_size);
        assert!(
            certified.bound().load <= optimum && optimum <= heaviest,
            "{work:?} by {pool_size}"
        );
    }
}

/// Bytes that may be cumulative lengths, one sequence a line, after a line with `seq_tokens`:
/// reading gives an error, or lengths that add up.
///
/// # Panics
/// On a bug.
pub fn lengths_text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let number = |word: &str| word.parse::<u64>().ok();
    let mut lines = text.lines();
    let seq_tokens = lines.next().and_then(number).unwrap_or(64);
    let sequences: Vec<Vec<u64>> = lines
        .map(|line| line.split_whitespace().filter_map(number).collect())
        .collect();
    let slices: Vec<&[u64]> = sequences.iter().map(Vec::as_slice).collect();
    let Ok(lengths) = PackedLengths::from_cu_seqlens(seq_tokens, &slices) else {
        return;
    };
    assert_eq!(lengths.sequences(), sequences.len());
    for (sequence, cumulative) in sequences.iter().enumerate() {
        let end = cumulative.last().copied().unwrap_or(0);
        assert_eq!(u64::from(lengths.tokens_of(sequence)), end);
        assert_eq!(
            lengths.samples_of(sequence).len(),
            cumulative.len().saturating_sub(1)
        );
    }
}

/// Proof that the harness can fail.
///
/// # Panics
/// Exactly on bytes that begin with `LIBRA`.
pub fn canary(bytes: &[u8]) {
    assert!(!bytes.starts_with(b"LIBRA"), "the canary sings");
}

/// Everything that reads a plan reads this one.
fn read_everywhere(plan: &PoolPlan) {
    let _ = (verify::check(plan), PlanId::of(plan));
    let _ = audit(plan, Topology::default()).intra_excess();
    for mode in BackwardMode::ALL {
        let _ = reverse::derive(plan, mode).cost.moved_bytes();
    }
    assert_eq!(wire::decode(&wire::encode(plan)).as_ref(), Ok(plan));
}

/// A pool small enough for its slow twins.
fn case(u: &mut Unstructured<'_>) -> Result<Case> {
    let heads = head_split(u)?;
    let slots = u.int_in_range(1..=5u32)?;
    let seq_tokens = u.int_in_range(1..=64u32)?;
    let ranks = u.int_in_range(1..=16u32)?;
    let tensor: Vec<u32> = (1..=3)
        .filter(|&t| heads.shards().is_multiple_of(t) && heads.kv_heads().is_multiple_of(t))
        .collect();
    let tensor = *u.choose(&tensor)?;
    let sequences = (0..slots)
        .map(|_| sequence(u, seq_tokens))
        .collect::<Result<Vec<_>>>()?;
    let pool = PackedLengths::new(seq_tokens.into(), sequences).expect("samples fit");
    let pool = if u.ratio(1, 4)? { tree(u, pool)? } else { pool };
    let layout = layout(u, slots, seq_tokens, ranks, tensor)?;
    let ulysses = heads.shards().is_multiple_of(layout.cp());
    let placer = match u.int_in_range(0..=6)? {
        0 => Placer::Home,
        1 if ulysses => Placer::HeadShard,
        2 => Placer::Paper(Slack::UNBOUNDED),
        3 | 4 => Placer::Export(
            Slack::from_ppm(u.int_in_range(0..=2_000_000)?).expect("below 1000"),
            Topology::new(u.int_in_range(1..=12)?).expect("a node has a worker"),
        ),
        _ => Placer::Paper(Slack::from_ppm(u.int_in_range(0..=2_000_000)?).expect("below 1000")),
    };
    let config = PlanConfig {
        mask: if pool.has_parents() {
            Mask::Causal
        } else {
            mask(u)?
        },
        block_tokens: u.int_in_range(1..=24)?,
        placer,
        bytes: *u.choose(&[ElementBytes::BF16, ElementBytes::F32, ElementBytes::F64])?,
        kv_fetch: *u.choose(&KvFetch::ALL)?,
        kv_route: match u.int_in_range(0..=8)? {
            0 => KvRoute::Direct,
            gpus => KvRoute::Node(Topology::new(gpus).expect("positive")),
        },
        max_recv_bytes: None,
        tiling: *u.choose(&Tiling::ALL)?,
    };
    let costs = if u.ratio(1, 4)? {
        Some(costs(u)?)
    } else {
        None
    };
    Ok(Case {
        pool,
        layout,
        heads,
        config,
        costs,
    })
}

/// Measured times of samples of 8 and 32 tokens in one and four heads.
fn costs(u: &mut Unstructured<'_>) -> Result<CostTable> {
    let mut time = || Ok(f64::from(u.int_in_range(1..=1_000_000u32)?));
    let times = [vec![time()?, time()?], vec![time()?, time()?]];
    Ok(CostTable::new(Mask::Causal, &[8, 32], &[1, 4], &times).expect("positive times"))
}

/// `pool` where samples may continue any earlier one of their sequence.
fn tree(u: &mut Unstructured<'_>, pool: PackedLengths) -> Result<PackedLengths> {
    let mut parents = Vec::new();
    for sequence in 0..pool.sequences() {
        let samples = pool.samples_of(sequence);
        for sample in samples.clone() {
            let back = u.int_in_range(0..=sample - samples.start)?;
            parents.push((back > 0).then(|| SampleId::new(sample - back)));
        }
    }
    Ok(pool.with_parents(&parents).expect("parents are earlier"))
}

/// Any mask, mostly with numbers that the samples feel.
fn mask(u: &mut Unstructured<'_>) -> Result<Mask> {
    let mut number = |least: u32| -> Result<u32> {
        let huge = u.ratio(1, 8)?;
        if huge {
            Ok(u32::MAX)
        } else {
            u.int_in_range(least..=40)
        }
    };
    let (a, b, c) = (number(1)?, number(1)?, number(0)?);
    let mask = match u.int_in_range(0..=8)? {
        0 => Ok(Mask::Causal),
        1 => Ok(Mask::Full),
        2 => Mask::causal_with_offset(a),
        3 => Mask::window(a, c),
        4 => Ok(Mask::two_sided(c, b)),
        5 => Mask::chunked(a),
        6 => Mask::block_causal(a, b, c),
        7 => Mask::prefix(a),
        _ => Mask::restricted(c.min(40), a.saturating_add(40)),
    };
    Ok(mask.expect("the numbers are legal"))
}

fn head_split(u: &mut Unstructured<'_>) -> Result<HeadSplit> {
    let kv_heads = u.int_in_range(1..=6u32)?;
    let q_heads = kv_heads * u.int_in_range(1..=4u32)?;
    let mut divisor = |whole: u32| -> Result<u32> {
        let legal = divisors(whole.into());
        Ok(*u.choose(&legal)? as u32)
    };
    let shards = divisor(q_heads)?;
    let chunks = divisor(q_heads / shards)?;
    let (dim_qk, dim_v) = (u.int_in_range(1..=4)?, u.int_in_range(1..=4)?);
    Ok(HeadSplit::new(q_heads, kv_heads, dim_qk, dim_v, shards, chunks).expect("they divide"))
}

fn sequence(u: &mut Unstructured<'_>, seq_tokens: u32) -> Result<Vec<u32>> {
    let mut left = seq_tokens;
    let mut lengths = Vec::new();
    while left > 0 && u.ratio(4, 5)? {
        let length = u.int_in_range(1..=left)?;
        lengths.push(length);
        left -= length;
    }
    Ok(lengths)
}

fn layout(
    u: &mut Unstructured<'_>,
    slots: u32,
    seq_tokens: u32,
    ranks: u32,
    tensor: u32,
) -> Result<TokenLayout> {
    let kind = match u.int_in_range(0..=2)? {
        0 => LayoutKind::Contiguous,
        1 => LayoutKind::Zigzag,
        _ => {
            let fragments = (0..slots)
                .map(|_| fragments(u, seq_tokens, ranks))
                .collect::<Result<Vec<_>>>()?;
            let layout = TokenLayout::explicit(seq_tokens, ranks, tensor, fragments);
            return Ok(layout.expect("the fragments cover"));
        }
    };
    Ok(TokenLayout::grid(kind, slots, seq_tokens, ranks, tensor).expect("the grid is small"))
}

fn fragments(u: &mut Unstructured<'_>, seq_tokens: u32, ranks: u32) -> Result<Vec<Fragment>> {
    let mut fragments = Vec::new();
    let mut start = 0;
    while start < seq_tokens {
        let end = u.int_in_range(start + 1..=seq_tokens)?;
        let rank = u.int_in_range(0..=ranks - 1)?;
        fragments.push(Fragment { start, end, rank });
        start = end;
    }
    Ok(fragments)
}

/// Weights, and a pool size that divides their number.
fn window(u: &mut Unstructured<'_>) -> Result<(Vec<u64>, usize)> {
    let pool_size = u.int_in_range(1..=8usize)?;
    let pools = u.int_in_range(1..=8usize)?;
    let wide = u.arbitrary()?;
    let work = (0..pools * pool_size)
        .map(|_| {
            Ok(if wide {
                u64::from(u32::arbitrary(u)?)
            } else {
                u8::arbitrary(u)?.into()
            })
        })
        .collect::<Result<Vec<u64>>>()?;
    Ok((work, pool_size))
}
