//! Methods over the windows of a source: every group on its own, then their maxima.
//!
//! Groups share nothing but their cluster, so that they are planned and simulated in parallel, each in memory of its own
//! size; what is kept of one are a few numbers.

use libra_sched::{BackwardMode, PackedLengths};

use super::cluster::Cluster;
use super::group::{GroupSpans, GroupTimes, Setting};
use super::step::{MethodTimes, StepShape, WindowTimes};
use super::trace::TraceEvents;
use crate::baseline::method::{Carried, Method};
use crate::baseline::{Group, Schedule, Work};
use crate::failure::Failure;
use crate::interrupt;
use crate::measure::{Source, Windows};
use crate::preset::{Settings, Shapes};

/// What to simulate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// Lengths.
    pub(crate) source: &'a Source,
    /// How they are packed.
    pub(crate) settings: &'a Settings,
    /// What of `settings` decides plans.
    pub(crate) shapes: &'a Shapes,
    /// Where it runs.
    pub(crate) cluster: &'a Cluster,
    /// What is compared.
    pub(crate) methods: &'a [Method],
    /// Most windows.
    pub(crate) windows: u64,
    /// What stays from forward to backward.
    pub(crate) backward: BackwardMode,
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Simulated {
    /// One a method, over the same windows.
    pub(crate) methods: Vec<MethodTimes>,
    /// Timelines of every method's slowest group in the first window, where they were asked for.
    pub(crate) trace: TraceEvents,
}

impl<'a> Request<'a> {
    /// Simulates; `step` is called once a method and window. Windows that are not done by every method when the user asks
    /// for an end are left out.
    ///
    /// # Errors
    /// Lengths that do not make a window, or shapes that a method or the cluster cannot run.
    pub(crate) fn run(&self, traced: bool, step: impl Fn()) -> Result<Simulated, Failure> {
        let shape = &self.shapes.window;
        let gpus = u64::from(shape.dp()) * u64::from(shape.cp()) * u64::from(self.shapes.pp);
        self.cluster.check_size(gpus)?;
        let mut trace = TraceEvents::default();
        let mut times: Vec<Vec<WindowTimes>> = vec![Vec::new(); self.methods.len()];
        let mut windows = Windows::new(self.source, self.settings)?;
        let mut carried = vec![Carried::default(); self.methods.len()];
        let mut done = 0;
        while done < self.windows {
            let Some(packed) = windows.read()? else {
                break;
            };
            let (number, lengths) = (packed.window, packed.lengths);
            let mut own = Vec::with_capacity(self.methods.len());
            for (&method, carried) in self.methods.iter().zip(&mut carried) {
                let before = (traced && done == 0).then(|| carried.clone());
                let groups = self.simulate(method, carried, &lengths, number)?;
                step();
                if interrupt::requested() {
                    break;
                }
                if let Some(mut before) = before {
                    let schedule = method.schedule_next(&mut before, &lengths, self.shapes)?;
                    self.trace(&schedule, &groups, number, &mut trace);
                }
                own.push(self.window(&groups, &lengths));
            }
            if interrupt::requested() {
                break;
            }
            for (all, one) in times.iter_mut().zip(own) {
                all.push(one);
            }
            done += 1;
        }
        Ok(Simulated {
            methods: if done == 0 {
                Vec::new()
            } else {
                self.cases(&times)
            },
            trace,
        })
    }

    fn setting(&self) -> Setting<'a> {
        let heads = &self.shapes.heads;
        Setting {
            cluster: self.cluster,
            cp: self.shapes.window.cp(),
            head_width: heads.dim_qk() + heads.dim_v(),
            backward: self.backward,
        }
    }

    /// One layer of every group, in order; groups not begun when the user asks for an end are left out.
    fn simulate(
        &self,
        method: Method,
        carried: &mut Carried,
        window: &PackedLengths,
        step: u64,
    ) -> Result<Vec<GroupTimes>, Failure> {
        let setting = self.setting();
        let simulate =
            |group: Group| (!interrupt::requested()).then(|| setting.group(&group, step, None));
        let groups = method.each_group(carried, window, self.shapes, simulate)?;
        Ok(groups.into_iter().flatten().collect())
    }

    fn window(&self, groups: &[GroupTimes], lengths: &PackedLengths) -> WindowTimes {
        let shape = StepShape {
            replicas: self.shapes.window.dp(),
            stages: self.shapes.pp,
            backward: self.backward,
            model: &self.cluster.file.model,
        };
        let tokens = (0..lengths.sequences())
            .flat_map(|sequence| lengths.lengths_of(sequence))
            .map(|&length| u64::from(length))
            .sum();
        WindowTimes::new(groups, tokens, &shape)
    }

    fn cases(&self, times: &[Vec<WindowTimes>]) -> Vec<MethodTimes> {
        let case = |method: Method, times, base| {
            let replicas = self.shapes.window.dp() as usize;
            let is_equivalent = method.is_step_equivalent();
            MethodTimes::new(method.name(), is_equivalent, replicas, times, base)
        };
        let all = || self.methods.iter().copied().zip(times);
        let base = all().find(|(method, _)| *method == Method::Ulysses);
        let base = base.map(|(method, times)| case(method, times, None));
        all()
            .map(|(method, times)| case(method, times, base.as_ref()))
            .collect()
    }

    /// Adds the slowest group's timeline, forward and then backward.
    fn trace(
        &self,
        schedule: &Schedule,
        groups: &[GroupTimes],
        step: u64,
        trace: &mut TraceEvents,
    ) {
        let slowest = (groups.iter().enumerate())
            .max_by_key(|(at, times)| (times.forward.makespan_ns, std::cmp::Reverse(*at)));
        let Some((at, times)) = slowest else { return };
        let group = &schedule.groups[at];
        let mut spans = GroupSpans::default();
        let setting = self.setting();
        setting.group(group, step, Some(&mut spans));
        let first_process = trace.next_process();
        let fabric = setting.fabric(group);
        let node = |worker: u32| fabric.node(worker);
        let process = |worker: u32| first_process + node(worker);
        let title = format!("{}, replicas {:?}", schedule.method, group.replicas);
        trace.name_workers(&title, first_process, group.tokens.len() as u32, node);
        let name = |exchange: u32| exchange_name(group, exchange);
        trace.add(&spans.forward, 0, process, "forward", name);
        let after_ns = times.forward.makespan_ns;
        trace.add(&spans.backward, after_ns, process, "backward", name);
    }
}

/// The leg and chunk of an exchange of a plan; steps have numbers alone.
fn exchange_name(group: &Group, exchange: u32) -> String {
    const LEGS: [&str; 4] = ["dispatch", "relay", "gather", "return"];
    match &group.work {
        Work::Plan(plan) => {
            let chunks = plan.heads.chunks();
            let leg = LEGS[(exchange / chunks) as usize];
            format!("{leg} of chunk {}", exchange % chunks)
        }
        Work::Steps(_) => format!("exchange {exchange}"),
    }
}
