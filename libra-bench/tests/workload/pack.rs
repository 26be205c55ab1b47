//! Packing samples into sequences and windows.

use std::num::NonZeroU64;

use libra_bench::workload::{PackError, Packed, Packer, WindowOptions, scale};
use proptest::prelude::*;

const BEST_FIT_2: Packer = Packer::BestFit { open_sequences: 2 };

fn sequences(packer: Packer, lengths: &[u64], seq_tokens: u64) -> Result<Vec<Vec<u64>>, PackError> {
    packer.pack(lengths.iter().copied(), seq_tokens)?.collect()
}

/// The windows, and how many sequences and tokens were dropped.
fn windows(
    lengths: &[u64],
    seq_tokens: u64,
    options: WindowOptions,
) -> Result<(Vec<Packed>, u64, u64), PackError> {
    let packed = Packer::ConcatenateAndCut.pack(lengths.iter().copied(), seq_tokens)?;
    let mut windows = packed.windows(&options)?;
    let all = windows.by_ref().collect::<Result<_, _>>()?;
    Ok((all, windows.dropped_sequences(), windows.dropped_tokens()))
}

#[test]
fn concatenation_cuts_where_a_sequence_is_full() {
    let packed = sequences(Packer::ConcatenateAndCut, &[5, 9, 2, 8, 1], 8);
    assert_eq!(packed, Ok(vec![vec![5, 3], vec![6, 2], vec![8], vec![1]]));
    assert_eq!(
        sequences(Packer::ConcatenateAndCut, &[20], 8),
        Ok(vec![vec![8], vec![8], vec![4]])
    );
    assert_eq!(sequences(Packer::default(), &[], 8), Ok(vec![]));
}

#[test]
fn best_fit_takes_the_least_room_that_holds_the_sample() {
    // 5 opens one, 6 another; 2 fits both and fills the second; 4 opens a second again; 3 fills the first.
    let packed = sequences(BEST_FIT_2, &[5, 6, 2, 4, 3], 8);
    assert_eq!(packed, Ok(vec![vec![6, 2], vec![5, 3], vec![4]]));
    // The third 5 has no place: of two that are equally full the first is closed.
    let packed = sequences(BEST_FIT_2, &[5, 5, 5, 1, 1], 8);
    assert_eq!(packed, Ok(vec![vec![5], vec![5, 1, 1], vec![5]]));
    // A sample as long as a sequence closes nothing else.
    let packed = sequences(BEST_FIT_2, &[5, 6, 8], 8);
    assert_eq!(packed, Ok(vec![vec![8], vec![6], vec![5]]));
}

#[test]
fn windows_drop_or_fill_what_is_incomplete() {
    let options = WindowOptions {
        gbs: 2,
        skip: 0,
        fill_last: false,
    };
    let (all, dropped_sequences, dropped_tokens) = windows(&[10, 3, 5], 4, options).expect("legal");
    let packed = |sequences: [&[u64]; 2]| Packed {
        seq_tokens: 4,
        sequences: sequences.map(<[u64]>::to_vec).to_vec(),
    };
    assert_eq!(all, [packed([&[4], &[4]]), packed([&[2, 2], &[1, 3]])]);
    assert_eq!((dropped_sequences, dropped_tokens), (1, 2));

    let filled = WindowOptions {
        fill_last: true,
        ..options
    };
    let (all, dropped_sequences, dropped_tokens) = windows(&[10, 3, 5], 4, filled).expect("legal");
    assert_eq!(all[2], packed([&[2], &[]]));
    assert_eq!((all[2].tokens(), all[2].padding_tokens()), (2, 6));
    assert_eq!((dropped_sequences, dropped_tokens), (0, 0));

    let skipped = WindowOptions { skip: 1, ..filled };
    assert_eq!(windows(&[10, 3, 5], 4, skipped).expect("legal").0, all[1..]);
}

#[test]
fn a_corpus_without_a_window_is_told_with_the_tokens_it_lacks() {
    let options = WindowOptions {
        gbs: 4,
        skip: 2,
        fill_last: false,
    };
    let error = windows(&[10, 3, 9], 4, options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the corpus has 22 tokens, packed into 6 sequences; windows of 4 sequences of 4 tokens \
         with the first 2 skipped need 48 tokens"
    );
    let error = windows(
        &[],
        4,
        WindowOptions {
            fill_last: true,
            ..options
        },
    )
    .unwrap_err();
    assert!(error.to_string().contains("has 0 tokens"), "{error}");

    let packed = Packer::ConcatenateAndCut.pack([1], 4).expect("legal");
    let never = WindowOptions {
        skip: u64::MAX,
        ..options
    };
    let mut windows = packed.windows(&never).expect("legal");
    assert!(windows.next().is_some_and(|window| window.is_err()));
    assert!(windows.next().is_none(), "an error is the last item");
}

#[test]
fn what_cannot_be_packed_is_told_with_its_numbers() {
    let message = |packer, lengths: &[u64], seq_tokens| {
        sequences(packer, lengths, seq_tokens)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(BEST_FIT_2, &[1, 9], 8),
        "sample 2 has 9 tokens, a sequence only 8, and best-fit does not cut samples"
    );
    for packer in [BEST_FIT_2, Packer::ConcatenateAndCut] {
        assert_eq!(
            message(packer, &[1, 1, 0], 8),
            "sample 3 has 0 tokens; legal is at least 1"
        );
        for seq_tokens in [0, 1 << 32] {
            let start = format!("a sequence of {seq_tokens} tokens is not legal");
            assert!(message(packer, &[1], seq_tokens).starts_with(&start));
        }
    }
    let closed = Packer::BestFit { open_sequences: 0 };
    assert!(message(closed, &[1], 8).contains("0 open sequences"));
    for gbs in [0, (1 << 20) + 1] {
        let options = WindowOptions {
            gbs,
            ..WindowOptions::default()
        };
        let error = windows(&[1], 8, options).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("a window of {gbs} sequences is not legal")),
            "{error}"
        );
    }
}

