//! Sample lengths of packed sequences, and the shape of the window they fill.

mod tree;

use std::ops::Range;

use crate::error::{Error, check_divides, check_limit, check_positive};
use crate::ids::{SampleId, SequenceId};
use crate::mask::{Mask, SparseAttention};

pub(crate) use tree::ROOT;
use tree::Tree;

/// Largest number of tokens of one packed sequence.
pub const MAX_SEQ_TOKENS: u32 = 1 << 30;
/// Largest number of workers of one pool: what reads a plan keeps a few words for each.
pub const MAX_WORKERS: u32 = 1 << 20;
/// Largest number of samples, sequences or tiles that one call handles.
pub const MAX_COUNT: u32 = 1 << 28;

/// The parallel shape of one optimizer step, checked once.
///
/// ```
/// let shape = libra_sched::WindowShape::new(262_144, 128, 16, 8, 8)?;
/// assert_eq!((shape.pools(), shape.ga(), shape.workers()), (16, 8, 64));
/// # Ok::<(), libra_sched::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowShape {
    seq_tokens: u32,
    gbs: u32,
    dp: u32,
    cp: u32,
    pool_size: u32,
}

impl WindowShape {
    /// `gbs` = D packed sequences of `seq_tokens` = L tokens over `dp` replicas of `cp` workers,
    /// in pools of `pool_size` = P sequences.
    ///
    /// # Errors
    /// Unless `DP | GBS` and `P | DP`, all at least 1.
    pub fn new(seq_tokens: u64, gbs: u32, dp: u32, cp: u32, pool_size: u32) -> Result<Self, Error> {
        check_positive("seq_tokens", seq_tokens)?;
        check_limit("seq_tokens", seq_tokens.into(), MAX_SEQ_TOKENS.into())?;
        check_divides("GBS", gbs.into(), "DP", dp.into())?;
        check_divides("DP", dp.into(), "P", pool_size.into())?;
        check_positive("CP", cp.into())?;
        let workers = u128::from(pool_size) * u128::from(cp);
        check_limit("P*CP workers", workers, MAX_WORKERS.into())?;
        Ok(Self {
            seq_tokens: seq_tokens as u32,
            gbs,
            dp,
            cp,
            pool_size,
        })
    }

    /// Tokens of one packed sequence, L.
    #[must_use]
    pub const fn seq_tokens(&self) -> u32 {
        self.seq_tokens
    }

    /// Packed sequences of one step, D = GBS.
    #[must_use]
    pub const fn gbs(&self) -> u32 {
        self.gbs
    }

    /// Data-parallel replicas, DP.
    #[must_use]
    pub const fn dp(&self) -> u32 {
        self.dp
    }

    /// Workers that share one packed sequence, CP.
    #[must_use]
    pub const fn cp(&self) -> u32 {
        self.cp
    }

    /// Packed sequences of one pool, P.
    #[must_use]
    pub const fn pool_size(&self) -> u32 {
        self.pool_size
    }

    /// Logical pools of one step, K = GBS / P.
    #[must_use]
    pub const fn pools(&self) -> u32 {
        self.gbs / self.pool_size
    }

    /// Gradient-accumulation indices, GA = GBS / DP.
    #[must_use]
    pub const fn ga(&self) -> u32 {
        self.gbs / self.dp
    }

    /// Pools that run side by side at one GA index, DP / P.
    #[must_use]
    pub const fn pools_per_ga(&self) -> u32 {
        self.dp / self.pool_size
    }

    /// GA index at which pool `pool` runs in paper order.
    #[must_use]
    pub const fn ga_of_pool(&self, pool: u32) -> u32 {
        pool / self.pools_per_ga()
    }

    /// Workers of one pool, W = P·CP.
    #[must_use]
    pub const fn workers(&self) -> u32 {
        self.pool_size * self.cp
    }
}

/// How heavy a packed sequence is for VRSP (eq. 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Proxy {
    /// Sum of squared sample lengths: the paper's proxy.
    SumSquares,
    /// Exact query–key pairs under a mask.
    Pairs(Mask),
    /// Exact pairs of sparse attention, which weighs sequences and plans nothing beyond.
    Sparse(SparseAttention),
}

/// Sample lengths of a list of packed sequences.
///
/// Samples lie back to back from token 0; what is left of `seq_tokens` is padding, which belongs
/// to no sample and carries no work. A sequence may be empty (all padding).
///
/// ```
/// use libra_sched::{Mask, PackedLengths, Proxy};
/// let packed = PackedLengths::new(12, [vec![8u64, 4], vec![3, 3, 3]])?;
/// assert_eq!(packed.sequences(), 2);
/// assert_eq!(packed.work(Proxy::Pairs(Mask::Causal))?, [36 + 10, 6 + 6 + 6]);
/// # Ok::<(), libra_sched::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedLengths {
    seq_tokens: u32,
    /// First sample of each sequence, and the sample count at the end.
    first: Vec<u32>,
    lengths: Vec<u32>,
    /// First token of each sample within its sequence.
    starts: Vec<u32>,
    /// Which samples continue others.
    tree: Tree,
}

