//! One program on its workers' ports: what happens when.
//!
//! Ports serve one message after the other, in the order in which first bytes come to them. A message leaves when its
//! sender starts it, whether its receiver is there or not, as the executor sends. It passes its ports without being
//! stored in between: each begins with the first byte and ends no sooner than the one before. What waits before a port
//! keeps no other busy.
//!
//! Sharing a port fairly among its messages (max-min) instead costs a new rate for every message at every event, where
//! this costs a heap operation, and says about the same: a port is busy for as long either way, and workers wait for
//! whole exchanges. A symmetric all-to-all ends when its ports have moved their bytes; exchanges of plans end within 15 %
//! of fair sharing's time where tests compare them.
//!
//! What leaves one port comes to the next one in order, so only the first message behind each port is in the heap of
//! events. When a message arrives is known once its last port is booked; that is no event of its own.
//!
//! Complexity: O(n log p) time for n messages and steps and p ports, O(n log n) where messages pass uplinks; O(n) memory,
//! set aside at the begin. Times are whole nanoseconds; of what happens at once, messages come first in the order in
//! which they set out, then workers in theirs. A time beyond 64 bits, 584 years, stays there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::events::{Event, Key};
use super::fabric::{Class, Fabric, Path};
use super::program::{Exchange, Program, Step, Worker};
pub(crate) use super::times::{Lane, Span, What, WorkerTimes};

/// Runs `program` over `fabric`; `compute_ns` has the time of every worker's computes. Spans go to `record`.
///
/// # Panics
/// If some worker waits for a message that nobody sends.
pub(crate) fn run(
    program: &Program,
    fabric: &Fabric,
    compute_ns: &[Vec<u64>],
    record: Option<&mut Vec<Span>>,
) -> Vec<WorkerTimes> {
    let mut engine = Engine::new(program, fabric, compute_ns, record);
    while let Some((now, event)) = engine.next() {
        match event {
            Event::Passes(message) => engine.pass(now, message),
            Event::Continues(worker) => engine.proceed(now, worker),
        }
    }
    for (id, (state, worker)) in engine.states.iter().zip(&program.workers).enumerate() {
        let steps = worker.steps.len();
        assert!(
            state.next == steps,
            "worker {id} ends at step {} of {steps}: it waits for what nobody sends",
            state.next
        );
    }
    engine.times
}

/// A message on its way.
struct Flight {
    src: u32,
    dst: u32,
    exchange: u32,
    /// The message that comes to its next port after this one, where both left the same port; [`NONE`] without one.
    behind: u32,
    bytes: u64,
    path: Path,
    /// Ports that it has come to.
    passed: usize,
    /// When its first byte is at the next of them.
    head_ns: u64,
    /// When its last byte is past the last of them.
    tail_ns: u64,
}

/// No message.
const NONE: u32 = u32::MAX;

struct State {
    /// Step to do next.
    next: usize,
    /// Since when it waits for the exchange of that step.
    waits_since: Option<u64>,
    exchanges: Vec<Progress>,
}

/// How far an exchange of a worker is.
#[derive(Clone, Copy)]
struct Progress {
    /// Messages to come whose arrival is not known yet.
    missing: u32,
    /// When the last of the others arrives.
    arrived_ns: u64,
    /// When its sends have left.
    left_ns: u64,
}

impl Progress {
    /// When a wait for it ends, once that is known.
    fn done_ns(self) -> Option<u64> {
        (self.missing == 0).then(|| self.arrived_ns.max(self.left_ns))
    }
}

struct Engine<'a> {
    program: &'a Program,
    fabric: &'a Fabric,
    compute_ns: &'a [Vec<u64>],
    record: Option<&'a mut Vec<Span>>,
    events: BinaryHeap<Reverse<Key>>,
    flights: Vec<Flight>,
    /// By port and [`Class`]: the last message that left the port first of all, or [`NONE`].
    last: Vec<u32>,
    /// When each port has served all that came to it.
    free_ns: Vec<u64>,
    states: Vec<State>,
    times: Vec<WorkerTimes>,
    /// Sends of one exchange, in the order of their turns: turn, receiver, bytes.
    turns: Vec<u128>,
}

impl<'a> Engine<'a> {
    fn new(
        program: &'a Program,
        fabric: &'a Fabric,
        compute_ns: &'a [Vec<u64>],
        record: Option<&'a mut Vec<Span>>,
    ) -> Self {
        let progress = |exchange: &Exchange| Progress {
            missing: exchange.receives.len() as u32,
            arrived_ns: 0,
            left_ns: 0,
        };
        let state = |worker: &Worker| State {
            next: 0,
            waits_since: None,
            exchanges: worker.exchanges.iter().map(progress).collect(),
        };
        let workers = program.workers.len();
        let exchanges = program.workers.iter().flat_map(|worker| &worker.exchanges);
        let messages = exchanges.map(|exchange| exchange.sends.len()).sum();
        Self {
            program,
            fabric,
            compute_ns,
            record,
            events: (0..workers as u32)
                .map(|worker| Reverse(Key::new(0, Event::Continues(worker))))
                .collect(),
            flights: Vec::with_capacity(messages),
            last: vec![NONE; Class::COUNT * fabric.ports().len()],
            free_ns: vec![0; fabric.ports().len()],
            states: program.workers.iter().map(state).collect(),
            times: vec![WorkerTimes::default(); workers],
            turns: Vec::new(),
        }
    }

