//! The chunk tables: each shard's query heads in M equal runs, KV heads with their first and last.

use super::{Violation, q_heads_of};
use crate::plan::PoolPlan;

pub(super) fn check(plan: &PoolPlan, found: &mut Vec<Violation>) {
    let mut expected = vec![0u32; plan.q_chunks.len()];
    for shard in 0..plan.heads.shards() {
        let (first, end) = q_heads_of(plan, shard);
        let each = (end - first) / plan.heads.chunks();
        for (place, head) in (first..end).enumerate() {
            expected[head as usize] = place as u32 / each;
        }
    }
    for (head, (&there, &chunk)) in plan.q_chunks.iter().zip(&expected).enumerate() {
        if there != chunk {
            let head = head as u32;
            found.push(Violation::Chunk {
                kind: "query",
                head,
                found: there,
                expected: chunk,
            });
        }
    }
    let readers = expected.len() / plan.kv_chunks.len();
    for (head, (there, chunks)) in plan
        .kv_chunks
        .iter()
        .zip(expected.chunks(readers))
        .enumerate()
    {
        let ends = [
            ("first of KV", chunks.iter().min()),
            ("last of KV", chunks.iter().max()),
        ];
        for ((kind, chunk), &there) in ends.into_iter().zip(there) {
            if chunk != Some(&there) {
                let (head, expected) = (head as u32, chunk.copied().unwrap_or(0));
                found.push(Violation::Chunk {
                    kind,
                    head,
                    found: there,
                    expected,
                });
            }
        }
    }
}
