//! Groups: nodes over which lines go on.
//!
//! A sequence may spread over several nodes. Each border between two readers of a long sample costs
//! one of them all keys below it, and a line that ends where a node does has one there. So where a
//! node of the pool has more at home than it may have, the nodes of each sequence are one group. Where
//! none has, each is a group by itself: what it freed stays inside, and nothing crosses.
//!
//! A group is a node, too, under other masks than causal, whose keys are near their queries; where a
//! rank has several parts of a sequence, since nodes have no borders then; and with tensor ranks, of
//! which few hold a shard.

use std::ops::Range;

use super::Task;
use crate::mask::Mask;

/// The groups of a pool's nodes, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    /// Group of each node.
    of_node: Vec<u32>,
    /// Nodes of each group.
    nodes: Vec<Range<u32>>,
}

impl Groups {
    /// Finds them for workers that have `loads` at home.
    pub(super) fn find(&mut self, task: &Task<'_>, loads: &[u64]) {
        self.of_node.clear();
        self.nodes.clear();
        let is_over = |node| {
            let workers = task.workers_of(node);
            let sum = |of: &[u64]| of.iter().map(|&work| u128::from(work)).sum::<u128>();
            sum(&loads[workers.clone()]) > sum(&task.targets[workers])
        };
        let mut nodes = 0..task.node_count();
        let spread = match spread(task) {
            several @ 2.. if nodes.any(is_over) => several,
            _ => 1,
        };
        let mut first = 0;
        while first < task.node_count() {
            let end = first.saturating_add(spread).min(task.node_count());
            self.push(first..end);
            first = end;
        }
    }

    fn push(&mut self, nodes: Range<u32>) {
        let group = self.nodes.len() as u32;
        self.of_node.extend(nodes.clone().map(|_| group));
        self.nodes.push(nodes);
    }

    pub(super) fn count(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Group of a node.
    pub(super) fn of(&self, node: u32) -> u32 {
        self.of_node[node as usize]
    }

    /// Nodes of a group.
    pub(super) fn nodes(&self, group: u32) -> Range<u32> {
        self.nodes[group as usize].clone()
    }
}

/// Nodes of a sequence that make a group if any.
fn spread(task: &Task<'_>) -> u32 {
    let (layout, per_node) = (task.problem.layout, task.topology.gpus_per_node());
    let is_spread = layout.cp() > per_node && layout.cp().is_multiple_of(per_node);
    let is_simple = task.mask == Mask::Causal && layout.tensor() == 1;
    let mut slots = 0..layout.slots();
    let is_ascending = |slot| {
        let fragments = layout.fragments(slot);
        fragments.is_sorted_by(|a, b| a.rank < b.rank)
    };
    if is_spread && is_simple && slots.all(is_ascending) {
        layout.cp() / per_node
    } else {
        1
    }
}
