use libra_sched::BackwardMode;

use super::super::cluster::ModelSection;
use super::super::group::{GroupTimes, PassTimes};
use super::super::step::{MethodTimes, StepShape, WindowTimes};

fn group(ga: u32, replica: u32, forward_ns: u64, backward_ns: u64, linear_ns: u64) -> GroupTimes {
    let pass = |makespan_ns| PassTimes {
        makespan_ns,
        workers: 1,
        compute_ns: makespan_ns.into(),
        ..PassTimes::default()
    };
    GroupTimes {
        ga,
        replicas: replica..replica + 1,
        forward: pass(forward_ns),
        backward: pass(backward_ns),
        linear_ns,
    }
}

/// Two replicas, two GA indices: 100 and 300, then 400 and 200.
fn window(model: &ModelSection, backward: BackwardMode) -> WindowTimes {
    let groups = [
        group(0, 0, 100, 0, 10),
        group(0, 1, 300, 0, 10),
        group(1, 0, 400, 0, 10),
        group(1, 1, 200, 0, 10),
    ];
    let shape = StepShape {
        replicas: 2,
        stages: 1,
        backward,
        model,
    };
    WindowTimes::new(&groups, 1000, &shape)
}

#[test]
fn stragglers_are_those_of_each_index() {
    let window = window(&ModelSection::default(), BackwardMode::Stash);
    assert_eq!(window.forward_ns, [300, 400]);
    assert_eq!(window.replica_ns, [100, 300, 400, 200]);
    assert_eq!(window.layer_ns, [110, 310, 410, 210]);
    let method = MethodTimes::new("m", true, 2, &[window], None);
    assert_eq!(method.straggler_ms_mean, 350e-6);
    assert_eq!(method.straggler_ms_max, 400e-6);
    assert_eq!(method.dp_efficiency, 1000.0 / (2.0 * 700.0));
    // Both replicas have 500 in all.
    assert_eq!(method.dp_step_efficiency, 1.0);
    assert_eq!(method.compute_ms_mean, 250e-6);
}

#[test]
fn replicas_wait_at_the_end_of_a_step_or_all_the_time() {
    let model = ModelSection {
        layers: 3,
        sync_ms: 1.0,
        ..ModelSection::default()
    };
    // Forward once, the rest twice again backward.
    let apart = window(&model, BackwardMode::Stash).step_ns;
    assert_eq!(apart, 3 * (500 + 2 * 30) + 1_000_000);
    let lockstep = ModelSection {
        lockstep: true,
        ..model.clone()
    };
    let together = window(&lockstep, BackwardMode::Stash).step_ns;
    assert_eq!(together, 3 * (700 + 2 * 30) + 1_000_000);
    // A second forward of everything.
    let again = window(&model, BackwardMode::Recompute).step_ns;
    assert_eq!(again, 3 * (2 * 500 + 2 * 40) + 1_000_000);
}
