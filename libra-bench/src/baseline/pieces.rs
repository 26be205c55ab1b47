//! Samples in pieces: which queries and keys a worker has, and how many pairs two pieces have in common.

use std::ops::Range;

use libra_sched::{Mask, PackedLengths, SampleId, TokenLayout};

use crate::simulate::program::Attention;

/// Consecutive tokens of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    /// The sample.
    pub(super) sample: usize,
    /// First token, counted from the sample's.
    pub(super) start: u32,
    /// One past the last.
    pub(super) end: u32,
}

impl Piece {
    /// Number of tokens.
    pub(super) const fn len(&self) -> u32 {
        self.end - self.start
    }
}

/// What every context rank of a slot holds, by (sample, token); tokens that adjoin are one piece.
pub(super) fn held(lengths: &PackedLengths, layout: &TokenLayout, slot: u32) -> Vec<Vec<Piece>> {
    let mut held: Vec<Vec<Piece>> = vec![Vec::new(); layout.ranks() as usize];
    let samples = lengths.samples_of(slot as usize);
    let mut first = samples.start;
    for fragment in layout.fragments(slot) {
        let of_rank = &mut held[fragment.rank as usize];
        let ended = |&sample: &usize| lengths.tokens(SampleId::new(sample)).end <= fragment.start;
        first += (first..samples.end).take_while(ended).count();
        for sample in first..samples.end {
            let tokens = lengths.tokens(SampleId::new(sample));
            if tokens.start >= fragment.end {
                break;
            }
            let start = fragment.start.max(tokens.start) - tokens.start;
            let end = fragment.end.min(tokens.end) - tokens.start;
            match of_rank.last_mut() {
                Some(last) if (last.sample, last.end) == (sample, start) => last.end = end,
                _ => of_rank.push(Piece { sample, start, end }),
            }
        }
    }
    held
}

/// Tokens of all pieces.
pub(super) fn tokens(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| u64::from(piece.len())).sum()
}

/// Attention of `queries` over `keys`, both by (sample, token), in `heads` heads: an entry for each piece of queries that
/// reads some of the keys.
pub(super) fn attend(
    lengths: &PackedLengths,
    mask: Mask,
    heads: u32,
    queries: &[Piece],
    keys: &[Piece],
) -> Vec<Attention> {
    let mut entries = Vec::new();
    let mut first = 0;
    for query in queries {
        first += keys[first..]
            .iter()
            .take_while(|key| key.sample < query.sample)
            .count();
        let len = lengths.length(SampleId::new(query.sample));
        let of_sample = keys[first..]
            .iter()
            .take_while(|key| key.sample == query.sample);
        let pairs = of_sample
            .map(|key| pairs_between(mask, len, query.start..query.end, key.start..key.end))
            .sum();
        if pairs > 0 {
            entries.push(Attention {
                queries: query.len(),
                heads,
                pairs,
            });
        }
    }
    entries
}

/// Pairs of `queries` and `keys` of a sample of `len` tokens. O(1) for causal and full attention, else O(queries).
pub(super) fn pairs_between(mask: Mask, len: u32, queries: Range<u32>, keys: Range<u32>) -> u64 {
    match mask {
        Mask::Causal => {
            // Of the keys from one on, query x reads x + 1 less those before it.
            let up_to = |query: u32, key: u32| triangle(query.saturating_sub(key));
            let from = |key| up_to(queries.end, key) - up_to(queries.start, key);
            from(keys.start) - from(keys.end)
        }
        Mask::Full => (queries.end - queries.start) as u64 * (keys.end - keys.start) as u64,
        mask => {
            let common = |read: Range<u32>| {
                u64::from(
                    read.end
                        .min(keys.end)
                        .saturating_sub(read.start.max(keys.start)),
                )
            };
            let read =
                queries.map(|query| mask.keys_of(len, query).iter().map(common).sum::<u64>());
            read.sum()
        }
    }
}

fn triangle(n: u32) -> u64 {
    u64::from(n) * (u64::from(n) + 1) / 2
}

#[cfg(test)]
mod tests {
    use libra_sched::LayoutKind;

    use super::*;

    #[test]
    fn pairs_are_those_of_the_definition_key_by_key() {
        let window = Mask::window(3, 1).expect("legal");
        let chunked = Mask::chunked(4).expect("legal");
        let masks = [
            Mask::Causal,
            Mask::Full,
            window,
            chunked,
            Mask::two_sided(2, 1),
        ];
        for mask in masks {
            for (a, b, c, d) in [
                (0, 9, 0, 9),
                (2, 5, 3, 9),
                (5, 9, 0, 4),
                (0, 3, 6, 9),
                (4, 4, 0, 9),
            ] {
                let reads =
                    |query: u32| (c..d).filter(move |&key| mask.keys_of(9, query).contains(key));
                let expected = (a..b).map(|query| reads(query).count() as u64).sum::<u64>();
                assert_eq!(pairs_between(mask, 9, a..b, c..d), expected, "{mask}");
            }
        }
    }

    #[test]
    fn ranks_hold_samples_in_pieces_without_padding() {
        let lengths = PackedLengths::new(12, [[5u32, 5]]).expect("fits");
        let layout = TokenLayout::new(LayoutKind::Zigzag, 1, 12, 2).expect("legal");
        let piece = |sample, start, end| Piece { sample, start, end };
        let held = held(&lengths, &layout, 0);
        assert_eq!(held[0], [piece(0, 0, 3), piece(1, 4, 5)]);
        assert_eq!(held[1], [piece(0, 3, 5), piece(1, 0, 4)]);
        assert_eq!(tokens(&held[1]), 6);
        let entries = attend(&lengths, Mask::Causal, 2, &held[1], &held[0]);
        // Two queries read three keys each; those of sample 1 come before its last.
        assert_eq!(
            entries,
            [Attention {
                queries: 2,
                heads: 2,
                pairs: 6
            }]
        );
    }
}
