//! The book's measurement of placement by runs beside Algorithm 2: made again and compared.

#![forbid(unsafe_code)]

use std::fmt::Write;

use libra_bench::units::format_bytes;
use libra_bench::workload::{Distribution, Packer, WindowOptions, bundled};
use libra_sched::audit::audit;
use libra_sched::vrsp::{self, Vrsp};
use libra_sched::{
    Bandwidths, HeadSplit, KvFetch, KvRoute, LayoutKind, Mask, PackedLengths, Placer, PlanConfig,
    PoolId, PoolPlan, Proxy, Slack, TokenLayout, Topology, bound, plan_pool,
};
use libra_tests::blessed::assert_holds;

/// Corpus, L, GBS, CP and B.
const WINDOWS: [(&str, u64, u32, u32, u32); 4] = [
    ("linux-6.1", 256 << 10, 128, 8, 4096),
    ("lognormal:607,1.7,0.001,0.7", 256 << 10, 128, 8, 4096),
    ("linux-6.1", 1 << 20, 32, 16, 16384),
    ("lognormal:644,2.0,0.001,0.5", 1 << 20, 32, 16, 16384),
];

/// Windows of one row of the table.
const MOST_WINDOWS: usize = 24;

/// Sums over pools.
#[derive(Default)]
struct Sums {
    pools: u64,
    worst: f64,
    moved: u64,
    bound: u64,
    between: u64,
    port_ns: u64,
}

impl Sums {
    fn add(&mut self, plan: &PoolPlan, nodes: Topology) {
        let audit = audit(plan, nodes);
        let heaviest = audit.loads.iter().copied().max().unwrap_or(0);
        self.pools += 1;
        self.worst = self.worst.max(audit.intra_excess());
        self.moved += audit.moved_bytes();
        let apart = bound::moved_bytes(plan, heaviest).moved_bytes();
        let by_prices = bound::moved_bytes_by_prices(plan, heaviest, bound::ROUNDS);
        self.bound += apart.max(by_prices);
        self.between += audit.cross_node_bytes;
        self.port_ns += audit.busiest_port_ns(Bandwidths::default());
    }
}

/// Windows of a corpus, as many as there are up to [`MOST_WINDOWS`].
fn windows(corpus: &str, tokens: u64, gbs: u32) -> Vec<PackedLengths> {
    let options = WindowOptions {
        gbs: gbs.into(),
        ..WindowOptions::default()
    };
    let lengths: Vec<u64> = match bundled::lengths(corpus) {
        Ok(lengths) => lengths,
        Err(_) => {
            let drawn: Distribution = corpus.parse().expect("a legal distribution");
            let samples = drawn.samples(tokens, 7).expect("a legal limit");
            let samples = samples.scan(
                MOST_WINDOWS as u64 * tokens * u64::from(gbs),
                |left, len| {
                    *left = left.checked_sub(len)?;
                    Some(len)
                },
            );
            samples.collect()
        }
    };
    let packed = Packer::ConcatenateAndCut.pack(lengths, tokens);
    let windows = packed.expect("legal").windows(&options).expect("legal");
    let packed = windows.map(|window| {
        let sequences = window.expect("samples of at least one token").sequences;
        PackedLengths::new(tokens, sequences).expect("packed to fit")
    });
    packed.take(MOST_WINDOWS).collect()
}

/// A window in pools of 8.
fn pools_of(window: &PackedLengths) -> Vec<PackedLengths> {
    let work = window.work(Proxy::Pairs(Mask::Causal));
    let work = work.expect("pairs of a window fit 64 bits");
    let placed = vrsp::place(&work, 8, Vrsp::Certified).expect("P divides GBS");
    let pool = |pool| {
        window
            .select(placed.members(PoolId::new(pool)))
            .expect("members exist")
    };
    (0..placed.pools()).map(pool).collect()
}

/// Algorithm 2 to the letter, and runs with two slacks on nodes of eight.
fn methods(block: u32, nodes: Topology) -> [(&'static str, PlanConfig); 3] {
    let paper = PlanConfig::paper(block);
    let runs = |ppm| PlanConfig {
        placer: Placer::Export(Slack::from_ppm(ppm).expect("a slack"), nodes),
        kv_fetch: KvFetch::Range,
        kv_route: KvRoute::Node(nodes),
        ..paper
    };
    [
        ("Algorithm 2", paper),
        ("runs, slack 0.03", runs(30_000)),
        ("runs, slack 0.005", runs(5_000)),
    ]
}

#[test]
fn the_book_shows_what_runs_move_beside_algorithm_2() {
    let mut text = String::from(
        "| lengths | L | pools | placement | worst R-1 | moved | at least | of Alg. 2 | between nodes | of Alg. 2 | busiest port | of Alg. 2 |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let nodes = Topology::default();
    for (corpus, tokens, gbs, cp, block) in WINDOWS {
        let heads = HeadSplit::new(32, 8, 128, 128, 8, 4).expect("legal");
        let layout = TokenLayout::new(LayoutKind::Contiguous, 8, tokens as u32, cp);
        let layout = layout.expect("legal");
        let pools: Vec<PackedLengths> = windows(corpus, tokens, gbs)
            .iter()
            .flat_map(pools_of)
            .collect();
        let mut first: Option<Sums> = None;
        for (method, config) in methods(block, nodes) {
            let mut sums = Sums::default();
            for lengths in &pools {
                let plan = plan_pool(lengths, &layout, &heads, &config).expect("legal");
                sums.add(&plan, nodes);
            }
            let base = first.as_ref().unwrap_or(&sums);
            let ratio = |own: u64, base: u64| own as f64 / base as f64;
            let mean = |bytes: u64| format_bytes(bytes / sums.pools);
            writeln!(
                text,
                "| {corpus} | {} Ki | {} | {method} | {:.4} | {} | {} | {:.3} | {} | {:.3} | {:.1} ms | {:.3} |",
                tokens >> 10,
                sums.pools,
                sums.worst,
                mean(sums.moved),
                mean(sums.bound),
                ratio(sums.moved, base.moved),
                mean(sums.between),
                ratio(sums.between, base.between),
                sums.port_ns as f64 / sums.pools as f64 / 1e6,
                ratio(sums.port_ns, base.port_ns),
            )
            .expect("a string takes all that is written");
            first = first.or(Some(sums));
        }
    }
    assert_holds("docs/src/data/runs.md", text.as_bytes());
}