#[test]
fn scaling_rounds_up() {
    let factor = NonZeroU64::new(4).expect("4 is not 0");
    assert_eq!(
        scale([1, 4, 5, 4_294_967_295], factor).collect::<Vec<_>>(),
        [1, 1, 2, 1_073_741_824]
    );
}

/// Best-fit by looking at every open sequence.
fn best_fit_slowly(lengths: &[u64], seq_tokens: u64, open_sequences: usize) -> Vec<Vec<u64>> {
    let mut open: Vec<Vec<u64>> = Vec::new();
    let mut closed = Vec::new();
    let room = |sequence: &Vec<u64>| seq_tokens - sequence.iter().sum::<u64>();
    // `min_by_key` takes the first of equals, and `open` is in the order of opening.
    let fullest = |open: &[Vec<u64>]| (0..open.len()).min_by_key(|&at| room(&open[at]));
    for &length in lengths {
        let holding = (0..open.len()).filter(|&at| room(&open[at]) >= length);
        let at = holding
            .min_by_key(|&at| room(&open[at]))
            .unwrap_or_else(|| {
                if open.len() == open_sequences && length < seq_tokens {
                    closed.push(open.remove(fullest(&open).expect("one is open")));
                }
                open.push(Vec::new());
                open.len() - 1
            });
        open[at].push(length);
        if room(&open[at]) == 0 {
            closed.push(open.remove(at));
        }
    }
    while let Some(at) = fullest(&open) {
        closed.push(open.remove(at));
    }
    closed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn concatenation_keeps_tokens_and_order_and_fills_all_but_the_last(
        lengths in prop::collection::vec(1..40_u64, 0..30),
        seq_tokens in 1..30_u64,
    ) {
        let packed = sequences(Packer::ConcatenateAndCut, &lengths, seq_tokens).unwrap();
        if let Some((last, full)) = packed.split_last() {
            prop_assert!(full.iter().all(|sequence| sequence.iter().sum::<u64>() == seq_tokens));
            prop_assert!((1..=seq_tokens).contains(&last.iter().sum()));
        }
        // The boundaries are those of the samples and of the sequences, and no others.
        let ends = |lengths: &mut dyn Iterator<Item = u64>| {
            lengths.scan(0, |sum, length| { *sum += length; Some(*sum) }).collect::<Vec<u64>>()
        };
        let samples = ends(&mut lengths.iter().copied());
        let total = samples.last().copied().unwrap_or(0);
        let mut expected = samples;
        expected.extend((1..).map(|k| k * seq_tokens).take_while(|&end| end < total));
        expected.sort_unstable();
        expected.dedup();
        prop_assert_eq!(ends(&mut packed.into_iter().flatten()), expected);
    }

    #[test]
    fn best_fit_keeps_every_sample_whole_and_once_and_overfills_nothing(
        lengths in prop::collection::vec(1..=20_u64, 0..60),
        seq_tokens in 20..30_u64,
        open_sequences in 1..6_u64,
    ) {
        let packed = sequences(Packer::BestFit { open_sequences }, &lengths, seq_tokens).unwrap();
        let tokens = |sequence: &Vec<u64>| sequence.iter().sum::<u64>();
        prop_assert!(packed.iter().map(tokens).all(|tokens| (1..=seq_tokens).contains(&tokens)));
        prop_assert_eq!(&packed, &best_fit_slowly(&lengths, seq_tokens, open_sequences as usize));
        let mut placed: Vec<u64> = packed.into_iter().flatten().collect();
        let mut given = lengths;
        placed.sort_unstable();
        given.sort_unstable();
        prop_assert_eq!(placed, given);
    }

    #[test]
    fn windows_are_the_sequences_in_order(
        lengths in prop::collection::vec(1..20_u64, 1..40),
        gbs in 1..5_u64,
        skip in 0..3_u64,
        fill_last in any::<bool>(),
    ) {
        let options = WindowOptions { gbs, skip, fill_last };
        let all = sequences(Packer::ConcatenateAndCut, &lengths, 7).unwrap();
        let expected: Vec<Vec<Vec<u64>>> = (all.chunks(gbs as usize))
            .filter(|chunk| fill_last || chunk.len() as u64 == gbs)
            .skip(skip as usize)
            .map(<[_]>::to_vec)
            .collect();
        match windows(&lengths, 7, options) {
            Ok((packed, dropped_sequences, dropped_tokens)) => {
                prop_assert_eq!(packed.len(), expected.len());
                for (packed, mut expected) in packed.into_iter().zip(expected) {
                    expected.resize(gbs as usize, vec![]);
                    prop_assert_eq!(packed.sequences, expected);
                }
                let rest = if fill_last { 0 } else { all.len() as u64 % gbs };
                prop_assert_eq!(dropped_sequences, rest);
                let dropped = &all[all.len() - rest as usize..];
                prop_assert_eq!(dropped_tokens, dropped.iter().flatten().sum::<u64>());
            }
            Err(error) => {
                prop_assert!(expected.is_empty(), "{error}");
                let there = format!("the corpus has {} tokens", lengths.iter().sum::<u64>());
                prop_assert!(error.to_string().starts_with(&there), "{error}");
            }
        }
    }
}
