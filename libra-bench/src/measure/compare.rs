//! Which results are wrong.

use libra_exec::PoolOutputs;
use serde::Serialize;

/// Largest legal error in f64 of what is summed in another order than the reference's, relative to the largest magnitude:
/// dK and dV over workers, and all results where steps are merged.
const SUM_ERROR: f64 = 1e-12;
/// Errors in f32 may be this much larger than those of plain f32.
const PLAIN_FACTOR: f64 = 2.0;
/// A pool of a few numbers may be exact in plain f32, and gradients may be exactly 0; four roundings of the largest
/// magnitude among all results are always legal.
const ROUNDINGS: f64 = 4.0;

/// What results are compared with.
#[derive(Clone, Debug)]
pub(super) struct Yardstick {
    exact: PoolOutputs<f64>,
    limits: [Limit; 4],
    /// Where partial results are merged.
    merged_limits: [Limit; 4],
    /// Largest error of the plain implementation in the same precision.
    pub(super) plain_error: f64,
}

/// How far an element may be off.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// Not one bit.
    Bits,
    /// By at most this.
    Absolute(f64),
}

/// Elements that are wrong, and how far the worst of all is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Dissent {
    /// In O.
    pub(crate) o: u64,
    /// In dQ.
    pub(crate) d_q: u64,
    /// In dK.
    pub(crate) d_k: u64,
    /// In dV.
    pub(crate) d_v: u64,
    /// Elements that differ from the first run's.
    pub(crate) unsteady: u64,
    /// Largest error, infinite where a result is no number.
    #[serde(skip)]
    pub(crate) max_abs_error: f64,
}

impl Dissent {
    /// All wrong elements.
    pub(crate) fn wrong(&self) -> u64 {
        self.o + self.d_q + self.d_k + self.d_v + self.unsteady
    }
}

impl Yardstick {
    /// For results in f64: O and dQ to the last bit, dK and dV up to the order of sums; all up to that order where partial
    /// results are merged.
    pub(super) fn f64(exact: PoolOutputs<f64>) -> Self {
        let sum = |tensor: &[Vec<f64>]| Limit::Absolute(SUM_ERROR * largest(tensor));
        let [o, d_q, d_k, d_v] = tensors(&exact).map(sum);
        Self {
            exact,
            limits: [Limit::Bits, Limit::Bits, d_k, d_v],
            merged_limits: [o, d_q, d_k, d_v],
            plain_error: 0.0,
        }
    }

    /// For results in f32: twice the error of plain f32.
    pub(super) fn f32(exact: PoolOutputs<f64>, plain: &PoolOutputs<f64>) -> Self {
        let mut plain_error = 0.0f64;
        let mut limits = [Limit::Bits; 4];
        let magnitude = tensors(&exact).map(largest).into_iter().fold(0.0, f64::max);
        let rounding = ROUNDINGS * f64::from(f32::EPSILON) * magnitude;
        for ((limit, exact), plain) in limits.iter_mut().zip(tensors(&exact)).zip(tensors(plain)) {
            let error = error(plain, exact);
            plain_error = plain_error.max(error);
            *limit = Limit::Absolute((PLAIN_FACTOR * error).max(rounding));
        }
        Self {
            exact,
            limits,
            merged_limits: limits,
            plain_error,
        }
    }

    /// Counts what is wrong in `results`, of partial ones that are merged or of whole softmaxes.
    pub(super) fn compare(&self, results: &PoolOutputs<f64>, is_merged: bool) -> Dissent {
        let limits = if is_merged {
            &self.merged_limits
        } else {
            &self.limits
        };
        let pairs = tensors(results).into_iter().zip(tensors(&self.exact));
        let counts: Vec<u64> = pairs
            .clone()
            .zip(limits)
            .map(|((results, exact), &limit)| wrong(results, exact, limit))
            .collect();
        Dissent {
            o: counts[0],
            d_q: counts[1],
            d_k: counts[2],
            d_v: counts[3],
            unsteady: 0,
            max_abs_error: pairs.map(|(a, b)| error(a, b)).fold(0.0, f64::max),
        }
    }
}

/// Elements that differ between two runs of one plan, to the last bit.
pub(super) fn differing(a: &PoolOutputs<f64>, b: &PoolOutputs<f64>) -> u64 {
    let pairs = tensors(a).into_iter().zip(tensors(b));
    pairs.map(|(a, b)| wrong(a, b, Limit::Bits)).sum()
}

fn tensors(outputs: &PoolOutputs<f64>) -> [&[Vec<f64>]; 4] {
    [&outputs.o, &outputs.d_q, &outputs.d_k, &outputs.d_v]
}

fn elements<'a>(a: &'a [Vec<f64>], b: &'a [Vec<f64>]) -> impl Iterator<Item = (f64, f64)> + 'a {
    let slots = a.iter().zip(b);
    slots.flat_map(|(a, b)| a.iter().copied().zip(b.iter().copied()))
}

fn wrong(results: &[Vec<f64>], exact: &[Vec<f64>], limit: Limit) -> u64 {
    let is_right = |(result, exact): (f64, f64)| match limit {
        Limit::Bits => result.to_bits() == exact.to_bits(),
        // Not a number is at no distance from anything.
        Limit::Absolute(limit) => (result - exact).abs() <= limit,
    };
    elements(results, exact)
        .filter(|&pair| !is_right(pair))
        .count() as u64
}

fn error(results: &[Vec<f64>], exact: &[Vec<f64>]) -> f64 {
    elements(results, exact)
        .map(|(a, b)| (a - b).abs())
        .map(|error| if error.is_nan() { f64::INFINITY } else { error })
        .fold(0.0, f64::max)
}

fn largest(tensor: &[Vec<f64>]) -> f64 {
    tensor.iter().flatten().fold(0.0, |m, x| m.max(x.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(value: f64) -> PoolOutputs<f64> {
        let tensor = || vec![vec![1.0, value]];
        PoolOutputs {
            o: tensor(),
            d_q: tensor(),
            d_k: tensor(),
            d_v: tensor(),
        }
    }

    #[test]
    fn one_bit_in_o_and_what_is_no_number_are_wrong() {
        let yardstick = Yardstick::f64(outputs(0.5));
        assert_eq!(yardstick.compare(&outputs(0.5), false), Dissent::default());
        let next = outputs(0.5f64.next_up());
        let off = yardstick.compare(&next, false);
        assert_eq!((off.o, off.d_q, off.d_k, off.d_v), (1, 1, 0, 0));
        assert_eq!(yardstick.compare(&next, true).wrong(), 0);
        assert_eq!(yardstick.compare(&outputs(0.5 + 2e-12), true).wrong(), 4);
        let no_number = yardstick.compare(&outputs(f64::NAN), true);
        assert_eq!(no_number.wrong(), 4);
        assert_eq!(no_number.max_abs_error, f64::INFINITY);
    }
}
