//! Alg. 2 on workers of different speeds.
//!
//! A worker's target is its part of the load by speed, and a worker is the lighter the sooner it
//! would be done with the tile: (load + work)/speed, compared by cross-multiplication. Among the
//! workers that stay within their targets the one with the least (Δcomm, time, id) wins, else the
//! one with the least (time, Δcomm, id). Where all speeds are equal this is Alg. 2 as it stands: the
//! tile's own work then changes no comparison. Where they are not it has to count, or an idle worker
//! of a tenth of the speed would look lighter than any busy one.
//!
//! The two shortcuts of the even case fail: the first to be done depends on the tile. So every
//! worker is looked at for every tile: O(T·W·h), h the groups of the tile that may be resident.
//!
//! *Paper*: §4.3.2, Alg. 2, eq. 9, for equal speeds.

use std::cmp::Ordering;

use super::paper::{Cell, Scratch, Shared, clear_to, find_shard_prices, for_each_by_work};
use super::speeds::{Speed, Speeds};
use super::{Placement, Problem, Spare};
use crate::ids::WorkerId;
use crate::tiles::TileSet;

/// Places tiles so that no load passes its worker's target while that can be helped.
pub(super) fn place(
    scratch: &mut Scratch,
    problem: &Problem<'_>,
    tiles: &TileSet,
    speeds: &Speeds,
    targets: &[u64],
    spare: Spare,
) -> Placement {
    let workers = problem.layout.workers();
    scratch.blocks.find(problem, tiles);
    let units = &scratch.blocks.unit_tokens;
    let words = (workers as usize).div_ceil(64);
    let spans = problem.heads.span_count() as usize;
    scratch.resident.clear();
    scratch.resident.resize(units.len() * spans * words, 0);
    find_shard_prices(&mut scratch.prices, problem);
    let shared = Shared {
        problem,
        prices: &scratch.prices,
        capacity: u64::MAX,
        words,
        spans,
    };
    let (mut assigned, mut loads) = (spare.workers, spare.loads);
    clear_to(&mut assigned, tiles.len());
    loads.clear();
    loads.resize(workers as usize, 0);
    let mut run = Run {
        speeds: speeds.as_slice(),
        targets,
        loads,
        resident: &mut scratch.resident,
        fallbacks: 0,
    };
    let (blocks, cells) = (&scratch.blocks, &mut scratch.cells);
    for_each_by_work(tiles, &blocks.blocks, &mut scratch.packed_order, |block| {
        for id in block.first_tile as usize..(block.first_tile + block.tiles) as usize {
            let tile = &tiles[id];
            let shard = &shared.prices[tile.shard as usize];
            shared.find_cells(cells, units, shard, blocks.units(block));
            let qo = shard.qo_token * u64::from(tile.len());
            let price = Price {
                base: block.group_tokens * shard.kv_token + qo,
                qo,
                home: tile.q_home.index(),
            };
            assigned[id] = run.place(tile.work, price, cells);
        }
    });
    Placement {
        workers: assigned,
        loads: run.loads,
        fallbacks: run.fallbacks,
    }
}

/// A tile's Δcomm where nothing is resident, and its part for Q and O.
#[derive(Clone, Copy)]
struct Price {
    base: u64,
    qo: u64,
    home: usize,
}

/// State while tiles are placed one by one.
struct Run<'a> {
    speeds: &'a [Speed],
    targets: &'a [u64],
    loads: Vec<u64>,
    /// Bit set of workers for each (unit, span).
    resident: &'a mut [u64],
    fallbacks: u32,
}

impl Run<'_> {
    fn place(&mut self, work: u64, price: Price, cells: &[Cell]) -> WorkerId {
        let workers = 0..self.loads.len();
        let price_at = |worker: usize| (self.delta_comm(worker, price, cells), worker);
        let fits = |worker: &usize| {
            let room = self.targets[*worker].checked_sub(self.loads[*worker]);
            room.is_some_and(|room| work <= room)
        };
        let within = workers.clone().filter(fits).map(price_at);
        let cheapest = within.min_by(|a, b| {
            let time = self.compare_times(work, a.1, b.1);
            a.0.cmp(&b.0).then(time).then(a.1.cmp(&b.1))
        });
        let soonest = || {
            workers.map(price_at).min_by(|a, b| {
                let time = self.compare_times(work, a.1, b.1);
                time.then(a.cmp(b))
            })
        };
        let falls_back = cheapest.is_none();
        let (_, winner) = cheapest.or_else(soonest).expect("a pool has a worker");
        self.fallbacks += u32::from(falls_back);
        self.loads[winner] += work;
        for cell in cells {
            self.resident[cell.row + winner / 64] |= 1 << (winner % 64);
        }
        WorkerId::new(winner)
    }

    /// Eq. 9: bytes of the groups that `worker` lacks, and of Q and O away from home.
    fn delta_comm(&self, worker: usize, price: Price, cells: &[Cell]) -> u64 {
        let held = |cell: &Cell| {
            let word = self.resident[cell.row + worker / 64];
            (word >> (worker % 64) & 1) * cell.bytes
        };
        let saved: u64 = cells.iter().map(held).sum();
        let at_home = if worker == price.home { price.qo } else { 0 };
        price.base - saved - at_home
    }

    /// (load + work)/speed of `a` and `b`, without division: 64 bits times 30 each.
    fn compare_times(&self, work: u64, a: usize, b: usize) -> Ordering {
        let time = |worker: usize, other: usize| {
            let load = u128::from(self.loads[worker]) + u128::from(work);
            load * u128::from(self.speeds[other].ppm())
        };
        time(a, b).cmp(&time(b, a))
    }
}
