//! Bytes to plan: every count is checked against the bytes that are there before it is used.

use bytemuck::{AnyBitPattern, NoUninit};

use super::format::{ALIGN, Entry, Header, MAGIC, REQUIRED, Section, Shape, VERSION};
use super::{DecodeError, PlanId, encode};
use crate::error::{Error, check_limit};
use crate::exchange::{ExchangePlan, KvMove, TileMove};
use crate::heads::{ElementBytes, HeadSplit};
use crate::layout::{Fragment, TokenLayout};
use crate::lengths::{MAX_COUNT, PackedLengths, check_total};
use crate::mask::Mask;
use crate::plan::PoolPlan;
use crate::tiles::ShTile;

/// A plan file, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The plan. Its ids point to things that exist; [`crate::verify::check`] says whether it is
    /// right.
    pub plan: PoolPlan,
    /// Digest that the header states and the sections have.
    pub id: PlanId,
    /// Where it comes from; empty where the file does not say.
    pub provenance: String,
}

/// The plan in `bytes`.
///
/// # Errors
/// Anything that [`super::encode`] would not have written: see [`DecodeError`].
pub fn decode(bytes: &[u8]) -> Result<PoolPlan, DecodeError> {
    open(bytes).map(|decoded| decoded.plan)
}

/// The plan in `bytes`, its id and its provenance.
///
/// # Errors
/// As [`decode`].
pub fn open(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let header = read_header(bytes)?;
    let table = read_table(bytes, &header)?;
    let Found { sections, optional } = find_sections(bytes, &table)?;
    let table_bytes = &bytes[size_of::<Header>()..][..table.len() * size_of::<Entry>()];
    let found = encode::checksum(header, table_bytes, &optional);
    if found != header.checksum {
        return Err(DecodeError::Checksum {
            found,
            stated: header.checksum,
        });
    }
    let id = encode::digest(&sections);
    if id.0 != header.plan_id {
        return Err(DecodeError::PlanId {
            found: id,
            stated: PlanId(header.plan_id),
        });
    }
    let plan = read_plan(&sections)?;
    check_ids(&plan)?;
    let provenance = section_of(&sections, Section::Provenance).unwrap_or(&[]);
    let provenance = std::str::from_utf8(provenance).map_err(|error| {
        wrong(
            Section::Provenance,
            "is not UTF-8 from byte",
            error.valid_up_to(),
            0,
        )
    })?;
    Ok(Decoded {
        plan,
        id,
        provenance: provenance.to_owned(),
    })
}

fn wrong(
    section: Section,
    problem: &'static str,
    found: impl TryInto<u64>,
    expected: impl TryInto<u64>,
) -> DecodeError {
    DecodeError::Section {
        section: section.name(),
        problem,
        found: found.try_into().unwrap_or(u64::MAX),
        expected: expected.try_into().unwrap_or(u64::MAX),
    }
}

fn read_header(bytes: &[u8]) -> Result<Header, DecodeError> {
    let magic = &bytes[..bytes.len().min(MAGIC.len())];
    if magic != MAGIC {
        return Err(DecodeError::NotAPlan {
            found: magic.to_vec(),
        });
    }
    let found = bytes.len() as u64;
    let Some(header) = bytes.get(..size_of::<Header>()) else {
        let expected = size_of::<Header>() as u64;
        return Err(DecodeError::Length {
            what: "header",
            found,
            expected,
        });
    };
    let header: Header = bytemuck::pod_read_unaligned(header);
    if header.version != VERSION {
        return Err(DecodeError::Version {
            found: header.version,
            supported: VERSION,
        });
    }
    if header.bytes != found {
        return Err(DecodeError::Length {
            what: "header's length",
            found,
            expected: header.bytes,
        });
    }
    Ok(header)
}

fn read_table(bytes: &[u8], header: &Header) -> Result<Vec<Entry>, DecodeError> {
    let body = &bytes[size_of::<Header>()..];
    let expected = u64::from(header.sections) * size_of::<Entry>() as u64;
    match usize::try_from(expected)
        .ok()
        .and_then(|len| body.get(..len))
    {
        Some(table) => Ok(bytemuck::allocation::pod_collect_to_vec(table)),
        None => Err(DecodeError::Length {
            what: "section table",
            found: body.len() as u64,
            expected,
        }),
    }
}

/// What a file holds: the sections that this library knows, and the bytes the checksum covers.
struct Found<'a> {
    sections: Vec<(Section, &'a [u8])>,
    /// Provenance and optional sections of later libraries, in file order.
    optional: Vec<&'a [u8]>,
}

