//! The engine's rules once more, nanosecond by nanosecond, over random programs; and fair sharing beside them.

use libra_exec::lower_all;
use libra_sched::{
    BackwardMode, HeadSplit, LayoutKind, PackedLengths, Placer, PlanConfig, Slack, TokenLayout,
    Topology, plan_pool, reverse,
};
use proptest::prelude::*;

use super::super::engine::{WorkerTimes, run};
use super::super::fabric::{Fabric, Path};
use super::super::program::{Exchange, Program, Step, Worker};
use super::{ROUND, cluster, exchange};

struct Message {
    dst: usize,
    exchange: usize,
    bytes: u64,
    path: Path,
    /// First byte at the port of this place on the path, not yet begun there.
    queued: Option<(usize, u64)>,
    tail: u64,
    arrives: Option<u64>,
}

/// Finish times, by asking every port and every worker in every nanosecond.
fn ticked(program: &Program, fabric: &Fabric, compute_ns: &[Vec<u64>]) -> Vec<u64> {
    let count = program.workers.len();
    let mut messages: Vec<Message> = Vec::new();
    let mut busy_until = vec![0u64; fabric.ports().len()];
    let mut next = vec![0usize; count];
    let mut computing: Vec<Option<u64>> = vec![None; count];
    let mut arrived = vec![vec![0usize; program.workers[0].exchanges.len()]; count];
    let mut left = arrived
        .clone()
        .into_iter()
        .map(|e| vec![0u64; e.len()])
        .collect::<Vec<_>>();
    let mut finish: Vec<Option<u64>> = vec![None; count];
    for now in 0.. {
        assert!(now < 100_000, "it hangs");
        for message in &mut messages {
            // Ports are booked in the order of first bytes: of those of this nanosecond, the earlier message first.
            if let Some((place, at)) = message.queued
                && at == now
            {
                let port = message.path.ports()[place] as usize;
                let begin = now.max(busy_until[port]);
                busy_until[port] = begin + fabric.ports()[port].service_ns(message.bytes);
                message.tail = message.tail.max(busy_until[port]);
                message.queued = None;
                message.arrives = Some(message.tail);
            }
        }
        for message in &mut messages {
            if message.arrives == Some(now) {
                arrived[message.dst][message.exchange] += 1;
                message.arrives = None;
            }
        }
        for worker in 0..count {
            let own: &Worker = &program.workers[worker];
            if computing[worker] == Some(now) {
                computing[worker] = None;
                next[worker] += 1;
            }
            if computing[worker].is_some() {
                continue;
            }
            while let Some(&step) = own.steps.get(next[worker]) {
                match step {
                    Step::Compute(chunk) => {
                        let time = compute_ns[worker][chunk as usize];
                        if time > 0 {
                            computing[worker] = Some(now + time);
                            break;
                        }
                    }
                    Step::Wait(e) => {
                        let e = e as usize;
                        let all = own.exchanges[e].receives.len();
                        if arrived[worker][e] < all || left[worker][e] > now {
                            break;
                        }
                    }
                    Step::Start(e) => {
                        let mut sends = own.exchanges[e as usize].sends.clone();
                        sends.sort_by_key(|send| fabric.turn(worker as u32, send.peer));
                        for send in sends {
                            let path = fabric.path(worker as u32, send.peer);
                            let port = path.ports()[0] as usize;
                            let begin = now.max(busy_until[port]);
                            busy_until[port] = begin + fabric.ports()[port].service_ns(send.bytes);
                            let e = e as usize;
                            left[worker][e] = left[worker][e].max(busy_until[port]);
                            messages.push(Message {
                                dst: send.peer as usize,
                                exchange: e,
                                bytes: send.bytes,
                                path,
                                queued: Some((1, begin + path.latency_ns)),
                                tail: busy_until[port] + path.latency_ns,
                                arrives: None,
                            });
                        }
                    }
                }
                next[worker] += 1;
            }
            if next[worker] == own.steps.len() && finish[worker].is_none() {
                finish[worker] = Some(now);
            }
        }
        if finish.iter().all(Option::is_some) {
            break;
        }
    }
    finish.into_iter().flatten().collect()
}

