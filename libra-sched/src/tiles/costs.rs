//! Measured times of attention, and what they say a tile takes.
//!
//! A table holds the time of one attention entry: `n` queries over the `n` keys of a sample, in `h`
//! query heads. Pairs alone predict time badly for short samples: a kernel computes whole blocks of
//! queries, so a piece of few queries leaves most of a block empty, and fewer heads leave fewer
//! blocks to fill the device with. More keys only lengthen a loop that is running already. So a
//! piece is charged its pairs at the *rate* (time of a pair in one head) that the table shows for as
//! many queries and heads, whatever keys it reads; the pieces of a tile, one a sample, add up.
//! Between rows and columns rates are interpolated, beyond them the nearest holds.
//!
//! Floats end in the constructor: rates are integers, so equal tables weigh equally everywhere.

use super::{TileSet, pairs_in};
use crate::error::{Error, check_limit, check_positive};
use crate::heads::HeadSplit;
use crate::lengths::{MAX_SEQ_TOKENS, PackedLengths, check_total};
use crate::mask::Mask;

/// Ticks of a nanosecond: a tick is a picosecond, so a weight of 64 bits holds 213 days.
pub const TICKS_PER_NS: u64 = 1000;
/// Rates count ticks in parts of 2^32.
const RATE_BITS: u32 = 32;
/// Rates stay below 2^63, so that one times any work fits 128 bits.
const RATE_LIMIT: f64 = (1u64 << 63) as f64;

/// Times of attention by queries and heads, as rates.
///
/// ```
/// use libra_sched::{CostTable, Mask};
/// // 2 queries take 60 ns in one head and 90 ns in two; 4 queries 100 and 180.
/// let table = CostTable::new(Mask::Causal, &[2, 4], &[1, 2], &[vec![60.0, 90.0], vec![100.0, 180.0]])?;
/// assert_eq!(table.ticks(2, 1, 3), 60_000); // Two queries have three pairs: as measured.
/// assert_eq!(table.ticks(2, 1, 5), 100_000); // Two queries over more keys: by the pair.
/// assert_eq!(table.ticks(3, 1, 6), 90_000); // Between 20 and 10 ns a pair.
/// assert_eq!(table.ticks(9, 8, 45), 3_240_000); // Beyond the table: 9 ns a pair and head.
/// # Ok::<(), libra_sched::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostTable {
    lengths: Vec<u32>,
    heads: Vec<u32>,
    /// 2^-32 ticks of a pair in one head, row by row.
    rates: Vec<u64>,
}

impl CostTable {
    /// `times_ns[i][j]`: nanoseconds of a sample of `lengths[i]` tokens in `heads[j]` query heads,
    /// measured under `mask`.
    ///
    /// # Errors
    /// No length or no head count, one that does not rise, rows or columns that are missing, a time
    /// that is not finite and positive or that makes a rate beyond what 64 bits hold, a length at
    /// which `mask` reads no key.
    pub fn new(
        mask: Mask,
        lengths: &[u32],
        heads: &[u32],
        times_ns: &[Vec<f64>],
    ) -> Result<Self, Error> {
        check_positive("number of lengths", lengths.len() as u64)?;
        check_positive("number of head counts", heads.len() as u64)?;
        check_axis("lengths", lengths)?;
        check_axis("heads", heads)?;
        check_count("time_ns", times_ns.len(), "lengths", lengths.len())?;
        let mut rates = Vec::with_capacity(lengths.len() * heads.len());
        for (row, (times, &length)) in times_ns.iter().zip(lengths).enumerate() {
            check_count("a row of time_ns", times.len(), "heads", heads.len())?;
            for (column, (&time, &heads)) in times.iter().zip(heads).enumerate() {
                let pairs = mask.cum_pairs(length, length);
                if pairs == 0 {
                    return Err(Error::BadMeasurement {
                        what: format!("lengths[{row}]"),
                        value: length.to_string(),
                        legal: format!("a length at which {mask} reads a key"),
                    });
                }
                let pairs = pairs as f64 * f64::from(heads);
                // Multiplication and division alone: the same bits on every machine.
                let scale = (TICKS_PER_NS << RATE_BITS) as f64;
                let rate = time * scale / pairs;
                if !(time > 0.0 && (1.0..RATE_LIMIT).contains(&rate)) {
                    return Err(Error::BadMeasurement {
                        what: format!("time_ns[{row}][{column}]"),
                        value: format!("{time:?}"),
                        legal: format!(
                            "a time from {:.0e} to {:.0e} ns for so many queries and heads",
                            pairs / scale,
                            RATE_LIMIT / scale * pairs,
                        ),
                    });
                }
                rates.push(rate as u64);
            }
        }
        Ok(Self {
            lengths: lengths.to_vec(),
            heads: heads.to_vec(),
            rates,
        })
    }

    /// Ticks of `pairs` query–key pairs of `queries` queries in each of `heads` heads.
    #[must_use]
    pub fn ticks(&self, queries: u32, heads: u32, pairs: u64) -> u128 {
        let work = u128::from(pairs) * u128::from(heads);
        work.saturating_mul(self.rate(queries, heads).into()) >> RATE_BITS
    }

