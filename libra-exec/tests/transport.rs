//! Delays and order of messages change nothing; a silent, absent or foreign peer is a named error.

mod common;

use std::time::Duration;

use common::{Case, case};
use libra_exec::backend::{Tag, Transport};
use libra_exec::cpu::{ChannelTransport, CpuBuffer, CpuDevice, CpuPool, ReferenceKernel, mesh};
use libra_exec::program::{Leg, Step};
use libra_exec::{Failure, PoolTensors};
use libra_sched::{
    BackwardMode, HeadSplit, KvRoute, LayoutKind, PackedLengths, PlanConfig, PlanId, PoolPlan,
    TokenLayout, Topology, WorkerId, plan_pool,
};
use proptest::prelude::*;

type Sends = Vec<(WorkerId, CpuBuffer<f64>)>;

/// A transport that misbehaves in one way.
#[derive(Debug)]
struct Bent {
    inner: ChannelTransport<f64>,
    how: How,
    /// Sends held back until this worker waits.
    held: Vec<(Tag, Sends)>,
    /// Leg and chunk of which some worker is silent: all other waits are more patient, so that those
    /// who wait for the ones who wait are not the first to give up.
    silent: Option<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    /// Sends late, last message first.
    Late,
    /// Never sends anything of this chunk and leg.
    Silent {
        leg: u32,
        chunk: u32,
    },
    /// Says it runs another plan.
    Foreign,
    /// Sends one element less.
    Short,
    Straight,
}

impl Bent {
    fn flush(&mut self) -> Result<(), Failure> {
        for (tag, sends) in std::mem::take(&mut self.held).into_iter().rev() {
            self.inner.start(&(), tag, sends, Vec::new())?;
        }
        Ok(())
    }
}

impl Transport<CpuDevice<f64>> for Bent {
    type Ticket = <ChannelTransport<f64> as Transport<CpuDevice<f64>>>::Ticket;

    fn handshake(&mut self, id: PlanId, deadline: Duration) -> Result<(), Failure> {
        let id = if self.how == How::Foreign {
            PlanId([7; 16])
        } else {
            id
        };
        self.inner.handshake(id, deadline)
    }

    fn start(
        &mut self,
        queue: &(),
        tag: Tag,
        mut sends: Sends,
        receives: Vec<(WorkerId, usize)>,
    ) -> Result<Self::Ticket, Failure> {
        match self.how {
            How::Late => {
                sends.reverse();
                self.held.push((tag, sends));
                self.inner.start(queue, tag, Vec::new(), receives)
            }
            How::Silent { leg, chunk } if (tag.leg, tag.chunk) == (leg, chunk) => {
                self.inner.start(queue, tag, Vec::new(), receives)
            }
            How::Short => {
                let device = CpuDevice::default();
                let cut = |b: &CpuBuffer<f64>| b.as_slice()[1..].to_vec();
                let sends = sends
                    .iter()
                    .map(|(p, b)| (*p, device.buffer(cut(b))))
                    .collect();
                self.inner.start(queue, tag, sends, receives)
            }
            _ => self.inner.start(queue, tag, sends, receives),
        }
    }

    fn wait(
        &mut self,
        queue: &(),
        ticket: Self::Ticket,
        deadline: Duration,
    ) -> Result<Sends, Failure> {
        self.flush()?;
        let is_other = |silent| silent != (ticket.0.leg, ticket.0.chunk);
        let patience = if self.silent.is_some_and(is_other) {
            4
        } else {
            1
        };
        self.inner.wait(queue, ticket, patience * deadline)
    }

    fn abort(&mut self, reason: &str) {
        self.inner.abort(reason);
    }
}

fn bent(workers: u32, how: impl Fn(u32) -> How) -> Vec<Bent> {
    let silent = (0..workers).find_map(|worker| match how(worker) {
        How::Silent { leg, chunk } => Some((leg, chunk)),
        _ => None,
    });
    mesh(workers)
        .into_iter()
        .zip(0..)
        .map(|(inner, worker)| Bent {
            inner,
            how: how(worker),
            held: Vec::new(),
            silent,
        })
        .collect()
}

/// Long enough for a busy machine to run every thread once: only a silent peer may run into it.
const DEADLINE: Duration = Duration::from_secs(15);

/// Two sequences over four workers; most of the work of the first moves to the second's workers.
fn skewed() -> PoolPlan {
    let pool = PackedLengths::new(16, [vec![16u64], vec![2; 8]]).expect("fits");
    let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 16, 2).expect("legal");
    let heads = HeadSplit::new(4, 2, 4, 4, 2, 2).expect("legal");
    plan_pool(&pool, &layout, &heads, &PlanConfig::paper(4)).expect("legal")
}

