//! Core attention disaggregation: DistCA's greedy over all replicas. Zhuang et al. 2025, arXiv 2510.18121; the planner of
//! hao-ai-lab/DistCA.
//!
//! Samples fill workers in order; one that does not fit goes on at the next worker, each holding a *head* and a *tail* of
//! it, counted from both ends, so that under a causal mask a pair of queries, one of each, has ℓ + 1 pairs of keys wherever
//! it is taken. Workers below the mean take from those above it, the emptiest first: of all items the one that costs the
//! fewest bytes for the work that can move, split from the inside of its head and tail in multiples of 128 tokens, until
//! the worker lacks less than ε = 0.1 of the mean. Costs are pessimistic: keys that are there already count again. The
//! published planner ends there; as its paper has all workers within ε, a second pass takes from those that are still above
//! 1 + ε, and fills others up to it. O(moves · items).
//!
//! Attention servers are the workers themselves, and ping-pong between two micro-batches is the pipeline of M chunks. What
//! then moves is counted as for every plan: each key once a destination.

mod balance;
mod items;

use std::ops::Range;

use libra_sched::{
    ExchangePlan, HeadSplit, KvFetch, KvRoute, Mask, PackedLengths, PoolPlan, SampleId, ShTile,
    TileSet, TokenLayout, WorkerId, exchange,
};
use rayon::prelude::*;

use balance::balance;
use items::{Item, head_and_tail};

use super::libra::resharded;
use super::pools::in_arrival_order;
use super::{Group, Work, pools};
use crate::failure::Failure;
use crate::preset::Shapes;

/// A plan for all replicas of each gradient-accumulation index, in arrival order.
pub(super) fn groups(window: &PackedLengths, shapes: &Shapes) -> Result<Vec<Group>, Failure> {
    let pools = in_arrival_order(window.sequences(), shapes.window.dp() as usize);
    let groups: Vec<Result<Group, Failure>> = pools
        .par_iter()
        .map(|pool| {
            let lengths = window.select(&pool.members)?;
            let (layout, mut items) = head_and_tail(&lengths, shapes.window.cp())?;
            let heads = resharded(&shapes.heads, 1, shapes.heads.chunks());
            balance(
                &mut items,
                &lengths,
                shapes.plan.mask,
                &heads,
                layout.workers(),
            );
            let plan = plan(lengths, &layout, heads, shapes, &items)?;
            Ok(pools::group(
                &shapes.window,
                pool.first,
                pools::samples_of(window, &pool.members),
                Work::Plan(Box::new(plan)),
                &layout,
            ))
        })
        .collect();
    groups.into_iter().collect()
}

/// Items as tiles of one shard; what lies side by side at one worker is one tile.
fn plan(
    lengths: PackedLengths,
    layout: &TokenLayout,
    heads: HeadSplit,
    shapes: &Shapes,
    items: &[Item],
) -> Result<PoolPlan, Failure> {
    let mask = shapes.plan.mask;
    let (tiles, workers) = tiles(&lengths, items, mask, heads.q_heads());
    let tiles = TileSet::new(&lengths, layout, &heads, tiles)?;
    let fetch = KvFetch::Range;
    let exchange: ExchangePlan =
        exchange::derive(&lengths, layout, &heads, &tiles, &workers, mask, fetch)?;
    let chunk = |head| heads.chunk_of_head(head);
    let kv_chunks = |head| [heads.first_chunk_of_kv(head), heads.last_chunk_of_kv(head)];
    Ok(PoolPlan {
        layout: layout.clone(),
        mask,
        kv_fetch: fetch,
        kv_route: KvRoute::Direct,
        bytes: shapes.plan.bytes,
        tiles: tiles.into_vec(),
        workers,
        q_chunks: (0..heads.q_heads()).map(chunk).collect(),
        kv_chunks: (0..heads.kv_heads()).map(kv_chunks).collect(),
        exchange,
        lengths,
        heads,
    })
}