/// Two exchanges of up to `messages` and two chunks a worker, in one of several orders.
pub(super) fn programs(
    workers: u32,
    messages: usize,
) -> impl Strategy<Value = (Program, Vec<Vec<u64>>)> {
    let moves =
        move || prop::collection::btree_map((0..workers, 0..workers), 0..300u64, 0..=messages);
    let orders = prop::collection::vec((0..3usize, 0..400u64, 0..400u64), workers as usize);
    (moves(), moves(), orders).prop_map(|(first, second, orders)| {
        let list = |moves: std::collections::BTreeMap<(u32, u32), u64>| -> Vec<(u32, u32, u64)> {
            let apart = moves.into_iter().filter(|((from, to), _)| from != to);
            apart.map(|((from, to), bytes)| (from, to, bytes)).collect()
        };
        let (first, second) = (list(first), list(second));
        let steps = [
            vec![
                Step::Start(0),
                Step::Compute(0),
                Step::Wait(0),
                Step::Start(1),
                Step::Compute(1),
                Step::Wait(1),
            ],
            vec![
                Step::Compute(0),
                Step::Start(0),
                Step::Start(1),
                Step::Compute(1),
                Step::Wait(1),
                Step::Wait(0),
            ],
            vec![
                Step::Start(1),
                Step::Compute(1),
                Step::Start(0),
                Step::Wait(0),
                Step::Compute(0),
                Step::Wait(1),
            ],
        ];
        let worker = |(own, (order, _, _)): (u32, &(usize, u64, u64))| Worker {
            steps: steps[*order].clone(),
            exchanges: vec![exchange(own, &first), exchange(own, &second)],
            computes: vec![Vec::new(); 2],
        };
        let program = Program {
            workers: (0..).zip(&orders).map(worker).collect(),
        };
        let compute_ns = orders.iter().map(|&(_, a, b)| vec![a, b]).collect();
        (program, compute_ns)
    })
}

/// When an exchange is done whose messages share their ports fairly (max-min, by progressive filling), without latency.
fn fairly_shared_ns(program: &Program, fabric: &Fabric) -> f64 {
    let mut left: Vec<(Path, f64)> = Vec::new();
    for (worker, own) in (0..).zip(&program.workers) {
        let sends = own
            .exchanges
            .iter()
            .flat_map(|exchange: &Exchange| &exchange.sends);
        left.extend(sends.map(|m| (fabric.path(worker, m.peer), m.bytes as f64)));
    }
    let mut now = 0.0;
    while !left.is_empty() {
        let mut rate = vec![None; left.len()];
        let mut free: Vec<f64> = fabric
            .ports()
            .iter()
            .map(|port| 1.0 / port.ns_per_byte)
            .collect();
        while rate.iter().any(Option::is_none) {
            let share = |port: usize| {
                let open = (left.iter().zip(&rate))
                    .filter(|((path, _), rate)| {
                        rate.is_none() && path.ports().contains(&(port as u32))
                    })
                    .count();
                (open > 0).then(|| free[port] / open as f64)
            };
            let (tightest, least) = (0..free.len())
                .filter_map(|port| Some((port, share(port)?)))
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .expect("a message without a rate has ports");
            for ((path, _), rate) in left.iter().zip(&mut rate) {
                if rate.is_none() && path.ports().contains(&(tightest as u32)) {
                    *rate = Some(least);
                    for &port in path.ports() {
                        free[port as usize] -= least;
                    }
                }
            }
        }
        let rates: Vec<f64> = rate.into_iter().flatten().collect();
        let step = (left.iter().zip(&rates))
            .map(|((_, bytes), rate)| bytes / rate)
            .fold(f64::INFINITY, f64::min);
        now += step;
        for ((_, bytes), rate) in left.iter_mut().zip(&rates) {
            *bytes -= step * rate;
        }
        left.retain(|(_, bytes)| *bytes > 1e-6);
    }
    now
}

