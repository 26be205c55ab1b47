//! The placer that cuts its own runs, and the bound on what any placer moves.

use libra_sched::placement::{self, Problem, Scratch};
use libra_sched::{
    ElementBytes, HeadSplit, KvFetch, LayoutKind, Mask, PackedLengths, Placer, PlanConfig,
    PoolPlan, Slack, TileSet, TokenLayout, Topology, WorkerId, audit, bound, plan_pool, verify,
};
use proptest::prelude::*;

use crate::cases::{Case, cases, paper_cases, runs};

/// A paper case placed by runs on nodes of `gpus`.
fn exported() -> impl Strategy<Value = (Case, Slack)> {
    (paper_cases(), 1u32..10).prop_map(|(mut case, gpus)| {
        let Placer::Paper(slack) = case.config.placer else {
            unreachable!("paper cases are placed by Algorithm 2")
        };
        case.config.placer = Placer::Export(slack, Topology::new(gpus).unwrap());
        (case, slack)
    })
}

fn place(scratch: &mut Scratch, case: &Case) -> (TileSet, placement::Placement) {
    let Placer::Export(slack, topology) = case.config.placer else {
        unreachable!("exported cases only")
    };
    let problem = Problem::new(&case.pool, &case.layout, &case.heads, case.config.bytes).unwrap();
    placement::export_with(scratch, &problem, case.config.mask, topology, slack).unwrap()
}

/// Bytes of a plan in which only the keys that are read travel.
fn moved(pool: &PackedLengths, layout: &TokenLayout, heads: &HeadSplit, placer: Placer) -> u64 {
    let config = PlanConfig {
        placer,
        kv_fetch: KvFetch::Range,
        ..PlanConfig::paper(4096)
    };
    let plan = plan_pool(pool, layout, heads, &config).unwrap();
    audit::audit(&plan, Topology::default()).moved_bytes()
}

fn heaviest(plan: &PoolPlan) -> u64 {
    plan.loads().into_iter().max().unwrap_or(0)
}

proptest! {
    #![proptest_config(runs(600))]

    #[test]
    fn runs_make_plans_without_a_fault((case, _) in exported()) {
        prop_assert_eq!(verify::check(&case.plan()), []);
    }

    #[test]
    fn no_worker_passes_its_target_unless_runs_found_no_room((case, slack) in exported()) {
        let (tiles, placed) = place(&mut Scratch::default(), &case);
        let target = slack.capacity(tiles.work_total(), case.layout.workers());
        if placed.fallbacks == 0 {
            prop_assert!(placed.loads.iter().all(|&load| load <= target));
        }
        prop_assert_eq!(placed.loads.iter().sum::<u64>(), tiles.work_total());
    }

    /// A run is found no room only where single tokens are coarse beside what targets leave.
    #[test]
    fn above_its_target_a_worker_has_at_most_what_found_no_room((case, slack) in exported()) {
        let (tiles, placed) = place(&mut Scratch::default(), &case);
        let target = slack.capacity(tiles.work_total(), case.layout.workers());
        let token = u64::from(case.pool.seq_tokens()) * u64::from(case.heads.shard_width());
        // As many tokens as a worker's cuts round away, all at one worker at the worst.
        let rounding = token * u64::from(case.layout.workers()) * 2;
        prop_assert!(placed.loads.iter().all(|&load| load <= target.saturating_add(rounding)));
    }

    #[test]
    fn where_every_home_is_within_its_target_only_tails_move((mut case, _) in exported()) {
        let Placer::Export(_, topology) = case.config.placer else { unreachable!() };
        case.config.placer = Placer::Export(Slack::UNBOUNDED, topology);
        let (tiles, placed) = place(&mut Scratch::default(), &case);
        for (tile, &worker) in tiles.iter().zip(&placed.workers) {
            if worker == tile.q_home {
                continue;
            }
            // One sample, to its very end, to the worker of the tokens before.
            prop_assert_eq!(tile.samples, 1);
            let tokens = case.pool.tokens(tile.first_sample);
            prop_assert_eq!(tile.end, tokens.end);
            prop_assert!(tile.start > tokens.start);
            let before = tiles.iter().zip(&placed.workers).find(|(other, _)| {
                (other.slot, other.shard, other.end) == (tile.slot, tile.shard, tile.start)
            });
            prop_assert_eq!(before.map(|(_, &worker)| worker), Some(worker));
        }
    }

    #[test]
    fn a_used_scratch_changes_no_run((first, _) in exported(), (second, _) in exported()) {
        let mut scratch = Scratch::default();
        place(&mut scratch, &first);
        prop_assert_eq!(place(&mut scratch, &second), place(&mut Scratch::default(), &second));
    }

    #[test]
    fn no_plan_moves_less_than_the_bound_at_its_own_heaviest_worker(case in cases()) {
        let plan = case.plan();
        let least = bound::moved_bytes(&plan, heaviest(&plan));
        let found = audit::audit(&plan, Topology::default());
        prop_assert!(found.qo_bytes >= least.qo_bytes, "{} {least:?}", found.qo_bytes);
        prop_assert!(found.kv_bytes >= least.kv_bytes, "{} {least:?}", found.kv_bytes);
    }
}

