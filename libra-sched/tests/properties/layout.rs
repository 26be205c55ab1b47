use libra_sched::topology::LinkClass;
use libra_sched::{LayoutKind, Topology, WorkerId};
use proptest::option;
use proptest::prelude::*;

use crate::cases::{cases, runs};

proptest! {
    #![proptest_config(runs(500))]

    #[test]
    fn every_token_has_one_home_in_each_tensor_rank(case in cases()) {
        let layout = &case.layout;
        for slot in 0..layout.slots() {
            let mut holders = vec![0; layout.seq_tokens() as usize];
            for rank in 0..layout.ranks() {
                for tokens in layout.held(slot, rank) {
                    tokens.for_each(|token| holders[token as usize] += 1);
                }
            }
            prop_assert!(holders.iter().all(|&count| count == 1));
        }
    }

    #[test]
    fn every_head_has_one_tensor_rank_and_a_shard_has_all_its_heads_there(case in cases()) {
        let (layout, heads) = (&case.layout, &case.heads);
        for tensor in 0..layout.tensor() {
            for head in layout.q_heads_of(heads, tensor) {
                prop_assert_eq!(layout.tensor_of_q(heads, head), tensor);
            }
            for head in layout.kv_heads_of(heads, tensor) {
                prop_assert_eq!(layout.tensor_of_kv(heads, head), tensor);
            }
        }
        for shard in 0..heads.shards() {
            let ranks: Vec<u32> = heads
                .q_of_shard(shard)
                .map(|head| layout.tensor_of_q(heads, head))
                .chain(heads.kv_of_shard(shard).map(|head| layout.tensor_of_kv(heads, head)))
                .collect();
            prop_assert!(ranks.iter().all(|&rank| rank == ranks[0]), "shard {}: {:?}", shard, ranks);
        }
    }

    #[test]
    fn a_worker_is_its_place_in_the_grid(case in cases()) {
        let layout = &case.layout;
        prop_assert_eq!(layout.workers(), layout.slots() * layout.ranks() * layout.tensor());
        for worker in (0..layout.workers()).map(WorkerId) {
            let (slot, rank, tensor) = layout.place_of(worker);
            prop_assert_eq!(layout.worker(slot, rank, tensor), worker);
            prop_assert!(slot < layout.slots() && rank < layout.ranks());
        }
    }

    #[test]
    fn regular_pieces_differ_by_one_token_at_most(tokens in 1u32..200, ranks in 1u32..9) {
        for (kind, pieces) in [(LayoutKind::Contiguous, ranks), (LayoutKind::Zigzag, 2 * ranks)] {
            let layout = libra_sched::TokenLayout::new(kind, 1, tokens, ranks).unwrap();
            for fragment in layout.fragments(0) {
                let len = fragment.tokens().len() as u32;
                prop_assert!(len == tokens / pieces || len == tokens.div_ceil(pieces));
            }
        }
    }

    #[test]
    fn a_link_is_as_slow_as_the_nodes_are_apart(
        a in 0u32..40, b in 0u32..40, gpus in 1u32..9, nodes in option::of(1u32..5),
    ) {
        let topology = Topology::new(gpus).unwrap();
        let topology = nodes.map_or(topology, |nodes| topology.with_pods(nodes).unwrap());
        let class = topology.link(WorkerId(a), WorkerId(b));
        let expected = if a == b {
            LinkClass::Local
        } else if a / gpus == b / gpus {
            LinkClass::IntraNode
        } else if nodes.is_none_or(|nodes| a / (gpus * nodes) == b / (gpus * nodes)) {
            LinkClass::InterNode
        } else {
            LinkClass::InterPod
        };
        prop_assert_eq!(class, expected);
        prop_assert_eq!(class, topology.link(WorkerId(b), WorkerId(a)));
    }
}

#[test]
fn names_of_layouts_parse_back() {
    for kind in [LayoutKind::Contiguous, LayoutKind::Zigzag] {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
}
