//! Masks key by key: which pairs there are, written down once more.

// Tests and benches include this file by its path; none of them uses all of it.
#![allow(dead_code, unreachable_pub)]

use libra_sched::{Mask, PackedLengths, SampleId};

/// Whether `query` reads `key` in a sample of `len` tokens.
pub fn reads(mask: Mask, len: u32, query: u32, key: u32) -> bool {
    let (len, q, k) = (len as i128, query as i128, key as i128);
    if k < 0 || k >= len {
        return false;
    }
    let wide = |number: u32| number as i128;
    match mask {
        Mask::Causal => k <= q,
        Mask::Full => true,
        Mask::Offset { offset, .. } => k < q + 1 + wide(offset),
        Mask::Window { window, sinks, .. } => k <= q && (q - k < wide(window) || k < wide(sinks)),
        Mask::TwoSided { left, right, .. } => -wide(right) <= q - k && q - k <= wide(left),
        Mask::Chunked { chunk, .. } => k <= q && q / wide(chunk) == k / wide(chunk),
        Mask::Block {
            block,
            local,
            sinks,
            ..
        } => {
            let (of_query, of_key) = (q / wide(block), k / wide(block));
            if of_key == of_query {
                k <= q
            } else {
                of_key < of_query && (of_query - of_key < wide(local) || of_key < wide(sinks))
            }
        }
        Mask::Prefix { prefix, .. } => k < wide(prefix) || k <= q,
        Mask::Keys { start, end, .. } => wide(start) <= k && k < wide(end) && k <= q,
        other => panic!("{other} has no twin"),
    }
}

/// Keys that some query of `queries` reads, rising.
pub fn keys(mask: Mask, len: u32, queries: std::ops::Range<u32>) -> Vec<u32> {
    (0..len)
        .filter(|&key| queries.clone().any(|query| reads(mask, len, query, key)))
        .collect()
}

/// Pairs of `queries`, one by one.
pub fn pairs(mask: Mask, len: u32, queries: std::ops::Range<u32>) -> u64 {
    let of = |query: u32| (0..len).filter(|&key| reads(mask, len, query, key)).count() as u64;
    queries.map(of).sum()
}

/// Samples above `sample`, one parent after the other.
pub fn above(pool: &PackedLengths, sample: usize) -> Vec<usize> {
    match pool.parent(SampleId(sample as u32)) {
        None => Vec::new(),
        Some(parent) => {
            let parent = parent.0 as usize;
            [vec![parent], above(pool, parent)].concat()
        }
    }
}
