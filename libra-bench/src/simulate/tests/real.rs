//! Simulated messages are those that the cpu backend sends, one by one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use libra_exec::backend::{Tag, Transport};
use libra_exec::cpu::{ChannelTransport, CpuBuffer, CpuDevice, CpuPool, ReferenceKernel, mesh};
use libra_exec::program::Leg;
use libra_exec::{Failure, PoolTensors, RankProgram};
use libra_sched::placement::Slack;
use libra_sched::{
    BackwardMode, ElementBytes, HeadSplit, KvFetch, KvRoute, LayoutKind, PackedLengths, Placer,
    PlanConfig, PlanId, PoolPlan, TokenLayout, Topology, WorkerId, plan_pool,
};

use super::super::engine::{self, Lane, What};
use super::super::fabric::Fabric;
use super::super::program::{Program, first_numbers};
use super::{ROUND, cluster};
use crate::baseline::Work;
use crate::baseline::method::Method;
use crate::baseline::tests::{shapes, window};
use crate::preset::Preset;

/// Pass, sender, receiver, exchange as programs number it, bytes.
type Sent = (u64, u32, u32, u32, u64);

/// Notes what is sent through it.
struct Noting {
    inner: ChannelTransport<f64>,
    own: u32,
    /// Number of the first exchange of each leg, by pass of one program: forward, and all others.
    firsts: [[u32; 5]; 2],
    seen: Arc<Mutex<Vec<Sent>>>,
}

impl Transport<CpuDevice<f64>> for Noting {
    type Ticket = <ChannelTransport<f64> as Transport<CpuDevice<f64>>>::Ticket;

    fn handshake(&mut self, id: PlanId, deadline: Duration) -> Result<(), Failure> {
        self.inner.handshake(id, deadline)
    }

    fn start(
        &mut self,
        queue: &(),
        tag: Tag,
        sends: Vec<(WorkerId, CpuBuffer<f64>)>,
        receives: Vec<(WorkerId, usize)>,
    ) -> Result<Self::Ticket, Failure> {
        // The order in which programs number legs.
        let legs = [Leg::Dispatch, Leg::Relay, Leg::Gather, Leg::Return];
        let leg = legs.iter().position(|&leg| leg as u32 == tag.leg);
        let firsts = self.firsts[usize::from(tag.pass > 1)];
        let exchange = firsts[leg.expect("a leg")] + tag.chunk;
        for (peer, buffer) in &sends {
            let bytes = 8 * buffer.as_slice().len() as u64;
            let sent = (tag.pass, self.own, peer.0, exchange, bytes);
            self.seen.lock().expect("nobody panics").push(sent);
        }
        self.inner.start(queue, tag, sends, receives)
    }

    fn wait(
        &mut self,
        queue: &(),
        ticket: Self::Ticket,
        deadline: Duration,
    ) -> Result<Vec<(WorkerId, CpuBuffer<f64>)>, Failure> {
        self.inner.wait(queue, ticket, deadline)
    }

    fn abort(&mut self, reason: &str) {
        self.inner.abort(reason);
    }
}

/// What the cpu backend sends in the forward and the backward pass of `pool`; a second forward is left out.
fn executed(pool: &CpuPool<ReferenceKernel>, inputs: &PoolTensors<f64>) -> [Vec<Sent>; 2] {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let numbers = |program: &RankProgram| [&program.forward, &program.backward].map(first_numbers);
    let transports = (0..)
        .zip(mesh(pool.programs().len() as u32))
        .zip(pool.programs())
        .map(|((own, inner), program)| Noting {
            inner,
            own,
            firsts: numbers(program),
            seen: Arc::clone(&seen),
        })
        .collect();
    pool.run_over(inputs, transports).expect("it runs");
    let seen = seen.lock().expect("nobody panics");
    let last = seen.iter().map(|sent| sent.0).max().unwrap_or(0);
    [1, last].map(|pass| {
        let own = seen.iter().filter(|sent| sent.0 == pass);
        let mut own: Vec<Sent> = own.map(|&(_, a, b, c, d)| (0, a, b, c, d)).collect();
        own.sort_unstable();
        own
    })
}

/// What the simulator sends, as its spans say; each message must also arrive.
fn simulated(program: &Program) -> Vec<Sent> {
    let fabric = Fabric::new(&cluster(ROUND), 0, program.workers.len() as u32);
    let compute_ns: Vec<Vec<u64>> = program
        .workers
        .iter()
        .map(|w| vec![5000; w.computes.len()])
        .collect();
    let mut spans = Vec::new();
    engine::run(program, &fabric, &compute_ns, Some(&mut spans));
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for span in spans {
        if let What::Message {
            exchange,
            peer,
            bytes,
        } = span.what
        {
            match span.lane {
                Lane::NodeOut | Lane::NicOut => sent.push((0, span.worker, peer, exchange, bytes)),
                _ => received.push((0, peer, span.worker, exchange, bytes)),
            }
        }
    }
    sent.sort_unstable();
    received.sort_unstable();
    assert_eq!(sent, received);
    sent
}