/// [`ROUND`] in little: latencies that are shorter than messages.
fn small() -> String {
    ROUND
        .replace("latency_us = 0.1", "latency_us = 0.007")
        .replace("latency_us = 1", "latency_us = 0.031")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_are_those_of_the_clock((program, compute_ns) in programs(6, 20), nics in prop::sample::select(vec![1, 2, 4])) {
        let text = small().replace("nics = 4", &format!("nics = {nics}"));
        let fabric = Fabric::new(&cluster(&text), 1, 6);
        let times = run(&program, &fabric, &compute_ns, None);
        let finish: Vec<u64> = times.iter().map(|times| times.finish_ns).collect();
        prop_assert_eq!(finish, ticked(&program, &fabric, &compute_ns));
    }

    #[test]
    fn one_after_the_other_ends_between_the_busiest_port_and_twice_that((program, _) in programs(6, 20)) {
        let text = small().replace("message_us = 0.01", "message_us = 0").replace("message_us = 0.02", "message_us = 0");
        let fabric = Fabric::new(&cluster(&text), 0, 6);
        let mut all_at_once = program;
        for worker in &mut all_at_once.workers {
            worker.steps = vec![Step::Start(0), Step::Start(1), Step::Wait(0), Step::Wait(1)];
        }
        let times = run(&all_at_once, &fabric, &vec![Vec::new(); 6], None);
        let finish = times.iter().map(|times| times.finish_ns).max().unwrap_or(0);
        let busiest = times.iter().map(WorkerTimes::comm_ns).max().unwrap_or(0);
        prop_assert!(finish >= busiest && finish <= 2 * busiest + 31);
        let fair = fairly_shared_ns(&all_at_once, &fabric);
        prop_assert!(fair >= busiest as f64 - 1.0 && fair <= 2.0 * busiest as f64);
    }
}

/// Heavy and light sequences of several samples, planned by Algorithm 2 and by runs, on four nodes of four.
#[test]
fn a_plans_exchange_ends_about_when_it_would_with_fair_sharing() {
    let sequence = |seed: u64| -> Vec<u64> {
        let mut left = 4096;
        let mut lengths = Vec::new();
        let mut state = seed;
        while left > 0 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let length = (1u64 << (4 + (state >> 60) % 9)).min(left);
            lengths.push(length);
            left -= length;
        }
        lengths
    };
    let lengths = PackedLengths::new(4096, (0..4).map(sequence)).expect("legal");
    let layout = TokenLayout::new(LayoutKind::Contiguous, 4, 4096, 4).expect("legal");
    let topology = Topology::new(4).expect("legal");
    let text = ROUND
        .replace("message_us = 0.01", "message_us = 0")
        .replace("message_us = 0.02", "message_us = 0");
    let fabric = Fabric::new(&cluster(&text), 0, 16);
    for placer in [
        Placer::Paper(Slack::PAPER),
        Placer::Export(Slack::PAPER, topology),
    ] {
        let heads = HeadSplit::new(8, 4, 64, 64, 4, 1).expect("legal");
        let config = PlanConfig {
            placer,
            ..PlanConfig::paper(128)
        };
        let plan = plan_pool(&lengths, &layout, &heads, &config).expect("legal");
        let programs = lower_all(&plan, &reverse::derive(&plan, BackwardMode::Stash));
        let mut program = Program::forward(&programs);
        for worker in &mut program.workers {
            // Dispatch alone.
            worker.steps = vec![Step::Start(0), Step::Wait(0)];
            worker.exchanges.truncate(1);
        }
        let times = run(&program, &fabric, &vec![Vec::new(); 16], None);
        let finish = times.iter().map(|times| times.finish_ns).max().unwrap_or(0) as f64;
        let fair = fairly_shared_ns(&program, &fabric);
        assert!((finish / fair - 1.0).abs() < 0.15, "{finish} and {fair}");
    }
}
