//! Head shards over the workers of a sequence: DeepSpeed Ulysses as a placement.
//!
//! Jacobs et al., "DeepSpeed Ulysses" (2023): an all-to-all gives each of CP workers the whole
//! sequence in h_q/CP heads.

use super::{Placement, Problem, Spare, sum_loads_with};
use crate::error::{Error, check_divides};
use crate::ids::WorkerId;
use crate::tiles::ShTile;

pub(super) fn place(
    problem: &Problem<'_>,
    tiles: &[ShTile],
    spare: Spare,
) -> Result<Placement, Error> {
    let (shards, cp) = (problem.heads.shards(), problem.layout.cp());
    check_divides("H", shards.into(), "CP", cp.into())?;
    let per_worker = shards / cp;
    let worker = |tile: &ShTile| WorkerId(tile.slot * cp + tile.shard / per_worker);
    let mut workers = spare.workers;
    workers.clear();
    workers.extend(tiles.iter().map(worker));
    let loads = sum_loads_with(spare.loads, tiles, &workers, problem.layout.workers());
    Ok(Placement {
        workers,
        loads,
        fallbacks: 0,
    })
}