impl PackedLengths {
    /// Sequences of sample lengths in tokens, each sequence at most `seq_tokens`.
    ///
    /// # Errors
    /// No sequence, an empty sample, a sequence over `seq_tokens`, counts beyond [`MAX_COUNT`].
    pub fn new<S>(seq_tokens: u64, sequences: impl IntoIterator<Item = S>) -> Result<Self, Error>
    where
        S: IntoIterator,
        S::Item: Into<u64>,
    {
        Self::with_samples(0, seq_tokens, sequences)
    }

    /// As [`PackedLengths::new`], with room for `samples` samples.
    fn with_samples<S>(
        samples: usize,
        seq_tokens: u64,
        sequences: impl IntoIterator<Item = S>,
    ) -> Result<Self, Error>
    where
        S: IntoIterator,
        S::Item: Into<u64>,
    {
        check_positive("seq_tokens", seq_tokens)?;
        check_limit("seq_tokens", seq_tokens.into(), MAX_SEQ_TOKENS.into())?;
        let seq_tokens = seq_tokens as u32;
        let mut packed = Self {
            seq_tokens,
            first: vec![0],
            lengths: Vec::with_capacity(samples),
            starts: Vec::with_capacity(samples),
            tree: Tree::default(),
        };
        for (sequence, samples) in sequences.into_iter().enumerate() {
            packed.push(sequence, samples)?;
        }
        check_positive("number of sequences", packed.sequences() as u64)?;
        Ok(packed)
    }

    fn push<S>(&mut self, sequence: usize, samples: S) -> Result<(), Error>
    where
        S: IntoIterator,
        S::Item: Into<u64>,
    {
        let mut tokens = 0u128;
        for (sample, length) in samples.into_iter().enumerate() {
            let length: u64 = length.into();
            if length == 0 {
                return Err(Error::EmptySample { sequence, sample });
            }
            if length > self.seq_tokens.into() {
                let seq_tokens = self.seq_tokens;
                return Err(Error::SampleTooLong {
                    sequence,
                    sample,
                    length,
                    seq_tokens,
                });
            }
            let start = tokens;
            tokens += u128::from(length);
            if tokens > u128::from(self.seq_tokens) {
                let seq_tokens = self.seq_tokens;
                return Err(Error::SequenceTooLong {
                    sequence,
                    tokens,
                    seq_tokens,
                });
            }
            self.starts.push(start as u32);
            self.lengths.push(length as u32);
        }
        check_limit(
            "number of samples",
            self.lengths.len() as u128,
            MAX_COUNT.into(),
        )?;
        check_limit(
            "number of sequences",
            self.first.len() as u128,
            MAX_COUNT.into(),
        )?;
        self.first.push(self.lengths.len() as u32);
        Ok(())
    }

    /// From the arrays of a plan file: first sample of every sequence with the sample count at the
    /// end, and all lengths.
    pub(crate) fn from_parts(
        seq_tokens: u32,
        first: &[u32],
        lengths: &[u32],
    ) -> Result<Self, Error> {
        let (samples, last) = (lengths.len() as u64, first.last().copied().unwrap_or(0));
        let rising = first.first() == Some(&0) && first.is_sorted();
        if !rising || u64::from(last) != samples {
            let (value, count) = (last.into(), samples + 1);
            return Err(Error::OutOfRange {
                name: "first sample of a sequence",
                value,
                count,
            });
        }
        let sequences = first
            .windows(2)
            .map(|w| lengths[w[0] as usize..w[1] as usize].iter().copied());
        Self::with_samples(lengths.len(), seq_tokens.into(), sequences)
    }

    /// One sequence a slice of cumulative lengths, as attention kernels take them:
    /// `[0, 5, 9]` is a sample of 5 and one of 4 tokens.
    ///
    /// # Errors
    /// Not starting at 0, not rising, or as [`PackedLengths::new`].
    pub fn from_cu_seqlens(seq_tokens: u64, sequences: &[&[u64]]) -> Result<Self, Error> {
        let mut lists = Vec::with_capacity(sequences.len());
        for cumulative in sequences {
            let mut previous = 0;
            for (index, &value) in cumulative.iter().enumerate() {
                if value < previous || (index == 0 && value != 0) {
                    return Err(Error::CumulativeOrder {
                        index,
                        value,
                        previous,
                    });
                }
                previous = value;
            }
            lists.push(
                cumulative
                    .windows(2)
                    .map(|w| w[1] - w[0])
                    .collect::<Vec<u64>>(),
            );
        }
        Self::new(seq_tokens, lists)
    }

