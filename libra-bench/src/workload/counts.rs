//! Lengths counted one by one, in one pass and constant memory.

use super::stats::{Bucket, CorpusStats, LONG_TOKENS, Share};

/// Shorter lengths have a count each: 32 MiB of counts, of which only what is touched takes memory.
const EXACT: usize = 1 << 22;
/// Longer ones share a count with at most this part of themselves: 1/1024.
const PART_BITS: u32 = 10;
/// Thresholds of [`CorpusStats::tails`].
const TAILS: [u64; 9] = [
    4 << 10,
    16 << 10,
    LONG_TOKENS,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
];

/// How often each length occurs: exactly below 4M tokens; above, within 1/1024 of the length, while tokens and work stay
/// exact.
#[derive(Debug, Clone)]
pub struct LengthCounts {
    exact: Vec<u64>,
    beyond: Vec<Sums>,
    shortest: u32,
    longest: u32,
}

/// Samples, and what they come to.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    samples: u64,
    tokens: u128,
    work: u128,
}

/// Lengths from `first` to `last`, which share a count.
struct Run {
    first: u64,
    last: u64,
    sums: Sums,
}

impl Default for LengthCounts {
    fn default() -> Self {
        Self {
            exact: vec![0; EXACT],
            beyond: Vec::new(),
            shortest: u32::MAX,
            longest: 0,
        }
    }
}

impl LengthCounts {
    /// Counts a length.
    #[inline]
    pub fn add(&mut self, length: u32) {
        match self.exact.get_mut(length as usize) {
            Some(count) => *count += 1,
            None => self.add_beyond(length),
        }
        self.shortest = self.shortest.min(length);
        self.longest = self.longest.max(length);
    }

    /// Counts lengths.
    pub fn add_all(&mut self, lengths: &[u32]) {
        for &length in lengths {
            self.add(length);
        }
    }

    #[cold]
    fn add_beyond(&mut self, length: u32) {
        let octaves = u32::BITS - EXACT.ilog2();
        self.beyond
            .resize((octaves << PART_BITS) as usize, Sums::default());
        let octave = length.ilog2();
        let part = (length >> (octave - PART_BITS)) as usize & ((1 << PART_BITS) - 1);
        let index = ((octave - EXACT.ilog2()) << PART_BITS) as usize + part;
        let coarse = &mut self.beyond[index];
        coarse.samples += 1;
        coarse.tokens += u128::from(length);
        coarse.work += u128::from(length).pow(2);
    }

    /// Describes the corpus; `None` if it has no samples or no tokens.
    pub fn stats(&self) -> Option<CorpusStats> {
        let mut all = Sums::default();
        self.runs().for_each(|run| all.add(&run));
        if all.tokens == 0 {
            return None;
        }
        let rank = |thousandths: u128| (u128::from(all.samples) * thousandths).div_ceil(1000);
        let ranks = [500, 750, 900, 990, 999].map(rank);
        let mut percentiles = [0; 5];
        let mut passed = 0;
        let mut tails = TAILS.map(|over| (over, Sums::default()));
        let mut buckets: Vec<(u64, Sums)> = Vec::new();
        for run in self.runs() {
            let before = passed;
            passed += u128::from(run.sums.samples);
            for (percentile, rank) in percentiles.iter_mut().zip(ranks) {
                if before < rank && rank <= passed {
                    *percentile = run.last.min(self.longest.into());
                }
            }
            for (_, tail) in tails.iter_mut().filter(|(over, _)| run.first > *over) {
                tail.add(&run);
            }
            bucket_of(run.first, &mut buckets).add(&run);
        }
        let shares = |of: &[(u64, Sums)]| -> Vec<Share> {
            of.iter().map(|(at, part)| part.share(*at, &all)).collect()
        };
        let long = tails.iter().find(|(over, _)| *over == LONG_TOKENS);
        let long = long.map(|(over, tail)| tail.share(*over, &all));
        let [p50_tokens, p75_tokens, p90_tokens, p99_tokens, p999_tokens] = percentiles;
        Some(CorpusStats {
            samples: all.samples,
            tokens: u64::try_from(all.tokens).unwrap_or(u64::MAX),
            min_tokens: self.shortest.into(),
            p50_tokens,
            p75_tokens,
            p90_tokens,
            p99_tokens,
            p999_tokens,
            max_tokens: self.longest.into(),
            mean_tokens: all.tokens as f64 / all.samples as f64,
            long_token_share: long.map_or(0.0, |long| long.token_share),
            long_work_share: long.map_or(0.0, |long| long.work_share),
            histogram: (buckets.iter())
                .map(|(from, sums)| Bucket {
                    from: *from,
                    count: sums.samples,
                    sum: sums.tokens,
                })
                .collect(),
            shares: shares(&buckets),
            tails: shares(&tails)
                .into_iter()
                .filter(|tail| tail.samples > 0)
                .collect(),
        })
    }

    /// Lengths that occur, ascending.
    fn runs(&self) -> impl Iterator<Item = Run> {
        let end = self.exact.len().min(self.longest as usize + 1);
        let exact = (0_u64..).zip(&self.exact[..end]);
        let exact = exact
            .filter(|(_, samples)| **samples > 0)
            .map(|(length, &samples)| {
                let tokens = u128::from(samples) * u128::from(length);
                let work = tokens * u128::from(length);
                let sums = Sums {
                    samples,
                    tokens,
                    work,
                };
                Run {
                    first: length,
                    last: length,
                    sums,
                }
            });
        let beyond = (0_u64..).zip(&self.beyond);
        let beyond = beyond
            .filter(|(_, sums)| sums.samples > 0)
            .map(|(index, &sums)| {
                let octave = EXACT.ilog2() + (index >> PART_BITS) as u32;
                let part = index & ((1 << PART_BITS) - 1);
                let first = ((1 << PART_BITS) + part) << (octave - PART_BITS);
                let last = first + (1 << (octave - PART_BITS)) - 1;
                Run { first, last, sums }
            });
        exact.chain(beyond)
    }
}

impl Sums {
    fn add(&mut self, run: &Run) {
        self.samples += run.sums.samples;
        self.tokens = self.tokens.saturating_add(run.sums.tokens);
        self.work = self.work.saturating_add(run.sums.work);
    }

    /// What these are of `all`.
    fn share(&self, tokens: u64, all: &Self) -> Share {
        let share = |part: u128, whole: u128| part as f64 / whole as f64;
        Share {
            tokens,
            samples: self.samples,
            sample_share: share(self.samples.into(), all.samples.into()),
            token_share: share(self.tokens, all.tokens),
            work_share: share(self.work, all.work),
        }
    }
}

/// The bucket of `length`, no less than the last one; buckets between them are made.
fn bucket_of(length: u64, buckets: &mut Vec<(u64, Sums)>) -> &mut Sums {
    // 0 is a bucket of its own.
    let from = if length == 0 { 0 } else { 1 << length.ilog2() };
    while buckets.last().is_none_or(|(last, _)| *last < from) {
        let next = buckets.last().map_or(from, |(last, _)| (2 * last).max(1));
        buckets.push((next, Sums::default()));
    }
    let last = buckets.len() - 1;
    &mut buckets[last].1
}
