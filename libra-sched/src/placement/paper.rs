//! Alg. 2: communication-aware placement under a soft load target.
//!
//! Tiles are taken by (work desc, id asc). Among the workers that stay within C, the one with the
//! least (Δcomm, load, id) wins; where no worker does, the one with the least (load, Δcomm, id).
//! The groups that a tile reads are then resident at its worker. Residency starts empty: what a
//! worker holds as a home does not count (the exchange moves only what is missing all the same).
//!
//! *Paper*: §4.3.2, Alg. 2, eq. 9, which evaluates every worker for every tile, O(T·W·|K|). Two
//! observations make it O(T·(h + log W)), h the workers that already hold a group of the tile:
//! - Δcomm differs from the base price (all groups, Q and O) only at those h workers and at the
//!   Q-home. Of all others the one with the least (load, id) is best; and where the least loaded
//!   worker overall is one of the h, it beats the others on price alone. So the candidates are the
//!   h workers, the Q-home and the least loaded worker.
//! - A sample wholly inside one block is read by no other block. Only the samples that cross a
//!   block's edges, and the block's inner samples taken together where shards share KV heads, can
//!   be resident already.

use std::cmp::Reverse;

use super::blocks::{Block, Blocks};
use super::loads::{Key, Loads, id_bits};
use super::{Placement, Problem, Spare};
use crate::ids::WorkerId;
use crate::tiles::{ShTile, TileSet};

/// Memory that [`super::place_with`] reuses.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    pub(super) blocks: Blocks,
    pub(super) packed_order: Vec<u64>,
    pub(super) resident: Vec<u64>,
    pub(super) cells: Vec<Cell>,
    pub(super) prices: Vec<ShardPrice>,
    loads: Loads<u64>,
    wide_loads: Loads<u128>,
}

/// Places tiles so that no load passes `capacity` while that can be helped.
pub(super) fn place(
    scratch: &mut Scratch,
    problem: &Problem<'_>,
    tiles: &TileSet,
    capacity: u64,
    spare: Spare,
) -> Placement {
    let Scratch {
        blocks,
        packed_order,
        resident,
        cells,
        prices,
        loads,
        wide_loads,
    } = scratch;
    blocks.find(problem, tiles);
    let workers = problem.layout.workers() as usize;
    let words = workers.div_ceil(64);
    let spans = problem.heads.span_count() as usize;
    resident.clear();
    resident.resize(blocks.unit_tokens.len() * spans * words, 0);
    find_shard_prices(prices, problem);
    let shared = Shared {
        problem,
        prices,
        // No load passes the total, so this bound changes nothing but fits a key.
        capacity: capacity.min(tiles.work_total()),
        words,
        spans,
    };
    if tiles.work_total().leading_zeros() >= id_bits(workers) {
        run(
            shared,
            tiles,
            blocks,
            packed_order,
            resident,
            cells,
            loads,
            spare,
        )
    } else {
        run(
            shared,
            tiles,
            blocks,
            packed_order,
            resident,
            cells,
            wide_loads,
            spare,
        )
    }
}

/// Every tile, heaviest first.
#[allow(clippy::too_many_arguments)] // Parts of the scratch, borrowed one by one.
fn run<K: Key>(
    shared: Shared<'_>,
    tiles: &[ShTile],
    blocks: &Blocks,
    packed_order: &mut Vec<u64>,
    resident: &mut [u64],
    cells: &mut Vec<Cell>,
    loads: &mut Loads<K>,
    spare: Spare,
) -> Placement {
    loads.reset(shared.problem.layout.workers() as usize);
    let (mut assigned, mut into) = (spare.workers, spare.loads);
    clear_to(&mut assigned, tiles.len());
    let mut run = Run {
        shared,
        units: &blocks.unit_tokens,
        resident,
        loads,
        cells,
        fallbacks: 0,
    };
    for_each_by_work(tiles, &blocks.blocks, packed_order, |block| {
        let units = blocks.units(block);
        let ids = block.first_tile as usize..(block.first_tile + block.tiles) as usize;
        for (tile, worker) in tiles[ids.clone()].iter().zip(&mut assigned[ids]) {
            *worker = WorkerId(run.place(tile, block, units));
        }
    });
    run.loads.read(&mut into);
    Placement {
        fallbacks: run.fallbacks,
        loads: into,
        workers: assigned,
    }
}

