//! One layer of one group: its programs lowered, its attention timed, its messages simulated.

use std::ops::Range;

use libra_exec::lower_all;
use libra_sched::{BackwardMode, reverse};

use super::cluster::Cluster;
use super::engine::{self, Span, WorkerTimes};
use super::fabric::{Class, Fabric};
use super::jitter;
use super::kernel::Direction;
use super::program::Program;
use crate::baseline::{Group, Work};

/// What all groups have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    /// Where they run.
    pub(crate) cluster: &'a Cluster,
    /// Workers of a replica.
    pub(crate) cp: u32,
    /// d_qk + d_v.
    pub(crate) head_width: u32,
    /// What stays from forward to backward.
    pub(crate) backward: BackwardMode,
}

/// One direction of one layer in one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PassTimes {
    /// Until the last worker is done.
    pub(crate) makespan_ns: u64,
    /// Workers.
    pub(crate) workers: u32,
    /// In attention, all workers.
    pub(crate) compute_ns: u128,
    /// In attention, the busiest worker.
    pub(crate) compute_ns_max: u64,
    /// Busiest ports, all workers.
    pub(crate) comm_ns: u128,
    /// The busiest port of all.
    pub(crate) comm_ns_max: u64,
    /// In waits, all workers.
    pub(crate) exposed_ns: u128,
    /// Sent by all workers, by [`Class`].
    pub(crate) sent_bytes: [u64; Class::COUNT],
}

/// One layer of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupTimes {
    /// As [`Group::ga`].
    pub(crate) ga: u32,
    /// As [`Group::replicas`].
    pub(crate) replicas: Range<u32>,
    /// Attention forward.
    pub(crate) forward: PassTimes,
    /// Attention backward; a second forward is not part of it.
    pub(crate) backward: PassTimes,
    /// All else, forward: the slowest worker.
    pub(crate) linear_ns: u64,
}

/// Spans of forward and backward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupSpans {
    /// Forward.
    pub(crate) forward: Vec<Span>,
    /// Backward, from 0 on.
    pub(crate) backward: Vec<Span>,
}

impl Setting<'_> {
    /// Forward and backward programs of `group`.
    pub(crate) fn programs(&self, group: &Group) -> [Program; 2] {
        match &group.work {
            Work::Plan(plan) => {
                let programs = lower_all(plan, &reverse::derive(plan, self.backward));
                [Program::forward(&programs), Program::backward(&programs)]
            }
            Work::Steps(steps) => {
                let programs = steps.lower();
                let programs = programs.workers();
                [Program::forward(programs), Program::backward(programs)]
            }
        }
    }

    /// Ports of `group`.
    pub(crate) fn fabric(&self, group: &Group) -> Fabric {
        Fabric::new(
            self.cluster,
            self.first_gpu(group),
            group.tokens.len() as u32,
        )
    }

    fn first_gpu(&self, group: &Group) -> u64 {
        u64::from(group.replicas.start) * u64::from(self.cp)
    }

    /// Simulates one layer of `group` in step number `step`; spans go to `record`.
    pub(crate) fn group(
        &self,
        group: &Group,
        step: u64,
        record: Option<&mut GroupSpans>,
    ) -> GroupTimes {
        let programs = self.programs(group);
        let [forward, backward] = &programs;
        let (first_gpu, fabric) = (self.first_gpu(group), self.fabric(group));
        let factors: Vec<f64> = (0..fabric.workers() as u64)
            .map(|worker| jitter::factor(&self.cluster.file.jitter, step, first_gpu + worker))
            .collect();
        let run = |program: &Program, direction: Direction, spans: Option<&mut Vec<Span>>| {
            let compute_ns = self.compute_ns(program, &factors, direction);
            PassTimes::new(&engine::run(program, &fabric, &compute_ns, spans))
        };
        let (ahead, after) = match record {
            Some(spans) => (Some(&mut spans.forward), Some(&mut spans.backward)),
            None => (None, None),
        };
        let linear_us = self.cluster.file.model.linear_us_per_token;
        let linear_ns = (group.tokens.iter().zip(&factors))
            .map(|(&tokens, factor)| (tokens as f64 * linear_us * 1e3 * factor).round() as u64)
            .max();
        GroupTimes {
            ga: group.ga,
            replicas: group.replicas.clone(),
            forward: run(forward, Direction::Forward, ahead),
            backward: run(backward, Direction::Backward, after),
            linear_ns: linear_ns.unwrap_or(0),
        }
    }

    /// Time of every worker's computes.
    pub(super) fn compute_ns(
        &self,
        program: &Program,
        factors: &[f64],
        direction: Direction,
    ) -> Vec<Vec<u64>> {
        let kernel = &self.cluster.kernel;
        let of_worker = |(worker, factor): (&super::program::Worker, &f64)| {
            let launch = |pieces: &Vec<_>| {
                let time_ns = kernel.launch_ns(pieces, self.head_width, direction);
                (time_ns * factor).round() as u64
            };
            worker.computes.iter().map(launch).collect()
        };
        program.workers.iter().zip(factors).map(of_worker).collect()
    }
}

impl PassTimes {
    fn new(workers: &[WorkerTimes]) -> Self {
        let mut times = Self {
            workers: workers.len() as u32,
            ..Self::default()
        };
        for worker in workers {
            times.makespan_ns = times.makespan_ns.max(worker.finish_ns);
            times.compute_ns += u128::from(worker.compute_ns);
            times.compute_ns_max = times.compute_ns_max.max(worker.compute_ns);
            times.comm_ns += u128::from(worker.comm_ns());
            times.comm_ns_max = times.comm_ns_max.max(worker.comm_ns());
            times.exposed_ns += u128::from(worker.exposed_ns);
            for (sum, bytes) in times.sent_bytes.iter_mut().zip(worker.sent_bytes) {
                *sum += bytes;
            }
        }
        times
    }
}
