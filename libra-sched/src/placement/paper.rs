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

use super::{Placement, Problem};
use crate::ids::{SampleId, WorkerId};
use crate::tiles::ShTile;

/// Memory that [`super::place_with`] reuses.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    blocks: Vec<Block>,
    order: Vec<(u64, u32)>,
    block_units: Vec<u32>,
    unit_tokens: Vec<u64>,
    unit_of_sample: Vec<u32>,
    resident: Vec<u64>,
    tree: LoadTree,
}

/// Consecutive tiles over the same tokens with the same work.
#[derive(Clone, Copy, Debug)]
struct Block {
    first_tile: u32,
    tiles: u32,
    /// Tokens of all samples that the block meets.
    group_tokens: u64,
    /// Units in `block_units` that may be resident somewhere already.
    first_unit: u32,
    units: u32,
}

/// A sample that crosses block edges, or the inner samples of one block.
const NO_UNIT: u32 = u32::MAX;

pub(super) fn place(
    scratch: &mut Scratch,
    problem: &Problem<'_>,
    tiles: &[ShTile],
    capacity: u64,
) -> Placement {
    scratch.find_blocks(problem, tiles);
    let workers = problem.layout.workers() as usize;
    let words = workers.div_ceil(64);
    let spans = problem.heads.span_count() as usize;
    scratch.resident.clear();
    scratch
        .resident
        .resize(scratch.unit_tokens.len() * spans * words, 0);
    scratch.tree.reset(workers);

    let mut run = Run {
        problem,
        capacity,
        words,
        spans,
        units: &scratch.unit_tokens,
        resident: &mut scratch.resident,
        tree: &mut scratch.tree,
        fallbacks: 0,
    };
    let mut assigned = vec![WorkerId::default(); tiles.len()];
    for &(_, block) in &scratch.order {
        let block = scratch.blocks[block as usize];
        let units = &scratch.block_units[block.first_unit as usize..][..block.units as usize];
        for id in block.first_tile..block.first_tile + block.tiles {
            assigned[id as usize] = run.place(&tiles[id as usize], block.group_tokens, units);
        }
    }
    let fallbacks = run.fallbacks;
    Placement {
        workers: assigned,
        loads: scratch.tree.loads.clone(),
        fallbacks,
    }
}

impl Scratch {
    /// Groups tiles into blocks, finds which groups can be shared, and orders blocks by
    /// (work desc, id asc): the tiles of a block are equal in work and consecutive in id.
    fn find_blocks(&mut self, problem: &Problem<'_>, tiles: &[ShTile]) {
        self.blocks.clear();
        self.order.clear();
        self.block_units.clear();
        self.unit_tokens.clear();
        self.unit_of_sample.clear();
        self.unit_of_sample.resize(problem.pool.samples(), NO_UNIT);
        let disjoint = blocks_are_disjoint(tiles);
        let shared_spans = problem.heads.spans_are_shared();
        let mut first_tile = 0;
        while first_tile < tiles.len() {
            let tile = &tiles[first_tile];
            let same = |t: &&ShTile| t.same_block(tile) && t.work == tile.work;
            let count = tiles[first_tile..].iter().take_while(same).count();
            let block = self.add_block(problem, tile, disjoint, shared_spans);
            self.order.push((tile.work, self.blocks.len() as u32));
            self.blocks.push(Block {
                first_tile: first_tile as u32,
                tiles: count as u32,
                ..block
            });
            first_tile += count;
        }
        self.order
            .sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    }

    fn add_block(
        &mut self,
        problem: &Problem<'_>,
        tile: &ShTile,
        disjoint: bool,
        shared_spans: bool,
    ) -> Block {
        let first_unit = self.block_units.len() as u32;
        let samples = tile.samples();
        let tokens = |index: usize| problem.pool.tokens(SampleId::new(index));
        let mut inner = 0u64;
        let mut crossing = 0u64;
        let mut cross = |scratch: &mut Self, index: usize, len: u32| {
            crossing += u64::from(len);
            let unit = &mut scratch.unit_of_sample[index];
            if *unit == NO_UNIT {
                *unit = scratch.unit_tokens.len() as u32;
                scratch.unit_tokens.push(len.into());
            }
            scratch.block_units.push(*unit);
        };
        if disjoint && samples.len() > 2 {
            // Samples lie back to back, so the inner ones have the tokens between the outer two.
            let (head, tail) = (tokens(samples.start), tokens(samples.end - 1));
            inner = u64::from(tail.start - head.end);
            for (index, range) in [(samples.start, head), (samples.end - 1, tail)] {
                if tile.start <= range.start && range.end <= tile.end {
                    inner += u64::from(range.end - range.start);
                } else {
                    cross(self, index, range.end - range.start);
                }
            }
        } else {
            for index in samples {
                let range = tokens(index);
                if disjoint && tile.start <= range.start && range.end <= tile.end {
                    inner += u64::from(range.end - range.start);
                } else {
                    cross(self, index, range.end - range.start);
                }
            }
        }
        if shared_spans && inner > 0 {
            self.block_units.push(self.unit_tokens.len() as u32);
            self.unit_tokens.push(inner);
        }
        Block {
            first_tile: 0,
            tiles: 0,
            group_tokens: inner + crossing,
            first_unit,
            units: self.block_units.len() as u32 - first_unit,
        }
    }
}

/// Whether blocks follow each other without overlap, so that an inner sample has one block.
fn blocks_are_disjoint(tiles: &[ShTile]) -> bool {
    tiles.windows(2).all(|pair| {
        let (a, b) = (&pair[0], &pair[1]);
        (a.same_block(b) && a.work == b.work) || (a.slot, a.end) <= (b.slot, b.start)
    })
}

