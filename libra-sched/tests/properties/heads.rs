use libra_sched::HeadSplit;
use proptest::prelude::*;

use crate::cases::{heads, runs};

fn read_by(heads: &HeadSplit, shard: u32, kv_head: u32) -> bool {
    let group = heads.q_heads() / heads.kv_heads();
    let width = heads.q_heads() / heads.shards();
    (shard * width..(shard + 1) * width).any(|q_head| q_head / group == kv_head)
}

proptest! {
    #![proptest_config(runs(800))]

    #[test]
    fn chunks_of_a_shard_are_disjoint_and_cover_it(heads in heads()) {
        let all: Vec<u32> = (0..heads.shards())
            .flat_map(|shard| (0..heads.chunks()).map(move |chunk| (shard, chunk)))
            .flat_map(|(shard, chunk)| heads.q_of_chunk(shard, chunk))
            .collect();
        prop_assert_eq!(all, (0..heads.q_heads()).collect::<Vec<_>>());
        for shard in 0..heads.shards() {
            for chunk in 0..heads.chunks() {
                prop_assert_eq!(heads.q_of_chunk(shard, chunk).len() as u32, heads.chunk_width());
                for head in heads.q_of_chunk(shard, chunk) {
                    prop_assert_eq!(heads.chunk_of_head(head), chunk);
                    prop_assert!(heads.q_of_shard(shard).contains(&head));
                }
            }
        }
    }

    #[test]
    fn new_kv_heads_over_chunks_cover_each_kv_head_of_a_shard_once(heads in heads()) {
        for shard in 0..heads.shards() {
            let fresh: Vec<u32> = (0..heads.chunks())
                .flat_map(|chunk| heads.new_kv_heads(shard, chunk))
                .collect();
            prop_assert_eq!(fresh, heads.kv_of_shard(shard).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_kv_head_is_new_with_the_first_chunk_that_reads_it(heads in heads()) {
        let group = heads.q_heads() / heads.kv_heads();
        for shard in 0..heads.shards() {
            for chunk in 0..heads.chunks() {
                for kv_head in heads.new_kv_heads(shard, chunk) {
                    let reads = |chunk| heads.q_of_chunk(shard, chunk).any(|q| q / group == kv_head);
                    prop_assert!(reads(chunk));
                    prop_assert!(!(0..chunk).any(reads));
                }
            }
        }
    }

    #[test]
    fn a_shard_reads_the_kv_heads_of_its_query_heads(heads in heads()) {
        for shard in 0..heads.shards() {
            for kv_head in 0..heads.kv_heads() {
                let expected = read_by(&heads, shard, kv_head);
                prop_assert_eq!(heads.kv_of_shard(shard).contains(&kv_head), expected);
            }
        }
    }

    #[test]
    fn spans_are_the_coarsest_cut_in_which_shards_read_whole_spans(heads in heads()) {
        let spans: Vec<_> = (0..heads.span_count()).map(|s| heads.kv_of_span(s)).collect();
        let all: Vec<u32> = spans.iter().cloned().flatten().collect();
        prop_assert_eq!(all, (0..heads.kv_heads()).collect::<Vec<_>>());
        for shard in 0..heads.shards() {
            let read: Vec<u32> =
                heads.spans_of_shard(shard).flat_map(|s| heads.kv_of_span(s)).collect();
            prop_assert_eq!(read, heads.kv_of_shard(shard).collect::<Vec<_>>());
        }
        for pair in spans.windows(2) {
            let parts = |shard| {
                read_by(&heads, shard, pair[0].start) != read_by(&heads, shard, pair[1].start)
            };
            prop_assert!((0..heads.shards()).any(parts), "{:?} could be one span", pair);
        }
    }

    #[test]
    fn spans_are_shared_exactly_when_two_shards_read_one(heads in heads()) {
        let readers = |span| {
            (0..heads.shards()).filter(|&s| heads.spans_of_shard(s).contains(&span)).count()
        };
        let shared = (0..heads.span_count()).any(|span| readers(span) > 1);
        prop_assert_eq!(heads.spans_are_shared(), shared);
    }

    #[test]
    fn first_and_last_chunk_of_a_kv_head_are_those_of_its_readers(heads in heads()) {
        for kv_head in 0..heads.kv_heads() {
            let chunks: Vec<u32> = (0..heads.q_heads())
                .filter(|&head| heads.kv_of_head(head) == kv_head)
                .map(|head| heads.chunk_of_head(head))
                .collect();
            let (first, last) = (heads.first_chunk_of_kv(kv_head), heads.last_chunk_of_kv(kv_head));
            prop_assert_eq!(Some(&first), chunks.iter().min());
            prop_assert_eq!(Some(&last), chunks.iter().max());
        }
    }
}

#[test]
fn where_shards_divide_kv_heads_a_span_is_a_shard_and_where_they_are_more_it_is_a_head() {
    let fewer = HeadSplit::new(32, 8, 1, 1, 4, 1).unwrap();
    assert_eq!((fewer.span_count(), fewer.spans_are_shared()), (4, false));
    let more = HeadSplit::new(32, 8, 1, 1, 16, 1).unwrap();
    assert_eq!((more.span_count(), more.spans_are_shared()), (8, true));
    // 6 KV heads over 4 shards of 3 query heads: 0..2 | 1..3 | 3..5 | 4..6.
    let uneven = HeadSplit::new(12, 6, 1, 1, 4, 1).unwrap();
    assert_eq!((uneven.span_count(), uneven.spans_are_shared()), (6, true));
}
