//! Trades against a count of bytes token by token.

use proptest::prelude::*;

use super::Trades;
use crate::ElementBytes;
use crate::heads::HeadSplit;
use crate::ids::{SampleId, WorkerId};
use crate::layout::{LayoutKind, TokenLayout};
use crate::lengths::PackedLengths;
use crate::mask::Mask;
use crate::placement::export::fill::Fill;
use crate::placement::export::groups::Groups;
use crate::placement::export::pieces::Pieces;
use crate::placement::export::tiles::handed_back;
use crate::placement::export::{Run, Task, price, sum_work};
use crate::placement::{Problem, Slack, targets_with};
use crate::topology::Topology;

/// A pool to place.
#[derive(Clone, Debug)]
struct Case {
    pool: PackedLengths,
    layout: TokenLayout,
    heads: HeadSplit,
    nodes: Topology,
    slack: Slack,
}

/// Bytes and loads before trades and after.
#[derive(Debug)]
struct Found {
    bytes: [u64; 2],
    loads: [Vec<u64>; 2],
    targets: Vec<u64>,
}

impl Case {
    fn trade(&self) -> Found {
        let Self {
            pool,
            layout,
            heads,
            nodes,
            slack,
        } = self;
        let problem = Problem::new(pool, layout, heads, ElementBytes::BF16).expect("legal");
        let (mut before, mut targets) = (Vec::new(), Vec::new());
        let total = sum_work(&mut before, &problem, Mask::Causal).expect("fits");
        targets_with(&mut targets, total, layout.workers(), None, *slack);
        let prices: Vec<_> = (0..heads.shards()).map(|s| price(&problem, s)).collect();
        let workers = 0..layout.workers();
        let of_workers: Vec<u32> = workers.map(|w| nodes.node(WorkerId(w))).collect();
        let task = Task {
            problem: &problem,
            mask: Mask::Causal,
            shard_width: heads.shard_width().into(),
            topology: *nodes,
            nodes: &of_workers,
            groups: &Groups::default(),
            targets: &targets,
            grain_work: 1,
            prices: &prices,
            before: &before,
            rates: &[],
        };
        let (mut pieces, mut fill) = (Pieces::default(), Fill::default());
        let mut groups = Groups::default();
        pieces.cut(&task);
        groups.find(&task, &pieces.loads);
        let groups = &groups;
        let task = Task { groups, ..task };
        pieces.gather(&task);
        pieces.free(&task);
        fill.run(&task, &mut pieces);
        let mut found = Found {
            bytes: [bytes(&task, &pieces, fill.runs()), 0],
            loads: [fill.loads().to_vec(), Vec::new()],
            targets: targets.clone(),
        };
        Trades::default().run(&task, &pieces, &mut fill);
        found.bytes[1] = bytes(&task, &pieces, fill.runs());
        found.loads[1] = fill.loads().to_vec();
        let computed = loads(&task, &owners(&task, &pieces, fill.runs()));
        assert_eq!(found.loads[1], computed, "loads are those of the runs");
        found
    }
}

/// Home and worker of every token of a shard, by shard and sequence.
fn owners(task: &Task<'_>, pieces: &Pieces, runs: &[Run]) -> Vec<Vec<Vec<(u32, u32)>>> {
    let (layout, heads) = (task.problem.layout, task.problem.heads);
    let per_rank = heads.shards() / layout.tensor();
    let away: Vec<Run> = handed_back(task, pieces)
        .chain(runs.iter().copied())
        .collect();
    let of_slot = |shard, slot| {
        let mut owners = vec![(0, 0); layout.seq_tokens() as usize];
        for fragment in layout.fragments(slot) {
            let home = layout.worker(slot, fragment.rank, shard / per_rank).0;
            owners[fragment.start as usize..fragment.end as usize].fill((home, home));
        }
        for run in away.iter().filter(|r| (r.slot, r.shard) == (slot, shard)) {
            for owner in &mut owners[run.start as usize..run.end as usize] {
                owner.1 = run.worker;
            }
        }
        owners
    };
    let shards = 0..heads.shards();
    shards
        .map(|shard| (0..layout.slots()).map(|s| of_slot(shard, s)).collect())
        .collect()
}

/// Owners of each sample's tokens, with its shard.
fn lines<'a>(
    task: &Task<'a>,
    owners: &'a [Vec<Vec<(u32, u32)>>],
) -> impl Iterator<Item = (usize, &'a [(u32, u32)])> {
    let pool = task.problem.pool;
    (0..owners.len()).flat_map(move |shard| {
        (0..pool.sequences()).flat_map(move |slot| {
            pool.samples_of(slot).map(move |sample| {
                let tokens = pool.tokens(SampleId::new(sample));
                let tokens = tokens.start as usize..tokens.end as usize;
                (shard, &owners[shard][slot][tokens])
            })
        })
    })
}

