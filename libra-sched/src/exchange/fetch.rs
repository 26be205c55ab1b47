//! KV that each destination fetches: once a group, from its homes, less what it holds.

use std::ops::Range;

use super::KvMove;
use crate::heads::HeadSplit;
use crate::ids::{SampleId, WorkerId};
use crate::layout::{Fragment, TokenLayout};
use crate::lengths::PackedLengths;
use crate::mask::Mask;
use crate::tiles::ShTile;

/// Memory that fetchers reuse.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffers {
    fetched_by: Vec<u32>,
    spans: Vec<(u32, WorkerId)>,
    pub(super) moves: Vec<KvMove>,
}

/// Fetches for one destination after another.
pub(super) struct Fetcher<'a> {
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

impl<'a> Fetcher<'a> {
    /// A fetcher in the memory of `buffers`, which [`Fetcher::into_buffers`] gives back.
    pub(super) fn new(
        buffers: Buffers,
        pool: &'a PackedLengths,
        layout: &'a TokenLayout,
        heads: &'a HeadSplit,
    ) -> Self {
        let Buffers {
            mut fetched_by,
            spans,
            mut moves,
        } = buffers;
        fetched_by.clear();
        fetched_by.resize(pool.samples() * heads.span_count() as usize, 0);
        moves.clear();
        Self {
            pool,
            layout,
            heads,
            fetched_by,
            read: Vec::new(),
            spans,
            moves,
        }
    }

    pub(super) fn moves(&self) -> &[KvMove] {
        &self.moves
    }

    pub(super) fn into_buffers(self) -> Buffers {
        Buffers {
            fetched_by: self.fetched_by,
            spans: self.spans,
            moves: self.moves,
        }
    }
}

impl Fetcher<'_> {
    /// All groups that the tiles `own` of `dst` read.
    pub(super) fn fetch(&mut self, dst: WorkerId, tiles: &[ShTile], own: &[u32]) {
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
    pub(super) fn trim(&mut self, begin: usize, tiles: &[ShTile], own: &[u32], mask: Mask) {
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
