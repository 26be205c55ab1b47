//! What holds for every method.

use libra_exec::cpu::{CpuPool, ReferenceKernel};
use libra_exec::{PoolOutputs, PoolTensors, unsharded};
use libra_sched::{
    BackwardMode, KvFetch, KvRoute, LayoutKind, PackedLengths, Placer, PlanConfig, TokenLayout,
    plan_pool,
};
use proptest::prelude::*;

use super::check::{check_program, check_schedule, programs, received};
use super::method::Method;
use super::{Schedule, Work};
use crate::failure::Failure;
use crate::preset::{Preset, Settings, Shapes};

/// A preset with what `change` makes of it.
pub(crate) fn shapes(preset: Preset, change: impl FnOnce(&mut Settings)) -> Shapes {
    let mut settings = preset.settings();
    change(&mut settings);
    settings.shapes().expect("legal")
}

/// `gbs` sequences of `tokens` tokens in samples of the lengths that `next` draws, the last one cut.
pub(crate) fn window(gbs: u32, tokens: u32, mut next: impl FnMut() -> u32) -> PackedLengths {
    let sequences = (0..gbs).map(|_| {
        let (mut samples, mut left) = (Vec::new(), tokens);
        while left > 0 {
            let length = next().clamp(1, left);
            samples.push(length);
            left -= length;
        }
        samples
    });
    PackedLengths::new(tokens.into(), sequences).expect("fits")
}

/// Lengths of a window of [`Preset::Tiny`]: 8 sequences of 64 tokens, the last one padded.
fn tiny_window() -> impl Strategy<Value = PackedLengths> {
    let lengths = prop_oneof![3 => 1..12u32, 2 => 12..40u32, 1 => Just(64u32)];
    let cut = |lengths: Vec<u32>| {
        let mut lengths = lengths.into_iter().cycle();
        let full = window(7, 64, || lengths.next().expect("endless"));
        let sequences = (0..7).map(|s| full.lengths_of(s).to_vec());
        let padded = std::iter::once(vec![lengths.next().expect("endless").min(50)]);
        PackedLengths::new(64, sequences.chain(padded)).expect("fits")
    };
    prop::collection::vec(lengths, 1..40).prop_map(cut)
}

fn schedule(method: Method, window: &PackedLengths, shapes: &Shapes) -> Schedule {
    method.schedule(window, shapes).expect("legal shapes")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_pair_is_computed_once_and_every_program_ends(window in tiny_window()) {
        for (cp, dp) in [(2, 4), (1, 2), (4, 8)] {
            let shapes = shapes(Preset::Tiny, |settings| {
                (settings.cp, settings.dp) = (cp, dp);
            });
            for method in Method::ALL {
                check_schedule(&schedule(method, &window, &shapes), &window, &shapes);
            }
        }
    }
}

#[test]
fn every_mask_is_computed_once_by_every_method() {
    let mut lengths = [5, 23, 64, 1, 9, 40].into_iter().cycle();
    let window = window(8, 64, || lengths.next().expect("endless"));
    for mask in [
        "full",
        "window:7,sinks:2",
        "chunked:16",
        "two-sided:3,5",
        "prefix:9",
        "keys:3..20",
    ] {
        let mask = mask.parse().expect("a mask");
        let shapes = shapes(Preset::Tiny, |settings| settings.mask = mask);
        for method in Method::ALL {
            check_schedule(&schedule(method, &window, &shapes), &window, &shapes);
        }
    }
}

