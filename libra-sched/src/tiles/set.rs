//! Tiles that are known to belong to a pool.

use std::ops::{Deref, Range};

use super::{ShTile, check_pool};
use crate::error::{Error, check_limit};
use crate::heads::HeadSplit;
use crate::ids::SampleId;
use crate::layout::TokenLayout;
use crate::lengths::{MAX_COUNT, PackedLengths, check_total};

/// Tiles of one pool, each checked to lie within it: tile id = position.
///
/// Reads as a slice of [`ShTile`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileSet {
    pub(super) tiles: Vec<ShTile>,
    /// What the tiles were checked against.
    pub(super) pool: PackedLengths,
    pub(super) workers: u32,
    pub(super) shards: u32,
    /// First tile of each run of tiles that differ in shard and home alone, and the tile count.
    pub(super) runs: Vec<u32>,
    /// Whether runs follow each other without overlap and name each shard once, rising.
    pub(super) disjoint: bool,
    pub(super) work_total: u64,
}

impl TileSet {
    /// Tiles that something other than [`cut`](super::cut) made, in any order.
    ///
    /// # Errors
    /// A tile beyond its slot, shards, workers or samples, or work that adds up beyond 64 bits.
    pub fn new(
        pool: &PackedLengths,
        layout: &TokenLayout,
        heads: &HeadSplit,
        tiles: Vec<ShTile>,
    ) -> Result<Self, Error> {
        Self::new_with(Vec::new(), pool, layout, heads, tiles)
    }

    /// As [`TileSet::new`], in the memory of `runs`, which [`TileSet::into_parts`] gives back.
    pub(crate) fn new_with(
        runs: Vec<u32>,
        pool: &PackedLengths,
        layout: &TokenLayout,
        heads: &HeadSplit,
        tiles: Vec<ShTile>,
    ) -> Result<Self, Error> {
        check_pool(pool, layout)?;
        check_limit("number of tiles", tiles.len() as u128, MAX_COUNT.into())?;
        let mut set = Self {
            pool: pool.clone(),
            workers: layout.workers(),
            shards: heads.shards(),
            runs,
            disjoint: true,
            work_total: 0,
            tiles,
        };
        let mut total = 0u128;
        for tile in &set.tiles {
            check_tile(pool, layout, heads, tile)?;
            total += u128::from(tile.work);
        }
        set.find_runs();
        set.work_total = check_total("work of the pool", total)?;
        Ok(set)
    }

    /// Finds the runs of the tiles as they are.
    pub(super) fn find_runs(&mut self) {
        self.runs.clear();
        self.disjoint = true;
        let mut last: Option<&ShTile> = None;
        for (id, tile) in (0..).zip(&self.tiles) {
            if let Some(last) = last.filter(|last| tile.same_task(last)) {
                self.disjoint &= last.shard < tile.shard;
            } else {
                self.disjoint &= last.is_none_or(|l| (l.slot, l.end) <= (tile.slot, tile.start));
                self.runs.push(id);
            }
            last = Some(tile);
        }
        self.runs.push(self.tiles.len() as u32);
    }

    /// No placement of these tiles on the set's workers has a heaviest one below this: the largest of
    /// the mean, the heaviest tile, and the W-th and (W+1)-th heaviest together (two of W+1 share a
    /// worker). O(tiles·log tiles).
    #[must_use]
    pub fn bound(&self) -> u64 {
        bound(&self.tiles, self.workers as usize)
    }

    /// Exchanges the work of every tile with `work`, for placing by another weight: the same call
    /// again restores both.
    ///
    /// # Errors
    /// Not one number a tile, or a sum beyond 64 bits; nothing is exchanged then.
    pub fn swap_work(&mut self, work: &mut [u64]) -> Result<(), Error> {
        if work.len() != self.tiles.len() {
            return Err(Error::Mismatch {
                name: "number of tiles",
                left: work.len() as u64,
                left_of: "the weights",
                right: self.tiles.len() as u64,
                right_of: "the tile set",
            });
        }
        let total = work.iter().map(|&work| u128::from(work)).sum();
        self.work_total = check_total("weight of the pool", total)?;
        for (tile, work) in self.tiles.iter_mut().zip(work) {
            std::mem::swap(&mut tile.work, work);
        }
        self.find_runs();
        Ok(())
    }

    /// Work of all tiles.
    #[must_use]
    pub const fn work_total(&self) -> u64 {
        self.work_total
    }

    /// The tiles, unchecked from here on.
    #[must_use]
    pub fn into_vec(self) -> Vec<ShTile> {
        self.tiles
    }

    /// The tiles, the lengths of their pool, and the memory of the runs.
    pub(crate) fn into_parts(self) -> (Vec<ShTile>, PackedLengths, Vec<u32>) {
        (self.tiles, self.pool, self.runs)
    }

