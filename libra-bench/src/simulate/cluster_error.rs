//! Why a cluster file or a kernel table cannot be used.

use std::io;

/// A cluster that cannot be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    /// Neither a profile nor a file.
    #[error("{name}: neither a file nor a built-in {what}; legal are {legal}")]
    Missing {
        /// What was asked for.
        name: String,
        /// What it should have been.
        what: &'static str,
        /// What is built in.
        legal: String,
    },
    /// The operating system refused.
    #[error("{path}: cannot be read")]
    Read {
        /// The file.
        path: String,
        /// What it said.
        source: io::Error,
    },
    /// Not the format.
    #[error("{path}: {problem}")]
    Format {
        /// The file.
        path: String,
        /// What is wrong, with line and column.
        problem: String,
    },
    /// A number that cannot be.
    #[error("{path}: {field} is {value}; legal is {legal}")]
    Value {
        /// The file.
        path: String,
        /// Section and name.
        field: String,
        /// What it is.
        value: String,
        /// What it may be.
        legal: String,
    },
    /// More GPUs than there are.
    #[error("{path}: {nodes} nodes of {gpus} are {} GPUs, DP*CP*PP asks for {asked}", u64::from(*nodes) * u64::from(*gpus))]
    TooSmall {
        /// The file.
        path: String,
        /// Nodes.
        nodes: u32,
        /// GPUs of a node.
        gpus: u32,
        /// GPUs that are asked for.
        asked: u64,
    },
}
