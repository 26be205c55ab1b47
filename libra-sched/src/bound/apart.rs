//! Bounds on the bytes of Q and O, and on those of K and V, each as if the other cost nothing.
//!
//! - **Q and O**: a worker whose own tokens are more work than the heaviest worker may have must give
//!   tokens away, and no token takes more work along than its keys times its heads.
//! - **K and V** (causal mask): the work of one sample in one KV span is spread over workers of which
//!   the k-th highest, by the last token it computes, reaches at least as far as the k − 1 before it
//!   leave. It reads all keys up to there, less what it holds itself. No token is held twice, so the
//!   first k workers hold at most what the k largest holders do, and nobody fetches less than nothing:
//!   for every k, the first k reaches less the k largest holdings is a bound.
//!
//! O(samples · W + pieces log pieces).
//!
//! Source: the surplus and the copy argument for placements with data locality, as for hypergraph
//! partitioning with λ − 1 (Çatalyürek and Aykanat, 1999).

use std::ops::Range;

use crate::ids::SampleId;
use crate::mask::Mask;
use crate::plan::PoolPlan;
use crate::search::first_where;

/// Parts of a fragment's piece whose tokens count as equal.
const PARTS: u32 = 16;

/// Equal tokens of one worker.
struct Part {
    /// At most this work goes with a token in one shard.
    each: u64,
    tokens: u64,
}

/// Of Q and O.
pub(super) fn qo_bytes(plan: &PoolPlan, heaviest: u64) -> u64 {
    let heads = &plan.heads;
    let (layout, width) = (&plan.layout, u64::from(heads.shard_width()));
    let shards = u64::from(heads.shards() / layout.tensor());
    let mut rows = 0u128;
    for slot in 0..layout.slots() {
        for rank in 0..layout.ranks() {
            let load = pieces(plan, slot, rank).map(|(sample, tokens)| {
                let (len, above) = (plan.lengths.length(sample), above(plan, sample));
                let own = u128::from(plan.mask.pairs(len, tokens.clone()));
                own + u128::from(above) * u128::from(tokens.end - tokens.start)
            });
            // The ranks of a tensor group hold the same tokens in as many shards each.
            let load = load.sum::<u128>() * u128::from(width * shards);
            let surplus = load.saturating_sub(heaviest.into());
            // Most workers have none, and parts take longer to make than loads.
            if surplus == 0 {
                continue;
            }
            let parts = parts(plan, slot, rank, width, shards);
            let rows_out = rows_to_give(parts, surplus);
            rows += u128::from(rows_out) * u128::from(layout.tensor());
        }
    }
    let width = heads.shard_width();
    let row = plan.bytes.q_token(heads, width) + plan.bytes.o_token(heads, width);
    saturated(rows * u128::from(row))
}

/// What a worker holds: tokens of samples, counted within their sample.
fn pieces(
    plan: &PoolPlan,
    slot: u32,
    rank: u32,
) -> impl Iterator<Item = (SampleId, Range<u32>)> + '_ {
    let held = plan.layout.held(slot, rank);
    held.flat_map(move |held| {
        let samples = plan.lengths.samples_of(slot as usize);
        samples.filter_map(move |sample| {
            let sample = SampleId::new(sample);
            let tokens = plan.lengths.tokens(sample);
            let start = tokens.start.max(held.start);
            let end = tokens.end.min(held.end);
            (start < end).then(|| (sample, start - tokens.start..end - tokens.start))
        })
    })
}

/// Keys of the samples that one continues.
fn above(plan: &PoolPlan, sample: SampleId) -> u64 {
    plan.lengths.above(sample.index()).into()
}

