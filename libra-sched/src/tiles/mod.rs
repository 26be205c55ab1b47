//! Cuts a pool's attention into SH-Tiles: token blocks × head shards.
//!
//! In: lengths, layout, heads, mask, block size. Out: tiles with their work and their home.
//! Blocks are cut at multiples of B tokens of the packed sequence and where a fragment ends, never
//! at sample boundaries; a block of only padding is no tile. O(tokens/B + fragments + samples).
//!
//! *Paper*: §4.3.1, eq. 6 (SH-Tile), eq. 7 (KV groups), eq. 8 (work).
//!
//! ```
//! use libra_sched::{HeadSplit, LayoutKind, Mask, PackedLengths, TokenLayout, tiles};
//! let pool = PackedLengths::new(12, [vec![8u64, 4], vec![3, 3, 3]])?;
//! let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 12, 2)?;
//! let heads = HeadSplit::new(2, 2, 4, 4, 2, 1)?;
//! let tiles = tiles::cut(&pool, &layout, &heads, Mask::Causal, 6)?;
//! // Two blocks a sequence, two shards a block; the last block of the second sequence is short.
//! assert_eq!(tiles.len(), 8);
//! assert_eq!(tiles[0].work, 21);
//! assert_eq!(tiles[6].start..tiles[6].end, 6..9);
//! # Ok::<(), libra_sched::Error>(())
//! ```

mod adapt;
mod costs;
mod set;

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, check_limit, check_positive};
use crate::heads::HeadSplit;
use crate::ids::{SampleId, WorkerId};
use crate::layout::TokenLayout;
use crate::lengths::{MAX_COUNT, PackedLengths, check_total};
use crate::mask::Mask;

pub(crate) use adapt::part_of;
pub use adapt::{Tiling, merge, split};
pub use costs::{CostTable, TICKS_PER_NS, reweigh};
pub(crate) use costs::{reweigh_with, scaled_ticks, ticks_at, unscaled_ticks};
pub use set::TileSet;
pub(crate) use set::bound;

/// The smallest independently placed task: a token range of one sequence in one head shard (eq. 6).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct ShTile {
    /// Slot of the pool.
    pub slot: u32,
    /// First token within the sequence.
    pub start: u32,
    /// One past the last token.
    pub end: u32,
    /// Head shard.
    pub shard: u32,
    /// Worker that holds Q and takes O: q(t).
    pub q_home: WorkerId,
    /// First sample that the tokens meet.
    pub first_sample: SampleId,
    /// Number of samples met: K(t) is these and their ancestors × the shard's KV spans (eq. 7).
    pub samples: u32,
    /// Zero.
    pub reserved: u32,
    /// Query–key pairs × query heads of the shard (eq. 8).
    pub work: u64,
}

impl ShTile {
    /// Tokens of the tile within its sequence.
    #[must_use]
    pub const fn tokens(&self) -> Range<u32> {
        self.start..self.end
    }

    /// Number of tokens.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.end - self.start
    }

    /// Whether the tile has no token; `cut` makes none such.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.end <= self.start
    }

    /// Samples that the tile meets, as indices over the pool.
    #[must_use]
    pub const fn samples(&self) -> Range<usize> {
        let first = self.first_sample.index();
        first..first + self.samples as usize
    }

    /// Whether `other` differs in shard and home alone.
    #[must_use]
    pub(crate) fn same_task(&self, other: &Self) -> bool {
        self.same_block(other)
            && self.work == other.work
            && (self.first_sample, self.samples) == (other.first_sample, other.samples)
    }

    /// Whether `other` covers the same tokens in another shard.
    #[must_use]
    pub const fn same_block(&self, other: &Self) -> bool {
        self.slot == other.slot && self.start == other.start && self.end == other.end
    }
}

/// Every block of the pool in every shard, in (slot, block, shard) order.
///
/// # Errors
/// A zero or huge block, parents of samples under another mask than causal, lengths that do not match
/// the layout, heads that do not fit its tensor ranks, work beyond 64 bits.
pub fn cut(
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    mask: Mask,
    block_tokens: u32,
) -> Result<TileSet, Error> {
    let memory = (Vec::new(), Vec::new());
    cut_with(memory, pool, layout, heads, mask, block_tokens)
}

/// As [`cut`], in the memory of tiles and runs, which [`TileSet::into_parts`] gives back.
pub(crate) fn cut_with(
    (mut tiles, mut runs): (Vec<ShTile>, Vec<u32>),
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    mask: Mask,
    block_tokens: u32,
) -> Result<TileSet, Error> {
    check_positive("block tokens", block_tokens.into())?;
    pool.check_mask(mask)?;
    check_pool(pool, layout)?;
    layout.check_heads(heads)?;
    let estimate = estimate(pool, layout, heads, block_tokens)?;
    tiles.clear();
    tiles.reserve_exact(estimate);
    runs.clear();
    runs.reserve(estimate / heads.shards() as usize + 1);
    let mut set = TileSet {
        pool: pool.clone(),
        workers: layout.workers(),
        shards: heads.shards(),
        tiles,
        runs,
        disjoint: true,
        work_total: 0,
    };
    let mut total = 0u128;
    for slot in 0..layout.slots() {
        // Φ is asked twice a sample: the usual mask without a choice each time.
        total += match mask {
            Mask::Causal => {
                let pairs = |len, x| Mask::Causal.cum_pairs(len, x);
                cut_slot(pool, layout, heads, pairs, block_tokens, slot, &mut set)
            }
            mask => {
                let pairs = |len, x| mask.cum_pairs(len, x);
                cut_slot(pool, layout, heads, pairs, block_tokens, slot, &mut set)
            }
        };
    }
    set.runs.push(set.tiles.len() as u32);
    // Pairs of one block stay below 2^60 and heads below 2^16, so a tile may not fit although
    // its pool's sum is computed without loss.
    set.work_total = check_total("work of the pool", total)?;
    Ok(set)
}

