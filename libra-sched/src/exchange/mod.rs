//! What has to move for a placement: Q and O of tiles away from home, KV once per destination.
//!
//! In: tiles and their workers. Out: sorted lists of moves. O(groups read + moves); [`route`] then
//! decides whether KV comes from its home or through another worker of the destination's node.
//!
//! *Paper*: §4.4 (deduplicated tile exchange).

mod fetch;
mod relay;

use std::fmt;
use std::str::FromStr;

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, check_limit};
use crate::heads::HeadSplit;
use crate::ids::{SampleId, TileId, WorkerId};
use crate::layout::TokenLayout;
use crate::lengths::{MAX_COUNT, PackedLengths};
use crate::mask::Mask;
use crate::tiles::TileSet;
use crate::topology::Topology;

pub use relay::route;

/// Q of a tile from its home to its worker, or O back: all rows and heads of the tile.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
pub struct TileMove {
    /// The tile.
    pub tile: TileId,
    /// Sender.
    pub src: WorkerId,
    /// Receiver.
    pub dst: WorkerId,
}

/// K and V of consecutive tokens of one sample in one KV span.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
pub struct KvMove {
    /// Receiver.
    pub dst: WorkerId,
    /// Sample of the KV group.
    pub sample: SampleId,
    /// KV span of the group.
    pub span: u32,
    /// First token within the sequence.
    pub start: u32,
    /// One past the last token.
    pub end: u32,
    /// Sender: home of these tokens in this span, or the relay that forwards them.
    pub src: WorkerId,
}

impl KvMove {
    /// Number of tokens.
    #[must_use]
    pub const fn tokens(&self) -> u32 {
        self.end - self.start
    }
}

/// How much of a KV group a destination receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum KvFetch {
    /// The whole sample, as the paper does.
    #[default]
    Whole,
    /// Exactly the keys that some tile there reads under the mask: for causal attention the sample's
    /// prefix up to the last query, for a window with sinks the sinks and what the windows cover.
    Range,
}

impl KvFetch {
    /// Every way, in the order of their wire codes.
    pub const ALL: [Self; 2] = [Self::Whole, Self::Range];
}

impl fmt::Display for KvFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole => "whole",
            Self::Range => "range",
        })
    }
}

impl FromStr for KvFetch {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "whole" => Ok(Self::Whole),
            "range" => Ok(Self::Range),
            _ => Err(Error::UnknownName {
                what: "kv fetch",
                value: text.to_owned(),
                legal: "whole, range",
            }),
        }
    }
}

/// Which way KV takes to a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KvRoute {
    /// From its home, whoever else fetches it.
    #[default]
    Direct,
    /// Once into each node, to a relay that reads it too and forwards it to the node's others. Pods
    /// change nothing, and plans do not record them.
    Node(Topology),
}

impl KvRoute {
    /// The same way, as plans record it.
    pub(crate) const fn without_pods(self) -> Self {
        match self {
            Self::Direct => Self::Direct,
            Self::Node(topology) => Self::Node(topology.without_pods()),
        }
    }
}

impl fmt::Display for KvRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Node(_) => "node",
        })
    }
}

/// Everything that moves forward; backward reverses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangePlan {
    /// Q dispatches, by tile.
    pub q: Vec<TileMove>,
    /// KV fetches, each from its home, by (destination, sample, span, token).
    pub kv: Vec<KvMove>,
    /// KV that a worker has fetched from another node and sends on within its own, in the same
    /// order; empty unless the route leads through nodes.
    pub forward: Vec<KvMove>,
    /// O returns, by tile.
    pub o: Vec<TileMove>,
}

/// Memory that [`derive_with`] reuses.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    fetch: fetch::Buffers,
    relay: relay::Scratch,
    /// Tiles of each worker in id order.
    by_worker: Vec<u32>,
    /// Where each worker's begin.
    first: Vec<u32>,
}

/// Derives the moves for tiles placed on `workers` (one a tile).
///
/// Q and O move exactly when a tile is away from home. Each destination receives, once, what
/// `fetch` says of every group its tiles read under `mask`, less what it holds as a home; all of it
/// from its home, until [`route`] says otherwise.
///
/// # Errors
/// Not one worker a tile, a worker or a sample that does not exist, parents of samples under another
/// mask than causal, or too many moves.
pub fn derive(
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    tiles: &TileSet,
    workers: &[WorkerId],
    mask: Mask,
    fetch: KvFetch,
) -> Result<ExchangePlan, Error> {
    let scratch = &mut Scratch::default();
    derive_with(scratch, pool, layout, heads, tiles, workers, mask, fetch)
}

