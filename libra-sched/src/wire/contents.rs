//! Sections to plan: shapes through their constructors, every id below its count.

use bytemuck::{AnyBitPattern, NoUninit};

use super::DecodeError;
use super::decode::{section_of, wrong};
use super::format::{Section, Shape};
use crate::error::{Error, check_limit};
use crate::exchange::{ExchangePlan, KvFetch, KvMove, KvRoute, TileMove};
use crate::heads::{ElementBytes, HeadSplit};
use crate::ids::SampleId;
use crate::layout::{Fragment, TokenLayout};
use crate::lengths::{MAX_COUNT, PackedLengths, ROOT, check_total};
use crate::mask::Mask;
use crate::plan::PoolPlan;
use crate::tiles::ShTile;
use crate::topology::Topology;

/// The elements of a section; its size was checked to be a multiple of theirs.
fn read<T: NoUninit + AnyBitPattern>(sections: &[(Section, &[u8])], section: Section) -> Vec<T> {
    bytemuck::allocation::pod_collect_to_vec(section_of(sections, section).unwrap_or(&[]))
}

fn contents(section: Section) -> impl Fn(Error) -> DecodeError {
    move |source| DecodeError::Contents {
        section: section.name(),
        source,
    }
}

pub(super) fn read_plan(sections: &[(Section, &[u8])]) -> Result<PoolPlan, DecodeError> {
    let shapes: Vec<Shape> = read(sections, Section::Shape);
    let &[shape] = shapes.as_slice() else {
        return Err(wrong(Section::Shape, "holds shapes", shapes.len(), 1u64));
    };
    if shape.zeros != [0; 2] {
        return Err(wrong(
            Section::Shape,
            "has reserved fields that are not zero",
            1u64,
            0u64,
        ));
    }
    let mask = read_mask(&shape)?;
    let fetches = KvFetch::ALL.len();
    let kv_fetch = *KvFetch::ALL.get(shape.kv_fetch as usize).ok_or_else(|| {
        wrong(
            Section::Shape,
            "names an unknown kv fetch",
            shape.kv_fetch,
            fetches - 1,
        )
    })?;
    let kv_route = read_route(sections, shape.gpus_per_node)?;
    // The tables of heads come first: they bound the head counts by bytes that are there.
    let q_chunks: Vec<u32> = read(sections, Section::QHeads);
    let kv_chunks: Vec<[u32; 2]> = read(sections, Section::KvHeads);
    check_count(Section::QHeads, q_chunks.len(), shape.q_heads as usize)?;
    check_count(Section::KvHeads, kv_chunks.len(), shape.kv_heads as usize)?;
    let Shape {
        q_heads,
        kv_heads,
        dim_qk,
        dim_v,
        shards,
        chunks,
        ..
    } = shape;
    let heads = HeadSplit::new(q_heads, kv_heads, dim_qk, dim_v, shards, chunks)
        .map_err(contents(Section::Shape))?;
    let first: Vec<u32> = read(sections, Section::Sequences);
    check_count(Section::Sequences, first.len(), shape.slots as usize + 1)?;
    let lengths: Vec<u32> = read(sections, Section::Samples);
    let lengths = PackedLengths::from_parts(shape.seq_tokens, &first, &lengths)
        .map_err(contents(Section::Samples))?;
    let lengths = read_parents(lengths, sections)?;
    lengths.check_mask(mask).map_err(contents(Section::Shape))?;
    let first: Vec<u32> = read(sections, Section::Slots);
    check_count(Section::Slots, first.len(), shape.slots as usize + 1)?;
    let fragments: Vec<Fragment> = read(sections, Section::Fragments);
    let layout = TokenLayout::from_parts(
        shape.seq_tokens,
        shape.ranks,
        shape.tensor,
        first,
        fragments,
    )
    .map_err(contents(Section::Fragments))?;
    layout
        .check_heads(&heads)
        .map_err(contents(Section::Shape))?;
    let tiles: Vec<ShTile> = read(sections, Section::Tiles);
    let workers = read(sections, Section::Workers);
    check_count(Section::Workers, workers.len(), tiles.len())?;
    Ok(PoolPlan {
        lengths,
        layout,
        heads,
        mask,
        kv_fetch,
        kv_route,
        bytes: ElementBytes {
            activation: shape.activation_bytes,
            statistic: shape.statistic_bytes,
        },
        tiles,
        workers,
        q_chunks,
        kv_chunks,
        exchange: ExchangePlan {
            q: read(sections, Section::QMoves),
            kv: read(sections, Section::KvMoves),
            forward: read(sections, Section::Forwards),
            o: read(sections, Section::OMoves),
        },
    })
}

