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
use std::path::Path;
use std::str::FromStr;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::TOKENS_MAX;
use super::error::InputError;
use super::histogram::{self, Histogram, Within};
use super::lengths::{Blocks, Lengths};
use crate::units::parse_count;

/// Lengths drawn at a time: few, for a window may need few.
const DRAWN: usize = 1 << 12;

/// A distribution of sample lengths, as written on the command line: see [`Distribution::FORMS`].
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution(Shape);

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    /// The logarithm is normal around that of the median.
    Lognormal {
        median: f64,
        sigma: f64,
        outliers: Option<Outliers>,
    },
    /// Lengths from `min` on; a length is above `x` with probability (min/x)^alpha.
    Pareto { min: f64, alpha: f64 },
    /// Buckets of a table: a file, or a bundled one.
    Histogram { source: String, within: Within },
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
    Distribution(Shape::Lognormal {
        median,
        sigma,
        outliers: Some(Outliers { share: 0.001, from }),
    })
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
    #[error("`{text}` is not a distribution: {problem}; legal is {forms}", forms = Distribution::FORMS)]
    Text {
        /// What was given.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A histogram cannot be read.
    #[error("histogram {source_name}: {problem}")]
    Histogram {
        /// The file, or the name of a bundled histogram.
        source_name: String,
        /// What is wrong with it, and where.
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
    /// What is legal.
    pub const FORMS: &str = "lognormal:MEDIAN,SIGMA or lognormal:MEDIAN,SIGMA,SHARE,FROM with a median of 1 to \
        4294967295 tokens, a sigma of 0 to 10, a share of outliers of 0 to 1, and their start above 0 and up to 1 as a \
        part of the limit; pareto:MIN,ALPHA with a shortest length of 1 to 4294967295 tokens and an alpha of 0.01 to \
        100; histogram:FILE or histogram:FILE,uniform; or calibrated-256k, calibrated-1m, magi-attention";

    /// The file that it is read from, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.0 {
            Shape::Histogram { source, .. } if !histogram::is_bundled(source) => {
                Some(Path::new(source))
            }
            _ => None,
        }
    }

    /// Lengths of 1 to `limit_tokens` tokens, without end; what is drawn beyond the limits becomes the limit.
    pub fn samples(&self, limit_tokens: u64, seed: u64) -> Result<Samples, DistributionError> {
        if !(1..=TOKENS_MAX).contains(&limit_tokens) {
            return Err(DistributionError::Limit { limit_tokens });
        }
        let draw = match &self.0 {
            &Shape::Lognormal {
                median,
                sigma,
                outliers,
            } => Draw::Lognormal {
                median,
                sigma,
                outliers,
            },
            &Shape::Pareto { min, alpha } => Draw::Pareto { min, alpha },
            Shape::Histogram { source, within } => {
                let histogram =
                    Histogram::load(source).map_err(|problem| DistributionError::Histogram {
                        source_name: source.clone(),
                        problem,
                    })?;
                Draw::Histogram(histogram, *within)
            }
        };
        Ok(Samples {
            draw,
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
            return Ok(named.clone());
        }
        let shape = match text.split_once(':') {
            Some(("lognormal", parameters)) => lognormal(parameters),
            Some(("pareto", parameters)) => pareto(parameters),
            Some(("histogram", parameters)) => histogram(parameters),
            Some((name, _)) => Err(format!("`{name}` is not a known one")),
            None if is_bundled(text) => histogram(text),
            None => Err("it has no `:`".to_owned()),
        };
        shape.map(Self).map_err(refuse)
    }
}

fn is_bundled(name: &str) -> bool {
    histogram::BUNDLED
        .iter()
        .any(|(bundled, _)| *bundled == name)
}

fn lognormal(parameters: &str) -> Result<Shape, String> {
    let parameters: Vec<&str> = parameters.split(',').collect();
    let (&[median, sigma], outliers) =
        (parameters.split_first_chunk::<2>()).ok_or_else(|| wrong_count(&parameters))?;
    let outliers = match outliers {
        [] => None,
        &[share, from] => Some(Outliers {
            share: number("share", share, |share| (0.0..=1.0).contains(&share))?,
            from: number("from", from, |from| from > 0.0 && from <= 1.0)?,
        }),
        _ => return Err(wrong_count(&parameters)),
    };
    Ok(Shape::Lognormal {
        median: number("median", median, is_length)?,
        sigma: number("sigma", sigma, |sigma| (0.0..=10.0).contains(&sigma))?,
        outliers,
    })
}

