//! Whatever is wrong with an input, the message has the numbers and the exit code says who acts.

use std::fs;
use std::path::Path;

use libra_sched::{
    HeadSplit, LayoutKind, PackedLengths, PlanConfig, PoolPlan, TokenLayout, plan_pool, wire,
};
use tempfile::TempDir;

use super::{Done, run, run_at};

/// A folder with a file `name` of these bytes.
fn folder(name: &str, bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join(name), bytes).expect("written");
    folder
}

fn refused(done: &Done, code: i32, message: &str) {
    assert_eq!(done.stderr.trim_end(), message);
    assert_eq!(done.code, code, "{message}");
    assert_eq!(done.stdout, "", "{message}");
}

fn refuses(line: &str, code: i32, message: &str) {
    refused(&run(line), code, message);
}

fn refuses_lengths(name: &str, bytes: &[u8], flags: &[&str], message: &str) {
    let folder = folder(name, bytes);
    let output = "plans";
    let arguments = [&["plan", name, "-o", output], flags].concat();
    refused(&run_at(folder.path(), &arguments), 3, message);
    assert!(
        !folder.path().join(output).exists(),
        "nothing is half-written"
    );
}

#[test]
fn lengths_must_be_named() {
    for command in ["plan", "corpus", "run"] {
        refuses(
            command,
            2,
            "error: no lengths were given\n\
             hint: name a file of lengths, a bundled corpus (linux-6.1), or --dist lognormal:607,1.7",
        );
    }
}

#[test]
fn lengths_must_be_readable() {
    refuses(
        "plan nowhere.txt",
        3,
        "error: nowhere.txt: no such file, nor a bundled corpus (linux-6.1)",
    );
    refuses(
        "plan src",
        3,
        "error: src: is a directory; legal is a regular file",
    );
    let message = "error: a.txt: is empty (0 bytes); legal is at least one sample";
    refuses_lengths("a.txt", b"", &[], message);
    let message = "error: a.txt: holds no samples in 2 lines; legal is at least one";
    refuses_lengths("a.txt", b"# none\n\n", &[], message);
    let message = "error: a.txt, line 2: the sample has 0 tokens; legal is 1 to 4294967295";
    refuses_lengths("a.txt", b"5\n0\n", &[], message);
    let message =
        "error: a.txt, line 1: 4294967296 tokens are too many; a sample has 1 to 4294967295";
    refuses_lengths("a.txt", b"4294967296\n", &[], message);
    let message =
        "error: a.txt, line 1: `LIBRA` is not a whole number; a sample has 1 to 4294967295 tokens";
    refuses_lengths("a.txt", b"LIBRA", &[], message);
    let message = "error: a.npy: is not a NumPy vector of integers: ";
    let folder = folder("a.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<u4'");
    let done = run_at(folder.path(), &["plan", "a.npy"]);
    assert!(done.stderr.starts_with(message), "{}", done.stderr);
    assert_eq!(done.code, 3);
    let message = "error: a.pdf: suffix `pdf` is not that of a length file; legal are .txt, .npy, .csv, .jsonl, \
                   .idx, .parquet, .arrow and .feather, the first five also with .gz or .zst";
    refuses_lengths("a.pdf", b"%PDF", &[], message);
}

#[test]
fn samples_must_fit_and_fill_a_window() {
    let tiny = ["--preset", "tiny"];
    let message = "error: the corpus has 70 tokens, packed into 2 sequences; windows of 8 sequences \
                   of 64 tokens with the first 0 skipped need 512 tokens\n\
                   hint: lower --gbs, --tokens or --skip-windows; \
                   --fill-last fills the last window with empty sequences";
    refuses_lengths("a.txt", b"30\n40\n", &tiny, message);
    let message = "error: sample 2 has 65 tokens, a sequence only 64, and best-fit does not cut samples\n\
                   hint: raise --tokens, or cut samples with --pack concat";
    let fit = [&tiny[..], &["--pack", "best-fit"]].concat();
    refuses_lengths("a.txt", b"30\n65\n", &fit, message);
}

