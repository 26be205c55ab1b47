//! What has to move for a placement: Q and O of tiles away from home, KV once per destination.
//!
//! In: tiles and their workers. Out: three sorted lists of moves. O(groups read + moves).
//!
//! *Paper*: §4.4 (deduplicated tile exchange).

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, check_limit};
use crate::heads::HeadSplit;
use crate::ids::{SampleId, TileId, WorkerId};
use crate::layout::{Fragment, TokenLayout};
use crate::lengths::{MAX_COUNT, PackedLengths};
use crate::mask::Mask;
use crate::tiles::{ShTile, TileSet};

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
    /// Sender: home of these tokens in this span.
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
    /// The keys that some tile there reads under the mask, from the first to the last of them: for
    /// causal attention the sample's prefix up to the last query.
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

/// Everything that moves forward; backward reverses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangePlan {
    /// Q dispatches, by tile.
    pub q: Vec<TileMove>,
    /// KV fetches, by (destination, sample, span, token).
    pub kv: Vec<KvMove>,
    /// O returns, by tile.
    pub o: Vec<TileMove>,
}

/// Derives the moves for tiles placed on `workers` (one a tile).
///
/// Q and O move exactly when a tile is away from home. Each destination receives, once, what
/// `fetch` says of every group its tiles read under `mask`, less what it holds as a home.
///
/// # Errors
/// Not one worker a tile, a worker or a sample that does not exist, or too many moves.
pub fn derive(
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    tiles: &TileSet,
    workers: &[WorkerId],
    mask: Mask,
    fetch: KvFetch,
) -> Result<ExchangePlan, Error> {
    check(pool, layout, heads, tiles, workers)?;
    let mut plan = ExchangePlan::default();
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
    let mut fetcher = Fetcher {
        pool,
        layout,
        heads,
        fetched_by: vec![0; pool.samples() * heads.span_count() as usize],
        read: Vec::new(),
        spans: Vec::new(),
        moves: Vec::new(),
    };
    let (by_worker, first) = group_by_worker(workers, layout.workers());
    for dst in 0..layout.workers() {
        let own = &by_worker[first[dst as usize] as usize..first[dst as usize + 1] as usize];
        let begin = fetcher.moves.len();
        fetcher.fetch(WorkerId(dst), tiles, own);
        if fetch == KvFetch::Range {
            fetcher.trim(begin, tiles, own, mask);
        }
        check_limit(
            "number of KV moves",
            fetcher.moves.len() as u128,
            MAX_COUNT.into(),
        )?;
    }
    plan.kv = fetcher.moves;
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
fn group_by_worker(workers: &[WorkerId], count: u32) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32; count as usize + 1];
    for worker in workers {
        first[worker.index() + 1] += 1;
    }
    for worker in 0..count as usize {
        first[worker + 1] += first[worker];
    }
    let mut next = first.clone();
    let mut tiles = vec![0u32; workers.len()];
    for (tile, worker) in (0..).zip(workers) {
        tiles[next[worker.index()] as usize] = tile;
        next[worker.index()] += 1;
    }
    (tiles, first)
}

struct Fetcher<'a> {
    pool: &'a PackedLengths,
    layout: &'a TokenLayout,
    heads: &'a HeadSplit,
    /// 1 + the last destination that fetched each (sample, span); destinations come one by one.
    fetched_by: Vec<u32>,
    /// Keys that the destination at hand reads of each (sample, span), as tokens of the sequence.
    read: Vec<(u32, u32)>,
    /// Spans that the block at hand reads, and their home for tokens of the block's fragment.
    spans: Vec<(u32, WorkerId)>,
    moves: Vec<KvMove>,
}

