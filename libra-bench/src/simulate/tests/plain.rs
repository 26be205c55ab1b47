//! The engine's rules with one heap of all events, arrivals among them: what happens when, for programs of any size.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::super::engine::{self, Lane, Span, What, WorkerTimes};
use super::super::fabric::{Class, Fabric, Path, Port};
use super::super::program::{Program, Step, Worker};
use super::twin::programs;
use super::{ROUND, cluster};

/// As [`engine::run`].
fn run(
    program: &Program,
    fabric: &Fabric,
    compute_ns: &[Vec<u64>],
    record: &mut Vec<Span>,
) -> Vec<WorkerTimes> {
    let mut engine = Engine::new(program, fabric, compute_ns, record);
    while let Some(Reverse((now, event))) = engine.events.pop() {
        match event {
            Event::Passes(message) => engine.pass(now, message),
            Event::Arrives(message) => engine.arrive(now, message),
            Event::Continues(worker) => engine.proceed(now, worker),
        }
    }
    engine.times
}

/// In the order in which simultaneous ones happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The first byte of a message is at its next port.
    Passes(u32),
    /// The last byte of a message is at its receiver.
    Arrives(u32),
    /// A worker goes on.
    Continues(u32),
}

/// A message on its way.
struct Flight {
    src: u32,
    dst: u32,
    exchange: u32,
    bytes: u64,
    path: Path,
    /// Ports that it has come to.
    passed: usize,
    /// When its last byte is past the last of them.
    tail_ns: u64,
}

struct State {
    /// Step to do next.
    next: usize,
    /// Since when it waits for the exchange of that step.
    waits_since: Option<u64>,
    /// By exchange: messages that are still to come.
    missing: Vec<u32>,
    /// By exchange: when its sends have left.
    left_ns: Vec<u64>,
}

struct Engine<'a> {
    program: &'a Program,
    fabric: &'a Fabric,
    compute_ns: &'a [Vec<u64>],
    record: &'a mut Vec<Span>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    flights: Vec<Flight>,
    /// When each port has served all that came to it.
    free_ns: Vec<u64>,
    states: Vec<State>,
    times: Vec<WorkerTimes>,
    /// Sends of one exchange, in the order of their turns.
    turns: Vec<(u32, u32, u64)>,
}

impl<'a> Engine<'a> {
    fn new(
        program: &'a Program,
        fabric: &'a Fabric,
        compute_ns: &'a [Vec<u64>],
        record: &'a mut Vec<Span>,
    ) -> Self {
        let state = |worker: &Worker| State {
            next: 0,
            waits_since: None,
            missing: (worker.exchanges.iter())
                .map(|exchange| exchange.receives.len() as u32)
                .collect(),
            left_ns: vec![0; worker.exchanges.len()],
        };
        let workers = program.workers.len();
        Self {
            program,
            fabric,
            compute_ns,
            record,
            events: (0..workers as u32)
                .map(|worker| Reverse((0, Event::Continues(worker))))
                .collect(),
            flights: Vec::new(),
            free_ns: vec![0; fabric.ports().len()],
            states: program.workers.iter().map(state).collect(),
            times: vec![WorkerTimes::default(); workers],
            turns: Vec::new(),
        }
    }

    /// Steps of a worker until one takes time.
    fn proceed(&mut self, now: u64, worker: u32) {
        let id = worker as usize;
        let program = self.program;
        if let Some(since) = self.states[id].waits_since.take() {
            self.end_wait(now, worker, since);
        }
        while let Some(&step) = program.workers[id].steps.get(self.states[id].next) {
            match step {
                Step::Start(exchange) => self.start(now, worker, exchange),
                Step::Compute(chunk) => {
                    let time_ns = self.compute_ns[id][chunk as usize];
                    let sum = &mut self.times[id].compute_ns;
                    *sum = sum.saturating_add(time_ns);
                    self.note(worker, Lane::Compute, What::Compute(chunk), now, time_ns);
                    self.states[id].next += 1;
                    self.push(now.saturating_add(time_ns), Event::Continues(worker));
                    return;
                }
                Step::Wait(exchange) => {
                    let state = &mut self.states[id];
                    let left_ns = state.left_ns[exchange as usize];
                    if state.missing[exchange as usize] > 0 || left_ns > now {
                        state.waits_since = Some(now);
                        if state.missing[exchange as usize] == 0 {
                            self.push(left_ns, Event::Continues(worker));
                        }
                        return;
                    }
                }
            }
            self.states[id].next += 1;
        }
        self.times[id].finish_ns = now;
    }

