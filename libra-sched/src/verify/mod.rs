//! An independent second opinion on a plan.
//!
//! Recomputes what a plan must hold from lengths, layout and heads, with none of the code that
//! made it: tiles are matched against every token, work is summed from arithmetic series, key
//! ranges are assembled piece by piece, and what a mask lets a query read is written down once more. O(pieces log pieces); meant for tests, tools and start-up,
//! not for the critical path.

mod heads;
mod hops;
mod keys;
mod mask;
mod moves;
mod tiles;

use thiserror::Error as Derive;

use crate::ids::SampleId;
use crate::mask::Mask;
use crate::plan::PoolPlan;

/// A rule that a plan breaks. Our planner is wrong, or someone changed its plan.
#[derive(Clone, Debug, PartialEq, Eq, Derive)]
#[non_exhaustive]
pub enum Violation {
    /// Parts of the plan have sizes that do not belong together; nothing else was checked.
    #[error("{what}: {found} there, {expected} expected")]
    Shape {
        /// What was counted.
        what: &'static str,
        /// There.
        found: u64,
        /// Expected.
        expected: u64,
    },
    /// A head travels or is computed in another chunk than its place in the shard says.
    #[error("{kind} head {head}: chunk {found}, must be {expected}")]
    Chunk {
        /// Query or first or last KV.
        kind: &'static str,
        /// The head.
        head: u32,
        /// Chunk in the plan.
        found: u32,
        /// Chunk by the head's place.
        expected: u32,
    },
    /// A token of a shard is computed by no tile, or by two.
    #[error("slot {slot}, shard {shard}: tokens {start}..{end} are computed {times} times")]
    Coverage {
        /// Slot of the pool.
        slot: u32,
        /// Head shard.
        shard: u32,
        /// First token concerned.
        start: u32,
        /// One past the last.
        end: u32,
        /// 0 or more than 1.
        times: u32,
    },
    /// A tile says something about itself that its tokens do not bear out.
    #[error("tile {tile}: {what} is {found}, must be {expected}")]
    Tile {
        /// The tile.
        tile: usize,
        /// What is wrong.
        what: &'static str,
        /// In the plan.
        found: u64,
        /// By its tokens.
        expected: u64,
    },
    /// A tile away from home has no move, or one at home has one, or it moves twice.
    #[error("tile {tile}: {found} {leg} moves, must be {expected}")]
    TileMoves {
        /// The tile.
        tile: usize,
        /// Q or O.
        leg: &'static str,
        /// Moves in the plan.
        found: usize,
        /// 1 away from home, else 0.
        expected: usize,
    },
    /// A move goes from or to the wrong worker.
    #[error(
        "{leg} move of tile {tile}: w{src} to w{dst}, must be w{expected_src} to w{expected_dst}"
    )]
    Route {
        /// Q or O.
        leg: &'static str,
        /// The tile.
        tile: usize,
        /// Sender in the plan.
        src: u32,
        /// Receiver in the plan.
        dst: u32,
        /// Sender by placement.
        expected_src: u32,
        /// Receiver by placement.
        expected_dst: u32,
    },
    /// A worker lacks keys that its tiles read, or has some twice.
    #[error(
        "w{worker}, sample {sample}, KV span {span}: tokens {start}..{end} are there {times} times"
    )]
    Keys {
        /// The destination.
        worker: u32,
        /// The sample.
        sample: u32,
        /// The KV span.
        span: u32,
        /// First token within the sequence.
        start: u32,
        /// One past the last.
        end: u32,
        /// 0 or more than 1.
        times: u32,
    },
    /// A KV move that no tile at its destination needs, or beyond its sample.
    #[error("{list} {index} to w{worker}: tokens {start}..{end} of sample {sample} {why}")]
    UselessMove {
        /// KV move or forward.
        list: &'static str,
        /// Position in the plan's list.
        index: usize,
        /// The destination.
        worker: u32,
        /// The sample.
        sample: u32,
        /// First token within the sequence.
        start: u32,
        /// One past the last.
        end: u32,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A KV move from a worker that is not home to all its tokens.
    #[error("KV move {index} from w{src}: tokens {start}..{end} live at w{home}")]
    Source {
        /// Position in the plan's list.
        index: usize,
        /// Sender in the plan.
        src: u32,
        /// First token concerned.
        start: u32,
        /// One past the last.
        end: u32,
        /// Their home.
        home: u32,
    },
    /// A KV move brings tokens into a node that another brings too.
    #[error("KV move {index} to w{worker}: tokens {start}..{end} enter the node twice")]
    EntersTwice {
        /// Position in the plan's list.
        index: usize,
        /// Receiver in the plan.
        worker: u32,
        /// First token concerned.
        start: u32,
        /// One past the last.
        end: u32,
    },
    /// A forward whose sender is no relay of its tokens in the receiver's node.
    #[error("forward {index} from w{src} to w{dst}: tokens {start}..{end} {why}")]
    Forward {
        /// Position in the plan's list.
        index: usize,
        /// Sender in the plan.
        src: u32,
        /// Receiver in the plan.
        dst: u32,
        /// First token.
        start: u32,
        /// One past the last.
        end: u32,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A list is not in its one legal order, so equal plans could have unequal bytes.
    #[error("{list} {index} and {} are out of order", index + 1)]
    Order {
        /// Tiles, moves of Q, KV or O, or forwards.
        list: &'static str,
        /// Position of the first of the two.
        index: usize,
    },
}

/// Every rule that `plan` breaks; empty for a right plan.
#[must_use]
pub fn check(plan: &PoolPlan) -> Vec<Violation> {
    let mut found = Vec::new();
    check_shape(plan, &mut found);
    if found.is_empty() {
        heads::check(plan, &mut found);
        tiles::check(plan, &mut found);
        moves::check(plan, &mut found);
        keys::check(plan, &mut found);
        hops::check(plan, &mut found);
    }
    found
}

/// Sizes match and every id points to something; the other checks index freely after this.
fn check_shape(plan: &PoolPlan, found: &mut Vec<Violation>) {
    let mut equal = |what, there: usize, expected: usize| {
        if there != expected {
            let (there, expected) = (there as u64, expected as u64);
            found.push(Violation::Shape {
                what,
                found: there,
                expected,
            });
        }
    };
    let layout = &plan.layout;
    equal(
        "sequences",
        plan.lengths.sequences(),
        layout.slots() as usize,
    );
    equal(
        "tokens a sequence",
        plan.lengths.seq_tokens() as usize,
        layout.seq_tokens() as usize,
    );
    equal("workers of tiles", plan.workers.len(), plan.tiles.len());
    equal(
        "query head chunks",
        plan.q_chunks.len(),
        plan.heads.q_heads() as usize,
    );
    equal(
        "KV head chunks",
        plan.kv_chunks.len(),
        plan.heads.kv_heads() as usize,
    );
    equal(
        "H modulo tensor ranks",
        (plan.heads.shards() % layout.tensor()) as usize,
        0,
    );
    equal(
        "h_kv modulo tensor ranks",
        (plan.heads.kv_heads() % layout.tensor()) as usize,
        0,
    );

    let continued = (0..plan.lengths.samples())
        .filter(|&sample| plan.lengths.parent(SampleId::new(sample)).is_some())
        .count();
    if plan.mask != Mask::Causal {
        equal(
            "samples with parents, under another mask than causal",
            continued,
            0,
        );
    }

    let mut below = |what, value: u32, limit: usize| {
        if value as usize >= limit {
            found.push(Violation::Shape {
                what,
                found: value.into(),
                expected: limit as u64,
            });
        }
    };
    let workers = layout.workers() as usize;
    for (tile, worker) in plan.tiles.iter().zip(&plan.workers) {
        below("slot of a tile, below", tile.slot, layout.slots() as usize);
        below(
            "shard of a tile, below",
            tile.shard,
            plan.heads.shards() as usize,
        );
        below(
            "start of a tile, below its end",
            tile.start,
            tile.end as usize,
        );
        below(
            "end of a tile, below",
            tile.end,
            layout.seq_tokens() as usize + 1,
        );
        below("worker of a tile, below", worker.0, workers);
    }
    for m in plan.exchange.q.iter().chain(&plan.exchange.o) {
        below("tile of a move, below", m.tile.0, plan.tiles.len());
    }
    for m in plan.exchange.kv.iter().chain(&plan.exchange.forward) {
        below(
            "sample of a move, below",
            m.sample.0,
            plan.lengths.samples(),
        );
        below(
            "KV span of a move, below",
            m.span,
            plan.heads.span_count() as usize,
        );
        below("destination of a move, below", m.dst.0, workers);
        below("start of a move, below its end", m.start, m.end as usize);
    }
}

/// Worker of the slot at which `token` lives for `tensor` rank, by scanning its fragments.
fn home_of(plan: &PoolPlan, slot: u32, token: u32, tensor: u32) -> Option<u32> {
    let layout = &plan.layout;
    let holds = |f: &&crate::layout::Fragment| f.start <= token && token < f.end;
    let rank = layout.fragments(slot).iter().find(holds)?.rank;
    Some((slot * layout.ranks() + rank) * layout.tensor() + tensor)
}

/// Samples above `sample`: its parent, and so on.
fn above(plan: &PoolPlan, sample: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = SampleId::new(sample);
    while let Some(parent) = plan.lengths.parent(at) {
        found.push(parent.index());
        at = parent;
    }
    found
}

/// Query heads `first..end` of `shard`, by division.
fn q_heads_of(plan: &PoolPlan, shard: u32) -> (u32, u32) {
    let width = plan.heads.q_heads() / plan.heads.shards();
    (shard * width, (shard + 1) * width)
}

/// KV heads `first..end` that `shard` reads: those of its first to its last query head.
fn kv_heads_of(plan: &PoolPlan, shard: u32) -> (u32, u32) {
    let readers = plan.heads.q_heads() / plan.heads.kv_heads();
    let (first, end) = q_heads_of(plan, shard);
    (first / readers, (end - 1) / readers + 1)
}
