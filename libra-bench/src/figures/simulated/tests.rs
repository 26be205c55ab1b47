use super::*;

fn point(
    corpus: &'static str,
    method: &'static str,
    at: &str,
    quantity: &'static str,
    value: f64,
) -> Point {
    Point {
        corpus,
        method,
        at: at.to_owned(),
        quantity,
        value,
    }
}

/// Made-up times in the shape that each figure takes.
fn all() -> Vec<Made> {
    let mut scale = Vec::new();
    let (mut bars, mut pools, mut grid, mut training) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (nth, (corpus, _)) in CORPORA.iter().enumerate() {
        for replicas in REPLICAS {
            scale.push(point(
                corpus,
                "paper",
                &format!("DP={replicas}"),
                "speedup over DP=1",
                f64::from(replicas) * 0.8,
            ));
        }
        for (method, value) in [
            ("ulysses", 1.0),
            ("wlb", 0.8),
            ("distca", 0.5),
            ("tap", 0.45),
            ("tap+vrsp", 0.4),
            ("paper", 0.25),
        ] {
            bars.push(point(
                corpus,
                method,
                "mean",
                "straggler over ulysses mean",
                value,
            ));
            bars.push(point(
                corpus,
                method,
                "worst",
                "straggler over ulysses mean",
                value * 2.0,
            ));
        }
        for size in [2, 4, 8] {
            let at = format!("P={size}");
            pools.push(point(
                corpus,
                "tap+vrsp",
                &at,
                "computation over ulysses",
                0.3,
            ));
            pools.push(point(
                corpus,
                "tap+vrsp",
                &at,
                "communication over ulysses",
                0.1,
            ));
        }
        for shards in SHARDS {
            for block in BLOCKS[nth] {
                grid.push(point(
                    corpus,
                    "tap+vrsp",
                    &grid_at(shards, block),
                    "speedup over ulysses",
                    1.5,
                ));
            }
        }
    }
    training.push(point(
        "8B, 256K",
        "libra",
        "64 GPUs",
        "speedup over ulysses",
        1.6,
    ));
    let times = [
        [vec![0.1, 3.0], vec![0.9, 1.1]],
        [vec![0.2, 20.0], vec![0.8, 1.2]],
    ];
    vec![
        scaling(scale),
        jitter(&[6.0, 8.0, 14.0]),
        end_to_end(training, &["8B, 256K"], &[64, 128, 256]),
        core_attention(bars),
        microbatches(&times),
        pool_sizes(pools, &[2, 4, 8]),
        shards_and_blocks(grid),
    ]
}

#[test]
fn every_figure_is_drawn_from_points_of_its_shape() {
    let panels: Vec<usize> = all().iter().map(|made| made.drawn.panels.len()).collect();
    assert_eq!(panels, [2, 1, 1, 2, 2, 6, 2]);
    for made in all() {
        let text = made.drawn.file();
        assert!(
            !text.contains("NaN") && !text.contains("inf"),
            "{}",
            made.figure
        );
        assert!(text.contains(&made.drawn.title));
    }
}

#[test]
fn published_numbers_meet_ours_under_the_same_names() {
    let met = |made: &Made| {
        let comparisons = made.comparisons(None);
        (
            comparisons.iter().filter(|one| one.ours.is_some()).count(),
            comparisons.len(),
        )
    };
    let met: Vec<(&str, (usize, usize))> =
        all().iter().map(|made| (made.figure, met(made))).collect();
    // Figure 11 publishes ranges over settings.
    let expected = [
        ("1", (2, 4)),
        ("3", (2, 2)),
        ("11", (0, 6)),
        ("12", (22, 22)),
        ("14", (7, 7)),
        ("15", (7, 10)),
        ("16", (5, 5)),
    ];
    assert_eq!(met, expected);
}

#[test]
fn ratios_of_core_attention_are_those_of_its_times() {
    let time = |method, value| point("1m", method, "worst", "straggler over ulysses mean", value);
    let ratios = ratios(&[time("ulysses", 2.0), time("wlb", 1.0), time("paper", 0.5)]);
    let values: Vec<(&str, f64)> = ratios
        .iter()
        .map(|point| (point.quantity, point.value))
        .collect();
    assert_eq!(
        values,
        [("speedup over ulysses", 4.0), ("less than wlb %", 50.0)]
    );
}

#[test]
fn times_of_microbatches_become_their_least_mean_and_most() {
    let times = [[vec![1.0, 2.0, 6.0], vec![1.0]], [vec![], vec![]]];
    let made = microbatches(&times);
    let values: Vec<f64> = made
        .points
        .iter()
        .take(3)
        .map(|point| point.value)
        .collect();
    assert_eq!(values, [1.0, 3.0, 6.0]);
}
