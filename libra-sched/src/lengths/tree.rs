//! Samples that continue others of their sequence: prefixes that several samples share.
//!
//! A sample with a parent reads all tokens of its parent, of the parent's parent and so on, and its
//! own causally. Flattened, m answers to a question of p tokens hold the question m times; as a tree
//! it lies there once, and (m − 1)·T(p) pairs are not computed.

use std::collections::BTreeSet;
use std::ops::Range;

use super::PackedLengths;
use crate::error::Error;
use crate::ids::SampleId;
use crate::mask::{Mask, SparseAttention};

/// No parent.
pub(crate) const ROOT: u32 = u32::MAX;

/// Parents of samples; empty where no sample has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    /// Parent of each sample, or [`ROOT`].
    parents: Vec<u32>,
    /// Tokens of all ancestors of each sample.
    above: Vec<u32>,
}

impl PackedLengths {
    /// These lengths with a parent for every sample that continues another, samples counted over all
    /// sequences. Only causal attention reads parents; other masks are refused where they would.
    ///
    /// # Errors
    /// Not one entry a sample, or a parent that is no earlier sample of the same sequence.
    ///
    /// ```
    /// use libra_sched::{Mask, PackedLengths, Proxy, SampleId};
    /// // A question of 5 tokens and two answers of 3: 15 + 2 · (5·3 + 6) pairs.
    /// let parents = [None, Some(SampleId(0)), Some(SampleId(0))];
    /// let packed = PackedLengths::new(12, [vec![5u64, 3, 3]])?.with_parents(&parents)?;
    /// assert_eq!(packed.work(Proxy::Pairs(Mask::Causal))?, [57]);
    /// # Ok::<(), libra_sched::Error>(())
    /// ```
    pub fn with_parents(mut self, parents: &[Option<SampleId>]) -> Result<Self, Error> {
        if parents.len() != self.samples() {
            return Err(Error::Mismatch {
                name: "number of samples",
                left: parents.len() as u64,
                left_of: "parents",
                right: self.samples() as u64,
                right_of: "lengths",
            });
        }
        self.tree = Tree::default();
        if parents.iter().all(Option::is_none) {
            return Ok(self);
        }
        let mut tree = Tree {
            parents: Vec::with_capacity(parents.len()),
            above: Vec::with_capacity(parents.len()),
        };
        for sequence in 0..self.sequences() {
            let samples = self.samples_of(sequence);
            for sample in samples.clone() {
                // Ancestors are distinct samples of one sequence, so their tokens fit it.
                let (parent, above) = match parents[sample] {
                    None => (ROOT, 0),
                    Some(parent) if (samples.start..sample).contains(&parent.index()) => {
                        let tokens = self.lengths[parent.index()];
                        (parent.0, tree.above[parent.index()] + tokens)
                    }
                    Some(parent) => {
                        return Err(Error::Parent {
                            sample: sample as u64,
                            parent: parent.0.into(),
                            first: samples.start as u64,
                        });
                    }
                };
                tree.parents.push(parent);
                tree.above.push(above);
            }
        }
        self.tree = tree;
        Ok(self)
    }

    /// Whether some sample has a parent.
    #[must_use]
    pub const fn has_parents(&self) -> bool {
        !self.tree.parents.is_empty()
    }

    /// The sample that `sample` continues.
    #[must_use]
    pub fn parent(&self, sample: SampleId) -> Option<SampleId> {
        let parent = *self.tree.parents.get(sample.index())?;
        (parent != ROOT).then_some(SampleId(parent))
    }

    /// Ancestors of `sample`, its parent first.
    pub fn ancestors(&self, sample: SampleId) -> impl Iterator<Item = SampleId> + '_ {
        std::iter::successors(self.parent(sample), |&above| self.parent(above))
    }

    /// Ancestors of `samples`, consecutive ones of one sequence, beside these themselves: rising.
    pub(crate) fn ancestors_of(&self, samples: Range<usize>) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        if self.has_parents() {
            for sample in samples.clone() {
                let chain = self.ancestors(SampleId::new(sample)).map(SampleId::index);
                // What lies above one that was found was found with it.
                for above in chain.filter(|&above| above < samples.start) {
                    if !found.insert(above) {
                        break;
                    }
                }
            }
        }
        found
    }

    /// Pairs of the queries of `sequence` with keys of their samples' ancestors.
    pub(super) fn pairs_above(&self, sequence: usize) -> u64 {
        let pairs = |s: usize| u64::from(self.above(s)) * u64::from(self.lengths[s]);
        self.samples_of(sequence).map(pairs).sum()
    }

    /// Tokens of all ancestors of sample `sample`.
    pub(crate) fn above(&self, sample: usize) -> u32 {
        self.tree.above.get(sample).copied().unwrap_or(0)
    }

    /// Parent of every sample, or [`ROOT`]; empty where no sample has one.
    pub(crate) fn parents(&self) -> &[u32] {
        &self.tree.parents
    }

    /// Parents are read under the causal mask alone.
    pub(crate) fn check_mask(&self, mask: Mask) -> Result<(), Error> {
        if self.has_parents() && mask != Mask::Causal {
            return Err(Error::Combination {
                what: "mask",
                value: mask.to_string(),
                with: "parents of samples",
                legal: "causal",
            });
        }
        Ok(())
    }

    /// Sparse attention has no parents.
    pub(super) fn check_sparse(&self, sparse: SparseAttention) -> Result<(), Error> {
        if self.has_parents() {
            return Err(Error::Combination {
                what: "sparse attention",
                value: sparse.to_string(),
                with: "parents of samples",
                legal: "squares, causal pairs",
            });
        }
        Ok(())
    }
}
