use std::collections::BTreeSet;

use libra_sched::{PackedLengths, SampleId, tiles};
use proptest::prelude::*;

use crate::cases::{cases, runs};
use crate::twins;

proptest! {
    #![proptest_config(runs(500))]

    #[test]
    fn every_query_of_every_shard_is_in_exactly_one_tile(case in cases()) {
        let mut seen = BTreeSet::new();
        for tile in case.tiles() {
            for token in tile.tokens() {
                prop_assert!(seen.insert((tile.slot, tile.shard, token)));
            }
        }
        let queries: u32 = case.slots().map(|slot| case.pool.tokens_of(slot)).sum();
        prop_assert_eq!(seen.len() as u32, queries * case.heads.shards());
        let of_a_sample = |slot: u32, token| token < case.pool.tokens_of(slot as usize);
        prop_assert!(seen.iter().all(|&(slot, _, token)| of_a_sample(slot, token)));
    }

    #[test]
    fn no_tile_crosses_a_fragment_or_a_block_and_its_home_holds_it(case in cases()) {
        let block = case.config.block_tokens;
        let each = case.heads.shards() / case.layout.tensor();
        for tile in case.tiles() {
            prop_assert!(!tile.is_empty());
            prop_assert_eq!(tile.start / block, (tile.end - 1) / block);
            let fragment = case
                .layout
                .fragments(tile.slot)
                .iter()
                .find(|f| f.tokens().contains(&tile.start))
                .unwrap();
            prop_assert!(tile.end <= fragment.end);
            let home = case.layout.worker(tile.slot, fragment.rank, tile.shard / each);
            prop_assert_eq!(tile.q_home, home);
        }
    }

    #[test]
    fn work_is_every_pair_of_the_tile_in_every_head_counted(case in cases()) {
        for tile in case.tiles() {
            let mut pairs = 0;
            for sample in case.pool.samples_of(tile.slot as usize) {
                let tokens = case.pool.tokens(SampleId::new(sample));
                let queries = tile.start.max(tokens.start)..tile.end.min(tokens.end);
                if !queries.is_empty() {
                    let local = queries.start - tokens.start..queries.end - tokens.start;
                    let count = local.len() as u64;
                    pairs += twins::mask::pairs(case.config.mask, tokens.len() as u32, local);
                    for above in twins::mask::above(&case.pool, sample) {
                        pairs += count * u64::from(case.pool.length(SampleId::new(above)));
                    }
                }
            }
            prop_assert_eq!(tile.work, pairs * u64::from(case.heads.shard_width()));
        }
    }

    #[test]
    fn work_sums_to_all_pairs_in_all_heads(case in cases()) {
        let proxy = libra_sched::Proxy::Pairs(case.config.mask);
        let pairs: u64 = case.pool.work(proxy).unwrap().iter().sum();
        let work: u64 = case.tiles().iter().map(|tile| tile.work).sum();
        prop_assert_eq!(work, pairs * u64::from(case.heads.q_heads()));
    }

    #[test]
    fn a_tile_names_exactly_the_samples_that_it_meets(case in cases()) {
        for tile in case.tiles() {
            let met: Vec<usize> = case
                .pool
                .samples_of(tile.slot as usize)
                .filter(|&sample| {
                    let tokens = case.pool.tokens(SampleId::new(sample));
                    tile.tokens().any(|token| tokens.contains(&token))
                })
                .collect();
            prop_assert_eq!(tile.samples().collect::<Vec<_>>(), met);
            prop_assert_eq!(tile.reserved, 0);
        }
    }

    #[test]
    fn tiles_are_in_slot_block_shard_order(case in cases()) {
        let tiles = case.tiles();
        let key = |tile: &libra_sched::ShTile| (tile.slot, tile.start, tile.shard);
        prop_assert!(tiles.windows(2).all(|pair| key(&pair[0]) < key(&pair[1])));
    }

    #[test]
    fn a_sample_boundary_more_adds_no_tile(case in cases(), at: prop::sample::Index) {
        let before = case.tiles().len();
        let long: Vec<usize> = (0..case.pool.samples())
            .filter(|&sample| case.pool.length(SampleId::new(sample)) > 1)
            .collect();
        prop_assume!(!long.is_empty());
        let cut = *at.get(&long);
        let lists: Vec<Vec<u32>> = case
            .slots()
            .map(|slot| {
                let of = |sample| {
                    let length = case.pool.length(SampleId::new(sample));
                    if sample == cut { vec![1, length - 1] } else { vec![length] }
                };
                case.pool.samples_of(slot).flat_map(of).collect()
            })
            .collect();
        let pool = PackedLengths::new(case.pool.seq_tokens().into(), lists).unwrap();
        let config = &case.config;
        let after = tiles::cut(&pool, &case.layout, &case.heads, config.mask, config.block_tokens);
        prop_assert_eq!(after.unwrap().len(), before);
    }
}
