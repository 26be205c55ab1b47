//! Which worker holds which tokens and heads before attention runs.
//!
//! Every sequence of a pool (a *slot*) has CP workers of its own, a grid of context ranks × tensor
//! ranks. A context rank holds token **fragments**; a tensor rank holds a range of heads of them.
//! Every shard lies within one tensor rank, so each (token, shard) has one home.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, check_divides, check_limit, check_positive};
use crate::heads::HeadSplit;
use crate::ids::WorkerId;
use crate::lengths::{MAX_COUNT, MAX_WORKERS};

/// Consecutive tokens of one slot held by one context rank.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct Fragment {
    /// First token within the sequence.
    pub start: u32,
    /// One past the last token.
    pub end: u32,
    /// Context rank of the slot that holds it.
    pub rank: u32,
}

impl Fragment {
    /// Tokens of the fragment.
    #[must_use]
    pub const fn tokens(&self) -> Range<u32> {
        self.start..self.end
    }
}

/// A regular way to lay tokens out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LayoutKind {
    /// Rank `i` holds the `i`-th of CP equal pieces.
    Contiguous,
    /// Rank `i` holds pieces `i` and `2·CP − 1 − i` of 2·CP equal pieces.
    Zigzag,
}

impl fmt::Display for LayoutKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Contiguous => "contiguous",
            Self::Zigzag => "zigzag",
        })
    }
}

impl FromStr for LayoutKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "contiguous" => Ok(Self::Contiguous),
            "zigzag" => Ok(Self::Zigzag),
            _ => Err(Error::UnknownName {
                what: "layout",
                value: text.to_owned(),
                legal: "contiguous, zigzag",
            }),
        }
    }
}

/// Home of every token and head of a pool.
///
/// ```
/// use libra_sched::{LayoutKind, TokenLayout};
/// let layout = TokenLayout::new(LayoutKind::Zigzag, 2, 12, 2)?;
/// let ranks: Vec<_> = layout.fragments(0).iter().map(|f| (f.start, f.end, f.rank)).collect();
/// assert_eq!(ranks, [(0, 3, 0), (3, 6, 1), (6, 9, 1), (9, 12, 0)]);
/// assert_eq!(layout.workers(), 4);
/// # Ok::<(), libra_sched::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenLayout {
    seq_tokens: u32,
    ranks: u32,
    tensor: u32,
    /// First fragment of each slot, and the fragment count.
    first: Vec<u32>,
    fragments: Vec<Fragment>,
}

impl TokenLayout {
    /// `slots` sequences of `seq_tokens` tokens, each over `cp` workers, one head range each.
    ///
    /// Pieces differ by at most one token where the count does not divide.
    ///
    /// # Errors
    /// A count of 0, more than [`MAX_COUNT`] fragments or [`MAX_WORKERS`] workers.
    pub fn new(kind: LayoutKind, slots: u32, seq_tokens: u32, cp: u32) -> Result<Self, Error> {
        Self::grid(kind, slots, seq_tokens, cp, 1)
    }

    /// As [`TokenLayout::new`], `ranks` context ranks × `tensor` tensor ranks a slot.
    ///
    /// # Errors
    /// A count of 0, more than [`MAX_COUNT`] fragments or [`MAX_WORKERS`] workers.
    pub fn grid(
        kind: LayoutKind,
        slots: u32,
        seq_tokens: u32,
        ranks: u32,
        tensor: u32,
    ) -> Result<Self, Error> {
        check_positive("number of sequences", slots.into())?;
        check_counts(slots, seq_tokens, ranks, tensor)?;
        let one: Vec<Fragment> = match kind {
            LayoutKind::Contiguous => pieces(seq_tokens, ranks, |piece| piece),
            LayoutKind::Zigzag => pieces(seq_tokens, 2 * ranks, |piece| {
                piece.min(2 * ranks - 1 - piece)
            }),
        };
        check_limit(
            "number of fragments",
            one.len() as u128 * u128::from(slots),
            MAX_COUNT.into(),
        )?;
        Self::explicit(seq_tokens, ranks, tensor, vec![one; slots as usize])
    }

