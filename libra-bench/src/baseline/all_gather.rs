//! All-gather of K and V: queries lie in zigzag over the CP workers of a sequence and never move, every worker fetches the
//! keys of the samples it meets, then computes. Llama 3 (Grattafiori et al. 2024, arXiv 2407.21783, §3.3.2); WLB-LLM's
//! context parallelism.
//!
//! Forward a worker receives up to (CP−1)/CP · L · 2·h_kv·d·b bytes: all of it where one sample fills the sequence, less
//! where it meets only some of the samples. Nothing is overlapped. O(pieces) a sequence.

use libra_sched::{
    KvFetch, KvRoute, LayoutKind, PackedLengths, Placer, PlanConfig, PoolPlan, SequenceId,
    TokenLayout, plan_pool,
};
use rayon::prelude::*;

use super::libra::resharded;
use super::{Group, Work, pools};
use crate::failure::Failure;
use crate::preset::Shapes;

/// A plan a sequence, in arrival order.
pub(super) fn groups(window: &PackedLengths, shapes: &Shapes) -> Result<Vec<Group>, Failure> {
    let (tokens, cp) = (shapes.window.seq_tokens(), shapes.window.cp());
    let layout = TokenLayout::new(LayoutKind::Zigzag, 1, tokens, cp)?;
    let groups: Vec<Result<Group, Failure>> = (0..window.sequences())
        .into_par_iter()
        .map(|sequence| {
            let lengths = window.select(&[SequenceId::new(sequence)])?;
            let work = Work::Plan(Box::new(plan(&lengths, &layout, shapes)?));
            Ok(pools::group(&shapes.window, sequence, work, &layout))
        })
        .collect();
    groups.into_iter().collect()
}

/// Queries stay where `layout` has them, and fetch whole samples.
pub(super) fn plan(
    lengths: &PackedLengths,
    layout: &TokenLayout,
    shapes: &Shapes,
) -> Result<PoolPlan, Failure> {
    let config = PlanConfig {
        block_tokens: lengths.seq_tokens(),
        placer: Placer::Home,
        kv_fetch: KvFetch::Whole,
        kv_route: KvRoute::Direct,
        max_recv_bytes: None,
        ..shapes.plan
    };
    let heads = resharded(&shapes.heads, 1, 1);
    Ok(plan_pool(lengths, layout, &heads, &config)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::check::{programs, received};
    use crate::baseline::tests::{shapes, window};
    use crate::preset::Preset;

    #[test]
    fn a_sample_that_fills_the_sequence_is_gathered_by_all() {
        let shapes = shapes(Preset::Tiny, |settings| settings.cp = 4);
        for group in &groups(&window(8, 64, || 64), &shapes).expect("legal") {
            let [forward, _] = programs(group);
            assert_eq!(received(&forward), [48 * 2 * 2 * 8 * 2; 4]);
        }
    }
}