#[test]
fn shapes_must_go_together() {
    for (flags, message) in [
        (
            "-P 3",
            "DP is 16, not a multiple of P 3; legal P: 1, 2, 4, 8, 16",
        ),
        (
            "--dp 24",
            "GBS is 128, not a multiple of DP 24; legal DP: 1, 2, 4, 8, 16, 32, 64, 128",
        ),
        (
            "-H 5",
            "h_q is 32, not a multiple of H 5; legal H: 1, 2, 4, 8, 16, 32",
        ),
        (
            "-M 3",
            "h_q/H is 4, not a multiple of M 3; legal M: 1, 2, 4",
        ),
        (
            "--kv-heads 6",
            "h_q is 32, not a multiple of h_kv 6; legal h_kv: 1, 2, 4, 8, 16, 32",
        ),
        ("-B 0", "block tokens is 0, must be at least 1"),
        ("-P 0", "P is 0, must be at least 1"),
        (
            "--gpus-per-node 0",
            "GPUs per node is 0, must be at least 1",
        ),
        (
            "--nodes-per-pod 0",
            "nodes per pod is 0, must be at least 1",
        ),
        (
            "--tokens 2G",
            "seq_tokens is 2147483648, above the limit of 1073741824",
        ),
        ("--pp 0", "PP is 0, must be at least 1"),
        (
            "--elastic 2 --vrsp paper",
            "vrsp algorithm of elastic pools \"paper\" is unknown; one of certified",
        ),
        (
            "--max-recv-bytes 1M",
            "w56 would receive 145682432 bytes, more than max_recv_bytes 1048576; \
             raise the limit, the slack or the block size, or lower the pool size",
        ),
    ] {
        refuses(
            &format!("plan linux-6.1 {flags}"),
            3,
            &format!("error: {message}"),
        );
    }
}

#[test]
fn numbers_and_names_must_be_legal() {
    for (flags, message) in [
        (
            "--tokens 3X",
            "`3X` is not a number; legal is a whole number such as 8192, 8_192 or 8K",
        ),
        ("--gbs 4G", "`4G` is too large; legal is 0 to 4294967295"),
        (
            "--slack 2000",
            "slack \"2000\" is not a number from 0 to 1000",
        ),
        (
            "--mask window",
            "mask \"window\" is unknown; one of causal, full, causal+S, window:W,",
        ),
        (
            "--mask window:0",
            "window of a mask is 0, must be at least 1",
        ),
        (
            "--proxy tokens",
            "proxy \"tokens\" is unknown; one of squares, pairs, moba:B,top:K, nsa:L,stride:D,",
        ),
        (
            "--proxy moba:256,top:0",
            "top of MoBA is 0, must be at least 1",
        ),
        (
            "--placement best",
            "[possible values: home, paper, head-shard, export]",
        ),
        (
            "--dist normal:1",
            "`normal` is not a known one; legal is lognormal:MEDIAN,SIGMA",
        ),
        (
            "--dist lognormal:1,1",
            "cannot be used with '--dist <DIST>'",
        ),
    ] {
        let done = run(&format!("plan linux-6.1 {flags}"));
        assert!(done.stderr.contains(message), "{flags}: {}", done.stderr);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{flags}");
    }
}

#[test]
fn sparse_attention_weighs_sequences_and_nothing_more() {
    refuses(
        "run linux-6.1 --preset tiny --proxy moba:8,top:2",
        3,
        "error: proxy moba:8,top:2 cannot be combined with execution; one of squares, pairs",
    );
    refuses(
        "plan linux-6.1 --preset tiny --proxy moba:8,top:2 -o plans",
        3,
        "error: proxy moba:8,top:2 cannot be combined with plans that are written; one of squares, pairs",
    );
    refuses(
        "plan linux-6.1 --preset tiny --proxy moba:8,top:2 --mask full",
        3,
        "error: mask full cannot be combined with sparse attention as the proxy; one of causal",
    );
}

#[test]
fn a_run_must_fit_the_machine_and_the_window() {
    refuses(
        "run linux-6.1",
        3,
        "error: the pool would hold about 1.2 TiB of tensors, the limit is 4.0 GiB\n\
         hint: --scale 512 divides the tokens and fits",
    );
    refuses(
        "run --dist lognormal:128K,0 --preset tiny --tokens 128K",
        3,
        "error: the pool asks for 5.5e11 multiplications a method, the limit is 5.0e10\n\
         hint: --scale 4 divides the tokens and fits",
    );
    refuses(
        "run linux-6.1 --preset tiny --pool 4",
        3,
        "error: pool 4 does not exist; the window has pools 0 to 3",
    );
    refuses(
        "run linux-6.1 --preset tiny --cp 3",
        3,
        "error: ulysses splits the query heads over CP workers: h_q is 4, not a multiple of H 3; legal H: 1, 2, 4\n\
         hint: lower --cp, or raise --q-heads",
    );
}