/// Bytes that move, those between nodes twice: token by token.
fn bytes(task: &Task<'_>, pieces: &Pieces, runs: &[Run]) -> u64 {
    let owners = owners(task, pieces, runs);
    let worker = |worker: u32| u64::from(worker);
    let node = |worker: u32| u64::from(task.topology.node(WorkerId(worker)));
    let mut sum = 0;
    for (shard, line) in lines(task, &owners) {
        let price = task.prices[shard];
        let moved = |as_group: &dyn Fn(u32) -> u64| {
            let line: Vec<_> = line
                .iter()
                .map(|&(h, w)| (as_group(h), as_group(w)))
                .collect();
            let qo = line.iter().filter(|(home, there)| home != there).count() as u64;
            let mut groups: Vec<u64> = line.iter().map(|&(_, there)| there).collect();
            groups.sort_unstable();
            groups.dedup();
            let keys = groups.iter().map(|&group| {
                let last = line.iter().rposition(|&(_, there)| there == group);
                let read = &line[..=last.expect("a group of the line")];
                read.iter().filter(|&&(home, _)| home != group).count() as u64
            });
            price.qo * qo + price.kv * keys.sum::<u64>()
        };
        sum += moved(&worker) + moved(&node);
    }
    sum
}

/// Work of every worker, pair by pair.
fn loads(task: &Task<'_>, owners: &[Vec<Vec<(u32, u32)>>]) -> Vec<u64> {
    let mut loads = vec![0; task.targets.len()];
    for (_, line) in lines(task, owners) {
        for (&(_, worker), keys) in line.iter().zip(1..) {
            loads[worker as usize] += keys * u64::from(task.problem.heads.shard_width());
        }
    }
    loads
}

/// Tokens of a sequence.
const TOKENS: u32 = 384;

fn case(
    sequences: Vec<Vec<u32>>,
    ranks: u32,
    shards: u32,
    gpus_per_node: u32,
    slack_ppm: u32,
    kind: LayoutKind,
) -> Case {
    let slots = sequences.len() as u32;
    Case {
        pool: PackedLengths::new(TOKENS.into(), sequences).expect("packed to fit"),
        layout: TokenLayout::new(kind, slots, TOKENS, ranks).expect("legal"),
        heads: HeadSplit::new(16, 4, 8, 8, shards, 1).expect("legal"),
        nodes: Topology::new(gpus_per_node).expect("positive"),
        slack: Slack::from_ppm(slack_ppm).expect("legal"),
    }
}

fn sequence() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        1 => Just(vec![TOKENS]),
        2 => (1..TOKENS).prop_map(|len| vec![len, TOKENS - len]),
        1 => Just(vec![12; TOKENS as usize / 12]),
        1 => (1..TOKENS / 2).prop_map(|len| vec![len]),
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    let kinds = [LayoutKind::Contiguous, LayoutKind::Zigzag];
    (
        prop::collection::vec(sequence(), 1..5),
        1u32..9,
        prop::sample::select(vec![1u32, 2, 4]),
        1u32..9,
        0u32..100_000,
        prop::sample::select(kinds.to_vec()),
    )
        .prop_map(|(sequences, ranks, shards, gpus, ppm, kind)| {
            case(sequences, ranks, shards, gpus, ppm, kind)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn trades_cost_no_byte_and_put_nobody_above_its_target(case in cases()) {
        let found = case.trade();
        prop_assert!(found.bytes[1] <= found.bytes[0], "{:?}", found.bytes);
        let [before, after] = &found.loads;
        prop_assert_eq!(before.iter().sum::<u64>(), after.iter().sum::<u64>());
        for ((&before, &after), &target) in before.iter().zip(after).zip(&found.targets) {
            prop_assert!(after <= target.max(before), "{} of {}, was {}", after, target, before);
        }
    }
}

#[test]
fn short_runs_of_long_samples_are_traded() {
    let short = vec![12; TOKENS as usize / 12];
    let sequences = vec![vec![TOKENS], vec![300, 84], short.clone(), short];
    let case = case(sequences, 8, 4, 8, 30_000, LayoutKind::Contiguous);
    let [before, after] = case.trade().bytes;
    assert!(after < before, "{after} of {before}");
}