/// The route, and whether the section that belongs to it is there.
fn read_route(sections: &[(Section, &[u8])], gpus_per_node: u32) -> Result<KvRoute, DecodeError> {
    let section = Section::Forwards;
    let forwards = u64::from(section_of(sections, section).is_some());
    match Topology::new(gpus_per_node) {
        Ok(topology) if forwards == 1 => Ok(KvRoute::Node(topology)),
        Ok(_) => Err(wrong(section, "is missing, sections", forwards, 1u64)),
        Err(_) if forwards == 0 => Ok(KvRoute::Direct),
        Err(_) => Err(wrong(
            section,
            "is there though no node has GPUs, sections",
            forwards,
            0u64,
        )),
    }
}

/// `lengths` with the parents of their section, which is there only where some sample has one.
fn read_parents(
    lengths: PackedLengths,
    sections: &[(Section, &[u8])],
) -> Result<PackedLengths, DecodeError> {
    if section_of(sections, Section::Parents).is_none() {
        return Ok(lengths);
    }
    let parents: Vec<u32> = read(sections, Section::Parents);
    check_count(Section::Parents, parents.len(), lengths.samples())?;
    let named = parents.iter().filter(|&&parent| parent != ROOT).count();
    if named == 0 {
        return Err(wrong(
            Section::Parents,
            "names no parent, parents",
            named,
            1u64,
        ));
    }
    let parent = |&parent: &u32| (parent != ROOT).then_some(SampleId(parent));
    let parents: Vec<_> = parents.iter().map(parent).collect();
    lengths
        .with_parents(&parents)
        .map_err(contents(Section::Parents))
}

/// The mask of a code and its numbers; the other way round in `encode`.
fn read_mask(shape: &Shape) -> Result<Mask, DecodeError> {
    let [a, b, c] = shape.mask_numbers;
    let (count, mask) = match shape.mask {
        0 => (0, Ok(Mask::Causal)),
        1 => (0, Ok(Mask::Full)),
        2 => (1, Mask::causal_with_offset(a)),
        3 => (2, Mask::window(a, b)),
        4 => (2, Ok(Mask::two_sided(a, b))),
        5 => (1, Mask::chunked(a)),
        6 => (3, Mask::block_causal(a, b, c)),
        7 => (1, Mask::prefix(a)),
        8 => (2, Mask::restricted(a, b)),
        unknown => {
            let last = 8u32;
            return Err(wrong(
                Section::Shape,
                "names an unknown mask",
                unknown,
                last,
            ));
        }
    };
    if let Some(&number) = shape.mask_numbers[count..].iter().find(|&&n| n != 0) {
        return Err(wrong(
            Section::Shape,
            "has a number that its mask does not have",
            number,
            0u64,
        ));
    }
    mask.map_err(contents(Section::Shape))
}

fn check_count(section: Section, found: usize, expected: usize) -> Result<(), DecodeError> {
    if found != expected {
        return Err(wrong(
            section,
            "has a wrong number of elements",
            found,
            expected,
        ));
    }
    Ok(())
}

