//! Q and O: exactly the tiles away from home, from home to worker and back; all lists in order.

use super::Violation;
use crate::exchange::TileMove;
use crate::plan::PoolPlan;

pub(super) fn check(plan: &PoolPlan, found: &mut Vec<Violation>) {
    check_leg(plan, "Q", &plan.exchange.q, false, found);
    check_leg(plan, "O", &plan.exchange.o, true, found);
    check_order("Q moves", &plan.exchange.q, found);
    check_order("KV moves", &plan.exchange.kv, found);
    check_order("forwards", &plan.exchange.forward, found);
    check_order("O moves", &plan.exchange.o, found);
}

fn check_leg(
    plan: &PoolPlan,
    leg: &'static str,
    moves: &[TileMove],
    homeward: bool,
    found: &mut Vec<Violation>,
) {
    let mut count = vec![0usize; plan.tiles.len()];
    for m in moves {
        let tile = m.tile.index();
        count[tile] += 1;
        let (home, worker) = (plan.tiles[tile].q_home.0, plan.workers[tile].0);
        let (expected_src, expected_dst) = if homeward {
            (worker, home)
        } else {
            (home, worker)
        };
        if (m.src.0, m.dst.0) != (expected_src, expected_dst) {
            let (src, dst) = (m.src.0, m.dst.0);
            found.push(Violation::Route {
                leg,
                tile,
                src,
                dst,
                expected_src,
                expected_dst,
            });
        }
    }
    for (tile, &times) in count.iter().enumerate() {
        let expected = usize::from(plan.tiles[tile].q_home != plan.workers[tile]);
        if times != expected {
            found.push(Violation::TileMoves {
                tile,
                leg,
                found: times,
                expected,
            });
        }
    }
}

pub(super) fn check_order<M: PartialOrd>(
    list: &'static str,
    moves: &[M],
    found: &mut Vec<Violation>,
) {
    for (index, pair) in moves.windows(2).enumerate() {
        if pair[0] >= pair[1] {
            found.push(Violation::Order { list, index });
        }
    }
}
