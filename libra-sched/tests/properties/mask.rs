use libra_sched::{Error, Mask};
use proptest::prelude::*;

use crate::cases::{masks, runs};
use crate::twins;

fn cut() -> impl Strategy<Value = (u32, [u32; 3])> {
    (1u32..120).prop_flat_map(|len| {
        (Just(len), [0..=len, 0..=len, 0..=len]).prop_map(|(len, mut cuts)| {
            cuts.sort_unstable();
            (len, cuts)
        })
    })
}

/// Samples as long as a sequence may be, and three cuts of one.
fn long_cut() -> impl Strategy<Value = (u32, [u32; 3])> {
    let near = |end: u32| prop_oneof![end - 300..=end, 0..=end];
    near(1 << 30).prop_flat_map(move |len| {
        (Just(len), [0..=len, 0..=len, 0..=len]).prop_map(|(len, mut cuts)| {
            cuts.sort_unstable();
            (len, cuts)
        })
    })
}

/// As [`masks`], with numbers near the longest length.
fn long_masks() -> impl Strategy<Value = Mask> {
    let number = || {
        prop_oneof![
            1u32..1000,
            (1u32 << 30) - 9..=(1 << 30) + 9,
            Just(u32::MAX),
            1..=u32::MAX
        ]
    };
    prop_oneof![
        masks(),
        number().prop_map(|offset| Mask::causal_with_offset(offset).unwrap()),
        (number(), number()).prop_map(|(window, sinks)| Mask::window(window, sinks).unwrap()),
        (number(), number()).prop_map(|(left, right)| Mask::two_sided(left, right)),
        number().prop_map(|chunk| Mask::chunked(chunk).unwrap()),
        (number(), number(), number())
            .prop_map(|(block, local, sinks)| Mask::block_causal(block, local, sinks).unwrap()),
        number().prop_map(|prefix| Mask::prefix(prefix).unwrap()),
        (number(), number()).prop_filter_map("empty", |(start, end)| {
            Mask::restricted(start, end).ok()
        }),
    ]
}

proptest! {
    #![proptest_config(runs(1500))]

    #[test]
    fn pairs_of_adjacent_ranges_add_up(mask in masks(), (len, [a, b, c]) in cut()) {
        prop_assert_eq!(mask.pairs(len, a..b) + mask.pairs(len, b..c), mask.pairs(len, a..c));
    }

    #[test]
    fn pairs_are_the_pairs_of_the_definition_counted(mask in masks(), (len, [a, _, c]) in cut()) {
        prop_assert_eq!(mask.cum_pairs(len, a), twins::mask::pairs(mask, len, 0..a));
        prop_assert_eq!(mask.pairs(len, a..c), twins::mask::pairs(mask, len, a..c));
    }

    #[test]
    fn keys_are_those_that_some_query_reads_and_no_other(
        mask in masks(),
        (len, [a, _, c]) in cut(),
    ) {
        let keys = mask.keys(len, a..c);
        let expected = twins::mask::keys(mask, len, a..c);
        prop_assert_eq!(keys.iter().flatten().collect::<Vec<_>>(), expected.clone());
        prop_assert_eq!(keys.len() as usize, expected.len());
        prop_assert_eq!(keys.is_empty(), expected.is_empty());
        prop_assert!((0..=len).all(|key| keys.contains(key) == expected.contains(&key)));
        let hull = expected.first().map_or(0, |&first| first)..expected.last().map_or(0, |&last| last + 1);
        prop_assert_eq!(keys.hull(), hull);
        // A gap lies between ranges, so that equal sets are equal values.
        let ranges: Vec<_> = keys.iter().collect();
        prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
    }

    #[test]
    fn counts_of_the_longest_samples_do_not_wrap(
        mask in long_masks(),
        (len, [a, b, c]) in long_cut(),
    ) {
        let (first, second) = (mask.pairs(len, a..b), mask.pairs(len, b..c));
        prop_assert_eq!(u128::from(first) + u128::from(second), u128::from(mask.pairs(len, a..c)));
        prop_assert!(u128::from(mask.cum_pairs(len, c)) <= u128::from(len) * u128::from(c));
        for query in [a, b, c] {
            if query < len {
                let keys = u64::from(mask.keys_of(len, query).len());
                prop_assert_eq!(mask.pairs(len, query..query + 1), keys);
            }
        }
    }

    #[test]
    fn a_mask_scaled_down_is_legal_and_reads_no_less(mask in masks(), scale in 1u32..9) {
        let scaled = mask.scaled_down(scale);
        prop_assert_eq!(scaled.to_string().parse(), Ok(scaled));
        prop_assert_eq!(mask.scaled_down(1), mask);
        // Chunks and blocks of another length have their borders elsewhere.
        prop_assume!(!matches!(mask, Mask::Chunked { .. } | Mask::Block { .. }));
        // Each query reads a key for each run of `scale` keys that a query there read before.
        let len = 8 * scale;
        let keys = |query: u32| {
            let own = mask.keys_of(len, query * scale + scale - 1);
            (0..8).filter(move |run| (run * scale..(run + 1) * scale).any(|key| own.contains(key)))
        };
        for query in 0..8 {
            let there = scaled.keys_of(8, query);
            prop_assert!(keys(query).all(|key| there.contains(key)), "{} {} query {}", mask, scaled, query);
        }
    }

    #[test]
    fn texts_of_masks_parse_back(mask in long_masks()) {
        prop_assert_eq!(mask.to_string().parse(), Ok(mask));
    }
}