#[test]
fn a_sample_over_all_workers_is_cut_into_runs_of_equal_work() {
    let pool = PackedLengths::new(1 << 16, [vec![1u64 << 16]]).unwrap();
    let layout = TokenLayout::new(LayoutKind::Contiguous, 1, 1 << 16, 8).unwrap();
    let heads = HeadSplit::new(8, 8, 64, 64, 8, 1).unwrap();
    let problem = Problem::new(&pool, &layout, &heads, ElementBytes::BF16).unwrap();
    for ppm in [0, 5_000, 30_000] {
        let slack = Slack::from_ppm(ppm).unwrap();
        let placed = placement::export_with(
            &mut Scratch::default(),
            &problem,
            Mask::Causal,
            Topology::default(),
            slack,
        );
        let (tiles, placed) = placed.unwrap();
        let mean = tiles.work_total() / 8;
        let worst = placed.loads.iter().copied().max().unwrap();
        // A token is at most a ten-thousandth of a worker's work here.
        assert!(
            worst <= mean + mean / 1000 + slack.capacity(mean, 1) - mean,
            "{ppm}: {worst}"
        );
        assert!(placed.workers.contains(&WorkerId(0)));
    }
}

/// Over sixteen workers the last ones read nearly all keys in every shard that they keep, and four
/// query heads share a KV head: exchanging late tokens for shards moves less.
#[test]
fn late_tokens_of_a_long_sample_are_gathered_in_few_shards() {
    let pool = PackedLengths::new(1 << 16, [vec![1u64 << 16]]).unwrap();
    let kind = LayoutKind::Contiguous;
    let layout = TokenLayout::new(kind, 1, 1 << 16, 16).unwrap();
    let heads = HeadSplit::new(32, 8, 64, 64, 8, 1).unwrap();
    let nodes = Topology::new(16).unwrap();
    let moved = |placer| moved(&pool, &layout, &heads, placer);
    let (home, runs) = (
        moved(Placer::Home),
        moved(Placer::Export(Slack::PAPER, nodes)),
    );
    // Shard by shard as they are freed it would be 0.71 of it.
    assert!(runs * 100 < home * 67, "{runs} of {home}");
}

/// A reader more of a long sample reads nearly all its keys, so that lines must not end where nodes
/// do: on nodes of two workers they would move a sixth more than on one node.
#[test]
fn a_sequence_over_several_nodes_moves_no_more_than_over_one() {
    let short = vec![256u64; 32];
    let pool = PackedLengths::new(8192, [vec![8192], short.clone(), short.clone(), short]).unwrap();
    let kind = LayoutKind::Contiguous;
    let layout = TokenLayout::new(kind, 4, 8192, 8).unwrap();
    let heads = HeadSplit::new(32, 8, 128, 128, 8, 4).unwrap();
    let moved = |gpus| {
        let nodes = Topology::new(gpus).unwrap();
        moved(&pool, &layout, &heads, Placer::Export(Slack::PAPER, nodes))
    };
    let one = moved(8);
    for gpus in [4, 2, 1] {
        let several = moved(gpus);
        assert!(several * 100 <= one * 101, "{gpus}: {several} and {one}");
    }
}

