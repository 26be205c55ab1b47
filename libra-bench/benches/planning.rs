//! Planning time as ratios within one run: `cargo bench`.
//!
//! Machines differ and drift; two bodies timed in turn in one process do not. Every round times
//! each body of a table once; a ratio is the median over rounds. `wrong` counts answers that
//! differ from the slow twin's. The same bodies run under callgrind: `--icount-list` names them,
//! `--icount CASE N` runs one N times.

use std::hint::black_box;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use libra_bench::simulate::Layer;
use libra_bench::workload::{Distribution, LengthSource, Packer, WindowOptions, load};
use libra_sched::exchange::route;
use libra_sched::placement::{self, Problem};
use libra_sched::vrsp::{self, Vrsp};
use libra_sched::{
    CostTable, ElementBytes, HeadSplit, KvFetch, KvRoute, LayoutKind, Mask, Measured,
    PackedLengths, Placer, PlanConfig, PoolId, PoolPlan, Proxy, Slack, TileSet, TokenLayout,
    Topology, WindowShape, plan, plan_pool, plan_pool_measured, plan_pool_with, tiles, verify,
    wire,
};

#[path = "../../tests/twins/algorithm_2.rs"]
mod placement_twin;
#[path = "../../tests/twins/vrsp.rs"]
mod vrsp_twin;

/// Where lengths come from: the bundled kernel tree, and the distributions that are calibrated to
/// the paper's corpora, whose shorter samples give a block more KV groups.
const KERNEL: &str = "linux-6.1";
const DRAWN_256K: &str = "calibrated-256k";
const DRAWN_1M: &str = "calibrated-1m";
const ROUNDS: usize = 51;
/// Where layers are simulated.
const CLUSTER: &str = "h200";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["--icount-list"] => {
            for case in cases(|_| true) {
                println!("{}", case.name);
            }
            ExitCode::SUCCESS
        }
        ["--icount", name, times] => run_case(name, times.parse().unwrap_or(1)),
        _ => report(),
    }
}

/// One pool at a paper shape.
struct Pool {
    lengths: PackedLengths,
    layout: TokenLayout,
    heads: HeadSplit,
    config: PlanConfig,
    tiles: TileSet,
}

impl Pool {
    fn problem(&self) -> Problem<'_> {
        Problem::new(&self.lengths, &self.layout, &self.heads, self.config.bytes)
            .expect("the parts of a pool belong together")
    }

    fn literal(&self) -> (Vec<libra_sched::WorkerId>, Vec<u64>) {
        let bytes = ElementBytes::BF16;
        let Self {
            lengths,
            layout,
            heads,
            tiles,
            ..
        } = self;
        placement_twin::place(lengths, layout, heads, bytes, tiles, Slack::PAPER)
    }
}

/// The first window of a corpus, concatenated and cut at `seq_tokens`.
fn window(corpus: &str, seq_tokens: u64, gbs: u64) -> PackedLengths {
    let lengths: Vec<u64> = if corpus == KERNEL {
        load(corpus, &LengthSource::default()).expect("the corpus is bundled")
    } else {
        let drawn: Distribution = corpus.parse().expect("a legal distribution");
        let samples = drawn.samples(seq_tokens, 7).expect("a legal limit");
        // A sample has at least one token.
        samples.take((seq_tokens * gbs) as usize / 64).collect()
    };
    let options = WindowOptions {
        gbs,
        ..WindowOptions::default()
    };
    let window = Packer::ConcatenateAndCut
        .pack(lengths, seq_tokens)
        .and_then(|sequences| sequences.windows(&options))
        .and_then(|mut windows| windows.next().expect("a window or an error"));
    let sequences = window.expect("the corpus fills a window").sequences;
    PackedLengths::new(seq_tokens, sequences).expect("packed within seq_tokens")
}

/// All pools of the first window of a corpus: the bodies take them in turn, so that neither a heavy
/// nor a light pool stands for the rest.
struct Window {
    name: &'static str,
    pools: Vec<Pool>,
}

