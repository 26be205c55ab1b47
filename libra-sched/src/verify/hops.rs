//! The way of KV: what crosses into a node once a token, and what its relays forward.

use std::collections::BTreeMap;

use super::Violation;
use crate::exchange::{KvMove, KvRoute};
use crate::plan::PoolPlan;

/// (start, end, receiver, index) of moves that enter a node, by (node, sample, span).
type Entering = BTreeMap<(u32, u32, u32), Vec<(u32, u32, u32, usize)>>;

pub(super) fn check(plan: &PoolPlan, found: &mut Vec<Violation>) {
    let gpus = match plan.kv_route {
        KvRoute::Direct => {
            for (index, m) in plan.exchange.forward.iter().enumerate() {
                report(
                    index,
                    m,
                    "come from no home, and the route is direct",
                    found,
                );
            }
            return;
        }
        KvRoute::Node(topology) => topology.gpus_per_node(),
    };
    let mut entering = Entering::new();
    for (index, m) in plan.exchange.kv.iter().enumerate() {
        if m.src.0 / gpus != m.dst.0 / gpus {
            let key = (m.dst.0 / gpus, m.sample.0, m.span);
            let moves = entering.entry(key).or_default();
            moves.push((m.start, m.end, m.dst.0, index));
        }
    }
    for moves in entering.values_mut() {
        moves.sort_unstable();
        check_once(moves, found);
    }
    for (index, m) in plan.exchange.forward.iter().enumerate() {
        if m.src.0 / gpus != m.dst.0 / gpus || m.src == m.dst {
            report(index, m, "must come from another worker of the node", found);
        }
        let key = (m.src.0 / gpus, m.sample.0, m.span);
        // The relay's own share of what entered, in token order, has to reach from start to end.
        let mut reached = m.start;
        for &(start, end, relay, _) in entering.get(&key).into_iter().flatten() {
            if relay == m.src.0 && start <= reached {
                reached = reached.max(end);
            }
        }
        if reached < m.end {
            report(index, m, "did not enter the node at their sender", found);
        }
    }
}

/// No token enters twice; `moves` are those into one node, in token order.
fn check_once(moves: &[(u32, u32, u32, usize)], found: &mut Vec<Violation>) {
    let mut reached = 0;
    for &(start, end, worker, index) in moves {
        if start < reached {
            let end = end.min(reached);
            found.push(Violation::EntersTwice {
                index,
                worker,
                start,
                end,
            });
        }
        reached = reached.max(end);
    }
}

fn report(index: usize, m: &KvMove, why: &'static str, found: &mut Vec<Violation>) {
    let (src, dst, start, end) = (m.src.0, m.dst.0, m.start, m.end);
    found.push(Violation::Forward {
        index,
        src,
        dst,
        start,
        end,
        why,
    });
}
