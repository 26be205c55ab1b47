//! `cargo xtask bless`: what the code does today becomes what the tests expect.

use std::process::Command;

use crate::icount;
use crate::process::{Outcome, cargo, heading, run};
use crate::tree::Tree;

pub(crate) fn main(tree: &Tree) -> Outcome {
    heading("bless: golden plans, malformed plans, snapshots");
    let tests = run(cargo(tree, &["test", "--workspace", "--no-fail-fast"])
        .env("LIBRA_BLESS", "1")
        .env("INSTA_UPDATE", "always"));
    heading("bless: instruction counts");
    let counts = icount::bless(tree);
    heading("bless: what changed");
    let status = [
        "status",
        "--short",
        "--",
        "tests",
        "libra-bench",
        "libra-sched",
        "libra-exec",
        "docs",
        "README.md",
    ];
    run(Command::new("git").args(status).current_dir(tree.root()))?;
    tests.and(counts)
}
