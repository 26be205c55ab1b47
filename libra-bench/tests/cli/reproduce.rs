//! The command below a table prints the table again. `demo`, which is several reports, is a test of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::run_at;

/// Runs a command line as a shell would: it may hold quotes.
fn shell(at: &Path, line: &str) -> String {
    let rest = line.strip_prefix("libra-bench ");
    let rest = rest.expect("a command of this program");
    let script = format!("'{}' {rest}", env!("CARGO_BIN_EXE_libra-bench"));
    let mut command = Command::new("sh");
    let output = command.current_dir(at).args(["-c", &script]).output();
    let output = output.expect("a shell");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {stderr}");
    String::from_utf8(output.stdout).expect("text")
}

/// The last command that a report names.
fn reproducer(printed: &str) -> &str {
    let mut lines = printed
        .lines()
        .filter_map(|line| line.strip_prefix("# Reproduce: "));
    lines.next_back().expect("a command below the table")
}

#[test]
fn every_command_prints_how_to_print_the_same() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    fs::write(at.join("it's a.csv"), "tokens\n30\n64\n7\n90\n").expect("written");
    let tiny = ["--preset", "tiny", "--no-timings"];
    let lengths = ["it's a.csv", "--fill-last", "--column", "tokens"];
    let drawn = ["--dist", "lognormal:12,1", "--seed", "3"];
    let plan = "plans/window-0000-pool-001.plan";
    let swept = [
        "-P",
        "1,2",
        "--over",
        "mask=causal;window:6,sinks:2",
        "--beside",
        "paper",
        "--verify",
        "all",
    ];
    let commands: [&[&str]; 19] = [
        &[
            &["plan"],
            &lengths[..],
            &tiny,
            &["-o", "plans", "-o", "a.json"],
        ]
        .concat(),
        &[
            &["plan"],
            &drawn[..],
            &tiny,
            &["--windows", "3", "-o", "b.json", "--elastic", "2"],
        ]
        .concat(),
        &[
            &["plan"],
            &drawn[..],
            &tiny,
            &["--windows", "2", "--speeds", "1=0.5", "--tiles", "adaptive"],
        ]
        .concat(),
        &[&["corpus"], &lengths[..], &tiny].concat(),
        &[
            &["corpus"],
            &drawn[..],
            &tiny,
            &["--windows", "3", "--pack", "best-fit"],
        ]
        .concat(),
        &[&["sweep"], &drawn[..], &tiny, &["--windows", "20"], &swept].concat(),
        &[&["sweep"], &lengths[..], &tiny, &["-H", "1,2"]].concat(),
        &["show", plan, "--worker", "1", "--transfers"],
        &["show", plan, "--gpus-per-node", "2"],
        &["check", plan, "plans/window-0000-pool-000.plan"],
        &[
            &["run"],
            &drawn[..],
            &tiny,
            &["--pool", "1", "--backward", "stash", "-r", "1"],
        ]
        .concat(),
        &[&["run"], &lengths[..], &tiny, &["--dtype", "f64"]].concat(),
        &[
            &["run"],
            &drawn[..],
            &tiny,
            &["--method", "paper,all", "-r", "1"],
        ]
        .concat(),
        &["compare", "a.json", "a.json", "--all", "--fail-above", "7%"],
        &["compare", "a.json", "b.json", "--no-timings"],
        &[
            &["simulate"],
            &lengths[..],
            &tiny,
            &["--model", "qwen3-8b", "--cluster", "h100"],
        ]
        .concat(),
        &[
            "figures",
            "--out",
            "figures",
            "--only",
            "4",
            "--windows",
            "1",
        ],
        &["report", "a.json", "-o", "page.html"],
        &["doctor"],
    ];
    // A new command has to be here: `demo` is a test of its own, and clap makes `help`.
    let help = run_at(at, &["--help"]).stdout;
    let (_, listed) = help.split_once("Commands:\n").expect("a list of commands");
    let listed = listed.split("\n\n").next().unwrap_or_default();
    let names = listed.lines().filter(|line| !line.starts_with("    "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let missing: Vec<&str> = names
        .filter(|name| !["demo", "help"].contains(name))
        .filter(|name| !commands.iter().any(|words| words[0] == *name))
        .collect();
    assert_eq!(missing, [""; 0], "commands without a line in this test");
    for words in commands {
        let printed = run_at(at, words);
        assert_eq!(printed.code, 0, "{words:?}: {}", printed.stderr);
        let again = reproducer(&printed.stdout);
        assert_eq!(shell(at, again), printed.stdout, "{again}");
    }
}
