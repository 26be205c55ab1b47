//! What moves, token by token: a key is looked up once for every query head that could read it.

// Tests and benches include this file by its path; none of them uses all of it.
#![allow(dead_code, unreachable_pub)]

use std::collections::BTreeSet;

use libra_sched::{
    HeadSplit, KvFetch, Mask, PackedLengths, SampleId, ShTile, TokenLayout, WorkerId,
};

/// One token's K and V in one KV head, from its home to a worker that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyMove {
    /// Receiver.
    pub dst: u32,
    /// Sample of the token.
    pub sample: u32,
    /// KV head.
    pub head: u32,
    /// Token within the sequence.
    pub token: u32,
    /// Sender.
    pub src: u32,
}

/// Every key of every sample that a tile meets, at the tile's worker unless that is its home; or
/// only those that one of the tile's queries reads.
pub fn keys(
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    tiles: &[ShTile],
    workers: &[WorkerId],
    mask: Mask,
    fetch: KvFetch,
) -> BTreeSet<KeyMove> {
    let readers = heads.q_heads() / heads.kv_heads();
    let mut moves = BTreeSet::new();
    for (tile, worker) in tiles.iter().zip(workers) {
        let width = heads.q_heads() / heads.shards();
        let kv_heads: BTreeSet<u32> = (tile.shard * width..(tile.shard + 1) * width)
            .map(|q_head| q_head / readers)
            .collect();
        for sample in pool.samples_of(tile.slot as usize) {
            let tokens = pool.tokens(SampleId(sample as u32));
            let met = (tile.start..tile.end).any(|token| tokens.contains(&token));
            if !met {
                continue;
            }
            let queries = (tile.start..tile.end).filter(|token| tokens.contains(token));
            let (start, len) = (tokens.start, tokens.len() as u32);
            let is_read = |key: u32| match fetch {
                KvFetch::Range => queries
                    .clone()
                    .any(|query| super::mask::reads(mask, len, query - start, key - start)),
                _ => true,
            };
            let own = tokens.clone().filter(|&token| is_read(token));
            let mut read: Vec<(usize, u32)> = own.map(|token| (sample, token)).collect();
            for above in super::mask::above(pool, sample) {
                let tokens = pool.tokens(SampleId(above as u32));
                read.extend(tokens.map(|token| (above, token)));
            }
            for (sample, token) in read {
                for &head in &kv_heads {
                    let src = home(layout, heads, tile.slot, token, head);
                    if src != worker.0 {
                        let (dst, sample) = (worker.0, sample as u32);
                        moves.insert(KeyMove {
                            dst,
                            sample,
                            head,
                            token,
                            src,
                        });
                    }
                }
            }
        }
    }
    moves
}

/// Worker that holds KV head `head` of `token` of `slot`.
pub fn home(layout: &TokenLayout, heads: &HeadSplit, slot: u32, token: u32, head: u32) -> u32 {
    let each = heads.kv_heads() / layout.tensor();
    for fragment in layout.fragments(slot) {
        if fragment.start <= token && token < fragment.end {
            return slot * layout.ranks() * layout.tensor()
                + fragment.rank * layout.tensor()
                + head / each;
        }
    }
    panic!("no fragment of slot {slot} holds token {token}");
}

/// Tiles whose Q and O move: (tile, home, worker).
pub fn away(tiles: &[ShTile], workers: &[WorkerId]) -> Vec<(u32, u32, u32)> {
    let mut moves = Vec::new();
    for (id, tile) in tiles.iter().enumerate() {
        if tile.q_home.0 != workers[id].0 {
            moves.push((id as u32, tile.q_home.0, workers[id].0));
        }
    }
    moves
}
