//! The time model: programs of workers on a cluster that exists on paper only.

pub(crate) mod program;
