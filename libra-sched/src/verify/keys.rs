//! KV: at every destination what the plan's fetch says of each group that its tiles read, each token
//! once; a first hop from its home.

use std::collections::BTreeMap;

use super::mask::{self, Keys};
use super::{Violation, above, home_of, kv_heads_of};
use crate::exchange::{KvFetch, KvMove};
use crate::ids::SampleId;
use crate::plan::PoolPlan;

/// (worker, sample, span): one KV group at one destination.
type Key = (u32, u32, u32);

pub(super) fn check(plan: &PoolPlan, found: &mut Vec<Violation>) {
    let needed = needed_groups(plan);
    let mut pieces: BTreeMap<Key, Vec<(u32, u32)>> = BTreeMap::new();
    for (index, m) in plan.exchange.kv.iter().enumerate() {
        check_source(plan, index, m, found);
    }
    let lists = [
        ("KV move", &plan.exchange.kv),
        ("forward", &plan.exchange.forward),
    ];
    let moves = lists
        .iter()
        .flat_map(|&(list, moves)| moves.iter().enumerate().map(move |(i, m)| (list, i, m)));
    for (list, index, m) in moves {
        let key = (m.dst.0, m.sample.0, m.span);
        let why = match needed.get(&key) {
            None => "are read by no tile there",
            Some(ranges) if ranges.iter().all(|r| m.start < r.0 || m.end > r.1) => {
                "lie beyond what is to be fetched"
            }
            Some(_) => {
                pieces.entry(key).or_default().push((m.start, m.end));
                continue;
            }
        };
        let (worker, sample, start, end) = (m.dst.0, m.sample.0, m.start, m.end);
        found.push(Violation::UselessMove {
            list,
            index,
            worker,
            sample,
            start,
            end,
            why,
        });
    }
    for (&key, ranges) in &needed {
        let fetched = pieces.remove(&key).unwrap_or_default();
        for &range in ranges {
            let inside = |piece: &&Keys| range.0 <= piece.0 && piece.1 <= range.1;
            let mut there: Vec<Keys> = fetched.iter().filter(inside).copied().collect();
            there.extend(held(plan, key, range));
            there.sort_unstable();
            check_group(key, range, &there, found);
        }
    }
}

/// Groups that the tiles of each worker read, from sample and head overlaps alone, and the ranges of
/// tokens of each that have to be there, rising with gaps between them.
fn needed_groups(plan: &PoolPlan) -> BTreeMap<Key, Vec<Keys>> {
    let mut needed: BTreeMap<Key, Vec<Keys>> = BTreeMap::new();
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
            if tokens.start >= tile.end || tile.start >= tokens.end {
                continue;
            }
            let len = tokens.end - tokens.start;
            let ranges = match plan.kv_fetch {
                KvFetch::Whole => vec![(0, len)],
                KvFetch::Range => {
                    let first = tile.start.max(tokens.start) - tokens.start;
                    let end = tile.end.min(tokens.end) - tokens.start;
                    mask::read(plan.mask, len, (first, end))
                }
            };
            let ranges = ranges
                .iter()
                .map(|r| (tokens.start + r.0, tokens.start + r.1));
            for &span in &spans {
                let key = (worker.0, sample as u32, span);
                needed.entry(key).or_default().extend(ranges.clone());
            }
            for above in above(plan, sample) {
                let tokens = plan.lengths.tokens(SampleId::new(above));
                for &span in &spans {
                    let key = (worker.0, above as u32, span);
                    needed
                        .entry(key)
                        .or_default()
                        .push((tokens.start, tokens.end));
                }
            }
        }
    }
    for ranges in needed.values_mut() {
        *ranges = joined(std::mem::take(ranges));
    }
    needed
}

/// `ranges` in rising order, those that overlap or touch made one.
fn joined(mut ranges: Vec<Keys>) -> Vec<Keys> {
    ranges.sort_unstable();
    let mut joined: Vec<Keys> = Vec::new();
    for (start, end) in ranges {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
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

/// Tokens of `range` that the group's destination holds as a home.
fn held(plan: &PoolPlan, (worker, sample, span): Key, range: (u32, u32)) -> Vec<(u32, u32)> {
    let slot = slot_of(plan, sample);
    let tensor = tensor_of(plan, span);
    plan.layout
        .fragments(slot)
        .iter()
        .filter(|f| f.start < range.1 && range.0 < f.end)
        .filter(|f| home_of(plan, slot, f.start, tensor) == Some(worker))
        .map(|f| (f.start.max(range.0), f.end.min(range.1)))
        .collect()
}

/// `there` (sorted) must be `range` without gap or overlap.
fn check_group(key: Key, range: (u32, u32), there: &[(u32, u32)], found: &mut Vec<Violation>) {
    let (worker, sample, span) = key;
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
    let mut covered = range.0;
    for &(start, end) in there {
        report(covered, start, 0);
        report(start, covered.min(end), 2);
        covered = covered.max(end);
    }
    report(covered, range.1, 0);
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
