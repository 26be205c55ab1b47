//! How much slower or faster each GPU computes in one step than the mean.
//!
//! A normal deviate, and in rare steps a slowdown beside it: 256 GPUs at the same work spread by 7 % on average, and by
//! 15 % in the worst of 500 steps (*paper*, figure 3). Bits come from xoshiro256++, logarithm and cosine from `libm`, so
//! that a seed means the same on every machine.

use std::f64::consts::TAU;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::cluster::JitterSection;

/// No GPU is faster than that.
const LEAST: f64 = 0.5;

/// Factor on the computing time of `gpu` in `step`; the same whenever it is asked for.
pub(crate) fn factor(jitter: &JitterSection, step: u64, gpu: u64) -> f64 {
    if jitter.sigma == 0.0 && jitter.tail_probability == 0.0 {
        return 1.0;
    }
    // Odd multipliers keep the parts apart; seeding mixes all bits.
    let stream = (jitter.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        ^ step.wrapping_mul(0xbf58_476d_1ce4_e5b9)
        ^ gpu.wrapping_mul(0x94d0_49bb_1331_11eb);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(stream);
    let mut uniform = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    // 1 − u is never zero.
    let radius = (-2.0 * libm::log(1.0 - uniform())).sqrt();
    let normal = radius * libm::cos(TAU * uniform());
    let (chosen, size) = (uniform(), uniform());
    let mut factor = 1.0 + jitter.sigma * normal;
    if chosen < jitter.tail_probability {
        factor -= jitter.tail_size * libm::log(1.0 - size);
    }
    factor.max(LEAST)
}