    fn end_wait(&mut self, now: u64, worker: u32, since: u64) {
        let state = &mut self.states[worker as usize];
        let step = self.program.workers[worker as usize].steps[state.next];
        state.next += 1;
        self.times[worker as usize].exposed_ns += now - since;
        if let Step::Wait(exchange) = step {
            self.note(
                worker,
                Lane::Compute,
                What::Wait(exchange),
                since,
                now - since,
            );
        }
    }

    /// Books the worker's own ports for its sends.
    fn start(&mut self, now: u64, worker: u32, exchange: u32) {
        let fabric = self.fabric;
        let sends = &self.program.workers[worker as usize].exchanges[exchange as usize].sends;
        let mut turns = std::mem::take(&mut self.turns);
        turns.clear();
        turns.extend(
            sends
                .iter()
                .map(|m| (fabric.turn(worker, m.peer), m.peer, m.bytes)),
        );
        turns.sort_unstable();
        let mut left_ns = now;
        for &(_, dst, bytes) in &turns {
            let path = fabric.path(worker, dst);
            let (begin_ns, end_ns) = self.book(path.ports()[0], now, bytes);
            left_ns = left_ns.max(end_ns);
            let id = self.flights.len() as u32;
            let what = What::Message {
                exchange,
                peer: dst,
                bytes,
            };
            let lane = if path.class == Class::Node {
                Lane::NodeOut
            } else {
                Lane::NicOut
            };
            self.times[worker as usize].sent_bytes[path.class as usize] += bytes;
            let port_ns = &mut self.times[worker as usize].port_ns[lane as usize];
            *port_ns = port_ns.saturating_add(end_ns - begin_ns);
            self.note(worker, lane, what, begin_ns, end_ns - begin_ns);
            self.push(begin_ns.saturating_add(path.latency_ns), Event::Passes(id));
            self.flights.push(Flight {
                src: worker,
                dst,
                exchange,
                bytes,
                tail_ns: end_ns.saturating_add(path.latency_ns),
                path,
                passed: 1,
            });
        }
        self.turns = turns;
        self.states[worker as usize].left_ns[exchange as usize] = left_ns;
    }

    /// The next port of a message, from its first byte on.
    fn pass(&mut self, now: u64, message: u32) {
        let flight = &self.flights[message as usize];
        let (bytes, ports) = (flight.bytes, flight.path.ports());
        let (port, is_last) = (ports[flight.passed], flight.passed + 1 == ports.len());
        let (begin_ns, end_ns) = self.book(port, now, bytes);
        let flight = &mut self.flights[message as usize];
        flight.passed += 1;
        flight.tail_ns = flight.tail_ns.max(end_ns);
        if !is_last {
            self.push(begin_ns, Event::Passes(message));
            return;
        }
        let (dst, class, tail_ns) = (flight.dst, flight.path.class, flight.tail_ns);
        let what = What::Message {
            exchange: flight.exchange,
            peer: flight.src,
            bytes,
        };
        let lane = if class == Class::Node {
            Lane::NodeIn
        } else {
            Lane::NicIn
        };
        self.times[dst as usize].received_bytes[class as usize] += bytes;
        let port_ns = &mut self.times[dst as usize].port_ns[lane as usize];
        *port_ns = port_ns.saturating_add(end_ns - begin_ns);
        self.note(dst, lane, what, begin_ns, end_ns - begin_ns);
        self.push(tail_ns, Event::Arrives(message));
    }

