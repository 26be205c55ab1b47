//! The cheapest way to compute one sample in one KV head, where work has a price at each worker.
//!
//! A worker is **open** up to a key if it has all keys below, so that it can compute the queries
//! there. A query is computed at home, if its home is open so far, or by another open worker, for the
//! bytes of its Q and O. Within a piece every further token is worth more to a worker that does not
//! hold it than the token before: some cheapest set of workers is open up to ends of pieces, and one
//! pass over the pieces from last to first finds it. Its state is the open holder of least price,
//! which only a cheaper one replaces, and whether an outsider is open: one that holds nothing.
//!
//! A holder pays down to the next piece that it holds, and from there on as soon as it is open in
//! that piece. It never pays twice. It pays less than it would have to where it holds several pieces,
//! or was replaced above its own, which does not pay: whoever replaced it could have opened there.
//!
//! O(pieces · holders) for one sample.
//!
//! Source: facility location on a line by dynamic programming (Kolen and Tamir, 1990).

use std::cmp::Reverse;

use super::columns::{Column, SHARE_BITS};

/// Binary digits of a byte's fraction.
pub(super) const FRACTION_BITS: u32 = 32;

/// No price is above this: 4096 bytes for a pair in one query head.
pub(super) const PRICE_MAX: u64 = 1 << (FRACTION_BITS + 12);

/// More than any cost: a piece's is below 2^123.
const UNREACHED: i128 = i128::MAX / 2;

/// What a token costs, in 2^-32 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// Q and O of a token in one query head.
    pub(super) qo: u64,
    /// K and V of a token in one KV head.
    pub(super) kv: u64,
    /// Query heads of a KV head.
    pub(super) group: u64,
    /// KV heads that are placed together, at least.
    pub(super) together: u64,
}

impl Rates {
    /// Query heads that are placed together where all of a KV head's are.
    pub(super) const fn width(&self) -> u64 {
        self.group * self.together
    }

    /// Queries `from..to` where a pair costs `price`.
    fn work(&self, price: u64, from: u32, to: u32) -> i128 {
        i128::from(self.group) * i128::from(price) * i128::from(pairs(from, to))
    }

    /// As [`Rates::work`], away from home.
    fn away(&self, price: u64, from: u32, to: u32) -> i128 {
        let rows = i128::from(self.group) * i128::from(to - from);
        rows * i128::from(self.qo) + self.work(price, from, to)
    }
}

/// Pairs of the queries `from..to` under a causal mask, in one query head.
pub(super) fn pairs(from: u32, to: u32) -> u64 {
    let below = |x: u32| u64::from(x) * (u64::from(x) + 1) / 2;
    below(to) - below(from)
}

/// Workers that hold nothing of the sample, each of them up to `heaviest` work.
///
/// A worker with a part of that work above a key reads the key at least as often as that part says:
/// of each key a share is paid when the first of them opens, the rest by work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outsider {
    /// The least of theirs.
    pub(super) price: u64,
    /// Share that is paid at once.
    pub(super) at_once: u32,
    pub(super) heaviest: u64,
}

/// Memory of [`Readers::cheapest`], and what it found.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers {
    /// Price of each holder.
    pub(super) prices: Vec<u64>,
    /// What a worker is refunded that reads to the end of each piece, 0 before the first. It is no
    /// more than what any worker pays, and rises by no more than a token's K and V with a token.
    pub(super) refunds: Vec<i128>,
    /// Pairs in one query head that each holder computes.
    pub(super) pairs: Vec<u64>,
    /// Pairs in one query head that outsiders compute.
    pub(super) outside_pairs: u64,
    /// By how much more outsiders pay if all is paid at once than if all is paid by work.
    pub(super) at_once_excess: i128,
    /// How many workers read each piece to its end.
    pub(super) reading: Vec<u32>,
    /// Holders from the highest price to the least.
    order: Vec<usize>,
    /// Of each holder, pieces up to and with its next.
    next: Vec<usize>,
    /// Of the states without an outsider, then of those with one: no holder open, or the least of
    /// those that are, in their order.
    costs: Vec<i128>,
    /// Of each piece and state.
    steps: Vec<Step>,
}

/// How a state came about.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// State above the piece.
    from: u32,
    /// First token of the piece that its home does not compute.
    cut: u32,
    /// Who computes the tokens from there: a holder, or [`OUTSIDE`].
    by: u32,
}

