//! Sweeps that end early, and go on.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Done, run_at};

const SWEEP: &str = "sweep --dist lognormal:12,1 --preset tiny --windows 20 -P 1,2,4 --slack 0.03,0.3 --no-timings \
                     -o s.json";

fn sweep(at: &Path, flags: &str) -> Done {
    let line = format!("{SWEEP} {flags}");
    let words: Vec<&str> = line.split_whitespace().collect();
    run_at(at, &words)
}

fn change(at: &Path, change: impl Fn(&mut Value)) {
    let path = at.join("s.json");
    let text = fs::read_to_string(&path).expect("written");
    let mut report: Value = serde_json::from_str(&text).expect("JSON");
    change(&mut report);
    fs::write(path, report.to_string()).expect("written");
}

#[test]
fn what_is_missing_is_done_and_the_report_is_the_same() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    // Nothing to go on with is no failure.
    let whole = sweep(at, "--resume");
    assert_eq!((whole.code, whole.stderr.as_str()), (0, ""));
    let written = fs::read_to_string(at.join("s.json")).expect("written");
    change(at, |report| {
        let cases = report["cases"].as_array_mut().expect("a list");
        cases.remove(4);
        cases.remove(1);
        cases[0]["interrupted"] = json!(true);
    });
    let resumed = sweep(at, "--resume --progress plain");
    assert_eq!((resumed.code, resumed.stdout), (0, whole.stdout));
    // P 1 twice, P 4 once; windows of 8 and of 2 pools.
    assert!(resumed.stderr.starts_with("planned "), "{}", resumed.stderr);
    assert!(
        resumed.stderr.ends_with("of 360 (100 %)\n"),
        "{}",
        resumed.stderr
    );
    assert_eq!(
        fs::read_to_string(at.join("s.json")).expect("written"),
        written
    );
}

#[test]
fn cases_that_are_done_are_taken_as_they_are() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    assert_eq!(sweep(at, "").code, 0);
    change(at, |report| {
        report["cases"][2]["worst_excess_max"] = json!(77);
    });
    let resumed = sweep(at, "--resume");
    assert!(resumed.stdout.contains(" 77.0000 "), "{}", resumed.stdout);
    assert!(!sweep(at, "").stdout.contains(" 77.0000 "));
}

#[test]
fn another_sweep_is_told_what_differs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    assert_eq!(sweep(at, "").code, 0);
    let hint = "\nhint: without --resume the file is written anew\n";
    for (flags, differs) in [
        ("--seed 3", "seed is 7 there and 3 here"),
        ("-M 1", "config.chunks is 2 there and 1 here"),
        ("--windows 21", "config.windows is 20 there and 21 here"),
        (
            "--verify all",
            "config.verify is \"sample\" there and \"all\" here",
        ),
        (
            "--beside paper",
            "config.beside is \"none\" there and \"paper\" here",
        ),
    ] {
        let line = format!("--resume {flags}");
        let done = match flags.split_once(' ') {
            // A flag is given once.
            Some(("--windows", windows)) => {
                let line = SWEEP.replace("--windows 20", &format!("--windows {windows}"));
                let line = format!("{line} --resume");
                run_at(at, &line.split_whitespace().collect::<Vec<_>>())
            }
            _ => sweep(at, &line),
        };
        assert_eq!(
            done.stderr,
            format!("error: s.json: is of another sweep: {differs}{hint}")
        );
        assert_eq!((done.code, done.stdout.as_str()), (3, ""));
    }
    change(at, |report| {
        report["environment"]["version"] = json!("0.0.1");
    });
    let done = sweep(at, "--resume");
    assert!(
        done.stderr.contains("version is \"0.0.1\" there"),
        "{}",
        done.stderr
    );
    change(at, |report| {
        report["schema"] = json!(2);
    });
    let done = sweep(at, "--resume");
    assert!(
        done.stderr.contains("its schema is 2, legal is 1"),
        "{}",
        done.stderr
    );
    fs::write(at.join("s.json"), "{").expect("written");
    let done = sweep(at, "--resume");
    assert!(
        done.stderr.contains("s.json: is no report in JSON: "),
        "{}",
        done.stderr
    );
    assert_eq!(done.code, 3);
}

