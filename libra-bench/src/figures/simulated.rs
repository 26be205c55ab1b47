//! How figures of times look: DP scaling (1), jitter (3), end to end (11), core attention (12), microbatches (14), pool
//! sizes (15), shards and blocks (16). They are made of points; who measured those does not matter here.

use super::draw::{Method, Subject, grid_at, shares};
use super::{Made, Point, Published};
use crate::plot::{Figure, Panel};

/// Corpora: name, and heading.
const CORPORA: [(&str, &str); 2] = [("256k", "256K tokens"), ("1m", "1M tokens")];
const ULYSSES: Method = Method::new("ulysses", "Ulysses", 1);
const WLB: Method = Method::new("wlb", "WLB-LLM", 4);
const DISTCA: Method = Method::new("distca", "DistCA scope", 3);
const TAP: Method = Method::new("tap", "TAP", 6);
const TAP_VRSP: Method = Method::new("tap+vrsp", "TAP+VRSP", 2);
const PAPER: Method = Method::new("paper", "Algorithms 1 and 2", 5);
const LIBRA: Method = Method::new("libra", "Libra", 0);

/// Replicas of figure 1.
pub(super) const REPLICAS: [u32; 5] = [1, 2, 4, 8, 16];
/// Shards of figure 16.
pub(super) const SHARDS: [u32; 4] = [1, 2, 4, 8];
/// Blocks of figure 16, by corpus.
pub(super) const BLOCKS: [[u32; 4]; 2] = [[2048, 4096, 8192, 16384], [4096, 8192, 16384, 32768]];

/// Where messages decide.
const LINKS: &str =
    "drawn lengths; how many GPUs the paper's nodes have, and what links them, is not published";

/// Why ours and the paper's may differ.
type Why = fn(&Published) -> &'static str;

fn made(
    figure: &'static str,
    title: &'static str,
    description: &str,
    points: Vec<Point>,
    panels: Vec<Panel>,
    why: Why,
) -> Made {
    Made {
        figure,
        points,
        drawn: Figure {
            id: format!("figure-{figure}"),
            title: format!("Figure {figure}: {title}"),
            description: description.to_owned(),
            panels,
        },
        why,
    }
}

/// A panel a corpus.
fn by_corpus(draw: impl Fn(usize, &'static str, &'static str) -> Panel) -> Vec<Panel> {
    let panel =
        |(nth, (corpus, title)): (usize, &(&'static str, &'static str))| draw(nth, corpus, title);
    CORPORA.iter().enumerate().map(panel).collect()
}

/// Figures 1 and 13: `speedup over DP=1` at `DP=n`.
pub(super) fn scaling(points: Vec<Point>) -> Made {
    let ats = REPLICAS.map(|replicas| format!("DP={replicas}"));
    let methods = [ULYSSES, PAPER, LIBRA];
    let subject = Subject::new("1", "speedup over DP=1", &points, &methods, &ats);
    let panels = by_corpus(|_, corpus, title| {
        let subject = subject.of(corpus, title);
        subject.lines("DP, replicas", "times as fast as DP 1", false)
    });
    let description = "Speed over one replica, by replicas: without balance the heaviest replica holds all others up.";
    let why: Why = |_| "drawn lengths; replicas wait at the end of a step, and all but attention is at half of the peak";
    made("1", "scaling of replicas", description, points, panels, why)
}

/// Figure 3: `spread mean %` and `spread max %` of fastest to slowest GPU, from the spread of every step.
pub(super) fn jitter(spreads_percent: &[f64]) -> Made {
    let count = spreads_percent.len().max(1) as f64;
    let point = |quantity, value| Point {
        corpus: "256 GPUs",
        method: "fastest to slowest",
        at: "500 steps".to_owned(),
        quantity,
        value,
    };
    let points = vec![
        point("spread mean %", spreads_percent.iter().sum::<f64>() / count),
        point(
            "spread max %",
            spreads_percent.iter().copied().fold(0.0, f64::max),
        ),
    ];
    let steps = Method::new("steps", "steps", 0);
    let curves = [(steps, spreads_percent.to_vec())];
    let panels = vec![shares(
        "256 GPUs, equal work",
        "slowest over fastest, %",
        &curves,
    )];
    let description =
        "Which share of steps has at most so large a spread between GPUs of equal work.";
    made(
        "3",
        "equal work, unequal times",
        description,
        points,
        panels,
        |_| "chosen: the jitter of the cluster is fitted to these two numbers",
    )
}

