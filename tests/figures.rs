//! The book's plot and measured table, from corpora that everyone has: made again and compared.

#![forbid(unsafe_code)]

use std::fmt::Write;

use libra_bench::units::{format_bytes, format_count};
use libra_bench::workload::{Distribution, Packer, WindowOptions, bundled, stats};
use libra_sched::audit::{audit, excess};
use libra_sched::vrsp::{self, Vrsp};
use libra_sched::{
    HeadSplit, LayoutKind, Mask, PackedLengths, PlanConfig, PoolId, Proxy, TokenLayout, Topology,
    WindowShape, plan_pool,
};
use libra_tests::blessed::assert_holds;

const TOKENS: u64 = 256 << 10;
const GBS: u32 = 128;
const WINDOWS: usize = 9;

/// Name and packed windows.
type Corpus = (&'static str, Vec<PackedLengths>);

fn corpora(windows: usize) -> [Corpus; 2] {
    let drawn: Distribution = "lognormal:607,1.7,0.001,0.7".parse().expect("legal");
    let bundled = bundled::lengths("linux-6.1").expect("ships with libra-bench");
    [
        ("linux-6.1", packed(windows, bundled)),
        (
            "drawn",
            packed(windows, drawn.samples(TOKENS, 7).expect("legal")),
        ),
    ]
}

/// The first `windows` windows of samples in a row, cut every 256K tokens.
fn packed(windows: usize, lengths: impl IntoIterator<Item = u64>) -> Vec<PackedLengths> {
    let options = WindowOptions {
        gbs: GBS.into(),
        ..WindowOptions::default()
    };
    let sequences = Packer::ConcatenateAndCut.pack(lengths, TOKENS);
    let all = sequences.expect("legal").windows(&options).expect("legal");
    let window = |packed: Result<libra_bench::workload::Packed, _>| {
        let sequences = packed.expect("samples of at least one token").sequences;
        PackedLengths::new(TOKENS, sequences).expect("packed to fit")
    };
    all.take(windows).map(window).collect()
}

fn work(window: &PackedLengths) -> Vec<u64> {
    let pairs = window.work(Proxy::Pairs(Mask::Causal));
    pairs.expect("pairs of a window fit 64 bits")
}

/// R − 1 of pools of P sequences, mean over windows.
struct Row {
    corpus: &'static str,
    pool_size: usize,
    values: [f64; SERIES.len()],
}

/// Column, label and style.
const SERIES: [(&str, &str, &str); 6] = [
    ("arrival", "arrival order", "stroke:#8a8a8a"),
    ("random", "random order", "stroke:#1f6fb4"),
    (
        "estimate",
        "estimate",
        "stroke:#1f6fb4;stroke-dasharray:2 4",
    ),
    ("vrsp", "VRSP", "stroke:#c8321e;stroke-width:2.5"),
    (
        "certified",
        "certified VRSP",
        "stroke:#2a8a3c;stroke-width:2.5",
    ),
    (
        "bound",
        "no placement goes below",
        "stroke:#111;stroke-dasharray:7 4",
    ),
];

fn measure(corpus: &'static str, windows: &[PackedLengths], pool_size: usize) -> Row {
    let mut sums = [0.0; SERIES.len()];
    for (window, seed) in windows.iter().zip(1..) {
        let work = work(window);
        let (total, pools) = (work.iter().sum(), work.len() / pool_size);
        let heaviest = |work: &[u64], vrsp| {
            let placed = vrsp::place(work, pool_size, vrsp).expect("P divides 128");
            let load = placed.loads().iter().copied().max().unwrap_or(0);
            excess(load, total, pools)
        };
        let bound = vrsp::lower_bound(&work, pool_size).expect("P divides 128");
        let shuffles = shuffles(&work, seed);
        let random: f64 = shuffles
            .iter()
            .map(|work| heaviest(work, Vrsp::Arrival))
            .sum();
        let values = [
            heaviest(&work, Vrsp::Arrival),
            random / shuffles.len() as f64,
            stats::expected_excess(variation(&work), pool_size as u64, GBS.into()),
            heaviest(&work, Vrsp::Paper),
            heaviest(&work, Vrsp::Certified),
            excess(bound.load, total, pools),
        ];
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    }
    Row {
        corpus,
        pool_size,
        values: sums.map(|sum| sum / windows.len() as f64),
    }
}

/// Standard deviation over mean.
fn variation(work: &[u64]) -> f64 {
    let count = work.len() as f64;
    let mean = work.iter().sum::<u64>() as f64 / count;
    let squares: f64 = work.iter().map(|&w| (w as f64 - mean).powi(2)).sum();
    (squares / count).sqrt() / mean
}

/// 64 random orders (Fisher and Yates over SplitMix64).
fn shuffles(work: &[u64], seed: u64) -> Vec<Vec<u64>> {
    let mut state: u64 = seed;
    let mut below = |count: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % count as u64) as usize
    };
    let mut shuffle = || {
        let mut order = work.to_vec();
        for last in (1..order.len()).rev() {
            order.swap(last, below(last + 1));
        }
        order
    };
    (0..64).map(|_| shuffle()).collect()
}

