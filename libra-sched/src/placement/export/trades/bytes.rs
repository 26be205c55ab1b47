//! What a line costs two of its workers.

use super::lines::Share;
use crate::placement::export::Task;

/// Who computes shares of a line, met from its top down: a worker, or a node.
#[derive(Clone, Copy, Debug, Default)]
struct Reader {
    /// One past the last token computed; 0 before it is met.
    end: u32,
    /// Tokens below it that are held.
    held: u64,
}

impl Reader {
    fn meet(&mut self, share: &Share, computes: bool, holds: bool) {
        if computes && self.end == 0 {
            self.end = share.end;
        }
        if holds && self.end > 0 {
            self.held += share.tokens();
        }
    }

    /// Keys fetched: all up to the last token, less those held.
    const fn keys(self) -> u64 {
        self.end as u64 - self.held
    }
}

/// Bytes of a line that depend on what `pair` computes of it: those between nodes count twice.
pub(super) fn bytes(task: &Task<'_>, shard: u32, shares: &[Share], pair: [u32; 2]) -> u64 {
    let price = task.prices[shard as usize];
    let node = |worker| task.node(worker);
    let nodes = pair.map(node);
    // Between workers of one node nothing changes outside.
    let is_inside = nodes[0] == nodes[1];
    let (mut workers, mut whole) = ([Reader::default(); 2], [Reader::default(); 2]);
    let mut moved = 0;
    for share in shares.iter().rev() {
        for (reader, worker) in workers.iter_mut().zip(pair) {
            reader.meet(share, share.worker == worker, share.home == worker);
        }
        let is_moved = share.worker != share.home && pair.contains(&share.worker);
        moved += share.tokens() * u64::from(is_moved);
        if is_inside {
            continue;
        }
        let (there, home) = (node(share.worker), node(share.home));
        for (reader, node) in whole.iter_mut().zip(nodes) {
            reader.meet(share, there == node, home == node);
        }
        moved += share.tokens() * u64::from(is_moved && there != home);
    }
    let keys: u64 = workers.into_iter().chain(whole).map(Reader::keys).sum();
    price.qo * moved + price.kv * keys
}

/// Tokens of keys that the worker of a run reads for it alone, and for others of its runs `below`.
pub(super) fn alone(below: &[Share], run: &Share) -> u64 {
    let mut keys = run.tokens();
    for share in below.iter().rev() {
        if share.worker == run.worker && !share.is_run_of(run.worker) {
            break;
        }
        if share.home != run.worker {
            keys += share.tokens();
        }
    }
    keys
}