const OUTSIDE: u32 = u32::MAX;

impl Readers {
    /// Least cost of `column` in 2^-32 bytes, refunds deducted.
    pub(super) fn cheapest(
        &mut self,
        column: &Column,
        rates: &Rates,
        outsider: Option<Outsider>,
    ) -> i128 {
        self.start(column);
        for piece in (0..column.pieces.len()).rev() {
            self.open_holders(column, rates, piece);
            if let Some(outsider) = outsider {
                self.open_outsider(column, rates, piece, outsider);
            }
            self.compute(column, rates, piece, outsider);
            let held = column.pieces[piece];
            self.next[held.holder as usize] = held.rest as usize;
        }
        let best = (0..self.costs.len()).min_by_key(|&state| self.costs[state]);
        let best = best.expect("that nobody is open is a state");
        self.trace(column, rates, best, outsider);
        self.costs[best]
    }

    fn start(&mut self, column: &Column) {
        let (prices, holders) = (&self.prices, self.prices.len());
        self.order.clear();
        self.order.extend(0..holders);
        self.order
            .sort_unstable_by_key(|&holder| (Reverse(prices[holder]), holder));
        self.next.clear();
        self.next.resize(holders, 0);
        for (held, piece) in column.pieces.iter().zip(1..) {
            self.next[held.holder as usize] = piece;
        }
        self.costs.clear();
        self.costs.resize(2 * (holders + 1), UNREACHED);
        self.costs[0] = 0;
        self.steps.clear();
        let steps = column.pieces.len() * self.costs.len();
        self.steps.resize(steps, Step::default());
    }

    /// States on either side: with an outsider open, and without.
    fn side(&self) -> usize {
        self.order.len() + 1
    }

    /// Open holder of least price.
    fn holder(&self, state: usize) -> Option<usize> {
        let place = (state % self.side()).checked_sub(1)?;
        Some(self.order[place])
    }

    /// What a worker pays that holds nothing and reads the first `pieces` pieces.
    fn reading(&self, column: &Column, rates: &Rates, pieces: usize) -> i128 {
        i128::from(rates.kv) * i128::from(column.end(pieces)) - self.refunds[pieces]
    }

    /// What outsiders pay by work for each pair in one query head, for the first `pieces` pieces.
    fn by_work(&self, column: &Column, rates: &Rates, pieces: usize, heaviest: u64) -> i128 {
        let reading = self.reading(column, rates, pieces) * i128::from(rates.together);
        (reading / i128::from(heaviest)).min(PRICE_MAX.into())
    }

    /// Every holder may open at the end of `piece` and replace one of higher price.
    fn open_holders(&mut self, column: &Column, rates: &Rates, piece: usize) {
        let (side, states) = (self.side(), self.costs.len());
        let here = self.reading(column, rates, piece + 1);
        for none in [0, side] {
            let mut best = (self.costs[none], none);
            self.steps[piece * states + none].from = none as u32;
            for state in none + 1..none + side {
                let holder = self.order[state - none - 1];
                let opened = best.0 + here - self.reading(column, rates, self.next[holder]);
                let old = self.costs[state];
                let from = if opened < old { best.1 } else { state };
                self.steps[piece * states + state].from = from as u32;
                self.costs[state] = opened.min(old);
                best = best.min((old, state));
            }
        }
    }

    /// The first outsider may open at the end of `piece`.
    fn open_outsider(&mut self, column: &Column, rates: &Rates, piece: usize, outsider: Outsider) {
        let (side, states) = (self.side(), self.costs.len());
        let here = self.reading(column, rates, piece + 1);
        let at_once = (here * i128::from(outsider.at_once)) >> SHARE_BITS;
        for state in 0..side {
            let opened = self.costs[state] + at_once;
            if opened < self.costs[side + state] {
                self.costs[side + state] = opened;
                let from = self.steps[piece * states + state].from;
                self.steps[piece * states + side + state].from = from;
            }
        }
    }

