use std::collections::{BTreeMap, BTreeSet};

use libra_sched::audit::audit;
use libra_sched::topology::LinkClass;
use libra_sched::{
    Bandwidths, HeadSplit, KvFetch, KvMove, KvRoute, PoolPlan, ShTile, TileMove, Topology,
    WorkerId, exchange,
};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::cases::{Case, cases, runs};
use crate::twins;
use crate::twins::exchange::KeyMove;

/// Every token and head of `moves`.
fn key_by_key(heads: &HeadSplit, moves: &[KvMove]) -> Vec<KeyMove> {
    let mut keys = Vec::new();
    for m in moves {
        for head in heads.kv_of_span(m.span) {
            for token in m.start..m.end {
                let (dst, src, sample) = (m.dst.0, m.src.0, m.sample.0);
                keys.push(KeyMove {
                    dst,
                    sample,
                    head,
                    token,
                    src,
                });
            }
        }
    }
    keys.sort_unstable();
    keys
}

fn twin(case: &Case, tiles: &[ShTile], workers: &[WorkerId]) -> Vec<KeyMove> {
    let Case {
        pool,
        layout,
        heads,
        config,
    } = case;
    twins::exchange::keys(
        pool,
        layout,
        heads,
        tiles,
        workers,
        config.mask,
        config.kv_fetch,
    )
    .into_iter()
    .collect()
}

fn bytes_of_keys(plan: &PoolPlan, keys: usize) -> u64 {
    let width = u64::from(plan.heads.dim_qk()) + u64::from(plan.heads.dim_v());
    keys as u64 * width * u64::from(plan.bytes.activation)
}

