//! Cluster files: nodes, links, GPUs and what else takes time, in TOML.
//!
//! Bandwidths are of one direction in GB/s (10⁹ bytes), times as their names say. Sections without which there is still
//! a cluster may be left out: `network`, `jitter`, `model`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cluster_error::ClusterError;
use super::kernel::{Kernel, KernelTable};

/// Clusters by name.
pub(crate) const PROFILES: [(&str, &str); 3] = [
    ("h200", include_str!("../../profiles/h200.toml")),
    ("h200-nvl64", include_str!("../../profiles/h200-nvl64.toml")),
    ("h100", include_str!("../../profiles/h100.toml")),
];

/// What a cluster file says.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterFile {
    /// For people.
    pub(crate) name: String,
    /// Nodes; as many as are asked for where it is not said.
    pub(crate) nodes: Option<u32>,
    /// One of them.
    pub(crate) node: NodeSection,
    /// What computes.
    pub(crate) gpu: GpuSection,
    /// Between GPUs of a node.
    pub(crate) nvlink: NvlinkSection,
    /// Between nodes.
    pub(crate) nic: NicSection,
    /// Above the NICs.
    #[serde(default)]
    pub(crate) network: NetworkSection,
    /// How much GPUs differ from step to step.
    #[serde(default)]
    pub(crate) jitter: JitterSection,
    /// What is not attention.
    #[serde(default)]
    pub(crate) model: ModelSection,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeSection {
    /// GPUs.
    pub(crate) gpus: u32,
    /// NICs: a divisor or a multiple of the GPUs.
    pub(crate) nics: u32,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GpuSection {
    /// A built-in kernel table, or a file beside the cluster file.
    pub(crate) kernel: String,
    /// Dense bf16, 10¹² operations a second: no kernel is faster.
    pub(crate) peak_tflops: f64,
}

/// Each GPU's port to the others of its node.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NvlinkSection {
    /// Each direction.
    pub(crate) bandwidth_gb_s: f64,
    /// From the first byte's departure to its arrival.
    pub(crate) latency_us: f64,
    /// A port is busy that long for every message, beside its bytes.
    pub(crate) message_us: f64,
}

/// A port between nodes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NicSection {
    /// Each direction.
    pub(crate) bandwidth_gb_s: f64,
    /// Share of it that messages get.
    pub(crate) efficiency: f64,
    /// As [`NvlinkSection::latency_us`].
    pub(crate) latency_us: f64,
    /// As [`NvlinkSection::message_us`].
    pub(crate) message_us: f64,
}

/// What joins the NICs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NetworkSection {
    /// Whether NICs of one place in their nodes share a leaf switch.
    pub(crate) rails: bool,
    /// More latency for another rail.
    pub(crate) spine_latency_us: f64,
    /// Nodes below one pod's uplink; all of them where it is not said.
    pub(crate) nodes_per_pod: Option<u32>,
    /// NIC bandwidth of a pod over its uplink's.
    pub(crate) oversubscription: f64,
    /// More latency for another pod.
    pub(crate) pod_latency_us: f64,
}

/// A factor on every GPU's computing time, drawn once a step.
#[derive(Clone, Debug, PartialEq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct JitterSection {
    /// Standard deviation.
    pub(crate) sigma: f64,
    /// Of being slower by more than that, each GPU and step.
    pub(crate) tail_probability: f64,
    /// Mean of how much slower, exponentially distributed.
    pub(crate) tail_size: f64,
    /// Of all of it.
    pub(crate) seed: u64,
}

/// What takes time beside attention.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ModelSection {
    /// Layers.
    pub(crate) layers: u32,
    /// Everything but attention, forward, one layer, one worker's token.
    pub(crate) linear_us_per_token: f64,
    /// Of gradients, once a step.
    pub(crate) sync_ms: f64,
    /// Whether replicas gather parameters layer by layer (FSDP, ZeRO 3), so that none begins a microbatch before the
    /// others; else they wait for each other at the end of the step.
    pub(crate) lockstep: bool,
}

impl Default for NetworkSection {
    fn default() -> Self {
        Self {
            rails: false,
            spine_latency_us: 0.0,
            nodes_per_pod: None,
            oversubscription: 1.0,
            pod_latency_us: 0.0,
        }
    }
}

impl Default for ModelSection {
    fn default() -> Self {
        Self {
            layers: 1,
            linear_us_per_token: 0.0,
            sync_ms: 0.0,
            lockstep: false,
        }
    }
}

/// A cluster that can be, with the kernel of its GPUs.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// As written.
    pub(crate) file: ClusterFile,
    /// Attention on its GPUs.
    pub(crate) kernel: Kernel,
    /// What was asked for: a profile or a file.
    pub(crate) source: String,
}

