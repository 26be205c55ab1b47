//! KV that each destination fetches: once a group, from its homes, less what it holds.

use std::ops::Range;

use super::KvMove;
use crate::heads::HeadSplit;
use crate::ids::{SampleId, WorkerId};
use crate::layout::{Fragment, TokenLayout};
use crate::lengths::PackedLengths;
use crate::mask::Mask;
use crate::tiles::ShTile;

/// A range without a token.
const NOTHING: (u32, u32) = (u32::MAX, 0);

/// Memory that fetchers reuse.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffers {
    fetched_by: Vec<u32>,
    read: Vec<(u32, u32)>,
    apart: Vec<(usize, u32, u32)>,
    whole: Vec<KvMove>,
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
    /// What the destination at hand reads of each (sample, span) that it fetches, as tokens of the
    /// sequence: one range.
    read: Vec<(u32, u32)>,
    /// Ranges that neither overlap nor touch the one of their group: group, first token, one past the
    /// last.
    apart: Vec<(usize, u32, u32)>,
    /// Moves of the destination at hand, as they were before a cut into several.
    whole: Vec<KvMove>,
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
            mut read,
            apart,
            whole,
            spans,
            mut moves,
        } = buffers;
        fetched_by.clear();
        fetched_by.resize(pool.samples() * heads.span_count() as usize, 0);
        read.clear();
        moves.clear();
        Self {
            pool,
            layout,
            heads,
            fetched_by,
            read,
            apart,
            whole,
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
            read: self.read,
            apart: self.apart,
            whole: self.whole,
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
        self.find_read(begin, tiles, own, mask);
        if !self.apart.is_empty() {
            self.trim_apart(begin);
            return;
        }
        let mut kept = begin;
        for at in begin..self.moves.len() {
            let mut kv = self.moves[at];
            let (start, end) = self.read[self.group(&kv)];
            kv.start = kv.start.max(start);
            kv.end = kv.end.min(end);
            if kv.start < kv.end {
                self.moves[kept] = kv;
                kept += 1;
            }
        }
        self.moves.truncate(kept);
    }

    /// As [`Fetcher::trim`] where some group is read in several ranges.
    fn trim_apart(&mut self, begin: usize) {
        let mut whole = std::mem::take(&mut self.whole);
        whole.clear();
        whole.extend(self.moves.drain(begin..));
        let mut read = std::mem::take(&mut self.apart);
        for kv in &whole {
            let group = self.group(kv);
            let (start, end) = self.read[group];
            read.push((group, start, end));
        }
        read.sort_unstable();
        read.dedup_by(|next, last| {
            let joins = next.0 == last.0 && next.1 <= last.2;
            if joins {
                last.2 = last.2.max(next.2);
            }
            joins
        });
        // Both lists rise by group and then by token.
        let mut next = 0;
        for &kv in &whole {
            let group = self.group(&kv);
            while read
                .get(next)
                .is_some_and(|r| (r.0, r.2) <= (group, kv.start))
            {
                next += 1;
            }
            let of_group = read[next..].iter().take_while(|r| r.0 == group);
            for &(_, start, end) in of_group.take_while(|r| r.1 < kv.end) {
                let (start, end) = (kv.start.max(start), kv.end.min(end));
                if start < end {
                    self.moves.push(KvMove { start, end, ..kv });
                }
            }
        }
        read.clear();
        (self.apart, self.whole) = (read, whole);
    }

    /// What the tiles `own` read of each group that the moves from `begin` on bring.
    fn find_read(&mut self, begin: usize, tiles: &[ShTile], own: &[u32], mask: Mask) {
        let dst = self.moves[begin].dst;
        let spans = self.heads.span_count() as usize;
        self.apart.clear();
        self.read.resize(self.fetched_by.len(), NOTHING);
        for at in begin..self.moves.len() {
            let group = self.group(&self.moves[at]);
            self.read[group] = NOTHING;
        }
        for &id in own {
            let tile = &tiles[id as usize];
            for sample in tile.samples() {
                let groups = sample * spans..(sample + 1) * spans;
                if !self.fetched_by[groups].contains(&(dst.0 + 1)) {
                    continue; // Most samples lie at home.
                }
                let tokens = self.pool.tokens(SampleId::new(sample));
                let queries = tile.start.max(tokens.start) - tokens.start
                    ..tile.end.min(tokens.end) - tokens.start;
                for keys in mask.keys(tokens.end - tokens.start, queries).iter() {
                    let keys = (tokens.start + keys.start, tokens.start + keys.end);
                    self.add_read(dst, tile.shard, sample, keys);
                }
            }
            for above in self.pool.ancestors_of(tile.samples()) {
                let tokens = self.pool.tokens(SampleId::new(above));
                self.add_read(dst, tile.shard, above, (tokens.start, tokens.end));
            }
        }
    }

    /// `keys` of `sample` are read in the spans of `shard`.
    fn add_read(&mut self, dst: WorkerId, shard: u32, sample: usize, keys: (u32, u32)) {
        let spans = self.heads.span_count() as usize;
        for span in self.heads.spans_of_shard(shard) {
            let group = sample * spans + span as usize;
            if self.fetched_by[group] != dst.0 + 1 {
                continue;
            }
            let read = &mut self.read[group];
            if *read == NOTHING {
                *read = keys;
            } else if keys.0 <= read.1 && read.0 <= keys.1 {
                *read = (read.0.min(keys.0), read.1.max(keys.1));
            } else {
                self.apart.push((group, keys.0, keys.1));
            }
        }
    }

    /// Place of a move's group among all: sample × spans + span.
    fn group(&self, kv: &KvMove) -> usize {
        kv.sample.index() * self.heads.span_count() as usize + kv.span as usize
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
