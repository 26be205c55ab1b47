//! Which links join two workers, for accounting by link class.

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
    /// Two nodes (NIC).
    InterNode,
}

/// What a worker's links carry, each direction for itself, in MB/s (10⁶ bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bandwidths {
    /// To workers of its node.
    pub intra_mb_s: u32,
    /// To other nodes.
    pub inter_mb_s: u32,
}

impl Default for Bandwidths {
    /// NVLink of 370 GB/s, and a NIC of 45 GB/s for each GPU.
    fn default() -> Self {
        Self {
            intra_mb_s: 370_000,
            inter_mb_s: 45_000,
        }
    }
}

/// Workers of a pool fill nodes in id order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Topology {
    gpus_per_node: u32,
}

impl Topology {
    /// `gpus_per_node` consecutive workers share a node.
    ///
    /// # Errors
    /// If it is 0.
    pub fn new(gpus_per_node: u32) -> Result<Self, Error> {
        check_positive("GPUs per node", gpus_per_node.into())?;
        Ok(Self { gpus_per_node })
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

    /// Class of the link from `src` to `dst`.
    #[must_use]
    pub const fn link(self, src: WorkerId, dst: WorkerId) -> LinkClass {
        if src.0 == dst.0 {
            LinkClass::Local
        } else if self.node(src) == self.node(dst) {
            LinkClass::IntraNode
        } else {
            LinkClass::InterNode
        }
    }
}

impl Default for Topology {
    /// Eight workers a node.
    fn default() -> Self {
        Self { gpus_per_node: 8 }
    }
}
