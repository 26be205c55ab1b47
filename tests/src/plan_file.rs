//! Plan files taken apart and put together again by the byte table of the format alone, so that
//! tests can write files that the library never would, with digests that hold.

// A test of another package includes this file by its path and uses a part of it.
#![allow(dead_code, unreachable_pub)]

use xxhash_rust::xxh3::Xxh3Default;

/// Bytes of the header.
pub const HEADER: usize = 64;
/// Bytes of one entry of the section table.
pub const ENTRY: usize = 32;

/// Offsets of header fields.
pub mod at {
    /// Format version, u32.
    pub const VERSION: usize = 8;
    /// Number of sections, u32.
    pub const SECTIONS: usize = 12;
    /// Length of the file, u64.
    pub const BYTES: usize = 16;
    /// Checksum, u64.
    pub const CHECKSUM: usize = 24;
    /// Plan id, 16 bytes.
    pub const PLAN_ID: usize = 32;
}

/// Ids of sections.
pub mod section {
    /// Scalars.
    pub const SHAPE: u32 = 1;
    /// First sample of every sequence.
    pub const SEQUENCES: u32 = 2;
    /// Sample lengths.
    pub const SAMPLES: u32 = 3;
    /// First fragment of every slot.
    pub const SLOTS: u32 = 4;
    /// Fragments.
    pub const FRAGMENTS: u32 = 5;
    /// Chunk of every query head.
    pub const Q_HEADS: u32 = 6;
    /// Tiles.
    pub const TILES: u32 = 8;
    /// Worker of every tile.
    pub const WORKERS: u32 = 9;
    /// KV moves.
    pub const KV_MOVES: u32 = 11;
    /// Provenance.
    pub const PROVENANCE: u32 = 13;
    /// Forwards, in files that have a route through nodes.
    pub const FORWARDS: u32 = 14;
    /// Parent of every sample.
    pub const PARENTS: u32 = 15;
}

/// One section with its table entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Id of the section.
    pub id: u32,
    /// 1 where a reader must know the section.
    pub flags: u32,
    /// Bytes of one element.
    pub element_bytes: u32,
    /// Contents.
    pub data: Vec<u8>,
}

/// A plan file in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFile {
    /// Format version.
    pub version: u32,
    /// Sections in file order.
    pub sections: Vec<Section>,
}

impl PlanFile {
    /// Parts of a right file.
    ///
    /// # Panics
    /// If the table points beyond `bytes`.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let entries = u32_at(bytes, at::SECTIONS) as usize;
        let section = |index: usize| {
            let entry = &bytes[HEADER + index * ENTRY..][..ENTRY];
            let (offset, length) = (u64_at(entry, 8) as usize, u64_at(entry, 16) as usize);
            Section {
                id: u32_at(entry, 0),
                flags: u32_at(entry, 4),
                element_bytes: u32_at(entry, 24),
                data: bytes[offset..offset + length].to_vec(),
            }
        };
        Self {
            version: u32_at(bytes, at::VERSION),
            sections: (0..entries).map(section).collect(),
        }
    }

    /// The file, with its digests.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0; HEADER];
        out[..8].copy_from_slice(b"LIBRAPLN");
        put_u32(&mut out, at::VERSION, self.version);
        put_u32(&mut out, at::SECTIONS, self.sections.len() as u32);
        let mut offset = aligned(HEADER + ENTRY * self.sections.len());
        for section in &self.sections {
            out.extend(section.id.to_le_bytes());
            out.extend(section.flags.to_le_bytes());
            out.extend((offset as u64).to_le_bytes());
            out.extend((section.data.len() as u64).to_le_bytes());
            out.extend(section.element_bytes.to_le_bytes());
            out.extend([0; 4]);
            offset = aligned(offset + section.data.len());
        }
        for section in &self.sections {
            out.resize(aligned(out.len()), 0);
            out.extend(&section.data);
        }
        out.resize(aligned(out.len()), 0);
        let length = out.len() as u64;
        put_u64(&mut out, at::BYTES, length);
        seal(&mut out);
        out
    }

    /// The section of `id`.
    ///
    /// # Panics
    /// If there is none.
    pub fn section(&mut self, id: u32) -> &mut Section {
        let found = self.sections.iter_mut().find(|section| section.id == id);
        found.expect("the file has the section")
    }
}

/// Writes the digests that `bytes` ought to have, as far as its table makes sense.
pub fn seal(bytes: &mut [u8]) {
    if bytes.len() < HEADER {
        return;
    }
    let count = u32_at(bytes, at::SECTIONS) as usize;
    let table_end = HEADER.saturating_add(count.saturating_mul(ENTRY));
    if table_end > bytes.len() {
        return;
    }
    let mut plan = Xxh3Default::new();
    let mut optional = Vec::new();
    for entry in bytes[HEADER..table_end].chunks(ENTRY) {
        let (id, flags, offset, length) = (
            u32_at(entry, 0),
            u32_at(entry, 4),
            u64_at(entry, 8),
            u64_at(entry, 16),
        );
        let end = offset.saturating_add(length).min(bytes.len() as u64) as usize;
        let data = bytes.get(offset as usize..end).unwrap_or(&[]);
        if flags & 1 == 1 {
            plan.update(&id.to_le_bytes());
            plan.update(&length.to_le_bytes());
            plan.update(data);
        } else {
            optional.extend_from_slice(data);
        }
    }
    let plan_id = plan.digest128().to_le_bytes();
    bytes[at::PLAN_ID..at::PLAN_ID + 16].copy_from_slice(&plan_id);
    put_u64(bytes, at::CHECKSUM, 0);
    let mut checksum = Xxh3Default::new();
    checksum.update(&bytes[..table_end]);
    checksum.update(&optional);
    let checksum = checksum.digest();
    put_u64(bytes, at::CHECKSUM, checksum);
}

/// The u32 at `offset`.
#[must_use]
pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let four = bytes[offset..offset + 4].try_into();
    u32::from_le_bytes(four.expect("four bytes were cut"))
}

/// The u64 at `offset`.
#[must_use]
pub fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let eight = bytes[offset..offset + 8].try_into();
    u64::from_le_bytes(eight.expect("eight bytes were cut"))
}

/// Overwrites the u32 at `offset`.
pub fn put_u32(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}

/// Overwrites the u64 at `offset`.
pub fn put_u64(bytes: &mut [u8], offset: usize, value: u64) {
    bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
}

fn aligned(offset: usize) -> usize {
    offset.next_multiple_of(16)
}
