//! What people read, as snapshots. Blanks at ends of lines are not part of them.

use super::stdout;

fn trimmed(text: &str) -> String {
    let lines = text.lines().map(str::trim_end);
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn help() {
    insta::assert_snapshot!("help", trimmed(&stdout("--help")));
    for command in [
        "demo", "corpus", "plan", "sweep", "simulate", "show", "check", "run", "compare",
        "figures", "report", "doctor",
    ] {
        let text = stdout(&format!("{command} --help"));
        insta::assert_snapshot!(format!("help-{command}"), trimmed(&text));
    }
}

#[test]
fn tables() {
    let plan = stdout("plan linux-6.1 --skip-windows 1 --no-timings");
    insta::assert_snapshot!("plan", trimmed(&plan));
    let windows = stdout("plan linux-6.1 --preset tiny --windows 3 --no-timings");
    insta::assert_snapshot!("plan-windows", trimmed(&windows));
    let measured = "--costs ../docs/src/data/costs-h100.json --speeds 3=0.8,17=0.5";
    let measured = stdout(&format!("plan linux-6.1 -H 4 {measured} --no-timings"));
    insta::assert_snapshot!("plan-measured", trimmed(&measured));
    let simulated = stdout("simulate linux-6.1 --preset paper-256k --gbs 16 --skip-windows 8");
    insta::assert_snapshot!("simulate", trimmed(&simulated));
    let adaptive = stdout("plan linux-6.1 --skip-windows 1 --tiles adaptive --no-timings");
    insta::assert_snapshot!("plan-adaptive", trimmed(&adaptive));
    let flags = "--preset tiny --windows 2 --no-timings";
    let outliers = "--dist lognormal:4,1,0.02,0.9";
    let merged = stdout(&format!("plan {outliers} --elastic 2 {flags}"));
    insta::assert_snapshot!("plan-elastic", trimmed(&merged));
    let ordered = stdout(&format!(
        "plan --dist lognormal:12,1 --ga-order balanced {flags}"
    ));
    insta::assert_snapshot!("plan-ordered", trimmed(&ordered));
    let over = "--over P=2,4,8 --over placement=home,paper";
    let sweep = stdout(&format!(
        "sweep linux-6.1 --beside paper {over} --no-timings"
    ));
    insta::assert_snapshot!("sweep", trimmed(&sweep));
    insta::assert_snapshot!("corpus", trimmed(&stdout("corpus linux-6.1")));

    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    let plan = [
        "plan",
        "--dist",
        "lognormal:12,1",
        "--preset",
        "tiny",
        "-o",
        ".",
    ];
    assert_eq!(super::run_at(at, &plan).code, 0);
    let file = "window-0000-pool-001.plan";
    for (name, flags) in [
        ("show", &["--gpus-per-node", "2"][..]),
        ("show-worker", &["--worker", "1"]),
        ("show-transfers", &["--transfers"]),
    ] {
        let done = super::run_at(at, &[&["show", file], flags].concat());
        assert_eq!((done.code, done.stderr.as_str()), (0, ""));
        insta::assert_snapshot!(name, trimmed(&done.stdout));
    }
}

#[test]
fn the_table_in_the_book_is_what_sweep_prints() {
    let sweep = "sweep --dist calibrated-256k -P 2,4,8,16 --windows 8";
    let printed = trimmed(&stdout(&format!("{sweep} --no-timings -q")));
    let text = format!("```text\n$ libra-bench {sweep} --no-timings\n{printed}\n```\n");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/data/sweep.md");
    if std::env::var_os("LIBRA_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(file, &text).expect("written");
    }
    let there = std::fs::read_to_string(file).expect("written with `cargo xtask bless`");
    assert_eq!(there, text);
}

#[test]
fn demo() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let line = [
        "demo",
        "--no-timings",
        "--progress",
        "off",
        "-o",
        "demo.json",
    ];
    let done = super::run_at(folder.path(), &line);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let document = std::fs::read_to_string(folder.path().join("demo.json")).expect("written");
    assert!(document.contains(r#""reproduce": "libra-bench demo --no-timings","#));
    insta::assert_snapshot!("demo", trimmed(&done.stdout));

    // The command below each table prints the same table.
    let mut rows: Vec<&str> = Vec::new();
    let mut commands = 0;
    for line in done.stdout.lines() {
        assert!(line.chars().count() <= 100, "{line}");
        if let Some(command) = line.strip_prefix("# Reproduce: libra-bench ") {
            let printed = stdout(&format!("{command} --no-timings --progress off"));
            let missing: Vec<&&str> = rows.iter().filter(|row| !printed.contains(*row)).collect();
            assert_eq!(missing, [&""; 0], "{command}");
            commands += 1;
            rows.clear();
        } else if line.starts_with(' ') {
            rows.push(line);
        }
    }
    assert_eq!((commands, rows), (3, Vec::new()));
}
