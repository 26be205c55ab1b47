//! Models: heads, layers, and how many parameters a token passes, in TOML.
//!
//! Beside attention a token costs 2 operations an active parameter, at a share of the GPU's peak.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cluster::{ModelSection, check_range, read_file};
use super::cluster_error::ClusterError;
use crate::cli::PlanArgs;

/// Models by name.
pub(crate) const MODELS: [(&str, &str); 3] = [
    ("qwen3-8b", include_str!("../../profiles/qwen3-8b.toml")),
    (
        "qwen3-30b-a3b",
        include_str!("../../profiles/qwen3-30b-a3b.toml"),
    ),
    (
        "qwen3-235b-a22b",
        include_str!("../../profiles/qwen3-235b-a22b.toml"),
    ),
];

/// What a model file says.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    /// For people.
    pub(crate) name: String,
    /// Layers, all alike.
    pub(crate) layers: u32,
    /// h_q.
    pub(crate) q_heads: u32,
    /// h_kv.
    pub(crate) kv_heads: u32,
    /// Elements of a head of Q, K and V.
    pub(crate) head_dim: u32,
    /// Of one layer that a token passes: of experts, those that it is sent to.
    pub(crate) active_parameters: u64,
    /// Share of the peak that they reach.
    pub(crate) utilisation: f64,
}

impl Model {
    /// A built-in model, or else a file.
    ///
    /// # Errors
    /// No such thing, another format, or numbers that cannot be.
    pub(crate) fn read(name: &str) -> Result<Self, ClusterError> {
        let text = match MODELS.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => (*text).to_owned(),
            None => read_file(name, Path::new(name), "model", || {
                MODELS.map(|(name, _)| name).join(", ")
            })?,
        };
        let model: Self = toml::from_str(&text).map_err(|error| ClusterError::Format {
            path: name.to_owned(),
            problem: error.to_string().trim_end().to_owned(),
        })?;
        let count = [1.0, 1e4];
        for (field, value, range) in [
            ("layers", model.layers.into(), count),
            ("q_heads", model.q_heads.into(), count),
            ("kv_heads", model.kv_heads.into(), count),
            ("head_dim", model.head_dim.into(), count),
            (
                "active_parameters",
                model.active_parameters as f64,
                [0.0, 1e15],
            ),
            ("utilisation", model.utilisation, [0.001, 1.0]),
        ] {
            check_range(name, field, value, range)?;
        }
        Ok(model)
    }

    /// Microseconds of a token in a layer beside attention, forward, on GPUs of `peak_tflops`.
    pub(crate) fn linear_us_per_token(&self, peak_tflops: f64) -> f64 {
        2.0 * self.active_parameters as f64 / (self.utilisation * peak_tflops * 1e6)
    }

    /// `section` with this model's layers and time on GPUs of `peak_tflops`; how replicas wait stays the cluster's.
    pub(crate) fn section(&self, section: &ModelSection, peak_tflops: f64) -> ModelSection {
        ModelSection {
            layers: self.layers,
            linear_us_per_token: self.linear_us_per_token(peak_tflops),
            ..section.clone()
        }
    }

    /// `plan` with this model's heads where it has none.
    pub(crate) fn heads(&self, plan: &PlanArgs) -> PlanArgs {
        PlanArgs {
            q_heads: plan.q_heads.or(Some(self.q_heads)),
            kv_heads: plan.kv_heads.or(Some(self.kv_heads)),
            head_dim: plan.head_dim.or(Some(self.head_dim)),
            ..plan.clone()
        }
    }
}
