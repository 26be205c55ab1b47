//! Plans windows: VRSP, then every pool.

use std::time::Instant;

use libra_sched::plan::{PoolPlan, Scratch, granularity, plan_pool_measured};
use libra_sched::vrsp::{self, Elastic, SequencePlacement};
use libra_sched::wire::PlanId;
use libra_sched::{
    Bandwidths, PackedLengths, Placer, PoolId, Proxy, SampleId, Slack, Tiling, audit, bound, verify,
};
use rayon::prelude::*;
use serde::Serialize;

use super::source::{Source, windows};
use crate::failure::Failure;
use crate::interrupt;
use crate::preset::{Settings, Shapes};
use crate::workload;

/// VRSP of one window is timed this often.
const VRSP_RUNS: usize = 9;

/// Windows of a source, one after the other.
pub(crate) struct Windows {
    packed: workload::Windows<workload::Lengths>,
    next: u64,
}

/// A window's sequences in pools.
#[derive(Clone, Debug)]
pub(crate) struct WindowPlan {
    /// Which window of the corpus.
    pub(crate) window: u64,
    /// Sample lengths of every sequence.
    pub(crate) lengths: PackedLengths,
    /// Which sequences share a pool.
    pub(crate) placement: SequencePlacement,
    /// How well.
    pub(crate) inter: Inter,
}

/// Balance of a window's pools: heaviest over mean, less 1, in pairs under the mask or of the sparse attention that is
/// the proxy.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Inter {
    /// Pools in arrival order.
    pub(crate) arrival_excess: f64,
    /// Pools as placed.
    pub(crate) excess: f64,
    /// What no placement goes below.
    pub(crate) bound_excess: f64,
    /// Why.
    pub(crate) bound: String,
    /// Heaviest pool over the bound, less 1.
    pub(crate) gap: f64,
    /// What a step waits for over the mean, less 1, in the order that pools run and in paper order;
    /// nothing where pools were merged.
    pub(crate) ga_excess: Option<[f64; 2]>,
    /// Pools that were merged, if any, and what no placement in pools of P goes below.
    pub(crate) merged: Option<Merged>,
    /// Load per sequence over mean, less 1, of each pool.
    #[serde(skip)]
    pub(crate) pool_excess: Vec<f64>,
    /// Median time of placing the sequences.
    #[serde(skip)]
    pub(crate) vrsp_ns: u64,
}

/// Pools of more than P sequences in a window.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Merged {
    /// Which window of the corpus.
    pub(crate) window: u64,
    /// Sequences of each of them.
    pub(crate) pool_sizes: Vec<usize>,
    /// What no placement in pools of P goes below.
    pub(crate) bound_excess_before: f64,
    /// What no placement in pools up to the cap goes below.
    pub(crate) bound_excess_after: f64,
    /// Why it was not enough to have pools of P.
    pub(crate) bound: String,
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
    /// Digest of the plan.
    pub(crate) plan_id: String,
    /// Where the plan is.
    pub(crate) file: Option<String>,
    /// Sequences of it.
    pub(crate) pool_size: usize,
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
    /// Bytes between nodes.
    pub(crate) cross_node_bytes: u64,
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

impl Windows {
    /// Windows from the first that `settings` do not skip.
    pub(crate) fn new(source: &Source, settings: &Settings) -> Result<Self, Failure> {
        Ok(Self {
            packed: windows(source.lengths(settings)?, settings)?,
            next: settings.skip_windows,
        })
    }

    /// The next window in pools, if there is one.
    pub(crate) fn next(&mut self, shapes: &Shapes) -> Result<Option<WindowPlan>, Failure> {
        let packed = self.packed.next();
        // Lengths that cannot be read look like the end of the corpus, or like one that is too short.
        if let Some(error) = self.packed.lengths_mut().take_error() {
            return Err(error.into());
        }
        let Some(packed) = packed.transpose()? else {
            return Ok(None);
        };
        let lengths = PackedLengths::new(packed.seq_tokens, packed.sequences)?;
        let window = self.next;
        self.next += 1;
        group(window, lengths, shapes).map(Some)
    }

