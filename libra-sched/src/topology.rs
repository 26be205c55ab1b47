//! Which links join two workers, for accounting by link class.

use std::num::NonZeroU32;

use crate::error::{Error, check_positive};
use crate::ids::WorkerId;

/// Class of the slowest link between two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LinkClass {
    /// The same worker: nothing moves.
    Local,
    /// Two workers of one node (NVLink).
    IntraNode,
    /// Two nodes of one pod (NIC).
    InterNode,
    /// Two pods (NIC, then the links that pods share).
    InterPod,
}

/// What a worker's links carry, each direction for itself, in MB/s (10⁶ bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bandwidths {
    /// To workers of its node.
    pub intra_mb_s: u32,
    /// To other nodes.
    pub inter_mb_s: u32,
    /// The worker's share of what its pod's links carry to other pods: `inter_mb_s` over the factor
    /// by which they are oversubscribed. Bytes to other pods pass the NIC as well.
    pub pod_mb_s: u32,
}

impl Default for Bandwidths {
    /// NVLink of 370 GB/s, and a NIC of 45 GB/s for each GPU; pods that are not oversubscribed.
    fn default() -> Self {
        Self {
            intra_mb_s: 370_000,
            inter_mb_s: 45_000,
            pod_mb_s: 45_000,
        }
    }
}

/// Workers of a pool fill nodes in id order, and nodes fill pods.
///
/// ```
/// use libra_sched::topology::{LinkClass, Topology};
/// use libra_sched::WorkerId;
/// // Pods of two nodes of four workers: 0..8, 8..16, ...
/// let topology = Topology::new(4)?.with_pods(2)?;
/// let link = |a, b| topology.link(WorkerId(a), WorkerId(b));
/// assert_eq!([link(0, 3), link(0, 4), link(0, 8)], [
///     LinkClass::IntraNode, LinkClass::InterNode, LinkClass::InterPod,
/// ]);
/// # Ok::<(), libra_sched::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Topology {
    gpus_per_node: u32,
    /// `None` for one pod of all nodes.
    nodes_per_pod: Option<NonZeroU32>,
}

impl Topology {
    /// `gpus_per_node` consecutive workers share a node; all nodes are one pod.
    ///
    /// # Errors
    /// If it is 0.
    pub fn new(gpus_per_node: u32) -> Result<Self, Error> {
        check_positive("GPUs per node", gpus_per_node.into())?;
        Ok(Self {
            gpus_per_node,
            nodes_per_pod: None,
        })
    }

    /// The same nodes, `nodes_per_pod` consecutive ones a pod.
    ///
    /// # Errors
    /// If it is 0.
    pub fn with_pods(self, nodes_per_pod: u32) -> Result<Self, Error> {
        check_positive("nodes per pod", nodes_per_pod.into())?;
        let nodes_per_pod = NonZeroU32::new(nodes_per_pod);
        Ok(Self {
            nodes_per_pod,
            ..self
        })
    }

    /// The same nodes, all in one pod.
    #[must_use]
    pub const fn without_pods(self) -> Self {
        Self {
            nodes_per_pod: None,
            ..self
        }
    }

    /// Nodes of one pod; `None` where all are one.
    #[must_use]
    pub const fn nodes_per_pod(self) -> Option<u32> {
        match self.nodes_per_pod {
            Some(nodes) => Some(nodes.get()),
            None => None,
        }
    }

    /// Workers of one node.
    #[must_use]
    pub const fn gpus_per_node(self) -> u32 {
        self.gpus_per_node
    }

    /// Node of `worker`.
    #[must_use]
    pub const fn node(self, worker: WorkerId) -> u32 {
        worker.0 / self.gpus_per_node
    }

    /// Pod of a node.
    #[must_use]
    pub const fn pod(self, node: u32) -> u32 {
        match self.nodes_per_pod {
            Some(nodes) => node / nodes.get(),
            None => 0,
        }
    }

    /// Whether bytes from `src` to `dst` leave a node.
    #[must_use]
    pub const fn crosses_nodes(self, src: WorkerId, dst: WorkerId) -> bool {
        self.node(src) != self.node(dst)
    }

    /// Class of the link from `src` to `dst`.
    #[must_use]
    pub const fn link(self, src: WorkerId, dst: WorkerId) -> LinkClass {
        let (from, to) = (self.node(src), self.node(dst));
        if src.0 == dst.0 {
            LinkClass::Local
        } else if from == to {
            LinkClass::IntraNode
        } else if self.pod(from) == self.pod(to) {
            LinkClass::InterNode
        } else {
            LinkClass::InterPod
        }
    }
}

impl Default for Topology {
    /// Eight workers a node, one pod.
    fn default() -> Self {
        Self {
            gpus_per_node: 8,
            nodes_per_pod: None,
        }
    }
}
