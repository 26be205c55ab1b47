//! dK and dV are summed in one order: home first, then rising senders, a relay's node before that.

mod common;

use common::{Case, case};
use libra_exec::PoolTensors;
use libra_exec::cpu::{CpuPool, ReferenceKernel};
use libra_sched::{KvMove, PoolPlan, SampleId, WorkerId};
use proptest::prelude::*;

/// `inputs` with dO of the queries and heads that `worker` computes, and zeros elsewhere.
fn of_worker(plan: &PoolPlan, inputs: &PoolTensors<f64>, worker: WorkerId) -> PoolTensors<f64> {
    let (width, heads) = (plan.heads.dim_v() as usize, plan.heads.q_heads() as usize);
    let mut only = inputs.clone();
    only.d_o.iter_mut().for_each(|slot| slot.fill(0.0));
    let tiles = plan.tiles.iter().zip(&plan.workers);
    for (tile, _) in tiles.filter(|(_, w)| **w == worker) {
        for token in tile.start as usize..tile.end as usize {
            for head in plan.heads.q_of_shard(tile.shard) {
                let first = (token * heads + head as usize) * width;
                let slot = tile.slot as usize;
                let own = first..first + width;
                only.d_o[slot][own.clone()].copy_from_slice(&inputs.d_o[slot][own]);
            }
        }
    }
    only
}

/// Senders of `moves` of token `token` in KV span `span` to `dst`, rising: those who fetched it there.
fn senders(moves: &[KvMove], dst: WorkerId, sample: SampleId, span: u32, token: u32) -> Vec<usize> {
    let of = |m: &&KvMove| (m.src, m.sample, m.span) == (dst, sample, span);
    let covers = |m: &&KvMove| m.start <= token && token < m.end;
    let mut senders: Vec<usize> = moves
        .iter()
        .filter(of)
        .filter(covers)
        .map(|m| m.dst.index())
        .collect();
    senders.sort_unstable();
    senders
}

/// The sum of `shares`, one a worker, of every element of dK or dV, `width` a token and KV head.
fn summed(plan: &PoolPlan, shares: &[Vec<Vec<f64>>], width: usize) -> Vec<Vec<f64>> {
    let (heads, layout) = (&plan.heads, &plan.layout);
    let mut sums: Vec<Vec<f64>> = shares[0].iter().map(|slot| vec![0.0; slot.len()]).collect();
    for sample in (0..plan.lengths.samples()).map(SampleId::new) {
        let holds = |slot: &u32| {
            let samples = plan.lengths.samples_of(*slot as usize);
            samples.contains(&sample.index())
        };
        let slot = (0..layout.slots()).find(holds).expect("a slot");
        for token in plan.lengths.tokens(sample) {
            let fragments = layout.fragments(slot).iter();
            let mut near = fragments.filter(|f| f.start <= token && token < f.end);
            let rank = near.next().expect("a fragment").rank;
            for span in 0..heads.span_count() {
                for head in heads.kv_of_span(span) {
                    let home = layout.worker(slot, rank, layout.tensor_of_kv(heads, head));
                    let first =
                        (token as usize * heads.kv_heads() as usize + head as usize) * width;
                    for at in first..first + width {
                        let share = |worker: usize| shares[worker][slot as usize][at];
                        let mut sum = share(home.index());
                        for relay in senders(&plan.exchange.kv, home, sample, span, token) {
                            let mut own = share(relay);
                            let relay = WorkerId::new(relay);
                            for reader in
                                senders(&plan.exchange.forward, relay, sample, span, token)
                            {
                                own += share(reader);
                            }
                            sum += own;
                        }
                        sums[slot as usize][at] = sum;
                    }
                }
            }
        }
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn gradients_are_summed_home_first_then_by_rising_sender_each_with_its_node(case in case()) {
        let Case { plan, mode, seed } = case;
        let inputs = PoolTensors::<f64>::random(&plan, seed);
        let pool = CpuPool::new(&plan, mode, ReferenceKernel);
        let run = |inputs: &PoolTensors<f64>| pool.run(inputs).expect("runs").outputs;
        let all = run(&inputs);
        // A worker without dO adds exact zeros, so what is left is the other's share.
        let shares: Vec<_> = (0..plan.layout.workers())
            .map(|worker| run(&of_worker(&plan, &inputs, WorkerId(worker))))
            .collect();
        let d_k: Vec<_> = shares.iter().map(|share| share.d_k.clone()).collect();
        let d_v: Vec<_> = shares.iter().map(|share| share.d_v.clone()).collect();
        prop_assert_eq!(&all.d_k, &summed(&plan, &d_k, plan.heads.dim_qk() as usize));
        prop_assert_eq!(&all.d_v, &summed(&plan, &d_v, plan.heads.dim_v() as usize));
    }
}