fn tiles(
    lengths: &PackedLengths,
    items: &[Item],
    mask: Mask,
    width: u32,
) -> (Vec<ShTile>, Vec<WorkerId>) {
    let mut parts: Vec<(&Item, &Range<u32>)> = (items.iter())
        .flat_map(|item| [(item, &item.head), (item, &item.tail)])
        .filter(|(_, part)| !part.is_empty())
        .collect();
    // Samples are numbered slot by slot in token order.
    parts.sort_unstable_by_key(|(item, part)| (item.sample, part.start));
    let (mut tiles, mut workers) = (Vec::<ShTile>::new(), Vec::<WorkerId>::new());
    for (item, part) in parts {
        let tokens = lengths.tokens(SampleId::new(item.sample));
        let (start, end) = (tokens.start + part.start, tokens.start + part.end);
        let pairs = mask.pairs(tokens.end - tokens.start, part.clone());
        let work = pairs * u64::from(width);
        let sample = item.sample as u32;
        match (tiles.last_mut(), workers.last()) {
            (Some(last), Some(&worker))
                if (last.slot, last.end, last.q_home) == (item.slot, start, item.home)
                    && worker == item.worker =>
            {
                last.end = end;
                last.work += work;
                last.samples = sample + 1 - last.first_sample.0;
            }
            _ => {
                tiles.push(ShTile {
                    slot: item.slot,
                    start,
                    end,
                    shard: 0,
                    q_home: item.home,
                    first_sample: SampleId(sample),
                    samples: 1,
                    reserved: 0,
                    work,
                });
                workers.push(item.worker);
            }
        }
    }
    (tiles, workers)
}

#[cfg(test)]
mod tests {
    use super::balance::{GRAIN_TOKENS, TOLERANCE};
    use super::*;
    use crate::baseline::check::check_schedule;
    use crate::baseline::method::Method;
    use crate::baseline::tests::{shapes, window};
    use crate::preset::Preset;

    fn cad_shapes(tokens: u64) -> Shapes {
        shapes(Preset::Tiny, |settings| {
            (settings.tokens, settings.gbs, settings.dp, settings.cp) = (tokens, 4, 4, 2);
        })
    }

    #[test]
    fn one_long_sample_is_shared_out_evenly_in_whole_grains() {
        // 8 workers; all work lies at the first two. A grain is 1/32 of the mean.
        let shapes = cad_shapes(65536);
        let mut lengths = [65536u32].into_iter().chain(std::iter::repeat(1));
        let window = window(4, 65536, || lengths.next().expect("endless"));
        let schedule = Method::Cad.schedule(&window, &shapes).expect("legal");
        check_schedule(&schedule, &window, &shapes);
        let Work::Plan(plan) = &schedule.groups[0].work else {
            panic!("a plan");
        };
        let loads = plan.loads();
        let mean = loads.iter().sum::<u64>() / 8;
        assert!(
            loads.iter().all(|&load| load.abs_diff(mean) <= mean / 10),
            "{loads:?}"
        );
        let away = plan
            .tiles
            .iter()
            .zip(&plan.workers)
            .filter(|(tile, worker)| tile.q_home != **worker);
        assert!(away.clone().count() > 0);
        assert!(
            away.map(|(tile, _)| tile.len())
                .all(|tokens| tokens % GRAIN_TOKENS == 0)
        );
    }

    #[test]
    fn no_one_ends_above_the_tolerance_by_more_than_a_grain() {
        let shapes = cad_shapes(8192);
        let mut state = 7u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let exponent = (state >> 60) as u32;
            8u32 << exponent.min(10)
        };
        for _ in 0..8 {
            let window = window(4, 8192, &mut next);
            let schedule = Method::Cad.schedule(&window, &shapes).expect("legal");
            check_schedule(&schedule, &window, &shapes);
            let Work::Plan(plan) = &schedule.groups[0].work else {
                panic!("a plan");
            };
            let loads = plan.loads();
            let mean = loads.iter().sum::<u64>() / 8;
            // No grain has more.
            let grain = u64::from(GRAIN_TOKENS) * 8193 * 4;
            let limit = mean + mean / TOLERANCE + grain;
            assert!(loads.iter().all(|&load| load <= limit), "{loads:?}");
        }
    }
}
