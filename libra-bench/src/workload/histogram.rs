//! Histograms of lengths, as tables in text: an upper bound and a weight a line.

use std::path::Path;

/// Largest table accepted, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// Published histograms, by name: from the table in `corpora/`, which cites its source.
pub(super) const BUNDLED: [(&str, &str); 1] = [(
    "magi-attention",
    include_str!("../../corpora/magi-attention.histogram.txt"),
)];

/// Whether `source` is a name of [`BUNDLED`].
pub(super) fn is_bundled(source: &str) -> bool {
    BUNDLED.iter().any(|(name, _)| *name == source)
}

/// How lengths lie between the bounds of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// Each as likely.
    Uniform,
    /// Each octave as likely.
    LogUniform,
}

/// Buckets with a weight.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Histogram {
    /// Largest length of each bucket, ascending.
    bounds: Vec<u32>,
    /// Sums of the weights, up to and with each bucket.
    sums: Vec<f64>,
}

impl Histogram {
    /// Reads a table in a file, or one of [`BUNDLED`].
    pub(super) fn load(source: &str) -> Result<Self, String> {
        if let Some((_, text)) = BUNDLED.iter().find(|(name, _)| *name == source) {
            return Self::parse(text);
        }
        let path = Path::new(source);
        let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
        if !metadata.is_file() || metadata.len() > BYTES_MAX {
            return Err(format!(
                "legal is a regular file of at most {BYTES_MAX} bytes"
            ));
        }
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        Self::parse(&text)
    }

    /// Reads a table: `#` begins a comment; a comma or blanks part a bound from its weight.
    fn parse(text: &str) -> Result<Self, String> {
        let (mut bounds, mut sums) = (Vec::new(), Vec::new());
        let (mut bound_before, mut sum) = (0, 0.0);
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let words: Vec<&str> = (line.split(|c: char| c == ',' || c.is_whitespace()))
                .filter(|word| !word.is_empty())
                .collect();
            let &[bound, weight] = words.as_slice() else {
                let found = words.len();
                return Err(format!(
                    "line {number}: {found} numbers, legal are a bound and its weight"
                ));
            };
            let bound = (bound.parse().ok())
                .filter(|bound| *bound > bound_before)
                .ok_or_else(|| {
                    format!(
                        "line {number}: bound `{bound}`, legal is {} to {}",
                        u64::from(bound_before) + 1,
                        u32::MAX
                    )
                })?;
            let weight = (weight.parse::<f64>().ok())
                .filter(|weight| (0.0..=1e18).contains(weight))
                .ok_or_else(|| format!("line {number}: weight `{weight}`, legal is 0 to 1e18"))?;
            bound_before = bound;
            sum += weight;
            bounds.push(bound);
            sums.push(sum);
        }
        if sum > 0.0 {
            Ok(Self { bounds, sums })
        } else {
            Err(format!(
                "{} buckets without weight, legal is at least one with",
                bounds.len()
            ))
        }
    }

    /// The length at two places from 0 up to 1: `bucket` chooses by weight, `place` within.
    pub(super) fn length(&self, within: Within, bucket: f64, place: f64) -> f64 {
        let total = self.sums.last().copied().unwrap_or(0.0);
        // A rounded product may be the total itself.
        let wanted = (bucket * total).min(total.next_down());
        let index = self.sums.partition_point(|sum| *sum <= wanted);
        let before = index.checked_sub(1).map_or(0, |before| self.bounds[before]);
        // Whole numbers above `before` up to the bound.
        let (low, high) = (f64::from(before) + 1.0, f64::from(self.bounds[index]) + 1.0);
        let length = match within {
            Within::Uniform => low + (high - low) * place,
            Within::LogUniform => low * libm::exp(libm::log(high / low) * place),
        };
        length.floor().clamp(low, high - 1.0)
    }
}