    /// Whether every piece takes the same time a pair: time is work then.
    pub(crate) fn is_flat(&self) -> bool {
        self.rates.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// 2^-32 ticks of a pair in one head, between the four nearest entries.
    pub(crate) fn rate(&self, queries: u32, heads: u32) -> u64 {
        let (row, [above, below]) = between(&self.lengths, queries);
        let (column, [left, right]) = between(&self.heads, heads);
        let at = |row: usize, column: usize| {
            // A weight of 0 stands for an entry that may not exist.
            let (row, column) = (
                row.min(self.lengths.len() - 1),
                column.min(self.heads.len() - 1),
            );
            u128::from(self.rates[row * self.heads.len() + column])
        };
        let of_row = |row| at(row, column) * left + at(row, column + 1) * right;
        let sum = of_row(row) * above + of_row(row + 1) * below;
        // A mean of rates is one of them at most.
        (sum / ((above + below) * (left + right))) as u64
    }
}

/// Ticks of a sample's tokens among `tokens` of its sequence in one shard, in parts of 2^32: what a
/// tile is charged for the sample.
pub(crate) fn scaled_ticks(
    costs: &CostTable,
    pool: &PackedLengths,
    heads: &HeadSplit,
    mask: Mask,
    sample: usize,
    tokens: (u32, u32),
) -> u128 {
    let Some((pairs, queries)) = pairs_in(pool, mask, sample, tokens) else {
        return 0;
    };
    // 60 bits of pairs, 17 of heads; a rate too high for them saturates.
    let work = u128::from(pairs) * u128::from(heads.shard_width());
    work.saturating_mul(costs.rate(queries, heads.chunk_width()).into())
}

/// What a tile takes for its samples' [`scaled_ticks`]: 0 for none, else at least 1.
pub(crate) fn unscaled_ticks(scaled: u128) -> u64 {
    let ticks = (scaled >> RATE_BITS).max(u128::from(scaled > 0));
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// Ticks of `work` at a rate, rounded down.
pub(crate) fn ticks_at(rate: u64, work: u128) -> u128 {
    work.saturating_mul(rate.into()) >> RATE_BITS
}

/// The last entry that `value` is not below, and how much it and the next one weigh.
fn between(axis: &[u32], value: u32) -> (usize, [u128; 2]) {
    let next = axis.partition_point(|&entry| entry <= value);
    if next == 0 || next == axis.len() {
        return (next.saturating_sub(1), [1, 0]);
    }
    let (low, high) = (axis[next - 1], axis[next]);
    (next - 1, [(high - value).into(), (value - low).into()])
}

fn check_axis(name: &'static str, axis: &[u32]) -> Result<(), Error> {
    let mut last = 0;
    for (index, &value) in axis.iter().enumerate() {
        check_limit(name, value.into(), MAX_SEQ_TOKENS.into())?;
        if value <= last {
            return Err(Error::BadMeasurement {
                what: format!("{name}[{index}]"),
                value: value.to_string(),
                legal: format!("above {last}: {name} rise"),
            });
        }
        last = value;
    }
    Ok(())
}

fn check_count(
    name: &'static str,
    count: usize,
    of: &'static str,
    expected: usize,
) -> Result<(), Error> {
    if count == expected {
        return Ok(());
    }
    Err(Error::BadMeasurement {
        what: format!("the number of entries in {name}"),
        value: count.to_string(),
        legal: format!("{expected}, one for each of {of}"),
    })
}

/// The measured weight of every tile in ticks: 0 where it reads no key, else at least 1. O(tiles +
/// samples met).
///
/// A tile is computed in M chunks of h_q/(H·M) heads: rates are those of so many heads.
///
/// # Errors
/// Tiles of another split, parents of samples under another mask than causal, or weights that add up beyond 64 bits.
///
/// ```
/// use libra_sched::{CostTable, HeadSplit, LayoutKind, Mask, PackedLengths, TokenLayout, tiles};
/// let pool = PackedLengths::new(8, [vec![4u64, 2, 2]])?;
/// let layout = TokenLayout::new(LayoutKind::Contiguous, 1, 8, 1)?;
/// let heads = HeadSplit::new(1, 1, 4, 4, 1, 1)?;
/// let tiles = tiles::cut(&pool, &layout, &heads, Mask::Causal, 4)?;
/// let table = CostTable::new(Mask::Causal, &[2, 4], &[1], &[vec![60.0], vec![100.0]])?;
/// // Ten pairs at 10 ns, and twice three pairs at 20 ns: less work takes more time.
/// assert_eq!([tiles[0].work, tiles[1].work], [10, 6]);
/// assert_eq!(tiles::reweigh(&tiles, &heads, Mask::Causal, &table)?, [100_000, 120_000]);
/// # Ok::<(), libra_sched::Error>(())
/// ```
pub fn reweigh(
    tiles: &TileSet,
    heads: &HeadSplit,
    mask: Mask,
    costs: &CostTable,
) -> Result<Vec<u64>, Error> {
    let mut weights = Vec::new();
    reweigh_with(&mut weights, tiles, heads, mask, costs)?;
    Ok(weights)
}

/// As [`reweigh`], into memory that is used again.
pub(crate) fn reweigh_with(
    weights: &mut Vec<u64>,
    tiles: &TileSet,
    heads: &HeadSplit,
    mask: Mask,
    costs: &CostTable,
) -> Result<(), Error> {
    tiles.check_shards(heads)?;
    tiles.pool.check_mask(mask)?;
    let mut total = 0u128;
    weights.clear();
    for run in tiles.runs() {
        let tile = &tiles[run.start as usize];
        let mut scaled = 0u128;
        for sample in tile.samples() {
            let tokens = (tile.start, tile.end);
            // A rate too high for 128 bits is an error below.
            let ticks = scaled_ticks(costs, &tiles.pool, heads, mask, sample, tokens);
            scaled = scaled.saturating_add(ticks);
        }
        let ticks = (scaled >> RATE_BITS).max(u128::from(scaled > 0));
        total += ticks * run.len() as u128;
        let weight = check_total("time of a tile", ticks)?;
        weights.extend(run.map(|_| weight));
    }
    check_total("time of the pool", total)?;
    Ok(())
}
