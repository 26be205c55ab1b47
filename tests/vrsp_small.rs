//! Algorithm 1 against the best partition on every small window.

#![forbid(unsafe_code)]

use std::fmt::Write;

use libra_sched::vrsp::{self, Vrsp, lower_bound};
use libra_tests::blessed::assert_holds;
use libra_tests::twins::brute;

/// (K, P, M): windows of K·P weights, every one from 0 to M.
const SHAPES: [(usize, usize, u64); 6] = [
    (2, 2, 40),
    (3, 2, 22),
    (2, 3, 22),
    (4, 2, 14),
    (2, 4, 14),
    (3, 3, 9),
];

struct Row {
    cases: u64,
    optimal: u64,
    /// Sum of ratios in units of 1e-9, each rounded down.
    ratios: u128,
    /// Heaviest pool and optimum of the worst case.
    worst: (u64, u64),
    /// Cases in which the lower bound is the optimum.
    tight: u64,
    /// Cases in which certified VRSP is the optimum.
    certified: u64,
}

/// Calls `visit` with every non-increasing list of `count` weights up to `most`.
fn each_window(count: usize, most: u64, visit: &mut impl FnMut(&[u64])) {
    fn extend(window: &mut Vec<u64>, count: usize, most: u64, visit: &mut impl FnMut(&[u64])) {
        if window.len() == count {
            visit(window);
            return;
        }
        for weight in 0..=most {
            window.push(weight);
            extend(window, count, weight, visit);
            window.pop();
        }
    }
    extend(&mut Vec::with_capacity(count), count, most, visit);
}

fn measure(pools: usize, size: usize, most: u64) -> Row {
    let mut row = Row {
        cases: 0,
        optimal: 0,
        ratios: 0,
        worst: (1, 1),
        tight: 0,
        certified: 0,
    };
    each_window(pools * size, most, &mut |work| {
        let placed = vrsp::place(work, size, Vrsp::Paper).expect("P divides the window");
        let heaviest = placed.loads().iter().copied().max().unwrap_or(0);
        let optimum = brute::optimum(work, size);
        let bound = lower_bound(work, size).expect("P divides the window").load;
        assert!(
            bound <= optimum,
            "{work:?} by {size}: {bound} above {optimum}"
        );
        assert!(optimum <= heaviest, "{work:?} by {size}");
        // heaviest / optimum <= 4/3 - 1/(3K)
        let (k, heavy, best) = (pools as u64, heaviest, optimum);
        assert!(
            3 * k * heavy <= (4 * k - 1) * best,
            "{work:?} by {size}: {heavy} over {best}"
        );
        let certified = vrsp::place(work, size, Vrsp::Certified).expect("P divides the window");
        let certified = certified.loads().iter().copied().max().unwrap_or(0);
        assert!(
            (optimum..=heaviest).contains(&certified),
            "{work:?} by {size}: {certified}"
        );
        row.certified += u64::from(certified == optimum);
        row.cases += 1;
        row.optimal += u64::from(heaviest == optimum);
        row.tight += u64::from(bound == optimum);
        let (heavy, best) = if optimum == 0 {
            (1, 1)
        } else {
            (heaviest, optimum)
        };
        row.ratios += u128::from(heavy) * 1_000_000_000 / u128::from(best);
        if u128::from(heavy) * u128::from(row.worst.1) > u128::from(row.worst.0) * u128::from(best)
        {
            row.worst = (heavy, best);
        }
    });
    row
}

/// `over / under` with four decimals, rounded to nearest.
fn decimal(over: u128, under: u128) -> String {
    let scaled = (over * 20_000 / under).div_ceil(2);
    format!("{}.{:04}", scaled / 10_000, scaled % 10_000)
}

#[test]
fn one_pool_and_pools_of_one_are_always_optimal() {
    for sequences in 1..=8 {
        for (pools, size) in [(1, sequences), (sequences, 1)] {
            let row = measure(pools, size, 4);
            assert_eq!((row.optimal, row.worst), (row.cases, (1, 1)));
            assert_eq!(row.certified, row.cases);
        }
    }
}

#[test]
fn algorithm_1_is_within_its_bound_of_the_best_partition_on_every_small_window() {
    let mut text = String::from(
        "| K | P | weights | windows | optimal | mean ratio | worst ratio | bound | certified optimal | lower bound tight |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (pools, size, most) in SHAPES {
        let Row {
            cases,
            optimal,
            ratios,
            worst,
            tight,
            certified,
        } = measure(pools, size, most);
        let percent = |part: u64| {
            let tenths = (u128::from(part) * 2_000 / u128::from(cases)).div_ceil(2);
            format!("{}.{} %", tenths / 10, tenths % 10)
        };
        // The search of all ends within its steps.
        assert_eq!(certified, cases);
        let (k, optimal, tight) = (pools as u128, percent(optimal), percent(tight));
        let certified = percent(certified);
        let mean = decimal(ratios, 1_000_000_000 * u128::from(cases));
        let ratio = decimal(worst.0.into(), worst.1.into());
        let bound = decimal(4 * k - 1, 3 * k);
        writeln!(
            text,
            "| {pools} | {size} | 0..={most} | {cases} | {optimal} | {mean} | {ratio} = {}/{} | {bound} | {certified} | {tight} |",
            worst.0, worst.1
        )
        .expect("a string takes all that is written");
    }
    assert_holds("docs/src/data/vrsp-small-cases.md", text.as_bytes());
}