impl Fetcher<'_> {
    /// All groups that the tiles `own` of `dst` read.
    fn fetch(&mut self, dst: WorkerId, tiles: &[ShTile], own: &[u32]) {
        let begin = self.moves.len();
        let mut at = 0;
        while at < own.len() {
            let tile = &tiles[own[at] as usize];
            let run = own[at..]
                .iter()
                .take_while(|&&id| tiles[id as usize].same_block(tile))
                .count();
            self.fetch_block(dst, tiles, &own[at..at + run]);
            at += run;
        }
        // Samples rise from block to block; only a sample across two blocks can come out of order.
        let moves = &mut self.moves[begin..];
        if !moves.is_sorted() {
            moves.sort_unstable();
        }
    }

    /// All groups that the tiles `own`, of one block, read.
    fn fetch_block(&mut self, dst: WorkerId, tiles: &[ShTile], own: &[u32]) {
        let tile = &tiles[own[0] as usize];
        let fragments = self.layout.fragments(tile.slot);
        let near = fragments.partition_point(|f| f.end <= tile.start);
        let Some(&fragment) = fragments.get(near) else {
            return;
        };
        self.spans.clear();
        for &id in own {
            for span in self.heads.spans_of_shard(tiles[id as usize].shard) {
                self.spans
                    .push((span, self.home(tile.slot, &fragment, span)));
            }
        }
        let samples = tile.samples();
        if samples.len() > 2 && self.spans.iter().all(|&(_, src)| src == dst) {
            // Only a sample that leaves the fragment has tokens elsewhere.
            for sample in [samples.start, samples.end - 1] {
                self.fetch_samples(dst, tile.slot, sample..sample + 1, &fragment);
            }
        } else {
            self.fetch_samples(dst, tile.slot, samples, &fragment);
        }
    }

    /// The groups of `samples` in the spans at hand; `near` is the fragment of the block.
    fn fetch_samples(&mut self, dst: WorkerId, slot: u32, samples: Range<usize>, near: &Fragment) {
        let span_count = self.heads.span_count() as usize;
        let starts = &self.pool.starts()[samples.clone()];
        let lengths = &self.pool.lengths()[samples.clone()];
        for (sample, (&start, &len)) in samples.zip(starts.iter().zip(lengths)) {
            let end = start + len;
            let inside = near.start <= start && end <= near.end;
            for at in 0..self.spans.len() {
                let (span, src) = self.spans[at];
                if inside && src == dst {
                    continue;
                }
                let stamp = &mut self.fetched_by[sample * span_count + span as usize];
                if *stamp == dst.0 + 1 {
                    continue;
                }
                *stamp = dst.0 + 1;
                let sample = SampleId(sample as u32);
                if inside {
                    self.moves.push(KvMove {
                        dst,
                        sample,
                        span,
                        start,
                        end,
                        src,
                    });
                } else {
                    self.fetch_fragments(dst, slot, sample, span);
                }
            }
        }
    }

    /// Cuts the moves from `begin` on, all to one destination, to the keys that its tiles `own` read.
    fn trim(&mut self, begin: usize, tiles: &[ShTile], own: &[u32], mask: Mask) {
        let spans = self.heads.span_count() as usize;
        self.read.clear();
        self.read.resize(self.fetched_by.len(), (u32::MAX, 0));
        for &id in own {
            let tile = &tiles[id as usize];
            for sample in tile.samples() {
                let tokens = self.pool.tokens(SampleId::new(sample));
                let queries = tile.start.max(tokens.start) - tokens.start
                    ..tile.end.min(tokens.end) - tokens.start;
                let keys = mask.keys(tokens.end - tokens.start, queries);
                for span in self.heads.spans_of_shard(tile.shard) {
                    let read = &mut self.read[sample * spans + span as usize];
                    read.0 = read.0.min(tokens.start + keys.start);
                    read.1 = read.1.max(tokens.start + keys.end);
                }
            }
        }
        let mut kept = begin;
        for at in begin..self.moves.len() {
            let mut kv = self.moves[at];
            let (start, end) = self.read[kv.sample.index() * spans + kv.span as usize];
            kv.start = kv.start.max(start);
            kv.end = kv.end.min(end);
            if kv.start < kv.end {
                self.moves[kept] = kv;
                kept += 1;
            }
        }
        self.moves.truncate(kept);
    }

    /// One group from every fragment that holds a part of it.
    fn fetch_fragments(&mut self, dst: WorkerId, slot: u32, sample: SampleId, span: u32) {
        let tokens = self.pool.tokens(sample);
        let fragments = self.layout.fragments(slot);
        let first = fragments.partition_point(|f| f.end <= tokens.start);
        for fragment in fragments[first..]
            .iter()
            .take_while(|f| f.start < tokens.end)
        {
            let src = self.home(slot, fragment, span);
            if src != dst {
                let start = tokens.start.max(fragment.start);
                let end = tokens.end.min(fragment.end);
                self.moves.push(KvMove {
                    dst,
                    sample,
                    span,
                    start,
                    end,
                    src,
                });
            }
        }
    }

    /// Worker that holds the KV heads of `span` for the tokens of `fragment`.
    fn home(&self, slot: u32, fragment: &Fragment, span: u32) -> WorkerId {
        let tensor = self
            .layout
            .tensor_of_kv(self.heads, self.heads.kv_of_span(span).start);
        self.layout.worker(slot, fragment.rank, tensor)
    }
}
