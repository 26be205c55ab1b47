//! A bound on all bytes together, by prices of work.
//!
//! **Prices.** Let μ ≥ 0 be a price of work at each worker. No worker has more than T, so that a
//! placement moves at least its bytes and Σ μ·(work − T). With the prices given every sample can be
//! computed in every KV head as if no other were there, in the way that is cheapest for its bytes and
//! work at prices: all these least costs less T·Σ μ are a bound, whatever the prices.
//!
//! **Readers.** Queries from a token on are computed by workers that read all keys up to it, T by
//! each at most. So their number is at least n, that work over T, rounded up. Let r ≥ 0 be a refund
//! for a reader of a key: bytes are at least Σ r·n and bytes less refunds. Refunds for what is read up
//! to a key are at most what any reader fetches for it, so that a worker without a query, which the
//! least cost leaves out, would not make it less.
//!
//! **Outsiders.** A worker that holds nothing of a sample and computes w of it above a key fetches the
//! key, and w ≤ T. So it fetches 1 ≥ α + (1 − α)·w/T of it for every 0 ≤ α ≤ 1: the first part is paid
//! once, the second with the work.
//!
//! Prices, refunds and α are found by subgradient ascent: work is dearer where there is too much of
//! it, refunds are higher where too few read, and α where the first part is paid for more than is
//! read. Whatever they are, the bound holds; the best one counts.
//!
//! O(rounds · (W log W + Σ pieces · holders)) over the samples that several ranks hold.
//!
//! Source: Lagrangian relaxation of capacities (Geoffrion, 1974); subgradient ascent (Held, Wolfe and
//! Crowder, 1974).

use std::cmp::Reverse;

use super::columns::{Column, SHARE_BITS};
use super::readers::{FRACTION_BITS, Outsider, PRICE_MAX, Rates, Readers, pairs};
use crate::ids::SampleId;
use crate::plan::PoolPlan;

/// Binary digits of a step's fraction.
const STEP_BITS: u32 = 20;

/// The first step is this, in 2^-20ths: a worker with as much again as it may have gets dearer by
/// this part of what the Q and O of a token of the longest sample cost a pair.
const FIRST_STEP: u64 = 3 << (STEP_BITS - 3);

/// Shares move by this many times a step.
const SHARE_STEPS: i128 = 3;

/// The natural logarithm of the first step over the last, in hundredths.
const DECAY: u64 = 453;

/// What any plan moves at least, by the best prices of `rounds`.
pub(super) fn moved_bytes(plan: &PoolPlan, heaviest: u64, rounds: u32) -> u64 {
    let pool = Pool::new(plan, heaviest);
    let mut prices = Prices {
        ranks: vec![0; pool.at_home.len()],
        columns: vec![Shares::default(); pool.columns.len()],
    };
    let (mut readers, mut value) = (Readers::default(), Value::default());
    let (mut best, mut step) = (0, FIRST_STEP);
    for _ in 0..rounds {
        pool.value(&prices, &mut readers, &mut value);
        best = best.max(value.bound);
        prices.climb(&pool, &mut value, step);
        step = step.saturating_sub((step * DECAY).div_ceil(100 * u64::from(rounds)));
    }
    u64::try_from(best >> FRACTION_BITS).unwrap_or(u64::MAX)
}

/// A pool as prices see it. Ranks are context ranks, counted over all slots; the workers of a tensor
/// group have one price.
struct Pool {
    rates: Rates,
    kv_heads: u64,
    tensor: u64,
    heaviest: u64,
    /// Samples that several ranks hold, or that one worker may not compute in one span.
    columns: Vec<Column>,
    /// The others, longest first: tokens and rank.
    whole: Vec<(u32, u32)>,
    /// Pairs in one query head of the others, by rank.
    at_home: Vec<u64>,
}

/// What decides a bound.
struct Prices {
    /// Of a pair in one query head at each rank, in 2^-32 bytes.
    ranks: Vec<u64>,
    columns: Vec<Shares>,
}

/// Of one column.
#[derive(Clone, Copy)]
struct Shares {
    /// Of the highest refund.
    refund: u32,
    /// Of what an outsider reads, paid at once: α.
    at_once: u32,
}

impl Default for Shares {
    fn default() -> Self {
        Self {
            refund: 0,
            at_once: 1 << SHARE_BITS,
        }
    }
}