/// As `skewed`, with two nodes, a KV head that all shards read, and a relay that forwards it.
fn relayed() -> PoolPlan {
    let pool = PackedLengths::new(16, [vec![16u64], vec![2; 8]]).expect("fits");
    let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 16, 2).expect("legal");
    let heads = HeadSplit::new(4, 1, 4, 4, 2, 2).expect("legal");
    let config = PlanConfig {
        kv_route: KvRoute::Node(Topology::new(2).expect("positive")),
        ..PlanConfig::paper(4)
    };
    plan_pool(&pool, &layout, &heads, &config).expect("legal")
}

fn run(how: impl Fn(u32) -> How) -> Result<(), libra_exec::ExecError> {
    run_plan(&skewed(), how)
}

fn run_plan(plan: &PoolPlan, how: impl Fn(u32) -> How) -> Result<(), libra_exec::ExecError> {
    let inputs = PoolTensors::random(plan, 1);
    let pool = CpuPool::new(plan, BackwardMode::Recompute, ReferenceKernel).with_deadline(DEADLINE);
    pool.run_over(&inputs, bent(plan.layout.workers(), how))
        .map(|_| ())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn results_do_not_depend_on_delays_or_order(case in case()) {
        let Case { plan, mode, seed } = case;
        let inputs = PoolTensors::<f64>::random(&plan, seed);
        let pool = CpuPool::new(&plan, mode, ReferenceKernel);
        let straight = pool.run(&inputs).expect("runs").outputs;
        let late = |w| if seed >> (w % 64) & 1 == 0 { How::Late } else { How::Straight };
        let delayed = pool.run_over(&inputs, bent(plan.layout.workers(), late)).expect("runs");
        prop_assert_eq!(straight, delayed.outputs);
    }
}

#[test]
fn the_bent_transport_alone_is_harmless() {
    assert_eq!(run(|_| How::Straight), Ok(()));
}

#[test]
fn a_silent_peer_is_named_with_the_step_that_waited() {
    // At once, so that the deadlines pass together.
    std::thread::scope(|scope| {
        for (leg, chunk) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            scope.spawn(move || {
                let silent = |w| {
                    if w == 0 {
                        How::Silent { leg, chunk }
                    } else {
                        How::Straight
                    }
                };
                let error = run(silent).expect_err("a message is missing");
                let leg = if leg == 0 { Leg::Dispatch } else { Leg::Return };
                assert_eq!(error.step, Some(Step::Wait(leg, chunk)), "{error}");
                assert!(
                    matches!(error.kind, Failure::Stalled { peer, .. } if peer == WorkerId(0)),
                    "{error} must name the silent worker"
                );
            });
        }
    });
}

#[test]
fn a_silent_relay_and_a_silent_reader_are_named_with_the_step_that_waited() {
    let plan = relayed();
    let forward = plan.exchange.forward[0];
    std::thread::scope(|scope| {
        for (worker, leg) in [(forward.src, Leg::Relay), (forward.dst, Leg::Gather)] {
            let plan = &plan;
            scope.spawn(move || {
                // The one KV head travels with the first chunk, and its gradient back with it.
                let silent = How::Silent {
                    leg: leg as u32,
                    chunk: 0,
                };
                let how = |w| if w == worker.0 { silent } else { How::Straight };
                let error = run_plan(plan, how).expect_err("a message is missing");
                assert_eq!(error.step, Some(Step::Wait(leg, 0)), "{error}");
                assert!(
                    matches!(error.kind, Failure::Stalled { peer, .. } if peer == worker),
                    "{error} must name the silent worker"
                );
            });
        }
    });
}

#[test]
fn a_peer_with_another_plan_is_refused_before_anything_is_sent() {
    let error = run(|w| if w == 1 { How::Foreign } else { How::Straight }).expect_err("differs");
    assert!(
        matches!(error.kind, Failure::PlanMismatch { .. }),
        "{error}"
    );
    assert_eq!(error.step, None);
}

#[test]
fn a_message_of_another_size_is_refused() {
    let error = run(|w| if w == 0 { How::Short } else { How::Straight }).expect_err("too short");
    let Failure::MessageSize {
        peer,
        found,
        expected,
    } = error.kind
    else {
        panic!("{error} must be about the size");
    };
    assert_eq!((peer, found + 1), (WorkerId(0), expected));
}

#[test]
fn inputs_of_another_shape_are_refused_with_both_sizes() {
    let plan = skewed();
    let mut inputs = PoolTensors::<f64>::random(&plan, 1);
    inputs.k[1].pop();
    let pool = CpuPool::new(&plan, BackwardMode::Stash, ReferenceKernel);
    let error = pool
        .run(&inputs)
        .expect_err("one element is missing")
        .to_string();
    assert_eq!(
        error,
        "w0, before the first step: tensor K has 127 elements, the program needs 128 (16 x 2 x 4)"
    );
}
