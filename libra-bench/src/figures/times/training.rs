//! Whole steps: scaling of replicas (1, 13), GPUs that differ (3), training end to end (11), microbatches (14).

use super::{Setup, point, steps};
use crate::baseline::method::Method;
use crate::failure::Failure;
use crate::figures::grouping::CORPORA;
use crate::figures::simulated::{self, REPLICAS};
use crate::figures::{Effort, Made, Point};
use crate::interrupt;
use crate::simulate::cluster::{Cluster, JitterSection};
use crate::simulate::jitter;
use crate::simulate::step::MethodTimes;

/// What scaling and microbatches are of.
const MOE_30B: &str = "qwen3-30b-a3b";

const SCALED: [Method; 3] = [Method::Ulysses, Method::Paper, Method::Libra];

pub(in crate::figures) fn scaling_steps(windows: u64) -> u64 {
    steps(CORPORA.len() * REPLICAS.len() * SCALED.len(), windows)
}

/// Figures 1 and 13; `None` where the user asked for an end.
pub(in crate::figures) fn scaling(
    effort: Effort,
    cluster: &Cluster,
    step: &(dyn Fn() + Sync),
) -> Result<Option<Made>, Failure> {
    let mut points = Vec::new();
    for corpus in &CORPORA {
        let mut alone_ms = Vec::new();
        for replicas in REPLICAS {
            let mut setup = Setup::new(corpus, effort, cluster)?.of_model(MOE_30B)?;
            setup.settings.dp = replicas;
            setup.settings.pool_size = setup.settings.pool_size.min(replicas);
            if effort.is_small {
                setup.settings.gbs = REPLICAS[REPLICAS.len() - 1];
            }
            let Some(times) = setup.run(&SCALED, effort, step)? else {
                return Ok(None);
            };
            if alone_ms.is_empty() {
                alone_ms = times.iter().map(|method| method.step_ms_mean).collect();
            }
            let at = format!("DP={replicas}");
            for (method, alone_ms) in times.iter().zip(&alone_ms) {
                let speedup = alone_ms / method.step_ms_mean;
                points.push(point(
                    corpus.name,
                    method,
                    &at,
                    "speedup over DP=1",
                    speedup,
                ));
            }
        }
    }
    Ok(Some(simulated::scaling(points)))
}

/// GPUs and steps of figure 3.
const GPUS: u64 = 256;
const STEPS: u64 = 500;

pub(in crate::figures) fn jitter_steps(_: u64) -> u64 {
    1
}

/// Figure 3; `None` where the user asked for an end.
pub(in crate::figures) fn jitter(
    _: Effort,
    cluster: &Cluster,
    step: &(dyn Fn() + Sync),
) -> Result<Option<Made>, Failure> {
    let spread = |step| spread_percent(&cluster.file.jitter, step);
    let spreads: Vec<f64> = (0..STEPS).map(spread).collect();
    step();
    Ok((!interrupt::requested()).then(|| simulated::jitter(&spreads)))
}

/// Slowest over fastest GPU less 1, but for the slowest and the fastest of all, as the paper leaves them out.
fn spread_percent(jitter: &JitterSection, step: u64) -> f64 {
    let mut factors: Vec<f64> = (0..GPUS)
        .map(|gpu| jitter::factor(jitter, step, gpu))
        .collect();
    factors.sort_by(f64::total_cmp);
    (factors[factors.len() - 2] / factors[1] - 1.0) * 100.0
}

/// Heads of panels, in the order of models and corpora.
const TRAINED: [(&str, &str, usize); 6] = [
    ("8B, 256K", "qwen3-8b", 0),
    ("8B, 1M", "qwen3-8b", 1),
    ("30B-A3B, 256K", MOE_30B, 0),
    ("30B-A3B, 1M", MOE_30B, 1),
    ("235B-A22B, 256K", "qwen3-235b-a22b", 0),
    ("235B-A22B, 1M", "qwen3-235b-a22b", 1),
];
const CLUSTERS: [u32; 3] = [64, 128, 256];
/// CP, PP and the largest P, by corpus.
const TRAINED_AT: [(u32, u32, u32); 2] = [(4, 4, 8), (16, 2, 4)];
const TRAINERS: [Method; 4] = [Method::Ulysses, Method::Wlb, Method::Paper, Method::Libra];

pub(in crate::figures) fn end_to_end_steps(windows: u64) -> u64 {
    steps(TRAINED.len() * CLUSTERS.len() * TRAINERS.len(), windows)
}