/// One worker for each of `count` tiles.
pub(super) fn clear_to(assigned: &mut Vec<WorkerId>, count: usize) {
    assigned.clear();
    assigned.reserve_exact(count);
    assigned.resize(count, WorkerId::default());
}

/// Visits blocks by (work desc, id asc): the tiles of a block are equal in work and consecutive in
/// id.
pub(super) fn for_each_by_work(
    tiles: &[ShTile],
    blocks: &[Block],
    packed: &mut Vec<u64>,
    mut visit: impl FnMut(&Block),
) {
    let work = |block: &Block| tiles[block.first_tile as usize].work;
    let bits = id_bits(blocks.len());
    let heaviest = blocks.iter().map(work).max().unwrap_or(0);
    if heaviest.leading_zeros() < bits {
        let mut order: Vec<&Block> = blocks.iter().collect();
        order.sort_by_key(|block| Reverse(work(block)));
        order.into_iter().for_each(visit);
        return;
    }
    // Complemented ids: the largest word is the heaviest block with the smallest id.
    let low = (1u64 << bits) - 1;
    packed.clear();
    packed.extend(
        (0..)
            .zip(blocks)
            .map(|(id, block)| work(block) << bits | (low - id)),
    );
    packed.sort_unstable();
    for word in packed.iter().rev() {
        visit(&blocks[(low - (word & low)) as usize]);
    }
}

/// What does not change while tiles are placed.
pub(super) struct Shared<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) prices: &'a [ShardPrice],
    pub(super) capacity: u64,
    /// Words of a bit set of workers.
    pub(super) words: usize,
    /// KV spans of a unit.
    pub(super) spans: usize,
}

impl Shared<'_> {
    fn cell(&self, unit_tokens: &[u64], unit: u32, span: u32, token: u64) -> Cell {
        Cell {
            row: (unit as usize * self.spans + span as usize) * self.words,
            bytes: unit_tokens[unit as usize] * token,
        }
    }

    /// The groups of `units` in the spans of `shard`.
    pub(super) fn find_cells(
        &self,
        cells: &mut Vec<Cell>,
        unit_tokens: &[u64],
        shard: &ShardPrice,
        units: &[u32],
    ) {
        let Problem { heads, bytes, .. } = *self.problem;
        cells.clear();
        for span in shard.spans.0..shard.spans.1 {
            let kv = heads.kv_of_span(span);
            let token = bytes.kv_token(heads, kv.end - kv.start);
            cells.extend(
                units
                    .iter()
                    .map(|&unit| self.cell(unit_tokens, unit, span, token)),
            );
        }
    }
}

/// What the tokens of one shard cost to move.
#[derive(Clone, Debug)]
pub(super) struct ShardPrice {
    /// KV spans, first and one past the last.
    spans: (u32, u32),
    pub(super) kv_token: u64,
    pub(super) qo_token: u64,
}

pub(super) fn find_shard_prices(prices: &mut Vec<ShardPrice>, problem: &Problem<'_>) {
    let Problem { heads, bytes, .. } = *problem;
    let width = heads.shard_width();
    let price = |shard| {
        let (kv, spans) = (heads.kv_of_shard(shard), heads.spans_of_shard(shard));
        ShardPrice {
            spans: (spans.start, spans.end),
            kv_token: bytes.kv_token(heads, kv.end - kv.start),
            qo_token: bytes.q_token(heads, width) + bytes.o_token(heads, width),
        }
    };
    prices.clear();
    prices.extend((0..heads.shards()).map(price));
}

/// A group that the tile at hand reads and some worker may hold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    /// First word of its bit set of workers.
    pub(super) row: usize,
    /// Bytes of the group.
    pub(super) bytes: u64,
}

/// A tile's Δcomm where nothing is resident, and its part for Q and O.
#[derive(Clone, Copy)]
struct Price {
    base: u64,
    qo: u64,
    home: u32,
}

impl Price {
    fn saved_at_home(self, worker: u32) -> u64 {
        if worker == self.home { self.qo } else { 0 }
    }
}

/// State while tiles are placed one by one.
struct Run<'a, K> {
    shared: Shared<'a>,
    /// Tokens of each unit.
    units: &'a [u64],
    /// Bit set of workers for each (unit, span).
    resident: &'a mut [u64],
    loads: &'a mut Loads<K>,
    cells: &'a mut Vec<Cell>,
    fallbacks: u32,
}

