//! What a corpus is, before and after packing. Work is the sum of squared lengths; reports only, nothing decides by it.

use serde::Serialize;

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

/// Sample lengths of a corpus. Percentiles are lengths that occur: the smallest that no less than that share reaches.
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
}

impl CorpusStats {
    /// Describes a corpus; `None` if it has no samples or no tokens.
    pub fn of(lengths: &[u64]) -> Option<Self> {
        let mut sorted = lengths.to_vec();
        sorted.sort_unstable();
        let (&min_tokens, &max_tokens) = (sorted.first()?, sorted.last()?);
        let long = &sorted[sorted.partition_point(|&length| length <= LONG_TOKENS)..];
        let tokens = sum(&sorted);
        if tokens == 0 {
            return None;
        }
        Some(Self {
            samples: sorted.len() as u64,
            tokens: u64::try_from(tokens).unwrap_or(u64::MAX),
            min_tokens,
            p50_tokens: percentile(&sorted, 500),
            p75_tokens: percentile(&sorted, 750),
            p90_tokens: percentile(&sorted, 900),
            p99_tokens: percentile(&sorted, 990),
            p999_tokens: percentile(&sorted, 999),
            max_tokens,
            mean_tokens: tokens as f64 / sorted.len() as f64,
            long_token_share: sum(long) as f64 / tokens as f64,
            long_work_share: work_total(long) / work_total(&sorted),
            histogram: histogram(sorted.iter().copied()),
        })
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
        let mut works = Vec::new();
        let (mut tokens, mut padding_tokens) = (0_u64, 0_u64);
        for window in windows {
            works.extend(window.sequences.iter().map(|samples| work(samples)));
            tokens = tokens.saturating_add(window.tokens());
            padding_tokens = padding_tokens.saturating_add(window.padding_tokens());
        }
        let work_max = works.iter().copied().max().filter(|&max| max > 0)?;
        let mean = sum(&works) as f64 / works.len() as f64;
        let squares: f64 = works.iter().map(|&work| (work as f64 - mean).powi(2)).sum();
        Some(Self {
            sequences: works.len() as u64,
            tokens,
            padding_tokens,
            work_mean: mean,
            work_max,
            work_cv: (squares / works.len() as f64).sqrt() / mean,
            work_max_over_mean: work_max as f64 / mean,
            histogram: histogram(works),
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

fn sum(values: &[u64]) -> u128 {
    values.iter().copied().map(u128::from).sum()
}

fn work_total(lengths: &[u64]) -> f64 {
    lengths
        .iter()
        .map(|&length| u128::from(length).pow(2))
        .fold(0, u128::saturating_add) as f64
}

/// The value at a share of a sorted, non-empty slice, in thousandths.
fn percentile(sorted: &[u64], thousandths: usize) -> u64 {
    let rank = (sorted.len() as u128 * thousandths as u128).div_ceil(1000) as usize;
    sorted[rank.max(1) - 1]
}

/// Buckets from the smallest value's to the largest value's, those without values between them included.
fn histogram(values: impl IntoIterator<Item = u64>) -> Vec<Bucket> {
    // Bucket 0 is for zero, bucket k for 2^(k - 1) and up.
    let mut buckets = [(0_u64, 0_u128); 65];
    for value in values {
        let bucket = &mut buckets[(u64::BITS - value.leading_zeros()) as usize];
        bucket.0 += 1;
        bucket.1 += u128::from(value);
    }
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
