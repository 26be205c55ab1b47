//! One pool, scaled down, and what each method does with its sequences.

use libra_sched::vrsp::Elastic;
use libra_sched::{
    ElementBytes, Error, HeadSplit, PackedLengths, Placer, PlanConfig, PlanId, PoolPlan,
    TokenLayout, WindowShape, plan_pool,
};

use super::reference::Reference;
use super::window::WindowPlan;
use crate::baseline::method::Method;
use crate::baseline::{Schedule, Work};
use crate::cli::Dtype;
use crate::failure::Failure;
use crate::preset::Shapes;
use crate::units::format_count;

/// Most bytes of tensors that a run may hold.
const BYTES_MAX: u64 = 4 << 30;
/// Most pairs × query heads × head width that a run may compute.
const OPERATIONS_MAX: f64 = 5e10;
/// Bytes a run holds for each element of Q, K, V, O and their gradients: inputs, results, references and what workers
/// hold and stage.
const BYTES_PER_ELEMENT: u64 = 32;

/// Which pool, and how it is made smaller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    /// Its number in the window.
    pub(crate) pool: u32,
    /// What lengths, L, B and the tokens of a mask are divided by.
    pub(crate) scale: u32,
    /// Precision.
    pub(crate) dtype: Dtype,
}

/// A pool as it is executed: a window of its own, of as many replicas as it has sequences.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// The pool with nothing moved: its lengths, head counts and mask are those of all methods.
    pub(super) home: PoolPlan,
    /// Workers of a sequence.
    pub(super) cp: u32,
    /// What each method does with it.
    pub(crate) schedules: Vec<Schedule>,
    /// Attention without a plan.
    pub(super) reference: Reference,
    /// Shapes at this scale, for people.
    pub(crate) line: String,
}

impl Pool {
    /// Pool `chosen.pool` of a window, every size divided by its scale, as each of `methods` runs it.
    pub(crate) fn new(
        window: &WindowPlan,
        shapes: &Shapes,
        chosen: Chosen,
        methods: &[Method],
    ) -> Result<Self, Failure> {
        let last = window.placement.pools() as u32 - 1;
        if chosen.pool > last {
            let pool = chosen.pool;
            return Err(Failure::NoPool { pool, last });
        }
        let lengths = scaled(&window.pool_lengths(chosen.pool)?, chosen.scale)?;
        let shapes = scaled_shapes(shapes, &lengths, chosen)?;
        let home = at_home(&lengths, &shapes)?;
        check_size(&home, chosen.scale)?;
        let schedule = |method: &Method| {
            let schedule = method.schedule_asked(&lengths, &shapes);
            schedule.map_err(|error| match method {
                // These two say themselves what does not go together.
                Method::Ulysses | Method::Libra => error,
                _ => Failure::Method {
                    method: method.name(),
                    source: Box::new(error),
                },
            })
        };
        let schedules = methods.iter().map(schedule).collect::<Result<_, _>>()?;
        Ok(Self {
            reference: Reference::new(&home)?,
            home,
            cp: shapes.window.cp(),
            schedules,
            line: line(&shapes),
        })
    }

    /// The plan that Libra made, where it was asked for.
    pub(crate) fn plan_id(&self) -> Option<PlanId> {
        let libra = (self.schedules.iter()).find(|schedule| schedule.method == Method::Libra)?;
        match &libra.groups.first()?.work {
            Work::Plan(plan) => Some(PlanId::of(plan)),
            Work::Steps(_) => None,
        }
    }
}

/// The shapes of a window that is the pool `lengths` alone.
fn scaled_shapes(
    shapes: &Shapes,
    lengths: &PackedLengths,
    chosen: Chosen,
) -> Result<Shapes, Failure> {
    let (tokens, cp) = (lengths.seq_tokens(), shapes.window.cp());
    let slots = lengths.sequences() as u32;
    Ok(Shapes {
        window: WindowShape::new(tokens.into(), slots, slots, cp, slots)?,
        layout: TokenLayout::new(shapes.layout_kind, slots, tokens, cp)?,
        plan: PlanConfig {
            mask: shapes.plan.mask.scaled_down(chosen.scale),
            block_tokens: shapes.plan.block_tokens.div_ceil(chosen.scale),
            bytes: match chosen.dtype {
                Dtype::F64 => ElementBytes::F64,
                Dtype::F32 => ElementBytes::F32,
            },
            ..shapes.plan
        },
        speeds: shapes.speeds_of(lengths.sequences()),
        elastic: Elastic::OFF,
        ..shapes.clone()
    })
}

fn at_home(lengths: &PackedLengths, shapes: &Shapes) -> Result<PoolPlan, Error> {
    let heads = &shapes.heads;
    let (q_heads, kv_heads) = (heads.q_heads(), heads.kv_heads());
    let heads = HeadSplit::new(q_heads, kv_heads, heads.dim_qk(), heads.dim_v(), 1, 1)?;
    let config = PlanConfig {
        mask: shapes.plan.mask,
        placer: Placer::Home,
        ..PlanConfig::paper(lengths.seq_tokens())
    };
    plan_pool(lengths, &shapes.layout, &heads, &config)
}

fn line(shapes: &Shapes) -> String {
    let (window, heads) = (&shapes.window, &shapes.heads);
    format!(
        "L={} P={} CP={} H={} B={} M={}  heads {}/{}x{}",
        format_count(window.seq_tokens().into()),
        window.pool_size(),
        window.cp(),
        heads.shards(),
        format_count(shapes.plan.block_tokens.into()),
        heads.chunks(),
        heads.q_heads(),
        heads.kv_heads(),
        heads.dim_qk(),
    )
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
}