fn pareto(parameters: &str) -> Result<Shape, String> {
    let parameters: Vec<&str> = parameters.split(',').collect();
    let &[min, alpha] = parameters.as_slice() else {
        return Err(wrong_count(&parameters));
    };
    Ok(Shape::Pareto {
        min: number("min", min, is_length)?,
        alpha: number("alpha", alpha, |alpha| (0.01..=100.0).contains(&alpha))?,
    })
}

fn histogram(parameters: &str) -> Result<Shape, String> {
    let (source, within) = match parameters.strip_suffix(",uniform") {
        Some(source) => (source, Within::Uniform),
        None => (parameters, Within::LogUniform),
    };
    if source.is_empty() {
        return Err("it names no file".to_owned());
    }
    Ok(Shape::Histogram {
        source: source.to_owned(),
        within,
    })
}

fn wrong_count(parameters: &[&str]) -> String {
    format!("it has {} parameters", parameters.len())
}

fn is_length(number: f64) -> bool {
    (1.0..=TOKENS_MAX as f64).contains(&number)
}

fn number(name: &str, text: &str, legal: fn(f64) -> bool) -> Result<f64, String> {
    let whole = parse_count(text).ok().map(|count| count as f64);
    match whole.or_else(|| text.trim().parse().ok()) {
        Some(number) if legal(number) => Ok(number),
        _ => Err(format!("{name} is `{text}`")),
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Shape::Lognormal {
                median,
                sigma,
                outliers,
            } => {
                write!(f, "lognormal:{median},{sigma}")?;
                match outliers {
                    Some(Outliers { share, from }) => write!(f, ",{share},{from}"),
                    None => Ok(()),
                }
            }
            Shape::Pareto { min, alpha } => write!(f, "pareto:{min},{alpha}"),
            Shape::Histogram { source, within } => match within {
                Within::LogUniform if is_bundled(source) => f.write_str(source),
                Within::LogUniform => write!(f, "histogram:{source}"),
                Within::Uniform => write!(f, "histogram:{source},uniform"),
            },
        }
    }
}

/// Lengths drawn from a [`Distribution`], without end.
#[derive(Debug, Clone)]
pub struct Samples {
    draw: Draw,
    limit: f64,
    random: Xoshiro256PlusPlus,
}

/// A distribution, ready to be drawn from.
#[derive(Debug, Clone)]
enum Draw {
    Lognormal {
        median: f64,
        sigma: f64,
        outliers: Option<Outliers>,
    },
    Pareto {
        min: f64,
        alpha: f64,
    },
    Histogram(Histogram, Within),
}

/// Uniform on [0, 1), from the upper 53 of 64 random bits.
fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Standard normal, by Box and Muller.
fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    // 1 - u is never zero.
    let radius = (-2.0 * libm::log(1.0 - uniform(random))).sqrt();
    radius * libm::cos(TAU * uniform(random))
}

impl Iterator for Samples {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let random = &mut self.random;
        let length = match &self.draw {
            Draw::Lognormal {
                median,
                sigma,
                outliers,
            } => {
                let mut length = median * libm::exp(sigma * normal(random));
                if let Some(Outliers { share, from }) = outliers {
                    // Both are always drawn, so that a sample's place in the random stream depends on no other sample.
                    let (chosen, place) = (uniform(random), uniform(random));
                    if chosen < *share {
                        length = self.limit * libm::exp(libm::log(*from) * place);
                    }
                }
                length
            }
            // The inverse of its distribution function.
            Draw::Pareto { min, alpha } => {
                min * libm::exp(-libm::log(1.0 - uniform(random)) / alpha)
            }
            Draw::Histogram(histogram, within) => {
                let (bucket, place) = (uniform(random), uniform(random));
                histogram.length(*within, bucket, place)
            }
        };
        Some(length.round().clamp(1.0, self.limit) as u64)
    }
}

impl Blocks for Samples {
    fn fill(&mut self, block: &mut Vec<u32>) -> Result<(), InputError> {
        block.extend(self.take(DRAWN).map(|length| length as u32));
        Ok(())
    }
}

impl From<Samples> for Lengths {
    fn from(samples: Samples) -> Self {
        Self::new(samples)
    }
}
