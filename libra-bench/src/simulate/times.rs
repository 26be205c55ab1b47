//! What is known of a simulated program: how each worker fared, and what took time.

use super::fabric::Class;

/// How one worker fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerTimes {
    /// End of its last step.
    pub(crate) finish_ns: u64,
    /// In attention.
    pub(crate) compute_ns: u64,
    /// In waits.
    pub(crate) exposed_ns: u64,
    /// Bytes sent, by [`Class`].
    pub(crate) sent_bytes: [u64; Class::COUNT],
    /// Bytes received.
    pub(crate) received_bytes: [u64; Class::COUNT],
    /// Its messages at its ports, by [`Lane`]: node out, node in, NIC out, NIC in.
    pub(crate) port_ns: [u64; 4],
}

impl WorkerTimes {
    /// Time of its busiest port.
    pub(crate) fn comm_ns(&self) -> u64 {
        self.port_ns.into_iter().max().unwrap_or(0)
    }
}

/// What a worker does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// Port to the node.
    NodeOut,
    /// Port from the node.
    NodeIn,
    /// Port to other nodes.
    NicOut,
    /// Port from other nodes.
    NicIn,
    /// Attention, and waits for messages.
    Compute,
}

/// What a span is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Attention of a chunk.
    Compute(u32),
    /// Waiting for an exchange.
    Wait(u32),
    /// A message to (out) or from (in) a peer.
    Message {
        /// Of which exchange.
        exchange: u32,
        /// The other worker.
        peer: u32,
        /// Its size.
        bytes: u64,
    },
}

/// Something that took time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Who.
    pub(crate) worker: u32,
    /// Where.
    pub(crate) lane: Lane,
    /// What.
    pub(crate) what: What,
    /// From.
    pub(crate) begin_ns: u64,
    /// To.
    pub(crate) end_ns: u64,
}
