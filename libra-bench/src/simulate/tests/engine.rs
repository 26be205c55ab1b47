use super::super::engine::{Lane, Span, WorkerTimes, run};
use super::super::fabric::{Class, Fabric};
use super::super::program::{Program, Step, Worker};
use super::{ROUND, cluster, exchanges, one_exchange};

fn times(text: &str, program: &Program) -> Vec<WorkerTimes> {
    let fabric = Fabric::new(&cluster(text), 0, program.workers.len() as u32);
    let compute_ns = vec![Vec::new(); program.workers.len()];
    run(program, &fabric, &compute_ns, None)
}

fn finish(text: &str, program: &Program) -> Vec<u64> {
    let times = times(text, program);
    times.iter().map(|times| times.finish_ns).collect()
}

#[test]
fn one_message_takes_latency_and_its_bytes() {
    // The sender is done when its port is.
    let within = one_exchange(2, &[(0, 1, 5000)]);
    assert_eq!(finish(ROUND, &within), [5010, 5110]);
    let between = one_exchange(8, &[(0, 4, 5000)]);
    assert_eq!(finish(ROUND, &between)[0], 5020);
    assert_eq!(finish(ROUND, &between)[4], 6020);
}

#[test]
fn two_messages_into_one_port_come_one_after_the_other() {
    let program = one_exchange(3, &[(0, 2, 1000), (1, 2, 3000)]);
    assert_eq!(finish(ROUND, &program), [1010, 3010, 4120]);
}

#[test]
fn both_directions_of_a_port_are_busy_at_once() {
    let program = one_exchange(2, &[(0, 1, 1000), (1, 0, 1000)]);
    assert_eq!(finish(ROUND, &program), [1110, 1110]);
}

#[test]
fn ports_within_and_between_nodes_are_busy_at_once() {
    let program = one_exchange(8, &[(0, 1, 1000), (0, 4, 1000)]);
    let finish = finish(ROUND, &program);
    assert_eq!((finish[0], finish[1], finish[4]), (1020, 1110, 2020));
}

#[test]
fn a_ring_takes_as_long_as_one_message_a_step() {
    // Worker w hands on to w + 1, each step after what came in the step before.
    const WORKERS: u32 = 4;
    let moves: Vec<(u32, u32, u64)> = (0..WORKERS).map(|w| (w, (w + 1) % WORKERS, 2000)).collect();
    let rounds = vec![&moves[..]; 3];
    let mut program = exchanges(WORKERS, &rounds);
    for worker in &mut program.workers {
        worker.steps = (0..3)
            .flat_map(|e| [Step::Start(e), Step::Wait(e)])
            .collect();
    }
    assert_eq!(finish(ROUND, &program), [3 * 2110; 4]);
}

#[test]
fn an_all_to_all_takes_as_long_as_its_ports_are_busy() {
    for workers in [2, 4, 8, 12, 16] {
        let moves: Vec<(u32, u32, u64)> = (0..workers)
            .flat_map(|w| (0..workers).map(move |peer| (w, peer, 1000)))
            .filter(|(w, peer, _)| w != peer)
            .collect();
        let inside = u64::from(workers.min(4) - 1);
        let outside = u64::from(workers) - 1 - inside;
        let node_ns = 100 + inside * 1010;
        let nic_ns = if outside > 0 {
            1000 + outside * 1020
        } else {
            0
        };
        let expected = vec![node_ns.max(nic_ns); workers as usize];
        assert_eq!(
            finish(ROUND, &one_exchange(workers, &moves)),
            expected,
            "{workers}"
        );
    }
}

#[test]
fn gpus_that_share_a_nic_share_its_time() {
    let shared = ROUND.replace("nics = 4", "nics = 2");
    let moves = [(0, 4, 1000), (1, 6, 1000)];
    let finish_ns = finish(&shared, &one_exchange(8, &moves));
    assert_eq!((finish_ns[4], finish_ns[6]), (2020, 3040));
    let finish_ns = finish(ROUND, &one_exchange(8, &moves));
    assert_eq!((finish_ns[4], finish_ns[6]), (2020, 2020));
    // Two NICs a GPU are twice as fast.
    let double = ROUND.replace("nics = 4", "nics = 8");
    assert_eq!(finish(&double, &one_exchange(8, &moves))[4], 1520);
}

#[test]
fn an_uplink_carries_what_oversubscription_leaves() {
    // Two pods of one node of four GPUs; the uplink has the bandwidth of one NIC.
    let text = format!("{ROUND}[network]\nnodes_per_pod = 1\noversubscription = 4\n");
    let moves: Vec<(u32, u32, u64)> = (0..4).map(|w| (w, w + 4, 1000)).collect();
    let program = one_exchange(8, &moves);
    // Four messages of 1,000 bytes pass one port of 1 byte a nanosecond, and then each its own.
    assert_eq!(finish(&text, &program)[4..], [2020, 3020, 4020, 5020]);
    // Without oversubscription each has its own way.
    assert_eq!(finish(ROUND, &program)[4..], [2020; 4]);
}