/// What a worker holds, in parts of equal tokens.
fn parts(plan: &PoolPlan, slot: u32, rank: u32, width: u64, shards: u64) -> Vec<Part> {
    let mut parts = Vec::new();
    for (sample, tokens) in pieces(plan, slot, rank) {
        let (len, above) = (plan.lengths.length(sample), above(plan, sample));
        let step = (tokens.end - tokens.start).div_ceil(PARTS);
        for first in tokens.clone().step_by(step as usize) {
            let last = tokens.end.min(first + step);
            parts.push(Part {
                each: (keys(plan.mask, len, first, last) + above) * width,
                tokens: u64::from(last - first) * shards,
            });
        }
    }
    parts
}

/// Keys that no query of `first..last` exceeds.
fn keys(mask: Mask, len: u32, first: u32, last: u32) -> u64 {
    mask.keys(len, first..last).len().into()
}

/// Fewest rows (tokens × shards) that take `surplus` work along.
fn rows_to_give(mut parts: Vec<Part>, mut surplus: u128) -> u64 {
    parts.sort_unstable_by_key(|part| std::cmp::Reverse(part.each));
    let mut rows = 0;
    for part in parts {
        let each = u128::from(part.each.max(1));
        let needed = surplus.div_ceil(each);
        if needed <= part.tokens.into() {
            return rows + needed as u64;
        }
        rows += part.tokens;
        surplus -= each * u128::from(part.tokens);
    }
    rows
}

/// Of K and V, under a causal mask.
pub(super) fn kv_bytes(plan: &PoolPlan, heaviest: u64) -> u64 {
    let heads = &plan.heads;
    let mut bytes = 0u128;
    for span in 0..heads.span_count() {
        let kv_heads = heads.kv_of_span(span);
        let count = kv_heads.end - kv_heads.start;
        let width = u64::from(count * heads.group());
        let fetched =
            |(slot, sample)| u128::from(tokens_fetched(plan, slot, sample, width, heaviest));
        let tokens: u128 = samples(plan).map(fetched).sum();
        bytes += tokens * u128::from(plan.bytes.kv_token(heads, count));
    }
    saturated(bytes)
}

/// Every sample with its slot.
fn samples(plan: &PoolPlan) -> impl Iterator<Item = (u32, SampleId)> + '_ {
    (0..plan.layout.slots()).flat_map(|slot| {
        let samples = plan.lengths.samples_of(slot as usize);
        samples.map(move |sample| (slot, SampleId::new(sample)))
    })
}

/// Tokens of a sample's K and V that workers read beyond those they hold.
fn tokens_fetched(plan: &PoolPlan, slot: u32, sample: SampleId, width: u64, heaviest: u64) -> u64 {
    let len = plan.lengths.length(sample);
    let all = u128::from(plan.mask.cum_pairs(len, len)) * u128::from(width);
    let mut held = held(plan, slot, sample).into_iter();
    let (mut fetched, mut most, mut done) = (0i64, 0, 0u128);
    // At most all workers of the pool; each takes at most the heaviest's work.
    for _ in 0..plan.layout.workers() {
        if done >= all {
            break;
        }
        let left = all - done;
        // The last token that is not done reads itself and all before: Φ(x) ≥ left.
        let reach = first_where(0..len, |x| {
            u128::from(plan.mask.cum_pairs(len, x)) * u128::from(width) >= left
        });
        // Both are tokens of one sample, below 2^32, and workers fewer than 2^31.
        fetched += i64::from(reach) - held.next().unwrap_or(0);
        most = most.max(fetched);
        done += u128::from(heaviest);
    }
    most as u64
}

/// Tokens of a sample of `slot` that each context rank holds, most first.
fn held(plan: &PoolPlan, slot: u32, sample: SampleId) -> Vec<i64> {
    let tokens = plan.lengths.tokens(sample);
    let mut held = vec![0; plan.layout.ranks() as usize];
    for fragment in plan.layout.fragments(slot) {
        let (start, end) = (
            tokens.start.max(fragment.start),
            tokens.end.min(fragment.end),
        );
        held[fragment.rank as usize] += i64::from(end.saturating_sub(start));
    }
    held.sort_unstable_by(|a, b| b.cmp(a));
    held
}

fn saturated(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