/// Without slack rooms fill up before the last tokens are placed. What is left goes to many workers:
/// all of it at one would be a fifth of the mean.
#[test]
fn what_finds_no_room_is_spread() {
    let pool = PackedLengths::new(8192, [vec![], vec![], vec![8189u64]]).unwrap();
    let kind = LayoutKind::Contiguous;
    let layout = TokenLayout::new(kind, 3, 8192, 64).unwrap();
    let heads = HeadSplit::new(4, 1, 64, 64, 4, 1).unwrap();
    let problem = Problem::new(&pool, &layout, &heads, ElementBytes::BF16).unwrap();
    let nodes = Topology::new(8).unwrap();
    let slack = Slack::from_ppm(0).unwrap();
    let placed = placement::export_with(
        &mut Scratch::default(),
        &problem,
        Mask::Causal,
        nodes,
        slack,
    );
    let (tiles, placed) = placed.unwrap();
    assert!(placed.fallbacks > 0);
    let mean = tiles.work_total() / 192;
    let heaviest = placed.loads.iter().copied().max().unwrap();
    assert!(heaviest * 1000 <= mean * 1002, "{heaviest} beside {mean}");
}

/// Three nodes a pod: what the first frees fits the two beside it, and the fifth has more room than
/// either.
#[test]
fn runs_stay_in_their_pod_where_it_has_room() {
    let of = |len: u32| vec![len; (4096 / len) as usize];
    let pod = [of(2048), of(512), of(512)];
    let other = [vec![1843u32, 1843, 410], of(204), of(1024)];
    let pool = PackedLengths::new(4096, [pod, other].concat()).unwrap();
    let kind = LayoutKind::Contiguous;
    let layout = TokenLayout::new(kind, 6, 4096, 2).unwrap();
    let heads = HeadSplit::new(8, 8, 16, 16, 8, 1).unwrap();
    let nodes = Topology::new(2).unwrap();
    let pods = nodes.with_pods(3).unwrap();
    let between_pods = |topology| {
        let slack = Slack::from_ppm(100_000).unwrap();
        let config = PlanConfig {
            placer: Placer::Export(slack, topology),
            ..PlanConfig::paper(128)
        };
        let plan = plan_pool(&pool, &layout, &heads, &config).unwrap();
        audit::audit(&plan, pods).cross_pod_bytes
    };
    assert!(between_pods(nodes) > 0);
    assert_eq!(between_pods(pods), 0);
}

#[test]
fn the_bound_of_a_sample_on_two_workers_is_what_must_cross() {
    // 8 tokens, 4 a worker, one head: 36 pairs, 10 at home of the first worker, 26 of the second.
    let pool = PackedLengths::new(8, [vec![8u64]]).unwrap();
    let layout = TokenLayout::new(LayoutKind::Contiguous, 1, 8, 2).unwrap();
    let heads = HeadSplit::new(1, 1, 1, 1, 1, 1).unwrap();
    let mut config = PlanConfig::paper(1);
    config.bytes.activation = 1;
    let plan = plan_pool(&pool, &layout, &heads, &config).unwrap();
    let least = bound::moved_bytes(&plan, 18);
    // 8 of the 26 must leave: one token of 8 keys; Q and O of it are 2 bytes.
    assert_eq!(least.qo_bytes, 2);
    // The worker with the last token reads 8 keys, the other up to where 18 pairs are left (6), and
    // together they hold 8: 6 tokens of K and V.
    assert_eq!(least.kv_bytes, 12);
    assert_eq!(
        bound::moved_bytes(&plan, 36),
        bound::BytesBound {
            qo_bytes: 0,
            // Whoever has the last token reads 8 keys and holds 4.
            kv_bytes: 8
        }
    );
}
