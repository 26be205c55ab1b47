//! Which KV groups of a tile set can be read by two tiles: all others are never resident before
//! their only tile is placed.

use super::Problem;
use crate::tiles::{ShTile, TileSet};

/// Consecutive tiles over the same tokens with the same work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) first_tile: u32,
    pub(super) tiles: u32,
    /// Tokens of all samples that the block meets, and of their ancestors.
    pub(super) group_tokens: u64,
    /// Units that may be resident somewhere already.
    first_unit: u32,
    units: u32,
}

/// Tiles by block. A *unit* is a sample that crosses block edges, or the inner samples of one block
/// taken together: what is fetched as one.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    pub(super) blocks: Vec<Block>,
    /// Tokens of each unit.
    pub(super) unit_tokens: Vec<u64>,
    block_units: Vec<u32>,
    unit_of_sample: Vec<u32>,
}

const NO_UNIT: u32 = u32::MAX;

impl Blocks {
    pub(super) fn find(&mut self, problem: &Problem<'_>, tiles: &TileSet) {
        self.blocks.clear();
        self.block_units.clear();
        self.unit_tokens.clear();
        self.unit_of_sample.clear();
        self.unit_of_sample.resize(problem.pool.samples(), NO_UNIT);
        // A sample within one block is read by others too if it has children there.
        let disjoint = tiles.is_disjoint() && !problem.pool.has_parents();
        let shared_spans = problem.heads.spans_are_shared();
        for run in tiles.runs() {
            let tile = &tiles[run.start as usize];
            let first_unit = self.block_units.len() as u32;
            let (inner, crossing) = self.find_units(problem, tile, disjoint);
            if shared_spans && inner > 0 {
                self.block_units.push(self.unit_tokens.len() as u32);
                self.unit_tokens.push(inner);
            }
            self.blocks.push(Block {
                first_tile: run.start,
                tiles: run.end - run.start,
                group_tokens: inner + crossing,
                first_unit,
                units: self.block_units.len() as u32 - first_unit,
            });
        }
    }

    /// Units of `block`.
    pub(super) fn units(&self, block: &Block) -> &[u32] {
        &self.block_units[block.first_unit as usize..][..block.units as usize]
    }

    /// Lists the samples of `tile` that other blocks may read too. Returns the tokens of the inner
    /// samples and of those that cross an edge.
    fn find_units(&mut self, problem: &Problem<'_>, tile: &ShTile, disjoint: bool) -> (u64, u64) {
        let samples = tile.samples();
        if !disjoint || samples.len() <= 2 {
            let mut sums = (0, 0);
            let mut add = |index: usize| {
                let (inside, across) = self.weigh(problem, tile, index, disjoint);
                sums = (sums.0 + inside, sums.1 + across);
            };
            samples.clone().for_each(&mut add);
            if problem.pool.has_parents() {
                problem
                    .pool
                    .ancestors_of(samples)
                    .into_iter()
                    .for_each(&mut add);
            }
            return sums;
        }
        // Samples lie back to back, so the inner ones have the tokens between the outer two.
        let (first, last) = (samples.start, samples.end - 1);
        let (starts, lengths) = (problem.pool.starts(), problem.pool.lengths());
        let between = u64::from(starts[last] - (starts[first] + lengths[first]));
        let (inside, across) = self.weigh(problem, tile, first, true);
        let (inside_last, across_last) = self.weigh(problem, tile, last, true);
        (between + inside + inside_last, across + across_last)
    }

    /// Tokens of one sample: as an inner one, or as one that crosses, which is then a unit.
    fn weigh(
        &mut self,
        problem: &Problem<'_>,
        tile: &ShTile,
        index: usize,
        disjoint: bool,
    ) -> (u64, u64) {
        let (start, len) = (problem.pool.starts()[index], problem.pool.lengths()[index]);
        let inside = tile.start <= start && start + len <= tile.end;
        let len = u64::from(len);
        if disjoint && inside {
            return (len, 0);
        }
        let unit = &mut self.unit_of_sample[index];
        if *unit == NO_UNIT {
            *unit = self.unit_tokens.len() as u32;
            self.unit_tokens.push(len);
        }
        self.block_units.push(*unit);
        (0, len)
    }
}
