//! Ring attention: CP steps, in each of which a worker attends with its own queries to the K and V that are there and
//! sends them on to the next worker. Liu et al. 2023, arXiv 2310.01889.
//!
//! - `ring`: contiguous shards; under a causal mask early workers have little to do.
//! - `zigzag-ring`: worker i holds pieces i and 2·CP−1−i of 2·CP equal ones, which is balanced for one causal sample that
//!   fills the sequence (Zhu 2024, ring-flash-attention; Megatron Core).
//! - `doc-zigzag`: every sample in 2·CP pieces likewise, what does not divide by tokens in turn: WLB-LLM's sharding by
//!   document (Wang et al. 2025, arXiv 2503.17924).
//!
//! Forward, all K and V but a worker's own pass through it: (CP−1)/CP · L · 2·h_kv·d·b bytes. Backward they do so again,
//! and their gradients make a full turn, which ends at home. O(CP² · pieces) a sequence.

use libra_sched::{Fragment, LayoutKind, PackedLengths, TokenLayout};

use super::pieces::held;
use super::steps::{Scheme, StepWork};
use super::{Group, Work, pools};
use crate::failure::Failure;
use crate::preset::Shapes;

/// How the tokens of a sequence lie on the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharding {
    /// By a regular layout.
    Sequence(LayoutKind),
    /// Every sample in zigzag.
    Document,
}

/// A ring a sequence, in arrival order.
pub(super) fn groups(
    window: &PackedLengths,
    shapes: &Shapes,
    sharding: Sharding,
) -> Result<Vec<Group>, Failure> {
    pools::each_sequence(window, shapes, |lengths| {
        let layout = layout(&lengths, shapes.window.cp(), sharding)?;
        let held = held(&lengths, &layout, 0);
        let work = StepWork::new(lengths, held, shapes, Scheme::Ring)?;
        let work = Work::Steps(Box::new(work));
        Ok((work, layout))
    })
}

/// Home of the tokens of the one sequence of `lengths`.
pub(super) fn layout(
    lengths: &PackedLengths,
    cp: u32,
    sharding: Sharding,
) -> Result<TokenLayout, Failure> {
    let tokens = lengths.seq_tokens();
    Ok(match sharding {
        Sharding::Sequence(kind) => TokenLayout::new(kind, 1, tokens, cp)?,
        Sharding::Document => {
            let fragments = document_fragments(lengths.lengths_of(0), tokens, cp);
            TokenLayout::explicit(tokens, cp, 1, vec![fragments])?
        }
    })
}

/// Every sample in 2·CP equal pieces in zigzag, the tokens left over and the padding one by one to ranks in turn. Which
/// rank's turn it is carries over from sample to sample, so that ranks differ by a token at most.
fn document_fragments(samples: &[u32], seq_tokens: u32, cp: u32) -> Vec<Fragment> {
    let mut fragments: Vec<Fragment> = Vec::new();
    let mut at = 0;
    let mut give = |rank: u32, tokens: u32| {
        match fragments.last_mut() {
            Some(last) if last.rank == rank => last.end += tokens,
            _ if tokens > 0 => fragments.push(Fragment {
                start: at,
                end: at + tokens,
                rank,
            }),
            _ => {}
        }
        at += tokens;
    };
    let mut turn = 0;
    let mut rest = |give: &mut dyn FnMut(u32, u32), tokens: u32| {
        for _ in 0..tokens {
            give(turn, 1);
            turn = (turn + 1) % cp;
        }
    };
    for &sample in samples {
        let piece = sample / (2 * cp);
        for number in 0..2 * cp {
            give(number.min(2 * cp - 1 - number), piece);
        }
        rest(&mut give, sample % (2 * cp));
    }
    let padding = seq_tokens - samples.iter().sum::<u32>();
    for rank in 0..cp {
        give(rank, padding / cp);
    }
    rest(&mut give, padding % cp);
    fragments
}

#[cfg(test)]
mod tests {
    use libra_sched::Mask;
    use proptest::prelude::*;

    use super::*;
    use crate::baseline::check::{computed_by_worker, programs as programs_of, received};
    use crate::baseline::tests::{shapes, window};
    use crate::preset::Preset;
    use crate::simulate::program::Program;

    fn programs(window: &PackedLengths, shapes: &Shapes, sharding: Sharding) -> Vec<[Program; 2]> {
        let groups = groups(window, shapes, sharding).expect("legal");
        groups.iter().map(programs_of).collect()
    }