/// Largest error of all results.
fn off(results: &PoolOutputs<f64>, exact: &PoolOutputs<f64>) -> f64 {
    let tensors =
        |o: &PoolOutputs<f64>| [&o.o, &o.d_q, &o.d_k, &o.d_v].map(|tensor| tensor.concat());
    let pairs = tensors(results)
        .concat()
        .into_iter()
        .zip(tensors(exact).concat());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn steps_of_every_mask_execute_to_unsharded_attention() {
    let mut lengths = [5, 23, 64, 1, 9, 40].into_iter().cycle();
    let window = window(8, 64, || lengths.next().expect("endless"));
    for mask in [
        "causal",
        "full",
        "window:7,sinks:2",
        "chunked:16",
        "two-sided:3,5",
    ] {
        let mask = mask.parse().expect("a mask");
        let shapes = shapes(Preset::Tiny, |settings| {
            (settings.mask, settings.dp, settings.cp) = (mask, 2, 4);
        });
        let mut merging = 0;
        for method in Method::ALL {
            for group in &schedule(method, &window, &shapes).groups {
                let Work::Steps(steps) = &group.work else {
                    continue;
                };
                merging += 1;
                let programs = steps.lower();
                let lengths = programs.lengths().clone();
                let inputs = programs.random_inputs::<f64>(7);
                let pool = CpuPool::of_steps(programs, ReferenceKernel);
                let run = pool.run(&inputs).expect("runs through");
                // Of the same samples on one worker each.
                let (tokens, slots) = (lengths.seq_tokens(), lengths.sequences() as u32);
                let layout = TokenLayout::new(LayoutKind::Contiguous, slots, tokens, 1);
                let config = PlanConfig {
                    mask,
                    ..PlanConfig::paper(tokens)
                };
                let heads = super::libra::resharded(&shapes.heads, 1, 1);
                let plan = plan_pool(&lengths, &layout.expect("legal"), &heads, &config);
                let expected = unsharded::attention(&plan.expect("legal"), &inputs);
                let off = off(&run.outputs, &expected);
                assert!(off <= 1e-13, "{method} {mask}: off by {off}");
            }
        }
        assert!(merging > 40, "{merging} groups");
    }
}

#[test]
fn plans_execute_to_unsharded_attention() {
    let mut lengths = [5, 23, 64, 1, 9, 40].into_iter().cycle();
    let window = window(8, 64, || lengths.next().expect("endless"));
    let shapes = shapes(Preset::Tiny, |_| {});
    for method in Method::ALL {
        for group in &schedule(method, &window, &shapes).groups {
            let Work::Plan(plan) = &group.work else {
                continue;
            };
            let inputs = PoolTensors::<f64>::random(plan, 7);
            let pool = CpuPool::new(plan, BackwardMode::Recompute, ReferenceKernel);
            let run = pool.run(&inputs).expect("runs through");
            let expected = unsharded::attention(plan, &inputs);
            assert_eq!(run.outputs.o, expected.o, "{method}: bit for bit");
            assert_eq!(run.outputs.d_q, expected.d_q, "{method}: bit for bit");
        }
    }
}

#[test]
fn another_number_of_sequences_is_refused() {
    let shapes = shapes(Preset::Tiny, |_| {});
    let window = window(4, 64, || 64);
    let error = Method::Libra
        .schedule(&window, &shapes)
        .expect_err("half a window");
    assert_eq!(error.to_string(), "4 sequences given, 8 expected (GBS)");
}

#[test]
fn ulysses_moves_what_its_all_to_alls_do() {
    // Two KV heads for four workers: each is there twice.
    for (cp, kv_heads) in [(2u64, 2u64), (4, 2), (4, 4)] {
        let shapes = shapes(Preset::Tiny, |settings| {
            (settings.cp, settings.kv_heads) = (cp as u32, kv_heads as u32);
            settings.head_shards = 2;
        });
        let window = window(8, 64, || 64);
        for group in &schedule(Method::Ulysses, &window, &shapes).groups {
            let (tokens, width, bytes) = (64 / cp, 8, 2);
            let expected = (cp - 1) * tokens * width * bytes * (2 * 4 + 2 * kv_heads.max(cp)) / cp;
            let [forward, _] = programs(group);
            assert_eq!(received(&forward), vec![expected; cp as usize]);
        }
    }
}

#[test]
fn ulysses_is_refused_where_heads_do_not_divide() {
    let shapes = shapes(Preset::Tiny, |settings| settings.cp = 8);
    let error = Method::Ulysses.schedule(&window(8, 64, || 64), &shapes);
    assert!(matches!(error, Err(Failure::Ulysses(_))));
}

#[test]
fn variants_differ_in_what_names_them() {
    let mut lengths = [64, 3, 3, 20, 7].into_iter().cycle();
    let window = window(8, 64, || lengths.next().expect("endless"));
    let shapes = shapes(Preset::Runs256K, |settings| {
        (settings.tokens, settings.gbs, settings.dp, settings.cp) = (64, 8, 4, 2);
        (settings.pool_size, settings.block_tokens) = (2, 8);
    });
    let of = |method| {
        let groups = schedule(method, &window, &shapes).groups;
        let Work::Plan(plan) = groups[0].work.clone() else {
            panic!("{method} is a plan");
        };
        let slots = plan.layout.slots();
        (
            groups.len(),
            slots,
            plan.heads.shards(),
            plan.heads.chunks(),
            plan.kv_fetch,
        )
    };
    assert_eq!(of(Method::Tap), (4, 2, 2, 1, KvFetch::Whole));
    assert_eq!(of(Method::TapVrsp), (4, 2, 2, 1, KvFetch::Whole));
    assert_eq!(of(Method::Paper), (4, 2, 2, 4, KvFetch::Whole));
    assert_eq!(of(Method::DistCa), (2, 4, 2, 4, KvFetch::Whole));
    assert_eq!(of(Method::Libra), (4, 2, 8, 4, KvFetch::Range));
}

#[test]
fn the_same_pools_whatever_the_preset() {
    let mut lengths = [64, 3, 3, 20, 7].into_iter().cycle();
    let window = window(8, 64, || lengths.next().expect("endless"));
    let runs = shapes(Preset::Tiny, |settings| {
        settings.placement = crate::cli::Placement::Export;
        settings.kv = KvFetch::Range;
        settings.kv_route = crate::cli::Route::Node;
    });
    assert!(matches!(runs.plan.placer, Placer::Export(..)));
    assert!(matches!(runs.plan.kv_route, KvRoute::Node(_)));
    let paper = shapes(Preset::Tiny, |_| {});
    for method in Method::ALL {
        let plans = |shapes| -> Vec<_> {
            let groups = schedule(method, &window, shapes).groups;
            groups
                .into_iter()
                .map(|group| format!("{:?}", group.work))
                .collect()
        };
        assert_eq!(plans(&runs), plans(&paper), "{method}");
    }
}

#[test]
#[should_panic(expected = "hangs")]
fn a_program_whose_workers_wait_for_each_other_is_found_out() {
    use crate::simulate::program::{Exchange, Message, Program, Step, Worker};
    let one_way = |peer, is_send: bool| {
        let message = vec![Message { peer, bytes: 1 }];
        let (sends, receives) = if is_send {
            (message, vec![])
        } else {
            (vec![], message)
        };
        Exchange { sends, receives }
    };
    let worker = |peer, first: u32| Worker {
        steps: vec![
            Step::Start(first),
            Step::Wait(first),
            Step::Start(1 - first),
            Step::Wait(1 - first),
        ],
        exchanges: vec![one_way(peer, first == 1), one_way(peer, first == 0)],
        computes: vec![],
    };
    check_program(&Program {
        workers: vec![worker(1, 0), worker(0, 1)],
    });
}