proptest! {
    #![proptest_config(runs(500))]

    #[test]
    fn each_key_that_a_worker_reads_and_does_not_hold_arrives_once_from_its_home(case in cases()) {
        let mut case = case;
        case.config.kv_route = KvRoute::Direct;
        let plan = case.plan();
        let moved = key_by_key(&case.heads, &plan.exchange.kv);
        prop_assert_eq!(moved, twin(&case, &plan.tiles, &plan.workers));
        prop_assert_eq!(plan.exchange.forward, vec![]);
    }

    #[test]
    fn each_key_enters_a_node_once_and_reaches_its_other_readers_from_there(
        case in cases(),
        gpus in 1u32..9,
    ) {
        let mut case = case;
        case.config.kv_route = KvRoute::Direct;
        let direct = case.plan();
        let read = twin(&case, &direct.tiles, &direct.workers);
        case.config.kv_route = KvRoute::Node(Topology::new(gpus).unwrap());
        let exchange = case.plan().exchange;
        let first = key_by_key(&case.heads, &exchange.kv);
        let second = key_by_key(&case.heads, &exchange.forward);
        // What each worker gets is what it gets directly, from wherever.
        let there = |keys: &[&[KeyMove]]| {
            let mut there: Vec<_> = keys.concat().iter().map(|k| KeyMove { src: 0, ..*k }).collect();
            there.sort_unstable();
            there
        };
        prop_assert_eq!(there(&[&first, &second]), there(&[&read]));
        let reads: BTreeSet<KeyMove> = read.into_iter().collect();
        prop_assert!(first.iter().all(|key| reads.contains(key)), "a first hop is not from home");
        let entering = first.iter().filter(|k| k.src / gpus != k.dst / gpus);
        let mut relay_of = BTreeMap::new();
        for k in entering {
            let before = relay_of.insert((k.dst / gpus, k.sample, k.head, k.token), k.dst);
            prop_assert_eq!(before, None, "{:?} enters twice", k);
        }
        for k in &second {
            let relay = relay_of.get(&(k.dst / gpus, k.sample, k.head, k.token));
            prop_assert_eq!(relay, Some(&k.src), "{:?}", k);
        }
    }

    #[test]
    fn relays_are_those_of_the_twin(case in cases(), gpus in 1u32..9) {
        let mut case = case;
        case.config.kv_route = KvRoute::Direct;
        let direct = case.plan();
        case.config.kv_route = KvRoute::Node(Topology::new(gpus).unwrap());
        let exchange = case.plan().exchange;
        let workers = case.layout.workers();
        let (first, second) =
            twins::relay::keys(&direct.exchange, &case.heads, &direct.tiles, workers, gpus);
        let sorted = |keys: BTreeSet<KeyMove>| keys.into_iter().collect::<Vec<_>>();
        prop_assert_eq!(key_by_key(&case.heads, &exchange.kv), sorted(first));
        prop_assert_eq!(key_by_key(&case.heads, &exchange.forward), sorted(second));
    }

    #[test]
    fn no_port_carries_more_than_it_would_directly(case in cases(), gpus in 1u32..9) {
        let topology = Topology::new(gpus).unwrap();
        let mut case = case;
        case.config.kv_route = KvRoute::Direct;
        let direct = audit(&case.plan(), topology);
        case.config.kv_route = KvRoute::Node(topology);
        let routed = audit(&case.plan(), topology);
        prop_assert_eq!(direct.kv_bytes, routed.kv_bytes);
        prop_assert_eq!(&direct.received_bytes, &routed.received_bytes);
        prop_assert_eq!(&direct.staged_bytes, &routed.staged_bytes);
        prop_assert_eq!(direct.cross_node_bytes - routed.cross_node_bytes, routed.forward_bytes);
        for (direct, routed) in direct.links.iter().zip(&routed.links) {
            prop_assert!(routed.sent_inter_bytes <= direct.sent_inter_bytes);
            prop_assert!(routed.received_inter_bytes <= direct.received_inter_bytes);
        }
    }

    #[test]
    fn tiles_in_any_order_at_any_worker_fetch_the_same_keys(
        case in cases(),
        other_block in 1u32..24,
        draws in prop::collection::vec((any::<Index>(), any::<Index>()), 0..40),
    ) {
        let all = [case.tiles(), case.tiles_of(other_block)].concat();
        prop_assume!(!all.is_empty());
        let tiles: Vec<ShTile> = draws.iter().map(|(tile, _)| *tile.get(&all)).collect();
        let workers: Vec<WorkerId> = draws
            .iter()
            .map(|(_, worker)| WorkerId::new(worker.index(case.layout.workers() as usize)))
            .collect();
        let Case { pool, layout, heads, .. } = &case;
        let derived = exchange::derive(
            pool, layout, heads, &case.set(&tiles), &workers, case.config.mask, case.config.kv_fetch,
        ).unwrap();
        prop_assert_eq!(key_by_key(heads, &derived.kv), twin(&case, &tiles, &workers));
        prop_assert!(derived.kv.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn ranges_are_never_more_than_whole_groups(case in cases()) {
        let mut case = case;
        case.config.kv_route = KvRoute::Direct;
        let moved = |plan: &PoolPlan| plan.exchange.kv.iter().map(|m| plan.kv_bytes(m)).sum::<u64>();
        case.config.kv_fetch = KvFetch::Range;
        let range = case.plan();
        case.config.kv_fetch = KvFetch::Whole;
        let whole = case.plan();
        prop_assert!(moved(&range) <= moved(&whole));
        prop_assert_eq!(&range.workers, &whole.workers);
        prop_assert_eq!((&range.exchange.q, &range.exchange.o), (&whole.exchange.q, &whole.exchange.o));
    }

    #[test]
    fn nothing_is_sent_to_its_sender(case in cases()) {
        let exchange = case.plan().exchange;
        prop_assert!(exchange.kv.iter().chain(&exchange.forward).all(|m| m.src != m.dst));
        prop_assert!(exchange.q.iter().chain(&exchange.o).all(|m| m.src != m.dst));
    }

    #[test]
    fn queries_and_outputs_move_exactly_where_a_tile_is_away(case in cases()) {
        let plan = case.plan();
        let away = twins::exchange::away(&plan.tiles, &plan.workers);
        let out: Vec<_> = plan.exchange.q.iter().map(|m| (m.tile.0, m.src.0, m.dst.0)).collect();
        let back: Vec<_> = plan.exchange.o.iter().map(|m| (m.tile.0, m.dst.0, m.src.0)).collect();
        prop_assert_eq!(&out, &away);
        prop_assert_eq!(&back, &away);
    }

    #[test]
    fn lists_are_sorted_without_repeats(case in cases()) {
        let exchange = case.plan().exchange;
        for list in [&exchange.kv, &exchange.forward] {
            prop_assert!(list.windows(2).all(|pair| pair[0] < pair[1]));
        }
        for list in [&exchange.q, &exchange.o] {
            prop_assert!(list.windows(2).all(|pair| pair[0].tile < pair[1].tile));
        }
    }

    #[test]
    fn a_kv_move_is_one_whole_fragment_of_its_sample(case in cases()) {
        let mut case = case;
        case.config.kv_fetch = KvFetch::Whole;
        case.config.kv_route = KvRoute::Direct;
        for m in case.plan().exchange.kv {
            let tokens = case.pool.tokens(m.sample);
            let (slot, rank, _) = case.layout.place_of(m.src);
            let whole = case.layout.held(slot, rank).any(|held| {
                (held.start.max(tokens.start), held.end.min(tokens.end)) == (m.start, m.end)
            });
            prop_assert!(whole, "{:?}", m);
        }
    }

    #[test]
    fn bytes_are_those_of_the_audit(case in cases(), gpus in 1u32..9) {
        let plan = case.plan();
        let keys = twin(&case, &plan.tiles, &plan.workers);
        let width = u64::from(plan.heads.q_heads() / plan.heads.shards());
        let dims = u64::from(plan.heads.dim_qk()) + u64::from(plan.heads.dim_v());
        let qo: u64 = plan
            .exchange
            .q
            .iter()
            .map(|m| u64::from(plan.tiles[m.tile.index()].len()) * width * dims)
            .sum();
        let audit = audit(&plan, Topology::new(gpus).unwrap());
        prop_assert_eq!(audit.kv_bytes, bytes_of_keys(&plan, keys.len()));
        prop_assert_eq!(audit.qo_bytes, qo * u64::from(plan.bytes.activation));
        let first = key_by_key(&case.heads, &plan.exchange.kv);
        let second = key_by_key(&case.heads, &plan.exchange.forward);
        let hops = || first.iter().chain(&second);
        let crosses = |src: u32, dst: u32| src / gpus != dst / gpus;
        let across = hops().filter(|k| crosses(k.src, k.dst)).count();
        let qo_across: u64 = plan
            .exchange
            .q
            .iter()
            .filter(|m| m.src.0 / gpus != m.dst.0 / gpus)
            .map(|m| u64::from(plan.tiles[m.tile.index()].len()) * width * dims)
            .sum();
        let cross_node = bytes_of_keys(&plan, across) + qo_across * u64::from(plan.bytes.activation);
        prop_assert_eq!(audit.cross_node_bytes, cross_node);
        prop_assert_eq!(audit.sent_bytes.iter().sum::<u64>(), audit.moved_bytes());
        prop_assert_eq!(audit.received_bytes.iter().sum::<u64>(), audit.moved_bytes());
        prop_assert_eq!(audit.forward_bytes, bytes_of_keys(&plan, second.len()));
        for (worker, links) in (0u32..).zip(&audit.links) {
            let tile_moves = |from: bool, is_inter: bool| -> u64 {
                let here = |m: &&TileMove| {
                    let end = if from { m.src } else { m.dst };
                    end.0 == worker && crosses(m.src.0, m.dst.0) == is_inter
                };
                let q = plan.exchange.q.iter().filter(here).map(|m| plan.q_bytes(m.tile.index()));
                let o = plan.exchange.o.iter().filter(here).map(|m| plan.o_bytes(m.tile.index()));
                q.chain(o).sum()
            };
            let through = |from: bool, is_inter: bool| {
                let here = |k: &&KeyMove| {
                    let end = if from { k.src } else { k.dst };
                    end == worker && crosses(k.src, k.dst) == is_inter
                };
                tile_moves(from, is_inter) + bytes_of_keys(&plan, hops().filter(here).count())
            };
            prop_assert_eq!(links.sent_intra_bytes, through(true, false));
            prop_assert_eq!(links.received_intra_bytes, through(false, false));
            prop_assert_eq!(links.sent_inter_bytes, through(true, true));
            prop_assert_eq!(links.received_inter_bytes, through(false, true));
        }
        let port = audit.links.iter().map(|l| l.sent_inter_bytes.max(l.received_inter_bytes)).max();
        prop_assert_eq!(Some(audit.busiest_port_bytes()), port);
        for worker in 0..plan.layout.workers() {
            let keys = keys.iter().filter(|k| k.dst == worker).count();
            let q: u64 = plan
                .exchange
                .q
                .iter()
                .filter(|m| m.dst.0 == worker)
                .map(|m| plan.q_bytes(m.tile.index()))
                .sum();
            let staged = audit.staged_bytes[worker as usize];
            prop_assert_eq!(staged, bytes_of_keys(&plan, keys) + q);
        }
    }

    #[test]
    fn bytes_between_pods_are_bytes_between_nodes_of_so_many_workers(
        case in cases(), gpus in 1u32..5, nodes in 1u32..4, slow in 1u32..9,
    ) {
        let plan = case.plan();
        let in_pods = audit(&plan, Topology::new(gpus).unwrap().with_pods(nodes).unwrap());
        let of_nodes = audit(&plan, Topology::new(gpus).unwrap());
        let of_pods = audit(&plan, Topology::new(gpus * nodes).unwrap());
        prop_assert_eq!(in_pods.cross_node_bytes, of_nodes.cross_node_bytes);
        prop_assert_eq!(in_pods.cross_pod_bytes, of_pods.cross_node_bytes);
        prop_assert_eq!(of_nodes.cross_pod_bytes, 0);
        for (links, apart) in in_pods.links.iter().zip(&of_pods.links) {
            prop_assert_eq!(links.sent_pod_bytes, apart.sent_inter_bytes);
            prop_assert_eq!(links.received_pod_bytes, apart.received_inter_bytes);
        }
        // Pods that are not oversubscribed change no time; the share of others is a port of its own.
        let full = Bandwidths::default();
        prop_assert_eq!(in_pods.busiest_port_ns(full), of_nodes.busiest_port_ns(full));
        let shared = Bandwidths { pod_mb_s: full.inter_mb_s / slow, ..full };
        let pods_alone = Bandwidths { inter_mb_s: shared.pod_mb_s, ..full };
        prop_assert_eq!(
            in_pods.busiest_port_ns(shared),
            of_nodes.busiest_port_ns(full).max(
                of_pods.busiest_link_ns(LinkClass::InterNode, pods_alone)
            )
        );
    }

    #[test]
    fn audited_loads_are_never_below_their_bound(case in cases()) {
        let plan = case.plan();
        let audit = audit(&plan, Topology::default());
        prop_assert!(audit.loads.iter().max().unwrap() >= &audit.tile_bound);
        prop_assert_eq!(audit.loads.iter().sum::<u64>(), audit.work_total);
        prop_assert_eq!(audit.home_loads.iter().sum::<u64>(), audit.work_total);
    }
}