/// A bound, and what the cheapest placement looks like.
#[derive(Default)]
struct Value {
    /// In 2^-32 bytes.
    bound: i128,
    /// Pairs in one query head by rank, without those of outsiders.
    loads: Vec<u128>,
    outside: u128,
    /// Of each column: keys that should be read beyond those that are, and bytes that outsiders pay
    /// too many at once, in tokens.
    slopes: Vec<[i128; 2]>,
    /// Ranks from the least price.
    order: Vec<u32>,
}

impl Pool {
    fn new(plan: &PoolPlan, heaviest: u64) -> Self {
        let (heads, layout) = (&plan.heads, &plan.layout);
        let row = plan.bytes.q_token(heads, 1) + plan.bytes.o_token(heads, 1);
        let spans = (0..heads.span_count()).map(|span| heads.kv_of_span(span).len() as u64);
        let ranks = layout.slots() * layout.ranks();
        let mut pool = Self {
            rates: Rates {
                qo: row << FRACTION_BITS,
                kv: plan.bytes.kv_token(heads, 1) << FRACTION_BITS,
                group: heads.group().into(),
                together: spans.min().unwrap_or(1),
            },
            kv_heads: heads.kv_heads().into(),
            tensor: layout.tensor().into(),
            heaviest,
            columns: Vec::new(),
            whole: Vec::new(),
            at_home: vec![0; ranks as usize],
        };
        for slot in 0..layout.slots() {
            for sample in plan.lengths.samples_of(slot as usize) {
                let column = Column::new(plan, slot, SampleId::new(sample), &pool.rates, heaviest);
                pool.push(column);
            }
        }
        pool.whole
            .sort_unstable_by_key(|&(len, rank)| (Reverse(len), rank));
        pool
    }

    fn push(&mut self, column: Column) {
        let all = pairs(0, column.len());
        let work = u128::from(all) * u128::from(self.rates.width());
        match column.holders[..] {
            [rank] if work <= self.heaviest.into() => {
                // Tokens of one rank are fewer than 2^31.
                self.at_home[rank as usize] += all;
                self.whole.push((column.len(), rank));
            }
            _ => self.columns.push(column),
        }
    }

    /// Pairs in one query head that the workers of a rank may have.
    fn room(&self) -> u128 {
        let heads = u128::from(self.rates.group * self.kv_heads);
        (u128::from(self.heaviest) * u128::from(self.tensor) / heads).max(1)
    }

    /// The bound that `prices` prove.
    fn value(&self, prices: &Prices, readers: &mut Readers, value: &mut Value) {
        let ranks = &prices.ranks;
        value.order.clear();
        value.order.extend(0..ranks.len() as u32);
        value
            .order
            .sort_unstable_by_key(|&rank| (ranks[rank as usize], rank));
        value.loads.clear();
        value
            .loads
            .extend(self.at_home.iter().map(|&pairs| u128::from(pairs)));
        value.outside = 0;
        value.slopes.clear();
        let mut cost = self.whole_samples(prices, value);
        for (column, &shares) in self.columns.iter().zip(&prices.columns) {
            cost = cost.saturating_add(self.column(prices, column, shares, readers, value));
        }
        let sum: u128 = ranks.iter().map(|&price| u128::from(price)).sum();
        let capacity = u128::from(self.tensor) * u128::from(self.heaviest);
        // Cut off at the most there is, the difference is no bound but 0.
        let paid = i128::try_from(sum.saturating_mul(capacity)).unwrap_or(i128::MAX);
        value.bound = cost
            .saturating_mul(self.kv_heads.into())
            .saturating_sub(paid);
    }

    /// Least price of a worker that holds nothing of a column of `holders`.
    fn outside(&self, prices: &Prices, value: &Value, holders: &[u32]) -> Option<u64> {
        // Of a tensor group only one worker holds a KV head.
        let mut outside = value
            .order
            .iter()
            .filter(|rank| self.tensor > 1 || !holders.contains(rank));
        outside.next().map(|&rank| prices.ranks[rank as usize])
    }

