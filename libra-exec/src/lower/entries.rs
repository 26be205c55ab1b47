//! Attention entries: which queries of which sample a worker computes, and where their keys lie.

use std::collections::BTreeMap;

use libra_sched::{KeyRanges, SampleId};

use super::Lowering;
use crate::program::{Ancestor, Entry, KeyPiece, KvView};

/// Entries and what they point into.
pub(super) struct Entries {
    pub(super) entries: Vec<Entry>,
    pub(super) pieces: Vec<KeyPiece>,
    pub(super) ancestors: Vec<Ancestor>,
    pub(super) kv_views: Vec<KvView>,
}

impl Lowering<'_> {
    pub(super) fn entries(&self) -> Entries {
        let plan = self.plan;
        let mut entries: Vec<(u32, Entry)> = Vec::new();
        let mut pieces = Vec::new();
        let mut ancestors = Vec::new();
        let mut kv_views = Vec::new();
        let mut view_of: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut view = |sample: u32, shard: u32| {
            *view_of.entry((sample, shard)).or_insert_with(|| {
                let first = kv_views.len() as u32;
                kv_views.extend(self.views(sample, shard));
                first
            })
        };
        for &id in &self.tiles {
            let tile = &plan.tiles[id.index()];
            let staged = self.staged_row.get(&id).copied();
            let first_row = staged.unwrap_or_else(|| self.row_of(tile.start));
            for sample in tile.samples() {
                let tokens = plan.lengths.tokens(SampleId::new(sample));
                let (start, end) = (tile.start.max(tokens.start), tile.end.min(tokens.end));
                let len = tokens.end - tokens.start;
                let position = start - tokens.start;
                let row = first_row + start - tile.start;
                let sample = sample as u32;
                // Queries that follow each other in sample and memory are one entry: long entries
                // suit the kernel.
                if let Some((last_sample, last)) = entries.last_mut()
                    && *last_sample == sample
                    && last.shard == tile.shard
                    && last.staged == staged.is_some()
                    && last.row + last.rows == row
                    && last.position + last.rows == position
                {
                    last.rows += end - start;
                    continue;
                }
                let above = ancestors.len() as u32;
                for sample in self.root_first(sample) {
                    ancestors.push(Ancestor {
                        len: plan.lengths.length(sample),
                        kv_view: view(sample.0, tile.shard),
                    });
                }
                let entry = Entry {
                    shard: tile.shard,
                    staged: staged.is_some(),
                    row,
                    rows: end - start,
                    position,
                    len,
                    keys: KeyRanges::EMPTY,
                    pieces: pieces.len() as u32,
                    piece_count: 1,
                    continues: false,
                    above,
                    above_count: ancestors.len() as u32 - above,
                };
                pieces.push(KeyPiece {
                    start: 0,
                    end: len,
                    kv_view: view(sample, tile.shard),
                });
                entries.push((sample, entry));
            }
        }
        let entries = entries
            .into_iter()
            .map(|(_, e)| Entry {
                keys: plan.mask.keys(e.len, e.position..e.position + e.rows),
                ..e
            })
            .collect();
        Entries {
            entries,
            pieces,
            ancestors,
            kv_views,
        }
    }

    /// Ancestors of `sample`, its parent last.
    fn root_first(&self, sample: u32) -> Vec<SampleId> {
        let mut above: Vec<_> = self.plan.lengths.ancestors(SampleId(sample)).collect();
        above.reverse();
        above
    }

    /// One view a KV head that `shard` reads of `sample`.
    fn views(&self, sample: u32, shard: u32) -> Vec<KvView> {
        let heads = &self.plan.heads;
        let (_, first_kv_head) = self.first_heads();
        let mut views = Vec::new();
        for span in heads.spans_of_shard(shard) {
            let group = &self.groups[&(sample, span)];
            for (place, head) in (0..).zip(heads.kv_of_span(span)) {
                let first = group.tokens.start;
                views.push(if group.staged {
                    KvView {
                        staged: true,
                        first,
                        row: group.row_of_head(place),
                        head: 0,
                    }
                } else {
                    KvView {
                        staged: false,
                        first,
                        row: group.row,
                        head: head - first_kv_head,
                    }
                });
            }
        }
        views
    }
}
