//! Compiles and runs every example of the book and of the README: `cargo test -p libra-docs --doc`.

#![forbid(unsafe_code)]

macro_rules! pages {
    ($($name:ident: $file:literal,)*) => {$(
        #[doc = include_str!($file)]
        mod $name {}
    )*};
}

pages! {
    readme: "../README.md",
    introduction: "src/introduction.md",
    why_pools: "src/why-pools.md",
    by_hand: "src/by-hand.md",
    choosing: "src/choosing.md",
    runs: "src/runs.md",
    masks: "src/masks.md",
    node_dedup: "src/node-dedup.md",
    tiles: "src/tiles.md",
    costs: "src/costs.md",
    simulate: "src/simulate.md",
    brute_force: "src/brute-force.md",
    certified: "src/certified.md",
    ga_order: "src/ga-order.md",
    elastic: "src/elastic.md",
    figures: "src/figures.md",
    report: "src/report.md",
    baselines: "src/baselines.md",
    plan_format: "src/plan-format.md",
    command_line: "src/command-line.md",
    corpora: "src/corpora.md",
    not_promised: "src/not-promised.md",
    differences: "src/differences.md",
    glossary: "src/glossary.md",
}
