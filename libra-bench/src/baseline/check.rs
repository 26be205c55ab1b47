//! What every schedule and every program must hold, by means of its own.

use std::collections::BTreeMap;

use libra_exec::lower_all;
use libra_sched::{BackwardMode, Mask, PackedLengths, Proxy, reverse, verify};

use super::{Group, Schedule, Work};
use crate::preset::Shapes;
use crate::simulate::program::{Attention, Message, Program, Step, Worker};

/// Query–key pairs × heads of everything that a program computes.
pub(super) fn computed(program: &Program) -> u64 {
    let all = program
        .workers
        .iter()
        .flat_map(|w| w.computes.iter().flatten());
    all.map(|a| a.pairs * u64::from(a.heads)).sum()
}

/// The same, by worker.
pub(super) fn computed_by_worker(program: &Program) -> Vec<u64> {
    let of = |entries: &[Attention]| -> u64 {
        entries.iter().map(|a| a.pairs * u64::from(a.heads)).sum()
    };
    let worker = |w: &Worker| w.computes.iter().map(|entries| of(entries)).sum();
    program.workers.iter().map(worker).collect()
}

/// Bytes that each worker receives.
pub(super) fn received(program: &Program) -> Vec<u64> {
    let worker = |w: &Worker| {
        let all = w.exchanges.iter().flat_map(|e| &e.receives);
        all.map(|message| message.bytes).sum()
    };
    program.workers.iter().map(worker).collect()
}

/// Forward and backward of a group.
pub(super) fn programs(group: &Group) -> [Program; 2] {
    match &group.work {
        Work::Plan(plan) => {
            let backward = reverse::derive(plan, BackwardMode::Recompute);
            let programs = lower_all(plan, &backward);
            [Program::forward(&programs), Program::backward(&programs)]
        }
        Work::Steps(steps) => {
            let programs = steps.lower();
            let programs = programs.workers();
            [Program::forward(programs), Program::backward(programs)]
        }
    }
}

/// Every start has its wait, sends match receives, everything is computed once, and no order hangs.
pub(super) fn check_program(program: &Program) {
    for worker in &program.workers {
        check_worker(worker);
    }
    let exchanges = |w: &Worker| w.exchanges.len();
    let count = program.workers.first().map_or(0, exchanges);
    assert!(program.workers.iter().all(|w| exchanges(w) == count));
    let mut sent: BTreeMap<(usize, usize, usize), u64> = BTreeMap::new();
    let mut received = sent.clone();
    for (me, worker) in program.workers.iter().enumerate() {
        for (number, exchange) in worker.exchanges.iter().enumerate() {
            let mut note = |messages: &[Message], is_send: bool| {
                for message in messages {
                    let peer = message.peer as usize;
                    assert!(peer != me && peer < program.workers.len());
                    assert!(message.bytes > 0, "an empty message");
                    let (src, dst) = if is_send { (me, peer) } else { (peer, me) };
                    let list = if is_send { &mut sent } else { &mut received };
                    let before = list.insert((number, src, dst), message.bytes);
                    assert_eq!(before, None, "two messages from {src} to {dst}");
                }
            };
            note(&exchange.sends, true);
            note(&exchange.receives, false);
        }
    }
    assert_eq!(sent, received);
    check_ends(program);
}

fn check_worker(worker: &Worker) {
    let mut started = vec![0; worker.exchanges.len()];
    let mut waited = started.clone();
    let mut computed = vec![0; worker.computes.len()];
    for step in &worker.steps {
        match *step {
            Step::Start(exchange) => started[exchange as usize] += 1,
            Step::Wait(exchange) => {
                waited[exchange as usize] += 1;
                assert_eq!(started[exchange as usize], 1, "waited before it began");
            }
            Step::Compute(part) => computed[part as usize] += 1,
        }
    }
    assert_eq!(started, waited);
    assert!(computed.iter().all(|&times| times == 1));
    for (exchange, &times) in worker.exchanges.iter().zip(&started) {
        let is_empty = exchange.sends.is_empty() && exchange.receives.is_empty();
        assert!(
            times == 1 || (times == 0 && is_empty),
            "messages that never start"
        );
    }
}

/// Workers run until all are done, each waiting only for starts of its peers.
fn check_ends(program: &Program) {
    let mut at = vec![0; program.workers.len()];
    let mut started: Vec<Vec<bool>> = (program.workers.iter())
        .map(|w| vec![false; w.exchanges.len()])
        .collect();
    loop {
        let mut moved = false;
        for (me, worker) in program.workers.iter().enumerate() {
            while let Some(step) = worker.steps.get(at[me]) {
                match *step {
                    Step::Start(exchange) => started[me][exchange as usize] = true,
                    Step::Wait(exchange) => {
                        let from = &worker.exchanges[exchange as usize].receives;
                        let is_there = |m: &Message| started[m.peer as usize][exchange as usize];
                        if !from.iter().all(is_there) {
                            break;
                        }
                    }
                    Step::Compute(_) => {}
                }
                at[me] += 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let ends: Vec<usize> = program.workers.iter().map(|w| w.steps.len()).collect();
    assert_eq!(at, ends, "the program hangs");
}

/// Plans keep their rules, programs run through, groups of one index share no replica, and, where the step stays the
/// window's, every pair of the window is computed once in every head.
pub(super) fn check_schedule(schedule: &Schedule, window: &PackedLengths, shapes: &Shapes) {
    let (mut total, mut tokens) = (0, 0);
    let mut busy: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for (number, group) in schedule.groups.iter().enumerate() {
        if let Work::Plan(plan) = &group.work {
            assert_eq!(verify::check(plan), [], "{}", schedule.method);
        }
        let [forward, backward] = programs(group);
        for program in [&forward, &backward] {
            check_program(program);
            assert_eq!(program.workers.len(), group.tokens.len());
        }
        assert_eq!(computed_by_worker(&forward), computed_by_worker(&backward));
        let workers = group.replicas.len() * shapes.window.cp() as usize;
        assert_eq!(group.tokens.len(), workers);
        assert!(group.replicas.end <= shapes.window.dp());
        for replica in group.replicas.clone() {
            let other = busy.insert((group.ga, replica), number);
            assert_eq!(other, None, "{}: two groups at once", schedule.method);
        }
        total += computed(&forward);
        tokens += group.tokens.iter().sum::<u64>();
    }
    if schedule.method.is_step_equivalent() {
        assert_eq!(
            total,
            work_of(window, shapes.plan.mask, shapes.heads.q_heads())
        );
        let real: u32 = (0..window.sequences()).map(|s| window.tokens_of(s)).sum();
        assert!(tokens >= u64::from(real), "{}", schedule.method);
    }
}

/// Pairs × heads of a window.
pub(super) fn work_of(window: &PackedLengths, mask: Mask, q_heads: u32) -> u64 {
    let work = window.work(Proxy::Pairs(mask)).expect("fits");
    work.iter().sum::<u64>() * u64::from(q_heads)
}
