//! The programs that tasks need beyond the toolchain, fetched where that is possible.

use std::process::Command;

use crate::process::{Outcome, Trouble, answers, cargo, run};
use crate::tree::Tree;

const CARGO_FUZZ_VERSION: &str = "0.13.2";

/// A part of the toolchain that cannot be fetched without knowing where the toolchain came from.
pub(crate) fn component(tree: &Tree, subcommand: &str, name: &str) -> Outcome {
    if answers(cargo(tree, &[subcommand, "--version"]).env_remove("RUSTC_BOOTSTRAP")) {
        return Ok(());
    }
    Err(Trouble::cannot_run(format!(
        "`cargo {subcommand}` is missing: add the component `{name}` to the toolchain, \
         or install Debian's package `{name}`"
    )))
}

/// A program from the distribution.
pub(crate) fn debian(program: &str, package: &str) -> Outcome {
    let is_there = || answers(Command::new(program).arg("--version"));
    if is_there() {
        return Ok(());
    }
    let cannot = |why: &str| Trouble::cannot_run(format!("`{program}` is missing and {why}"));
    // A stale package index is the usual reason for a failed install, so it is fetched first.
    let update = apt_get(&["update"]);
    let install =
        update.and_then(|()| apt_get(&["install", "-y", "--no-install-recommends", package]));
    install.map_err(|trouble| cannot(&trouble.to_string()))?;
    if is_there() {
        Ok(())
    } else {
        Err(cannot("does not run after its package was installed"))
    }
}

/// `cargo fuzz`, from the registry.
pub(crate) fn cargo_fuzz(tree: &Tree) -> Outcome {
    if answers(&mut cargo(tree, &["fuzz", "--version"])) {
        return Ok(());
    }
    run(&mut cargo(
        tree,
        &[
            "install",
            "cargo-fuzz",
            "--locked",
            "--version",
            CARGO_FUZZ_VERSION,
        ],
    ))
    .map_err(|trouble| Trouble::cannot_run(format!("cargo-fuzz is missing and {trouble}")))
}

fn apt_get(arguments: &[&str]) -> Outcome {
    let mut command = if is_root() {
        Command::new("apt-get")
    } else if answers(Command::new("sudo").args(["-n", "true"])) {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "apt-get"]);
        sudo
    } else {
        return Err(Trouble::failed(
            "installing it needs root or a password-less sudo",
        ));
    };
    run(command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive"))
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
