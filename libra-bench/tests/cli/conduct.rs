//! Streams, signals and readers that go away.

use super::{program, run, stdout};
use std::path::Path;

#[test]
fn results_are_on_stdout_and_progress_is_on_stderr() {
    let done = run("plan linux-6.1 --preset tiny --progress plain --threads 1");
    assert_eq!(done.code, 0);
    assert_eq!(
        done.stderr,
        "planned 1 of 4 (25 %)\nplanned 2 of 4 (50 %)\nplanned 3 of 4 (75 %)\nplanned 4 of 4 (100 %)\n"
    );
    let quiet = run("plan linux-6.1 --preset tiny --progress plain -q --no-timings");
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
    // Lengths end before the windows do.
    let few = run("plan linux-6.1 --skip-windows 8 --windows 2");
    assert_eq!(
        (few.code, few.stderr.as_str()),
        (0, "warning: 2 windows asked for, the corpus has 1\n")
    );
    assert_eq!(
        run("plan linux-6.1 --skip-windows 8 --windows 2 -q").stderr,
        ""
    );
}

#[test]
fn colours_are_for_terminals_or_on_request() {
    assert_eq!(run("plan").stderr.matches('\x1b').count(), 0);
    assert!(
        run("plan --color always")
            .stderr
            .starts_with("\x1b[1;31merror\x1b[0m: ")
    );
}

#[test]
fn every_format_tells_of_every_case() {
    let command = "plan linux-6.1 --preset tiny --no-timings";
    let csv = stdout(&format!("{command} --format csv"));
    let mut lines = csv.lines();
    assert!(
        lines
            .next()
            .is_some_and(|head| head.starts_with("window,pool,ga,plan_id,file,"))
    );
    assert_eq!(lines.count(), 4);
    let md = stdout(&format!("{command} --format md"));
    assert_eq!(
        md.lines().filter(|line| line.starts_with("| 0 |")).count(),
        4
    );
}

#[test]
fn the_doctor_always_ends_well() {
    let text = stdout("doctor");
    assert!(text.contains("backend cpu"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    use std::process::Stdio;
    let mut child = program(Path::new("."))
        .args(["plan", "linux-6.1", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is built");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

/// Runs `arguments` in CSV until they report progress, then interrupts; how many cases there were.
#[cfg(unix)]
fn interrupted(arguments: &[&str], first: &str) -> usize {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};
    let mut child = program(Path::new("."))
        .args(arguments)
        .args(["--progress", "plain", "--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is built");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("readable");
    assert!(line.starts_with(first), "{line}");
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("kill is there").success());
    let mut csv = String::new();
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_to_string(&mut csv).expect("text");
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{rest}");
    assert!(
        rest.ends_with("warning: interrupted; what follows was finished before\n"),
        "{rest}"
    );
    csv.lines().count() - 1
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_what_is_done() {
    let drawn = ["--dist", "lognormal:12,1", "--preset", "tiny", "--windows"];
    let cases = interrupted(&[&["plan"], &drawn[..], &["40K"]].concat(), "planned ");
    assert!((16_384..163_840).contains(&cases), "{cases} cases");
    // A case a method, over the windows that all of them have finished.
    let cases = interrupted(
        &[&["simulate"], &drawn[..], &["400"]].concat(),
        "simulated ",
    );
    assert_eq!(cases, 3);
}