/// Every id points to something and every sum fits, so that reading a plan cannot panic.
pub(super) fn check_ids(plan: &PoolPlan) -> Result<(), DecodeError> {
    check_tiles(plan).map_err(contents(Section::Tiles))?;
    let workers = plan.layout.workers();
    for worker in &plan.workers {
        below("worker", worker.0, workers).map_err(contents(Section::Workers))?;
    }
    let chunks = plan.heads.chunks();
    for &chunk in &plan.q_chunks {
        below("chunk", chunk, chunks).map_err(contents(Section::QHeads))?;
    }
    for &chunk in plan.kv_chunks.as_flattened() {
        below("chunk", chunk, chunks).map_err(contents(Section::KvHeads))?;
    }
    let tile_moves = |section: Section, moves: &[TileMove]| {
        moves
            .iter()
            .try_for_each(|m| {
                below("tile", m.tile.0, plan.tiles.len() as u32)?;
                below("source worker", m.src.0, workers)?;
                below("destination worker", m.dst.0, workers)
            })
            .map_err(contents(section))
    };
    tile_moves(Section::QMoves, &plan.exchange.q)?;
    tile_moves(Section::OMoves, &plan.exchange.o)?;
    let kv_moves = |section: Section, moves: &[KvMove]| {
        let checked = moves.iter().try_for_each(|m| check_kv_move(plan, m));
        checked.map_err(contents(section))
    };
    kv_moves(Section::KvMoves, &plan.exchange.kv)?;
    kv_moves(Section::Forwards, &plan.exchange.forward)?;
    check_sums(plan).map_err(contents(Section::Tiles))
}

fn below(name: &'static str, value: u32, count: u32) -> Result<(), Error> {
    if value >= count {
        return Err(Error::OutOfRange {
            name,
            value: value.into(),
            count: count.into(),
        });
    }
    Ok(())
}

fn check_tiles(plan: &PoolPlan) -> Result<(), Error> {
    check_limit(
        "number of tiles",
        plan.tiles.len() as u128,
        MAX_COUNT.into(),
    )?;
    for tile in &plan.tiles {
        below("slot", tile.slot, plan.layout.slots())?;
        below("shard", tile.shard, plan.heads.shards())?;
        below("q_home worker", tile.q_home.0, plan.layout.workers())?;
        check_tokens(plan, tile.start, tile.end)?;
        let samples = plan.lengths.samples_of(tile.slot as usize);
        let first = u64::from(tile.first_sample.0);
        let last = first + u64::from(tile.samples);
        if first < samples.start as u64 || last > samples.end as u64 {
            let count = samples.end as u64;
            return Err(Error::OutOfRange {
                name: "sample of a tile",
                value: last,
                count,
            });
        }
        below("reserved field of a tile", tile.reserved, 1)?;
    }
    Ok(())
}

fn check_tokens(plan: &PoolPlan, start: u32, end: u32) -> Result<(), Error> {
    let count = u64::from(plan.layout.seq_tokens()) + 1;
    if start >= end || u64::from(end) >= count {
        return Err(Error::OutOfRange {
            name: "end of tokens",
            value: end.into(),
            count,
        });
    }
    Ok(())
}

fn check_kv_move(plan: &PoolPlan, m: &KvMove) -> Result<(), Error> {
    below("sample", m.sample.0, plan.lengths.samples() as u32)?;
    below("KV span", m.span, plan.heads.span_count())?;
    below("source worker", m.src.0, plan.layout.workers())?;
    below("destination worker", m.dst.0, plan.layout.workers())?;
    check_tokens(plan, m.start, m.end)
}

fn check_sums(plan: &PoolPlan) -> Result<(), Error> {
    let PoolPlan { heads, bytes, .. } = plan;
    check_total(
        "work of the pool",
        plan.tiles.iter().map(|t| u128::from(t.work)).sum(),
    )?;
    // Backward takes Q where O went and moves a statistic beside both, so each row that moves,
    // Q or O, may carry either; and all of it may move twice.
    let dims = u128::from(heads.dim_qk()) + u128::from(heads.dim_v());
    let activation = u128::from(bytes.activation) * dims;
    let row = u128::from(heads.shard_width()) * (activation + u128::from(bytes.statistic));
    let rows = |moves: &[TileMove]| -> u128 {
        let tile = |m: &TileMove| &plan.tiles[m.tile.index()];
        moves.iter().map(|m| u128::from(tile(m).len())).sum()
    };
    let rows = rows(&plan.exchange.q).max(rows(&plan.exchange.o));
    let kv_rows = |m: &KvMove| u128::from(m.tokens()) * heads.kv_of_span(m.span).len() as u128;
    let fetched = plan.exchange.kv.iter().chain(&plan.exchange.forward);
    let kv: u128 = fetched.map(kv_rows).sum();
    let total = row
        .saturating_mul(rows)
        .saturating_add(activation.saturating_mul(kv));
    check_total("bytes of the pool", total.saturating_mul(2)).map(|_| ())
}
