//! What a corpus is, before and after packing. Work is the sum of squared lengths; reports only, nothing decides by it.

use serde::Serialize;

use super::counts::LengthCounts;
use super::window::Packed;

/// Samples with more tokens than this count as long.
pub const LONG_TOKENS: u64 = 32 * 1024;

/// The values from one power of two up to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// Least value of the bucket: 0, or a power of two. The next bucket's least value is its end.
    pub from: u64,
    /// How many values fall in it.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
}

/// What some of the samples are of all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// The bucket's least length, or the length that the samples of a tail exceed.
    pub tokens: u64,
    /// How many samples.
    pub samples: u64,
    /// Share of the samples.
    pub sample_share: f64,
    /// Share of the tokens.
    pub token_share: f64,
    /// Share of the work.
    pub work_share: f64,
}

/// Sample lengths of a corpus. Percentiles are the smallest lengths that no less than that share reaches: exactly below
/// 4M tokens, and up to 1/1024 more above.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CorpusStats {
    /// How many samples.
    pub samples: u64,
    /// Tokens of all samples.
    pub tokens: u64,
    /// Shortest sample.
    pub min_tokens: u64,
    /// Median.
    pub p50_tokens: u64,
    /// 75th percentile.
    pub p75_tokens: u64,
    /// 90th percentile.
    pub p90_tokens: u64,
    /// 99th percentile.
    pub p99_tokens: u64,
    /// 99.9th percentile.
    pub p999_tokens: u64,
    /// Longest sample.
    pub max_tokens: u64,
    /// Mean.
    pub mean_tokens: f64,
    /// Share of the tokens in samples over [`LONG_TOKENS`].
    pub long_token_share: f64,
    /// Share of the work in samples over [`LONG_TOKENS`].
    pub long_work_share: f64,
    /// Samples by length.
    pub histogram: Vec<Bucket>,
    /// The same buckets as shares.
    pub shares: Vec<Share>,
    /// Samples over 4K, 16K, 32K and so on, as long as there are any.
    pub tails: Vec<Share>,
}

impl CorpusStats {
    /// Describes a corpus; `None` if it has no samples or no tokens. Lengths beyond
    /// [`TOKENS_MAX`](super::TOKENS_MAX) count as that.
    pub fn of(lengths: &[u64]) -> Option<Self> {
        let mut counts = LengthCounts::default();
        for &length in lengths {
            counts.add(u32::try_from(length).unwrap_or(u32::MAX));
        }
        counts.stats()
    }
}

/// Work of the packed sequences of one or more windows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PackedStats {
    /// How many sequences, empty ones included.
    pub sequences: u64,
    /// Tokens of all samples.
    pub tokens: u64,
    /// Tokens of padding.
    pub padding_tokens: u64,
    /// Mean work F of a sequence.
    pub work_mean: f64,
    /// Most work of a sequence.
    pub work_max: u64,
    /// Standard deviation of the work over its mean (CV).
    pub work_cv: f64,
    /// Most work over mean work (φ).
    pub work_max_over_mean: f64,
    /// Sequences by work.
    pub histogram: Vec<Bucket>,
}

impl PackedStats {
    /// Describes windows; `None` if they have no work.
    pub fn of<'a>(windows: impl IntoIterator<Item = &'a Packed>) -> Option<Self> {
        let mut tally = PackedTally::default();
        for window in windows {
            tally.add(window);
        }
        tally.stats()
    }
}

/// Windows on their way to [`PackedStats`], in constant memory.
#[derive(Debug, Clone)]
pub struct PackedTally {
    sequences: u64,
    tokens: u64,
    padding_tokens: u64,
    work: u128,
    work_max: u64,
    /// Running mean of the work, and the sum of squared deviations from it: Welford, Technometrics 1962.
    mean: f64,
    deviations: f64,
    buckets: Buckets,
}

impl Default for PackedTally {
    fn default() -> Self {
        Self {
            sequences: 0,
            tokens: 0,
            padding_tokens: 0,
            work: 0,
            work_max: 0,
            mean: 0.0,
            deviations: 0.0,
            buckets: [(0, 0); 65],
        }
    }
}

impl PackedTally {
    /// Counts the sequences of a window.
    pub fn add(&mut self, window: &Packed) {
        self.tokens = self.tokens.saturating_add(window.tokens());
        self.padding_tokens = self.padding_tokens.saturating_add(window.padding_tokens());
        for samples in &window.sequences {
            let work = work(samples);
            self.sequences += 1;
            self.work += u128::from(work);
            self.work_max = self.work_max.max(work);
            let from_mean = work as f64 - self.mean;
            self.mean += from_mean / self.sequences as f64;
            self.deviations += from_mean * (work as f64 - self.mean);
            put(&mut self.buckets, work);
        }
    }

    /// Describes the windows; `None` if they have no work.
    pub fn stats(&self) -> Option<PackedStats> {
        if self.work_max == 0 {
            return None;
        }
        let mean = self.work as f64 / self.sequences as f64;
        Some(PackedStats {
            sequences: self.sequences,
            tokens: self.tokens,
            padding_tokens: self.padding_tokens,
            work_mean: mean,
            work_max: self.work_max,
            work_cv: (self.deviations / self.sequences as f64).sqrt() / mean,
            work_max_over_mean: self.work_max as f64 / mean,
            histogram: histogram(&self.buckets),
        })
    }
}

/// Work F of one sequence: the sum of its samples' squared lengths.
pub fn work(samples: &[u64]) -> u64 {
    let squares = samples.iter().map(|&length| length.saturating_mul(length));
    squares.fold(0, u64::saturating_add)
}

/// Expected excess of the heaviest pool over the mean when pools are drawn at random (eq. 2): how far above 1 the
/// ratio `1 + CV / sqrt(P) * sqrt(2 ln(D / P))` is. `work_cv` is CV, `pool_size` is P and `gbs` is D.
pub fn expected_excess(work_cv: f64, pool_size: u64, gbs: u64) -> f64 {
    if pool_size >= gbs {
        return 0.0;
    }
    let pools = gbs as f64 / pool_size as f64;
    work_cv / (pool_size as f64).sqrt() * (2.0 * pools.ln()).sqrt()
}

/// The smallest pool size that divides `gbs` and whose [`expected_excess`] is at most `target_excess`.
/// One pool of all sequences always is.
pub fn pool_size_for(work_cv: f64, gbs: u64, target_excess: f64) -> u64 {
    (1..gbs)
        .filter(|pool_size| gbs.is_multiple_of(*pool_size))
        .find(|&pool_size| expected_excess(work_cv, pool_size, gbs) <= target_excess)
        .unwrap_or(gbs)
}

/// How many values and their sum: bucket 0 for zero, bucket k for 2^(k - 1) and up.
type Buckets = [(u64, u128); 65];

fn put(buckets: &mut Buckets, value: u64) {
    let bucket = &mut buckets[(u64::BITS - value.leading_zeros()) as usize];
    bucket.0 += 1;
    bucket.1 += u128::from(value);
}

/// Buckets from the smallest value's to the largest value's, those without values between them included.
fn histogram(buckets: &Buckets) -> Vec<Bucket> {
    let first = buckets.iter().position(|bucket| bucket.0 > 0).unwrap_or(0);
    let last = buckets
        .iter()
        .rposition(|bucket| bucket.0 > 0)
        .map_or(0, |last| last + 1);
    let from = |index: usize| if index == 0 { 0 } else { 1 << (index - 1) };
    (first..last)
        .map(|index| Bucket {
            from: from(index),
            count: buckets[index].0,
            sum: buckets[index].1,
        })
        .collect()
}