    /// The tiles must be those of this pool, layout and split.
    ///
    /// # Errors
    /// Naming what differs.
    pub(crate) fn check_belongs(
        &self,
        pool: &PackedLengths,
        layout: &TokenLayout,
        heads: &HeadSplit,
    ) -> Result<(), Error> {
        let differs = |name, left, right| {
            let (left_of, right_of) = ("the tile set", "the pool");
            Err(Error::Mismatch {
                name,
                left,
                left_of,
                right,
                right_of,
            })
        };
        if self.workers != layout.workers() {
            return differs(
                "number of workers",
                self.workers.into(),
                layout.workers().into(),
            );
        }
        self.check_shards(heads)?;
        if self.pool.samples() != pool.samples() {
            let (own, other) = (self.pool.samples() as u64, pool.samples() as u64);
            return differs("number of samples", own, other);
        }
        if self.pool == *pool {
            return Ok(());
        }
        let first_unlike = |own: &[u32], other: &[u32]| {
            own.iter()
                .zip(other)
                .find(|(a, b)| a != b)
                .map(|(&a, &b)| (a, b))
        };
        let lengths = first_unlike(self.pool.lengths(), pool.lengths());
        let firsts = first_unlike(self.pool.first(), pool.first());
        let seq_tokens = (self.pool.seq_tokens(), pool.seq_tokens());
        let (name, (own, other)) = match (lengths, firsts) {
            (Some(pair), _) => ("length of a sample", pair),
            (None, Some(pair)) => ("first sample of a slot", pair),
            (None, None) if seq_tokens.0 != seq_tokens.1 => ("seq_tokens", seq_tokens),
            (None, None) => {
                // The number of samples stands for no parent.
                let parent = |pool: &PackedLengths, sample: usize| {
                    let parent = pool.parent(SampleId::new(sample));
                    parent.map_or(pool.samples() as u32, |parent| parent.0)
                };
                let pairs = (0..pool.samples()).map(|s| (parent(&self.pool, s), parent(pool, s)));
                let pair = pairs.into_iter().find(|(own, other)| own != other);
                let pair = pair.expect("pools that differ in nothing else differ in a parent");
                ("parent of a sample", pair)
            }
        };
        differs(name, own.into(), other.into())
    }

    /// The tiles must be cut into as many shards as `heads` says.
    pub(super) fn check_shards(&self, heads: &HeadSplit) -> Result<(), Error> {
        if self.shards == heads.shards() {
            return Ok(());
        }
        Err(Error::Mismatch {
            name: "H",
            left: self.shards.into(),
            left_of: "the tile set",
            right: heads.shards().into(),
            right_of: "the pool",
        })
    }

    /// Runs of tiles over the same tokens with the same work, as id ranges in order.
    pub(crate) fn runs(&self) -> impl ExactSizeIterator<Item = Range<u32>> {
        self.runs.windows(2).map(|ends| ends[0]..ends[1])
    }

    /// Whether an inner sample has one run, and one tile of it unless shards share KV heads.
    pub(crate) const fn is_disjoint(&self) -> bool {
        self.disjoint
    }
}

/// As [`TileSet::bound`], of any tiles whose work fits 64 bits together.
pub(crate) fn bound(tiles: &[ShTile], workers: usize) -> u64 {
    let mut work: Vec<u64> = tiles.iter().map(|tile| tile.work).collect();
    work.sort_unstable_by(|a, b| b.cmp(a));
    let mean = work.iter().sum::<u64>().div_ceil(workers as u64);
    let heaviest = work.first().copied().unwrap_or(0);
    let pair = if work.len() > workers {
        work[workers - 1] + work[workers]
    } else {
        0
    };
    mean.max(heaviest).max(pair)
}

impl Deref for TileSet {
    type Target = [ShTile];

    fn deref(&self) -> &[ShTile] {
        &self.tiles
    }
}

/// The tile must lie within the pool: slot, shard, home, tokens and samples.
fn check_tile(
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    tile: &ShTile,
) -> Result<(), Error> {
    let out_of = |name, value, count| Err(Error::OutOfRange { name, value, count });
    if tile.slot as usize >= pool.sequences() {
        return out_of("slot", tile.slot.into(), pool.sequences() as u64);
    }
    if tile.shard >= heads.shards() {
        return out_of("shard", tile.shard.into(), heads.shards().into());
    }
    if tile.q_home.0 >= layout.workers() {
        let (home, workers) = (tile.q_home.0.into(), layout.workers().into());
        return out_of("q_home worker", home, workers);
    }
    if tile.start > tile.end || tile.end > pool.seq_tokens() {
        let count = u64::from(pool.seq_tokens()) + 1;
        return out_of("end of tokens", tile.end.into(), count);
    }
    let (own, met) = (pool.samples_of(tile.slot as usize), tile.samples());
    if met.start < own.start {
        return Err(Error::Mismatch {
            name: "first sample",
            left: met.start as u64,
            left_of: "the tile",
            right: own.start as u64,
            right_of: "its slot",
        });
    }
    if met.end > own.end {
        return out_of("end of samples", met.end as u64, own.end as u64 + 1);
    }
    Ok(())
}
