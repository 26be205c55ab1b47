//! One layer's attention by itself: methods (12), pool sizes (15), shards and blocks (16).

use super::{Setup, point, steps};
use crate::baseline::method::Method;
use crate::failure::Failure;
use crate::figures::draw::grid_at;
use crate::figures::grouping::{CORPORA, Corpus};
use crate::figures::simulated::{self, BLOCKS, SHARDS};
use crate::figures::{Effort, Made};
use crate::simulate::cluster::Cluster;
use crate::simulate::step::MethodTimes;

/// Query heads of the paper's synthetic attention.
const QUERY_HEADS: u32 = 128;
/// The paper names none but the 16 and 4 of figure 16; 8 are between them, and are Qwen3-8B's.
const KV_HEADS: u32 = 8;
/// Replicas of figures 12 and 15, by corpus.
const REPLICAS: [u32; 2] = [32, 16];
/// Pools of figure 15.
const SIZES: [u32; 5] = [2, 4, 8, 16, 32];
/// Replicas and sequences of a pool in figure 16, by corpus.
const GRID_REPLICAS: [u32; 2] = [8, 4];
const GRID_KV_HEADS: [u32; 2] = [16, 4];

const BY_METHOD: [Method; 7] = [
    Method::Ulysses,
    Method::Wlb,
    Method::DistCa,
    Method::Tap,
    Method::TapVrsp,
    Method::Paper,
    Method::Libra,
];
const BY_SIZE: [Method; 4] = [Method::Tap, Method::TapVrsp, Method::Paper, Method::Libra];

/// Attention of `replicas` replicas without a model.
fn setup(
    corpus: &Corpus,
    replicas: u32,
    effort: Effort,
    cluster: &Cluster,
) -> Result<Setup, Failure> {
    let mut setup = Setup::new(corpus, effort, cluster)?;
    setup.settings.dp = replicas;
    setup.settings.q_heads = QUERY_HEADS;
    setup.settings.kv_heads = KV_HEADS;
    if effort.is_small {
        setup.settings.gbs = replicas;
    }
    Ok(setup)
}

pub(in crate::figures) fn core_attention_steps(windows: u64) -> u64 {
    2 * steps(BY_METHOD.len(), windows)
}

/// Figure 12; `None` where the user asked for an end.
pub(in crate::figures) fn core_attention(
    effort: Effort,
    cluster: &Cluster,
    step: &(dyn Fn() + Sync),
) -> Result<Option<Made>, Failure> {
    let mut points = Vec::new();
    for (corpus, replicas) in CORPORA.iter().zip(REPLICAS) {
        let setup = setup(corpus, replicas, effort, cluster)?;
        let Some(times) = setup.run(&BY_METHOD, effort, step)? else {
            return Ok(None);
        };
        let base_ms = times[0].straggler_ms_mean;
        let quantity = "straggler over ulysses mean";
        for method in &times {
            let mut add =
                |at, ms| points.push(point(corpus.name, method, at, quantity, ms / base_ms));
            add("mean", method.straggler_ms_mean);
            add("worst", worst_ms(method, setup.ga()));
        }
    }
    Ok(Some(simulated::core_attention(points)))
}

/// The slowest GA index of a window, mean of windows.
fn worst_ms(method: &MethodTimes, ga: usize) -> f64 {
    let windows = method.straggler_ns.chunks(ga);
    let count = windows.len().max(1) as f64;
    let worst = windows.map(|window| window.iter().copied().max().unwrap_or(0) as f64);
    worst.sum::<f64>() / count / 1e6
}

/// Pools of figure 15 where there are `replicas`.
fn sizes(replicas: u32) -> impl Iterator<Item = u32> {
    SIZES.into_iter().filter(move |&size| size <= replicas)
}

pub(in crate::figures) fn pool_sizes_steps(windows: u64) -> u64 {
    let by_size: usize = REPLICAS
        .map(|replicas| sizes(replicas).count())
        .iter()
        .sum();
    steps(2 + by_size * BY_SIZE.len(), windows)
}

/// Figure 15; `None` where the user asked for an end.
pub(in crate::figures) fn pool_sizes(
    effort: Effort,
    cluster: &Cluster,
    step: &(dyn Fn() + Sync),
) -> Result<Option<Made>, Failure> {
    let mut points = Vec::new();
    for (corpus, replicas) in CORPORA.iter().zip(REPLICAS) {
        let mut setup = setup(corpus, replicas, effort, cluster)?;
        let Some(ulysses) = setup.run(&[Method::Ulysses], effort, step)? else {
            return Ok(None);
        };
        let base_ms = ulysses[0].straggler_ms_mean;
        for size in sizes(replicas) {
            setup.settings.pool_size = size;
            let Some(times) = setup.run(&BY_SIZE, effort, step)? else {
                return Ok(None);
            };
            let at = format!("P={size}");
            for method in &times {
                let mut add = |quantity, ms: f64| {
                    points.push(point(corpus.name, method, &at, quantity, ms / base_ms));
                };
                let (all_ms, work_ms) = (method.straggler_ms_mean, method.busiest_compute_ms_mean);
                add("computation over ulysses", work_ms);
                // As the paper has it: all but computing.
                add("communication over ulysses", all_ms - work_ms);
                add("straggler over ulysses", all_ms);
            }
        }
    }
    Ok(Some(simulated::pool_sizes(points, &SIZES)))
}

pub(in crate::figures) fn shards_and_blocks_steps(windows: u64) -> u64 {
    let settings = BLOCKS.len() * BLOCKS[0].len() * SHARDS.len();
    steps(BLOCKS.len() + settings, windows)
}

/// Figure 16; `None` where the user asked for an end.
pub(in crate::figures) fn shards_and_blocks(
    effort: Effort,
    cluster: &Cluster,
    step: &(dyn Fn() + Sync),
) -> Result<Option<Made>, Failure> {
    let mut points = Vec::new();
    for (nth, corpus) in CORPORA.iter().enumerate() {
        let mut setup = setup(corpus, GRID_REPLICAS[nth], effort, cluster)?;
        setup.settings.kv_heads = GRID_KV_HEADS[nth];
        setup.settings.pool_size = GRID_REPLICAS[nth];
        let Some(ulysses) = setup.run(&[Method::Ulysses], effort, step)? else {
            return Ok(None);
        };
        for shards in SHARDS {
            for block in BLOCKS[nth] {
                setup.settings.head_shards = shards;
                setup.settings.block_tokens = effort.tokens(block);
                let Some(times) = setup.run(&[Method::TapVrsp], effort, step)? else {
                    return Ok(None);
                };
                let speedup = ulysses[0].straggler_ms_mean / times[0].straggler_ms_mean;
                let at = grid_at(shards, block);
                points.push(point(
                    corpus.name,
                    &times[0],
                    &at,
                    "speedup over ulysses",
                    speedup,
                ));
            }
        }
    }
    Ok(Some(simulated::shards_and_blocks(points)))
}
