//! Attention without a plan, one KV head of one sequence at a time, so that cores share the work.

use libra_exec::{PoolOutputs, PoolTensors, unsharded};
use libra_sched::{Error, HeadSplit, PlanConfig, PoolPlan, SequenceId, TokenLayout, plan_pool};
use num_traits::Float;
use rayon::prelude::*;

/// The heads and lengths of a pool, cut into parts that share no number.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    heads: HeadSplit,
    /// One KV head of each sequence. Only lengths, head counts and mask of these plans are read.
    slots: Vec<PoolPlan>,
}

impl Reference {
    /// For the pool that `plan` plans.
    pub(super) fn new(plan: &PoolPlan) -> Result<Self, Error> {
        let (heads, tokens) = (plan.heads.clone(), plan.lengths.seq_tokens());
        let one = HeadSplit::new(heads.group(), 1, heads.dim_qk(), heads.dim_v(), 1, 1)?;
        let layout = TokenLayout::new(libra_sched::LayoutKind::Contiguous, 1, tokens, 1)?;
        let config = PlanConfig {
            mask: plan.mask,
            ..PlanConfig::paper(tokens)
        };
        let slot = |slot: usize| {
            let lengths = plan.lengths.select(&[SequenceId::new(slot)])?;
            plan_pool(&lengths, &layout, &one, &config)
        };
        let slots = (0..plan.lengths.sequences()).map(slot);
        Ok(Self {
            slots: slots.collect::<Result<_, _>>()?,
            heads,
        })
    }

    /// Forward and backward in `T` throughout: to the last bit what one loop over the pool computes, as no number
    /// depends on another KV head or sequence.
    pub(super) fn attention<T: Float + Send + Sync>(
        &self,
        inputs: &PoolTensors<T>,
    ) -> PoolOutputs<T> {
        let (h_kv, group) = (self.heads.kv_heads() as usize, self.heads.group() as usize);
        let (d_qk, d_v) = (self.heads.dim_qk() as usize, self.heads.dim_v() as usize);
        let columns = |slots: &[Vec<T>], slot: usize, head: usize, width: usize| {
            let rows = slots[slot].chunks_exact(h_kv * width);
            let own = rows.flat_map(|row| &row[head * width..(head + 1) * width]);
            vec![own.copied().collect::<Vec<T>>()]
        };
        let parts: Vec<PoolOutputs<T>> = (0..self.slots.len() * h_kv)
            .into_par_iter()
            .map(|part| {
                let (slot, head) = (part / h_kv, part % h_kv);
                let own = PoolTensors {
                    q: columns(&inputs.q, slot, head, group * d_qk),
                    k: columns(&inputs.k, slot, head, d_qk),
                    v: columns(&inputs.v, slot, head, d_v),
                    d_o: columns(&inputs.d_o, slot, head, group * d_v),
                };
                unsharded::attention(&self.slots[slot], &own)
            })
            .collect();
        let joined = |of: fn(&PoolOutputs<T>) -> &Vec<Vec<T>>, width: usize| {
            let slots = parts.chunks_exact(h_kv);
            slots.map(|heads| interleaved(heads, of, width)).collect()
        };
        PoolOutputs {
            o: joined(|part| &part.o, group * d_v),
            d_q: joined(|part| &part.d_q, group * d_qk),
            d_k: joined(|part| &part.d_k, d_qk),
            d_v: joined(|part| &part.d_v, d_v),
        }
    }
}

/// Rows of one slot from the rows of its KV heads, `width` elements of each.
fn interleaved<T: Copy>(
    heads: &[PoolOutputs<T>],
    of: fn(&PoolOutputs<T>) -> &Vec<Vec<T>>,
    width: usize,
) -> Vec<T> {
    let rows = of(&heads[0])[0].len() / width;
    let row = |row: usize| {
        let own = move |head: &PoolOutputs<T>| of(head)[0][row * width..(row + 1) * width].to_vec();
        heads.iter().flat_map(own)
    };
    (0..rows).flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use libra_sched::{LayoutKind, PackedLengths};

    #[test]
    fn parts_put_together_are_attention_over_the_whole_pool() {
        let lengths = PackedLengths::new(12, [vec![7u32, 4], vec![12]]).expect("legal");
        let layout = TokenLayout::new(LayoutKind::Zigzag, 2, 12, 2).expect("legal");
        let heads = HeadSplit::new(6, 3, 4, 5, 2, 1).expect("legal");
        let plan = plan_pool(&lengths, &layout, &heads, &PlanConfig::paper(4)).expect("legal");
        let inputs = PoolTensors::<f64>::random(&plan, 7);
        let reference = Reference::new(&plan).expect("legal");
        assert_eq!(
            reference.attention(&inputs),
            unsharded::attention(&plan, &inputs)
        );
    }
}