    /// Any fragments: one list a slot, in token order, covering `0..seq_tokens` exactly.
    ///
    /// # Errors
    /// A gap, an overlap, an empty fragment, a rank that does not exist, counts as in
    /// [`TokenLayout::grid`].
    pub fn explicit(
        seq_tokens: u32,
        ranks: u32,
        tensor: u32,
        slots: Vec<Vec<Fragment>>,
    ) -> Result<Self, Error> {
        check_positive("number of sequences", slots.len() as u64)?;
        check_limit("number of sequences", slots.len() as u128, MAX_COUNT.into())?;
        let count: u128 = slots.iter().map(|f| f.len() as u128).sum();
        check_limit("number of fragments", count, MAX_COUNT.into())?;
        let mut first = vec![0];
        for fragments in &slots {
            first.push(first[first.len() - 1] + fragments.len() as u32);
        }
        Self::from_parts(seq_tokens, ranks, tensor, first, slots.concat())
    }

    /// From the arrays of a plan file: first fragment of every slot with the fragment count at the
    /// end, and all fragments.
    pub(crate) fn from_parts(
        seq_tokens: u32,
        ranks: u32,
        tensor: u32,
        first: Vec<u32>,
        fragments: Vec<Fragment>,
    ) -> Result<Self, Error> {
        let slots = first.len().saturating_sub(1);
        check_positive("number of sequences", slots as u64)?;
        check_counts(slots as u32, seq_tokens, ranks, tensor)?;
        let last = first[slots] as usize;
        if first[0] != 0 || !first.is_sorted() || last != fragments.len() {
            let (value, count) = (last as u64, fragments.len() as u64 + 1);
            return Err(Error::OutOfRange {
                name: "first fragment of a slot",
                value,
                count,
            });
        }
        for (slot, edges) in first.windows(2).enumerate() {
            let fragments = &fragments[edges[0] as usize..edges[1] as usize];
            check_cover(slot, seq_tokens, ranks, fragments)?;
        }
        Ok(Self {
            seq_tokens,
            ranks,
            tensor,
            first,
            fragments,
        })
    }

    /// Slots, P.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// Tokens of one sequence, L.
    #[must_use]
    pub const fn seq_tokens(&self) -> u32 {
        self.seq_tokens
    }

    /// Context ranks of a slot.
    #[must_use]
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Tensor ranks of a slot: each holds an equal head range.
    #[must_use]
    pub const fn tensor(&self) -> u32 {
        self.tensor
    }

    /// Workers of one slot, CP.
    #[must_use]
    pub const fn cp(&self) -> u32 {
        self.ranks * self.tensor
    }

    /// Workers of the pool, W = P·CP.
    #[must_use]
    pub const fn workers(&self) -> u32 {
        self.slots() * self.cp()
    }

    /// Fragments of `slot` in token order.
    #[must_use]
    pub fn fragments(&self, slot: u32) -> &[Fragment] {
        let slot = slot as usize;
        &self.fragments[self.first[slot] as usize..self.first[slot + 1] as usize]
    }

    /// Fragments of every slot, slot by slot.
    pub(crate) fn all_fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// First fragment of every slot, and the number of fragments.
    pub(crate) fn first(&self) -> &[u32] {
        &self.first
    }

    /// Tensor rank that holds query head `head`.
    #[must_use]
    pub const fn tensor_of_q(&self, heads: &HeadSplit, head: u32) -> u32 {
        head / (heads.q_heads() / self.tensor)
    }

    /// Tensor rank that holds KV head `head`.
    #[must_use]
    pub const fn tensor_of_kv(&self, heads: &HeadSplit, head: u32) -> u32 {
        head / (heads.kv_heads() / self.tensor)
    }

