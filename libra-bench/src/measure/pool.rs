//! One pool, scaled down, planned by each method that is compared.

use libra_sched::{
    ElementBytes, Error, HeadSplit, KvFetch, KvRoute, PackedLengths, Placer, PlanConfig, PoolPlan,
    TokenLayout, error, plan, plan_pool, plan_pool_measured,
};

use super::reference::Reference;
use super::window::WindowPlan;
use crate::cli::Dtype;
use crate::failure::Failure;
use crate::preset::{Settings, Shapes};
use crate::units::format_count;

/// Most bytes of tensors that a run may hold.
const BYTES_MAX: u64 = 4 << 30;
/// Most pairs × query heads × head width that a run may compute.
const OPERATIONS_MAX: f64 = 5e10;
/// Bytes a run holds for each element of Q, K, V, O and their gradients: inputs, results, references and what workers
/// hold and stage.
const BYTES_PER_ELEMENT: u64 = 32;

/// The plans of one method: together they compute the whole pool, slot after slot.
#[derive(Clone, Debug)]
pub(crate) struct Method {
    /// Its name.
    pub(crate) name: &'static str,
    /// Plans of consecutive slots.
    pub(crate) plans: Vec<PoolPlan>,
}

/// A pool as it is executed.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// Ulysses, then Libra.
    pub(crate) methods: [Method; 2],
    /// Attention without a plan.
    pub(super) reference: Reference,
    /// Shapes at this scale, for people.
    pub(crate) line: String,
}

impl Method {
    /// Work of every worker, plan by plan.
    pub(crate) fn loads(&self) -> Vec<u64> {
        self.plans.iter().flat_map(PoolPlan::loads).collect()
    }
}

/// Pool `pool` of a window, every size divided by `scale`.
pub(crate) fn scaled_pool(
    window: &WindowPlan,
    shapes: &Shapes,
    settings: &Settings,
    pool: u32,
    scale: u32,
    dtype: Dtype,
) -> Result<Pool, Failure> {
    let last = window.placement.pools() as u32 - 1;
    if pool > last {
        return Err(Failure::NoPool { pool, last });
    }
    let lengths = scaled(&window.pool_lengths(pool)?, scale)?;
    let (tokens, cp) = (lengths.seq_tokens(), shapes.window.cp());
    let slots = lengths.sequences() as u32;
    let config = PlanConfig {
        mask: shapes.plan.mask.scaled_down(scale),
        block_tokens: shapes.plan.block_tokens.div_ceil(scale),
        bytes: match dtype {
            Dtype::F64 => ElementBytes::F64,
            Dtype::F32 => ElementBytes::F32,
        },
        ..shapes.plan
    };
    let layout = TokenLayout::new(settings.layout, slots, tokens, cp)?;
    let speeds = shapes.speeds_of(lengths.sequences());
    let libra = plan_pool_measured(
        &mut plan::Scratch::default(),
        &lengths,
        &layout,
        &shapes.heads,
        &config,
        shapes.measured(speeds.as_ref()),
    )?;
    check_size(&libra, scale)?;

    let heads = ulysses_heads(&shapes.heads, cp).map_err(Failure::Ulysses)?;
    let layout = TokenLayout::new(settings.layout, 1, tokens, cp)?;
    let ulysses = ulysses_config(&config, tokens);
    let plans: Result<Vec<PoolPlan>, Error> = (0..slots as usize)
        .map(|slot| {
            let one =
                PackedLengths::new(tokens.into(), [lengths.lengths_of(slot).iter().copied()])?;
            plan_pool(&one, &layout, &heads, &ulysses)
        })
        .collect();
    let plans = plans?;
    let line = format!(
        "L={} P={} CP={} H={} B={} M={}  heads {}/{}x{}",
        format_count(tokens.into()),
        slots,
        cp,
        shapes.heads.shards(),
        format_count(config.block_tokens.into()),
        shapes.heads.chunks(),
        shapes.heads.q_heads(),
        shapes.heads.kv_heads(),
        shapes.heads.dim_qk(),
    );
    Ok(Pool {
        reference: Reference::new(&libra)?,
        methods: [
            Method {
                name: "ulysses",
                plans,
            },
            Method {
                name: "libra",
                plans: vec![libra],
            },
        ],
        line,
    })
}

