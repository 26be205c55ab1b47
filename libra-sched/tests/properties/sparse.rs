use libra_sched::{Error, Mask, PackedLengths, Proxy, SampleId, SparseAttention};
use proptest::prelude::*;

use crate::cases::{pools, runs};

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1u32..9, 4 => 1u32..90, 1 => Just(u32::MAX)]
}

fn sparse() -> impl Strategy<Value = SparseAttention> {
    let moba = (number(), number()).prop_map(|(block, top)| SparseAttention::moba(block, top));
    let nsa = [number(), number(), number(), number(), number()]
        .prop_map(|[l, d, b, n, w]| SparseAttention::nsa(l, d, b, n, w));
    prop_oneof![moba, nsa].prop_map(Result::unwrap)
}

/// Whole blocks before the own one of `top`, and the own block up to `query`: one key at a time.
fn top_blocks(query: u32, block: u32, top: u32) -> u64 {
    let own = (0..=query)
        .filter(|key| key / block == query / block)
        .count();
    let before = (0..query / block).take(top as usize - 1).count();
    own as u64 + before as u64 * u64::from(block)
}

/// Compressed token j covers tokens j·stride to j·stride + compress − 1.
fn compressed(query: u32, compress: u32, stride: u32) -> u64 {
    let ends = |j: u64| j * u64::from(stride) + u64::from(compress) - 1;
    (0..=u64::from(query))
        .take_while(|&j| ends(j) <= query.into())
        .count() as u64
}

/// What one query attends to, and the scores that only choose.
fn of_query(sparse: SparseAttention, query: u32) -> (u64, u64) {
    match sparse {
        SparseAttention::Moba { block, top, .. } => {
            (top_blocks(query, block, top), u64::from(query / block))
        }
        SparseAttention::Nsa {
            compress,
            stride,
            block,
            top,
            window,
            ..
        } => {
            let near = (0..=query).rev().take(window as usize).count() as u64;
            let far = compressed(query, compress, stride);
            (far + top_blocks(query, block, top) + near, 0)
        }
        other => panic!("{other} has no twin"),
    }
}

proptest! {
    #![proptest_config(runs(800))]

    #[test]
    fn pairs_are_those_of_each_query_counted(sparse in sparse(), x in 0u32..200) {
        let each = (0..x).map(|query| of_query(sparse, query));
        let (pairs, gates) = each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        prop_assert_eq!(sparse.cum_pairs(x), pairs);
        prop_assert_eq!(sparse.cum_gate_pairs(x), gates);
    }

    #[test]
    fn derived_keys_are_those_of_the_last_query(sparse in sparse(), start in 0u32..99, len in 1u32..99) {
        let last = start + len - 1;
        let expected = match sparse {
            SparseAttention::Moba { block, .. } => u64::from(last / block),
            SparseAttention::Nsa { compress, stride, .. } => compressed(last, compress, stride),
            other => panic!("{other} has no twin"),
        };
        prop_assert_eq!(sparse.derived_keys(start..start + len), expected);
        prop_assert_eq!(sparse.keys_at_most(start..start + len), 0..start + len);
        prop_assert_eq!(sparse.derived_keys(start..start), 0);
        prop_assert!(sparse.keys_at_most(start..start).is_empty());
    }

    #[test]
    fn counts_of_the_longest_samples_do_not_wrap(sparse in sparse(), x in (1u32 << 30) - 99..=1 << 30) {
        // Of at most three branches, none has more pairs than causal attention.
        let causal = u128::from(Mask::Causal.cum_pairs(x, x));
        prop_assert!(u128::from(sparse.cum_pairs(x)) <= 3 * causal);
        prop_assert!(sparse.cum_pairs(x) > sparse.cum_pairs(x - 1));
    }

    #[test]
    fn texts_parse_back(sparse in sparse()) {
        prop_assert_eq!(sparse.to_string().parse(), Ok(sparse));
    }

    #[test]
    fn as_a_proxy_it_weighs_each_sample(sparse in sparse(), window in pools(3, 64)) {
        let work = window.work(Proxy::Sparse(sparse)).unwrap();
        for (sequence, &work) in work.iter().enumerate() {
            let pairs = |&len: &u32| (0..len).map(|query| of_query(sparse, query).0).sum::<u64>();
            prop_assert_eq!(work, window.lengths_of(sequence).iter().map(pairs).sum::<u64>());
        }
    }
}

#[test]
fn top_1_is_chunked_and_moba_counts_as_local_blocks_do() {
    let moba = SparseAttention::moba(8, 1).unwrap();
    assert_eq!(
        moba.cum_pairs(100),
        Mask::chunked(8).unwrap().cum_pairs(100, 100)
    );
    let moba = SparseAttention::moba(8, 3).unwrap();
    let local = Mask::block_causal(8, 3, 0).unwrap();
    assert_eq!(moba.cum_pairs(100), local.cum_pairs(100, 100));
}

#[test]
fn what_makes_no_sparse_attention_is_refused() {
    for text in [
        "moba:0,top:1",
        "moba:1,top:0",
        "nsa:0,stride:1,block:1,top:1,window:1",
    ] {
        let error = text.parse::<SparseAttention>();
        assert!(
            matches!(error, Err(Error::Zero { .. })),
            "{text}: {error:?}"
        );
    }
    for text in [
        "",
        "moba",
        "moba:4",
        "moba:4,top:",
        "nsa:1,stride:1",
        "nsa:1,stride:1,block:1,top:1",
    ] {
        let (what, value, legal) = ("sparse attention", text.to_owned(), SparseAttention::FORMS);
        let expected = Err(Error::UnknownName { what, value, legal });
        assert_eq!(text.parse::<SparseAttention>(), expected, "{text}");
    }
    // A mask's text is no sparse attention, and the other way round.
    assert!("causal".parse::<SparseAttention>().is_err());
    assert!("moba:4,top:2".parse::<Mask>().is_err());
    let tree = PackedLengths::new(8, [vec![4u64, 4]]).unwrap();
    let tree = tree.with_parents(&[None, Some(SampleId(0))]).unwrap();
    let moba = SparseAttention::moba(4, 2).unwrap();
    let refused = tree.work(Proxy::Sparse(moba)).unwrap_err().to_string();
    assert_eq!(
        refused,
        "sparse attention moba:4,top:2 cannot be combined with parents of samples; one of squares, causal pairs"
    );
}
