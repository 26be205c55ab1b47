//! Samples as their holders see them.

use super::readers::{Rates, pairs};
use crate::ids::SampleId;
use crate::plan::PoolPlan;
use crate::search::first_where;

/// Part of the highest refund, or of what an outsider reads: all of it is `1 << SHARE_BITS`.
pub(super) const SHARE_BITS: u32 = 16;

/// One sample in one KV head: consecutive pieces, each held by one context rank.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// Context ranks that hold tokens of it, counted over all slots.
    pub(super) holders: Vec<u32>,
    /// From its first token to its last.
    pub(super) pieces: Vec<Piece>,
}

/// Consecutive tokens of a sample that one rank holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// One past the last token.
    pub(super) end: u32,
    /// Which of the holders.
    pub(super) holder: u32,
    /// Pieces up to and with the one before that the same rank holds; 0 where there is none.
    pub(super) rest: u32,
    /// How many workers read each of its keys, at least, summed over them.
    pub(super) readings: u64,
    /// Keys up to its end that each of these workers fetches, at least.
    pub(super) fetched: u32,
}

impl Column {
    /// `sample` of `slot`, where no worker has more than `heaviest` work.
    pub(super) fn new(
        plan: &PoolPlan,
        slot: u32,
        sample: SampleId,
        rates: &Rates,
        heaviest: u64,
    ) -> Self {
        let tokens = plan.lengths.tokens(sample);
        let fragments = plan.layout.fragments(slot);
        let first = fragments.partition_point(|fragment| fragment.end <= tokens.start);
        let inside = fragments[first..]
            .iter()
            .take_while(|fragment| fragment.start < tokens.end);
        let mut column = Self {
            holders: Vec::new(),
            pieces: Vec::new(),
        };
        for fragment in inside {
            let rank = slot * plan.layout.ranks() + fragment.rank;
            column.push(rank, tokens.end.min(fragment.end) - tokens.start);
        }
        column.count_readers(rates.width(), heaviest, plan.layout.workers());
        column
    }

    fn push(&mut self, rank: u32, end: u32) {
        let known = self.holders.iter().position(|&holder| holder == rank);
        let holder = known.unwrap_or(self.holders.len()) as u32;
        if known.is_none() {
            self.holders.push(rank);
        }
        if let Some(last) = self.pieces.last_mut().filter(|last| last.holder == holder) {
            last.end = end;
            return;
        }
        let before = self.pieces.iter().rposition(|piece| piece.holder == holder);
        self.pieces.push(Piece {
            end,
            holder,
            rest: before.map_or(0, |piece| piece as u32 + 1),
            readings: 0,
            fetched: 0,
        });
    }

    /// Queries from a token on are computed by workers that read up to it, `heaviest` work by each of
    /// `workers`.
    fn count_readers(&mut self, width: u64, heaviest: u64, workers: u32) {
        let len = self.len();
        let mut held = vec![0; self.holders.len()];
        let (mut start, mut most) = (0, 0);
        for piece in &mut self.pieces {
            for readers in 0..workers {
                let done = u128::from(heaviest) * u128::from(readers);
                let last = first_where(start..piece.end, |key| {
                    u128::from(pairs(key, len)) * u128::from(width) <= done
                });
                if last == start {
                    break;
                }
                piece.readings += u64::from(last - start);
            }
            let holder = &mut held[piece.holder as usize];
            *holder += piece.end - start;
            most = most.max(*holder);
            piece.fetched = piece.end - most;
            start = piece.end;
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.end(self.pieces.len())
    }

    /// One past the last token of the first `pieces` pieces.
    pub(super) fn end(&self, pieces: usize) -> u32 {
        pieces
            .checked_sub(1)
            .map_or(0, |last| self.pieces[last].end)
    }

    /// Writes what a worker is refunded that reads to the end of each piece, 0 before the first, in
    /// 2^-32 bytes; what all readers together are refunded at least. Within a piece every key is
    /// refunded alike.
    ///
    /// One reader there is anyway: only where there must be several does a refund prove more.
    pub(super) fn refund(&self, rates: &Rates, share: u32, refunds: &mut Vec<i128>) -> i128 {
        refunds.clear();
        refunds.push(0);
        let (mut last, mut given) = (0, 0);
        for (piece, tokens) in self.pieces.iter().zip(self.tokens()) {
            if piece.readings > tokens {
                let highest = i128::from(rates.kv) * i128::from(piece.fetched);
                let refund = (highest * i128::from(share)) >> SHARE_BITS;
                given += (refund - last) * i128::from(piece.readings) / i128::from(tokens);
                last = refund;
            }
            refunds.push(last);
        }
        given
    }

    /// Keys by which `reading` workers of each piece read less than they must, counted as often as
    /// the highest refund rises with them: what a higher share of it would gain.
    pub(super) fn unread(&self, reading: &[u32]) -> i128 {
        let (mut last, mut unread) = (0, 0);
        for ((piece, tokens), &reading) in self.pieces.iter().zip(self.tokens()).zip(reading) {
            if piece.readings > tokens {
                let read = u64::from(reading) * tokens;
                let missing = i128::from(piece.readings) - i128::from(read);
                unread += i128::from(piece.fetched - last) * missing / i128::from(tokens);
                last = piece.fetched;
            }
        }
        unread
    }

    /// Tokens of each piece.
    fn tokens(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.pieces.len()).map(|piece| u64::from(self.end(piece + 1) - self.end(piece)))
    }
}
