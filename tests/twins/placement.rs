//! Algorithm 2, literally: every worker is priced for every tile by looking at every KV group that
//! the tile reads. O(T·W·|K|).

// Tests and benches include this file by its path; none of them uses all of it.
#![allow(dead_code, unreachable_pub)]

use libra_sched::{
    ElementBytes, HeadSplit, PackedLengths, SampleId, ShTile, Slack, TokenLayout, WorkerId,
};

/// A KV group that a tile reads: its place in a worker's residency, and its bytes.
struct Group {
    index: usize,
    bytes: u64,
}

/// Worker of each tile, and load of each worker.
pub fn place(
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    bytes: ElementBytes,
    tiles: &[ShTile],
    slack: Slack,
) -> (Vec<WorkerId>, Vec<u64>) {
    let workers = layout.workers() as usize;
    let groups = pool.samples() * heads.span_count() as usize;
    let total: u64 = tiles.iter().map(|tile| tile.work).sum();

    let mut order: Vec<usize> = (0..tiles.len()).collect();
    order.sort_by_key(|&id| (std::cmp::Reverse(tiles[id].work), id));

    let mut resident: Vec<Vec<bool>> = vec![vec![false; groups]; workers];
    let mut loads: Vec<u64> = vec![0; workers];
    let mut assigned = vec![WorkerId(0); tiles.len()];
    for id in order {
        let tile = &tiles[id];
        let read = groups_of(pool, heads, bytes, tile);
        let qo_bytes = query_and_output_bytes(heads, bytes, tile);

        let mut within: Option<(u64, u64, usize)> = None;
        let mut overall: Option<(u64, u64, usize)> = None;
        for worker in 0..workers {
            let mut delta = 0;
            for group in &read {
                if !resident[worker][group.index] {
                    delta += group.bytes;
                }
            }
            if tile.q_home.0 as usize != worker {
                delta += qo_bytes;
            }
            let load = loads[worker];
            if fits(load, tile.work, total, workers, slack) {
                within = least(within, (delta, load, worker));
            }
            overall = least(overall, (load, delta, worker));
        }
        let (_, _, winner) = within.or(overall).expect("a pool has a worker");

        assigned[id] = WorkerId(winner as u32);
        loads[winner] += tile.work;
        for group in &read {
            resident[winner][group.index] = true;
        }
    }
    (assigned, loads)
}

fn least(best: Option<(u64, u64, usize)>, next: (u64, u64, usize)) -> Option<(u64, u64, usize)> {
    match best {
        Some(best) if best <= next => Some(best),
        _ => Some(next),
    }
}

/// `load + work <= (1 + slack) * total / workers`, without division.
fn fits(load: u64, work: u64, total: u64, workers: usize, slack: Slack) -> bool {
    if slack == Slack::UNBOUNDED {
        return true;
    }
    let parts = 1_000_000;
    let left = (u128::from(load) + u128::from(work)) * workers as u128 * parts;
    let right = (parts + u128::from(slack.ppm())) * u128::from(total);
    left <= right
}

/// K(t): every sample that the tile meets, in every KV span of its shard.
fn groups_of(
    pool: &PackedLengths,
    heads: &HeadSplit,
    bytes: ElementBytes,
    tile: &ShTile,
) -> Vec<Group> {
    let first = tile.first_sample.0;
    let element = u64::from(bytes.activation);
    let width = u64::from(heads.dim_qk()) + u64::from(heads.dim_v());
    let mut groups = Vec::new();
    for sample in first..first + tile.samples {
        for span in heads.spans_of_shard(tile.shard) {
            let kv_heads = heads.kv_of_span(span).len() as u64;
            let tokens = u64::from(pool.length(SampleId(sample)));
            groups.push(Group {
                index: sample as usize * heads.span_count() as usize + span as usize,
                bytes: tokens * kv_heads * width * element,
            });
        }
    }
    groups
}

/// V_Q + V_O.
fn query_and_output_bytes(heads: &HeadSplit, bytes: ElementBytes, tile: &ShTile) -> u64 {
    let rows = u64::from(tile.end - tile.start);
    let q_heads = u64::from(heads.q_heads() / heads.shards());
    let width = u64::from(heads.dim_qk()) + u64::from(heads.dim_v());
    rows * q_heads * width * u64::from(bytes.activation)
}
