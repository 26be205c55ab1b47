//! What a plan costs: imbalance, bytes by link class, bounds. Reports, not decisions.

use crate::error::Error;
use crate::ids::WorkerId;
use crate::plan::{Measured, PoolPlan};
use crate::tiles::{self, TileSet};
use crate::topology::{Bandwidths, LinkClass, Topology};

/// A plan in numbers. Loads are pairs × heads, sizes are bytes of one layer's forward exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// Work of each worker.
    pub loads: Vec<u64>,
    /// Work of the pool.
    pub work_total: u64,
    /// Work each worker would have if every tile stayed at home.
    pub home_loads: Vec<u64>,
    /// No placement of these tiles has a heaviest worker below this: the largest of the mean, the
    /// heaviest tile, and the W-th and (W+1)-th heaviest together (two of W+1 share a worker).
    pub tile_bound: u64,
    /// Bytes of Q dispatched and O returned.
    pub qo_bytes: u64,
    /// Bytes of K and V fetched, from homes and from relays.
    pub kv_bytes: u64,
    /// Bytes of those that relays forward within their nodes.
    pub forward_bytes: u64,
    /// Bytes that cross nodes, pods among them.
    pub cross_node_bytes: u64,
    /// Bytes that cross pods.
    pub cross_pod_bytes: u64,
    /// Bytes each worker sends: Q, O and KV together.
    pub sent_bytes: Vec<u64>,
    /// Bytes each worker receives.
    pub received_bytes: Vec<u64>,
    /// Bytes each worker's staging receives in dispatch: Q and KV.
    pub staged_bytes: Vec<u64>,
    /// Bytes through each worker's links, by class.
    pub links: Vec<LinkBytes>,
}

/// Bytes through the links of one worker: Q, O and KV together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinkBytes {
    /// Sent to workers of its node.
    pub sent_intra_bytes: u64,
    /// Received from workers of its node.
    pub received_intra_bytes: u64,
    /// Sent to other nodes, of whatever pod.
    pub sent_inter_bytes: u64,
    /// Received from other nodes, of whatever pod.
    pub received_inter_bytes: u64,
    /// Of those, sent to other pods.
    pub sent_pod_bytes: u64,
    /// Of those, received from other pods.
    pub received_pod_bytes: u64,
}

impl LinkBytes {
    /// Bytes through the busier direction of the port to other nodes.
    #[must_use]
    pub fn port_bytes(&self) -> u64 {
        self.sent_inter_bytes.max(self.received_inter_bytes)
    }

    /// Bytes through the busier direction of what the links of `class` join.
    #[must_use]
    pub fn busier_bytes(&self, class: LinkClass) -> u64 {
        match class {
            LinkClass::Local => 0,
            LinkClass::IntraNode => self.sent_intra_bytes.max(self.received_intra_bytes),
            LinkClass::InterNode => self.port_bytes(),
            LinkClass::InterPod => self.sent_pod_bytes.max(self.received_pod_bytes),
        }
    }
}

/// Adds up `plan` on machines joined as `topology` says.
#[must_use]
pub fn audit(plan: &PoolPlan, topology: Topology) -> Audit {
    let workers = plan.layout.workers() as usize;
    let mut home_loads = vec![0; workers];
    for tile in &plan.tiles {
        home_loads[tile.q_home.index()] += tile.work;
    }
    let loads = plan.loads();
    let mut audit = Audit {
        work_total: loads.iter().sum(),
        tile_bound: tiles::bound(&plan.tiles, workers),
        loads,
        home_loads,
        qo_bytes: 0,
        kv_bytes: 0,
        forward_bytes: 0,
        cross_node_bytes: 0,
        cross_pod_bytes: 0,
        sent_bytes: vec![0; workers],
        received_bytes: vec![0; workers],
        staged_bytes: vec![0; workers],
        links: vec![LinkBytes::default(); workers],
    };
    for m in &plan.exchange.q {
        let bytes = plan.q_bytes(m.tile.index());
        audit.qo_bytes += bytes;
        audit.staged_bytes[m.dst.index()] += bytes;
        audit.send(topology, m.src, m.dst, bytes);
    }
    for m in plan.exchange.kv.iter().chain(&plan.exchange.forward) {
        let bytes = plan.kv_bytes(m);
        audit.kv_bytes += bytes;
        audit.staged_bytes[m.dst.index()] += bytes;
        audit.send(topology, m.src, m.dst, bytes);
    }
    audit.forward_bytes = plan.exchange.forward.iter().map(|m| plan.kv_bytes(m)).sum();
    for m in &plan.exchange.o {
        let bytes = plan.o_bytes(m.tile.index());
        audit.qo_bytes += bytes;
        audit.send(topology, m.src, m.dst, bytes);
    }
    audit
}

