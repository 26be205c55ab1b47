//! Executed passes as trace events: what each worker did when, by its own clock.

use libra_exec::Trace;
use libra_exec::cpu::WorkerRun;
use libra_exec::program::Step;
use serde_json::{Map, json};

use crate::simulate::trace::{TraceEvents, Track};

/// Threads of a worker, in the order in which they are shown.
const THREADS: [&str; 3] = ["compute", "start", "wait"];

/// Adds forward and backward of `workers`, `gpus_per_node` a process. A pass begins when its first worker begins it;
/// backward is drawn after the last worker's forward, and a second forward is not drawn.
pub(crate) fn add_timeline(
    trace: &mut TraceEvents,
    title: &str,
    workers: &[WorkerRun],
    gpus_per_node: u32,
) {
    let first_process = trace.next_process();
    let process = |worker: u32| first_process + worker / gpus_per_node;
    for worker in 0..workers.len() as u32 {
        if worker.is_multiple_of(gpus_per_node) {
            let node = worker / gpus_per_node;
            trace.name_process(process(worker), &format!("{title}: node {node}"));
        }
        for (thread, name) in (0..).zip(THREADS) {
            let track = track(process(worker), worker, thread);
            trace.name_thread(track, &format!("w{worker} {name}"));
        }
    }
    let forward_ns = workers.iter().map(|run| run.forward.end_ns()).max();
    for (worker, run) in (0..).zip(workers) {
        let process = process(worker);
        add_pass(trace, process, worker, "forward", &run.forward, 0);
        let after_ns = forward_ns.unwrap_or(0);
        add_pass(trace, process, worker, "backward", &run.backward, after_ns);
    }
}

fn add_pass(
    trace: &mut TraceEvents,
    process: u32,
    worker: u32,
    direction: &str,
    pass: &Trace,
    after_ns: u64,
) {
    for record in &pass.steps {
        let mut more = Map::new();
        let thread = match record.step {
            Step::Compute(_) => {
                more.insert("busy_ns".to_owned(), json!(record.busy_ns));
                0
            }
            Step::Start(..) => 1,
            Step::Wait(..) => 2,
        };
        if thread > 0 {
            more.insert("bytes".to_owned(), json!(record.bytes));
        }
        let name = format!("{direction} {}", record.step);
        let begin_ns = after_ns + record.begin_ns;
        trace.span(
            track(process, worker, thread),
            &name,
            begin_ns,
            record.wall_ns,
            more,
        );
    }
}

fn track(process: u32, worker: u32, thread: u32) -> Track {
    Track {
        process,
        thread: worker * THREADS.len() as u32 + thread,
    }
}
