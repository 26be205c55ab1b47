//! Samples in heads and tails over the workers of their sequence.

use std::ops::Range;

use libra_sched::{Fragment, Mask, PackedLengths, SampleId, TokenLayout, WorkerId};

use crate::failure::Failure;

/// Head and tail of a sample: what one worker computes of what one worker holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) sample: usize,
    pub(super) slot: u32,
    /// Sample-local tokens.
    pub(super) head: Range<u32>,
    /// Sample-local tokens, of which the last ones read the most.
    pub(super) tail: Range<u32>,
    pub(super) home: WorkerId,
    pub(super) worker: WorkerId,
}

impl Item {
    pub(super) fn pairs(&self, lengths: &PackedLengths, mask: Mask) -> u64 {
        let len = lengths.length(SampleId::new(self.sample));
        mask.pairs(len, self.head.clone()) + mask.pairs(len, self.tail.clone())
    }

    /// `tokens` from the inside of the head, and as many of the tail.
    pub(super) fn split(&mut self, tokens: u32) -> Self {
        let (head, tail) = (self.head.end - tokens, self.tail.start + tokens);
        let inside = Self {
            head: head..self.head.end,
            tail: self.tail.start..tail,
            ..self.clone()
        };
        (self.head.end, self.tail.start) = (head, tail);
        inside
    }
}

/// Samples over the workers of their sequence, in order, each worker up to its share of the tokens.
pub(super) fn head_and_tail(
    lengths: &PackedLengths,
    cp: u32,
) -> Result<(TokenLayout, Vec<Item>), Failure> {
    let tokens = lengths.seq_tokens();
    let edge = |rank: u32| (u64::from(tokens) * u64::from(rank) / u64::from(cp)) as u32;
    let (mut items, mut slots) = (Vec::new(), Vec::new());
    for slot in 0..lengths.sequences() {
        let mut fragments = Vec::new();
        let (mut rank, mut used) = (0, 0);
        for sample in lengths.samples_of(slot) {
            let of_sequence = lengths.tokens(SampleId::new(sample));
            let (mut start, mut end) = (0, of_sequence.end - of_sequence.start);
            let first = items.len();
            while start < end {
                while used == edge(rank + 1) {
                    rank += 1;
                }
                let here = (end - start).min(edge(rank + 1) - used);
                // The later half is the longer one of a part, the earlier one that of a whole sample.
                let is_whole = start == 0 && here == end;
                let head = if is_whole { here.div_ceil(2) } else { here / 2 };
                let tail = here - head;
                let home = WorkerId(slot as u32 * cp + rank);
                items.push(Item {
                    sample,
                    slot: slot as u32,
                    head: start..start + head,
                    tail: end - tail..end,
                    home,
                    worker: home,
                });
                (start, end, used) = (start + head, end - tail, used + here);
            }
            let own = &items[first..];
            let heads = own.iter().map(|item| (item, &item.head));
            let tails = own.iter().rev().map(|item| (item, &item.tail));
            for (item, part) in heads.chain(tails) {
                let rank = item.home.0 % cp;
                push(&mut fragments, part.end - part.start, rank);
            }
        }
        // Padding.
        for rank in rank..cp {
            push(&mut fragments, edge(rank + 1) - used, rank);
            used = edge(rank + 1);
        }
        slots.push(fragments);
    }
    Ok((TokenLayout::explicit(tokens, cp, 1, slots)?, items))
}

/// The next `tokens` tokens of a sequence are those of `rank`.
fn push(fragments: &mut Vec<Fragment>, tokens: u32, rank: u32) {
    let start = fragments.last().map_or(0, |last| last.end);
    match fragments.last_mut() {
        Some(last) if last.rank == rank => last.end += tokens,
        _ if tokens > 0 => fragments.push(Fragment {
            start,
            end: start + tokens,
            rank,
        }),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_over_two_workers_is_a_head_and_a_tail_at_each() {
        let lengths = PackedLengths::new(12, [vec![2u32, 10]]).expect("fits");
        let (layout, items) = head_and_tail(&lengths, 2).expect("covers");
        let parts: Vec<_> = (items.iter())
            .map(|item| {
                (
                    item.sample,
                    item.head.clone(),
                    item.tail.clone(),
                    item.home.0,
                )
            })
            .collect();
        assert_eq!(
            parts,
            [(0, 0..1, 1..2, 0), (1, 0..2, 8..10, 0), (1, 2..5, 5..8, 1)]
        );
        let fragments: Vec<_> = layout
            .fragments(0)
            .iter()
            .map(|f| (f.start, f.end, f.rank))
            .collect();
        assert_eq!(fragments, [(0, 4, 0), (4, 10, 1), (10, 12, 0)]);
    }
}
