//! Planning with a used scratch allocates the plan and nothing else, however it is planned.

mod counting;

use counting::asked;
use libra_sched::placement::{Speed, Speeds};
use libra_sched::plan::Scratch;
use libra_sched::{
    CostTable, HeadSplit, KvFetch, KvRoute, LayoutKind, Mask, Measured, PackedLengths, Placer,
    PlanConfig, ShTile, Slack, Tiling, TokenLayout, Topology, plan_pool_measured,
};

fn pool() -> PackedLengths {
    let sequences = [vec![4096u32], vec![64; 64], vec![1000, 1, 3000, 95]];
    PackedLengths::new(4096, sequences).unwrap()
}

/// Bytes that a second plan asks for, and those that a copy of it asks for with as much room for
/// tiles.
fn again(heads: &HeadSplit, config: &PlanConfig, measured: Measured<'_>) -> (usize, usize) {
    let pool = pool();
    let layout = TokenLayout::new(LayoutKind::Contiguous, 3, 4096, 4).unwrap();
    let mut scratch = Scratch::default();
    let mut plan =
        || plan_pool_measured(&mut scratch, &pool, &layout, heads, config, measured).unwrap();
    drop(plan());
    let (plan, _, total) = asked(&mut plan);
    let stays = config.placer == Placer::Home;
    assert!(plan.exchange.q.is_empty() == stays && !plan.exchange.kv.is_empty());
    let (_copy, _, of_a_copy) = asked(|| plan.clone());
    // Tiles are counted before they are cut, where every fragment may end within a block.
    let room = (plan.tiles.capacity() - plan.tiles.len()) * size_of::<ShTile>();
    (total, of_a_copy + room)
}

/// Every placer with every way of fetching, route and tiling.
fn configs() -> Vec<PlanConfig> {
    let nodes = Topology::new(3).unwrap();
    let placers = [
        Placer::Home,
        Placer::HeadShard,
        Placer::Paper(Slack::PAPER),
        Placer::Export(Slack::PAPER, nodes),
    ];
    // A window with sinks is fetched in two ranges.
    let masks = [Mask::Causal, "window:300,sinks:16".parse().unwrap()];
    let mut configs = Vec::new();
    for placer in placers {
        for kv_fetch in KvFetch::ALL {
            for kv_route in [KvRoute::Direct, KvRoute::Node(nodes)] {
                for tiling in [Tiling::Fixed, Tiling::Adaptive] {
                    configs.extend(masks.map(|mask| PlanConfig {
                        mask,
                        tiling,
                        placer,
                        kv_fetch,
                        kv_route,
                        max_recv_bytes: Some(1 << 40),
                        ..PlanConfig::paper(1024)
                    }));
                }
            }
        }
    }
    configs
}

#[test]
fn a_used_scratch_leaves_only_the_plan_to_allocate() {
    // Runs by times are cut again where a short piece of a sample takes longer, and by work elsewhere.
    let flat = CostTable::new(Mask::Causal, &[64], &[2], &[vec![500.0]]).unwrap();
    let times = [vec![500.0], vec![1e6]];
    let steep = CostTable::new(Mask::Causal, &[64, 4096], &[2], &times).unwrap();
    let slow: Speed = "0.5".parse().unwrap();
    let mut speeds = vec![Speed::NOMINAL; 12];
    speeds[4] = slow;
    let speeds = Speeds::new(speeds);
    for shards in [4, 8] {
        let heads = HeadSplit::new(8, 4, 8, 8, shards, 1).unwrap();
        for config in configs() {
            for costs in [None, Some(&flat), Some(&steep)] {
                for speeds in [None, Some(&speeds)] {
                    let (total, of_a_copy) = again(&heads, &config, Measured { costs, speeds });
                    assert_eq!(total, of_a_copy, "H {shards}, {config:?}");
                }
            }
        }
    }
}
