//! The backward exchange, derived from the forward one by turning it around.
//!
//! dO travels where Q went, dQ comes back where O came from, dK and dV return along every KV
//! fetch: what was forwarded is added up at the relay, which sends one sum home. What backward finds at a destination depends on the [`BackwardMode`].
//!
//! *Paper*: §4.5 (backward volume equals forward's: that is [`BackwardMode::Recompute`], where
//! activation checkpointing has just run forward again).

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::exchange::{KvMove, TileMove};
use crate::plan::PoolPlan;

/// What a worker still holds of the tiles it computed when backward begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum BackwardMode {
    /// Forward runs again just before backward and leaves its staging in place.
    Recompute,
    /// Q, K, V, O and log-sum-exp stay at the destination from forward to backward.
    Stash,
    /// Nothing stays: Q, dO, log-sum-exp, δ and KV travel again.
    Refetch,
}

impl BackwardMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Recompute, Self::Stash, Self::Refetch];
}

impl fmt::Display for BackwardMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recompute => "recompute",
            Self::Stash => "stash",
            Self::Refetch => "refetch",
        })
    }
}

impl FromStr for BackwardMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.to_string() == text)
            .ok_or_else(|| Error::UnknownName {
                what: "backward mode",
                value: text.to_owned(),
                legal: "recompute, stash, refetch",
            })
    }
}

/// What moves backward, and what it costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackwardPlan {
    /// What destinations still hold.
    pub mode: BackwardMode,
    /// dO from home to worker, by tile.
    pub d_o: Vec<TileMove>,
    /// Q, log-sum-exp and δ again, by tile; empty unless refetching.
    pub q: Vec<TileMove>,
    /// K and V again, by destination; empty unless refetching.
    pub kv: Vec<KvMove>,
    /// K and V forwarded again; empty unless refetching.
    pub forward: Vec<KvMove>,
    /// dQ from worker to home, by tile.
    pub d_q: Vec<TileMove>,
    /// dK and dV back to the relay that forwarded K and V, by (relay, sample, span, token, sender): a
    /// relay adds its own share first, then the senders' in rising order, and sends the sum home.
    pub gather: Vec<KvMove>,
    /// dK and dV back to where K and V came from, by (home, sample, span, token, sender): a home
    /// adds its own share first, then the senders' in rising order, each with its sum.
    pub d_kv: Vec<KvMove>,
    /// What it costs.
    pub cost: BackwardCost,
}

/// Bytes and memory of a backward pass, one layer of one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackwardCost {
    /// Bytes of dO, and of whatever travels again with it.
    pub dispatched_bytes: u64,
    /// Bytes of dQ, dK and dV.
    pub returned_bytes: u64,
    /// Bytes that this mode adds to forward: log-sum-exp taken home for a later refetch.
    pub forward_extra_bytes: u64,
    /// Bytes of the second forward that must run before.
    pub recomputed_bytes: u64,
    /// Bytes that each worker keeps from forward to backward, beside its own tensors.
    pub stashed_bytes: Vec<u64>,
}

impl BackwardCost {
    /// Bytes that travel between forward's end and backward's end.
    #[must_use]
    pub fn moved_bytes(&self) -> u64 {
        self.dispatched_bytes + self.returned_bytes + self.recomputed_bytes
    }
}

/// Turns the exchange of `plan` around.
#[must_use]
pub fn derive(plan: &PoolPlan, mode: BackwardMode) -> BackwardPlan {
    let forward = &plan.exchange;
    let again = mode == BackwardMode::Refetch;
    let if_again = |moves: &[KvMove]| if again { moves.to_vec() } else { Vec::new() };
    BackwardPlan {
        mode,
        d_o: forward.q.clone(),
        q: if again { forward.q.clone() } else { Vec::new() },
        kv: if_again(&forward.kv),
        forward: if_again(&forward.forward),
        d_q: forward.o.clone(),
        gather: turned(&forward.forward),
        d_kv: turned(&forward.kv),
        cost: cost(plan, mode),
    }
}

/// `moves` the other way, by where they go.
fn turned(moves: &[KvMove]) -> Vec<KvMove> {
    let turn = |m: &KvMove| KvMove {
        dst: m.src,
        src: m.dst,
        ..*m
    };
    let mut turned: Vec<KvMove> = moves.iter().map(turn).collect();
    turned.sort_unstable();
    turned
}

fn cost(plan: &PoolPlan, mode: BackwardMode) -> BackwardCost {
    let forward = &plan.exchange;
    let width = plan.heads.shard_width();
    let statistic = |m: &TileMove| {
        u64::from(plan.tiles[m.tile.index()].len()) * plan.bytes.statistic_token(width)
    };
    let q: u64 = forward.q.iter().map(|m| plan.q_bytes(m.tile.index())).sum();
    let o: u64 = forward.q.iter().map(|m| plan.o_bytes(m.tile.index())).sum();
    let fetched = || forward.kv.iter().chain(&forward.forward);
    let kv: u64 = fetched().map(|m| plan.kv_bytes(m)).sum();
    let statistics: u64 = forward.q.iter().map(statistic).sum();

    let mut cost = BackwardCost {
        dispatched_bytes: o,
        returned_bytes: q + kv,
        stashed_bytes: vec![0; plan.layout.workers() as usize],
        ..BackwardCost::default()
    };
    match mode {
        BackwardMode::Recompute => cost.recomputed_bytes = q + o + kv,
        BackwardMode::Stash => {
            for m in &forward.q {
                let tile = m.tile.index();
                cost.stashed_bytes[m.dst.index()] +=
                    plan.q_bytes(tile) + plan.o_bytes(tile) + statistic(m);
            }
            for m in fetched() {
                cost.stashed_bytes[m.dst.index()] += plan.kv_bytes(m);
            }
        }
        BackwardMode::Refetch => {
            // Log-sum-exp and δ are one statistic each.
            cost.dispatched_bytes += q + kv + 2 * statistics;
            cost.forward_extra_bytes = statistics;
        }
    }
    cost
}
