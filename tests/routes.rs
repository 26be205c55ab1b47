//! The book's measurement of KV routes, on the bundled corpus: made again and compared.

#![forbid(unsafe_code)]

use std::fmt::Write;

use libra_bench::units::format_bytes;
use libra_bench::workload::{Packer, WindowOptions, bundled};
use libra_sched::audit::audit;
use libra_sched::vrsp::{self, Vrsp};
use libra_sched::{
    HeadSplit, KvFetch, KvRoute, LayoutKind, Mask, PackedLengths, PlanConfig, PoolId, PoolPlan,
    Proxy, TokenLayout, Topology, WindowShape, plan_pool,
};
use libra_tests::blessed::assert_holds;

/// The presets of `libra-bench` that are no toys: name, L, GBS, CP and B.
const PRESETS: [(&str, u64, u32, u32, u32); 2] = [
    ("paper-256k", 256 << 10, 128, 8, 4096),
    ("paper-1m", 1 << 20, 32, 16, 8192),
];

/// Sums over the pools of one window.
#[derive(Default)]
struct Sums {
    pools: u64,
    kv_between: u64,
    between: u64,
    port: u64,
    forwarded: u64,
    moves: usize,
}

impl Sums {
    fn add(&mut self, plan: &PoolPlan, nodes: Topology) {
        let audit = audit(plan, nodes);
        let crosses = |m: &&libra_sched::KvMove| nodes.node(m.src) != nodes.node(m.dst);
        let kv = plan.exchange.kv.iter().filter(crosses);
        self.kv_between += kv.map(|m| plan.kv_bytes(m)).sum::<u64>();
        self.between += audit.cross_node_bytes;
        self.port += audit.busiest_port_bytes();
        self.forwarded += audit.forward_bytes;
        self.moves += plan.exchange.kv.len() + plan.exchange.forward.len();
        self.pools += 1;
    }
}

fn first_window(tokens: u64, gbs: u32) -> PackedLengths {
    let options = WindowOptions {
        gbs: gbs.into(),
        ..WindowOptions::default()
    };
    let lengths = bundled::lengths("linux-6.1").expect("ships with libra-bench");
    let packed = Packer::ConcatenateAndCut.pack(lengths, tokens);
    let mut windows = packed.expect("legal").windows(&options).expect("legal");
    let window = windows.next().expect("the corpus fills a window");
    let sequences = window.expect("samples of at least one token").sequences;
    PackedLengths::new(tokens, sequences).expect("packed to fit")
}

#[test]
fn the_book_shows_what_one_copy_a_node_saves() {
    let mut text = String::from(
        "| preset | K and V | route | K and V between nodes | all between nodes | busiest port | forwarded | KV moves |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    let nodes = Topology::default();
    for (name, tokens, gbs, cp, block) in PRESETS {
        let shape = WindowShape::new(tokens, gbs, 16, cp, 8).expect("legal");
        let heads = HeadSplit::new(32, 8, 128, 128, 2, 4).expect("legal");
        let (kind, length) = (LayoutKind::Contiguous, shape.seq_tokens());
        let layout = TokenLayout::new(kind, 8, length, cp).expect("legal");
        let window = first_window(tokens, gbs);
        let work = window.work(Proxy::Pairs(Mask::Causal));
        let work = work.expect("pairs of a window fit 64 bits");
        let placed = vrsp::place(&work, 8, Vrsp::default()).expect("P divides GBS");
        for kv_fetch in KvFetch::ALL {
            for kv_route in [KvRoute::Direct, KvRoute::Node(nodes)] {
                let config = PlanConfig {
                    kv_fetch,
                    kv_route,
                    ..PlanConfig::paper(block)
                };
                let mut sums = Sums::default();
                for pool in 0..shape.pools() {
                    let lengths = window.select(placed.members(PoolId(pool)));
                    let lengths = lengths.expect("members exist");
                    let plan = plan_pool(&lengths, &layout, &heads, &config).expect("legal");
                    sums.add(&plan, nodes);
                }
                let mean = |bytes: u64| format_bytes(bytes / sums.pools);
                writeln!(
                    text,
                    "| {name} | {kv_fetch} | {kv_route} | {} | {} | {} | {} | {} |",
                    mean(sums.kv_between),
                    mean(sums.between),
                    mean(sums.port),
                    mean(sums.forwarded),
                    sums.moves / sums.pools as usize,
                )
                .expect("a string takes all that is written");
            }
        }
    }
    assert_holds("docs/src/data/routes.md", text.as_bytes());
}
