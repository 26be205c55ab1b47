//! Programs of steps compute unsharded attention, up to the order of sums.

mod common;

use std::time::Duration;

use common::masks;
use libra_exec::backend::{Tag, Transport};
use libra_exec::cpu::{
    ChannelTransport, CpuBuffer, CpuDevice, CpuPool, FastKernel, ReferenceKernel, mesh,
};
use libra_exec::program::{Leg, Step};
use libra_exec::steps::{Piece, ring};
use libra_exec::{Failure, PoolOutputs, StepPrograms, Steps, unsharded};
use libra_sched::{
    ElementBytes, HeadSplit, LayoutKind, Mask, PackedLengths, PlanConfig, PlanId, PoolPlan,
    SampleId, TokenLayout, WorkerId, plan_pool,
};
use proptest::prelude::*;

/// h_q, h_kv, d_qk, d_v.
const HEADS: [(u32, u32, u32, u32); 4] = [(4, 4, 3, 3), (4, 2, 3, 2), (4, 1, 2, 4), (6, 2, 4, 4)];

/// Who holds the tokens of each sample: lengths and workers of consecutive parts.
type Cuts = Vec<Vec<(u32, u32)>>;

#[derive(Clone, Debug)]
struct Case {
    lengths: PackedLengths,
    held: Vec<Vec<Piece>>,
    heads: HeadSplit,
    mask: Mask,
    seed: u64,
}

/// One sequence of up to five samples over up to five workers: contiguous shards, zigzag, every sample in zigzag, or tokens
/// anywhere.
fn cases() -> impl Strategy<Value = Case> {
    let samples = prop::collection::vec(1..14u32, 1..6);
    let anywhere = prop::collection::vec((1..6u32, 0..5u32), 1..12);
    (
        samples,
        1..6u32,
        0..4u32,
        anywhere,
        masks(),
        0..HEADS.len(),
        any::<u64>(),
    )
        .prop_map(
            |(samples, workers, sharding, anywhere, mask, heads, seed)| {
                let (h_q, h_kv, d_qk, d_v) = HEADS[heads];
                let tokens: u32 = samples.iter().sum();
                let cuts = match sharding {
                    0 => whole(&samples, &even(tokens, workers, workers, |part| part)),
                    1 => whole(&samples, &zigzag(tokens, workers)),
                    2 => samples
                        .iter()
                        .map(|&sample| zigzag(sample, workers))
                        .collect(),
                    _ => {
                        let parts = anywhere
                            .iter()
                            .map(|&(len, worker)| (len, worker % workers));
                        whole(
                            &samples,
                            &parts.cycle().take(tokens as usize).collect::<Vec<_>>(),
                        )
                    }
                };
                Case {
                    held: held(&cuts, workers),
                    lengths: PackedLengths::new(tokens.into(), [samples]).expect("fits"),
                    heads: HeadSplit::new(h_q, h_kv, d_qk, d_v, 1, 1).expect("legal"),
                    mask,
                    seed,
                }
            },
        )
}

/// `count` parts of a sequence, the first ones a token longer where they do not divide it.
fn even(tokens: u32, count: u32, workers: u32, worker: impl Fn(u32) -> u32) -> Vec<(u32, u32)> {
    let len = |part| tokens / count + u32::from(part < tokens % count);
    (0..count)
        .map(|part| (len(part), worker(part) % workers))
        .collect()
}

fn zigzag(tokens: u32, workers: u32) -> Vec<(u32, u32)> {
    even(tokens, 2 * workers, workers, |part| {
        part.min(2 * workers - 1 - part)
    })
}

/// Parts of a sequence as parts of its samples.
fn whole(samples: &[u32], parts: &[(u32, u32)]) -> Cuts {
    let mut parts = parts.iter().copied();
    let (mut left, mut worker) = (0, 0);
    let mut cut = |mut sample: u32| {
        let mut own = Vec::new();
        while sample > 0 {
            while left == 0 {
                (left, worker) = parts.next().expect("parts cover the sequence");
            }
            let here = sample.min(left);
            own.push((here, worker));
            (sample, left) = (sample - here, left - here);
        }
        own
    };
    samples.iter().map(|&sample| cut(sample)).collect()
}

