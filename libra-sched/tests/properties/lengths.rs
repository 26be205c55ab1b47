use libra_sched::{Mask, PackedLengths, Proxy, SampleId, SequenceId, WindowShape};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::cases::{masks, pools, runs, with_parents};
use crate::twins;

fn windows() -> impl Strategy<Value = PackedLengths> {
    (1u32..8, 1u32..64).prop_flat_map(|(sequences, seq_tokens)| pools(sequences, seq_tokens))
}

proptest! {
    #![proptest_config(runs(500))]

    #[test]
    fn samples_lie_back_to_back_from_token_0(window in windows()) {
        let mut next_sample = 0;
        for sequence in 0..window.sequences() {
            let mut next_token = 0;
            for sample in window.samples_of(sequence) {
                let tokens = window.tokens(SampleId::new(sample));
                prop_assert_eq!((sample, tokens.start), (next_sample, next_token));
                prop_assert_eq!(tokens.len() as u32, window.length(SampleId::new(sample)));
                next_sample += 1;
                next_token = tokens.end;
            }
            prop_assert_eq!(window.tokens_of(sequence), next_token);
            prop_assert!(next_token <= window.seq_tokens());
        }
        prop_assert_eq!(window.samples(), next_sample);
    }

    #[test]
    fn work_is_the_pairs_of_every_token_counted(window in windows(), mask in masks()) {
        let work = window.work(Proxy::Pairs(mask)).unwrap();
        for (sequence, &work) in work.iter().enumerate() {
            let counted: u64 = window
                .lengths_of(sequence)
                .iter()
                .map(|&len| twins::mask::pairs(mask, len, 0..len))
                .sum();
            prop_assert_eq!(work, counted);
        }
    }

    #[test]
    fn work_under_parents_is_the_pairs_of_every_token_counted(
        window in windows(),
        draws in prop::collection::vec(any::<(Index, Index)>(), 1..12),
    ) {
        let window = with_parents(window, &draws);
        let weigh = |proxy| window.work(proxy).unwrap();
        let pairs = weigh(Proxy::Pairs(Mask::Causal)).into_iter().zip(weigh(Proxy::SumSquares));
        for (sequence, (pairs, squares)) in pairs.enumerate() {
            let (mut counted, mut square) = (0, 0);
            for sample in window.samples_of(sequence) {
                let len = window.length(SampleId::new(sample));
                let above: u32 = twins::mask::above(&window, sample)
                    .into_iter()
                    .map(|above| window.length(SampleId::new(above)))
                    .sum();
                counted += (0..len).map(|query| u64::from(above + query + 1)).sum::<u64>();
                square += u64::from(above + len).pow(2) - u64::from(above).pow(2);
            }
            prop_assert_eq!((pairs, squares), (counted, square));
        }
    }

    #[test]
    fn selected_sequences_keep_their_parents(
        window in windows(),
        draws in prop::collection::vec(any::<(Index, Index)>(), 0..12),
        members in prop::collection::vec(any::<Index>(), 1..9),
    ) {
        let window = with_parents(window, &draws);
        let members: Vec<_> = members
            .iter()
            .map(|member| SequenceId::new(member.index(window.sequences())))
            .collect();
        let selected = window.select(&members).unwrap();
        for (place, member) in members.iter().enumerate() {
            let own = window.samples_of(member.index());
            let there = selected.samples_of(place);
            prop_assert_eq!(own.len(), there.len());
            for (own_sample, sample) in own.clone().zip(there.clone()) {
                let parent = |lengths: &PackedLengths, sample, first: usize| {
                    lengths.parent(SampleId::new(sample)).map(|parent| parent.index() - first)
                };
                let (before, after) = (
                    parent(&window, own_sample, own.start),
                    parent(&selected, sample, there.start),
                );
                prop_assert_eq!(before, after);
            }
        }
    }

    #[test]
    fn full_pairs_are_the_sum_of_squares(window in windows()) {
        let squares = window.work(Proxy::SumSquares).unwrap();
        prop_assert_eq!(window.work(Proxy::Pairs(Mask::Full)).unwrap(), squares);
    }

    #[test]
    fn cumulative_lengths_say_the_same(window in windows()) {
        let cumulative: Vec<Vec<u64>> = (0..window.sequences())
            .map(|sequence| {
                let mut sums = vec![0];
                for &length in window.lengths_of(sequence) {
                    sums.push(sums[sums.len() - 1] + u64::from(length));
                }
                sums
            })
            .collect();
        let slices: Vec<&[u64]> = cumulative.iter().map(Vec::as_slice).collect();
        let read = PackedLengths::from_cu_seqlens(window.seq_tokens().into(), &slices);
        prop_assert_eq!(read, Ok(window));
    }

    #[test]
    fn selected_sequences_keep_their_lengths_and_order(
        window in windows(),
        picks in prop::collection::vec(any::<Index>(), 1..6),
    ) {
        let members: Vec<SequenceId> = picks
            .iter()
            .map(|pick| SequenceId::new(pick.index(window.sequences())))
            .collect();
        let pool = window.select(&members).unwrap();
        prop_assert_eq!(pool.sequences(), members.len());
        for (slot, member) in members.iter().enumerate() {
            prop_assert_eq!(pool.lengths_of(slot), window.lengths_of(member.index()));
        }
    }

    #[test]
    fn a_window_is_its_pools_and_its_ga_indices(p in 1u32..9, pools in 1u32..9, ga in 1u32..9, cp in 1u32..9) {
        let shape = WindowShape::new(128, p * pools * ga, p * pools, cp, p).unwrap();
        prop_assert_eq!(shape.pools() * shape.pool_size(), shape.gbs());
        prop_assert_eq!(shape.ga() * shape.dp(), shape.gbs());
        prop_assert_eq!(shape.workers(), p * cp);
        for index in 0..shape.ga() {
            let here = (0..shape.pools()).filter(|&pool| shape.ga_of_pool(pool) == index).count();
            prop_assert_eq!(here as u32, shape.pools_per_ga());
        }
    }
}

#[test]
fn a_window_may_hold_sequences_of_padding_only() {
    let window = PackedLengths::new(4, [Vec::<u32>::new(), vec![4]]).unwrap();
    assert_eq!((window.tokens_of(0), window.tokens_of(1)), (0, 4));
    assert_eq!(window.work(Proxy::Pairs(Mask::Causal)), Ok(vec![0, 10]));
}