    /// The sequences `members`, in that order.
    ///
    /// # Errors
    /// A member that does not exist.
    pub fn select(&self, members: &[SequenceId]) -> Result<Self, Error> {
        if let Some(bad) = members.iter().find(|m| m.index() >= self.sequences()) {
            let (value, count) = (bad.0.into(), self.sequences() as u64);
            return Err(Error::OutOfRange {
                name: "sequence",
                value,
                count,
            });
        }
        let lists = members
            .iter()
            .map(|m| self.lengths_of(m.index()).iter().copied());
        let selected = Self::new(self.seq_tokens.into(), lists)?;
        if !self.has_parents() {
            return Ok(selected);
        }
        let mut parents = Vec::with_capacity(selected.samples());
        for member in members {
            let samples = self.samples_of(member.index());
            let shift = parents.len();
            parents.extend(samples.clone().map(|sample| {
                let parent = self.parent(SampleId::new(sample))?;
                Some(SampleId::new(parent.index() - samples.start + shift))
            }));
        }
        selected.with_parents(&parents)
    }

    /// Tokens of one packed sequence, L.
    #[must_use]
    pub const fn seq_tokens(&self) -> u32 {
        self.seq_tokens
    }

    /// Number of sequences.
    #[must_use]
    pub const fn sequences(&self) -> usize {
        self.first.len() - 1
    }

    /// Number of samples over all sequences.
    #[must_use]
    pub const fn samples(&self) -> usize {
        self.lengths.len()
    }

    /// Samples of sequence `sequence`, as ids over all sequences.
    #[must_use]
    pub fn samples_of(&self, sequence: usize) -> Range<usize> {
        self.first[sequence] as usize..self.first[sequence + 1] as usize
    }

    /// Sample lengths of `sequence` in tokens.
    #[must_use]
    pub fn lengths_of(&self, sequence: usize) -> &[u32] {
        &self.lengths[self.samples_of(sequence)]
    }

    /// Tokens of `sequence` that belong to a sample; the rest is padding.
    #[must_use]
    pub fn tokens_of(&self, sequence: usize) -> u32 {
        let samples = self.samples_of(sequence);
        if samples.is_empty() {
            0
        } else {
            self.tokens(SampleId::new(samples.end - 1)).end
        }
    }

    /// Length of `sample` in tokens.
    #[must_use]
    pub fn length(&self, sample: SampleId) -> u32 {
        self.lengths[sample.index()]
    }

    /// Tokens of `sample` within its sequence.
    #[must_use]
    pub fn tokens(&self, sample: SampleId) -> Range<u32> {
        let start = self.starts[sample.index()];
        start..start + self.lengths[sample.index()]
    }

    /// First token of every sample within its sequence.
    pub(crate) fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Length of every sample.
    pub(crate) fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// First sample of every sequence, and the number of samples.
    pub(crate) fn first(&self) -> &[u32] {
        &self.first
    }

    /// Weight of every sequence under `proxy`.
    ///
    /// # Errors
    /// If the weights of all sequences together exceed 64 bits, or lengths with parents are weighed
    /// otherwise than by squares or causal pairs.
    pub fn work(&self, proxy: Proxy) -> Result<Vec<u64>, Error> {
        match proxy {
            Proxy::SumSquares => {}
            Proxy::Pairs(mask) => self.check_mask(mask)?,
            Proxy::Sparse(sparse) => self.check_sparse(sparse)?,
        }
        let weigh = |&length: &u32| match proxy {
            Proxy::SumSquares => u64::from(length) * u64::from(length),
            Proxy::Pairs(mask) => mask.cum_pairs(length, length),
            Proxy::Sparse(sparse) => sparse.cum_pairs(length),
        };
        // Squares of a branch: (above + ℓ)² − above².
        let times = if proxy == Proxy::SumSquares { 2 } else { 1 };
        let mut total = 0u128;
        let mut work = Vec::with_capacity(self.sequences());
        for sequence in 0..self.sequences() {
            // A sequence has at most 2^30 tokens, so its squares stay below 2^61.
            let mut sum: u64 = self.lengths_of(sequence).iter().map(weigh).sum();
            if self.has_parents() {
                sum += times * self.pairs_above(sequence);
            }
            total += u128::from(sum);
            work.push(sum);
        }
        check_total("work of the window", total)?;
        Ok(work)
    }
}

/// `total` must fit 64 bits.
pub(crate) fn check_total(name: &'static str, total: u128) -> Result<u64, Error> {
    u64::try_from(total).map_err(|_| Error::Overflow { name, value: total })
}
