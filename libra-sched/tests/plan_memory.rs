//! Planning with a used scratch allocates the plan and nothing else.

mod counting;

use counting::asked;
use libra_sched::plan::Scratch;
use libra_sched::{
    CostTable, HeadSplit, LayoutKind, Mask, Measured, PackedLengths, PlanConfig, ShTile, Slack,
    Tiling, TokenLayout, plan_pool_measured,
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
    assert!(!plan.exchange.q.is_empty() && !plan.exchange.kv.is_empty());
    let (_copy, _, of_a_copy) = asked(|| plan.clone());
    // Tiles are counted before they are cut, where every fragment may end within a block.
    let room = (plan.tiles.capacity() - plan.tiles.len()) * size_of::<ShTile>();
    (total, of_a_copy + room)
}

#[test]
fn a_used_scratch_leaves_only_the_plan_to_allocate() {
    let table = CostTable::new(Mask::Causal, &[64], &[2], &[vec![500.0]]).unwrap();
    let by_time = Measured {
        costs: Some(&table),
        speeds: None,
    };
    for shards in [2, 8] {
        let heads = HeadSplit::new(8, 4, 8, 8, shards, 1).unwrap();
        for measured in [Measured::default(), by_time] {
            let (total, of_a_copy) = again(&heads, &PlanConfig::paper(256), measured);
            assert_eq!(total, of_a_copy);
        }
    }
}

#[test]
fn adaptive_tiles_take_little_more() {
    let config = PlanConfig {
        tiling: Tiling::Adaptive,
        placer: libra_sched::Placer::Paper(Slack::PAPER),
        ..PlanConfig::paper(1024)
    };
    let heads = HeadSplit::new(8, 4, 8, 8, 2, 1).unwrap();
    let (total, of_a_copy) = again(&heads, &config, Measured::default());
    // The tiles as cut, and what growing to hold their parts asks for.
    let (fixed, _) = again(&heads, &PlanConfig::paper(1024), Measured::default());
    assert!(
        total <= of_a_copy + 2 * fixed,
        "{total}, {of_a_copy}, {fixed}"
    );
}