impl Cluster {
    /// A built-in profile, or else a file.
    ///
    /// # Errors
    /// No such thing, another format, or numbers that cannot be.
    pub(crate) fn read(name: &str) -> Result<Self, ClusterError> {
        if let Some((_, text)) = PROFILES.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text, Path::new(""));
        }
        let path = Path::new(name);
        let text = read_file(name, path, "cluster", || {
            PROFILES.map(|(name, _)| name).join(", ")
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(name, &text, folder)
    }

    /// `text` of the file `source`, whose own files are in `folder`.
    pub(crate) fn parse(source: &str, text: &str, folder: &Path) -> Result<Self, ClusterError> {
        let file: ClusterFile = toml::from_str(text).map_err(|error| ClusterError::Format {
            path: source.to_owned(),
            problem: error.to_string().trim_end().to_owned(),
        })?;
        check(source, &file)?;
        let table = KernelTable::read(&file.gpu.kernel, folder)?;
        Ok(Self {
            kernel: Kernel::new(table, file.gpu.peak_tflops),
            source: source.to_owned(),
            file,
        })
    }

    /// Whether `gpus` fit.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn check_size(&self, gpus: u64) -> Result<(), ClusterError> {
        let per_node = self.file.node.gpus;
        match self.file.nodes {
            Some(nodes) if gpus > u64::from(nodes) * u64::from(per_node) => {
                Err(ClusterError::TooSmall {
                    path: self.source.clone(),
                    nodes,
                    gpus: per_node,
                    asked: gpus,
                })
            }
            _ => Ok(()),
        }
    }
}

/// The text of a file that was named where a built-in `what` could have been.
pub(super) fn read_file(
    name: &str,
    path: &Path,
    what: &'static str,
    legal: impl Fn() -> String,
) -> Result<String, ClusterError> {
    if !path.is_file() {
        return Err(ClusterError::Missing {
            name: name.to_owned(),
            what,
            legal: legal(),
        });
    }
    std::fs::read_to_string(path).map_err(|source| ClusterError::Read {
        path: path.display().to_string(),
        source,
    })
}

/// A number within `least..=most`; NaN is in no range.
pub(super) fn check_range(
    path: &str,
    field: &str,
    value: f64,
    [least, most]: [f64; 2],
) -> Result<(), ClusterError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ClusterError::Value {
        path: path.to_owned(),
        field: field.to_owned(),
        value: value.to_string(),
        legal: format!("{least} to {most}"),
    })
}

fn check(path: &str, file: &ClusterFile) -> Result<(), ClusterError> {
    let bandwidth = [0.001, 1e6];
    let time_us = [0.0, 1e6];
    let count = [1.0, 1e6];
    for (field, value, range) in [
        ("node.gpus", file.node.gpus.into(), count),
        ("node.nics", file.node.nics.into(), count),
        ("nodes", file.nodes.unwrap_or(1).into(), [1.0, 1e9]),
        ("gpu.peak_tflops", file.gpu.peak_tflops, [0.001, 1e6]),
        (
            "nvlink.bandwidth_gb_s",
            file.nvlink.bandwidth_gb_s,
            bandwidth,
        ),
        ("nvlink.latency_us", file.nvlink.latency_us, time_us),
        ("nvlink.message_us", file.nvlink.message_us, time_us),
        ("nic.bandwidth_gb_s", file.nic.bandwidth_gb_s, bandwidth),
        ("nic.efficiency", file.nic.efficiency, [0.001, 1.0]),
        ("nic.latency_us", file.nic.latency_us, time_us),
        ("nic.message_us", file.nic.message_us, time_us),
        (
            "network.spine_latency_us",
            file.network.spine_latency_us,
            time_us,
        ),
        (
            "network.pod_latency_us",
            file.network.pod_latency_us,
            time_us,
        ),
        (
            "network.oversubscription",
            file.network.oversubscription,
            [1.0, 1e3],
        ),
        (
            "network.nodes_per_pod",
            file.network.nodes_per_pod.unwrap_or(1).into(),
            count,
        ),
        ("jitter.sigma", file.jitter.sigma, [0.0, 0.2]),
        (
            "jitter.tail_probability",
            file.jitter.tail_probability,
            [0.0, 1.0],
        ),
        ("jitter.tail_size", file.jitter.tail_size, [0.0, 10.0]),
        ("model.layers", file.model.layers.into(), [1.0, 1e4]),
        (
            "model.linear_us_per_token",
            file.model.linear_us_per_token,
            time_us,
        ),
        ("model.sync_ms", file.model.sync_ms, [0.0, 1e6]),
    ] {
        check_range(path, field, value, range)?;
    }
    let refuse = |field: &str, value: u32, legal: String| ClusterError::Value {
        path: path.to_owned(),
        field: field.to_owned(),
        value: value.to_string(),
        legal,
    };
    let NodeSection { gpus, nics } = file.node;
    if gpus % nics != 0 && nics % gpus != 0 {
        let legal = format!("a divisor or a multiple of the {gpus} GPUs of a node");
        return Err(refuse("node.nics", nics, legal));
    }
    if let (Some(nodes), Some(pod)) = (file.nodes, file.network.nodes_per_pod)
        && nodes % pod != 0
    {
        let legal = format!("a divisor of the {nodes} nodes");
        return Err(refuse("network.nodes_per_pod", pod, legal));
    }
    Ok(())
}