    /// Query heads that tensor rank `tensor` holds.
    #[must_use]
    pub const fn q_heads_of(&self, heads: &HeadSplit, tensor: u32) -> Range<u32> {
        let width = heads.q_heads() / self.tensor;
        tensor * width..(tensor + 1) * width
    }

    /// KV heads that tensor rank `tensor` holds.
    #[must_use]
    pub const fn kv_heads_of(&self, heads: &HeadSplit, tensor: u32) -> Range<u32> {
        let width = heads.kv_heads() / self.tensor;
        tensor * width..(tensor + 1) * width
    }

    /// Worker at a place of the grid.
    #[must_use]
    pub const fn worker(&self, slot: u32, rank: u32, tensor: u32) -> WorkerId {
        WorkerId((slot * self.ranks + rank) * self.tensor + tensor)
    }

    /// Slot, context rank and tensor rank of `worker`.
    #[must_use]
    pub const fn place_of(&self, worker: WorkerId) -> (u32, u32, u32) {
        let tensor = worker.0 % self.tensor;
        let rank = worker.0 / self.tensor % self.ranks;
        (worker.0 / self.cp(), rank, tensor)
    }

    /// Tokens of its slot that context rank `rank` holds: its rows, in this order.
    pub fn held(&self, slot: u32, rank: u32) -> impl Iterator<Item = Range<u32>> + '_ {
        self.fragments(slot)
            .iter()
            .filter(move |f| f.rank == rank)
            .map(Fragment::tokens)
    }

    /// The layout must fit the heads: every shard and every KV span within one tensor rank.
    ///
    /// # Errors
    /// Unless the tensor ranks divide both H and h_kv.
    pub fn check_heads(&self, heads: &HeadSplit) -> Result<(), Error> {
        check_divides(
            "H",
            heads.shards().into(),
            "tensor ranks",
            self.tensor.into(),
        )?;
        check_divides(
            "h_kv",
            heads.kv_heads().into(),
            "tensor ranks",
            self.tensor.into(),
        )
    }
}

fn check_counts(slots: u32, seq_tokens: u32, ranks: u32, tensor: u32) -> Result<(), Error> {
    check_positive("seq_tokens", seq_tokens.into())?;
    check_limit(
        "seq_tokens",
        seq_tokens.into(),
        crate::lengths::MAX_SEQ_TOKENS.into(),
    )?;
    check_positive("context ranks", ranks.into())?;
    check_positive("tensor ranks", tensor.into())?;
    let workers = u128::from(slots) * u128::from(ranks) * u128::from(tensor);
    check_limit("workers of the pool", workers, MAX_WORKERS.into())
}

fn check_cover(slot: usize, seq_tokens: u32, ranks: u32, of: &[Fragment]) -> Result<(), Error> {
    let mut expected = 0;
    for (fragment, f) in of.iter().enumerate() {
        if f.start != expected || f.end <= f.start || f.end > seq_tokens {
            let (start, end) = (f.start, f.end);
            return Err(Error::FragmentGap {
                slot,
                fragment,
                start,
                end,
                expected,
                seq_tokens,
            });
        }
        if f.rank >= ranks {
            let (value, count) = (f.rank.into(), ranks.into());
            return Err(Error::OutOfRange {
                name: "context rank",
                value,
                count,
            });
        }
        expected = f.end;
    }
    if expected != seq_tokens {
        let (fragment, start, end) = (of.len(), expected, seq_tokens);
        return Err(Error::FragmentGap {
            slot,
            fragment,
            start,
            end,
            expected,
            seq_tokens,
        });
    }
    Ok(())
}

/// `count` near-equal pieces of `tokens`; empty pieces are left out.
fn pieces(tokens: u32, count: u32, rank_of: impl Fn(u32) -> u32) -> Vec<Fragment> {
    let edge = |piece: u32| (u64::from(tokens) * u64::from(piece) / u64::from(count)) as u32;
    (0..count)
        .map(|piece| Fragment {
            start: edge(piece),
            end: edge(piece + 1),
            rank: rank_of(piece),
        })
        .filter(|f| f.start < f.end)
        .collect()
}
