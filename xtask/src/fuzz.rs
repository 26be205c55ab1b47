//! `cargo xtask fuzz`: a few seconds of every target, and proof that the harness can fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Outcome, Trouble, cargo, output, run};
use crate::tools;
use crate::tree::Tree;

pub(crate) const SMOKE_SECONDS: u64 = 5;

const TARGETS: [&str; 7] = [
    "decode",
    "roundtrip",
    "plan_verify",
    "vrsp",
    "lengths_text",
    "idx",
    "npy",
];
/// Targets whose input is a plan file start from the committed ones.
const FED_WITH_PLANS: [&str; 2] = ["decode", "roundtrip"];
/// Targets that read files of any size in constant memory: an input of some kilobytes is worth no allocation of more MiB.
const READERS: [&str; 2] = ["idx", "npy"];
const READER_ALLOCATION_MIB_MAX: u32 = 8;
const PLANS: [&str; 2] = ["tests/golden", "tests/malformed"];
const CANARY_SECONDS: u64 = 20;
/// The canary panics on any input that begins so.
const CANARY_PREFIX: &[u8] = b"LIBRA";

pub(crate) fn main(tree: &Tree, seconds: u64) -> Outcome {
    // libFuzzer itself is C++.
    tools::debian("c++", "g++")?;
    tools::cargo_fuzz(tree)?;
    run(&mut cargo_fuzz(tree, &["build"]))?;
    canary(tree)?;
    for target in TARGETS {
        let corpus = corpus(target);
        fs::create_dir_all(tree.root().join(&corpus))
            .map_err(|error| Trouble::failed(format!("{corpus}: {error}")))?;
        run(&mut target_run(tree, target, seconds))?;
    }
    Ok(())
}

/// Inputs that earlier runs found worth keeping.
fn corpus(target: &str) -> String {
    format!("fuzz/corpus/{target}")
}

fn cargo_fuzz(tree: &Tree, arguments: &[&str]) -> Command {
    let mut command = cargo(tree, &["fuzz"]);
    // Coverage and sanitizer flags are unstable; this lets a stable compiler take them.
    command.args(arguments).env("RUSTC_BOOTSTRAP", "1");
    command
}

fn target_run(tree: &Tree, target: &str, seconds: u64) -> Command {
    let mut command = cargo_fuzz(tree, &["run", target, &corpus(target)]);
    if FED_WITH_PLANS.contains(&target) {
        command.args(PLANS.into_iter().filter(|folder| tree.exists(folder)));
    }
    command.args(["--", "-seed=1", &format!("-max_total_time={seconds}")]);
    if READERS.contains(&target) {
        command.arg(format!("-malloc_limit_mb={READER_ALLOCATION_MIB_MAX}"));
    }
    command
}

/// The fuzzer must find the canary's crash; a crash found is then removed.
fn canary(tree: &Tree) -> Outcome {
    let artifacts = tree.root().join("fuzz/artifacts/canary");
    let corpus = tree.root().join(corpus("canary"));
    // What an earlier run left behind would prove nothing about this one.
    for folder in [&artifacts, &corpus] {
        clear(folder)?;
    }
    let limit = format!("-max_total_time={CANARY_SECONDS}");
    let arguments = [
        "run",
        "canary",
        "--",
        "-seed=1",
        "-use_value_profile=1",
        &limit,
    ];
    let run = output(&mut cargo_fuzz(tree, &arguments))?;
    let found = crashes(&artifacts).iter().any(|crash| is_canary(crash));
    clear(&artifacts)?;
    if found && !run.status.success() {
        eprintln!("canary: found");
        return Ok(());
    }
    eprintln!("{}", String::from_utf8_lossy(&run.stderr));
    Err(Trouble::failed(format!(
        "the fuzzer did not find the canary in {CANARY_SECONDS} s: {}",
        run.status
    )))
}

fn crashes(artifacts: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(artifacts).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn is_canary(crash: &Path) -> bool {
    fs::read(crash).is_ok_and(|input| input.starts_with(CANARY_PREFIX))
}

fn clear(folder: &Path) -> Outcome {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder)
        .map_err(|error| Trouble::failed(format!("{}: {error}", folder.display())))
}
