//! Tiles that follow the work: heavy ones are split before they are placed, neighbours that stay at
//! home are one tile afterwards.
//!
//! A tile above the target would keep its worker above it whoever places. [`split`] cuts it along
//! its tokens into parts of equal work, at multiples of 128 tokens where every part then stays below
//! the limit, else where the limit is reached; the cumulative pairs of the mask find a cut in
//! O(log B). [`merge`] undoes what placement did not use: tiles of one shard that follow each other
//! in a fragment and stay at home need no edge between them. Neither changes what is computed.
//!
//! Splitting is O(tiles + parts·log B + samples met), merging O(tiles).

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::{ShTile, TileSet, pairs_in};
use crate::error::{Error, check_limit, check_positive};
use crate::heads::HeadSplit;
use crate::ids::{SampleId, WorkerId};
use crate::layout::TokenLayout;
use crate::lengths::{MAX_COUNT, PackedLengths};
use crate::mask::Mask;

/// Edges of parts lie at multiples of so many tokens where they can: blocks of kernels stay whole.
const GRID: u32 = 128;

/// Which tiles a placer gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Tiling {
    /// Blocks of B tokens, as the paper has them.
    #[default]
    Fixed,
    /// Those, but split where they are heavy and merged where they stay at home.
    Adaptive,
}

impl Tiling {
    /// Every way.
    pub const ALL: [Self; 2] = [Self::Fixed, Self::Adaptive];
}

impl fmt::Display for Tiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed => "fixed",
            Self::Adaptive => "adaptive",
        })
    }
}

impl FromStr for Tiling {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "fixed" => Ok(Self::Fixed),
            "adaptive" => Ok(Self::Adaptive),
            _ => Err(Error::UnknownName {
                what: "tiling",
                value: text.to_owned(),
                legal: "fixed, adaptive",
            }),
        }
    }
}

/// The tiles with those above `limit` split until no part is, but for parts of a single token.
///
/// # Errors
/// A limit of 0, tiles of another split, parents of samples under another mask than causal, or too
/// many parts.
///
/// ```
/// use libra_sched::{HeadSplit, LayoutKind, Mask, PackedLengths, TokenLayout, tiles};
/// let pool = PackedLengths::new(8, [vec![8u64]])?;
/// let layout = TokenLayout::new(LayoutKind::Contiguous, 1, 8, 1)?;
/// let heads = HeadSplit::new(1, 1, 4, 4, 1, 1)?;
/// let whole = tiles::cut(&pool, &layout, &heads, Mask::Causal, 8)?;
/// let split = tiles::split(&whole, &heads, Mask::Causal, 15)?;
/// // 36 pairs in three parts at most 15 each; queries read more keys the later they are.
/// let parts: Vec<_> = split.iter().map(|tile| (tile.tokens(), tile.work)).collect();
/// assert_eq!(parts, [(0..5, 15), (5..7, 13), (7..8, 8)]);
/// # Ok::<(), libra_sched::Error>(())
/// ```
pub fn split(tiles: &TileSet, heads: &HeadSplit, mask: Mask, limit: u64) -> Result<TileSet, Error> {
    let mut split = tiles.clone();
    split.split_with(&mut Vec::new(), &mut Vec::new(), heads, mask, limit)?;
    Ok(split)
}

/// The tiles after placement, with those at home on `workers` that follow each other in a fragment
/// of `layout` as one, and the workers of what is left.
///
/// # Errors
/// Not one worker a tile, or tiles of another layout.
pub fn merge(
    tiles: &TileSet,
    layout: &TokenLayout,
    workers: &[WorkerId],
) -> Result<(TileSet, Vec<WorkerId>), Error> {
    let (mut tiles, mut workers) = (tiles.clone(), workers.to_vec());
    tiles.merge_with(&mut Vec::new(), layout, &mut workers)?;
    Ok((tiles, workers))
}

/// The tokens `part` of a tile, in its shard.
pub(crate) fn part_of(
    pool: &PackedLengths,
    heads: &HeadSplit,
    mask: Mask,
    tile: ShTile,
    part: Range<u32>,
) -> ShTile {
    let width = heads.shard_width().into();
    let block = Block {
        pool,
        mask,
        width,
        tile,
    };
    block.part(part.start, part.end)
}

impl TileSet {
    /// As [`split`], in place, with memory for `old` tiles and `edges` that is used again.
    pub(crate) fn split_with(
        &mut self,
        old: &mut Vec<ShTile>,
        edges: &mut Vec<u32>,
        heads: &HeadSplit,
        mask: Mask,
        limit: u64,
    ) -> Result<(), Error> {
        check_positive("limit of a tile's work", limit)?;
        self.check_shards(heads)?;
        self.pool.check_mask(mask)?;
        if self.tiles.iter().all(|tile| tile.work <= limit) {
            return Ok(());
        }
        // Not exchanged: each memory keeps the size that it grew to.
        old.clone_from(&self.tiles);
        self.tiles.clear();
        for ends in self.runs.windows(2) {
            let run = &old[ends[0] as usize..ends[1] as usize];
            let block = Block {
                pool: &self.pool,
                mask,
                width: heads.shard_width().into(),
                tile: run[0],
            };
            if run[0].work <= limit {
                self.tiles.extend(run);
                continue;
            }
            block.find_edges(edges, limit);
            check_limit(
                "number of tiles",
                self.tiles.len() as u128 + (edges.len() * run.len()) as u128,
                MAX_COUNT.into(),
            )?;
            for part in edges.windows(2) {
                let whole = block.part(part[0], part[1]);
                self.tiles.extend(run.iter().map(|tile| ShTile {
                    shard: tile.shard,
                    q_home: tile.q_home,
                    ..whole
                }));
            }
        }
        self.find_runs();
        Ok(())
    }

