//! All-gather of K and V: queries lie in zigzag over the CP workers of a sequence and never move; every worker has the keys
//! it reads, then computes. Llama 3 (Grattafiori et al. 2024, arXiv 2407.21783, §3.3.2); the context parallelism of WLB-LLM.
//!
//! The method is a plan, in which a worker fetches the samples that it meets: (CP−1)/CP · L · 2·h_kv·d·b bytes forward where
//! one sample fills the sequence, less where samples are short. For packings whose workers meet every sample there is the
//! same as steps, all keys to all. Nothing is overlapped. O(pieces) a sequence, O(CP · pieces) as steps.

use libra_exec::Steps;
use libra_exec::program::{Leg, Step};
use libra_exec::steps::{Place, Route};
use libra_sched::{
    KvFetch, KvRoute, LayoutKind, PackedLengths, Placer, PlanConfig, PoolPlan, TokenLayout,
    plan_pool,
};

use super::libra::resharded;
use super::pieces::held;
use super::steps::{Scheme, StepWork};
use super::{Group, Work, pools};
use crate::failure::Failure;
use crate::preset::Shapes;

/// A plan a sequence, in arrival order.
pub(super) fn groups(window: &PackedLengths, shapes: &Shapes) -> Result<Vec<Group>, Failure> {
    let (tokens, cp) = (shapes.window.seq_tokens(), shapes.window.cp());
    let layout = TokenLayout::new(LayoutKind::Zigzag, 1, tokens, cp)?;
    pools::each_sequence(window, shapes, |lengths| {
        let work = Work::Plan(Box::new(plan(&lengths, &layout, shapes)?));
        Ok((work, layout.clone()))
    })
}

/// Queries stay where `layout` has them, and fetch whole samples.
fn plan(
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

/// Queries stay where `layout` has those of one sequence; all keys go to all, and backward their gradients back.
pub(super) fn steps(
    lengths: PackedLengths,
    layout: &TokenLayout,
    shapes: &Shapes,
) -> Result<Work, Failure> {
    let held = held(&lengths, layout, 0);
    let work = StepWork::new(lengths, held, shapes, Scheme::Gather)?;
    Ok(Work::Steps(Box::new(work)))
}

/// All keys to all, then everything is computed; backward gradients go home after that.
pub(super) fn gather(steps: &mut Steps) {
    let (workers, samples) = (0..steps.workers(), 0..steps.lengths().samples());
    let (keys, gradients) = (steps.keys_exchange(0), steps.gradients_exchange());
    let there = Place::Arrived(keys);
    for holder in workers.clone() {
        let held = steps.held(holder, &samples);
        for reader in workers.clone() {
            steps.send_keys(
                Route {
                    src: holder,
                    from: Place::Own,
                    dst: reader,
                    to: there,
                },
                &held,
            );
            let back = Route {
                src: reader,
                from: there,
                dst: holder,
                to: Place::Own,
            };
            steps.send_gradients(gradients, back, &held);
        }
    }
    for worker in workers {
        let compute = steps.block(worker, vec![Place::Own, there], samples.clone());
        let forward = [
            Step::Start(Leg::Dispatch, keys),
            Step::Wait(Leg::Dispatch, keys),
            compute,
        ];
        for step in forward {
            steps.forward(worker, step);
            steps.backward(worker, step);
        }
        steps.backward(worker, Step::Start(Leg::Return, gradients));
        steps.backward(worker, Step::Wait(Leg::Return, gradients));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::check::{computed_by_worker, programs, received};
    use crate::baseline::tests::{shapes, window};
    use crate::preset::Preset;
    use crate::simulate::program::Program;

    #[test]
    fn a_sample_that_fills_the_sequence_is_gathered_by_all() {
        let shapes = shapes(Preset::Tiny, |settings| settings.cp = 4);
        for group in &groups(&window(8, 64, || 64), &shapes).expect("legal") {
            let [forward, _] = programs(group);
            assert_eq!(received(&forward), [48 * 2 * 2 * 8 * 2; 4]);
        }
    }

    #[test]
    fn steps_compute_what_the_plan_does_and_bring_gradients_back() {
        let shapes = shapes(Preset::Tiny, |settings| settings.cp = 4);
        let lengths = PackedLengths::new(64, [vec![50u32, 3, 11]]).expect("fits");
        let layout = TokenLayout::new(LayoutKind::Zigzag, 1, 64, 4).expect("legal");
        let Work::Steps(steps) = steps(lengths.clone(), &layout, &shapes).expect("legal") else {
            panic!("steps");
        };
        let programs = steps.lower();
        let forward = Program::forward(programs.workers());
        let backward = Program::backward(programs.workers());
        let plan = plan(&lengths, &layout, &shapes).expect("legal");
        assert_eq!(computed_by_worker(&forward), plan.loads());
        let all = 48 * 2 * 2 * 8 * 2;
        assert_eq!(
            (received(&forward), received(&backward)),
            (vec![all; 4], vec![2 * all; 4])
        );
    }
}
