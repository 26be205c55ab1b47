//! Compute steps: which own queries meet which keys that are there.

use libra_sched::KeyRanges;

use super::{Block, Located, Place, Steps, Worker, of_samples};
use crate::program::{Entry, KeyPiece, KvView};

/// Entries of all compute steps of a worker, and what they point into.
#[derive(Default)]
pub(super) struct Blocks {
    pub(super) entries: Vec<Entry>,
    /// Where those of each step end.
    pub(super) ends: Vec<u32>,
    pub(super) pieces: Vec<KeyPiece>,
    pub(super) kv_views: Vec<KvView>,
}

/// Keys that are there: a piece, its first row, and whether it is staged.
type There = (Located, bool);

impl Steps {
    pub(super) fn blocks(&self, worker: &Worker, first_rows: &[u32]) -> Blocks {
        let mut blocks = Blocks::default();
        let mut is_begun = vec![false; worker.held.len()];
        for block in &worker.blocks {
            let keys = self.there(worker, block, first_rows);
            let queries = of_samples(&worker.held, &block.samples);
            let first = worker
                .held
                .partition_point(|l| l.piece.sample.index() < block.samples.start);
            self.add_block(&mut blocks, queries, &keys, &mut is_begun[first..]);
            blocks.ends.push(blocks.entries.len() as u32);
        }
        blocks
    }

    /// The keys of `block`, by (sample, token).
    fn there(&self, worker: &Worker, block: &Block, first_rows: &[u32]) -> Vec<There> {
        let of_place = |&place: &Place| {
            let (first, is_staged) = match place {
                Place::Own => (0, false),
                Place::Arrived(exchange) => {
                    (first_rows[self.buffers[exchange as usize] as usize], true)
                }
            };
            let located = of_samples(worker.at(place), &block.samples).iter();
            located.map(move |&Located { piece, row }| {
                let row = first + row;
                (Located { piece, row }, is_staged)
            })
        };
        let mut keys: Vec<There> = block.places.iter().flat_map(of_place).collect();
        keys.sort_unstable();
        keys
    }

    /// An entry for each piece of queries that reads some of the keys, which it has for itself in every step: its rows are
    /// those of no other.
    fn add_block(
        &self,
        blocks: &mut Blocks,
        queries: &[Located],
        keys: &[There],
        is_begun: &mut [bool],
    ) {
        let mut views = vec![None; keys.len()];
        let mut first = 0;
        for (query, is_begun) in queries.iter().zip(is_begun) {
            let sample = query.piece.sample;
            first += (keys[first..].iter())
                .take_while(|(key, _)| key.piece.sample < sample)
                .count();
            let len = self.lengths.length(sample);
            let read = self.mask.keys(len, query.piece.start..query.piece.end);
            let pieces = blocks.pieces.len();
            for (at, (key, is_staged)) in keys.iter().enumerate().skip(first) {
                let piece = key.piece;
                if piece.sample != sample {
                    break;
                }
                if read.within(piece.start, piece.end) == KeyRanges::EMPTY {
                    continue;
                }
                let kv_view = *views[at].get_or_insert_with(|| {
                    let view = blocks.kv_views.len() as u32;
                    blocks
                        .kv_views
                        .extend((0..self.heads.kv_heads()).map(|head| KvView {
                            staged: *is_staged,
                            first: piece.start,
                            row: key.row,
                            head,
                        }));
                    view
                });
                blocks.pieces.push(KeyPiece {
                    start: piece.start,
                    end: piece.end,
                    kv_view,
                });
            }
            if blocks.pieces.len() == pieces {
                continue;
            }
            blocks.entries.push(Entry {
                shard: 0,
                staged: false,
                row: query.row,
                rows: query.piece.len(),
                position: query.piece.start,
                len,
                keys: read,
                pieces: pieces as u32,
                piece_count: (blocks.pieces.len() - pieces) as u32,
                continues: std::mem::replace(is_begun, true),
                above: 0,
                above_count: 0,
            });
        }
    }
}