/// Sections in file order, back to back with zeros between: nothing lies outside a section.
fn find_sections<'a>(bytes: &'a [u8], table: &[Entry]) -> Result<Found<'a>, DecodeError> {
    let mut found = Found {
        sections: Vec::with_capacity(table.len()),
        optional: Vec::new(),
    };
    let mut end = size_of::<Header>() + size_of_val(table);
    let mut last_id = 0;
    let mut required = Section::REQUIRED.iter().copied();
    for entry in table {
        let known = match required.next() {
            Some(section) => Some(section),
            None => (entry.id == Section::Provenance as u32).then_some(Section::Provenance),
        };
        // Errors about an optional section that has no name here are reported as the last known.
        let section = known.unwrap_or(Section::Provenance);
        check_entry(entry, known, section, last_id)?;
        last_id = entry.id;
        let start = end.next_multiple_of(ALIGN);
        if entry.offset != start as u64 {
            return Err(wrong(
                section,
                "starts at a wrong offset",
                entry.offset,
                start,
            ));
        }
        let room = bytes.len().saturating_sub(start);
        if entry.bytes > room as u64 {
            return Err(wrong(
                section,
                "runs past the end, bytes",
                entry.bytes,
                room,
            ));
        }
        check_zeros(section, &bytes[end..start])?;
        end = start + entry.bytes as usize;
        if let Some(section) = known {
            found.sections.push((section, &bytes[start..end]));
        }
        if entry.flags & REQUIRED == 0 {
            found.optional.push(&bytes[start..end]);
        }
    }
    if let Some(missing) = required.next() {
        return Err(wrong(
            missing,
            "is missing, sections",
            table.len(),
            Section::REQUIRED.len(),
        ));
    }
    let last = found.sections[found.sections.len() - 1].0;
    if bytes.len() != end.next_multiple_of(ALIGN) {
        return Err(wrong(
            last,
            "does not end the file, bytes",
            bytes.len(),
            end,
        ));
    }
    check_zeros(last, &bytes[end..])?;
    Ok(found)
}

/// The entry of `known`, or of an optional section with a later id.
fn check_entry(
    entry: &Entry,
    known: Option<Section>,
    section: Section,
    last_id: u32,
) -> Result<(), DecodeError> {
    if known.is_none() && entry.flags & REQUIRED != 0 {
        return Err(DecodeError::UnknownSection { id: entry.id });
    }
    if entry.id <= last_id || known.is_some_and(|section| entry.id != section as u32) {
        let expected = known.map_or(last_id + 1, |section| section as u32);
        if entry.id > Section::Provenance as u32 && entry.flags & REQUIRED != 0 {
            return Err(DecodeError::UnknownSection { id: entry.id });
        }
        return Err(wrong(
            section,
            "is missing or out of order, id",
            entry.id,
            expected,
        ));
    }
    let flags = if section == Section::Provenance {
        0
    } else {
        REQUIRED
    };
    if entry.flags != flags || entry.zero != 0 {
        return Err(wrong(section, "has unknown flags", entry.flags, flags));
    }
    if known.is_some() && entry.element_bytes != section.element_bytes() {
        let expected = section.element_bytes();
        return Err(wrong(
            section,
            "has wrong element bytes",
            entry.element_bytes,
            expected,
        ));
    }
    let element = u64::from(entry.element_bytes);
    if element == 0 || !entry.bytes.is_multiple_of(element) {
        let whole = entry.bytes - entry.bytes.checked_rem(element).unwrap_or(entry.bytes);
        return Err(wrong(
            section,
            "holds a part of an element, bytes",
            entry.bytes,
            whole,
        ));
    }
    Ok(())
}

fn check_zeros(section: Section, padding: &[u8]) -> Result<(), DecodeError> {
    match padding.iter().find(|&&byte| byte != 0) {
        Some(&byte) => Err(wrong(
            section,
            "has a padding byte that is not zero",
            byte,
            0u64,
        )),
        None => Ok(()),
    }
}

fn section_of<'a>(sections: &[(Section, &'a [u8])], section: Section) -> Option<&'a [u8]> {
    sections
        .iter()
        .find(|(s, _)| *s == section)
        .map(|(_, bytes)| *bytes)
}

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

fn read_plan(sections: &[(Section, &[u8])]) -> Result<PoolPlan, DecodeError> {
    let shapes: Vec<Shape> = read(sections, Section::Shape);
    let &[shape] = shapes.as_slice() else {
        return Err(wrong(Section::Shape, "holds shapes", shapes.len(), 1u64));
    };
    if shape.zeros != [0; 3] {
        return Err(wrong(
            Section::Shape,
            "has reserved fields that are not zero",
            1u64,
            0u64,
        ));
    }
    let masks = Mask::ALL.len();
    let mask = *Mask::ALL.get(shape.mask as usize).ok_or_else(|| {
        wrong(
            Section::Shape,
            "names an unknown mask",
            shape.mask,
            masks - 1,
        )
    })?;
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
            o: read(sections, Section::OMoves),
        },
    })
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
fn check_ids(plan: &PoolPlan) -> Result<(), DecodeError> {
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
    plan.exchange
        .kv
        .iter()
        .try_for_each(|m| check_kv_move(plan, m))
        .map_err(contents(Section::KvMoves))?;
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
    let kv: u128 = plan.exchange.kv.iter().map(kv_rows).sum();
    let total = row
        .saturating_mul(rows)
        .saturating_add(activation.saturating_mul(kv));
    check_total("bytes of the pool", total.saturating_mul(2)).map(|_| ())
}
