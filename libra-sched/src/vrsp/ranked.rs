//! A window's sequences, heaviest first: sorted once, read by every bound and search.
//!
//! A *rank* is a sequence's place in that order, from 0; equal weights keep the order of arrival.
//! O(D log D).

use crate::error::Error;
use crate::lengths::check_total;

/// Sequences by rank, with sums that make any of "the n heaviest" and "the n lightest" one lookup.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranked {
    keys: Vec<u64>,
    pairs: Vec<(u64, u32)>,
    /// Weight of every rank.
    weights: Vec<u64>,
    /// Sequence of every rank.
    ids: Vec<u32>,
    total: u64,
    /// `heaviest[n]`: sum of the n heaviest; empty until [`Self::sum_up`].
    heaviest: Vec<u64>,
}

impl Ranked {
    /// Takes the sequences' `work` in, whatever was held before.
    pub(super) fn read(&mut self, work: &[u64]) -> Result<(), Error> {
        let total = work.iter().map(|&w| u128::from(w)).sum();
        let total = check_total("work of the window", total)?;
        self.weights.clear();
        self.ids.clear();
        // An index and a weight share a word where both fit: one comparison orders (weight, id).
        let bits = usize::BITS - (work.len() - 1).leading_zeros();
        if total.leading_zeros() >= bits {
            let low = (1u64 << bits) - 1;
            // Complemented weights: the smallest key is the heaviest sequence, then the first.
            let most = u64::MAX >> bits;
            let key = |(index, &weight): (u64, &u64)| ((most - weight) << bits) | index;
            self.keys.clear();
            self.keys.extend((0..).zip(work).map(key));
            self.keys.sort_unstable();
            let weight = |key: &u64| most - (key >> bits);
            self.weights.extend(self.keys.iter().map(weight));
            let ids = self.keys.iter().map(|key| (key & low) as u32);
            self.ids.extend(ids);
        } else {
            self.pairs.clear();
            self.pairs.extend(work.iter().copied().zip(0..));
            self.pairs
                .sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
            self.weights
                .extend(self.pairs.iter().map(|&(weight, _)| weight));
            self.ids.extend(self.pairs.iter().map(|&(_, id)| id));
        }
        self.total = total;
        self.heaviest.clear();
        Ok(())
    }

    /// Adds up weights by rank, for [`Self::heaviest`] and what rests on it.
    pub(super) fn sum_up(&mut self) {
        self.heaviest.clear();
        self.heaviest.push(0);
        let mut sum = 0;
        self.heaviest.extend(self.weights.iter().map(|weight| {
            sum += weight;
            sum
        }));
    }

    /// Number of sequences.
    pub(super) fn len(&self) -> usize {
        self.weights.len()
    }

    /// Weights, heaviest first.
    pub(super) fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// Sequence of every rank.
    pub(super) fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Work of all.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Sum of the `count` heaviest.
    pub(super) fn heaviest(&self, count: usize) -> u64 {
        self.heaviest[count]
    }

    /// Sum of the `count` lightest.
    pub(super) fn lightest(&self, count: usize) -> u64 {
        self.lightest_of(self.len(), count)
    }

    /// Sum of the `count` lightest among the `top` heaviest.
    pub(super) fn lightest_of(&self, top: usize, count: usize) -> u64 {
        self.heaviest[top] - self.heaviest[top - count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_words_sort_as_pairs_do() {
        let mut state = 7u64;
        for round in 1..300 {
            let work: Vec<u64> = (0..round % 40 + 1)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    // Few distinct values: ties are what the two could order differently.
                    state >> 61
                })
                .collect();
            // Too heavy to leave room for an index, and otherwise the same.
            let heavy: Vec<u64> = work.iter().map(|&w| w << 55).collect();
            let (mut packed, mut pairs) = (Ranked::default(), Ranked::default());
            packed.read(&work).unwrap();
            pairs.read(&heavy).unwrap();
            assert_eq!(packed.ids(), pairs.ids(), "{work:?}");
            let mut expected: Vec<u32> = (0..work.len() as u32).collect();
            expected.sort_by_key(|&id| std::cmp::Reverse(work[id as usize]));
            assert_eq!(packed.ids(), expected);
        }
    }
}
