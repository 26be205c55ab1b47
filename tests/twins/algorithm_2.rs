//! Algorithm 2 as the paper writes it: workers of one speed, no sample that continues another. For every
//! tile, for every worker, the price of every KV group that the tile reads. O(T·W·|K|). The yardstick of
//! planning times; `placement.rs` is the twin for all that came later.

// Tests and benches include this file by its path; none of them uses all of it.
#![allow(dead_code, unreachable_pub)]

use libra_sched::{
    ElementBytes, HeadSplit, PackedLengths, SampleId, ShTile, Slack, TokenLayout, WorkerId,
};

/// What the algorithm reads, and what it has decided so far.
struct Algorithm<'a> {
    pool: &'a PackedLengths,
    heads: &'a HeadSplit,
    bytes: ElementBytes,
    /// C_r: for each worker, whether it has each group (sample × span).
    resident: Vec<Vec<bool>>,
    loads: Vec<u64>,
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
    let mut run = Algorithm {
        pool,
        heads,
        bytes,
        resident: vec![vec![false; groups]; workers],
        loads: vec![0; workers],
    };
    let total: u64 = tiles.iter().map(|tile| tile.work).sum();

    let mut order: Vec<usize> = (0..tiles.len()).collect();
    order.sort_by_key(|&id| (std::cmp::Reverse(tiles[id].work), id));

    let mut assigned = vec![WorkerId(0); tiles.len()];
    for id in order {
        let tile = &tiles[id];
        let with_headroom: Vec<usize> = (0..workers)
            .filter(|&r| fits(run.loads[r], tile.work, total, workers, slack))
            .collect();
        let winner = if with_headroom.is_empty() {
            (0..workers).min_by_key(|&r| (run.loads[r], run.delta_comm(tile, r), r))
        } else {
            let price = |&r: &usize| (run.delta_comm(tile, r), run.loads[r], r);
            with_headroom.into_iter().min_by_key(price)
        };
        let winner = winner.expect("a pool has a worker");
        assigned[id] = WorkerId(winner as u32);
        run.loads[winner] += tile.work;
        for group in run.groups(tile).collect::<Vec<_>>() {
            run.resident[winner][group.index] = true;
        }
    }
    (assigned, run.loads)
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

/// A KV group that a tile reads: its place in a worker's residency, and its bytes.
struct Group {
    index: usize,
    bytes: u64,
}

impl Algorithm<'_> {
    /// Eq. 9: bytes of the groups that `worker` lacks, and of Q and O away from home.
    fn delta_comm(&self, tile: &ShTile, worker: usize) -> u64 {
        let missing: u64 = self
            .groups(tile)
            .filter(|group| !self.resident[worker][group.index])
            .map(|group| group.bytes)
            .sum();
        if tile.q_home.0 as usize == worker {
            missing
        } else {
            missing + self.query_and_output_bytes(tile)
        }
    }

    /// K(t), eq. 7: every sample that the tile meets, in every KV span of its shard.
    fn groups(&self, tile: &ShTile) -> impl Iterator<Item = Group> + '_ {
        let spans = self.heads.spans_of_shard(tile.shard);
        let samples = tile.first_sample.0..tile.first_sample.0 + tile.samples;
        samples.flat_map(move |sample| {
            spans.clone().map(move |span| Group {
                index: sample as usize * self.heads.span_count() as usize + span as usize,
                bytes: self.group_bytes(sample, span),
            })
        })
    }

    /// V_g: K and V of the whole sample.
    fn group_bytes(&self, sample: u32, span: u32) -> u64 {
        let kv_heads = self.heads.kv_of_span(span).len() as u64;
        let tokens = u64::from(self.pool.length(SampleId(sample)));
        tokens * kv_heads * self.widths() * u64::from(self.bytes.activation)
    }

    /// V_Q + V_O.
    fn query_and_output_bytes(&self, tile: &ShTile) -> u64 {
        let rows = u64::from(tile.end - tile.start);
        let q_heads = u64::from(self.heads.q_heads() / self.heads.shards());
        rows * q_heads * self.widths() * u64::from(self.bytes.activation)
    }

    /// d_qk + d_v.
    fn widths(&self) -> u64 {
        u64::from(self.heads.dim_qk()) + u64::from(self.heads.dim_v())
    }
}