/// State while tiles are placed one by one.
struct Run<'a> {
    problem: &'a Problem<'a>,
    capacity: u64,
    words: usize,
    spans: usize,
    units: &'a [u64],
    /// Bit set of workers for each (unit, span).
    resident: &'a mut [u64],
    tree: &'a mut LoadTree,
    fallbacks: u32,
}

impl Run<'_> {
    fn place(&mut self, tile: &ShTile, group_tokens: u64, units: &[u32]) -> WorkerId {
        let Problem { heads, bytes, .. } = *self.problem;
        let spans = heads.spans_of_shard(tile.shard);
        let kv_heads = heads.kv_of_shard(tile.shard);
        let kv_token = bytes.kv_token(heads, kv_heads.end - kv_heads.start);
        let width = heads.shard_width();
        let qo_token = bytes.q_token(heads, width) + bytes.o_token(heads, width);
        let qo = qo_token * u64::from(tile.len());
        let base = group_tokens * kv_token + qo;

        let lightest = self.tree.lightest();
        let winner = if self.fits(lightest, tile.work) {
            let mut best = (base, self.tree.loads[lightest as usize], lightest);
            for word in 0..self.words {
                let mut holders = self.holders(units, spans.clone(), word);
                if tile.q_home.index() / 64 == word {
                    holders |= 1 << (tile.q_home.0 % 64);
                }
                while holders != 0 {
                    let worker = (word * 64) as u32 + holders.trailing_zeros();
                    holders &= holders - 1;
                    if self.fits(worker, tile.work) {
                        let price = base - self.saved(units, spans.clone(), tile, worker, qo);
                        best = best.min((price, self.tree.loads[worker as usize], worker));
                    }
                }
            }
            best.2
        } else {
            self.fallbacks += 1;
            self.fall_back(units, spans.clone(), tile, qo, lightest)
        };

        self.tree.add(winner, tile.work);
        for &unit in units {
            for span in spans.clone() {
                let at = self.at(unit, span) + winner as usize / 64;
                self.resident[at] |= 1 << (winner % 64);
            }
        }
        WorkerId(winner)
    }

    /// Least (load, Δcomm, id): among the workers as light as the lightest, the largest saving.
    fn fall_back(
        &self,
        units: &[u32],
        spans: std::ops::Range<u32>,
        tile: &ShTile,
        qo: u64,
        lightest: u32,
    ) -> u32 {
        let load = self.tree.loads[lightest as usize];
        let mut best = (std::cmp::Reverse(0), u32::MAX);
        for (worker, &other) in (0..).zip(&self.tree.loads) {
            if other == load {
                let saved = self.saved(units, spans.clone(), tile, worker, qo);
                best = best.min((std::cmp::Reverse(saved), worker));
            }
        }
        best.1
    }

    fn fits(&self, worker: u32, work: u64) -> bool {
        // Loads never exceed the pool's total work, which fits 64 bits.
        self.tree.loads[worker as usize] + work <= self.capacity
    }

    fn at(&self, unit: u32, span: u32) -> usize {
        (unit as usize * self.spans + span as usize) * self.words
    }

    /// Workers of bit word `word` that hold one of the groups.
    fn holders(&self, units: &[u32], spans: std::ops::Range<u32>, word: usize) -> u64 {
        let mut bits = 0;
        for &unit in units {
            for span in spans.clone() {
                bits |= self.resident[self.at(unit, span) + word];
            }
        }
        bits
    }

    /// Base price less Δcomm at `worker`.
    fn saved(
        &self,
        units: &[u32],
        spans: std::ops::Range<u32>,
        tile: &ShTile,
        worker: u32,
        qo: u64,
    ) -> u64 {
        let Problem { heads, bytes, .. } = *self.problem;
        let mut saved = if tile.q_home.0 == worker { qo } else { 0 };
        for span in spans {
            let kv = heads.kv_of_span(span);
            let token = bytes.kv_token(heads, kv.end - kv.start);
            for &unit in units {
                let word = self.resident[self.at(unit, span) + worker as usize / 64];
                if word >> (worker % 64) & 1 == 1 {
                    saved += self.units[unit as usize] * token;
                }
            }
        }
        saved
    }
}

/// Loads with their (load, id) minimum: a tournament over a power of two of leaves.
#[derive(Clone, Debug, Default)]
struct LoadTree {
    loads: Vec<u64>,
    leaves: usize,
    /// Winner of every node; node 1 is the root, node `leaves + w` is worker `w`.
    winners: Vec<u32>,
}

impl LoadTree {
    fn reset(&mut self, workers: usize) {
        self.loads.clear();
        self.loads.resize(workers, 0);
        self.leaves = workers.next_power_of_two();
        self.winners.clear();
        self.winners.resize(2 * self.leaves, 0);
        for leaf in 0..self.leaves {
            self.winners[self.leaves + leaf] = leaf as u32;
        }
        for node in (1..self.leaves).rev() {
            self.winners[node] = self.better(node);
        }
    }

    fn lightest(&self) -> u32 {
        self.winners[1]
    }

    fn add(&mut self, worker: u32, work: u64) {
        self.loads[worker as usize] += work;
        let mut node = (self.leaves + worker as usize) / 2;
        while node > 0 {
            self.winners[node] = self.better(node);
            node /= 2;
        }
    }

    /// The left child holds smaller ids, so a tie goes left; leaves beyond the workers lose.
    fn better(&self, node: usize) -> u32 {
        let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
        let load = |leaf: u32| self.loads.get(leaf as usize).copied().unwrap_or(u64::MAX);
        if load(left) <= load(right) {
            left
        } else {
            right
        }
    }
}