fn pools_of(
    name: &'static str,
    corpus: &str,
    shape: &WindowShape,
    (block_tokens, shards): (u32, u32),
) -> Window {
    let window = window(corpus, shape.seq_tokens().into(), shape.gbs().into());
    let work = window
        .work(Proxy::Pairs(Mask::Causal))
        .expect("fits 64 bits");
    let placed = vrsp::place(&work, shape.pool_size() as usize, Vrsp::Paper).expect("P | D");
    let kind = LayoutKind::Contiguous;
    let layout = TokenLayout::new(kind, shape.pool_size(), shape.seq_tokens(), shape.cp());
    let layout = layout.expect("a legal layout");
    let heads = HeadSplit::new(32, 8, 128, 128, shards, 4).expect("legal heads");
    let config = PlanConfig::paper(block_tokens);
    let pools = (0..placed.pools()).map(|pool| {
        let lengths = window
            .select(placed.members(PoolId::new(pool)))
            .expect("members exist");
        let tiles = tiles::cut(&lengths, &layout, &heads, config.mask, block_tokens);
        Pool {
            lengths,
            layout: layout.clone(),
            heads: heads.clone(),
            config,
            tiles: tiles.expect("legal"),
        }
    });
    Window {
        name,
        pools: pools.collect(),
    }
}

/// Windows at both of the paper's shapes, from both kinds of corpus: name, corpus, and whether it is
/// the large shape.
const PLACED: [(&str, &str, bool); 4] = [
    ("256k", KERNEL, false),
    ("1m", KERNEL, true),
    ("256k_drawn", DRAWN_256K, false),
    ("1m_drawn", DRAWN_1M, true),
];

