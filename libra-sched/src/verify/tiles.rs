//! Tiles: every token of every shard once, at one home, with the samples and work it has.

use super::moves::check_order;
use super::{Violation, above, home_of, mask};
use crate::ids::SampleId;
use crate::plan::PoolPlan;
use crate::tiles::ShTile;

pub(super) fn check(plan: &PoolPlan, found: &mut Vec<Violation>) {
    check_coverage(plan, found);
    let place = |t: &ShTile| (t.slot, t.start, t.shard);
    let places: Vec<_> = plan.tiles.iter().map(place).collect();
    check_order("tiles", &places, found);
    for tile in 0..plan.tiles.len() {
        check_tile(plan, tile, found);
    }
}

fn check_coverage(plan: &PoolPlan, found: &mut Vec<Violation>) {
    let mut ranges: Vec<(u32, u32, u32, u32)> = plan
        .tiles
        .iter()
        .map(|t| (t.slot, t.shard, t.start, t.end))
        .collect();
    ranges.sort_unstable();
    let mut next = ranges.iter().peekable();
    for slot in 0..plan.layout.slots() {
        let used: u32 = plan.lengths.lengths_of(slot as usize).iter().sum();
        for shard in 0..plan.heads.shards() {
            let mut covered = 0;
            let mut report = |start, end, times| {
                if start < end {
                    found.push(Violation::Coverage {
                        slot,
                        shard,
                        start,
                        end,
                        times,
                    });
                }
            };
            while let Some(&(_, _, start, end)) =
                next.next_if(|&&(s, h, _, _)| (s, h) == (slot, shard))
            {
                report(covered, start.min(used), 0);
                report(start, covered.min(end), 2);
                covered = covered.max(end);
            }
            report(covered, used, 0);
            report(used, covered, 1);
        }
    }
}

fn check_tile(plan: &PoolPlan, index: usize, found: &mut Vec<Violation>) {
    let tile = &plan.tiles[index];
    let mut equal = |what, there: u64, expected: u64| {
        if there != expected {
            found.push(Violation::Tile {
                tile: index,
                what,
                found: there,
                expected,
            });
        }
    };
    // The tensor rank of a shard: shards are spread evenly over tensor ranks in order.
    let tensor = tile.shard * plan.layout.tensor() / plan.heads.shards();
    let home = |token| home_of(plan, tile.slot, token, tensor).map_or(u64::MAX, u64::from);
    equal(
        "home of the first token",
        tile.q_home.0.into(),
        home(tile.start),
    );
    equal(
        "home of the last token",
        tile.q_home.0.into(),
        home(tile.end - 1),
    );

    let met: Vec<usize> = plan
        .lengths
        .samples_of(tile.slot as usize)
        .filter(|&sample| {
            let tokens = plan.lengths.tokens(SampleId::new(sample));
            tokens.start < tile.end && tile.start < tokens.end
        })
        .collect();
    equal(
        "first sample",
        tile.first_sample.0.into(),
        met.first().map_or(0, |&s| s as u64),
    );
    equal("number of samples", tile.samples.into(), met.len() as u64);
    equal("reserved field", tile.reserved.into(), 0);

    let mut pairs = 0u128;
    for sample in met {
        let tokens = plan.lengths.tokens(SampleId::new(sample));
        let first = tile.start.max(tokens.start) - tokens.start;
        let end = tile.end.min(tokens.end) - tokens.start;
        pairs += mask::pairs(plan.mask, tokens.end - tokens.start, (first, end));
        for above in above(plan, sample) {
            let tokens = plan.lengths.length(SampleId::new(above));
            pairs += u128::from(tokens) * u128::from(end - first);
        }
    }
    let work = pairs * u128::from(plan.heads.q_heads() / plan.heads.shards());
    equal("work", tile.work, u64::try_from(work).unwrap_or(u64::MAX));
}