fn held(cuts: &Cuts, workers: u32) -> Vec<Vec<Piece>> {
    let mut held = vec![Vec::new(); workers as usize];
    for (sample, parts) in cuts.iter().enumerate() {
        let mut start = 0;
        for &(len, worker) in parts.iter().filter(|(len, _)| *len > 0) {
            let (sample, end) = (SampleId::new(sample), start + len);
            held[worker as usize].push(Piece { sample, start, end });
            start = end;
        }
    }
    held
}

impl Case {
    fn steps(&self) -> Steps {
        let (lengths, held) = (self.lengths.clone(), self.held.clone());
        Steps::new(lengths, held, &self.heads, self.mask, ElementBytes::F64).expect("no trees")
    }

    fn ring(&self) -> StepPrograms {
        let mut steps = self.steps();
        let team: Vec<u32> = (0..steps.workers()).collect();
        ring(&mut steps, &team, 0..self.lengths.samples());
        steps.finish()
    }

    /// Lengths, head counts and mask, for attention without a plan.
    fn plan(&self) -> PoolPlan {
        let tokens = self.lengths.seq_tokens();
        let slots = self.lengths.sequences() as u32;
        let layout = TokenLayout::new(LayoutKind::Contiguous, slots, tokens, 1).expect("legal");
        let config = PlanConfig {
            mask: self.mask,
            ..PlanConfig::paper(tokens)
        };
        plan_pool(&self.lengths, &layout, &self.heads, &config).expect("legal")
    }
}

/// Each tensor's largest error over the largest magnitude, which counts as 1 where it is less: terms of about 1 cancel.
fn errors(results: &PoolOutputs<f64>, exact: &PoolOutputs<f64>) -> [f64; 4] {
    let error = |results: &[Vec<f64>], exact: &[Vec<f64>]| {
        let pairs = results.iter().flatten().zip(exact.iter().flatten());
        let off = pairs.map(|(a, b)| (a - b).abs());
        // No number is at any distance from a NaN.
        let off = off.fold(0.0, |most: f64, x| if x <= most { most } else { x });
        off / exact
            .iter()
            .flatten()
            .fold(1.0f64, |most, x| most.max(x.abs()))
    };
    [
        error(&results.o, &exact.o),
        error(&results.d_q, &exact.d_q),
        error(&results.d_k, &exact.d_k),
        error(&results.d_v, &exact.d_v),
    ]
}

/// Roundings that are legal in f64: sums of a few tens of terms in another order.
const ROUNDINGS: f64 = 64.0;