    const ZIGZAG: Sharding = Sharding::Sequence(LayoutKind::Zigzag);

    #[test]
    fn a_ring_moves_all_keys_but_the_own_and_backward_their_gradients_once_around() {
        let shapes = shapes(Preset::Tiny, |settings| settings.cp = 4);
        let token = 2 * 2 * 8 * 2;
        for sharding in [
            Sharding::Sequence(LayoutKind::Contiguous),
            ZIGZAG,
            Sharding::Document,
        ] {
            for [forward, backward] in programs(&window(8, 64, || 64), &shapes, sharding) {
                assert_eq!(received(&forward), [3 * 16 * token; 4]);
                assert_eq!(received(&backward), [(3 + 4) * 16 * token; 4]);
            }
        }
    }

    #[test]
    fn zigzag_is_balanced_for_one_causal_sample_and_a_plain_ring_is_not() {
        let shapes = shapes(Preset::Tiny, |settings| settings.cp = 4);
        let window = window(8, 64, || 64);
        let total = 64 * 65 / 2 * 4;
        for sharding in [ZIGZAG, Sharding::Document] {
            for [forward, _] in programs(&window, &shapes, sharding) {
                assert_eq!(computed_by_worker(&forward), [total / 4; 4]);
            }
        }
        for [forward, _] in programs(&window, &shapes, Sharding::Sequence(LayoutKind::Contiguous)) {
            // 16 tokens a worker: 136 pairs among their own, 256 with each worker before.
            let expected = [136, 136 + 256, 136 + 512, 136 + 768].map(|pairs| pairs * 4);
            assert_eq!(computed_by_worker(&forward), expected);
        }
    }

    #[test]
    fn documents_are_balanced_each_for_itself() {
        let shapes = shapes(Preset::Tiny, |settings| settings.cp = 2);
        let mut lengths = [8, 16, 24, 12, 4].into_iter().cycle();
        let window = window(8, 64, || lengths.next().expect("endless"));
        for [forward, _] in programs(&window, &shapes, Sharding::Document) {
            let work = computed_by_worker(&forward);
            assert_eq!(work[0], work[1]);
        }
    }

    #[test]
    fn seven_tokens_of_two_documents_by_hand() {
        let fragments = document_fragments(&[5, 2], 9, 1);
        assert_eq!(fragments.len(), 1);
        let of = |samples: &[u32], tokens| -> Vec<(u32, u32)> {
            let fragments = document_fragments(samples, tokens, 2);
            fragments
                .iter()
                .map(|f| (f.end - f.start, f.rank))
                .collect()
        };
        // 5 = pieces of 1 to 0, 1, 1, 0, and one token to 0; 2 tokens to 1 and 0; two of padding, one each.
        assert_eq!(
            of(&[5, 2], 9),
            [(1, 0), (2, 1), (2, 0), (1, 1), (2, 0), (1, 1)]
        );
    }

    proptest! {
        #[test]
        fn ranks_hold_equal_shares_of_documents(
            samples in prop::collection::vec(1..40u32, 1..9),
            padding in 0..30u32,
            cp in 1..6u32,
        ) {
            let tokens = samples.iter().sum::<u32>() + padding;
            let lengths = PackedLengths::new(tokens.into(), [samples]).expect("fits");
            let layout = layout(&lengths, cp, Sharding::Document).expect("covers the sequence");
            let held = |rank| layout.held(0, rank).map(|f| f.end - f.start).sum::<u32>();
            let (least, most) = ((0..cp).map(held).min(), (0..cp).map(held).max());
            prop_assert!(most <= least.map(|least| least + 1), "{:?} {:?}", least, most);
        }

        #[test]
        fn other_masks_are_computed_once_too(seed in 1..40u32) {
            for mask in [Mask::Full, Mask::window(5, 2).expect("legal")] {
                let shapes = shapes(Preset::Tiny, |settings| (settings.cp, settings.mask) = (4, mask));
                let mut lengths = [seed, 3, 17, 50].into_iter().cycle();
                let window = window(8, 64, || lengths.next().expect("endless"));
                let work: u64 = (programs(&window, &shapes, ZIGZAG).iter())
                    .flat_map(|[forward, _]| computed_by_worker(forward))
                    .sum();
                prop_assert_eq!(work, crate::baseline::check::work_of(&window, mask, 4));
            }
        }
    }
}