/// Blocks of one slot, every shard of each; returns the slot's work. `cum_pairs` is the mask's Φ.
fn cut_slot(
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    cum_pairs: impl Fn(u32, u32) -> u64,
    block_tokens: u32,
    slot: u32,
    set: &mut TileSet,
) -> u128 {
    let (starts, lengths) = (pool.starts(), pool.lengths());
    let samples = pool.samples_of(slot as usize);
    let used = pool.tokens_of(slot as usize);
    let width = u64::from(heads.shard_width());
    let mut total = 0u128;
    let mut first = samples.start;
    let shards_per_rank = heads.shards() / layout.tensor();
    for fragment in layout.fragments(slot) {
        let first_home = layout.worker(slot, fragment.rank, 0);
        let mut start = fragment.start;
        while start < fragment.end.min(used) {
            let grid = (start / block_tokens + 1).saturating_mul(block_tokens);
            let end = grid.min(fragment.end).min(used);
            while starts[first] + lengths[first] <= start {
                first += 1;
            }
            let mut pairs = 0u64;
            let mut last = first;
            for (&sample_start, &len) in starts[first..samples.end].iter().zip(&lengths[first..]) {
                if sample_start >= end {
                    break;
                }
                // A part that is cut off counts as Φ of the cut, a whole sample as one Φ.
                pairs += cum_pairs(len, len.min(end - sample_start));
                if sample_start < start {
                    pairs -= cum_pairs(len, start - sample_start);
                }
                last += 1;
            }
            if pool.has_parents() {
                pairs += pairs_above(pool, first..last, start..end);
            }
            total += u128::from(pairs) * u128::from(heads.q_heads());
            let work = pairs.saturating_mul(width);
            set.runs.push(set.tiles.len() as u32);
            for shard in 0..heads.shards() {
                set.tiles.push(ShTile {
                    slot,
                    start,
                    end,
                    shard,
                    // Shards are spread evenly over tensor ranks, in order.
                    q_home: WorkerId(first_home.0 + shard / shards_per_rank),
                    first_sample: SampleId(first as u32),
                    samples: (last - first) as u32,
                    reserved: 0,
                    work,
                });
            }
            start = end;
        }
    }
    total
}

/// Pairs of the tokens `start..end` of the sequence that lie in `sample`, with its keys and those of
/// its ancestors, and how many such tokens there are; `None` for none.
fn pairs_in(
    pool: &PackedLengths,
    mask: Mask,
    sample: usize,
    (start, end): (u32, u32),
) -> Option<(u64, u32)> {
    let tokens = pool.tokens(SampleId(sample as u32));
    let (first, last) = (start.max(tokens.start), end.min(tokens.end));
    let queries = first.checked_sub(tokens.start)?..last.checked_sub(tokens.start)?;
    let above = || u64::from(pool.above(sample)) * u64::from(last - first);
    let pairs = || above() + mask.pairs(tokens.end - tokens.start, queries);
    (first < last).then(|| (pairs(), last - first))
}

/// Pairs of the queries `tokens`, which meet `samples`, with keys of these samples' ancestors.
fn pairs_above(pool: &PackedLengths, samples: Range<usize>, tokens: Range<u32>) -> u64 {
    let of_sample = |sample: usize| {
        let own = pool.tokens(SampleId::new(sample));
        let queries = own.end.min(tokens.end) - own.start.max(tokens.start);
        u64::from(pool.above(sample)) * u64::from(queries)
    };
    samples.map(of_sample).sum()
}

/// The lengths must be those of the layout's pool.
pub(crate) fn check_pool(pool: &PackedLengths, layout: &TokenLayout) -> Result<(), Error> {
    if pool.sequences() != layout.slots() as usize {
        let (found, expected) = (pool.sequences(), layout.slots() as usize);
        return Err(Error::SequenceCount {
            found,
            expected,
            why: "slots of the layout",
        });
    }
    if pool.seq_tokens() != layout.seq_tokens() {
        return Err(Error::Mismatch {
            name: "seq_tokens",
            left: pool.seq_tokens().into(),
            left_of: "lengths",
            right: layout.seq_tokens().into(),
            right_of: "layout",
        });
    }
    Ok(())
}

/// Upper bound on the number of tiles, checked against [`MAX_COUNT`] before anything is allocated.
fn estimate(
    pool: &PackedLengths,
    layout: &TokenLayout,
    heads: &HeadSplit,
    block_tokens: u32,
) -> Result<usize, Error> {
    let blocks = u128::from(pool.seq_tokens().div_ceil(block_tokens)) * u128::from(layout.slots())
        + layout.all_fragments().len() as u128;
    let tiles = blocks * u128::from(heads.shards());
    check_limit("number of tiles", tiles, MAX_COUNT.into())?;
    Ok(tiles as usize)
}
