//! Plan + worker → [`RankProgram`]: rows, messages and attention entries of one worker.
//!
//! Sender and receiver walk the same lists of the plan in the same order, so both know the layout
//! of a message without a word about it on the wire.

mod entries;
mod kinds;
mod messages;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use libra_sched::reverse::BackwardPlan;
use libra_sched::{PlanId, PoolPlan, SampleId, TileId, WorkerId};

use crate::program::{RankProgram, Tensor, TensorShape};

/// Lowers `plan` and its `backward` for `worker`.
///
/// # Panics
/// If the plan breaks its own rules (see [`libra_sched::verify::check`]) or `worker` is not in it.
#[must_use]
pub fn lower(plan: &PoolPlan, backward: &BackwardPlan, worker: WorkerId) -> RankProgram {
    assert!(
        worker.0 < plan.layout.workers(),
        "{worker} of {}",
        plan.layout.workers()
    );
    let lowering = Lowering::new(plan, worker);
    let (entries, kv_views) = lowering.entries();
    let (_, _, tensor) = plan.layout.place_of(worker);
    RankProgram {
        worker,
        workers: plan.layout.workers(),
        plan_id: PlanId::of(plan),
        heads: plan.heads.clone(),
        mask: plan.mask,
        mode: backward.mode,
        first_q_head: plan.layout.q_heads_of(&plan.heads, tensor).start,
        shapes: lowering.shapes,
        entries,
        kv_views,
        forward: lowering.forward(backward),
        backward: lowering.backward(backward),
    }
}

/// Programs of every worker of `plan`.
#[must_use]
pub fn lower_all(plan: &PoolPlan, backward: &BackwardPlan) -> Vec<RankProgram> {
    (0..plan.layout.workers())
        .map(|w| lower(plan, backward, WorkerId(w)))
        .collect()
}

/// Where one KV group of this worker lies.
#[derive(Clone, Copy)]
struct Group {
    staged: bool,
    /// Row of the first token of the first head.
    row: u32,
}

struct Lowering<'a> {
    plan: &'a PoolPlan,
    worker: WorkerId,
    /// Own fragments: tokens and first row.
    held: Vec<(Range<u32>, u32)>,
    rows: u32,
    /// Tiles computed here by (shard, slot, token).
    tiles: Vec<TileId>,
    /// First row of each tile that is staged here.
    staged_row: BTreeMap<TileId, u32>,
    staged_rows: u32,
    /// Groups read here, by (sample, span).
    groups: BTreeMap<(u32, u32), Group>,
    staged_kv_rows: u32,
    shapes: [TensorShape; Tensor::ALL.len()],
}

impl<'a> Lowering<'a> {
    fn new(plan: &'a PoolPlan, worker: WorkerId) -> Self {
        let (slot, rank, _) = plan.layout.place_of(worker);
        let mut rows = 0;
        let held = plan
            .layout
            .held(slot, rank)
            .map(|tokens| {
                let row = rows;
                rows += tokens.end - tokens.start;
                (tokens, row)
            })
            .collect();
        let mut tiles: Vec<TileId> = (0..plan.tiles.len())
            .filter(|&t| plan.workers[t] == worker)
            .map(TileId::new)
            .collect();
        tiles.sort_by_key(|t| {
            let tile = &plan.tiles[t.index()];
            (tile.shard, tile.slot, tile.start, *t)
        });
        let mut staged_rows = 0;
        let mut staged_row = BTreeMap::new();
        for &id in &tiles {
            let tile = &plan.tiles[id.index()];
            if tile.q_home != worker {
                staged_row.insert(id, staged_rows);
                staged_rows += tile.len();
            }
        }
        let mut lowering = Self {
            plan,
            worker,
            held,
            rows,
            tiles,
            staged_row,
            staged_rows,
            groups: BTreeMap::new(),
            staged_kv_rows: 0,
            shapes: [TensorShape::default(); Tensor::ALL.len()],
        };
        lowering.place_groups();
        lowering.shapes = lowering.find_shapes();
        lowering
    }

    /// A group whose tokens are all this worker's own is read in place; any other is staged, one
    /// KV head after the other.
    fn place_groups(&mut self) {
        let heads = &self.plan.heads;
        let mut read: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for id in &self.tiles {
            let tile = &self.plan.tiles[id.index()];
            for sample in tile.samples() {
                for span in heads.spans_of_shard(tile.shard) {
                    read.insert((sample as u32, span), tile.slot);
                }
            }
        }
        let exchange = &self.plan.exchange;
        let fetched: BTreeSet<(u32, u32)> = exchange
            .kv
            .iter()
            .chain(&exchange.forward)
            .filter(|m| m.dst == self.worker)
            .map(|m| (m.sample.0, m.span))
            .collect();
        for key in read.into_keys() {
            let tokens = self.plan.lengths.tokens(SampleId(key.0));
            let group = if fetched.contains(&key) {
                let row = self.staged_kv_rows;
                let width = heads.kv_of_span(key.1).len() as u32;
                self.staged_kv_rows += width * (tokens.end - tokens.start);
                Group { staged: true, row }
            } else {
                Group {
                    staged: false,
                    row: self.row_of(tokens.start),
                }
            };
            self.groups.insert(key, group);
        }
    }

    /// Row of an own token.
    fn row_of(&self, token: u32) -> u32 {
        let (tokens, row) = self
            .held
            .iter()
            .find(|(tokens, _)| tokens.contains(&token))
            .expect("a plan reads in place only what is home");
        row + token - tokens.start
    }

    /// First query head and first KV head of the own tensors.
    fn first_heads(&self) -> (u32, u32) {
        let (_, _, tensor) = self.plan.layout.place_of(self.worker);
        let layout = &self.plan.layout;
        (
            layout.q_heads_of(&self.plan.heads, tensor).start,
            layout.kv_heads_of(&self.plan.heads, tensor).start,
        )
    }

    fn find_shapes(&self) -> [TensorShape; Tensor::ALL.len()] {
        let heads = &self.plan.heads;
        let tensor = self.plan.layout.tensor();
        let (dim_qk, dim_v) = (heads.dim_qk(), heads.dim_v());
        let shape = |rows: u32, heads: u32, width: u32| TensorShape {
            rows: rows as usize,
            heads: heads as usize,
            width: width as usize,
        };
        let q = |width| shape(self.rows, heads.q_heads() / tensor, width);
        let kv = |width| shape(self.rows, heads.kv_heads() / tensor, width);
        let staged_q = |width| shape(self.staged_rows, heads.shard_width(), width);
        let staged_kv = |width| shape(self.staged_kv_rows, 1, width);
        Tensor::ALL.map(|tensor| match tensor {
            Tensor::Q | Tensor::DQ => q(dim_qk),
            Tensor::O | Tensor::DO => q(dim_v),
            Tensor::Lse | Tensor::Delta => q(1),
            Tensor::K | Tensor::DK => kv(dim_qk),
            Tensor::V | Tensor::DV => kv(dim_v),
            Tensor::StagedQ | Tensor::StagedDQ => staged_q(dim_qk),
            Tensor::StagedO | Tensor::StagedDO => staged_q(dim_v),
            Tensor::StagedLse | Tensor::StagedDelta => staged_q(1),
            Tensor::StagedK | Tensor::StagedDK => staged_kv(dim_qk),
            Tensor::StagedV | Tensor::StagedDV => staged_kv(dim_v),
        })
    }
}