/// Figure 11: `speedup over ulysses` at `64 GPUs` and so on, by model and corpus.
pub(super) fn end_to_end(points: Vec<Point>, settings: &[&'static str], gpus: &[u32]) -> Made {
    let ats: Vec<String> = gpus.iter().map(|gpus| format!("{gpus} GPUs")).collect();
    let methods = [ULYSSES, WLB, PAPER, LIBRA];
    let subject = Subject::new("11", "speedup over ulysses", &points, &methods, &ats);
    let panel = |&corpus: &&'static str| {
        let subject = subject.of(corpus, corpus);
        subject.lines("cluster", "times as fast as Ulysses", false)
    };
    let panels = settings.iter().map(panel).collect();
    let description = "Training speed over Ulysses on as many GPUs, by model, corpus and cluster.";
    let why: Why = |paper| match paper.quantity.as_str() {
        "speedup over wlb" => {
            "drawn lengths; repacked microbatches here cost no more than their attention"
        }
        _ => "drawn lengths; all but attention is at half of the peak, experts are even",
    };
    made(
        "11",
        "training end to end",
        description,
        points,
        panels,
        why,
    )
}

/// Figure 12: `straggler over ulysses mean`, `mean` and `worst`.
pub(super) fn core_attention(points: Vec<Point>) -> Made {
    let ats = ["mean", "worst"].map(str::to_owned);
    let methods = [ULYSSES, WLB, DISTCA, TAP, TAP_VRSP, PAPER, LIBRA];
    let quantity = "straggler over ulysses mean";
    let subject = Subject::new("12", quantity, &points, &methods, &ats);
    let panels = by_corpus(|_, corpus, title| {
        let subject = subject.of(corpus, title);
        subject.bars("slowest worker, Ulysses' mean = 1")
    });
    let mut points = points;
    points.extend(ratios(&points));
    let description =
        "Time of the slowest worker in the mean step and in the worst, over Ulysses' mean.";
    made(
        "12",
        "core attention by method",
        description,
        points,
        panels,
        |paper| match paper.quantity.as_str() {
            "speedup over ulysses" | "less than wlb %" => {
                "drawn lengths; 8 KV heads, of which the paper says nothing"
            }
            _ => LINKS,
        },
    )
}

/// What the paper says of figure 12: how much faster one method is than another, or how much less time it takes.
fn ratios(points: &[Point]) -> Vec<Point> {
    let value = |corpus: &str, method: Method, at: &str| {
        let is = |point: &&Point| {
            (point.corpus, point.method, point.at.as_str()) == (corpus, method.name, at)
        };
        points.iter().find(is).map(|point| point.value)
    };
    let less = |own: f64, other: f64| (1.0 - own / other) * 100.0;
    let mut ratios = Vec::new();
    for (corpus, _) in CORPORA {
        for at in ["mean", "worst"] {
            let mut add = |own: Method, other: Method, quantity, ratio: fn(f64, f64) -> f64| {
                if let (Some(one), Some(two)) = (value(corpus, own, at), value(corpus, other, at)) {
                    ratios.push(Point {
                        corpus,
                        method: own.name,
                        at: at.to_owned(),
                        quantity,
                        value: ratio(one, two),
                    });
                }
            };
            add(PAPER, ULYSSES, "speedup over ulysses", |own, other| {
                other / own
            });
            add(PAPER, WLB, "less than wlb %", less);
            add(PAPER, DISTCA, "less than distca %", less);
            add(TAP_VRSP, TAP, "less than tap %", less);
            add(PAPER, TAP_VRSP, "less than tap+vrsp %", less);
            add(LIBRA, ULYSSES, "speedup over ulysses", |own, other| {
                other / own
            });
            add(LIBRA, PAPER, "less than paper %", less);
        }
    }
    ratios
}

