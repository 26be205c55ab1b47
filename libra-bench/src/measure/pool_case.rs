//! One pool in numbers.

use std::time::Instant;

use libra_sched::plan::{PoolPlan, Scratch, granularity, plan_pool_measured};
use libra_sched::wire::PlanId;
use libra_sched::{
    Bandwidths, PackedLengths, Placer, PoolId, Proxy, SampleId, Slack, Tiling, audit, bound, verify,
};
use serde::Serialize;

use super::window::{WindowPlan, nanoseconds};
use crate::failure::Failure;
use crate::preset::Shapes;

/// What costs more time than planning does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extras {
    /// The plan's digest.
    pub(crate) plan_id: bool,
    /// Whether the plan keeps its rules.
    pub(crate) verify: bool,
}

impl Extras {
    /// Everything.
    pub(crate) const ALL: Self = Self {
        plan_id: true,
        verify: true,
    };
}

/// One pool in numbers: a case of the `plan` report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PoolCase {
    /// Which window of the corpus.
    pub(crate) window: u64,
    /// Which pool of it.
    pub(crate) pool: u32,
    /// Gradient-accumulation index at which it runs.
    pub(crate) ga: u32,
    /// Digest of the plan, where it was asked for.
    pub(crate) plan_id: Option<String>,
    /// Where the plan is.
    pub(crate) file: Option<String>,
    /// Sequences of it.
    pub(crate) pool_size: usize,
    /// Their workers.
    pub(crate) workers: usize,
    /// Number of tiles.
    pub(crate) tiles: usize,
    /// KV groups that some tile reads.
    pub(crate) kv_groups: usize,
    /// Pairs × query heads.
    pub(crate) work_total: u64,
    /// Heaviest pool of the window over their mean, less 1, in arrival order.
    pub(crate) inter_arrival_excess: f64,
    /// As placed.
    pub(crate) inter_excess: f64,
    /// What no placement goes below.
    pub(crate) inter_bound_excess: f64,
    /// Heaviest pool of the window over that bound, less 1: 0 is proved to be the best.
    pub(crate) inter_gap: f64,
    /// This pool over the mean, per sequence, less 1.
    pub(crate) pool_excess: f64,
    /// Heaviest worker over the mean, less 1, were every tile at home.
    pub(crate) home_excess: f64,
    /// As placed.
    pub(crate) intra_excess: f64,
    /// What no placement of these tiles goes below.
    pub(crate) tile_bound_excess: f64,
    /// What became of tiles that adapt.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) adaptive: Option<AdaptiveCase>,
    /// What smaller blocks would do, where the bound exceeds the slack.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) coarse: Option<CoarseCase>,
    /// Busiest worker's time over the mean, less 1, were every tile at home; where times or speeds were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) home_time_excess: Option<f64>,
    /// As placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time_excess: Option<f64>,
    /// Bytes of Q and O that move.
    pub(crate) qo_bytes: u64,
    /// Bytes of K and V that move.
    pub(crate) kv_bytes: u64,
    /// All of them.
    pub(crate) moved_bytes: u64,
    /// Most bytes that a worker sends.
    pub(crate) max_send_bytes: u64,
    /// Most bytes that a worker receives.
    pub(crate) max_recv_bytes: u64,
    /// Most bytes of Q, K and V that come to a worker for its share of the work.
    pub(crate) max_staged_bytes: u64,
    /// Bytes between nodes.
    pub(crate) cross_node_bytes: u64,
    /// Bytes between pods, which are among those.
    pub(crate) cross_pod_bytes: u64,
    /// Bytes that relays forward within their nodes.
    pub(crate) forward_bytes: u64,
    /// Bytes of the busiest worker's port between nodes, in its busier direction.
    pub(crate) busiest_port_bytes: u64,
    /// Time of the busiest direction of any worker's port, NVLink 370 GB/s and a NIC of 45 GB/s.
    pub(crate) busiest_port_ns: u64,
    /// What any placement with the same heaviest worker moves at least.
    pub(crate) moved_bytes_bound: u64,
    /// Time to cut, place and derive the exchange.
    pub(crate) plan_ns: Option<u64>,
}

/// Tiles that adapt: how many there are before the splits, and between splits and merges.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AdaptiveCase {
    /// As cut.
    pub(crate) fixed_tiles: usize,
    /// As placed.
    pub(crate) placed_tiles: usize,
    /// What no placement of those as cut goes below.
    pub(crate) fixed_bound_excess: f64,
}

/// Tiles that are too heavy for the slack.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CoarseCase {
    /// Heaviest over mean sequence of the pool.
    pub(crate) phi: f64,
    /// H·L/(2φ·CP): tokens of a block whose last tile fills a mean worker where one sample fills the heaviest sequence.
    pub(crate) rule_block_tokens: f64,
    /// Tokens of a block of which any two tiles fit a mean worker.
    pub(crate) safe_block_tokens: u64,
}