#[test]
fn pair_counts_of_u32_max_do_not_wrap() {
    assert_eq!(
        Mask::Causal.cum_pairs(u32::MAX, u32::MAX),
        9_223_372_034_707_292_160
    );
    assert_eq!(
        Mask::Full.cum_pairs(u32::MAX, u32::MAX),
        u64::from(u32::MAX) * u64::from(u32::MAX)
    );
}

#[test]
fn each_form_is_the_mask_of_its_constructor() {
    let forms = [
        ("causal", Ok(Mask::Causal)),
        ("full", Ok(Mask::Full)),
        ("causal+4096", Mask::causal_with_offset(4096)),
        ("window:4096", Mask::window(4096, 0)),
        ("window:4096,sinks:64", Mask::window(4096, 64)),
        ("two-sided:512,256", Ok(Mask::two_sided(512, 256))),
        ("chunked:8192", Mask::chunked(8192)),
        ("block:1024,local:4", Mask::block_causal(1024, 4, 0)),
        ("block:1024,local:4,sinks:1", Mask::block_causal(1024, 4, 1)),
        ("prefix:2048", Mask::prefix(2048)),
        ("keys:0..4096", Mask::restricted(0, 4096)),
    ];
    for (text, mask) in forms {
        assert_eq!(text.parse(), mask, "{text}");
        assert_eq!(mask.map(|mask| mask.to_string()), Ok(text.to_owned()));
    }
}

#[test]
fn numbers_that_make_no_mask_are_refused() {
    let zero = |name| Err(Error::Zero { name });
    for (text, error) in [
        ("causal+0", zero("offset of a causal mask")),
        ("window:0", zero("window of a mask")),
        ("chunked:0", zero("chunk of a mask")),
        ("block:0,local:1", zero("block of a mask")),
        ("block:1,local:0", zero("local blocks of a mask")),
        ("prefix:0", zero("prefix of a mask")),
        ("keys:4..4", zero("number of keys of a mask")),
        ("keys:5..4", zero("number of keys of a mask")),
    ] {
        assert_eq!(text.parse::<Mask>(), error, "{text}");
    }
    for text in [
        "",
        "Causal",
        "causal ",
        "causal+",
        "causal+-1",
        "causal++1",
        "window",
        "window:",
        "window:4,",
        "window:4,sinks:",
        "window:4,sinks:1,sinks:2",
        "window:4294967296",
        "two-sided:1",
        "chunked:1,2",
        "block:4",
        "block:4,sinks:1",
        "block:4,sinks:1,local:2",
        "prefix:x",
        "keys:4",
        "keys:1...2",
    ] {
        let legal = Mask::FORMS;
        let value = text.to_owned();
        let expected = Err(Error::UnknownName {
            what: "mask",
            value,
            legal,
        });
        assert_eq!(text.parse::<Mask>(), expected, "{text}");
    }
}
