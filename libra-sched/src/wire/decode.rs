//! Bytes to sections: header, table and digests, every length checked before it is used.

use super::contents::{check_ids, read_plan};
use super::format::{ALIGN, Entry, Header, MAGIC, REQUIRED, Section, VERSION};
use super::{DecodeError, PlanId, encode};
use crate::plan::PoolPlan;

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

pub(super) fn wrong(
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
    let mut always = Section::ALWAYS.iter().copied();
    for entry in table {
        let known = always.next().or_else(|| Section::sometimes(entry.id));
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
    if let Some(missing) = always.next() {
        return Err(wrong(
            missing,
            "is missing, sections",
            table.len(),
            Section::ALWAYS.len(),
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
        let expected = match known {
            Some(section) if entry.id != section as u32 => section as u32,
            _ => last_id.saturating_add(1),
        };
        if entry.id > Section::Parents as u32 && entry.flags & REQUIRED != 0 {
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

pub(super) fn section_of<'a>(
    sections: &[(Section, &'a [u8])],
    section: Section,
) -> Option<&'a [u8]> {
    sections
        .iter()
        .find(|(s, _)| *s == section)
        .map(|(_, bytes)| *bytes)
}
