//! Which combinations no other beats, and which one to take.

use serde::Serialize;

use crate::units::format_bytes;

/// How much more than the least time of the slowest worker counts as near it.
const NEAR: f64 = 0.01;

/// A combination, as far as one is better than another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) name: String,
    /// Heaviest worker of a window over the mean, less 1; mean over windows.
    pub(super) worst_excess: f64,
    /// Bytes that a worker moves.
    pub(super) worker_bytes: f64,
    /// Time of the busiest port.
    pub(super) port_us: f64,
}

/// What to take, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Advice {
    pub(super) combination: String,
    pub(super) reason: String,
}

/// Whether no other point has less of one cost and not more of the other. O(n log n).
pub(super) fn front(costs: &[[f64; 2]]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    let first = |&a: &usize, &b: &usize| {
        let [a, b] = [costs[a], costs[b]];
        a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]))
    };
    order.sort_by(first);
    let mut on_front = vec![false; costs.len()];
    let mut last: Option<[f64; 2]> = None;
    for index in order {
        let cost = costs[index];
        // Equal points are on it together.
        if last.is_none_or(|last| cost[1] < last[1] || cost == last) {
            on_front[index] = true;
            last = Some(cost);
        }
    }
    on_front
}

/// The point with the least time of the busiest port of those near the least time of the slowest worker, and what its
/// neighbours on the front would change; nothing of fewer than two points.
pub(super) fn advice(points: &[Point]) -> Option<Advice> {
    if points.len() < 2 {
        return None;
    }
    let cost = |point: &Point| [point.port_us, point.worst_excess];
    let front = front(&points.iter().map(cost).collect::<Vec<_>>());
    let mut line: Vec<&Point> = Vec::new();
    for (point, _) in points.iter().zip(front).filter(|(_, on_front)| *on_front) {
        if !line.iter().any(|other| cost(other) == cost(point)) {
            line.push(point);
        }
    }
    line.sort_by(|a, b| a.port_us.total_cmp(&b.port_us));
    // Time of the port rises along the front and the excess falls: the last is the best.
    let least = line.last()?.worst_excess;
    let is_near = |point: &&Point| 1.0 + point.worst_excess <= (1.0 + least) * (1.0 + NEAR);
    let at = line.iter().position(is_near)?;
    let take = line[at];
    let mut reason = format!("worst R-1 {:.3} at {}", take.worst_excess, price(take));
    if let Some(less) = at.checked_sub(1).map(|before| line[before]) {
        reason += &format!(
            "; {} has {:.3} at {}",
            less.name,
            less.worst_excess,
            price(less)
        );
    }
    if let Some(more) = line.get(at + 1) {
        let gain = take.worst_excess - more.worst_excess;
        let times = |of: fn(&Point) -> f64| match (of(take), of(more)) {
            (before, after) if before == after => "1.00x".to_owned(),
            (before, after) => format!("{:.2}x", after / before),
        };
        let (port, bytes) = (times(|p| p.port_us), times(|p| p.worker_bytes));
        reason += &format!(
            "; {} gains {gain:.3} for {port} the time of the port and {bytes} the bytes",
            more.name
        );
    }
    if line.len() == 1 {
        reason += "; no other is better in either";
    }
    Some(Advice {
        combination: take.name.clone(),
        reason,
    })
}

fn price(point: &Point) -> String {
    let bytes = format_bytes(point.worker_bytes as u64);
    format!(
        "{:.2} ms of the busiest port, {bytes} a worker",
        point.port_us / 1e3
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn point(name: &str, worst_excess: f64, mib: f64) -> Point {
        Point {
            name: name.to_owned(),
            worst_excess,
            worker_bytes: mib * (1 << 20) as f64,
            port_us: mib * 10.0,
        }
    }

    proptest! {
        #[test]
        fn a_point_is_on_the_front_where_nothing_is_better(
            costs in prop::collection::vec((0..5u8, 0..5u8), 0..12)
        ) {
            let costs: Vec<[f64; 2]> = costs.into_iter().map(|(a, b)| [a.into(), b.into()]).collect();
            for (point, on_front) in costs.iter().zip(front(&costs)) {
                let beats = |other: &&[f64; 2]| {
                    other[0] <= point[0] && other[1] <= point[1] && *other != point
                };
                prop_assert_eq!(on_front, !costs.iter().any(|other| beats(&other)));
            }
        }
    }

    #[test]
    fn the_lightest_port_near_the_least_time_is_taken() {
        let points = [
            point("-P 4", 0.2, 100.0),
            point("-P 8", 0.031, 200.0),
            point("-P 16", 0.029, 380.0),
            point("-P 2", 0.9, 150.0),
        ];
        let advice = advice(&points).expect("four points");
        assert_eq!(advice.combination, "-P 8");
        assert_eq!(
            advice.reason,
            "worst R-1 0.031 at 2.00 ms of the busiest port, 200.0 MiB a worker; \
             -P 4 has 0.200 at 1.00 ms of the busiest port, 100.0 MiB a worker; \
             -P 16 gains 0.002 for 1.90x the time of the port and 1.90x the bytes"
        );
    }

    #[test]
    fn one_point_needs_no_advice_and_equal_ones_give_the_first() {
        let points = [point("a", 0.1, 1.0), point("b", 0.1, 1.0)];
        assert_eq!(advice(&points[..1]), None);
        let advice = advice(&points).expect("two points");
        assert_eq!(advice.combination, "a");
        assert!(advice.reason.ends_with("; no other is better in either"));
    }
}
