use proptest::prelude::*;

use super::super::pipeline::{Task, finish_ns, side_by_side_ns};
use super::super::step::dp_efficiency;

fn equal(stages: u32, count: usize, forward_ns: u64, backward_ns: u64) -> u64 {
    let task = Task {
        replicas: 0..1,
        forward_ns,
        backward_ns,
    };
    finish_ns(stages, 1, &vec![vec![task]; count])[0]
}

#[test]
fn equal_microbatches_take_one_round_each_and_one_for_each_further_stage() {
    for stages in 1..6 {
        for count in 1..12 {
            let expected = (count as u64 + u64::from(stages) - 1) * (30 + 70);
            assert_eq!(equal(stages, count, 30, 70), expected, "{stages} {count}");
        }
    }
}

#[test]
fn no_microbatches_take_no_time() {
    assert_eq!(finish_ns(4, 2, &[]), [0, 0]);
}

#[test]
fn replicas_of_one_group_wait_for_each_other() {
    let task = |replicas, time| Task {
        replicas,
        forward_ns: time,
        backward_ns: 0,
    };
    let apart = [
        vec![task(0..1, 10), task(1..2, 50)],
        vec![task(0..1, 50), task(1..2, 10)],
    ];
    assert_eq!(finish_ns(1, 2, &apart), [60, 60]);
    let joined = [vec![task(0..1, 10), task(1..2, 50)], vec![task(0..2, 50)]];
    assert_eq!(finish_ns(1, 2, &joined), [100, 100]);
}

#[test]
fn groups_that_share_replicas_run_one_after_the_other() {
    let apart = [(0..2, 10), (2..4, 30), (0..2, 15)];
    assert_eq!(side_by_side_ns(4, apart), [25, 25, 30, 30]);
    let across = [(0..2, 10), (1..4, 30)];
    assert_eq!(side_by_side_ns(4, across), [10, 40, 40, 40]);
}

#[test]
fn replicas_are_as_efficient_as_their_times_are_even() {
    assert_eq!(dp_efficiency(&[10, 10, 10, 10], 2), 1.0);
    assert_eq!(dp_efficiency(&[10, 30, 30, 10], 2), 80.0 / 120.0);
    assert_eq!(dp_efficiency(&[10, 30, 30, 10], 1), 1.0);
    assert_eq!(dp_efficiency(&[0, 0], 2), 1.0);
}

/// The longest chain of operations: each after the one before it in its stage and the one that it follows.
fn longest_chain(stages: usize, times: &[(u64, u64)]) -> u64 {
    let count = times.len();
    // Operations by number: (stage, microbatch, whether backward).
    let id = |stage: usize, m: usize, back: bool| (stage * count + m) * 2 + usize::from(back);
    let mut edges = Vec::new();
    for stage in 0..stages {
        // In steady state the backward of m − (stages − stage − 1) follows the forward of m.
        let ahead = stages - stage - 1;
        let mut order: Vec<(usize, bool)> = Vec::new();
        let (mut forward, mut backward) = (0, 0);
        while backward < count {
            let may = forward < count && forward - backward <= ahead;
            if may {
                order.push((forward, false));
                forward += 1;
            } else {
                order.push((backward, true));
                backward += 1;
            }
        }
        for pair in order.windows(2) {
            edges.push((
                id(stage, pair[0].0, pair[0].1),
                id(stage, pair[1].0, pair[1].1),
            ));
        }
        for m in 0..count {
            if stage + 1 < stages {
                edges.push((id(stage, m, false), id(stage + 1, m, false)));
                edges.push((id(stage + 1, m, true), id(stage, m, true)));
            } else {
                edges.push((id(stage, m, false), id(stage, m, true)));
            }
        }
    }
    let time = |operation: usize| {
        let (forward, backward) = times[operation / 2 % count];
        if operation.is_multiple_of(2) {
            forward
        } else {
            backward
        }
    };
    // Bellman and Ford: as many rounds as operations.
    let mut end: Vec<u64> = (0..stages * count * 2).map(time).collect();
    for _ in 0..end.len() {
        for &(before, after) in &edges {
            end[after] = end[after].max(end[before] + time(after));
        }
    }
    end.into_iter().max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_step_is_the_longest_chain_of_its_operations(
        stages in 1..5usize,
        times in prop::collection::vec((0..100u64, 0..100u64), 1..8),
    ) {
        let microbatches: Vec<Vec<Task>> = times
            .iter()
            .map(|&(forward_ns, backward_ns)| vec![Task { replicas: 0..1, forward_ns, backward_ns }])
            .collect();
        prop_assert_eq!(finish_ns(stages as u32, 1, &microbatches)[0], longest_chain(stages, &times));
    }
}
