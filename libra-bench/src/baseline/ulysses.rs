//! DeepSpeed Ulysses: an all-to-all gives each of the CP workers of a sequence all its tokens in h_q/CP heads, and
//! another one takes O back. Jacobs et al. 2023, arXiv 2309.14509.
//!
//! Forward a worker receives (CP−1)/CP · L/CP · d·b · (2·h_q + 2·max(h_kv, CP)) bytes: Q, O and, copied where CP > h_kv,
//! K and V. O(samples) a sequence.

use libra_sched::PackedLengths;

use super::pools::{Pools, in_arrival_order};
use crate::failure::Failure;
use crate::measure::{ulysses_config, ulysses_heads};
use crate::preset::Shapes;

/// A plan a sequence, in arrival order.
pub(super) fn pools(window: &PackedLengths, shapes: &Shapes) -> Result<Pools, Failure> {
    let heads = ulysses_heads(&shapes.heads, shapes.window.cp()).map_err(Failure::Ulysses)?;
    let ulysses = Shapes {
        heads,
        plan: ulysses_config(&shapes.plan, shapes.window.seq_tokens()),
        costs: None,
        speeds: None,
        ..shapes.clone()
    };
    Ok(Pools {
        shapes: ulysses,
        pools: in_arrival_order(window.sequences(), 1),
    })
}
