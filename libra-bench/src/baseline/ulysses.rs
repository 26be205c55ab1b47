//! DeepSpeed Ulysses: an all-to-all gives each of the CP workers of a sequence all its tokens in h_q/CP heads, and
//! another one takes O back. Jacobs et al. 2023, arXiv 2309.14509.
//!
//! Forward a worker receives (CP−1)/CP · L/CP · d·b · (2·h_q + 2·max(h_kv, CP)) bytes: Q, O and, copied where CP > h_kv,
//! K and V. O(samples) a sequence.

use libra_sched::{Error, HeadSplit, KvFetch, KvRoute, PackedLengths, Placer, PlanConfig, error};

use super::pools::{Pools, in_arrival_order};
use crate::failure::Failure;
use crate::preset::Shapes;

/// A plan a sequence, in arrival order.
pub(super) fn pools(window: &PackedLengths, shapes: &Shapes) -> Result<Pools, Failure> {
    let heads = split_heads(&shapes.heads, shapes.window.cp()).map_err(Failure::Ulysses)?;
    let ulysses = Shapes {
        heads,
        plan: config(&shapes.plan, shapes.window.seq_tokens()),
        costs: None,
        speeds: None,
        ..shapes.clone()
    };
    Ok(Pools {
        shapes: ulysses,
        pools: in_arrival_order(window.sequences(), 1),
    })
}

/// How Ulysses plans one sequence of `tokens` tokens.
const fn config(config: &PlanConfig, tokens: u32) -> PlanConfig {
    PlanConfig {
        block_tokens: tokens,
        placer: Placer::HeadShard,
        // A worker of Ulysses reads whole samples.
        kv_fetch: KvFetch::Whole,
        kv_route: KvRoute::Direct,
        max_recv_bytes: None,
        ..*config
    }
}

/// One shard a worker, and as many chunks of it as there may be, up to Libra's.
fn split_heads(heads: &HeadSplit, cp: u32) -> Result<HeadSplit, Error> {
    let split = |chunks| {
        HeadSplit::new(
            heads.q_heads(),
            heads.kv_heads(),
            heads.dim_qk(),
            heads.dim_v(),
            cp,
            chunks,
        )
    };
    let width = split(1)?.shard_width();
    let chunks = error::divisors(width.into());
    let chunks = chunks.into_iter().rfind(|&m| m <= heads.chunks().into());
    split(chunks.map_or(1, |m| m as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ulysses_has_the_most_chunks_its_shards_allow() {
        let heads = HeadSplit::new(32, 8, 4, 4, 2, 4).expect("legal");
        assert_eq!(split_heads(&heads, 8).map(|h| h.chunks()), Ok(4));
        assert_eq!(split_heads(&heads, 16).map(|h| h.chunks()), Ok(2));
        assert!(split_heads(&heads, 5).is_err());
    }
}
