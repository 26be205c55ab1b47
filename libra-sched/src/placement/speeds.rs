//! Workers that are not equally fast: their speeds, and the share of a load that each should get.

use std::fmt;
use std::str::FromStr;

use super::slack::{PER_UNIT, Slack, format_ppm, parse_ppm};
use crate::error::Error;

/// Largest speed: a thousand times the nominal.
const MAX_UNITS: u32 = 1000;
const LEGAL: &str = "a number from 0.000001 to 1000 with up to six digits after the point";

/// How fast a worker is, in parts per million of the nominal speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Speed(u32);

impl Speed {
    /// 1.0.
    pub const NOMINAL: Self = Self(PER_UNIT);

    /// A speed in parts per million.
    ///
    /// # Errors
    /// 0, or beyond 1000.
    pub fn from_ppm(ppm: u32) -> Result<Self, Error> {
        if (1..=MAX_UNITS * PER_UNIT).contains(&ppm) {
            return Ok(Self(ppm));
        }
        Err(bad_speed(format!("{ppm} ppm")))
    }

    /// In parts per million.
    #[must_use]
    pub const fn ppm(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_ppm(self.0))
    }
}

impl FromStr for Speed {
    type Err = Error;

    /// A decimal fraction with up to six digits after the point.
    fn from_str(text: &str) -> Result<Self, Error> {
        parse_ppm(text)
            .and_then(|ppm| u32::try_from(ppm).ok())
            .and_then(|ppm| Self::from_ppm(ppm).ok())
            .ok_or_else(|| bad_speed(format!("{text:?}")))
    }
}

fn bad_speed(value: String) -> Error {
    Error::BadMeasurement {
        what: "a speed".to_owned(),
        value,
        legal: LEGAL.to_owned(),
    }
}

/// The speed of every worker of a pool.
///
/// ```
/// use libra_sched::placement::{Slack, Speed, Speeds, targets};
/// let speeds = Speeds::new(vec![Speed::NOMINAL, "0.5".parse()?, "1.5".parse()?]);
/// // A third of the load each, were they equal; 10 % over it is allowed.
/// let slack = Slack::from_ppm(100_000)?;
/// assert_eq!(targets(300, 3, Some(&speeds), slack), [110, 55, 165]);
/// assert_eq!(targets(300, 3, None, slack), [110, 110, 110]);
/// # Ok::<(), libra_sched::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speeds {
    speeds: Vec<Speed>,
    sum_ppm: u64,
}

impl Speeds {
    /// One speed a worker.
    #[must_use]
    pub fn new(speeds: Vec<Speed>) -> Self {
        // Up to 2^32 speeds below 2^30.
        let sum_ppm = speeds.iter().map(|speed| u64::from(speed.0)).sum();
        Self { speeds, sum_ppm }
    }

    /// By worker.
    #[must_use]
    pub fn as_slice(&self) -> &[Speed] {
        &self.speeds
    }

    /// Sum of all, in parts per million.
    #[must_use]
    pub const fn sum_ppm(&self) -> u64 {
        self.sum_ppm
    }

    /// Whether no worker is faster than another.
    #[must_use]
    pub fn are_equal(&self) -> bool {
        self.speeds.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// There must be one for each of `workers`.
    ///
    /// # Errors
    /// Naming both counts.
    pub fn check_workers(&self, workers: u32) -> Result<(), Error> {
        if self.speeds.len() == workers as usize {
            return Ok(());
        }
        Err(Error::Mismatch {
            name: "number of workers",
            left: self.speeds.len() as u64,
            left_of: "the speeds",
            right: workers.into(),
            right_of: "the pool",
        })
    }

    /// Heaviest `load/speed` over `total/Σ speed`, less 1: R − 1 in time. 0 without any load.
    #[must_use]
    pub fn excess(&self, loads: &[u64]) -> f64 {
        let total: u128 = loads.iter().map(|&load| u128::from(load)).sum();
        if total == 0 {
            return 0.0;
        }
        let time = |(&load, speed): (&u64, &Speed)| load as f64 / f64::from(speed.0);
        let slowest = loads.iter().zip(&self.speeds).map(time);
        slowest.fold(0.0, f64::max) * self.sum_ppm as f64 / total as f64 - 1.0
    }
}

/// Largest integer load of each worker within (1+τ)·`total`·speed/Σ speed: the soft target of
/// Alg. 2 where workers differ, and [`Slack::capacity`] where they do not. `u64::MAX` without a
/// limit.
///
/// `speeds` has one entry a worker: see [`Speeds::check_workers`].
#[must_use]
pub fn targets(total: u64, workers: u32, speeds: Option<&Speeds>, slack: Slack) -> Vec<u64> {
    let mut targets = Vec::new();
    targets_with(&mut targets, total, workers, speeds, slack);
    targets
}

/// As [`targets`], into memory that is used again.
pub(super) fn targets_with(
    targets: &mut Vec<u64>,
    total: u64,
    workers: u32,
    speeds: Option<&Speeds>,
    slack: Slack,
) {
    targets.clear();
    let Some(speeds) = speeds.filter(|_| slack != Slack::UNBOUNDED) else {
        targets.resize(workers as usize, slack.capacity(total, workers));
        return;
    };
    // 64 bits of load, 30 of slack and 30 of speed.
    let allowed = u128::from(total) * u128::from(PER_UNIT + slack.ppm());
    let parts = u128::from(PER_UNIT) * u128::from(speeds.sum_ppm.max(1));
    targets.extend(speeds.speeds.iter().map(|speed| {
        let target = allowed * u128::from(speed.0) / parts;
        u64::try_from(target).unwrap_or(u64::MAX)
    }));
}