#[test]
fn the_book_plots_what_vrsp_does_to_the_bundled_and_a_drawn_corpus() {
    let mut rows = Vec::new();
    for (name, windows) in &corpora(WINDOWS) {
        assert_eq!(windows.len(), WINDOWS);
        rows.extend((0..7).map(|power| measure(name, windows, 1 << power)));
    }
    let mut csv = String::from("corpus,pool_size");
    SERIES
        .iter()
        .for_each(|(column, ..)| csv += &format!(",{column}"));
    for row in &rows {
        csv += &format!("\n{},{}", row.corpus, row.pool_size);
        row.values
            .iter()
            .for_each(|value| csv += &format!(",{value:.5}"));
    }
    csv += "\n";
    assert_holds("docs/src/data/pools.csv", csv.as_bytes());
    assert_holds("docs/src/data/pools.svg", svg(&rows).as_bytes());
}

const PANEL: (f64, f64) = (320.0, 240.0);
/// Decades of the vertical axis.
const DECADES: std::ops::RangeInclusive<i32> = -4..=1;

/// Two panels over one legend.
fn svg(rows: &[Row]) -> String {
    let mut out = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 350\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"800\" height=\"350\" fill=\"#fff\"/>\n",
    );
    let titles = [
        ("linux-6.1", "file lengths of a kernel source tree"),
        ("drawn", "drawn lengths, median 607, 0.1 % long"),
    ];
    for ((corpus, title), left) in titles.into_iter().zip([60.0, 460.0]) {
        let of: Vec<&Row> = rows.iter().filter(|row| row.corpus == corpus).collect();
        panel(&mut out, left, title, &of);
    }
    for ((_, label, style), x) in SERIES.into_iter().zip([60, 190, 330, 440, 530]) {
        out += &format!(
            "<path d=\"M{x} 336h28\" fill=\"none\" style=\"stroke-width:1.5;{style}\"/>\n\
             <text x=\"{}\" y=\"340\">{label}</text>\n",
            x + 34
        );
    }
    out + "</svg>\n"
}

fn panel(out: &mut String, left: f64, title: &str, rows: &[&Row]) {
    let (width, height) = PANEL;
    let (top, bottom) = (40.0, 40.0 + height);
    let decades = f64::from(DECADES.end() - DECADES.start());
    let y_of = |value: f64| {
        let up = value.log10().max(f64::from(*DECADES.start())) - f64::from(*DECADES.start());
        bottom - up / decades * height
    };
    let x_of = |at: usize| left + 10.0 + at as f64 / (rows.len() - 1) as f64 * (width - 20.0);
    *out += &format!(
        "<text x=\"{left}\" y=\"26\" font-weight=\"bold\">{title}</text>\n\
         <rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#bbb\"/>\n"
    );
    for decade in DECADES {
        let y = y_of(10f64.powi(decade));
        let label = 10f64.powi(decade);
        *out += &format!(
            "<path d=\"M{left} {y:.1}h{width}\" stroke=\"#e4e4e4\"/>\n\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>\n",
            left - 6.0,
            y + 4.0
        );
    }
    for (at, row) in rows.iter().enumerate() {
        *out += &format!(
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
            x_of(at),
            bottom + 16.0,
            row.pool_size
        );
    }
    *out += &format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">P</text>\n\
         <text x=\"{left}\" y=\"{}\" dx=\"-40\" fill=\"#555\">R-1</text>\n",
        left + width / 2.0,
        bottom + 32.0,
        top - 14.0
    );
    for (series, (.., style)) in SERIES.iter().enumerate() {
        let points = rows.iter().enumerate().map(|(at, row)| {
            let mark = if at == 0 { "M" } else { "L" };
            format!("{mark}{:.1} {:.1}", x_of(at), y_of(row.values[series]))
        });
        let path: String = points.collect();
        *out += &format!("<path d=\"{path}\" fill=\"none\" style=\"stroke-width:1.5;{style}\"/>\n");
    }
}