    /// As [`merge`], in place; `open` is memory that is used again.
    pub(crate) fn merge_with(
        &mut self,
        open: &mut Vec<usize>,
        layout: &TokenLayout,
        workers: &mut Vec<WorkerId>,
    ) -> Result<(), Error> {
        if workers.len() != self.tiles.len() {
            return Err(Error::Mismatch {
                name: "number of tiles",
                left: self.tiles.len() as u64,
                left_of: "tiles",
                right: workers.len() as u64,
                right_of: "placement",
            });
        }
        super::check_pool(&self.pool, layout)?;
        // The last tile that was kept, by shard.
        open.clear();
        open.resize(self.shards as usize, usize::MAX);
        let mut kept = 0;
        for at in 0..self.tiles.len() {
            let (tile, worker) = (self.tiles[at], workers[at]);
            let last = &mut open[tile.shard as usize];
            if let Some(before) = self.tiles[..kept].get_mut(*last) {
                let stays = worker == tile.q_home && workers[*last] == before.q_home;
                let follows = (before.slot, before.end, before.q_home)
                    == (tile.slot, tile.start, tile.q_home);
                if stays && follows && !is_edge(layout, tile.slot, tile.start) {
                    let end = before.samples().end.max(tile.samples().end);
                    before.end = tile.end;
                    before.samples = (end - before.first_sample.index()) as u32;
                    before.work += tile.work;
                    continue;
                }
            }
            *last = kept;
            (self.tiles[kept], workers[kept]) = (tile, worker);
            kept += 1;
        }
        self.tiles.truncate(kept);
        workers.truncate(kept);
        self.find_runs();
        Ok(())
    }
}

/// Whether a fragment of `slot` begins at `token`.
fn is_edge(layout: &TokenLayout, slot: u32, token: u32) -> bool {
    let fragments = layout.fragments(slot);
    fragments
        .binary_search_by_key(&token, |fragment| fragment.start)
        .is_ok()
}

/// A block that is too heavy, in any of its shards.
struct Block<'a> {
    pool: &'a PackedLengths,
    mask: Mask,
    /// Query heads of a shard.
    width: u64,
    tile: ShTile,
}

impl Block<'_> {
    /// Where parts begin, and the end: parts of equal work on the grid if none exceeds `limit`,
    /// else parts that are as long as `limit` lets them be.
    fn find_edges(&self, edges: &mut Vec<u32>, limit: u64) {
        let fewest = self.tile.work.div_ceil(limit);
        // One part more leaves room to be off by half the grid.
        for parts in [fewest, fewest + 1] {
            if parts <= u64::from(self.tile.len() / GRID) && self.even_edges(edges, parts, limit) {
                return;
            }
        }
        edges.clear();
        edges.push(self.tile.start);
        let (mut start, pairs) = (self.tile.start, limit / self.width);
        while start < self.tile.end {
            let end = self.longest(start, pairs).max(start + 1);
            edges.push(end);
            start = end;
        }
    }

    /// `parts` parts of about equal work with edges on the grid; whether all stay within `limit`.
    fn even_edges(&self, edges: &mut Vec<u32>, parts: u64, limit: u64) -> bool {
        let ShTile { start, end, .. } = self.tile;
        let total = u128::from(self.part(start, end).work / self.width);
        edges.clear();
        edges.push(start);
        for part in 1..parts {
            let pairs = total * u128::from(part) / u128::from(parts);
            let exact = self.longest(start, pairs as u64);
            let edge = (exact + GRID / 2) / GRID * GRID;
            if edge > edges[edges.len() - 1] && edge < end {
                edges.push(edge);
            }
        }
        edges.push(end);
        let mut parts = edges.windows(2);
        parts.all(|part| self.part(part[0], part[1]).work <= limit)
    }

    /// The largest end such that the tokens from `start` to it have at most `pairs` pairs.
    fn longest(&self, start: u32, pairs: u64) -> u32 {
        let (mut left, mut at) = (pairs, start);
        for sample in self.tile.samples() {
            let until = |end| pairs_in(self.pool, self.mask, sample, (at, end));
            let Some((all, queries)) = until(self.tile.end) else {
                continue;
            };
            if all <= left {
                left -= all;
                at += queries;
                continue;
            }
            // The first query of this sample that is too much: pairs grow with the end.
            let (mut low, mut high) = (at, at + queries);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if until(middle).is_none_or(|(pairs, _)| pairs <= left) {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            return low;
        }
        at
    }

    /// The tile of these tokens in this shard.
    fn part(&self, start: u32, end: u32) -> ShTile {
        let (mut first, mut samples, mut work) = (self.tile.first_sample, 0, 0u64);
        for sample in self.tile.samples() {
            let tokens = (start, end);
            if let Some((pairs, _)) = pairs_in(self.pool, self.mask, sample, tokens) {
                if samples == 0 {
                    first = SampleId(sample as u32);
                }
                samples += 1;
                work = work.saturating_add(pairs.saturating_mul(self.width));
            }
        }
        ShTile {
            start,
            end,
            first_sample: first,
            samples,
            work,
            ..self.tile
        }
    }
}
