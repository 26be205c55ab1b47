//! What a part of a message is of, and which of a worker's tensors holds it.

use crate::program::Tensor;

/// With which of its chunks a KV head travels; the index into the plan's table.
#[derive(Clone, Copy)]
pub(super) enum KvTime {
    First = 0,
    Last = 1,
}

#[derive(Clone, Copy)]
pub(super) enum QLike {
    Q,
    O,
    Lse,
    Delta,
    DO,
    DQ,
}

impl QLike {
    pub(super) const fn home(self) -> Tensor {
        match self {
            Self::Q => Tensor::Q,
            Self::O => Tensor::O,
            Self::Lse => Tensor::Lse,
            Self::Delta => Tensor::Delta,
            Self::DO => Tensor::DO,
            Self::DQ => Tensor::DQ,
        }
    }

    pub(super) const fn staged(self) -> Tensor {
        match self {
            Self::Q => Tensor::StagedQ,
            Self::O => Tensor::StagedO,
            Self::Lse => Tensor::StagedLse,
            Self::Delta => Tensor::StagedDelta,
            Self::DO => Tensor::StagedDO,
            Self::DQ => Tensor::StagedDQ,
        }
    }
}

/// Between a home and a destination, or between a relay and a worker of its node.
#[derive(Clone, Copy)]
pub(super) enum Hop {
    First,
    Second,
}

#[derive(Clone, Copy)]
pub(super) enum KvLike {
    Input,
    Gradient,
}

impl KvLike {
    pub(super) const fn tensors(self, home: bool) -> [Tensor; 2] {
        match (self, home) {
            (Self::Input, true) => [Tensor::K, Tensor::V],
            (Self::Input, false) => [Tensor::StagedK, Tensor::StagedV],
            (Self::Gradient, true) => [Tensor::DK, Tensor::DV],
            (Self::Gradient, false) => [Tensor::StagedDK, Tensor::StagedDV],
        }
    }
}