#[test]
fn a_stalled_peer_ends_the_run() {
    let done = run("run linux-6.1 --preset tiny --timeout 0");
    assert_eq!(done.code, 7);
    let begin = "error: the pool did not run through: w";
    assert!(done.stderr.starts_with(begin), "{}", done.stderr);
}

/// Two sequences on four workers.
fn plan() -> PoolPlan {
    let pool = PackedLengths::new(16, [vec![16u64], vec![4; 4]]).expect("legal");
    let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 16, 2).expect("legal");
    let heads = HeadSplit::new(4, 2, 8, 8, 2, 2).expect("legal");
    plan_pool(&pool, &layout, &heads, &PlanConfig::paper(4)).expect("legal")
}

fn opened(command: &str, bytes: &[u8]) -> Done {
    let folder = folder("a.plan", bytes);
    run_at(folder.path(), &[command, "a.plan"])
}

#[test]
fn files_that_are_no_plans_are_told_apart() {
    let whole = wire::encode(&plan());
    let mut other_version = whole.clone();
    other_version[8] = 2;
    let mut flipped = whole.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    for command in ["check", "show"] {
        let refuses = |bytes: &[u8], message: &str| {
            let message = format!("error: a.plan: cannot be decoded: {message}");
            refused(&opened(command, bytes), 3, &message);
        };
        refuses(b"", "not a plan: starts with [], not with \"LIBRAPLN\"");
        refuses(
            b"12\n",
            "not a plan: starts with [31, 32, 0a], not with \"LIBRAPLN\"",
        );
        refuses(&other_version, "plan format 2, this library reads format 1");
        let length = whole.len();
        let message = format!("100 bytes, the header's length asks for {length}");
        refuses(&whole[..100], &message);
        assert_eq!(opened(command, &flipped).code, 3);
    }
    let at = tempfile::tempdir().expect("a temporary folder");
    let done = run_at(at.path(), &["check", "."]);
    refused(
        &done,
        3,
        "error: .: cannot be read: it is not a regular file",
    );
    let done = run_at(at.path(), &["show", "a.plan"]);
    refused(
        &done,
        3,
        "error: a.plan: cannot be read: No such file or directory (os error 2)",
    );
}

#[test]
fn a_plan_that_breaks_its_rules_is_caught() {
    let mut broken = plan();
    let lost = broken.exchange.o.pop().expect("a tile is away from home");
    let bytes = wire::encode(&broken);
    let violation = format!("tile {}: 0 O moves, must be 1", lost.tile.index());

    let checked = opened("check", &bytes);
    let id = wire::PlanId::of(&broken);
    assert_eq!(
        checked.stdout,
        format!(
            "a.plan: 1 violation, plan {id}\n  {violation}\n# Reproduce: libra-bench check a.plan\n"
        )
    );
    assert_eq!((checked.code, checked.stderr.as_str()), (4, ""));

    let message = format!(
        "error: a.plan: the plan breaks 1 of its rules, the first: {violation}\n\
         hint: libra-bench check a.plan lists them all"
    );
    refused(&opened("show", &bytes), 4, &message);
}

#[test]
fn every_file_is_checked_whatever_the_others_are() {
    let folder = folder("good.plan", &wire::encode(&plan()));
    fs::write(folder.path().join("bad.plan"), "no").expect("written");
    let id = wire::PlanId::of(&plan());
    let done = run_at(folder.path(), &["check", "bad.plan", "good.plan"]);
    let again = "# Reproduce: libra-bench check bad.plan good.plan";
    assert_eq!(done.stdout, format!("good.plan: ok {id}\n{again}\n"));
    assert_eq!(done.code, 3);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = folder("taken", b"");
    let done = run_at(
        folder.path(),
        &["plan", "linux-6.1", "--preset", "tiny", "-o", "taken"],
    );
    refused(
        &done,
        3,
        "error: taken: cannot be written: File exists (os error 17)",
    );
    assert!(Path::new(&folder.path().join("taken")).is_file());
}

