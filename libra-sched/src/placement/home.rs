//! Every tile stays at its Q-home.

use super::{Placement, Problem, Spare, sum_loads_with};
use crate::tiles::ShTile;

pub(super) fn place(problem: &Problem<'_>, tiles: &[ShTile], spare: Spare) -> Placement {
    let mut workers = spare.workers;
    workers.clear();
    workers.extend(tiles.iter().map(|tile| tile.q_home));
    let loads = sum_loads_with(spare.loads, tiles, &workers, problem.layout.workers());
    Placement {
        workers,
        loads,
        fallbacks: 0,
    }
}
