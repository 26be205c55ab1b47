//! Measured costs as they are defined: for every piece of a tile, one a sample, its pairs counted
//! query by query, ancestors' too, at the time of a pair that the table shows around its queries and heads.

#![allow(dead_code, unreachable_pub)]

use libra_sched::{HeadSplit, Mask, PackedLengths, SampleId, ShTile};

/// Mask of the measurement, lengths, heads, and nanoseconds by length and heads.
pub type Table<'a> = (Mask, &'a [u32], &'a [u32], &'a [Vec<f64>]);

/// Nanoseconds of `tile`.
pub fn tile_ns(
    pool: &PackedLengths,
    heads: &HeadSplit,
    mask: Mask,
    tile: &ShTile,
    table: Table<'_>,
) -> f64 {
    let mut time = 0.0;
    for sample in pool.samples_of(tile.slot as usize) {
        let tokens = pool.tokens(SampleId(sample as u32));
        let len = tokens.end - tokens.start;
        let (mut queries, mut pairs) = (0, 0);
        for token in tokens.clone().filter(|token| tile.tokens().contains(token)) {
            queries += 1;
            pairs += mask.keys_of(len, token - tokens.start).len();
            let mut at = SampleId(sample as u32);
            while let Some(parent) = pool.parent(at) {
                pairs += pool.length(parent);
                at = parent;
            }
        }
        let shard_heads = heads.q_heads() / heads.shards();
        let at_once = shard_heads / heads.chunks();
        time += f64::from(pairs) * f64::from(shard_heads) * rate(queries, at_once, table);
    }
    time
}

/// Nanoseconds of a pair in one head.
fn rate(queries: u32, heads: u32, (mask, lengths, columns, times): Table<'_>) -> f64 {
    let entry = |row: usize, column: usize| {
        let len = lengths[row];
        let pairs: u32 = (0..len).map(|query| mask.keys_of(len, query).len()).sum();
        times[row][column] / f64::from(pairs) / f64::from(columns[column])
    };
    let along_heads = |row: usize| line(columns, heads, |column| entry(row, column));
    line(lengths, queries, along_heads)
}

/// The value at `x` on the straight line between the two entries around it, or at the last entry.
fn line(axis: &[u32], x: u32, value: impl Fn(usize) -> f64) -> f64 {
    let last = axis.len() - 1;
    if x <= axis[0] {
        return value(0);
    }
    if x >= axis[last] {
        return value(last);
    }
    let next = (0..=last)
        .find(|&i| axis[i] >= x)
        .expect("x is below the last entry");
    let (low, high) = (f64::from(axis[next - 1]), f64::from(axis[next]));
    let part = (f64::from(x) - low) / (high - low);
    value(next - 1) * (1.0 - part) + value(next) * part
}
