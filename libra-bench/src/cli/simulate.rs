//! Flags of `simulate`.

use std::path::PathBuf;

use clap::Args;
use libra_sched::BackwardMode;

use super::values::backward_modes;
use crate::baseline::method::Method;

/// On what is simulated, and what.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Simulate")]
pub(crate) struct SimulateArgs {
    /// The machines: h200, h200-nvl64, h100 or a cluster file in TOML
    #[arg(long, value_name = "CLUSTER", default_value = "h200")]
    pub(crate) cluster: String,
    /// What is trained: qwen3-8b, qwen3-30b-a3b, qwen3-235b-a22b or a model file in TOML; instead of the cluster's model,
    /// and of heads that are not given
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Methods to compare, with commas between them, or all
    #[arg(long, value_name = "METHODS", default_value = "ulysses,paper,libra", value_parser = methods)]
    pub(crate) method: Methods,
    /// What stays with a worker from forward to backward
    #[arg(long, default_value = "recompute", value_parser = backward_modes())]
    pub(crate) backward: BackwardMode,
    /// Write timelines of every method's slowest group in the first window, as Chrome trace events
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) trace: Option<PathBuf>,
}

/// Each once, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Methods(pub(crate) Vec<Method>);

impl Methods {
    /// Their names, with commas between them.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|method| method.name()).collect();
        names.join(",")
    }
}

/// Methods that `run` executes.
pub(super) fn executed_methods(text: &str) -> Result<Methods, String> {
    Method::list_executed(text).map(Methods)
}

fn methods(text: &str) -> Result<Methods, String> {
    let methods = Method::list(text).map_err(|error| error.to_string())?;
    Ok(Methods(methods))
}