/// Figure 14: forward times of microbatches over Libra's mean, by corpus: Ulysses', then Libra's.
pub(super) fn microbatches(times: &[[Vec<f64>; 2]; 2]) -> Made {
    let mut points = Vec::new();
    for ((corpus, _), times) in CORPORA.iter().zip(times) {
        for (method, times) in [ULYSSES, PAPER].iter().zip(times) {
            let count = times.len().max(1) as f64;
            for (at, value) in [
                ("least", times.iter().copied().fold(f64::INFINITY, f64::min)),
                ("mean", times.iter().sum::<f64>() / count),
                ("most", times.iter().copied().fold(0.0, f64::max)),
            ] {
                points.push(Point {
                    corpus,
                    method: method.name,
                    at: at.to_owned(),
                    quantity: "forward over paper mean",
                    value,
                });
            }
        }
    }
    let panels = by_corpus(|nth, _, title| {
        let [ulysses, paper] = times[nth].clone();
        shares(
            title,
            "forward time, Libra's mean = 1",
            &[(ULYSSES, ulysses), (PAPER, paper)],
        )
    });
    let description = "Which share of microbatches takes at most so long: the right end is what a pipeline waits for.";
    let why: Why = |_| "drawn lengths; a layer by itself, where the paper's mean of 4.14 at equal work must hold waits for others";
    made("14", "microbatches", description, points, panels, why)
}

/// Figure 15: `computation over ulysses` and `communication over ulysses` at `P=n`.
pub(super) fn pool_sizes(points: Vec<Point>, sizes: &[u32]) -> Made {
    let ats: Vec<String> = sizes.iter().map(|size| format!("P={size}")).collect();
    let methods = [TAP, TAP_VRSP, PAPER, LIBRA];
    let mut panels = Vec::new();
    for (quantity, what) in [
        ("computation over ulysses", "computation"),
        ("communication over ulysses", "all but computation"),
        ("straggler over ulysses", "both"),
    ] {
        let subject = Subject::new("15", quantity, &points, &methods, &ats);
        panels.extend(by_corpus(|_, corpus, title| {
            let title = format!("{title}: {what}");
            let subject = subject.of(corpus, &title);
            subject.lines("P, sequences of a pool", "Ulysses' mean = 1", false)
        }));
    }
    let description = "Time of the slowest worker by pool size: computing falls and levels off, communication grows.";
    let why: Why = |paper| match paper.quantity.as_str() {
        "computation over ulysses" => "drawn lengths; attention by a table of kernel speeds",
        _ => LINKS,
    };
    made("15", "pool sizes", description, points, panels, why)
}

/// Figure 16: `speedup over ulysses` at [`grid_at`].
pub(super) fn shards_and_blocks(points: Vec<Point>) -> Made {
    let mut ats = Vec::new();
    for blocks in BLOCKS {
        ats.extend(
            SHARDS
                .iter()
                .flat_map(|&shards| blocks.map(|block| grid_at(shards, block))),
        );
    }
    let methods = [TAP_VRSP];
    let subject = Subject::new("16", "speedup over ulysses", &points, &methods, &ats);
    let panels = by_corpus(|nth, corpus, title| {
        let subject = subject.of(corpus, title);
        subject.grid(&TAP_VRSP, &SHARDS, &BLOCKS[nth])
    });
    let description = "Speed over Ulysses by head shards and block size, without overlap: diagonals have as many tiles.";
    made(
        "16",
        "shards and blocks",
        description,
        points,
        panels,
        |_| LINKS,
    )
}

#[cfg(test)]
mod tests;