/// One of [`PLACED`], with B for either shape, and H.
fn placed_window(
    (name, corpus, large): (&'static str, &str, bool),
    [small_block, large_block]: [u32; 2],
    shards: u32,
) -> Window {
    let shape = if large {
        WindowShape::new(1 << 20, 32, 16, 16, 8)
    } else {
        WindowShape::new(256 << 10, 128, 16, 8, 8)
    };
    let block = if large { large_block } else { small_block };
    let shape = shape.expect("a legal shape");
    pools_of(name, corpus, &shape, (block, shards))
}

/// Where the paper places tiles: B at 256K and at 1M, and H.
fn in_tiles(window: (&'static str, &str, bool)) -> Window {
    placed_window(window, [4096, 8192], 2)
}

/// As [`in_tiles`], one shard a KV head.
fn in_runs(window: (&'static str, &str, bool)) -> Window {
    placed_window(window, [4096, 16384], 8)
}

/// A body with its own state: one call does the whole job once.
struct Case {
    name: String,
    /// Calls that make one counted iteration: enough that the start of a process, which is not the
    /// same to the last instruction, does not show.
    counted: usize,
    body: Box<dyn FnMut()>,
}

fn case(name: String, counted: usize, body: impl FnMut() + 'static) -> Case {
    Case {
        name,
        counted,
        body: Box::new(body),
    }
}

/// Sorting what VRSP sorts, as anybody would.
fn sort_case(name: String, work: &[u64]) -> Case {
    let pairs: Vec<(u64, u32)> = work.iter().copied().zip(0..).collect();
    let mut sorted = pairs.clone();
    case(name, counted(work), move || {
        sorted.copy_from_slice(&pairs);
        sorted.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        black_box(&sorted);
    })
}

fn vrsp_case(name: String, vrsp: Vrsp, work: Vec<u64>) -> Case {
    let mut scratch = vrsp::Scratch::default();
    case(name, counted(&work), move || {
        black_box(vrsp::place_with(&mut scratch, &work, 8, vrsp).expect("8 | D"));
    })
}

/// The literal twin, the fast placement, and the whole way from lengths to bytes; one call is one
/// pool.
fn placement_cases(window: Window) -> [Case; 3] {
    let name = window.name;
    let count = window.pools.len();
    let pools = Rc::new(window.pools);
    let turns = || {
        let pools = Rc::clone(&pools);
        let mut turn = 0;
        move || {
            turn += 1;
            let at = turn % pools.len();
            (Rc::clone(&pools), at)
        }
    };
    let (mut literal, mut fast, mut whole) = (turns(), turns(), turns());
    let mut place_scratch = placement::Scratch::default();
    let mut plan_scratch = plan::Scratch::default();
    [
        case(format!("placement_literal_{name}"), 1, move || {
            let (pools, at) = literal();
            black_box(pools[at].literal());
        }),
        case(format!("placement_{name}"), count, move || {
            let (pools, at) = fast();
            let pool = &pools[at];
            let placer = pool.config.placer;
            let placed =
                placement::place_with(&mut place_scratch, &pool.problem(), &pool.tiles, placer);
            black_box(placed.expect("legal"));
        }),
        case(format!("plan_and_encode_{name}"), count, move || {
            let (pools, at) = whole();
            let Pool {
                lengths,
                layout,
                heads,
                config,
                ..
            } = &pools[at];
            let plan = plan_pool_with(&mut plan_scratch, lengths, layout, heads, config);
            black_box(wire::encode(&plan.expect("legal")));
        }),
    ]
}

/// The literal twin and the placement by runs, in one shard a KV head; one call is one pool.
fn runs_cases(window: Window) -> [Case; 2] {
    let (name, count) = (window.name, window.pools.len());
    let pools = Rc::new(window.pools);
    let (twin, own) = (Rc::clone(&pools), pools);
    let (mut twin_turn, mut own_turn) = (0, 0);
    let mut scratch = placement::Scratch::default();
    [
        case(format!("placement_literal_h8_{name}"), 1, move || {
            twin_turn += 1;
            black_box(twin[twin_turn % twin.len()].literal());
        }),
        case(format!("runs_{name}"), count, move || {
            own_turn += 1;
            let pool = &own[own_turn % own.len()];
            let (mask, nodes) = (pool.config.mask, Topology::default());
            let (problem, slack) = (pool.problem(), Slack::PAPER);
            let placed = placement::export_with(&mut scratch, &problem, mask, nodes, slack);
            black_box(placed.expect("legal"));
        }),
    ]
}

/// Messages of one layer over their ports, and K and V once into each node; one call is one pool.
fn exchange_cases(window: Window) -> [Case; 2] {
    let (name, count) = (window.name, window.pools.len());
    let nodes = Topology::default();
    let plans = window.pools.iter().map(|pool| {
        let config = PlanConfig {
            placer: Placer::Export(Slack::PAPER, nodes),
            ..pool.config
        };
        plan_pool(&pool.lengths, &pool.layout, &pool.heads, &config).expect("legal")
    });
    let plans: Vec<PoolPlan> = plans.collect();
    let layer = |plan| Layer::forward(plan, CLUSTER).expect("a built-in cluster");
    let layers: Vec<Layer> = plans.iter().map(layer).collect();
    let (mut simulated, mut routed) = (0, 0);
    [
        case(format!("simulate_{name}"), count, move || {
            simulated += 1;
            black_box(layers[simulated % layers.len()].makespan_ns());
        }),
        case(format!("route_{name}"), count, move || {
            routed += 1;
            let plan = &plans[routed % plans.len()];
            let direct = plan.exchange.clone();
            let through = route(direct, &plan.heads, &plan.tiles, KvRoute::Node(nodes));
            black_box(through.expect("no more moves than are counted"));
        }),
    ]
}

/// Whole plans in runs: by work, and by times at which short pieces of samples take longer.
fn timed_cases(window: Window) -> [Case; 2] {
    let (name, count) = (window.name, window.pools.len());
    let pools = Rc::new(window.pools);
    let lengths = [128u32, 1024, 8192, 65_536];
    // A fixed cost a query beside one a pair, as kernels have.
    let time_ns = |len: u32| vec![f64::from(len) * (f64::from(len) / 2.0 + 200.0)];
    let costs = CostTable::new(Mask::Causal, &lengths, &[1], &lengths.map(time_ns));
    let costs = Rc::new(costs.expect("positive times"));
    [("runs", None), ("runs_by_costs", Some(costs))].map(|(kind, costs)| {
        let pools = Rc::clone(&pools);
        let (mut scratch, mut turn) = (plan::Scratch::default(), 0);
        case(format!("plan_{kind}_{name}"), count, move || {
            turn += 1;
            let pool = &pools[turn % pools.len()];
            let nodes = Topology::default();
            let config = PlanConfig {
                placer: Placer::Export(Slack::PAPER, nodes),
                kv_fetch: KvFetch::Range,
                kv_route: KvRoute::Node(nodes),
                ..pool.config
            };
            let measured = Measured {
                costs: costs.as_deref(),
                speeds: None,
            };
            let (lengths, layout, heads) = (&pool.lengths, &pool.layout, &pool.heads);
            let plan = plan_pool_measured(&mut scratch, lengths, layout, heads, &config, measured);
            black_box(plan.expect("legal"));
        })
    })
}

/// Small windows are placed more often.
fn counted(work: &[u64]) -> usize {
    64_000 / work.len()
}

/// Windows that VRSP is timed on: corpus, sequences, and what their cases' names end in.
const GROUPED: [(&str, u64, &str); 5] = [
    (KERNEL, 128, "128"),
    (KERNEL, 256, "256"),
    (KERNEL, 1024, "1024"),
    (DRAWN_256K, 128, "128_drawn"),
    (DRAWN_256K, 1024, "1024_drawn"),
];

/// Sorting, Algorithm 1 and certified VRSP over one window's weights.
fn vrsp_cases(corpus: &str, sequences: u64, name: &str) -> ([Case; 3], Vec<u64>) {
    let work = window(corpus, 256 << 10, sequences)
        .work(Proxy::Pairs(Mask::Causal))
        .expect("fits 64 bits");
    let cases = [
        sort_case(format!("sort_{name}"), &work),
        vrsp_case(format!("vrsp_{name}"), Vrsp::Paper, work.clone()),
        vrsp_case(format!("certified_{name}"), Vrsp::Certified, work.clone()),
    ];
    (cases, work)
}

/// What the names of cases begin with, by what has to be made for them.
const VRSP_NAMES: [&str; 3] = ["sort", "vrsp", "certified"];
const EXCHANGE_NAMES: [&str; 2] = ["simulate", "route"];
const TIMED_NAMES: [&str; 2] = ["plan_runs", "plan_runs_by_costs"];
const TILE_NAMES: [&str; 3] = ["placement_literal", "placement", "plan_and_encode"];

/// The cases that `wanted` names; only their windows are made.
fn cases(wanted: impl Fn(&str) -> bool) -> Vec<Case> {
    let any =
        |kinds: &[&str], name: &str| kinds.iter().any(|kind| wanted(&format!("{kind}_{name}")));
    let mut cases = Vec::new();
    for (corpus, sequences, name) in GROUPED {
        if any(&VRSP_NAMES, name) {
            cases.extend(vrsp_cases(corpus, sequences, name).0);
        }
    }
    for window in PLACED {
        if any(&TILE_NAMES, window.0) {
            cases.extend(placement_cases(in_tiles(window)));
        }
    }
    for window in PLACED {
        if any(&["runs"], window.0) {
            let [_, runs] = runs_cases(in_runs(window));
            cases.push(runs);
        }
        if any(&TIMED_NAMES, window.0) {
            cases.extend(timed_cases(in_runs(window)));
        }
    }
    for window in PLACED
        .into_iter()
        .filter(|(_, corpus, _)| *corpus != KERNEL)
    {
        if any(&EXCHANGE_NAMES, window.0) {
            cases.extend(exchange_cases(in_runs(window)));
        }
    }
    cases.retain(|case| wanted(&case.name));
    cases
}

fn run_case(name: &str, times: u64) -> ExitCode {
    let Some(mut case) = cases(|wanted| wanted == name).pop() else {
        eprintln!("error: no case {name:?}; --icount-list names them");
        return ExitCode::from(2);
    };
    for _ in 0..times * case.counted as u64 {
        (case.body)();
    }
    ExitCode::SUCCESS
}

/// Nanoseconds of every body in every round, rounds of all bodies in turn.
fn time(cases: &mut [Case], repeat: usize) -> Vec<Vec<f64>> {
    let mut samples = vec![Vec::with_capacity(ROUNDS); cases.len()];
    for round in 0..ROUNDS + 3 {
        for (case, samples) in cases.iter_mut().zip(&mut samples) {
            let begin = Instant::now();
            for _ in 0..repeat {
                (case.body)();
            }
            // The first rounds warm caches.
            if round >= 3 {
                samples.push(begin.elapsed().as_nanos() as f64 / repeat as f64);
            }
        }
    }
    samples
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn report() -> ExitCode {
    println!("# Planning {KERNEL}, P = 8, medians of {ROUNDS} rounds, one thread");
    println!("# drawn: {DRAWN_256K} at 256K and {DRAWN_1M} at 1M");
    println!("#");
    let mut missed = 0;
    let mut line = |what: &str, ns: f64, ratio: f64, base: &str, required: &str, good, wrong| {
        let verdict = if good { "ok" } else { "MISSED" };
        println!(
            "{what:>27} {:>10.1} us {ratio:>8.2} x {base:<24} {required:<20} {verdict:>6} {wrong:>6}",
            ns / 1e3
        );
        missed += usize::from(!good) + usize::from(wrong > 0);
    };
    println!(
        "{:>27} {:>13} {:>10} {:<24} {:<20} {:>6} {:>6}",
        "what", "time", "ratio", "to", "required", "", "wrong"
    );
    for (corpus, sequences, name) in GROUPED {
        let (mut cases, work) = vrsp_cases(corpus, sequences, name);
        let wrong = [vrsp_wrong(&work), certified_wrong(&work)];
        let times = time(&mut cases, 12_800 / sequences as usize);
        for ((at, wrong), most) in (1..).zip(wrong).zip([2.5, 200.0]) {
            let ratio = median(times[at].iter().zip(&times[0]).map(|(v, s)| v / s));
            let ns = median(times[at].iter().copied());
            let (required, good) = (format!("at most {most}"), ratio <= most);
            let [sorted, ..] = &cases;
            line(
                &cases[at].name,
                ns,
                ratio,
                &sorted.name,
                &required,
                good,
                wrong,
            );
        }
    }
    for (window, least) in PLACED
        .map(in_tiles)
        .into_iter()
        .zip([15.0, 20.0, 15.0, 20.0])
    {
        let wrong = window.pools.iter().map(placement_wrong).sum();
        let repeat = window.pools.len();
        let mut cases = placement_cases(window);
        let times = time(&mut cases, repeat);
        let ns = times
            .iter()
            .map(|t| median(t.iter().copied()))
            .collect::<Vec<_>>();
        let faster = median(times[0].iter().zip(&times[1]).map(|(l, f)| l / f));
        let [literal, fast, whole] = &cases;
        line(&literal.name, ns[0], 1.0, &literal.name, "", true, 0);
        let required = format!("at least {least} faster");
        line(
            &fast.name,
            ns[1],
            faster,
            "faster than literal",
            &required,
            faster >= least,
            wrong,
        );
        // What is left of 1.5 fast placements and 0.3 ms.
        let budget = median(
            times[1]
                .iter()
                .zip(&times[2])
                .map(|(f, w)| w / (1.5 * f + 300e3)),
        );
        let of = "1.5 placements + 300 us";
        line(
            &whole.name,
            ns[2],
            budget,
            of,
            "at most 1",
            budget <= 1.0,
            0,
        );
    }
    for window in PLACED.map(in_runs) {
        let wrong = window.pools.iter().filter(|pool| runs_wrong(pool)).count();
        let repeat = window.pools.len();
        let mut cases = runs_cases(window);
        let times = time(&mut cases, repeat);
        let faster = median(times[0].iter().zip(&times[1]).map(|(l, r)| l / r));
        let [literal, runs] = &cases;
        let ns = [0, 1].map(|at: usize| median(times[at].iter().copied()));
        line(&literal.name, ns[0], 1.0, &literal.name, "", true, 0);
        line(
            &runs.name,
            ns[1],
            faster,
            "faster than literal",
            "at least 25 faster",
            faster >= 25.0,
            wrong,
        );
    }
    for window in PLACED.map(in_runs) {
        let repeat = window.pools.len();
        let mut cases = timed_cases(window);
        let times = time(&mut cases, repeat);
        let slower = median(times[1].iter().zip(&times[0]).map(|(by, work)| by / work));
        let [work, by_costs] = &cases;
        let ns = [0, 1].map(|at: usize| median(times[at].iter().copied()));
        line(&work.name, ns[0], 1.0, &work.name, "", true, 0);
        line(&by_costs.name, ns[1], slower, &work.name, "", true, 0);
    }
    println!("# Reproduce: cargo bench -p libra-bench --bench planning");
    if missed > 0 {
        eprintln!("error: {missed} of the lines above miss what is required of them");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Sequences that VRSP puts elsewhere than its slow twin.
fn vrsp_wrong(work: &[u64]) -> usize {
    let fast = vrsp::place(work, 8, Vrsp::Paper).expect("8 | D");
    let (slow, _) = vrsp_twin::place(work, 8);
    fast.order()
        .iter()
        .zip(slow.into_iter().flatten())
        .filter(|(f, s)| f.0 != *s)
        .count()
}

/// Certified pools heavier than Algorithm 1's heaviest, or below the proved bound.
fn certified_wrong(work: &[u64]) -> usize {
    let heaviest = |vrsp| {
        let placed = vrsp::place(work, 8, vrsp).expect("8 | D");
        placed.loads().iter().copied().max()
    };
    let bound = vrsp::lower_bound(work, 8).expect("8 | D").load;
    let certified = heaviest(Vrsp::Certified);
    usize::from(certified > heaviest(Vrsp::Paper) || certified < Some(bound))
}

/// Tiles that the fast placement puts elsewhere than the literal one.
fn placement_wrong(pool: &Pool) -> usize {
    let fast = placement::place(&pool.problem(), &pool.tiles, pool.config.placer).expect("legal");
    fast.workers
        .iter()
        .zip(&pool.literal().0)
        .filter(|(f, l)| f != l)
        .count()
}

/// Whether runs leave a worker above its target, or make a plan with a fault.
fn runs_wrong(pool: &Pool) -> bool {
    let config = PlanConfig {
        placer: Placer::Export(Slack::PAPER, Topology::default()),
        ..pool.config
    };
    let plan = plan_pool(&pool.lengths, &pool.layout, &pool.heads, &config).expect("legal");
    let target = Slack::PAPER.capacity(pool.tiles.work_total(), pool.layout.workers());
    plan.loads().iter().any(|&load| load > target) || !verify::check(&plan).is_empty()
}