impl<K: Key> Run<'_, K> {
    fn place(&mut self, tile: &ShTile, block: &Block, units: &[u32]) -> u32 {
        let shard = &self.shared.prices[tile.shard as usize];
        let qo = shard.qo_token * u64::from(tile.len());
        let price = Price {
            base: block.group_tokens * shard.kv_token + qo,
            qo,
            home: tile.q_home.0,
        };
        if let ([first, second], 1) = (units, shard.spans.1 - shard.spans.0) {
            // The common case: one span, two samples that cross the block's edges.
            let cells = [first, second].map(|&unit| {
                let shared = &self.shared;
                shared.cell(self.units, unit, shard.spans.0, shard.kv_token)
            });
            let room = self.room(tile.work);
            let winner = self.cheapest_of_two(price, room, &cells);
            return self.settle(winner, tile.work, &cells);
        }
        let mut cells = std::mem::take(self.cells);
        self.shared.find_cells(&mut cells, self.units, shard, units);
        let room = self.room(tile.work);
        let winner = self.cheapest(price, room, &cells);
        self.settle(winner, tile.work, &cells);
        *self.cells = cells;
        winner
    }

    /// The largest key that may take a tile of `work`: within C, or, where nobody is, as light as
    /// the lightest, so that (load, Δcomm, id) decides as (Δcomm, load, id) does.
    fn room(&mut self, work: u64) -> K {
        let bits = self.loads.bits();
        let least = self.loads.lightest().load(bits);
        let room = self
            .shared
            .capacity
            .checked_sub(work)
            .filter(|&room| least <= room);
        self.fallbacks += u32::from(room.is_none());
        K::new(room.unwrap_or(least), ((1u64 << bits) - 1) as u32, bits)
    }

    /// Books load and residency.
    fn settle(&mut self, winner: u32, work: u64, cells: &[Cell]) -> u32 {
        self.loads.add(winner, work);
        for cell in cells {
            self.resident[cell.row + winner as usize / 64] |= 1 << (winner % 64);
        }
        winner
    }

    /// Least (Δcomm, load, id) among the workers whose key is at most `room`, the lightest being
    /// one of them: only those that save something can beat it.
    fn cheapest(&self, price: Price, room: K, cells: &[Cell]) -> u32 {
        let keys = self.loads.keys();
        let home = price.home;
        let mut best = (price.base, self.loads.lightest());
        for word in 0..self.shared.words {
            let mut candidates = if home as usize / 64 == word {
                1 << (home % 64)
            } else {
                0
            };
            for cell in cells {
                candidates |= self.resident[cell.row + word];
            }
            while candidates != 0 {
                let bit = candidates.trailing_zeros();
                candidates &= candidates - 1;
                let worker = word as u32 * 64 + bit;
                let key = keys[worker as usize];
                if key <= room {
                    let saved = self.saved(cells, word, bit) + price.saved_at_home(worker);
                    best = best.min((price.base - saved, key));
                }
            }
        }
        best.1.worker(self.loads.bits())
    }

    /// As [`Run::cheapest`] for two groups: of the workers that hold both, only the first or only
    /// the second, the lightest of each stands for all.
    fn cheapest_of_two(&self, price: Price, room: K, cells: &[Cell; 2]) -> u32 {
        let [first, second] = *cells;
        let keys = self.loads.keys();
        let mut lightest = [K::LAST; 3];
        for word in 0..self.shared.words {
            let (a, b) = (
                self.resident[first.row + word],
                self.resident[second.row + word],
            );
            let keys = &keys[64 * word..];
            for (lightest, mut workers) in lightest.iter_mut().zip([a & b, a & !b, b & !a]) {
                while workers != 0 {
                    *lightest = keys[workers.trailing_zeros() as usize].min(*lightest);
                    workers &= workers - 1;
                }
            }
        }
        let home = price.home;
        let at_home = self.saved(cells, home as usize / 64, home % 64) + price.qo;
        let mut best = (price.base, self.loads.lightest());
        for (saved, key) in [
            (first.bytes + second.bytes, lightest[0]),
            (first.bytes, lightest[1]),
            (second.bytes, lightest[2]),
            (at_home, keys[home as usize]),
        ] {
            if key <= room {
                best = best.min((price.base - saved, key));
            }
        }
        best.1.worker(self.loads.bits())
    }

    /// Bytes of the tile's groups that worker `64·word + bit` holds.
    fn saved(&self, cells: &[Cell], word: usize, bit: u32) -> u64 {
        let held = |cell: &Cell| (self.resident[cell.row + word] >> bit & 1) * cell.bytes;
        cells.iter().map(held).sum()
    }
}