#[test]
fn files_that_are_others_than_they_were_are_told_with_both_values() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).expect("written");
    let line = "sweep a.txt b.txt --preset tiny --windows 2 -P 2 --slack 0.03,0.3 --speeds speeds.txt -o s.json";
    let sweep = |flags: &str| {
        let line = format!("{line}{flags}");
        run_at(at, &line.split_whitespace().collect::<Vec<_>>())
    };
    let speeds = "1\n1\n0.5\n1\n";
    write("a.txt", &"24\n".repeat(40));
    write("b.txt", &"8\n".repeat(40));
    write("speeds.txt", speeds);
    let whole = sweep("");
    assert_eq!((whole.code, whole.stderr.as_str()), (0, ""));
    let report = fs::read_to_string(at.join("s.json")).expect("written");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let files = report["config"]["files"].as_array().expect("a list");
    let names: Vec<&str> = files.iter().filter_map(|f| f["file"].as_str()).collect();
    assert_eq!(names, ["a.txt", "b.txt", "speeds.txt"]);
    // Written again with the same content, they are the same.
    write("a.txt", &"24\n".repeat(40));
    let again = sweep(" --resume");
    assert_eq!((again.code, again.stdout), (0, whole.stdout));
    for (name, was, is) in [
        ("a.txt", "24\n".repeat(40), "24\n".repeat(39) + "25\n"),
        ("b.txt", "8\n".repeat(40), "8\n".repeat(41)),
        ("speeds.txt", speeds.to_owned(), "1\n1\n1\n0.5\n".to_owned()),
    ] {
        write(name, &is);
        let done = sweep(" --resume");
        let [was, is] = [was, is].map(|text| {
            let digest = xxhash_rust::xxh3::xxh3_64(text.as_bytes());
            format!("{} bytes with digest {digest:016x}", text.len())
        });
        let message = format!(
            "error: s.json: is of another sweep: {name} has {was} there and {is} here\n\
             hint: without --resume the file is written anew\n"
        );
        assert_eq!((done.code, done.stderr), (3, message));
        match name {
            "a.txt" => write("a.txt", &"24\n".repeat(40)),
            "b.txt" => write("b.txt", &"8\n".repeat(40)),
            _ => {}
        }
    }
}

#[test]
fn resuming_needs_one_file_in_json() {
    for (flags, given) in [
        ("", "none was given"),
        ("-o a.csv", "none was given"),
        ("-o a.json -o b.json", "several were given"),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let line = format!("sweep linux-6.1 --preset tiny --resume {flags}");
        let done = run_at(folder.path(), &line.split_whitespace().collect::<Vec<_>>());
        let message = format!("error: --resume goes on with the .json file of -o; {given}\n");
        assert_eq!((done.code, done.stderr), (2, message));
    }
}

#[test]
fn a_failure_keeps_what_was_done_before() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    // Lengths fill windows of 64 tokens, not of 8K.
    fs::write(at.join("a.txt"), "64\n".repeat(8)).expect("written");
    let line = "sweep a.txt --preset tiny --tokens 64,8K -o a.json";
    let done = run_at(at, &line.split_whitespace().collect::<Vec<_>>());
    assert_eq!((done.code, done.stdout.as_str()), (3, ""));
    let text = fs::read_to_string(at.join("a.json")).expect("written");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let cases = report["cases"].as_array().expect("a list");
    assert_eq!((cases.len(), &cases[0]["tokens"]), (1, &json!(64)));
}

#[cfg(unix)]
#[test]
fn an_interrupted_sweep_keeps_the_windows_that_are_done() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    let line =
        "sweep --dist lognormal:12,1 --preset tiny --windows 40K -P 2,4 -o s.json --progress plain";
    let mut child = super::program(at)
        .args(line.split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is built");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut progress = String::new();
    stderr.read_line(&mut progress).expect("readable");
    assert!(progress.starts_with("planned "), "{progress}");
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("kill is there").success());
    let mut table = String::new();
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_to_string(&mut table).expect("text");
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{rest}");
    assert!(table.contains("  interrupted, "), "{table}");
    let text = fs::read_to_string(at.join("s.json")).expect("written");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let case = &report["cases"][0];
    assert_eq!(case["interrupted"], true);
    let windows = case["windows"].as_u64().expect("a number");
    assert!((1..40 << 10).contains(&windows), "{windows}");
    assert_eq!(case["pools"].as_u64(), Some(4 * windows));
    assert_eq!(report["cases"].as_array().map(Vec::len), Some(1));
}