#[test]
fn special_files_are_not_waited_for() {
    for command in ["check", "show"] {
        let done = run(&format!("{command} /dev/zero"));
        assert_eq!(done.code, 3);
        assert!(
            done.stderr.contains("it is not a regular file"),
            "{}",
            done.stderr
        );
    }
}

#[test]
fn counts_that_make_no_sense_are_usage_errors() {
    for (flags, legal) in [
        ("--windows 0", "legal is 1 or more"),
        ("--threads 4294967295", "legal is 0 to 1024"),
    ] {
        let done = run(&format!("plan linux-6.1 {flags}"));
        assert_eq!(done.code, 2, "{flags}");
        assert!(done.stderr.contains(legal), "{}", done.stderr);
    }
}

#[test]
fn measurements_must_be_possible() {
    let table = |time: &str| {
        format!(
            "{{\n\"mask\": \"causal\",\n\"lengths\": [128],\n\"heads\": [8],\n\"time_ns\": [[{time}]]\n}}"
        )
    };
    for (text, message) in [
        (
            table("0"),
            "c.json: time_ns[0][0] is 0.0, must be a time from 2e-8 to 1e11 ns for so many queries and heads",
        ),
        (
            table("\"fast\""),
            "c.json: is no table of costs: invalid type: string \"fast\", expected f64 at line 5 column 19",
        ),
        (
            table("1").replace("heads", "head"),
            "c.json: is no table of costs: unknown field `head`, expected one of \
             `about`, `mask`, `lengths`, `heads`, `time_ns` at line 4 column 6",
        ),
        (
            table("1").replace("causal", "sparse"),
            "c.json: mask \"sparse\" is unknown; one of causal, full, causal+S, window:W, window:W,sinks:S, \
             two-sided:L,R, chunked:C, block:B,local:N, block:B,local:N,sinks:S, prefix:P, keys:A..B",
        ),
        (
            table("1").replace("[128]", "[128, 256]"),
            "c.json: the number of entries in time_ns is 1, must be 2, one for each of lengths",
        ),
    ] {
        let folder = folder("c.json", text.as_bytes());
        let done = run_at(folder.path(), &["plan", "linux-6.1", "--costs", "c.json"]);
        refused(&done, 3, &format!("error: {message}"));
    }
    for (file, message) in [
        (
            "1\n# a comment\n\n-1 # slow\n",
            "speeds.txt, line 4: a speed is \"-1\", must be a number from 0.000001 to 1000 \
             with up to six digits after the point",
        ),
        (
            "1\n0.5\n",
            "number of workers is 2 in the speeds but 64 in the pool",
        ),
    ] {
        let folder = folder("speeds.txt", file.as_bytes());
        let done = run_at(
            folder.path(),
            &["plan", "linux-6.1", "--speeds", "speeds.txt"],
        );
        refused(&done, 3, &format!("error: {message}"));
    }
    for (speeds, message) in [
        (
            "64=1",
            "--speeds: `64=1` gives no worker a speed; workers are 0 to 63",
        ),
        (
            "1=0.5,1=1",
            "--speeds: `1=1` gives no worker a speed; worker 1 is named before",
        ),
        (
            "1=0.5,2",
            "--speeds: `2` gives no worker a speed; legal is WORKER=SPEED such as 3=0.8",
        ),
        (
            "1=0",
            "--speeds, 1=0: a speed is \"0\", must be a number from 0.000001 to 1000 \
             with up to six digits after the point",
        ),
    ] {
        let line = format!("plan linux-6.1 --speeds {speeds}");
        refuses(&line, 3, &format!("error: {message}"));
    }
    let done = run("plan linux-6.1 --costs nowhere.json");
    assert!(
        done.stderr
            .starts_with("error: nowhere.json: cannot be read: "),
        "{}",
        done.stderr
    );
    assert_eq!(done.code, 3);
    refuses(
        "plan linux-6.1 --costs src",
        3,
        "error: src: cannot be read: legal is a regular file of at most 16777216 bytes",
    );
}
