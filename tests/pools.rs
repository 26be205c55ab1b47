//! The book's tables on certified pools, GA order and elastic pools, from corpora that everyone has: made again and
//! compared.

#![forbid(unsafe_code)]

use std::fmt::Write;

use libra_bench::workload::{Distribution, Packer, WindowOptions, bundled};
use libra_sched::audit::excess;
use libra_sched::vrsp::{self, BoundKind, Elastic, GaOrder, SequencePlacement, Vrsp};
use libra_sched::{Mask, PackedLengths, PoolId, Proxy, WindowShape};
use libra_tests::blessed::assert_holds;

const POOL: usize = 8;
/// Windows of a drawn corpus.
const WINDOWS: usize = 25;
/// Corpus and tokens of a sequence.
const CORPORA: [(&str, u64); 4] = [
    ("linux-6.1", 256 << 10),
    ("linux-6.1", 1 << 20),
    ("calibrated-256k", 256 << 10),
    ("calibrated-1m", 1 << 20),
];

/// Exact pairs of every sequence of every window: all of a bundled corpus, the first of a drawn one.
fn windows(corpus: &str, tokens: u64, gbs: u64) -> Vec<Vec<u64>> {
    let drawn = corpus.parse::<Distribution>();
    let count = if drawn.is_ok() { WINDOWS } else { usize::MAX };
    let lengths: Box<dyn Iterator<Item = u64>> = match drawn {
        Ok(drawn) => Box::new(drawn.samples(tokens, 7).expect("a legal limit")),
        Err(_) => Box::new(bundled::lengths(corpus).expect("bundled").into_iter()),
    };
    let options = WindowOptions {
        gbs,
        ..WindowOptions::default()
    };
    let sequences = Packer::ConcatenateAndCut.pack(lengths, tokens);
    let windows = sequences.expect("legal").windows(&options).expect("legal");
    // A corpus that does not fill a window has an error in its place.
    let full = windows.take(count).map_while(Result::ok);
    let work = |window: libra_bench::workload::Packed| {
        let lengths = PackedLengths::new(tokens, window.sequences).expect("packed to fit");
        lengths.work(Proxy::Pairs(Mask::Causal)).expect("fits")
    };
    full.map(work).collect()
}

fn heaviest(placed: &SequencePlacement) -> u64 {
    placed.loads().iter().copied().max().unwrap_or(0)
}

/// Mean and largest.
fn spread(values: &[f64]) -> (f64, f64) {
    let sum: f64 = values.iter().sum();
    let max = values.iter().copied().fold(0.0, f64::max);
    (sum / values.len().max(1) as f64, max)
}

fn percent((mean, max): (f64, f64)) -> String {
    format!("{:.3} % | {:.3} %", mean * 100.0, max * 100.0)
}

#[test]
fn the_book_shows_how_near_certified_pools_come_to_the_bound() {
    let mut text = String::from(
        "| corpus | L | D | windows | gap of Algorithm 1, mean | worst | gap of certified, mean | worst | bound above the mean |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for (corpus, tokens) in CORPORA {
        for gbs in [32, 128, 1024] {
            let windows = windows(corpus, tokens, gbs);
            if windows.is_empty() {
                continue;
            }
            let placed = |vrsp| -> Vec<SequencePlacement> {
                let place = |work: &Vec<u64>| vrsp::place(work, POOL, vrsp).expect("P divides D");
                windows.iter().map(place).collect()
            };
            let certified = placed(Vrsp::Certified);
            let gaps = |placed: &[SequencePlacement]| {
                let gap = |(placed, work): (&SequencePlacement, &Vec<u64>)| {
                    // Algorithm 1 proves less itself.
                    let bound = vrsp::lower_bound(work, POOL).expect("P divides D").load;
                    let bound = bound.max(placed.bound().load);
                    let heaviest = placed.loads().iter().copied().max().unwrap_or(0);
                    heaviest as f64 / bound.max(1) as f64 - 1.0
                };
                let gaps: Vec<f64> = placed.iter().zip(&windows).map(gap).collect();
                spread(&gaps)
            };
            if gbs == 128 {
                let (mean, worst) = gaps(&certified);
                assert!(mean < 3e-4 && worst < 3e-3, "{corpus}: {mean} {worst}");
            }
            if gbs == 32 {
                assert!(gaps(&certified).0 < 5e-4, "{corpus}");
            }
            let above = certified
                .iter()
                .filter(|p| p.bound().kind != BoundKind::Mean);
            writeln!(
                text,
                "| {corpus} | {}K | {gbs} | {} | {} | {} | {} |",
                tokens >> 10,
                windows.len(),
                percent(gaps(&placed(Vrsp::Paper))),
                percent(gaps(&certified)),
                above.count(),
            )
            .expect("a string takes all that is written");
        }
    }
    assert_holds("docs/src/data/certified.md", text.as_bytes());
}