    /// Least cost of the samples that one rank holds: at home, or the last tokens elsewhere.
    fn whole_samples(&self, prices: &Prices, value: &mut Value) -> i128 {
        let Rates { qo, kv, group, .. } = self.rates;
        let group = i128::from(group);
        let of_rank =
            |(&pairs, &price): (&u64, &u64)| group * i128::from(pairs) * i128::from(price);
        let of_ranks = self.at_home.iter().zip(&prices.ranks).map(of_rank);
        let mut cost = of_ranks.fold(0, i128::saturating_add);
        let highest = prices.ranks.iter().copied().max().unwrap_or(0);
        for &(len, rank) in &self.whole {
            if u128::from(highest) * u128::from(len) <= u128::from(qo) {
                // Nor would a shorter sample pay for its Q and O.
                break;
            }
            let Some(outside) = self.outside(prices, value, &[rank]) else {
                break;
            };
            let less = prices.ranks[rank as usize].saturating_sub(outside);
            if less == 0 {
                continue;
            }
            let cut = (qo / less).min(len.into()) as u32;
            let moved = pairs(cut, len);
            let saved = i128::from(less) * i128::from(moved);
            let rows = i128::from(qo) * i128::from(len - cut);
            let gain = group * (saved - rows) - i128::from(kv) * i128::from(len);
            if gain > 0 {
                cost -= gain;
                value.loads[rank as usize] -= u128::from(moved);
                value.outside += u128::from(moved);
            }
        }
        cost
    }

    /// Least cost of a column, with the refunds that all readers get at least.
    fn column(
        &self,
        prices: &Prices,
        column: &Column,
        shares: Shares,
        readers: &mut Readers,
        value: &mut Value,
    ) -> i128 {
        readers.prices.clear();
        let holders = column.holders.iter();
        readers
            .prices
            .extend(holders.map(|&rank| prices.ranks[rank as usize]));
        let outside = self.outside(prices, value, &column.holders);
        let outsider = outside.map(|price| Outsider {
            price,
            at_once: shares.at_once,
            heaviest: self.heaviest,
        });
        let given = column.refund(&self.rates, shares.refund, &mut readers.refunds);
        let cost = readers.cheapest(column, &self.rates, outsider);
        for (&rank, &pairs) in column.holders.iter().zip(&readers.pairs) {
            value.loads[rank as usize] += u128::from(pairs);
        }
        value.outside += u128::from(readers.outside_pairs);
        let at_once = readers.at_once_excess / i128::from(self.rates.kv.max(1));
        value
            .slopes
            .push([column.unread(&readers.reading), at_once]);
        cost + given
    }
}

impl Prices {
    /// A step up from where the bound is `value`.
    fn climb(&mut self, pool: &Pool, value: &mut Value, step: u64) {
        let room = pool.room();
        self.share_outside(room, value);
        let longest = pool.columns.iter().map(Column::len).max().unwrap_or(1);
        let longest = longest.max(pool.whole.first().map_or(1, |&(len, _)| len));
        let unit = i128::from(pool.rates.qo / u64::from(longest));
        for (price, &load) in self.ranks.iter_mut().zip(&value.loads) {
            let over = ((load << STEP_BITS) / room).min(1 << 50) as i128 - (1 << STEP_BITS);
            let change = (((unit * over) >> STEP_BITS) * i128::from(step)) >> STEP_BITS;
            *price = (i128::from(*price) + change).clamp(0, PRICE_MAX.into()) as u64;
        }
        let columns = pool.columns.iter().zip(&value.slopes);
        for (shares, (column, slopes)) in self.columns.iter_mut().zip(columns) {
            for (share, slope) in [&mut shares.refund, &mut shares.at_once]
                .into_iter()
                .zip(slopes)
            {
                let slope = slope.clamp(&-(1 << 60), &(1 << 60)) * i128::from(step) * SHARE_STEPS;
                let change = (slope / i128::from(column.len())) >> (STEP_BITS - SHARE_BITS);
                *share = (i128::from(*share) + change).clamp(0, 1 << SHARE_BITS) as u32;
            }
        }
    }

    /// Outsiders' work goes to ranks without a price, by what they have room for.
    fn share_outside(&self, room: u128, value: &mut Value) {
        let is_free = |price: u64, load: u128| price == 0 && load < room;
        let ranks = self.ranks.iter().zip(&value.loads);
        let free = ranks.filter(|&(&price, &load)| is_free(price, load));
        let free: u128 = free.map(|(_, &load)| room - load).sum();
        for (&price, load) in self.ranks.iter().zip(&mut value.loads) {
            if is_free(price, *load) {
                let part = ((value.outside << STEP_BITS) / free).min(1 << 50);
                *load += ((room - *load) * part) >> STEP_BITS;
            }
        }
    }
}

#[cfg(test)]
mod tests;
