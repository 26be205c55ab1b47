//! KV: at every destination each whole group that its tiles read, each token once, from its home.

use std::collections::{BTreeMap, BTreeSet};

use super::{Violation, home_of, kv_heads_of};
use crate::exchange::KvMove;
use crate::ids::SampleId;
use crate::plan::PoolPlan;

/// (worker, sample, span): one KV group at one destination.
type Key = (u32, u32, u32);

pub(super) fn check(plan: &PoolPlan, found: &mut Vec<Violation>) {
    let needed = needed_groups(plan);
    let mut pieces: BTreeMap<Key, Vec<(u32, u32)>> = BTreeMap::new();
    for (index, m) in plan.exchange.kv.iter().enumerate() {
        check_source(plan, index, m, found);
        let key = (m.dst.0, m.sample.0, m.span);
        let tokens = plan.lengths.tokens(m.sample);
        let why = if !needed.contains(&key) {
            "are read by no tile there"
        } else if m.start < tokens.start || m.end > tokens.end {
            "lie beyond the sample"
        } else {
            pieces.entry(key).or_default().push((m.start, m.end));
            continue;
        };
        let (worker, sample, start, end) = (m.dst.0, m.sample.0, m.start, m.end);
        found.push(Violation::UselessMove {
            index,
            worker,
            sample,
            start,
            end,
            why,
        });
    }
    for &key in &needed {
        let mut there = pieces.remove(&key).unwrap_or_default();
        there.extend(held(plan, key));
        there.sort_unstable();
        check_group(plan, key, &there, found);
    }
}

/// Groups that the tiles of each worker read, from sample and head overlaps alone.
fn needed_groups(plan: &PoolPlan) -> BTreeSet<Key> {
    let mut needed = BTreeSet::new();
    for (tile, worker) in plan.tiles.iter().zip(&plan.workers) {
        let (first, end) = kv_heads_of(plan, tile.shard);
        let spans: Vec<u32> = (0..plan.heads.span_count())
            .filter(|&span| {
                let heads = plan.heads.kv_of_span(span);
                heads.start < end && first < heads.end
            })
            .collect();
        for sample in plan.lengths.samples_of(tile.slot as usize) {
            let tokens = plan.lengths.tokens(SampleId::new(sample));
            if tokens.start < tile.end && tile.start < tokens.end {
                needed.extend(spans.iter().map(|&span| (worker.0, sample as u32, span)));
            }
        }
    }
    needed
}

/// Tensor rank that holds the KV heads of `span`.
fn tensor_of(plan: &PoolPlan, span: u32) -> u32 {
    plan.heads.kv_of_span(span).start * plan.layout.tensor() / plan.heads.kv_heads()
}

fn slot_of(plan: &PoolPlan, sample: u32) -> u32 {
    let holds = |slot: &u32| {
        plan.lengths
            .samples_of(*slot as usize)
            .contains(&(sample as usize))
    };
    (0..plan.layout.slots())
        .find(holds)
        .expect("samples are numbered slot by slot")
}

/// Tokens of the group that its destination holds as a home.
fn held(plan: &PoolPlan, (worker, sample, span): Key) -> Vec<(u32, u32)> {
    let tokens = plan.lengths.tokens(SampleId(sample));
    let slot = slot_of(plan, sample);
    let tensor = tensor_of(plan, span);
    plan.layout
        .fragments(slot)
        .iter()
        .filter(|f| f.start < tokens.end && tokens.start < f.end)
        .filter(|f| home_of(plan, slot, f.start, tensor) == Some(worker))
        .map(|f| (f.start.max(tokens.start), f.end.min(tokens.end)))
        .collect()
}

/// `there` (sorted) must be the whole sample without gap or overlap.
fn check_group(plan: &PoolPlan, key: Key, there: &[(u32, u32)], found: &mut Vec<Violation>) {
    let (worker, sample, span) = key;
    let tokens = plan.lengths.tokens(SampleId(sample));
    let mut report = |start, end, times| {
        if start < end {
            found.push(Violation::Keys {
                worker,
                sample,
                span,
                start,
                end,
                times,
            });
        }
    };
    let mut covered = tokens.start;
    for &(start, end) in there {
        report(covered, start, 0);
        report(start, covered.min(end), 2);
        covered = covered.max(end);
    }
    report(covered, tokens.end, 0);
}

fn check_source(plan: &PoolPlan, index: usize, m: &KvMove, found: &mut Vec<Violation>) {
    let slot = slot_of(plan, m.sample.0);
    let tensor = tensor_of(plan, m.span);
    for f in plan.layout.fragments(slot) {
        let (start, end) = (m.start.max(f.start), m.end.min(f.end));
        let home = home_of(plan, slot, f.start, tensor);
        if start < end && home != Some(m.src.0) {
            let home = home.expect("the token of a fragment has a home");
            found.push(Violation::Source {
                index,
                src: m.src.0,
                start,
                end,
                home,
            });
        }
    }
}