    /// The next event. The message behind one that passes takes its place in the heap.
    fn next(&mut self) -> Option<(u64, Event)> {
        let mut first = self.events.peek_mut()?;
        let key = first.0;
        let event = key.event();
        let behind = match event {
            Event::Passes(message) => self.flights[message as usize].behind,
            Event::Continues(_) => NONE,
        };
        match self.flights.get(behind as usize) {
            Some(flight) => *first = Reverse(Key::new(flight.head_ns, Event::Passes(behind))),
            None => drop(PeekMut::pop(first)),
        }
        Some((key.at_ns(), event))
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
                    let done_ns = self.states[id].exchanges[exchange as usize].done_ns();
                    if done_ns.is_none_or(|done_ns| done_ns > now) {
                        self.states[id].waits_since = Some(now);
                        if let Some(done_ns) = done_ns {
                            self.push(done_ns, Event::Continues(worker));
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
        turns.extend(sends.iter().map(|m| {
            let (turn, peer) = (fabric.turn(worker, m.peer), m.peer);
            u128::from(turn) << 96 | u128::from(peer) << 64 | u128::from(m.bytes)
        }));
        turns.sort_unstable();
        let mut left_ns = now;
        for &turn in &turns {
            let (dst, bytes) = ((turn >> 64) as u32, turn as u64);
            let path = fabric.path(worker, dst);
            let (begin_ns, end_ns) = self.book(path.ports()[0], now, bytes);
            left_ns = left_ns.max(end_ns);
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
            self.depart(Flight {
                src: worker,
                dst,
                exchange,
                behind: NONE,
                bytes,
                head_ns: begin_ns.saturating_add(path.latency_ns),
                tail_ns: end_ns.saturating_add(path.latency_ns),
                path,
                passed: 1,
            });
        }
        self.turns = turns;
        self.states[worker as usize].exchanges[exchange as usize].left_ns = left_ns;
    }

    /// A message leaves its first port: behind the one before it, if that is still on its way to its second port and
    /// comes there no later.
    fn depart(&mut self, flight: Flight) {
        let id = self.flights.len() as u32;
        let head_ns = flight.head_ns;
        let way = flight.path.ports()[0] as usize * Class::COUNT + flight.path.class as usize;
        self.flights.push(flight);
        let last = self.last[way];
        match self.flights.get_mut(last as usize) {
            Some(before) if before.passed == 1 => {
                if before.head_ns <= head_ns {
                    before.behind = id;
                    self.last[way] = id;
                } else {
                    self.push(head_ns, Event::Passes(id));
                }
            }
            _ => {
                self.last[way] = id;
                self.push(head_ns, Event::Passes(id));
            }
        }
    }

    /// The next port of a message, from its first byte on.
    fn pass(&mut self, now: u64, message: u32) {
        let flight = &self.flights[message as usize];
        let (bytes, ports) = (flight.bytes, flight.path.ports());
        let (port, is_last) = (ports[flight.passed], flight.passed + 1 == ports.len());
        let (begin_ns, end_ns) = self.book(port, now, bytes);
        let flight = &mut self.flights[message as usize];
        flight.passed += 1;
        flight.behind = NONE;
        flight.tail_ns = flight.tail_ns.max(end_ns);
        if !is_last {
            self.push(begin_ns, Event::Passes(message));
            return;
        }
        let (dst, exchange, class) = (flight.dst, flight.exchange, flight.path.class);
        let tail_ns = flight.tail_ns;
        let what = What::Message {
            exchange,
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
        self.expect(dst, exchange, tail_ns);
    }

    /// A message of `exchange` arrives at `worker` at a time that is known now.
    fn expect(&mut self, worker: u32, exchange: u32, at_ns: u64) {
        let state = &mut self.states[worker as usize];
        let progress = &mut state.exchanges[exchange as usize];
        progress.missing -= 1;
        progress.arrived_ns = progress.arrived_ns.max(at_ns);
        let waits_for_it = state.waits_since.is_some()
            && self.program.workers[worker as usize].steps[state.next] == Step::Wait(exchange);
        if let Some(done_ns) = progress.done_ns()
            && waits_for_it
        {
            self.push(done_ns, Event::Continues(worker));
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
        self.events.push(Reverse(Key::new(at_ns, event)));
    }

    fn note(&mut self, worker: u32, lane: Lane, what: What, begin_ns: u64, time_ns: u64) {
        if let Some(spans) = &mut self.record {
            spans.push(Span {
                worker,
                lane,
                what,
                begin_ns,
                end_ns: begin_ns.saturating_add(time_ns),
            });
        }
    }
}