impl Audit {
    fn send(&mut self, topology: Topology, src: WorkerId, dst: WorkerId, bytes: u64) {
        self.sent_bytes[src.index()] += bytes;
        self.received_bytes[dst.index()] += bytes;
        let class = topology.link(src, dst);
        if class == LinkClass::IntraNode {
            self.links[src.index()].sent_intra_bytes += bytes;
            self.links[dst.index()].received_intra_bytes += bytes;
        }
        if class >= LinkClass::InterNode {
            self.cross_node_bytes += bytes;
            self.links[src.index()].sent_inter_bytes += bytes;
            self.links[dst.index()].received_inter_bytes += bytes;
        }
        if class >= LinkClass::InterPod {
            self.cross_pod_bytes += bytes;
            self.links[src.index()].sent_pod_bytes += bytes;
            self.links[dst.index()].received_pod_bytes += bytes;
        }
    }

    /// Bytes of the busiest port between nodes, in its busier direction.
    #[must_use]
    pub fn busiest_port_bytes(&self) -> u64 {
        self.links
            .iter()
            .map(LinkBytes::port_bytes)
            .max()
            .unwrap_or(0)
    }

    /// Time of the busiest direction of any worker's port, within its node, to others, or to other
    /// pods, in ns: bytes pass the three beside each other.
    #[must_use]
    pub fn busiest_port_ns(&self, bandwidths: Bandwidths) -> u64 {
        [
            LinkClass::IntraNode,
            LinkClass::InterNode,
            LinkClass::InterPod,
        ]
        .into_iter()
        .map(|class| self.busiest_link_ns(class, bandwidths))
        .max()
        .unwrap_or(0)
    }

    /// Time of the busiest direction of any worker's links of `class`, in ns. A NIC carries what
    /// leaves the node for other pods too, so [`LinkClass::InterNode`] counts both.
    #[must_use]
    pub fn busiest_link_ns(&self, class: LinkClass, bandwidths: Bandwidths) -> u64 {
        let mb_s = match class {
            LinkClass::Local => return 0,
            LinkClass::IntraNode => bandwidths.intra_mb_s,
            LinkClass::InterNode => bandwidths.inter_mb_s,
            LinkClass::InterPod => bandwidths.pod_mb_s,
        };
        let busiest = self.links.iter().map(|links| links.busier_bytes(class));
        let ns = u128::from(busiest.max().unwrap_or(0)) * 1000 / u128::from(mb_s.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// All bytes that leave a worker.
    #[must_use]
    pub fn moved_bytes(&self) -> u64 {
        self.qo_bytes + self.kv_bytes
    }

    /// Heaviest over mean worker load, less 1: R − 1 within the pool. 0 for a pool without work.
    #[must_use]
    pub fn intra_excess(&self) -> f64 {
        excess(
            self.loads.iter().copied().max().unwrap_or(0),
            self.work_total,
            self.loads.len(),
        )
    }

    /// As [`Audit::intra_excess`] if every tile stayed at home.
    #[must_use]
    pub fn home_excess(&self) -> f64 {
        let max = self.home_loads.iter().copied().max().unwrap_or(0);
        excess(max, self.work_total, self.loads.len())
    }

    /// As [`Audit::intra_excess`] at the proved bound for these tiles.
    #[must_use]
    pub fn tile_bound_excess(&self) -> f64 {
        // The bound rounds the mean up to an integer; below one unit of work it is the mean.
        excess(self.tile_bound, self.work_total, self.loads.len())
    }
}

/// A plan in measured times: beside work, where times or speeds were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Weight of each worker: ticks by a table of costs, else work.
    pub loads: Vec<u64>,
    /// As if every tile stayed at home.
    pub home_loads: Vec<u64>,
    /// Largest weight/speed over all weight/all speed, less 1.
    pub excess: f64,
    /// As if every tile stayed at home.
    pub home_excess: f64,
}

/// How long the workers of `plan` are busy by what was measured.
///
/// # Errors
/// Tiles that are not of the plan's pool, times beyond 64 bits, or not one speed a worker.
pub fn times(plan: &PoolPlan, measured: Measured<'_>) -> Result<Times, Error> {
    let workers = plan.layout.workers() as usize;
    let weights = match measured.costs {
        Some(costs) => {
            let tiles = plan.tiles.clone();
            let tiles = TileSet::new(&plan.lengths, &plan.layout, &plan.heads, tiles)?;
            tiles::reweigh(&tiles, &plan.heads, plan.mask, costs)?
        }
        None => plan.tiles.iter().map(|tile| tile.work).collect(),
    };
    if let Some(speeds) = measured.speeds {
        speeds.check_workers(plan.layout.workers())?;
    }
    let (mut loads, mut home_loads) = (vec![0; workers], vec![0; workers]);
    for ((tile, worker), weight) in plan.tiles.iter().zip(&plan.workers).zip(weights) {
        loads[worker.index()] += weight;
        home_loads[tile.q_home.index()] += weight;
    }
    let of = |loads: &[u64]| match measured.speeds {
        Some(speeds) => speeds.excess(loads),
        None => {
            let max = loads.iter().copied().max().unwrap_or(0);
            excess(max, loads.iter().sum(), workers)
        }
    };
    Ok(Times {
        excess: of(&loads),
        home_excess: of(&home_loads),
        loads,
        home_loads,
    })
}

/// `load` over the mean of `total` in `parts`, less 1.
#[must_use]
pub fn excess(load: u64, total: u64, parts: usize) -> f64 {
    if total == 0 {
        return 0.0;
    }
    load as f64 * parts as f64 / total as f64 - 1.0
}