    /// The tokens of `piece` are computed, in every state as cheaply as it allows.
    fn compute(
        &mut self,
        column: &Column,
        rates: &Rates,
        piece: usize,
        outsider: Option<Outsider>,
    ) {
        let (side, states) = (self.side(), self.costs.len());
        let outside = outsider.map(|outsider| {
            let later = (1 << SHARE_BITS) - i128::from(outsider.at_once);
            let by_work = self.by_work(column, rates, piece, outsider.heaviest);
            outsider.price + ((by_work * later) >> SHARE_BITS) as u64
        });
        let home = self.home(column, rates, piece);
        for state in 0..states {
            let holder = self.holder(state);
            let least = holder.map(|holder| (self.prices[holder], holder as u32));
            let outside = outside.filter(|_| state >= side);
            let least = match (least, outside) {
                (Some((price, _)), Some(outside)) if price <= outside => least,
                (_, Some(outside)) => Some((outside, OUTSIDE)),
                _ => least,
            };
            let is_home_open = holder == Some(home.holder);
            let (cost, cut, by) = home.least_cost(rates, least, is_home_open);
            self.costs[state] = self.costs[state].saturating_add(cost).min(UNREACHED);
            let step = &mut self.steps[piece * states + state];
            (step.cut, step.by) = (cut, by);
        }
    }

    fn home(&self, column: &Column, rates: &Rates, piece: usize) -> Home {
        let held = column.pieces[piece];
        let rest = held.rest as usize;
        let keys = column.end(piece) - column.end(rest);
        let refund = self.refunds[piece + 1] - self.refunds[rest];
        Home {
            holder: held.holder as usize,
            price: self.prices[held.holder as usize],
            start: column.end(piece),
            end: held.end,
            fetch: i128::from(rates.kv) * i128::from(keys) - refund,
        }
    }

    /// Who computes what on the cheapest way, which ends in the state `best`.
    fn trace(&mut self, column: &Column, rates: &Rates, best: usize, outsider: Option<Outsider>) {
        let (side, states) = (self.side(), self.costs.len());
        self.pairs.clear();
        self.pairs.resize(self.prices.len(), 0);
        self.reading.clear();
        self.reading.resize(column.pieces.len(), 0);
        (self.outside_pairs, self.at_once_excess) = (0, 0);
        let mut state = best;
        for (piece, held) in column.pieces.iter().enumerate() {
            let step = self.steps[piece * states + state];
            let (start, from) = (column.end(piece), step.from as usize);
            self.pairs[held.holder as usize] += pairs(start, step.cut);
            let moved = pairs(step.cut, held.end);
            if step.by != OUTSIDE {
                self.pairs[step.by as usize] += moved;
            } else if let Some(outsider) = outsider {
                self.outside_pairs += moved;
                let by_work = self.by_work(column, rates, piece, outsider.heaviest);
                self.at_once_excess -= by_work * i128::from(rates.group) * i128::from(moved);
            }
            let opens_outsider = state >= side && from < side;
            if opens_outsider {
                self.at_once_excess += self.reading(column, rates, piece + 1);
            }
            let opens_home = step.cut > start && self.holder(state) != Some(held.holder as usize);
            let opens_holder = from % side != state % side;
            for reading in &mut self.reading[..=piece] {
                *reading += u32::from(opens_outsider) + u32::from(opens_home);
                *reading += u32::from(opens_holder);
            }
            state = from;
        }
    }
}

/// The holder of a piece, at its piece.
struct Home {
    holder: usize,
    price: u64,
    start: u32,
    end: u32,
    /// What it pays down to the next piece that it holds, if it is open here.
    fetch: i128,
}

impl Home {
    /// Least cost of the piece, the first token that home does not compute, and who does; `least` is
    /// the open worker of least price.
    fn least_cost(
        &self,
        rates: &Rates,
        least: Option<(u64, u32)>,
        is_open: bool,
    ) -> (i128, u32, u32) {
        let at_home = self.fetch + rates.work(self.price, self.start, self.end);
        let Some((price, by)) = least else {
            return (at_home, self.end, 0);
        };
        if by == self.holder as u32 {
            return (at_home, self.end, by);
        }
        let away = rates.away(price, self.start, self.end);
        // Below the cut moving Q and O costs more than it saves.
        let cut = match self.price.checked_sub(price).filter(|&less| less > 0) {
            Some(less) => (rates.qo / less).clamp(self.start.into(), self.end.into()) as u32,
            None => self.end,
        };
        let below = rates.work(self.price, self.start, cut);
        let both = self.fetch + below + rates.away(price, cut, self.end);
        if is_open || both < away {
            (both, cut, by)
        } else {
            (away, self.start, by)
        }
    }
}
