//! Plan to bytes: each section is one copy.

use xxhash_rust::xxh3::Xxh3Default;

use super::PlanId;
use super::format::{ALIGN, Entry, Header, MAGIC, REQUIRED, Section, Shape, VERSION};
use crate::exchange::{KvFetch, KvRoute};
use crate::mask::Mask;
use crate::plan::PoolPlan;

/// Bytes of `plan` without provenance.
#[must_use]
pub fn encode(plan: &PoolPlan) -> Vec<u8> {
    encode_with(plan, "")
}

/// Bytes of `plan` with a note on where it comes from; the note does not change the plan id.
#[must_use]
pub fn encode_with(plan: &PoolPlan, provenance: &str) -> Vec<u8> {
    let shape = shape_of(plan);
    let mut sections = sections_of(plan, &shape);
    if !provenance.is_empty() {
        let place = Section::ALWAYS.len();
        sections.insert(place, (Section::Provenance, provenance.as_bytes()));
    }
    let mut offset =
        (size_of::<Header>() + sections.len() * size_of::<Entry>()).next_multiple_of(ALIGN);
    let mut entries = Vec::with_capacity(sections.len());
    for &(section, bytes) in &sections {
        entries.push(Entry {
            id: section as u32,
            flags: if section == Section::Provenance {
                0
            } else {
                REQUIRED
            },
            offset: offset as u64,
            bytes: bytes.len() as u64,
            element_bytes: section.element_bytes(),
            zero: 0,
        });
        offset = (offset + bytes.len()).next_multiple_of(ALIGN);
    }
    let mut header = Header {
        magic: MAGIC,
        version: VERSION,
        sections: sections.len() as u32,
        bytes: offset as u64,
        checksum: 0,
        plan_id: digest(&sections).0,
        zeros: [0; 16],
    };
    header.checksum = checksum(
        header,
        bytemuck::cast_slice(&entries),
        &[provenance.as_bytes()],
    );

    let mut out = Vec::with_capacity(offset);
    out.extend_from_slice(bytemuck::bytes_of(&header));
    out.extend_from_slice(bytemuck::cast_slice(&entries));
    for (entry, (_, bytes)) in entries.iter().zip(&sections) {
        out.resize(entry.offset as usize, 0);
        out.extend_from_slice(bytes);
    }
    out.resize(offset, 0);
    out
}

pub(super) fn id_of(plan: &PoolPlan) -> PlanId {
    digest(&sections_of(plan, &shape_of(plan)))
}

/// XXH3-128 over (id, length, bytes) of every section but provenance, in file order.
pub(super) fn digest(sections: &[(Section, &[u8])]) -> PlanId {
    let mut hasher = Xxh3Default::new();
    for &(section, bytes) in sections {
        if section != Section::Provenance {
            hasher.update(&(section as u32).to_le_bytes());
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        }
    }
    PlanId(hasher.digest128().to_le_bytes())
}

/// XXH3-64 over the parts that the plan id leaves out.
pub(super) fn checksum(header: Header, table: &[u8], optional: &[&[u8]]) -> u64 {
    let header = Header {
        checksum: 0,
        ..header
    };
    let mut hasher = Xxh3Default::new();
    hasher.update(bytemuck::bytes_of(&header));
    hasher.update(table);
    for bytes in optional {
        hasher.update(bytes);
    }
    hasher.digest()
}

fn shape_of(plan: &PoolPlan) -> Shape {
    let PoolPlan {
        layout,
        heads,
        bytes,
        ..
    } = plan;
    let (mask, mask_numbers) = mask_words(plan.mask);
    Shape {
        seq_tokens: layout.seq_tokens(),
        slots: layout.slots(),
        ranks: layout.ranks(),
        tensor: layout.tensor(),
        q_heads: heads.q_heads(),
        kv_heads: heads.kv_heads(),
        dim_qk: heads.dim_qk(),
        dim_v: heads.dim_v(),
        shards: heads.shards(),
        chunks: heads.chunks(),
        mask,
        activation_bytes: bytes.activation,
        statistic_bytes: bytes.statistic,
        kv_fetch: match plan.kv_fetch {
            KvFetch::Whole => 0,
            KvFetch::Range => 1,
        },
        mask_numbers,
        gpus_per_node: match plan.kv_route {
            KvRoute::Direct => 0,
            KvRoute::Node(topology) => topology.gpus_per_node(),
        },
        zeros: [0; 2],
    }
}

/// Code of a mask and its numbers; the other way round in `contents`.
const fn mask_words(mask: Mask) -> (u32, [u32; 3]) {
    match mask {
        Mask::Causal => (0, [0; 3]),
        Mask::Full => (1, [0; 3]),
        Mask::Offset { offset } => (2, [offset, 0, 0]),
        Mask::Window { window, sinks } => (3, [window, sinks, 0]),
        Mask::TwoSided { left, right } => (4, [left, right, 0]),
        Mask::Chunked { chunk } => (5, [chunk, 0, 0]),
        Mask::Block {
            block,
            local,
            sinks,
        } => (6, [block, local, sinks]),
        Mask::Prefix { prefix } => (7, [prefix, 0, 0]),
        Mask::Keys { start, end } => (8, [start, end, 0]),
    }
}

/// All but provenance, in file order.
fn sections_of<'a>(plan: &'a PoolPlan, shape: &'a Shape) -> Vec<(Section, &'a [u8])> {
    use bytemuck::{bytes_of, cast_slice};
    let mut sections = vec![
        (Section::Shape, bytes_of(shape)),
        (Section::Sequences, cast_slice(plan.lengths.first())),
        (Section::Samples, cast_slice(plan.lengths.lengths())),
        (Section::Slots, cast_slice(plan.layout.first())),
        (Section::Fragments, cast_slice(plan.layout.all_fragments())),
        (Section::QHeads, cast_slice(&plan.q_chunks)),
        (Section::KvHeads, cast_slice(&plan.kv_chunks)),
        (Section::Tiles, cast_slice(&plan.tiles)),
        (Section::Workers, cast_slice(&plan.workers)),
        (Section::QMoves, cast_slice(&plan.exchange.q)),
        (Section::KvMoves, cast_slice(&plan.exchange.kv)),
        (Section::OMoves, cast_slice(&plan.exchange.o)),
    ];
    // Absent where it says nothing, so that direct plans are what readers without routes know.
    if plan.kv_route != KvRoute::Direct || !plan.exchange.forward.is_empty() {
        sections.push((Section::Forwards, cast_slice(&plan.exchange.forward)));
    }
    if plan.lengths.has_parents() {
        sections.push((Section::Parents, cast_slice(plan.lengths.parents())));
    }
    sections
}