/// A pool of three sequences on six workers, small enough to execute often.
fn plan(placer: Placer, kv_fetch: KvFetch, kv_route: KvRoute, layout: LayoutKind) -> PoolPlan {
    let lengths = [vec![47u64, 1], vec![5, 9, 13, 21], vec![30, 18]];
    let lengths = PackedLengths::new(48, lengths).expect("legal");
    let layout = TokenLayout::new(layout, 3, 48, 2).expect("legal");
    let shards = if placer == Placer::HeadShard { 2 } else { 4 };
    let heads = HeadSplit::new(8, 4, 4, 4, shards, 2).expect("legal");
    let config = PlanConfig {
        placer,
        kv_fetch,
        kv_route,
        bytes: ElementBytes::F64,
        ..PlanConfig::paper(8)
    };
    plan_pool(&lengths, &layout, &heads, &config).expect("legal")
}

fn compare(plan: &PoolPlan, what: &str) {
    for mode in BackwardMode::ALL {
        let pool = CpuPool::new(plan, mode, ReferenceKernel);
        compare_pool(
            &pool,
            &PoolTensors::random(plan, 3),
            &format!("{what}, {mode}"),
        );
    }
}

/// Returns the bytes of forward.
fn compare_pool(pool: &CpuPool<ReferenceKernel>, inputs: &PoolTensors<f64>, what: &str) -> u64 {
    let [forward, backward] = executed(pool, inputs);
    let programs = pool.programs();
    let both = [Program::forward(programs), Program::backward(programs)];
    assert_eq!(simulated(&both[0]), forward, "{what}, forward");
    assert_eq!(simulated(&both[1]), backward, "{what}, backward");
    forward.iter().map(|sent| sent.4).sum()
}

#[test]
fn simulated_messages_of_steps_are_those_of_the_cpu_backend() {
    let mut lengths = [5, 23, 64, 1, 9, 40, 64, 64].into_iter().cycle();
    let window = window(8, 64, || lengths.next().expect("endless"));
    let mut shapes = shapes(Preset::Tiny, |settings| {
        (settings.dp, settings.cp) = (2, 3);
    });
    shapes.plan.bytes = ElementBytes::F64;
    for method in [
        Method::Ring,
        Method::ZigzagRing,
        Method::DocZigzag,
        Method::Wlb,
        Method::Magi,
        Method::DynamicCp,
    ] {
        let schedule = method.schedule(&window, &shapes).expect("legal");
        let mut bytes = 0;
        for group in &schedule.groups {
            let Work::Steps(steps) = &group.work else {
                panic!("{method} is steps");
            };
            let programs = steps.lower();
            let inputs = programs.random_inputs(3);
            let pool = CpuPool::of_steps(programs, ReferenceKernel);
            bytes += compare_pool(&pool, &inputs, method.name());
        }
        assert!(bytes > 0, "{method}");
    }
}

#[test]
fn simulated_messages_are_those_of_the_cpu_backend_for_every_way_to_plan() {
    let topology = Topology::new(2).expect("legal");
    let placers = [
        ("home", Placer::Home),
        ("paper", Placer::Paper(Slack::PAPER)),
        ("export", Placer::Export(Slack::PAPER, topology)),
        ("head-shard", Placer::HeadShard),
    ];
    for (name, placer) in placers {
        for fetch in [KvFetch::Whole, KvFetch::Range] {
            for (route, kv_route) in [
                ("direct", KvRoute::Direct),
                ("node", KvRoute::Node(topology)),
            ] {
                for layout in [LayoutKind::Contiguous, LayoutKind::Zigzag] {
                    let plan = plan(placer, fetch, kv_route, layout);
                    compare(&plan, &format!("{name} {fetch} {route} {layout}"));
                }
            }
        }
    }
}

#[test]
fn simulated_messages_of_ulysses_are_those_of_the_cpu_backend() {
    let lengths = PackedLengths::new(48, [vec![17u64, 31]]).expect("legal");
    let layout = TokenLayout::new(LayoutKind::Contiguous, 1, 48, 4).expect("legal");
    let heads = HeadSplit::new(8, 2, 4, 4, 4, 2).expect("legal");
    let config = PlanConfig {
        placer: Placer::HeadShard,
        bytes: ElementBytes::F64,
        ..PlanConfig::paper(48)
    };
    let plan = plan_pool(&lengths, &layout, &heads, &config).expect("legal");
    compare(&plan, "ulysses");
}
