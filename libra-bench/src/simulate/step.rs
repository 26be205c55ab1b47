//! All groups of a window make a step; all windows of a method make a case.

use std::collections::BTreeMap;

use libra_sched::BackwardMode;
use serde::Serialize;

use super::cluster::ModelSection;
use super::group::{GroupTimes, PassTimes};
use super::pipeline::{self, Task};

/// One step of one method.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WindowTimes {
    /// Attention of one layer forward, by GA index: the slowest of all groups side by side.
    pub(crate) forward_ns: Vec<u64>,
    /// Likewise backward, without a second forward.
    pub(crate) backward_ns: Vec<u64>,
    /// Attention of the busiest worker of all groups side by side, forward, by GA index.
    pub(crate) compute_ns: Vec<u64>,
    /// The busiest port of all groups side by side, forward, by GA index.
    pub(crate) port_ns: Vec<u64>,
    /// Attention of one layer forward, by GA index and replica.
    pub(crate) replica_ns: Vec<u64>,
    /// Likewise with everything else of the layer.
    pub(crate) layer_ns: Vec<u64>,
    /// By direction, all groups.
    pub(crate) passes: [PassTimes; 2],
    /// The whole step.
    pub(crate) step_ns: u64,
    /// Tokens of samples in the window.
    pub(crate) tokens: u64,
}

/// How groups become a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepShape<'a> {
    /// Replicas, DP.
    pub(crate) replicas: u32,
    /// Pipeline stages, PP.
    pub(crate) stages: u32,
    /// What stays from forward to backward.
    pub(crate) backward: BackwardMode,
    /// Layers, and what is not attention.
    pub(crate) model: &'a ModelSection,
}

impl WindowTimes {
    /// Of all groups of a window, in the order in which those of one replica run.
    pub(crate) fn new(groups: &[GroupTimes], tokens: u64, shape: &StepShape<'_>) -> Self {
        let mut by_ga: BTreeMap<u32, Vec<&GroupTimes>> = BTreeMap::new();
        for group in groups {
            by_ga.entry(group.ga).or_default().push(group);
        }
        let by_replica = |of: fn(&GroupTimes) -> u64| -> Vec<Vec<u64>> {
            let at_once = |groups: &Vec<&GroupTimes>| {
                let tasks = groups
                    .iter()
                    .map(|group| (group.replicas.clone(), of(group)));
                pipeline::side_by_side_ns(shape.replicas, tasks)
            };
            by_ga.values().map(at_once).collect()
        };
        let slowest = |of: fn(&GroupTimes) -> u64| -> Vec<u64> {
            let slowest = |at_once: &Vec<u64>| at_once.iter().copied().max().unwrap_or(0);
            by_replica(of).iter().map(slowest).collect()
        };
        let microbatches: Vec<Vec<Task>> =
            by_ga.values().map(|groups| shape.tasks(groups)).collect();
        let finish = pipeline::finish_ns(shape.stages, shape.replicas, &microbatches);
        let sync_ns = (shape.model.sync_ms * 1e6).round() as u64;
        let mut passes = [PassTimes::default(), PassTimes::default()];
        for group in groups {
            passes[0].add(&group.forward);
            passes[1].add(&group.backward);
        }
        Self {
            forward_ns: slowest(|group| group.forward.makespan_ns),
            backward_ns: slowest(|group| group.backward.makespan_ns),
            compute_ns: slowest(|group| group.forward.compute_ns_max),
            port_ns: slowest(|group| group.forward.comm_ns_max),
            replica_ns: by_replica(|group| group.forward.makespan_ns).concat(),
            layer_ns: by_replica(|group| group.forward.makespan_ns.saturating_add(group.linear_ns))
                .concat(),
            passes,
            step_ns: finish
                .into_iter()
                .max()
                .unwrap_or(0)
                .saturating_add(sync_ns),
            tokens,
        }
    }
}

