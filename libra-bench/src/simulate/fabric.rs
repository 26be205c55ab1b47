//! Ports of a group's workers, and which of them a message passes.
//!
//! Every worker has a port to its node in each direction. Ports to other nodes are NICs: several GPUs may share one, or
//! one GPU have several. Between pods a message also passes the uplink of its own pod and the other's; a group gets the
//! part of an uplink that its GPUs are of the pod's, since other groups use it at the same time.

use super::cluster::Cluster;

/// Which links a message takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Within the node.
    Node,
    /// To another node, on the same leaf switch.
    Rail,
    /// To another node, over the spine.
    Spine,
    /// To another pod.
    Pod,
}

impl Class {
    /// Number of classes.
    pub(crate) const COUNT: usize = 4;
}

/// Something that sends or takes in one message after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Port {
    /// Of its bandwidth.
    pub(crate) ns_per_byte: f64,
    /// For every message, beside its bytes.
    pub(crate) message_ns: u64,
}

impl Port {
    /// How long a message keeps it busy.
    pub(crate) fn service_ns(&self, bytes: u64) -> u64 {
        let exact_ns = bytes as f64 * self.ns_per_byte;
        // As `round` does, which is a call where processors of every age are compiled for.
        let floor_ns = exact_ns as u64;
        let is_up = exact_ns - floor_ns as f64 >= 0.5;
        let bytes_ns = floor_ns.saturating_add(u64::from(is_up));
        self.message_ns.saturating_add(bytes_ns)
    }
}

/// Ports that a message passes, in order, and how long its first byte takes from the first to the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Path {
    pub(crate) class: Class,
    pub(crate) latency_ns: u64,
    ports: [u32; 4],
    count: u32,
}

impl Path {
    /// In order.
    pub(crate) fn ports(&self) -> &[u32] {
        &self.ports[..self.count as usize]
    }
}

/// Where a worker is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Counted from the first node of the group.
    node: u32,
    local: u32,
    rail: u32,
    /// Counted from the first pod of the group.
    pod: u32,
}

/// All ports of one group.
#[derive(Clone, Debug)]
pub(crate) struct Fabric {
    ports: Vec<Port>,
    places: Vec<Place>,
    nodes: u32,
    gpus_per_node: u32,
    /// Ports to other nodes, each direction.
    nics_per_node: u32,
    rails: bool,
    has_uplinks: bool,
    node_latency_ns: u64,
    nic_latency_ns: u64,
    spine_latency_ns: u64,
    pod_latency_ns: u64,
}

impl Fabric {
    /// Of `workers` consecutive GPUs from `first_gpu` on.
    pub(crate) fn new(cluster: &Cluster, first_gpu: u64, workers: u32) -> Self {
        let file = &cluster.file;
        let ns = |us: f64| (us * 1e3).round() as u64;
        let gpus = file.node.gpus;
        let nics_per_node = file.node.nics.min(gpus);
        let pod_nodes = u64::from(file.network.nodes_per_pod.unwrap_or(u32::MAX));
        let first_node = first_gpu / u64::from(gpus);
        let place = |worker: u32| {
            let gpu = first_gpu + u64::from(worker);
            let (node, local) = (gpu / u64::from(gpus), (gpu % u64::from(gpus)) as u32);
            Place {
                node: (node - first_node) as u32,
                local,
                rail: (u64::from(local) * u64::from(nics_per_node) / u64::from(gpus)) as u32,
                pod: (node / pod_nodes - first_node / pod_nodes) as u32,
            }
        };
        let places: Vec<Place> = (0..workers).map(place).collect();
        let nodes = places.last().map_or(0, |place| place.node + 1);
        let nvlink = Port {
            ns_per_byte: 1.0 / file.nvlink.bandwidth_gb_s,
            message_ns: ns(file.nvlink.message_us),
        };
        let per_port = f64::from(file.node.nics / nics_per_node);
        let nic_bandwidth = file.nic.bandwidth_gb_s * file.nic.efficiency * per_port;
        let nic = Port {
            ns_per_byte: 1.0 / nic_bandwidth,
            message_ns: ns(file.nic.message_us),
        };
        let mut ports = vec![nvlink; 2 * workers as usize];
        ports.extend(std::iter::repeat_n(
            nic,
            (2 * nodes * nics_per_node) as usize,
        ));
        let per_gpu = nic_bandwidth * f64::from(nics_per_node) / f64::from(gpus);
        let pods = places.last().map_or(0, |place| place.pod + 1);
        for pod in 0..pods {
            let here = places.iter().filter(|place| place.pod == pod).count();
            let uplink = Port {
                ns_per_byte: file.network.oversubscription / (per_gpu * here as f64),
                message_ns: 0,
            };
            ports.extend([uplink; 2]);
        }
        Self {
            ports,
            places,
            nodes,
            gpus_per_node: gpus,
            nics_per_node,
            rails: file.network.rails,
            has_uplinks: file.network.oversubscription > 1.0,
            node_latency_ns: ns(file.nvlink.latency_us),
            nic_latency_ns: ns(file.nic.latency_us),
            spine_latency_ns: ns(file.network.spine_latency_us),
            pod_latency_ns: ns(file.network.pod_latency_us),
        }
    }

    /// Number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.places.len()
    }

    /// All ports.
    pub(crate) fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Node of `worker`, counted from the group's first.
    pub(crate) fn node(&self, worker: u32) -> u32 {
        self.places[worker as usize].node
    }

    /// The way from `src` to `dst`, which are not the same.
    pub(crate) fn path(&self, src: u32, dst: u32) -> Path {
        let (from, to) = (self.places[src as usize], self.places[dst as usize]);
        if from.node == to.node {
            return Path {
                class: Class::Node,
                latency_ns: self.node_latency_ns,
                ports: [2 * src, 2 * dst + 1, 0, 0],
                count: 2,
            };
        }
        let workers = self.places.len() as u32;
        let nic = |place: Place| 2 * (workers + place.node * self.nics_per_node + place.rail);
        let pod = |place: Place| 2 * (workers + self.nodes * self.nics_per_node + place.pod);
        let crosses_rails = self.rails && from.rail != to.rail;
        let spine_ns = u64::from(crosses_rails) * self.spine_latency_ns;
        if from.pod == to.pod {
            return Path {
                class: if crosses_rails {
                    Class::Spine
                } else {
                    Class::Rail
                },
                latency_ns: self.nic_latency_ns + spine_ns,
                ports: [nic(from), nic(to) + 1, 0, 0],
                count: 2,
            };
        }
        let latency_ns = self.nic_latency_ns + spine_ns + self.pod_latency_ns;
        let class = Class::Pod;
        if !self.has_uplinks {
            return Path {
                class,
                latency_ns,
                ports: [nic(from), nic(to) + 1, 0, 0],
                count: 2,
            };
        }
        Path {
            class,
            latency_ns,
            ports: [nic(from), pod(from), pod(to) + 1, nic(to) + 1],
            count: 4,
        }
    }

    /// Messages of one exchange leave in this order: every worker begins with the next node and the same place in it, so
    /// that no two of a symmetric exchange come to one port at a time.
    pub(crate) fn turn(&self, src: u32, dst: u32) -> u32 {
        let (from, to) = (self.places[src as usize], self.places[dst as usize]);
        let after = |from: u32, to: u32, count: u32| match to.checked_sub(from) {
            Some(after) => after,
            None => to + count - from,
        };
        let node = after(from.node, to.node, self.nodes);
        node * self.gpus_per_node + after(from.local, to.local, self.gpus_per_node)
    }
}