fn check_f64(programs: StepPrograms, case: &Case) -> Result<(), TestCaseError> {
    let inputs = programs.random_inputs::<f64>(case.seed);
    let run = CpuPool::of_steps(programs, ReferenceKernel)
        .run(&inputs)
        .expect("runs");
    let exact = unsharded::attention(&case.plan(), &inputs);
    for (name, error) in ["O", "dQ", "dK", "dV"]
        .iter()
        .zip(errors(&run.outputs, &exact))
    {
        prop_assert!(
            error <= ROUNDINGS * f64::EPSILON,
            "{} is off by {}",
            name,
            error
        );
    }
    for worker in &run.workers {
        prop_assert_eq!((worker.kept_elements, worker.left_elements), (0, 0));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_ring_computes_unsharded_attention(case in cases()) {
        check_f64(case.ring(), &case)?;
    }

    #[test]
    fn a_ring_moves_all_keys_but_the_next_ones_and_backward_every_gradient_once_around(case in cases()) {
        let programs = case.ring();
        let inputs = programs.random_inputs::<f64>(case.seed);
        let run = CpuPool::of_steps(programs, ReferenceKernel).run(&inputs).expect("runs");
        let heads = &case.heads;
        let token = u64::from(heads.kv_heads() * (heads.dim_qk() + heads.dim_v())) * 8;
        let tokens = |held: &Vec<Piece>| held.iter().map(|p| u64::from(p.len())).sum::<u64>();
        let all: u64 = case.held.iter().map(tokens).sum();
        let count = case.held.len();
        for (worker, run) in run.workers.iter().enumerate() {
            let keys = (all - tokens(&case.held[(worker + 1) % count])) * token;
            let gradients = if count == 1 { 0 } else { all * token };
            prop_assert_eq!(run.forward.sent_bytes(), keys);
            prop_assert_eq!(run.backward.sent_bytes(), keys + gradients);
        }
    }

    #[test]
    fn teams_beside_and_after_each_other_compute_unsharded_attention(
        lengths in prop::collection::vec(2..12u32, 1..6),
        teams in prop::collection::vec(0..3usize, 6),
        mask in masks(),
        seed in any::<u64>(),
    ) {
        // Workers 0 and 1, worker 2, workers 3 to 5.
        let of_team: [&[u32]; 3] = [&[0, 1], &[2], &[3, 4, 5]];
        let cut = |(&len, &team): (&u32, &usize)| {
            let count = of_team[team].len() as u32;
            let parts = zigzag(len, count);
            parts.into_iter().map(|(len, part)| (len, of_team[team][part as usize])).collect()
        };
        let cuts: Cuts = lengths.iter().zip(&teams).map(cut).collect();
        let case = Case {
            held: held(&cuts, 6),
            // Samples in sequences of their own.
            lengths: PackedLengths::new(12, lengths.iter().map(|&len| [len])).expect("fits"),
            heads: HeadSplit::new(4, 2, 3, 2, 1, 1).expect("legal"),
            mask,
            seed,
        };
        let mut steps = case.steps();
        for (sample, &team) in (0..case.lengths.samples()).zip(&teams) {
            ring(&mut steps, of_team[team], sample..sample + 1);
        }
        check_f64(steps.finish(), &case)?;
    }

    #[test]
    fn runs_of_the_fast_kernel_are_equal_and_near(case in cases()) {
        let programs = case.ring();
        let inputs = programs.random_inputs::<f64>(case.seed);
        let (exact, single) = (unsharded::attention(&case.plan(), &inputs), inputs.cast::<f32>());
        let plain = unsharded::attention(&case.plan(), &single).cast::<f64>();
        let pool = CpuPool::of_steps(programs, FastKernel);
        let run = pool.run(&single).expect("runs");
        prop_assert_eq!(&run.outputs, &pool.run(&single).expect("runs").outputs);
        let off = errors(&run.outputs.cast::<f64>(), &exact);
        for (name, (off, plain)) in ["O", "dQ", "dK", "dV"].iter().zip(off.into_iter().zip(errors(&plain, &exact))) {
            let allowed = (2.0 * plain).max(ROUNDINGS * f64::from(f32::EPSILON));
            prop_assert!(off <= allowed, "{} is off by {}, allowed {}", name, off, allowed);
        }
    }
}

/// A transport that never sends anything of one exchange.
#[derive(Debug)]
struct Silent {
    inner: ChannelTransport<f64>,
    exchange: Option<(Leg, u32)>,
}

type Sends = Vec<(WorkerId, CpuBuffer<f64>)>;

impl Transport<CpuDevice<f64>> for Silent {
    type Ticket = <ChannelTransport<f64> as Transport<CpuDevice<f64>>>::Ticket;

    fn handshake(&mut self, id: PlanId, deadline: Duration) -> Result<(), Failure> {
        self.inner.handshake(id, deadline)
    }

    fn start(
        &mut self,
        queue: &(),
        tag: Tag,
        sends: Sends,
        receives: Vec<(WorkerId, usize)>,
    ) -> Result<Self::Ticket, Failure> {
        let is_silent = self
            .exchange
            .is_some_and(|(leg, n)| (leg as u32, n) == (tag.leg, tag.chunk));
        let sends = if is_silent { Vec::new() } else { sends };
        self.inner.start(queue, tag, sends, receives)
    }

    fn wait(
        &mut self,
        queue: &(),
        ticket: Self::Ticket,
        deadline: Duration,
    ) -> Result<Sends, Failure> {
        // Those who wait for the ones who wait are more patient.
        let is_silent = |(leg, n): (Leg, u32)| (leg as u32, n) == (ticket.0.leg, ticket.0.chunk);
        let patience = if self.exchange.is_some_and(is_silent) {
            1
        } else {
            8
        };
        self.inner.wait(queue, ticket, patience * deadline)
    }

    fn abort(&mut self, reason: &str) {
        self.inner.abort(reason);
    }
}

fn three_workers() -> Case {
    let cuts = whole(&[7, 5], &even(12, 3, 3, |part| part));
    Case {
        held: held(&cuts, 3),
        lengths: PackedLengths::new(12, [[7u32, 5]]).expect("fits"),
        heads: HeadSplit::new(4, 2, 3, 2, 1, 1).expect("legal"),
        mask: Mask::Causal,
        seed: 3,
    }
}

#[test]
fn a_missing_message_is_a_timeout_that_names_peer_and_step() {
    std::thread::scope(|scope| {
        for (leg, exchange) in [
            (Leg::Dispatch, 0),
            (Leg::Dispatch, 1),
            (Leg::Return, 0),
            (Leg::Return, 2),
        ] {
            scope.spawn(move || {
                let programs = three_workers().ring();
                let inputs = programs.random_inputs::<f64>(1);
                let pool = CpuPool::of_steps(programs, ReferenceKernel)
                    .with_deadline(Duration::from_secs(5));
                let ends = (0..3).zip(mesh(3)).map(|(_, inner)| Silent {
                    inner,
                    exchange: Some((leg, exchange)),
                });
                let error = pool
                    .run_over(&inputs, ends.collect())
                    .expect_err("a message is missing");
                assert_eq!(error.step, Some(Step::Wait(leg, exchange)), "{error}");
                assert!(matches!(error.kind, Failure::Stalled { .. }), "{error}");
            });
        }
    });
}

#[test]
fn workers_with_other_programs_refuse_each_other() {
    let case = three_workers();
    let ids = |programs: &StepPrograms| programs.workers()[0].plan_id;
    let (one, same) = (case.ring(), case.ring());
    assert_eq!(ids(&one), ids(&same));
    let mut moved = case.clone();
    let piece = moved.held[0].pop().expect("some");
    moved.held[1].insert(0, piece);
    assert_ne!(ids(&one), ids(&moved.ring()));
    let mut masked = case;
    masked.mask = Mask::Full;
    assert_ne!(ids(&one), ids(&masked.ring()));
}

#[test]
fn tokens_held_twice_or_by_nobody_are_refused() {
    let case = three_workers();
    let said = |damage: fn(&mut Vec<Vec<Piece>>)| {
        let mut held = case.held.clone();
        damage(&mut held);
        let lengths = case.lengths.clone();
        let steps = Steps::new(lengths, held, &case.heads, case.mask, ElementBytes::F64);
        steps.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(said(|_| ()), Ok(()));
    assert_eq!(said(|held| held[1].reverse()), Ok(()), "any order will do");
    let damages: [fn(&mut Vec<Vec<Piece>>); 4] = [
        |held| held[0][0].end -= 1,
        |held| held[1][0].start -= 1,
        |held| held.truncate(2),
        |held| {
            let piece = held[0][0];
            held[2].push(piece);
        },
    ];
    for damage in damages {
        let said = said(damage).expect_err("damaged");
        assert!(said.contains("token of a sample"), "{said}");
    }
    let said_of = |piece: Piece| {
        let mut held = case.held.clone();
        held[0].push(piece);
        let lengths = case.lengths.clone();
        let steps = Steps::new(lengths, held, &case.heads, case.mask, ElementBytes::F64);
        steps.expect_err("damaged").to_string()
    };
    let (sample, start, end) = (SampleId(99), 0, 3);
    let beyond = said_of(Piece { sample, start, end });
    assert!(beyond.contains("99"), "{beyond}");
}

#[test]
fn trees_are_refused() {
    let case = three_workers();
    let lengths = case.lengths.with_parents(&[None, Some(SampleId(0))]);
    let lengths = lengths.expect("an earlier sample");
    let error = Steps::new(
        lengths,
        case.held,
        &case.heads,
        case.mask,
        ElementBytes::F64,
    );
    assert_eq!(
        error.expect_err("no plan").to_string(),
        "execution by steps cannot be combined with samples that continue others; one of plans"
    );
}