    /// Sequences and tokens of the incomplete last window, once there is no next one.
    pub(crate) fn dropped(&self) -> (u64, u64) {
        (
            self.packed.dropped_sequences(),
            self.packed.dropped_tokens(),
        )
    }
}

/// VRSP, and how good it is.
fn group(window: u64, lengths: PackedLengths, shapes: &Shapes) -> Result<WindowPlan, Failure> {
    let size = shapes.window.pool_size() as usize;
    let weights = lengths.work(shapes.proxy)?;
    // Squares only estimate; sparse attention is what will be computed.
    let computed = match shapes.proxy {
        Proxy::Sparse(_) => shapes.proxy,
        _ => Proxy::Pairs(shapes.plan.mask),
    };
    let pairs = lengths.work(computed)?;
    let mut scratch = vrsp::Scratch::default();
    let mut times = Vec::with_capacity(VRSP_RUNS);
    let grouped = loop {
        let begin = Instant::now();
        let grouped = Grouped::new(&mut scratch, &weights, shapes)?;
        times.push(nanoseconds(begin));
        if times.len() == VRSP_RUNS {
            break grouped;
        }
    };
    let arrival = vrsp::place(&pairs, size, vrsp::Vrsp::Arrival)?;
    // The proxy that decided may not be what is computed.
    let paper_loads = loads(&grouped.placement, &pairs);
    let placement = if grouped.merged.is_none() {
        let order = vrsp::ga_order(&paper_loads, &shapes.window, shapes.ga_order, shapes.pp)?;
        grouped.placement.reordered(&order)?
    } else {
        grouped.placement
    };
    let total = pairs.iter().sum();
    let heaviest = |loads: &[u64]| loads.iter().copied().max().unwrap_or(0);
    let bound = if weights == pairs && shapes.vrsp == vrsp::Vrsp::Certified {
        // It may be better than any argument: certified VRSP can prove more by a search.
        placement.bound()
    } else {
        match grouped.merged {
            None => vrsp::lower_bound(&pairs, size)?,
            Some(_) => vrsp::lower_bound_up_to(&pairs, placement.bound().pool_size)?,
        }
    };
    let excess = |load, size: usize| audit::excess(load, total, pairs.len() / size);
    let loads = loads(&placement, &pairs);
    let per_sequence = |pool: usize| {
        let scale = bound.pool_size / placement.pool_size(PoolId::new(pool));
        loads[pool] * scale as u64
    };
    let weighed: Vec<u64> = (0..loads.len()).map(per_sequence).collect();
    let ga_excess = if grouped.merged.is_none() {
        let waits = |loads: &[u64]| -> Result<f64, Failure> {
            let order: Vec<PoolId> = (0..loads.len()).map(PoolId::new).collect();
            let time = vrsp::ga_time(loads, &order, &shapes.window, shapes.pp)?;
            let side = shapes.window.pools_per_ga() as usize;
            Ok(audit::excess(time, total, side))
        };
        Some([waits(&loads)?, waits(&paper_loads)?])
    } else {
        None
    };
    let inter = Inter {
        arrival_excess: excess(heaviest(arrival.loads()), size),
        excess: excess(heaviest(&weighed), bound.pool_size),
        bound_excess: excess(bound.load, bound.pool_size),
        bound: bound.kind.to_string(),
        gap: heaviest(&weighed) as f64 / bound.load.max(1) as f64 - 1.0,
        ga_excess,
        merged: grouped.merged.map(|merged| Merged { window, ..merged }),
        pool_excess: weighed
            .iter()
            .map(|&load| excess(load, bound.pool_size))
            .collect(),
        vrsp_ns: median(&mut times),
    };
    Ok(WindowPlan {
        window,
        lengths,
        placement,
        inter,
    })
}

/// Work of every pool.
fn loads(placement: &SequencePlacement, work: &[u64]) -> Vec<u64> {
    let load = |pool: usize| {
        let members = placement.members(PoolId::new(pool)).iter();
        members.map(|member| work[member.index()]).sum()
    };
    (0..placement.pools()).map(load).collect()
}