impl WindowPlan {
    /// Plans `pool` and adds it up.
    pub(super) fn plan_pool(
        &self,
        scratch: &mut Scratch,
        shapes: &Shapes,
        pool: u32,
        extras: Extras,
    ) -> Result<(PoolCase, PoolPlan), Failure> {
        let lengths = self.pool_lengths(pool)?;
        let layout = shapes.layout_of(lengths.sequences())?;
        let speeds = shapes.speeds_of(lengths.sequences());
        let measured = shapes.measured(speeds.as_ref());
        let (heads, config) = (&shapes.heads, &shapes.plan);
        let begin = Instant::now();
        let plan = plan_pool_measured(scratch, &lengths, &layout, heads, config, measured)?;
        let plan_ns = nanoseconds(begin);
        if extras.verify {
            self.verify(pool, &plan)?;
        }
        let audit = audit::audit(&plan, shapes.topology);
        let is_measured = shapes.costs.is_some() || shapes.speeds.is_some();
        let times = match is_measured {
            true => Some(audit::times(&plan, measured)?),
            false => None,
        };
        let mut adaptive = None;
        let mut tile_bound_excess = audit.tile_bound_excess();
        if shapes.plan.tiling == Tiling::Adaptive {
            let [fixed, placed] = granularity(&lengths, &layout, heads, config)?;
            let excess = |bound| audit::excess(bound, audit.work_total, audit.loads.len());
            // Merged tiles stay at home: they bind nobody.
            tile_bound_excess = excess(placed.bound);
            adaptive = Some(AdaptiveCase {
                fixed_tiles: fixed.tiles,
                placed_tiles: placed.tiles,
                fixed_bound_excess: excess(fixed.bound),
            });
        }
        let largest = |bytes: &[u64]| bytes.iter().copied().max().unwrap_or(0);
        let case = PoolCase {
            window: self.window,
            pool,
            ga: self.placement.first(PoolId(pool)) as u32 / shapes.window.dp(),
            plan_id: extras.plan_id.then(|| PlanId::of(&plan).to_string()),
            file: None,
            pool_size: lengths.sequences(),
            workers: audit.loads.len(),
            tiles: plan.tiles.len(),
            kv_groups: plan.kv_groups(),
            work_total: audit.work_total,
            inter_arrival_excess: self.inter.arrival_excess,
            inter_excess: self.inter.excess,
            inter_bound_excess: self.inter.bound_excess,
            inter_gap: self.inter.gap,
            pool_excess: self.inter.pool_excess[pool as usize],
            home_excess: audit.home_excess(),
            intra_excess: audit.intra_excess(),
            tile_bound_excess,
            adaptive,
            coarse: coarse(&lengths, shapes, tile_bound_excess)?,
            home_time_excess: times.as_ref().map(|times| times.home_excess),
            time_excess: times.as_ref().map(|times| times.excess),
            qo_bytes: audit.qo_bytes,
            kv_bytes: audit.kv_bytes,
            moved_bytes: audit.moved_bytes(),
            max_send_bytes: largest(&audit.sent_bytes),
            max_recv_bytes: largest(&audit.received_bytes),
            max_staged_bytes: largest(&audit.staged_bytes),
            cross_node_bytes: audit.cross_node_bytes,
            cross_pod_bytes: audit.cross_pod_bytes,
            forward_bytes: audit.forward_bytes,
            busiest_port_bytes: audit.busiest_port_bytes(),
            busiest_port_ns: audit.busiest_port_ns(Bandwidths::default()),
            moved_bytes_bound: bound::moved_bytes(&plan, largest(&audit.loads)).moved_bytes(),
            plan_ns: Some(plan_ns),
        };
        Ok((case, plan))
    }

    fn verify(&self, pool: u32, plan: &PoolPlan) -> Result<(), Failure> {
        match &verify::check(plan)[..] {
            [] => Ok(()),
            [first, rest @ ..] => Err(Failure::Planner {
                window: self.window,
                pool,
                count: 1 + rest.len(),
                first: first.to_string(),
            }),
        }
    }
}

/// What smaller blocks would do, where the tiles' bound exceeds the slack.
fn coarse(
    lengths: &PackedLengths,
    shapes: &Shapes,
    bound_excess: f64,
) -> Result<Option<CoarseCase>, Failure> {
    let Placer::Paper(slack) = shapes.plan.placer else {
        return Ok(None);
    };
    if slack == Slack::UNBOUNDED || bound_excess <= f64::from(slack.ppm()) / 1e6 {
        return Ok(None);
    }
    let mask = shapes.plan.mask;
    let work = lengths.work(Proxy::Pairs(mask))?;
    let total: u128 = work.iter().map(|&work| u128::from(work)).sum();
    let heaviest = work.iter().copied().max().unwrap_or(0);
    let phi = heaviest as f64 * work.len() as f64 / total as f64;
    let samples = (0..lengths.samples()).map(|sample| lengths.length(SampleId::new(sample)));
    let longest = samples.max().unwrap_or(1);
    let (shards, cp) = (shapes.heads.shards(), shapes.window.cp());
    // A query reads its sample at most: blocks of so many tokens have half a mean worker's work.
    let share = 2 * work.len() as u128 * u128::from(cp) * u128::from(longest);
    Ok(Some(CoarseCase {
        phi,
        rule_block_tokens: f64::from(shards) * f64::from(lengths.seq_tokens())
            / (2.0 * phi * f64::from(cp)),
        safe_block_tokens: (u128::from(shards) * total / share) as u64,
    }))
}
