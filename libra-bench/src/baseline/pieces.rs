//! Samples in pieces: which of their tokens a worker has.

use libra_exec::steps::Piece;
use libra_sched::{PackedLengths, SampleId, TokenLayout};

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
            let sample = SampleId::new(sample);
            let tokens = lengths.tokens(sample);
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

#[cfg(test)]
mod tests {
    use libra_sched::LayoutKind;

    use super::*;

    #[test]
    fn ranks_hold_samples_in_pieces_without_padding() {
        let lengths = PackedLengths::new(12, [[5u32, 5]]).expect("fits");
        let layout = TokenLayout::new(LayoutKind::Zigzag, 1, 12, 2).expect("legal");
        let piece = |sample, start, end| Piece {
            sample: SampleId(sample),
            start,
            end,
        };
        let held = held(&lengths, &layout, 0);
        assert_eq!(held[0], [piece(0, 0, 3), piece(1, 4, 5)]);
        assert_eq!(held[1], [piece(0, 3, 5), piece(1, 0, 4)]);
    }
}