    fn arrive(&mut self, now: u64, message: u32) {
        let &Flight { dst, exchange, .. } = &self.flights[message as usize];
        let state = &mut self.states[dst as usize];
        let missing = &mut state.missing[exchange as usize];
        *missing -= 1;
        let waits_for_it = state.waits_since.is_some()
            && self.program.workers[dst as usize].steps[state.next] == Step::Wait(exchange);
        if *missing == 0 && waits_for_it {
            let at = now.max(state.left_ns[exchange as usize]);
            self.push(at, Event::Continues(dst));
        }
    }

    /// From when to when `port` serves what comes to it now.
    fn book(&mut self, port: u32, now: u64, bytes: u64) -> (u64, u64) {
        let free = &mut self.free_ns[port as usize];
        let begin_ns = now.max(*free);
        let service_ns = self.fabric.ports()[port as usize].service_ns(bytes);
        *free = begin_ns.saturating_add(service_ns);
        (begin_ns, *free)
    }

    fn push(&mut self, at_ns: u64, event: Event) {
        self.events.push(Reverse((at_ns, event)));
    }

    fn note(&mut self, worker: u32, lane: Lane, what: What, begin_ns: u64, time_ns: u64) {
        self.record.push(Span {
            worker,
            lane,
            what,
            begin_ns,
            end_ns: begin_ns.saturating_add(time_ns),
        });
    }
}

/// Clusters whose messages tie, overtake each other and pass up to four ports.
fn texts() -> impl Strategy<Value = String> {
    let little = |text: &str, unit: f64| {
        text.replace(
            "latency_us = 0.1",
            &format!("latency_us = {}", 0.007 * unit),
        )
        .replace("latency_us = 1", &format!("latency_us = {}", 0.031 * unit))
    };
    let units = prop::sample::select(vec![0.0, 1.0, 40.0]);
    let networks = prop::sample::select(vec![
        "",
        "[network]\nrails = true\nspine_latency_us = 0.05\n",
        "[network]\nnodes_per_pod = 1\noversubscription = 3\npod_latency_us = 0.02\n",
        "[network]\nrails = true\nspine_latency_us = 0.3\nnodes_per_pod = 2\noversubscription = 1\n",
        "[network]\nrails = true\nspine_latency_us = 0.3\nnodes_per_pod = 2\noversubscription = 2\n",
    ]);
    let nics = prop::sample::select(vec![1, 2, 4]);
    (units, networks, nics, any::<bool>()).prop_map(move |(unit, network, nics, is_free)| {
        let text = little(ROUND, unit).replace("nics = 4", &format!("nics = {nics}"));
        let text = match is_free {
            true => text
                .replace("message_us = 0.01", "message_us = 0")
                .replace("message_us = 0.02", "message_us = 0"),
            false => text,
        };
        text + network
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_happens_when_it_does_with_one_heap_of_all_events(
        (program, compute_ns) in (2..18_u32, 0..120_usize).prop_flat_map(|(workers, most)| programs(workers, most)),
        text in texts(),
        first_gpu in 0..8_u64,
    ) {
        let fabric = Fabric::new(&cluster(&text), first_gpu, program.workers.len() as u32);
        let (mut spans, mut expected_spans) = (Vec::new(), Vec::new());
        let times = engine::run(&program, &fabric, &compute_ns, Some(&mut spans));
        let expected = run(&program, &fabric, &compute_ns, &mut expected_spans);
        prop_assert_eq!(times, expected);
        prop_assert_eq!(spans, expected_spans);
    }

    #[test]
    fn a_port_is_busy_for_the_nearest_whole_nanosecond(
        bytes in any::<u64>(),
        shift in 0..64_u32,
        ns_per_byte in prop_oneof![1e-6..1e3_f64, prop::sample::select(vec![0.5, 0.25, 1.0, 1.5])],
        message_ns in any::<u64>(),
    ) {
        let bytes = bytes >> shift;
        let nearest_ns = (bytes as f64 * ns_per_byte).round() as u64;
        let port = Port { ns_per_byte, message_ns };
        prop_assert_eq!(port.service_ns(bytes), message_ns.saturating_add(nearest_ns));
    }
}
