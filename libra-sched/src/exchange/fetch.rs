//! KV that each destination fetches: once a group, from its homes, less what it holds.

use std::ops::Range;

use super::KvMove;
use crate::heads::HeadSplit;
use crate::ids::{SampleId, WorkerId};
use crate::layout::{Fragment, TokenLayout};
use crate::lengths::PackedLengths;
use crate::mask::Mask;
use crate::tiles::ShTile;

/// Fetches for one destination after another.
pub(super) struct Fetcher<'a> {
    pool: &'a PackedLengths,
    layout: &'a TokenLayout,
    heads: &'a HeadSplit,
    /// 1 + the last destination that fetched each (sample, span); destinations come one by one.
    fetched_by: Vec<u32>,
    /// What the destination at hand reads of the groups it fetches, rising and disjoint: group (sample
    /// × spans + span), first token of the sequence, one past the last.
    read: Vec<(u32, u32, u32)>,
    /// Spans that the block at hand reads, and their home for tokens of the block's fragment.
    spans: Vec<(u32, WorkerId)>,
    moves: Vec<KvMove>,
}

impl<'a> Fetcher<'a> {
    pub(super) fn new(
        pool: &'a PackedLengths,
        layout: &'a TokenLayout,
        heads: &'a HeadSplit,
    ) -> Self {
        Self {
            pool,
            layout,
            heads,
            fetched_by: vec![0; pool.samples() * heads.span_count() as usize],
            read: Vec::new(),
            spans: Vec::new(),
            moves: Vec::new(),
        }
    }

    pub(super) fn moves(&self) -> &[KvMove] {
        &self.moves
    }

    pub(super) fn into_moves(self) -> Vec<KvMove> {
        self.moves
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
        for above in self.pool.ancestors_of(tile.samples()) {
            self.fetch_samples(dst, tile.slot, above..above + 1, &fragment);
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
        if begin == self.moves.len() {
            return;
        }
        self.find_read(self.moves[begin].dst, tiles, own, mask);
        let whole = self.moves.split_off(begin);
        let spans = self.heads.span_count();
        // Both lists rise by group and then by token.
        let mut next = 0;
        for kv in whole {
            let group = (kv.sample.0 * spans + kv.span, kv.start);
            while self.read.get(next).is_some_and(|r| (r.0, r.2) <= group) {
                next += 1;
            }
            let of_group = self.read[next..].iter().take_while(|r| r.0 == group.0);
            for &(_, start, end) in of_group.take_while(|r| r.1 < kv.end) {
                self.moves.push(KvMove {
                    start: kv.start.max(start),
                    end: kv.end.min(end),
                    ..kv
                });
            }
        }
    }

    /// What the tiles `own` read of each group that `dst` fetches: the union over the tiles.
    fn find_read(&mut self, dst: WorkerId, tiles: &[ShTile], own: &[u32], mask: Mask) {
        let spans = self.heads.span_count();
        self.read.clear();
        for &id in own {
            let tile = &tiles[id as usize];
            for sample in tile.samples() {
                let tokens = self.pool.tokens(SampleId::new(sample));
                let queries = tile.start.max(tokens.start) - tokens.start
                    ..tile.end.min(tokens.end) - tokens.start;
                let keys = mask.keys(tokens.end - tokens.start, queries);
                for span in self.heads.spans_of_shard(tile.shard) {
                    let group = sample as u32 * spans + span;
                    if self.fetched_by[group as usize] == dst.0 + 1 {
                        let in_sequence = |keys: Range<u32>| {
                            (group, tokens.start + keys.start, tokens.start + keys.end)
                        };
                        self.read.extend(keys.iter().map(in_sequence));
                    }
                }
            }
            for above in self.pool.ancestors_of(tile.samples()) {
                let tokens = self.pool.tokens(SampleId::new(above));
                for span in self.heads.spans_of_shard(tile.shard) {
                    let group = above as u32 * spans + span;
                    self.read.push((group, tokens.start, tokens.end));
                }
            }
        }
        self.read.sort_unstable();
        self.read.dedup_by(|next, last| {
            let joins = next.0 == last.0 && next.1 <= last.2;
            if joins {
                last.2 = last.2.max(next.2);
            }
            joins
        });
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