#[test]
fn the_book_shows_what_ga_order_is_good_for() {
    let mut text = String::from(
        "| corpus | L | DP | pools | PP | paper order, mean | worst | balanced, mean | worst |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for (corpus, tokens) in CORPORA {
        let windows = windows(corpus, tokens, 128);
        for (vrsp, pp) in [Vrsp::Paper, Vrsp::Certified]
            .into_iter()
            .flat_map(|vrsp| [(vrsp, 1), (vrsp, 4)])
        {
            let shape = WindowShape::new(tokens, 128, 16, 8, POOL as u32).expect("legal");
            let mut waits = [Vec::new(), Vec::new()];
            for work in &windows {
                let placed = vrsp::place(work, POOL, vrsp).expect("P divides D");
                let loads = placed.loads();
                for (kind, waits) in [GaOrder::Paper, GaOrder::Balanced]
                    .into_iter()
                    .zip(&mut waits)
                {
                    let order = vrsp::ga_order(loads, &shape, kind, pp).expect("K loads");
                    let time = vrsp::ga_time(loads, &order, &shape, pp).expect("K loads");
                    let side = shape.pools_per_ga() as usize;
                    waits.push(excess(time, work.iter().sum(), side));
                }
            }
            let [paper, balanced] = waits.map(|waits| percent(spread(&waits)));
            writeln!(
                text,
                "| {corpus} | {}K | 16 | {vrsp} | {pp} | {paper} | {balanced} |",
                tokens >> 10
            )
            .expect("a string takes all that is written");
        }
    }
    assert_holds("docs/src/data/ga-order.md", text.as_bytes());
}

#[test]
fn the_book_shows_which_windows_elastic_pools_rescue() {
    let mut text = String::from(
        "| corpus | L | window | bound at P = 8 | DP | largest pool | its bound | worst pool | merged |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for (corpus, tokens) in CORPORA {
        for (window, work) in windows(corpus, tokens, 128).iter().enumerate() {
            for dp in [16, 32] {
                text += &rescued(corpus, tokens, window, work, dp);
            }
        }
    }
    assert_holds("docs/src/data/elastic.md", text.as_bytes());
}

/// A row if P cannot balance the window.
fn rescued(corpus: &str, tokens: u64, window: usize, work: &[u64], dp: u32) -> String {
    let shape = WindowShape::new(tokens, 128, dp, 8, POOL as u32).expect("legal");
    let elastic = Elastic::new(4).expect("a power of two");
    let placed = vrsp::elastic(work, &shape, elastic).expect("GBS sequences");
    let above = |load: u64, size: usize| excess(load, work.iter().sum(), work.len() / size);
    let before = above(placed.before.load, POOL);
    if before <= 0.02 {
        assert!(placed.merged().next().is_none());
        assert_eq!(
            heaviest(&placed.placement),
            heaviest(&vrsp::place(work, POOL, Vrsp::Certified).expect("legal"))
        );
        return String::new();
    }
    let largest = elastic.largest(&shape) as usize;
    let placement = &placed.placement;
    let worst = (0..placement.pools())
        .map(PoolId::new)
        .map(|pool| above(placement.loads()[pool.index()], placement.pool_size(pool)))
        .fold(0.0, f64::max);
    let after = above(placed.after.load, largest);
    // Balanced within the threshold, or as far as the cap allows.
    assert!(
        worst <= after.max(0.02) + 1e-3,
        "{corpus} window {window} DP {dp}: {worst}, {after}"
    );
    let sizes: Vec<String> = placed
        .merged()
        .map(|pool| placement.pool_size(pool).to_string())
        .collect();
    format!(
        "| {corpus} | {}K | {window} | {before:.3} | {dp} | {largest} | {after:.3} | {worst:.3} | {} |\n",
        tokens >> 10,
        sizes.join(", ")
    )
}
