//! Plan + worker → [`RankProgram`]: rows, messages and attention entries of one worker.
//!
//! Sender and receiver walk the same lists of the plan in the same order, so both know the layout
//! of a message without a word about it on the wire.

mod entries;
mod kinds;
mod messages;

use std::collections::BTreeMap;
use std::ops::Range;

use entries::Entries;
use libra_sched::reverse::BackwardPlan;
use libra_sched::{PlanId, PoolPlan, SampleId, TileId, WorkerId};

use crate::program::{Computes, RankProgram, Tensor, TensorShape};

/// Lowers `plan` and its `backward` for `worker`.
///
/// # Panics
/// If the plan breaks its own rules (see [`libra_sched::verify::check`]) or `worker` is not in it.
#[must_use]
pub fn lower(plan: &PoolPlan, backward: &BackwardPlan, worker: WorkerId) -> RankProgram {
    lower_one(plan, backward, worker, PlanId::of(plan))
}

/// `lower` of a plan whose id is known: it is a digest of the whole plan, the same for every worker.
fn lower_one(
    plan: &PoolPlan,
    backward: &BackwardPlan,
    worker: WorkerId,
    plan_id: PlanId,
) -> RankProgram {
    assert!(
        worker.0 < plan.layout.workers(),
        "{worker} of {}",
        plan.layout.workers()
    );
    let lowering = Lowering::new(plan, worker);
    let Entries {
        entries,
        pieces,
        ancestors,
        kv_views,
    } = lowering.entries();
    let (_, _, tensor) = plan.layout.place_of(worker);
    RankProgram {
        worker,
        workers: plan.layout.workers(),
        plan_id,
        heads: plan.heads.clone(),
        mask: plan.mask,
        mode: backward.mode,
        first_q_head: plan.layout.q_heads_of(&plan.heads, tensor).start,
        shapes: lowering.shapes,
        entries,
        computes: Computes::Chunks,
        pieces,
        ancestors,
        kv_views,
        forward: lowering.forward(backward),
        backward: lowering.backward(backward),
    }
}

/// Programs of every worker of `plan`.
#[must_use]
pub fn lower_all(plan: &PoolPlan, backward: &BackwardPlan) -> Vec<RankProgram> {
    let plan_id = PlanId::of(plan);
    (0..plan.layout.workers())
        .map(|w| lower_one(plan, backward, WorkerId(w), plan_id))
        .collect()
}

/// Where one KV group of this worker lies.
#[derive(Clone)]
struct Group {
    staged: bool,
    /// Sample-local tokens that are there: from the first that arrives or is read to the last.
    tokens: Range<u32>,
    /// Row of the first of them in the first head.
    row: u32,
}

impl Group {
    /// Row of the first token of a staged group's head.
    fn row_of_head(&self, place: u32) -> u32 {
        self.row + place * (self.tokens.end - self.tokens.start)
    }
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

    /// A group whose tokens are read in place is this worker's own, in consecutive rows; any other
    /// is staged, one KV head after the other.
    fn place_groups(&mut self) {
        let heads = &self.plan.heads;
        let (slot, ..) = self.plan.layout.place_of(self.worker);
        let own_samples = self.plan.lengths.samples_of(slot as usize);
        for ((sample, span), (tokens, fetched)) in self.read_groups() {
            let start = self.plan.lengths.tokens(SampleId(sample)).start;
            let own = own_samples.contains(&(sample as usize)) && self.holds_span(span);
            let in_place = if fetched || !own || tokens.is_empty() {
                None
            } else {
                self.held_row(start + tokens.start..start + tokens.end)
            };
            let group = Group {
                staged: in_place.is_none(),
                row: in_place.unwrap_or(self.staged_kv_rows),
                tokens,
            };
            if group.staged {
                self.staged_kv_rows = group.row_of_head(heads.kv_of_span(span).len() as u32);
            }
            self.groups.insert((sample, span), group);
        }
    }

    /// Groups that the tiles here read, by (sample, span): their sample-local tokens from the first
    /// that arrives or is read to the last, and whether any arrives.
    fn read_groups(&self) -> BTreeMap<(u32, u32), (Range<u32>, bool)> {
        let plan = self.plan;
        let mut read: BTreeMap<(u32, u32), (Range<u32>, bool)> = BTreeMap::new();
        for id in &self.tiles {
            let tile = &plan.tiles[id.index()];
            for sample in tile.samples() {
                let tokens = plan.lengths.tokens(SampleId::new(sample));
                let queries = tile.start.max(tokens.start) - tokens.start
                    ..tile.end.min(tokens.end) - tokens.start;
                let keys = plan.mask.keys(tokens.end - tokens.start, queries).hull();
                for span in plan.heads.spans_of_shard(tile.shard) {
                    let group = read.entry((sample as u32, span)).or_default();
                    group.0 = hull(&group.0, &keys);
                    for above in plan.lengths.ancestors(SampleId::new(sample)) {
                        let group = read.entry((above.0, span)).or_default();
                        group.0 = 0..plan.lengths.length(above);
                    }
                }
            }
        }
        let arriving = plan.exchange.kv.iter().chain(&plan.exchange.forward);
        for m in arriving.filter(|m| m.dst == self.worker) {
            let start = plan.lengths.tokens(m.sample).start;
            let group = read.entry((m.sample.0, m.span)).or_default();
            *group = (hull(&group.0, &(m.start - start..m.end - start)), true);
        }
        read
    }

    /// Row of the first of `tokens` if they are this worker's own, in consecutive rows.
    fn held_row(&self, tokens: Range<u32>) -> Option<u32> {
        let mut next = tokens.start;
        for (held, _) in &self.held {
            if held.contains(&next) {
                next = held.end;
            }
        }
        (next >= tokens.end).then(|| self.row_of(tokens.start))
    }

    /// Row of an own token.
    fn row_of(&self, token: u32) -> u32 {
        let (tokens, row) = self
            .held
            .iter()
            .find(|(tokens, _)| tokens.contains(&token))
            .expect("a tile at home is of own tokens");
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

/// The least range that holds both; an empty one adds nothing.
fn hull(a: &Range<u32>, b: &Range<u32>) -> Range<u32> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b.clone(),
        (_, true) => a.clone(),
        _ => a.start.min(b.start)..a.end.max(b.end),
    }
}
