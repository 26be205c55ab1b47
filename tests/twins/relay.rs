//! One copy a node, key by key: pieces are cut at every edge, relays chosen one piece after another.

// Tests and benches include this file by its path; none of them uses all of it.
#![allow(dead_code, unreachable_pub)]

use std::collections::BTreeSet;

use libra_sched::{ExchangePlan, HeadSplit, KvMove, ShTile, WorkerId};

use super::exchange::KeyMove;

/// The keys of both hops of `direct` on nodes of `gpus` workers.
pub fn keys(
    direct: &ExchangePlan,
    heads: &HeadSplit,
    tiles: &[ShTile],
    workers: u32,
    gpus: u32,
) -> (BTreeSet<KeyMove>, BTreeSet<KeyMove>) {
    let crosses = |src: WorkerId, dst: WorkerId| src.0 / gpus != dst.0 / gpus;
    let mut received = vec![0u64; workers as usize];
    for m in direct.q.iter().filter(|m| crosses(m.src, m.dst)) {
        let tile = &tiles[m.tile.0 as usize];
        let row = heads.q_heads() / heads.shards() * heads.dim_qk();
        received[m.dst.0 as usize] += u64::from(tile.end - tile.start) * u64::from(row);
    }
    let mut first = BTreeSet::new();
    let mut second = BTreeSet::new();
    for m in direct.kv.iter().filter(|m| !crosses(m.src, m.dst)) {
        spread(&mut first, heads, m);
    }
    let mut pieces = pieces(direct, workers, gpus);
    let size = |m: &KvMove| {
        let width = heads.kv_of_span(m.span).len() as u32 * (heads.dim_qk() + heads.dim_v());
        u64::from(m.end - m.start) * u64::from(width)
    };
    // Stable: equal pieces keep their order by (node, sample, span, home, token).
    pieces.sort_by_key(|(m, readers)| (readers.len() > 1, u64::MAX - size(m)));
    for (piece, readers) in pieces {
        let mut relay = readers[0];
        for &reader in &readers {
            if received[reader as usize] < received[relay as usize] {
                relay = reader;
            }
        }
        received[relay as usize] += size(&piece);
        for reader in readers {
            let (src, keys) = if reader == relay {
                (piece.src, &mut first)
            } else {
                (WorkerId(relay), &mut second)
            };
            let dst = WorkerId(reader);
            spread(keys, heads, &KvMove { dst, src, ..piece });
        }
    }
    (first, second)
}

/// Tokens between two edges with the workers of one node that read them all, by (node, sample, span,
/// home, token).
fn pieces(direct: &ExchangePlan, workers: u32, gpus: u32) -> Vec<(KvMove, Vec<u32>)> {
    let groups: BTreeSet<_> = direct
        .kv
        .iter()
        .map(|m| (m.sample, m.span, m.src))
        .collect();
    let mut pieces = Vec::new();
    for node in 0..workers.div_ceil(gpus) {
        for &(sample, span, src) in groups.iter().filter(|g| g.2.0 / gpus != node) {
            let of_group: Vec<&KvMove> = direct
                .kv
                .iter()
                .filter(|m| (m.sample, m.span, m.src) == (sample, span, src))
                .filter(|m| m.dst.0 / gpus == node)
                .collect();
            let edges: BTreeSet<u32> = of_group.iter().flat_map(|m| [m.start, m.end]).collect();
            let edges: Vec<u32> = edges.into_iter().collect();
            for edge in edges.windows(2) {
                let reads = |m: &&&KvMove| m.start <= edge[0] && edge[1] <= m.end;
                let readers: BTreeSet<u32> =
                    of_group.iter().filter(reads).map(|m| m.dst.0).collect();
                if let Some(&first) = readers.first() {
                    let piece = KvMove {
                        dst: WorkerId(first),
                        sample,
                        span,
                        start: edge[0],
                        end: edge[1],
                        src,
                    };
                    pieces.push((piece, readers.into_iter().collect()));
                }
            }
        }
    }
    pieces
}

fn spread(keys: &mut BTreeSet<KeyMove>, heads: &HeadSplit, m: &KvMove) {
    for head in heads.kv_of_span(m.span) {
        for token in m.start..m.end {
            keys.insert(KeyMove {
                dst: m.dst.0,
                sample: m.sample.0,
                head,
                token,
                src: m.src.0,
            });
        }
    }
}