impl StepShape<'_> {
    /// A microbatch: one task where replicas keep in step.
    fn tasks(&self, groups: &[&GroupTimes]) -> Vec<Task> {
        let tasks: Vec<Task> = groups.iter().map(|group| self.task(group)).collect();
        if !self.model.lockstep {
            return tasks;
        }
        let slowest = |of: fn(&Task) -> u64| {
            let tasks = tasks.iter().map(|task| (task.replicas.clone(), of(task)));
            let all = pipeline::side_by_side_ns(self.replicas, tasks);
            all.into_iter().max().unwrap_or(0)
        };
        vec![Task {
            replicas: 0..self.replicas,
            forward_ns: slowest(|task| task.forward_ns),
            backward_ns: slowest(|task| task.backward_ns),
        }]
    }

    /// A stage has as many layers as the fullest one.
    fn task(&self, group: &GroupTimes) -> Task {
        let layers = u64::from(self.model.layers.div_ceil(self.stages));
        let forward_ns = group.forward.makespan_ns.saturating_add(group.linear_ns);
        // Two products of matrices for each one forward.
        let mut backward_ns =
            (group.backward.makespan_ns).saturating_add(group.linear_ns.saturating_mul(2));
        if self.backward == BackwardMode::Recompute {
            backward_ns = backward_ns.saturating_add(forward_ns);
        }
        Task {
            replicas: group.replicas.clone(),
            forward_ns: layers.saturating_mul(forward_ns),
            backward_ns: layers.saturating_mul(backward_ns),
        }
    }
}

impl PassTimes {
    /// As if `other` ran beside it.
    fn add(&mut self, other: &Self) {
        self.makespan_ns = self.makespan_ns.max(other.makespan_ns);
        self.workers += other.workers;
        self.compute_ns += other.compute_ns;
        self.compute_ns_max = self.compute_ns_max.max(other.compute_ns_max);
        self.comm_ns += other.comm_ns;
        self.comm_ns_max = self.comm_ns_max.max(other.comm_ns_max);
        self.exposed_ns += other.exposed_ns;
        for (sum, bytes) in self.sent_bytes.iter_mut().zip(other.sent_bytes) {
            *sum += bytes;
        }
    }

    fn mean_ms(&self, sum_ns: u128) -> f64 {
        sum_ns as f64 / f64::from(self.workers.max(1)) / 1e6
    }
}

/// A method in numbers: a case of the `simulate` report. Attention is that of one layer.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MethodTimes {
    /// Its name.
    pub(crate) method: String,
    /// Whether every step trains on the samples of its own window.
    pub(crate) step_equivalent: bool,
    /// Windows.
    pub(crate) windows: usize,
    /// Attention forward of the slowest group, mean over GA indices and windows.
    pub(crate) straggler_ms_mean: f64,
    /// The worst of them.
    pub(crate) straggler_ms_max: f64,
    /// Attention forward, mean of all workers.
    pub(crate) compute_ms_mean: f64,
    /// Attention forward of the busiest worker of the groups side by side, mean over GA indices and windows.
    pub(crate) busiest_compute_ms_mean: f64,
    /// Messages at the busiest port, mean of all workers.
    pub(crate) comm_ms_mean: f64,
    /// Messages at the busiest port of the groups side by side, mean over GA indices and windows.
    pub(crate) busiest_port_ms_mean: f64,
    /// Waits, mean of all workers.
    pub(crate) exposed_ms_mean: f64,
    /// Mean straggler of Ulysses over this one's.
    pub(crate) speedup_mean: Option<f64>,
    /// Worst straggler, likewise.
    pub(crate) speedup_max: Option<f64>,
    /// Attention forward, mean of all replicas over the slowest at each GA index: speed at DP replicas over one's, over
    /// DP, where replicas keep in step.
    pub(crate) dp_efficiency: f64,
    /// Likewise where they wait for each other at the end of a step.
    pub(crate) dp_step_efficiency: f64,
    /// As forward.
    pub(crate) straggler_backward_ms_mean: f64,
    /// As forward.
    pub(crate) straggler_backward_ms_max: f64,
    /// As forward.
    pub(crate) compute_backward_ms_mean: f64,
    /// As forward.
    pub(crate) comm_backward_ms_mean: f64,
    /// As forward.
    pub(crate) exposed_backward_ms_mean: f64,
    /// Sent forward, per window.
    pub(crate) sent_bytes_mean: ByClass,
    /// Those between nodes.
    pub(crate) cross_node_bytes_mean: f64,
    /// Whole steps: all layers, forward and backward, and the rest of the model.
    pub(crate) step_ms_mean: f64,
    /// The longest.
    pub(crate) step_ms_max: f64,
    /// Tokens of samples over step times.
    pub(crate) tokens_per_s: f64,
    /// Attention forward by window and GA index.
    pub(crate) straggler_ns: Vec<u64>,
    /// By window.
    pub(crate) step_ns: Vec<u64>,
    /// One layer forward, attention and the rest, by window, GA index and replica.
    pub(crate) layer_ns: Vec<u64>,
}

/// Bytes by the links that they take.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ByClass {
    node: f64,
    rail: f64,
    spine: f64,
    pod: f64,
}