#[test]
fn a_group_gets_its_part_of_an_uplink() {
    // Pods of one node of two GPUs and an uplink of one NIC; the group has one GPU in each of two.
    let pods = "[network]\nnodes_per_pod = 1\noversubscription = 2\n";
    let text = format!("{ROUND}{pods}").replace("gpus = 4\nnics = 4", "gpus = 2\nnics = 2");
    let program = one_exchange(2, &[(0, 1, 1000)]);
    let fabric = Fabric::new(&cluster(&text), 1, 2);
    let times = run(&program, &fabric, &[vec![], vec![]], None);
    assert_eq!(times[1].finish_ns, 1000 + 2 * 1000);
}

#[test]
fn another_rail_costs_the_spine() {
    let text = format!("{ROUND}[network]\nrails = true\nspine_latency_us = 0.5\n");
    let times = times(&text, &one_exchange(8, &[(0, 4, 1000), (1, 6, 1000)]));
    assert_eq!((times[4].finish_ns, times[6].finish_ns), (2020, 2520));
    assert_eq!(times[0].sent_bytes[Class::Rail as usize], 1000);
    assert_eq!(times[1].sent_bytes[Class::Spine as usize], 1000);
    assert_eq!(times[6].received_bytes[Class::Spine as usize], 1000);
}

#[test]
fn computing_hides_what_arrives_meanwhile() {
    let mut program = one_exchange(2, &[(0, 1, 1000), (1, 0, 1000)]);
    for worker in &mut program.workers {
        worker.steps = vec![Step::Start(0), Step::Compute(0), Step::Wait(0)];
        worker.computes = vec![Vec::new()];
    }
    let fabric = Fabric::new(&cluster(ROUND), 0, 2);
    let times = run(&program, &fabric, &[vec![700], vec![4000]], None);
    let seen: Vec<_> = times
        .iter()
        .map(|t| (t.finish_ns, t.compute_ns, t.exposed_ns))
        .collect();
    assert_eq!(seen, [(1110, 700, 410), (4000, 4000, 0)]);
}

#[test]
fn a_message_leaves_whether_its_receiver_is_there_or_not() {
    let mut program = one_exchange(2, &[(0, 1, 1000)]);
    program.workers[1].steps = vec![Step::Compute(0), Step::Start(0), Step::Wait(0)];
    program.workers[1].computes = vec![Vec::new()];
    let fabric = Fabric::new(&cluster(ROUND), 0, 2);
    let times = run(&program, &fabric, &[vec![], vec![9000]], None);
    assert_eq!(times[1].finish_ns, 9000);
}

#[test]
#[should_panic(expected = "worker 1 ends at step 1 of 2: it waits for what nobody sends")]
fn a_program_that_hangs_is_noticed() {
    let mut program = one_exchange(2, &[(0, 1, 1000)]);
    program.workers[0] = Worker::default();
    times(ROUND, &program);
}

/// Spans of one lane of one worker, in order of time.
fn lane(spans: &[Span], worker: u32, lane: Lane) -> Vec<(u64, u64)> {
    let own = spans
        .iter()
        .filter(|s| s.worker == worker && s.lane == lane);
    let mut own: Vec<_> = own.map(|s| (s.begin_ns, s.end_ns)).collect();
    own.sort_unstable();
    own
}

#[test]
fn a_lane_does_one_thing_at_a_time_and_its_spans_add_up() {
    let moves: Vec<(u32, u32, u64)> = (0..8)
        .flat_map(|w| (0..8).map(move |peer| (w, peer, u64::from(100 * w + peer))))
        .filter(|(w, peer, _)| w != peer)
        .collect();
    let program = exchanges(8, &[&moves, &moves]);
    let fabric = Fabric::new(&cluster(ROUND), 0, 8);
    let mut spans = Vec::new();
    let times = run(&program, &fabric, &vec![Vec::new(); 8], Some(&mut spans));
    for (worker, times) in (0..).zip(&times) {
        for own in [Lane::NodeOut, Lane::NodeIn, Lane::NicOut, Lane::NicIn] {
            let spans = lane(&spans, worker, own);
            assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            let busy: u64 = spans.iter().map(|(begin, end)| end - begin).sum();
            assert_eq!(busy, times.port_ns[own as usize]);
        }
        let waits: u64 = lane(&spans, worker, Lane::Compute)
            .iter()
            .map(|(b, e)| e - b)
            .sum();
        assert_eq!(waits, times.exposed_ns);
        assert!(
            lane(&spans, worker, Lane::Compute)
                .iter()
                .all(|s| s.1 <= times.finish_ns)
        );
    }
}
