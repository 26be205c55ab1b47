//! The time model: programs of workers on a cluster that exists on paper only.
//!
//! A `cluster` file says what links and GPUs do, a `model` file what runs there. `kernel` turns attention into time,
//! `fabric` workers into ports, `engine` runs one program over them, `group` one layer of a group, `step` all groups of a
//! window, `windows` all windows of several methods. [`Layer`] is what a benchmark runs.

pub(crate) mod cluster;
mod cluster_error;
pub(crate) mod engine;
mod events;
pub(crate) mod fabric;
pub(crate) mod group;
pub(crate) mod jitter;
pub(crate) mod kernel;
mod layer;
pub(crate) mod model;
pub(crate) mod pipeline;
pub(crate) mod program;
pub(crate) mod step;
mod times;
pub(crate) mod trace;
pub(crate) mod windows;

pub(crate) use cluster_error::ClusterError;
pub use layer::Layer;

#[cfg(test)]
mod tests;