/// (P, H, B) of the table.
const CHOICES: [(u32, u32, u32); 9] = [
    (8, 2, 4096),
    (4, 2, 4096),
    (16, 2, 4096),
    (8, 1, 4096),
    (8, 4, 4096),
    (8, 8, 4096),
    (8, 16, 4096),
    (8, 2, 2048),
    (8, 2, 8192),
];

#[test]
fn the_book_shows_what_pool_size_shards_and_blocks_do() {
    let mut text = String::from(
        "| corpus | P | H | B | tiles of a pool | pools | at best | workers, mean | worst | at best | moved a worker | between nodes |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (name, windows) in &corpora(1) {
        for (pool_size, shards, block) in CHOICES {
            text += &choice(name, &windows[0], pool_size, shards, block);
        }
    }
    assert_holds("docs/src/data/choices.md", text.as_bytes());
}

/// One row: all pools of one window.
fn choice(corpus: &str, window: &PackedLengths, pool_size: u32, shards: u32, block: u32) -> String {
    let shape = WindowShape::new(TOKENS, GBS, 16, 8, pool_size).expect("legal");
    let heads = HeadSplit::new(32, 8, 128, 128, shards, 1).expect("legal");
    let (kind, tokens) = (LayoutKind::Contiguous, shape.seq_tokens());
    let layout = TokenLayout::new(kind, pool_size, tokens, shape.cp()).expect("legal");
    let work = work(window);
    let placed = vrsp::place(&work, pool_size as usize, Vrsp::Paper).expect("P divides 128");
    let bound = vrsp::lower_bound(&work, pool_size as usize).expect("P divides 128");
    let of_pools = |load| excess(load, work.iter().sum(), placed.pools());
    let heaviest = placed.loads().iter().copied().max().unwrap_or(0);

    let (mut tiles, mut moved, mut crossed) = (0, 0, 0);
    let (mut mean, mut worst, mut least) = (0.0, 0f64, 0.0);
    for pool in 0..shape.pools() {
        let lengths = window
            .select(placed.members(PoolId(pool)))
            .expect("members exist");
        let plan = plan_pool(&lengths, &layout, &heads, &PlanConfig::paper(block)).expect("legal");
        let audit = audit(&plan, Topology::default());
        tiles += plan.tiles.len();
        moved += audit.moved_bytes();
        crossed += audit.cross_node_bytes;
        mean += audit.intra_excess();
        worst = worst.max(audit.intra_excess());
        least += audit.tile_bound_excess();
    }
    let pools = f64::from(shape.pools());
    let mut row = String::new();
    writeln!(
        row,
        "| {corpus} | {pool_size} | {shards} | {} | {} | {:.3} | {:.3} | {:.3} | {worst:.3} | {:.3} | {} | {:.0} % |",
        format_count(block.into()),
        tiles / shape.pools() as usize,
        of_pools(heaviest),
        of_pools(bound.load),
        mean / pools,
        least / pools,
        format_bytes(moved / u64::from(shape.pools() * shape.workers())),
        crossed as f64 / moved as f64 * 100.0,
    )
    .expect("a string takes all that is written");
    row
}