impl MethodTimes {
    /// Over at least one window of `replicas` replicas; `base` is Ulysses.
    pub(crate) fn new(
        method: &str,
        step_equivalent: bool,
        replicas: usize,
        windows: &[WindowTimes],
        base: Option<&Self>,
    ) -> Self {
        let all = |of: fn(&WindowTimes) -> &Vec<u64>| -> Vec<u64> {
            windows.iter().flat_map(|w| of(w).iter().copied()).collect()
        };
        let sums: Vec<u64> = windows
            .iter()
            .flat_map(|window| sum_by_replica(&window.replica_ns, replicas))
            .collect();
        let (forward, backward) = (all(|w| &w.forward_ns), all(|w| &w.backward_ns));
        let steps: Vec<u64> = windows.iter().map(|w| w.step_ns).collect();
        let mut passes = [PassTimes::default(), PassTimes::default()];
        for window in windows {
            passes[0].add(&window.passes[0]);
            passes[1].add(&window.passes[1]);
        }
        let [ahead, after] = &passes;
        let count = windows.len().max(1) as f64;
        let [node, rail, spine, pod] = ahead.sent_bytes.map(|bytes| bytes as f64 / count);
        let tokens: f64 = windows.iter().map(|w| w.tokens as f64).sum();
        let (mean, max) = (mean_ms(&forward), max_ms(&forward));
        let over = |of: f64, own: f64| (own > 0.0).then(|| of / own);
        Self {
            method: method.to_owned(),
            step_equivalent,
            windows: windows.len(),
            straggler_ms_mean: mean,
            straggler_ms_max: max,
            compute_ms_mean: ahead.mean_ms(ahead.compute_ns),
            comm_ms_mean: ahead.mean_ms(ahead.comm_ns),
            busiest_compute_ms_mean: mean_ms(&all(|w| &w.compute_ns)),
            busiest_port_ms_mean: mean_ms(&all(|w| &w.port_ns)),
            exposed_ms_mean: ahead.mean_ms(ahead.exposed_ns),
            speedup_mean: base.and_then(|base| over(base.straggler_ms_mean, mean)),
            speedup_max: base.and_then(|base| over(base.straggler_ms_max, max)),
            dp_efficiency: dp_efficiency(&all(|w| &w.replica_ns), replicas),
            dp_step_efficiency: dp_efficiency(&sums, replicas),
            straggler_backward_ms_mean: mean_ms(&backward),
            straggler_backward_ms_max: max_ms(&backward),
            compute_backward_ms_mean: after.mean_ms(after.compute_ns),
            comm_backward_ms_mean: after.mean_ms(after.comm_ns),
            exposed_backward_ms_mean: after.mean_ms(after.exposed_ns),
            sent_bytes_mean: ByClass {
                node,
                rail,
                spine,
                pod,
            },
            cross_node_bytes_mean: rail + spine + pod,
            step_ms_mean: mean_ms(&steps),
            step_ms_max: max_ms(&steps),
            tokens_per_s: tokens / (mean_ms(&steps) * count / 1e3).max(f64::MIN_POSITIVE),
            straggler_ns: forward,
            layer_ns: all(|w| &w.layer_ns),
            step_ns: steps,
        }
    }
}

/// Speed at `dp` replicas over one replica's, over `dp`: mean over maximum of what runs side by side. `times_ns` are
/// those of sequences in the order in which they are trained on, `dp` at a time.
pub(crate) fn dp_efficiency(times_ns: &[u64], dp: usize) -> f64 {
    let total: u128 = times_ns.iter().map(|&time| u128::from(time)).sum();
    let slowest = |at_once: &[u64]| u128::from(at_once.iter().copied().max().unwrap_or(0));
    let waited: u128 = times_ns.chunks(dp).map(slowest).sum();
    if waited == 0 {
        return 1.0;
    }
    total as f64 / (waited as f64 * dp as f64)
}

/// Of times by GA index and replica.
fn sum_by_replica(times_ns: &[u64], replicas: usize) -> Vec<u64> {
    let mut sums = vec![0u64; replicas];
    for at_once in times_ns.chunks(replicas) {
        for (sum, time) in sums.iter_mut().zip(at_once) {
            *sum = sum.saturating_add(*time);
        }
    }
    sums
}

fn mean_ms(times_ns: &[u64]) -> f64 {
    let sum: u128 = times_ns.iter().map(|&time| u128::from(time)).sum();
    sum as f64 / times_ns.len().max(1) as f64 / 1e6
}

fn max_ms(times_ns: &[u64]) -> f64 {
    times_ns.iter().copied().max().unwrap_or(0) as f64 / 1e6
}