/// As [`derive()`], reusing `scratch`; the moves do not depend on what it held.
///
/// # Errors
/// As [`derive()`].
#[allow(clippy::too_many_arguments)] // Those of `derive`, and the scratch.
pub fn derive_with(
    scratch: &mut Scratch,
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    tiles: &TileSet,
    workers: &[WorkerId],
    mask: Mask,
    fetch: KvFetch,
) -> Result<ExchangePlan, Error> {
    let mut plan = find_moves(scratch, pool, layout, heads, tiles, workers, mask, fetch)?;
    plan.kv = scratch.fetch.moves.clone();
    Ok(plan)
}

/// As [`derive_with`] and then [`route`], without the moves in between.
///
/// # Errors
/// As both.
#[allow(clippy::too_many_arguments)] // Those of `derive_with`, and the route.
pub(crate) fn derive_along(
    scratch: &mut Scratch,
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    tiles: &TileSet,
    workers: &[WorkerId],
    mask: Mask,
    fetch: KvFetch,
    route: KvRoute,
) -> Result<ExchangePlan, Error> {
    let mut plan = find_moves(scratch, pool, layout, heads, tiles, workers, mask, fetch)?;
    let moves = &mut scratch.fetch.moves;
    if let KvRoute::Node(topology) = route {
        relay::route_with(&mut scratch.relay, moves, &plan.q, heads, tiles, topology)?;
        plan.forward = scratch.relay.forward.clone();
    }
    plan.kv = moves.clone();
    Ok(plan)
}

/// Moves of Q and O; those of KV, each from its home, stay in `scratch`.
#[allow(clippy::too_many_arguments)] // Those of `derive_with`.
fn find_moves(
    scratch: &mut Scratch,
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    tiles: &TileSet,
    workers: &[WorkerId],
    mask: Mask,
    fetch: KvFetch,
) -> Result<ExchangePlan, Error> {
    check(pool, layout, heads, tiles, workers)?;
    pool.check_mask(mask)?;
    let mut plan = ExchangePlan::default();
    let placed = tiles.iter().zip(workers);
    let moves = placed
        .filter(|(tile, worker)| **worker != tile.q_home)
        .count();
    plan.q.reserve_exact(moves);
    plan.o.reserve_exact(moves);
    for (tile, (shape, &worker)) in (0..).map(TileId).zip(tiles.iter().zip(workers)) {
        if worker != shape.q_home {
            plan.q.push(TileMove {
                tile,
                src: shape.q_home,
                dst: worker,
            });
            plan.o.push(TileMove {
                tile,
                src: worker,
                dst: shape.q_home,
            });
        }
    }
    let buffers = std::mem::take(&mut scratch.fetch);
    let mut fetcher = fetch::Fetcher::new(buffers, pool, layout, heads);
    let Scratch {
        by_worker, first, ..
    } = scratch;
    group_by_worker(by_worker, first, workers, layout.workers());
    for dst in 0..layout.workers() {
        let own = &by_worker[first[dst as usize] as usize..first[dst as usize + 1] as usize];
        let begin = fetcher.moves().len();
        fetcher.fetch(WorkerId(dst), tiles, own);
        if fetch == KvFetch::Range {
            fetcher.trim(begin, tiles, own, mask);
        }
        check_limit(
            "number of KV moves",
            fetcher.moves().len() as u128,
            MAX_COUNT.into(),
        )?;
    }
    scratch.fetch = fetcher.into_buffers();
    Ok(plan)
}

/// One worker of the pool a tile.
fn check(
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    tiles: &TileSet,
    workers: &[WorkerId],
) -> Result<(), Error> {
    crate::tiles::check_pool(pool, layout)?;
    layout.check_heads(heads)?;
    tiles.check_belongs(pool, layout, heads)?;
    if tiles.len() != workers.len() {
        return Err(Error::Mismatch {
            name: "number of tiles",
            left: tiles.len() as u64,
            left_of: "tiles",
            right: workers.len() as u64,
            right_of: "placement",
        });
    }
    if let Some(bad) = workers.iter().find(|w| w.0 >= layout.workers()) {
        let (value, count) = (bad.0.into(), layout.workers().into());
        return Err(Error::OutOfRange {
            name: "worker",
            value,
            count,
        });
    }
    Ok(())
}

/// Tiles of each worker in id order, and where each worker's begin.
fn group_by_worker(tiles: &mut Vec<u32>, first: &mut Vec<u32>, workers: &[WorkerId], count: u32) {
    // Counts two places on, so that filling moves every begin one place on: to where it belongs.
    first.clear();
    first.resize(count as usize + 2, 0);
    for worker in workers {
        first[worker.index() + 2] += 1;
    }
    for worker in 0..count as usize {
        first[worker + 2] += first[worker + 1];
    }
    tiles.clear();
    tiles.resize(workers.len(), 0);
    for (tile, worker) in (0..).zip(workers) {
        let next = &mut first[worker.index() + 1];
        tiles[*next as usize] = tile;
        *next += 1;
    }
}
