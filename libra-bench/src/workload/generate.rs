//! Sample lengths drawn from a distribution, without end and in constant memory.
//!
//! Equal distribution, limit and seed give equal lengths on every machine: the random bits come from xoshiro256++
//! seeded through SplitMix64, and logarithm, exponential and cosine from `libm` in place of the system's mathematical
//! library, whose last digits differ between machines. For the same reason the normal deviates are made here and not
//! by `rand_distr`, which calls the system's library as soon as any crate of the build asks `num-traits` for `std`.
//!
//! ```
//! use libra_bench::workload::Distribution;
//!
//! let lengths = "lognormal:607,1.7".parse::<Distribution>()?.samples(262_144, 7)?;
//! assert_eq!(lengths.take(4).collect::<Vec<_>>(), [795, 54, 8, 164]);
//! # Ok::<(), libra_bench::workload::DistributionError>(())
//! ```

use std::f64::consts::TAU;
use std::fmt;
use std::str::FromStr;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::TOKENS_MAX;
use crate::units::parse_count;

/// A distribution of sample lengths, written `lognormal:MEDIAN,SIGMA` or `lognormal:MEDIAN,SIGMA,SHARE,FROM`, or by the
/// name of one in [`CALIBRATED`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution {
    median: f64,
    sigma: f64,
    outliers: Option<Outliers>,
}

/// Distributions by name: their parameters are chosen so that windows resemble those the *paper* reports, whose corpora
/// are not public.
///
/// | Name | Median | Longest | 99th percentile | Paper |
/// |---|---|---|---|---|
/// | `calibrated-256k` | 607 | 256K | 33,800 | median 607, 99th percentile about 33,000 |
/// | `calibrated-1m` | 644 | 1M | 73,000 | median 644, 99th percentile 71,006 |
///
/// One sample in a thousand is drawn from the upper 30 % (256K) or 50 % (1M) of the legal lengths instead: outliers that
/// pools of 8 can still dilute, as the paper's can. A lognormal tail alone is either too light or has outliers that no
/// pool of 8 balances.
pub const CALIBRATED: [(&str, Distribution); 2] = [
    ("calibrated-256k", calibrated(607.0, 1.7, 0.7)),
    ("calibrated-1m", calibrated(644.0, 2.0, 0.5)),
];

const fn calibrated(median: f64, sigma: f64, from: f64) -> Distribution {
    Distribution {
        median,
        sigma,
        outliers: Some(Outliers { share: 0.001, from }),
    }
}

/// A share of the samples is drawn log-uniformly from `from * limit` up to the limit instead.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Outliers {
    share: f64,
    from: f64,
}

/// Why lengths cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DistributionError {
    /// The text is not a distribution.
    #[error(
        "`{text}` is not a distribution: {problem}; legal is lognormal:MEDIAN,SIGMA or \
         lognormal:MEDIAN,SIGMA,SHARE,FROM with a median of 1 to 4294967295 tokens, a sigma of 0 to 10, \
         a share of outliers of 0 to 1, and their start above 0 and up to 1 as a part of the limit, calibrated-256k, or calibrated-1m"
    )]
    Text {
        /// What was given.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The longest length to draw is out of range.
    #[error("lengths of up to {limit_tokens} tokens are not legal; the limit is 1 to 4294967295")]
    Limit {
        /// The limit.
        limit_tokens: u64,
    },
}

impl Distribution {
    /// Lengths of 1 to `limit_tokens` tokens, without end; what is drawn beyond the limits becomes the limit.
    pub fn samples(&self, limit_tokens: u64, seed: u64) -> Result<Samples, DistributionError> {
        if !(1..=TOKENS_MAX).contains(&limit_tokens) {
            return Err(DistributionError::Limit { limit_tokens });
        }
        Ok(Samples {
            distribution: *self,
            limit: limit_tokens as f64,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        })
    }
}

impl FromStr for Distribution {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |problem: String| DistributionError::Text {
            text: text.to_owned(),
            problem,
        };
        if let Some((_, named)) = CALIBRATED.iter().find(|(name, _)| *name == text) {
            return Ok(*named);
        }
        let parameters = match text.split_once(':') {
            Some(("lognormal", parameters)) => parameters.split(',').collect::<Vec<_>>(),
            Some((name, _)) => return Err(refuse(format!("`{name}` is not a known one"))),
            None => return Err(refuse("it has no `:`".to_owned())),
        };
        let number = |name: &str, text: &str, legal: fn(f64) -> bool| {
            let whole = parse_count(text).ok().map(|count| count as f64);
            match whole.or_else(|| text.trim().parse().ok()) {
                Some(number) if legal(number) => Ok(number),
                _ => Err(refuse(format!("{name} is `{text}`"))),
            }
        };
        let parameters_wrong = || refuse(format!("it has {} parameters", parameters.len()));
        let (&[median, sigma], outliers) = parameters
            .split_first_chunk::<2>()
            .ok_or_else(parameters_wrong)?;
        let outliers = match outliers {
            [] => None,
            &[share, from] => Some(Outliers {
                share: number("share", share, |share| (0.0..=1.0).contains(&share))?,
                from: number("from", from, |from| from > 0.0 && from <= 1.0)?,
            }),
            _ => return Err(parameters_wrong()),
        };
        Ok(Self {
            median: number("median", median, |median| {
                (1.0..=TOKENS_MAX as f64).contains(&median)
            })?,
            sigma: number("sigma", sigma, |sigma| (0.0..=10.0).contains(&sigma))?,
            outliers,
        })
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lognormal:{},{}", self.median, self.sigma)?;
        match self.outliers {
            Some(Outliers { share, from }) => write!(f, ",{share},{from}"),
            None => Ok(()),
        }
    }
}

/// Lengths drawn from a [`Distribution`], without end.
#[derive(Debug, Clone)]
pub struct Samples {
    distribution: Distribution,
    limit: f64,
    random: Xoshiro256PlusPlus,
}

impl Samples {
    /// Uniform on [0, 1), from the upper 53 of 64 random bits.
    fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        // 1 - u is never zero.
        let radius = (-2.0 * libm::log(1.0 - self.uniform())).sqrt();
        radius * libm::cos(TAU * self.uniform())
    }
}

impl Iterator for Samples {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let Distribution {
            median,
            sigma,
            outliers,
        } = self.distribution;
        let mut length = median * libm::exp(sigma * self.normal());
        if let Some(Outliers { share, from }) = outliers {
            // Both are always drawn, so that a sample's place in the random stream depends on no other sample.
            let (chosen, place) = (self.uniform(), self.uniform());
            if chosen < share {
                length = self.limit * libm::exp(libm::log(from) * place);
            }
        }
        Some(length.round().clamp(1.0, self.limit) as u64)
    }
}