/// Borders of samples divided by `scale` and rounded up; samples that become empty vanish. Borders keep their order, so
/// a sequence has at most the scaled `seq_tokens`.
fn scaled(lengths: &PackedLengths, scale: u32) -> Result<PackedLengths, Error> {
    let sequence = |sequence: usize| {
        let (mut end, mut scaled_end) = (0u64, 0u64);
        let mut samples = Vec::new();
        for &length in lengths.lengths_of(sequence) {
            let start = scaled_end;
            end += u64::from(length);
            scaled_end = end.div_ceil(scale.into());
            samples.extend(Some(scaled_end - start).filter(|&length| length > 0));
        }
        samples
    };
    let tokens = lengths.seq_tokens().div_ceil(scale);
    PackedLengths::new(tokens.into(), (0..lengths.sequences()).map(sequence))
}

/// How Ulysses plans one sequence of `tokens` tokens.
pub(crate) const fn ulysses_config(config: &PlanConfig, tokens: u32) -> PlanConfig {
    PlanConfig {
        block_tokens: tokens,
        placer: Placer::HeadShard,
        // A worker of Ulysses reads whole samples.
        kv_fetch: KvFetch::Whole,
        kv_route: KvRoute::Direct,
        max_recv_bytes: None,
        ..*config
    }
}

/// One shard a worker, and as many chunks of it as there may be, up to Libra's.
pub(crate) fn ulysses_heads(heads: &HeadSplit, cp: u32) -> Result<HeadSplit, Error> {
    let split = |chunks| {
        HeadSplit::new(
            heads.q_heads(),
            heads.kv_heads(),
            heads.dim_qk(),
            heads.dim_v(),
            cp,
            chunks,
        )
    };
    let width = split(1)?.shard_width();
    let chunks = error::divisors(width.into());
    let chunks = chunks.into_iter().rfind(|&m| m <= heads.chunks().into());
    split(chunks.map_or(1, |m| m as u32))
}

/// Refuses what this machine cannot hold, or not today, and says which scale would do.
fn check_size(plan: &PoolPlan, scale: u32) -> Result<(), Failure> {
    let heads = &plan.heads;
    let width = u64::from(heads.dim_qk()) + u64::from(heads.dim_v());
    let token = 2 * width * u64::from(heads.q_heads() + heads.kv_heads());
    let tokens = u64::from(plan.layout.seq_tokens()) * u64::from(plan.layout.slots());
    let bytes = u128::from(tokens) * u128::from(token) * u128::from(BYTES_PER_ELEMENT);
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    let pairs: u64 = plan.loads().iter().sum();
    let operations = pairs as f64 * width as f64 / 2.0;
    let fits =
        |by: u64| bytes / by <= BYTES_MAX && operations / (by as f64 * by as f64) <= OPERATIONS_MAX;
    if fits(1) {
        return Ok(());
    }
    let by = (1..40).map(|power| 1u64 << power).find(|&by| fits(by));
    let scale = by.unwrap_or(1).saturating_mul(scale.into());
    Err(if bytes > BYTES_MAX {
        Failure::TooMuchMemory {
            bytes,
            limit: BYTES_MAX,
            scale,
        }
    } else {
        Failure::TooMuchWork {
            operations,
            limit: OPERATIONS_MAX,
            scale,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_samples_fit_and_keep_their_share() {
        let lengths = PackedLengths::new(64, [vec![1u32; 64], vec![33, 31]]).expect("legal");
        let scaled = scaled(&lengths, 8).expect("fits");
        assert_eq!(scaled.seq_tokens(), 8);
        assert_eq!(scaled.lengths_of(0), [1; 8]);
        assert_eq!(scaled.lengths_of(1), [5, 3]);
    }

    #[test]
    fn ulysses_has_the_most_chunks_its_shards_allow() {
        let heads = HeadSplit::new(32, 8, 4, 4, 2, 4).expect("legal");
        assert_eq!(ulysses_heads(&heads, 8).map(|h| h.chunks()), Ok(4));
        assert_eq!(ulysses_heads(&heads, 16).map(|h| h.chunks()), Ok(2));
        assert!(ulysses_heads(&heads, 5).is_err());
    }
}
