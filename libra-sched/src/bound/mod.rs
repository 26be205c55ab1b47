//! Bytes that every plan of a pool has to move to balance it, whoever places it.
//!
//! - [`moved_bytes`] bounds Q and O by what overloaded workers must give away, and K and V by the
//!   copies that a sample needs which is too much work for one worker: fast, in two parts.
//! - [`moved_bytes_by_prices`] bounds their sum by what each choice costs: a token that leaves takes Q
//!   and O along, one that stays needs the keys before it, and work has a price where it is too much.
//!
//! Neither is always above the other, so the larger counts.

use crate::mask::Mask;
use crate::plan::PoolPlan;

mod apart;
mod columns;
mod prices;
mod readers;

/// Rounds of [`moved_bytes_by_prices`] beyond which little more is proved.
pub const ROUNDS: u32 = 300;

/// Lower bounds on the bytes of one layer's forward exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BytesBound {
    /// Of Q dispatched and O returned.
    pub qo_bytes: u64,
    /// Of K and V, where ranges are fetched or whole samples; 0 under masks other than causal.
    pub kv_bytes: u64,
}

impl BytesBound {
    /// Of all that moves.
    #[must_use]
    pub const fn moved_bytes(self) -> u64 {
        self.qo_bytes + self.kv_bytes
    }
}

/// What any plan of the same pool, layout, heads and mask moves at least, if its heaviest worker has
/// `heaviest` work (pairs × heads).
#[must_use]
pub fn moved_bytes(plan: &PoolPlan, heaviest: u64) -> BytesBound {
    BytesBound {
        qo_bytes: apart::qo_bytes(plan, heaviest),
        kv_bytes: if plan.mask == Mask::Causal && heaviest > 0 {
            apart::kv_bytes(plan, heaviest)
        } else {
            0
        },
    }
}

/// As [`moved_bytes`], of all that moves together, by the best prices found in `rounds`.
///
/// [`ROUNDS`] take one or two hundredths of a second on 64 to 128 workers. 0 under masks other than
/// causal, and where samples continue others.
///
/// ```
/// use libra_sched::{
///     HeadSplit, LayoutKind, PackedLengths, PlanConfig, TokenLayout, bound, plan_pool,
/// };
/// // 12 tokens on two workers, 21 and 57 pairs: the second reads 6 keys, or gives up Q and O.
/// let pool = PackedLengths::new(12, [[12u64]])?;
/// let layout = TokenLayout::new(LayoutKind::Contiguous, 1, 12, 2)?;
/// let heads = HeadSplit::new(1, 1, 1, 1, 1, 1)?;
/// let plan = plan_pool(&pool, &layout, &heads, &PlanConfig::paper(6))?;
/// // Two elements of two bytes are a token's K and V.
/// assert_eq!(bound::moved_bytes_by_prices(&plan, 57, 1), 6 * 4);
/// # Ok::<(), libra_sched::Error>(())
/// ```
#[must_use]
pub fn moved_bytes_by_prices(plan: &PoolPlan, heaviest: u64, rounds: u32) -> u64 {
    if plan.mask != Mask::Causal || plan.lengths.has_parents() || heaviest == 0 {
        return 0;
    }
    prices::moved_bytes(plan, heaviest, rounds)
}
