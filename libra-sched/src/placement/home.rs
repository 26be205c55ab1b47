//! Every tile stays at its Q-home.

use super::{Placement, Problem, sum_loads};
use crate::tiles::ShTile;

pub(super) fn place(problem: &Problem<'_>, tiles: &[ShTile]) -> Placement {
    let workers: Vec<_> = tiles.iter().map(|tile| tile.q_home).collect();
    let loads = sum_loads(tiles, &workers, problem.layout.workers());
    Placement {
        workers,
        loads,
        fallbacks: 0,
    }
}