/// Figure 11; `None` where the user asked for an end.
pub(in crate::figures) fn end_to_end(
    effort: Effort,
    cluster: &Cluster,
    step: &(dyn Fn() + Sync),
) -> Result<Option<Made>, Failure> {
    let mut points = Vec::new();
    for (name, model, corpus) in TRAINED {
        let (cp, pp, most) = TRAINED_AT[corpus];
        for gpus in CLUSTERS {
            let mut setup = Setup::new(&CORPORA[corpus], effort, cluster)?.of_model(model)?;
            let replicas = gpus / (cp * pp);
            setup.settings.cp = cp;
            setup.settings.pp = pp;
            setup.settings.dp = replicas;
            setup.settings.pool_size = most.min(replicas);
            if effort.is_small {
                setup.settings.gbs = CLUSTERS[CLUSTERS.len() - 1] / (cp * pp);
            }
            let Some(times) = setup.run(&TRAINERS, effort, step)? else {
                return Ok(None);
            };
            let at = format!("{gpus} GPUs");
            let [ulysses, wlb] = [&times[0], &times[1]].map(|method| method.step_ms_mean);
            for method in &times {
                let mut add = |quantity, base_ms: f64| {
                    points.push(point(
                        name,
                        method,
                        &at,
                        quantity,
                        base_ms / method.step_ms_mean,
                    ));
                };
                add("speedup over ulysses", ulysses);
                add("speedup over wlb", wlb);
            }
        }
    }
    points.extend(over_settings(&points));
    let names = TRAINED.map(|(name, ..)| name);
    Ok(Some(simulated::end_to_end(points, &names, &CLUSTERS)))
}

/// What the paper says of all settings together.
fn over_settings(points: &[Point]) -> Vec<Point> {
    let mut all = Vec::new();
    for method in ["paper", "libra"] {
        let mut add = |at: &str, quantity, gpus: &str, of: fn(&[f64]) -> f64| {
            let is = |point: &&Point| {
                (point.method, point.quantity) == (method, quantity) && point.at.starts_with(gpus)
            };
            let values: Vec<f64> = points.iter().filter(is).map(|point| point.value).collect();
            all.push(Point {
                corpus: "all",
                method,
                at: at.to_owned(),
                quantity,
                value: of(&values),
            });
        };
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        add("slowest setting", "speedup over ulysses", "", least);
        add("fastest setting", "speedup over ulysses", "", most);
        add("64 GPUs, least", "speedup over wlb", "64 ", least);
        add("64 GPUs, most", "speedup over wlb", "64 ", most);
        add("256 GPUs, mean", "speedup over wlb", "256 ", mean);
        add("256 GPUs, most", "speedup over wlb", "256 ", most);
    }
    all
}

const IN_PIPELINE: [Method; 2] = [Method::Ulysses, Method::Paper];

pub(in crate::figures) fn microbatches_steps(windows: u64) -> u64 {
    steps(CORPORA.len() * IN_PIPELINE.len(), windows)
}

/// Figure 14; `None` where the user asked for an end.
pub(in crate::figures) fn microbatches(
    effort: Effort,
    cluster: &Cluster,
    step: &(dyn Fn() + Sync),
) -> Result<Option<Made>, Failure> {
    let mut all = [const { [const { Vec::new() }; 2] }; 2];
    for (corpus, all) in CORPORA.iter().zip(&mut all) {
        let mut setup = Setup::new(corpus, effort, cluster)?.of_model(MOE_30B)?;
        setup.settings.dp = 4;
        setup.settings.pp = 2;
        setup.settings.pool_size = 4;
        if effort.is_small {
            setup.settings.gbs = 8;
        }
        let Some(times) = setup.run(&IN_PIPELINE, effort, step)? else {
            return Ok(None);
        };
        let sequences = setup.settings.gbs as usize;
        *all = [0, 1].map(|method| over_mean(&times[method], &times[1], sequences));
    }
    Ok(Some(simulated::microbatches(&all)))
}

/// Forward times of a layer over `base`'s mean of the same window.
fn over_mean(method: &MethodTimes, base: &MethodTimes, sequences: usize) -> Vec<f64> {
    let mut over = Vec::new();
    let windows = method
        .layer_ns
        .chunks(sequences)
        .zip(base.layer_ns.chunks(sequences));
    for (times_ns, base_ns) in windows {
        let mean_ns = base_ns.iter().sum::<u64>() as f64 / base_ns.len() as f64;
        over.extend(times_ns.iter().map(|&time_ns| time_ns as f64 / mean_ns));
    }
    over
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_summed_up_by_cluster() {
        let over_wlb = |gpus, value| Point {
            corpus: "8B, 256K",
            method: "paper",
            at: format!("{gpus} GPUs"),
            quantity: "speedup over wlb",
            value,
        };
        let all = over_settings(&[over_wlb(64, 1.25), over_wlb(64, 1.5), over_wlb(256, 2.0)]);
        let of = |at: &str| {
            let is = |point: &&Point| point.method == "paper" && point.at == at;
            all.iter().find(is).map(|point| point.value)
        };
        assert_eq!(of("64 GPUs, least"), Some(1.25));
        assert_eq!(of("64 GPUs, most"), Some(1.5));
        assert_eq!(of("256 GPUs, mean"), Some(2.0));
    }
}
