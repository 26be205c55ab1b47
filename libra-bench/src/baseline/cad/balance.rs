//! The greedy: who takes which part of which item.

use libra_sched::{HeadSplit, Mask, PackedLengths, SampleId, WorkerId};

use super::items::Item;

/// Tokens of a head or a tail that is split off are a multiple of this.
pub(super) const GRAIN_TOKENS: u32 = 128;
/// A worker is full when it lacks less than the mean's 1/10.
pub(super) const TOLERANCE: u64 = 10;

/// Moves items and parts of them from workers above the mean to those below it.
pub(super) fn balance(
    items: &mut Vec<Item>,
    lengths: &PackedLengths,
    mask: Mask,
    heads: &HeadSplit,
    workers: u32,
) {
    let work: Vec<u64> = items.iter().map(|item| item.pairs(lengths, mask)).collect();
    let mut loads = vec![0u64; workers as usize];
    for (item, &work) in items.iter().zip(&work) {
        loads[item.worker.index()] += work;
    }
    let mean = loads.iter().sum::<u64>() / u64::from(workers);
    let mut balance = Balance {
        lengths,
        mask,
        heads,
        items,
        work,
        loads,
        mean,
    };
    let limit = mean + mean / TOLERANCE;
    balance.pass(&Pass {
        above: mean,
        up_to: mean,
        tolerance: mean / TOLERANCE,
        is_nearest: true,
    });
    balance.pass(&Pass {
        above: limit,
        up_to: limit,
        tolerance: 0,
        is_nearest: false,
    });
}

/// Items, and the work of each and of every worker.
struct Balance<'a> {
    lengths: &'a PackedLengths,
    mask: Mask,
    heads: &'a HeadSplit,
    items: &'a mut Vec<Item>,
    work: Vec<u64>,
    loads: Vec<u64>,
    mean: u64,
}

/// Who gives to whom.
struct Pass {
    /// Givers have more, and keep the mean.
    above: u64,
    /// Receivers end with about so much.
    up_to: u64,
    /// They stop when they lack no more.
    tolerance: u64,
    /// Whether parts are rounded to the nearest grain, or down.
    is_nearest: bool,
}

impl Balance<'_> {
    /// Every worker that lacks more than the tolerance takes what it can, the emptiest first.
    fn pass(&mut self, pass: &Pass) {
        let is_below = |&worker: &usize| self.loads[worker] < pass.up_to;
        let mut order: Vec<usize> = (0..self.loads.len()).filter(is_below).collect();
        order.sort_by_key(|&worker| (self.loads[worker], worker));
        for receiver in order {
            while self.loads[receiver] + pass.tolerance < pass.up_to {
                let Some((at, part)) = self.cheapest(pass, pass.up_to - self.loads[receiver])
                else {
                    break;
                };
                self.take(at, part, receiver);
            }
        }
    }

    /// The item that costs the fewest bytes for a unit of the work it can give, and the part of it; the first of equals.
    fn cheapest(&self, pass: &Pass, missing: u64) -> Option<(usize, Option<u32>)> {
        let may_give = |(at, item): (usize, &Item)| {
            let load = self.loads[item.worker.index()];
            let surplus = if load > pass.above {
                load - self.mean
            } else {
                0
            };
            let amount = self.work[at].min(surplus).min(missing);
            let len = u64::from(self.lengths.length(SampleId::new(item.sample)));
            let part = part_of(item, self.work[at], amount, len, pass.is_nearest)?;
            Some((priority(self.heads, len + 1, amount), at, part))
        };
        let candidates = self.items.iter().enumerate().filter_map(may_give);
        let best = candidates.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        best.map(|(_, at, part)| (at, part))
    }

    /// `receiver` computes item `at`, or `part` tokens of its head and of its tail.
    fn take(&mut self, at: usize, part: Option<u32>, receiver: usize) {
        let giver = self.items[at].worker.index();
        let worker = WorkerId(receiver as u32);
        let moved = match part {
            None => {
                self.items[at].worker = worker;
                self.work[at]
            }
            Some(tokens) => {
                let mut inside = self.items[at].split(tokens);
                inside.worker = worker;
                let moved = inside.pairs(self.lengths, self.mask);
                self.items.push(inside);
                self.work.push(moved);
                self.work[at] -= moved;
                moved
            }
        };
        self.loads[giver] -= moved;
        self.loads[receiver] += moved;
    }
}

/// What to take of an item for `amount` of its work: all of it, or so many tokens of head and tail, in whole grains;
/// nothing where that is none.
fn part_of(item: &Item, work: u64, amount: u64, len: u64, is_nearest: bool) -> Option<Option<u32>> {
    if amount == 0 {
        return None;
    }
    if amount == work {
        return Some(None);
    }
    let inside = (item.head.end - item.head.start).min(item.tail.end - item.tail.start);
    let grain = u64::from(GRAIN_TOKENS);
    // Rounded down, every receiver would lack half a grain, and the few that give would keep it all.
    let more = if is_nearest { grain / 2 } else { 0 };
    let whole = (amount / (len + 1) + more) / grain * grain;
    let tokens = whole.min(u64::from(inside) / grain * grain) as u32;
    (tokens > 0).then_some(Some(tokens))
}

/// Elements that move for each pair: the queries of `amount` pairs, `reach` pairs a query, and all keys. Additions,
/// multiplications and divisions of doubles are the same everywhere.
fn priority(heads: &HeadSplit, reach: u64, amount: u64) -> f64 {
    let (reach, amount) = (reach as f64, amount as f64);
    let queries = amount / reach * f64::from(heads.q_heads() * heads.dim_qk());
    let width = f64::from(heads.kv_heads()) * f64::from(heads.dim_qk() + heads.dim_v());
    (queries + reach * width) / amount
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_costs_its_queries_and_all_keys_and_is_split_from_the_inside() {
        let heads = HeadSplit::new(4, 2, 8, 8, 1, 1).expect("legal");
        // 2^20 pairs: 1024 queries of 32 elements and 1024 keys of 32, or half the queries and twice the keys.
        assert_eq!(priority(&heads, 1024, 1 << 20), 65536.0 / 1048576.0);
        assert_eq!(
            priority(&heads, 2048, 1 << 20),
            (16384.0 + 65536.0) / 1048576.0
        );
        let mut item = Item {
            sample: 0,
            slot: 0,
            head: 0..1000,
            tail: 1000..2000,
            home: WorkerId(0),
            worker: WorkerId(0),
        };
        let work = 2000 * 2001 / 2;
        assert_eq!(part_of(&item, work, work, 2000, true), Some(None));
        assert_eq!(
            part_of(&item, work, 300 * 2001, 2000, true),
            Some(Some(256))
        );
        assert_eq!(
            part_of(&item, work, 320 * 2001, 2000, true),
            Some(Some(384))
        );
        assert_eq!(part_of(&item, work, 63 * 2001, 2000, true), None);
        assert_eq!(
            part_of(&item, work, 320 * 2001, 2000, false),
            Some(Some(256))
        );
        // 1000 tokens are seven grains.
        assert_eq!(
            part_of(&item, work, 999 * 2001, 2000, true),
            Some(Some(896))
        );
        let inside = item.split(256);
        assert_eq!((inside.head, inside.tail), (744..1000, 1000..1256));
        assert_eq!((item.head, item.tail), (0..744, 1256..2000));
    }
}
