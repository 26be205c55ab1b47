//! Head shards over the workers of a sequence: DeepSpeed Ulysses as a placement.
//!
//! Jacobs et al., "DeepSpeed Ulysses" (2023): an all-to-all gives each of CP workers the whole
//! sequence in h_q/CP heads.

use super::{Placement, Problem, sum_loads};
use crate::error::{Error, check_divides};
use crate::ids::WorkerId;
use crate::tiles::ShTile;

pub(super) fn place(problem: &Problem<'_>, tiles: &[ShTile]) -> Result<Placement, Error> {
    let (shards, cp) = (problem.heads.shards(), problem.layout.cp());
    check_divides("H", shards.into(), "CP", cp.into())?;
    let per_worker = shards / cp;
    let workers: Vec<_> = tiles
        .iter()
        .map(|tile| WorkerId(tile.slot * cp + tile.shard / per_worker))
        .collect();
    let loads = sum_loads(tiles, &workers, problem.layout.workers());
    Ok(Placement {
        workers,
        loads,
        fallbacks: 0,
    })
}