/// What VRSP made of a window.
struct Grouped {
    placement: SequencePlacement,
    /// Without the window's number.
    merged: Option<Merged>,
}

impl Grouped {
    fn new(scratch: &mut vrsp::Scratch, weights: &[u64], shapes: &Shapes) -> Result<Self, Failure> {
        let shape = &shapes.window;
        if shapes.elastic == Elastic::OFF {
            let size = shape.pool_size() as usize;
            return Ok(Self {
                placement: vrsp::place_with(scratch, weights, size, shapes.vrsp)?,
                merged: None,
            });
        }
        let elastic = vrsp::elastic_with(scratch, weights, shape, shapes.elastic)?;
        let total = weights.iter().sum();
        let excess = |bound: vrsp::PoolBound| {
            audit::excess(bound.load, total, weights.len() / bound.pool_size)
        };
        let size = |pool| elastic.placement.pool_size(pool);
        let merged = elastic.merged().next().is_some().then(|| Merged {
            window: 0,
            pool_sizes: elastic.merged().map(size).collect(),
            bound_excess_before: excess(elastic.before),
            bound_excess_after: excess(elastic.after),
            bound: elastic.before.kind.to_string(),
        });
        Ok(Self {
            merged,
            placement: elastic.placement,
        })
    }
}

impl WindowPlan {
    /// Lengths of `pool`, slot by slot.
    pub(crate) fn pool_lengths(&self, pool: u32) -> Result<PackedLengths, Failure> {
        let members = self.placement.members(PoolId(pool));
        Ok(self.lengths.select(members)?)
    }

    /// Plans every pool in parallel; pools not begun when the user asks for an end are left out.
    pub(crate) fn plan_pools(
        &self,
        shapes: &Shapes,
        step: impl Fn() + Sync,
    ) -> Result<Vec<(PoolCase, PoolPlan)>, Failure> {
        let pools: Vec<Option<Result<_, Failure>>> = (0..self.placement.pools() as u32)
            .into_par_iter()
            .map_init(Scratch::default, |scratch, pool| {
                if interrupt::requested() {
                    return None;
                }
                let planned = self.plan_one(scratch, shapes, pool);
                step();
                Some(planned)
            })
            .collect();
        // In order, so that the first error does not depend on threads.
        pools.into_iter().flatten().collect()
    }

    fn plan_one(
        &self,
        scratch: &mut Scratch,
        shapes: &Shapes,
        pool: u32,
    ) -> Result<(PoolCase, PoolPlan), Failure> {
        let lengths = self.pool_lengths(pool)?;
        let layout = shapes.layout_of(lengths.sequences())?;
        let speeds = shapes.speeds_of(lengths.sequences());
        let measured = shapes.measured(speeds.as_ref());
        let (heads, config) = (&shapes.heads, &shapes.plan);
        let begin = Instant::now();
        let plan = plan_pool_measured(scratch, &lengths, &layout, heads, config, measured)?;
        let plan_ns = nanoseconds(begin);
        if let [first, rest @ ..] = &verify::check(&plan)[..] {
            return Err(Failure::Planner {
                window: self.window,
                pool,
                count: 1 + rest.len(),
                first: first.to_string(),
            });
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
            plan_id: PlanId::of(&plan).to_string(),
            file: None,
            pool_size: lengths.sequences(),
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
            cross_node_bytes: audit.cross_node_bytes,
            forward_bytes: audit.forward_bytes,
            busiest_port_bytes: audit.busiest_port_bytes(),
            busiest_port_ns: audit.busiest_port_ns(Bandwidths::default()),
            moved_bytes_bound: bound::moved_bytes(&plan, largest(&audit.loads)).moved_bytes(),
            plan_ns: Some(plan_ns),
        };
        Ok((case, plan))
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

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The middle value, the lower one of two; 0 of none.
pub(crate) fn median(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    times
        .get(times.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0)
}
