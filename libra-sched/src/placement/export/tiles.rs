//! The plan's tiles: every token of every shard once, cut where its worker or home changes.

use super::pieces::Pieces;
use super::{Run, Task};
use crate::error::{Error, check_limit};
use crate::ids::{SampleId, WorkerId};
use crate::lengths::MAX_COUNT;
use crate::placement::{Placement, Problem, Spare, sum_loads_with};
use crate::tiles::{ShTile, TileSet};

/// Memory that the step reuses.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    runs: Vec<Run>,
    /// By slot, shard and start.
    placed: Vec<(ShTile, WorkerId)>,
    /// Start in the high half, place in `placed` in the low one.
    order: Vec<u64>,
    pub(super) made: Made,
}

/// Tiles by slot, start and shard, and their workers.
#[derive(Clone, Debug, Default)]
pub(super) struct Made {
    pub(super) tiles: Vec<ShTile>,
    pub(super) workers: Vec<WorkerId>,
}

impl Made {
    pub(super) fn clear(&mut self) {
        self.tiles.clear();
        self.workers.clear();
    }

    /// Takes those of `other`, in the memory at hand.
    pub(super) fn copy(&mut self, other: &Self) {
        self.tiles.clone_from(&other.tiles);
        self.workers.clone_from(&other.workers);
    }

    pub(super) fn push(&mut self, tile: ShTile, worker: WorkerId) {
        self.tiles.push(tile);
        self.workers.push(worker);
    }

    /// A copy of them, checked.
    pub(super) fn finish(
        &self,
        problem: &Problem<'_>,
        fallbacks: u32,
        spare: Spare,
    ) -> Result<(TileSet, Placement), Error> {
        let (pool, layout, heads) = problem.parts();
        let (tiles, workers) = (self.tiles.clone(), self.workers.clone());
        let tiles = TileSet::new_with(spare.runs, pool, layout, heads, tiles)?;
        let loads = sum_loads_with(spare.loads, &tiles, &workers, layout.workers());
        let placed = Placement {
            workers,
            loads,
            fallbacks,
        };
        Ok((tiles, placed))
    }
}

/// Makes tiles for the runs and for what stays.
///
/// # Errors
/// More tiles than ids.
pub(super) fn build(
    scratch: &mut Scratch,
    task: &Task<'_>,
    pieces: &Pieces,
    runs: &[Run],
) -> Result<(), Error> {
    let (pool, layout, heads) = task.problem.parts();
    scratch.runs.clear();
    scratch.runs.extend_from_slice(runs);
    scratch.runs.extend(handed_back(task, pieces));
    scratch.runs.sort_unstable_by_key(Run::place);
    scratch.placed.clear();
    let shards_per_rank = heads.shards() / layout.tensor();
    let mut next = scratch.runs.iter().peekable();
    for slot in 0..layout.slots() {
        let used = pool.tokens_of(slot as usize);
        for shard in 0..heads.shards() {
            for fragment in layout.fragments(slot) {
                let home = layout.worker(slot, fragment.rank, shard / shards_per_rank);
                let end = fragment.end.min(used);
                let mut at = fragment.start;
                while at < end {
                    let run = next.next_if(|r| (r.slot, r.shard, r.start) == (slot, shard, at));
                    let (to, worker) = match run {
                        Some(run) => (run.end, WorkerId(run.worker)),
                        None => {
                            let ahead = next.peek().filter(|r| (r.slot, r.shard) == (slot, shard));
                            (ahead.map_or(end, |r| r.start.min(end)), home)
                        }
                    };
                    push(&mut scratch.placed, slot, shard, at, to, home, worker);
                    at = to;
                }
            }
        }
    }
    let count = scratch.placed.len();
    check_limit("number of tiles", count as u128, MAX_COUNT.into())?;
    scratch.order.clear();
    let keys = (0u64..).zip(&scratch.placed);
    scratch
        .order
        .extend(keys.map(|(id, (tile, _))| u64::from(tile.start) << 32 | id));
    let slot_of = |key: u64| scratch.placed[key as u32 as usize].0.slot;
    // Places are by slot already, and those of a slot by shard.
    for of_slot in scratch
        .order
        .chunk_by_mut(|&a, &b| slot_of(a) == slot_of(b))
    {
        of_slot.sort_unstable();
    }
    scratch.made.clear();
    for &key in &scratch.order {
        let (mut tile, worker) = scratch.placed[key as u32 as usize];
        describe(task, &mut tile, scratch.made.tiles.last());
        scratch.made.push(tile, worker);
    }
    Ok(())
}

/// Tails that stay with the worker before: runs too.
pub(super) fn handed_back<'a>(
    task: &'a Task<'_>,
    pieces: &'a Pieces,
) -> impl Iterator<Item = Run> + 'a {
    let shards = task.problem.heads.shards();
    let away = (0..)
        .zip(&pieces.pieces)
        .filter(|(_, piece)| piece.keeper != piece.home);
    away.flat_map(move |(id, piece)| {
        let offset = task.problem.pool.starts()[piece.sample as usize];
        (0..shards).filter_map(move |shard| {
            let free = pieces.kept_of(id, shard);
            (free.start < free.end).then(|| Run {
                slot: piece.slot,
                shard,
                start: offset + free.start,
                end: offset + free.end,
                worker: pieces.keeper(piece, shard),
            })
        })
    })
}

/// Appends a tile, or lengthens the last where nothing changes between them.
fn push(
    placed: &mut Vec<(ShTile, WorkerId)>,
    slot: u32,
    shard: u32,
    start: u32,
    end: u32,
    home: WorkerId,
    worker: WorkerId,
) {
    if let Some((last, there)) = placed.last_mut() {
        let place = (last.slot, last.shard, last.end, last.q_home, *there);
        if place == (slot, shard, start, home, worker) {
            last.end = end;
            return;
        }
    }
    placed.push((
        ShTile {
            slot,
            start,
            end,
            shard,
            q_home: home,
            first_sample: SampleId(0),
            samples: 0,
            reserved: 0,
            work: 0,
        },
        worker,
    ));
}

/// Samples and work of a tile: those of `last` where it has the same tokens in another shard. Else
/// whole samples are summed already, and what it cuts off is taken away.
fn describe(task: &Task<'_>, tile: &mut ShTile, last: Option<&ShTile>) {
    let tokens = |tile: &ShTile| (tile.slot, tile.start, tile.end);
    if let Some(last) = last.filter(|last| tokens(last) == tokens(tile)) {
        tile.first_sample = last.first_sample;
        tile.samples = last.samples;
        tile.work = last.work;
        return;
    }
    let pool = task.problem.pool;
    let own = pool.samples_of(tile.slot as usize);
    let starts = &pool.starts()[own.clone()];
    let first = own.start + starts.partition_point(|&start| start <= tile.start) - 1;
    let last = own.start + starts.partition_point(|&start| start < tile.end) - 1;
    let (head, tail) = (
        pool.tokens(SampleId::new(first)),
        pool.tokens(SampleId::new(last)),
    );
    let cut_head = task.exact(first as u32, 0, tile.start - head.start);
    let cut_tail = task.exact(
        last as u32,
        tile.end.min(tail.end) - tail.start,
        tail.end - tail.start,
    );
    let whole = task.before[last + 1] - task.before[first];
    tile.first_sample = SampleId::new(first);
    tile.samples = (last - first + 1) as u32;
    // A tile is part of the pool, whose work fits 64 bits.
    tile.work = (whole - u128::from(cut_head) - u128::from(cut_tail)) as u64;
}
