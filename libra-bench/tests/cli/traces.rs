//! What every trace of this program keeps to.

use std::collections::BTreeMap;

use serde_json::Value;

use super::run_at;

/// Complete events of named threads, none of negative duration, each thread at one thing at a time, every byte sent also
/// received.
pub(super) fn check(trace: &Value) {
    let events = trace["traceEvents"].as_array().expect("a list");
    let id = |event: &Value, name: &str| event[name].as_u64().expect("a whole number");
    let track = |event: &Value| (id(event, "pid"), id(event, "tid"));
    let named: Vec<(u64, u64)> = (events.iter())
        .filter(|event| event["name"] == "thread_name")
        .map(track)
        .collect();
    let mut tracks: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    let (mut sent, mut received) = (0, 0);
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let number = |name: &str| event[name].as_f64().expect("a number");
        let (begin, time) = (number("ts"), number("dur"));
        assert!(begin >= 0.0 && time >= 0.0, "{event}");
        assert!(named.contains(&track(event)), "{event}");
        tracks.entry(track(event)).or_default().push((begin, time));
        let name = event["name"].as_str().expect("text");
        let bytes = event["args"]["bytes"].as_u64().unwrap_or(0);
        if name.contains(" to ") || name.contains(" start ") {
            sent += bytes;
        } else {
            received += bytes;
        }
    }
    assert!(sent > 0);
    assert_eq!(sent, received);
    for (track, spans) in &mut tracks {
        spans.sort_by(|a, b| a.partial_cmp(b).expect("no NaN"));
        for pair in spans.windows(2) {
            assert!(
                pair[0].0 + pair[0].1 <= pair[1].0 + 1e-6,
                "{track:?}: {pair:?}"
            );
        }
    }
}

#[test]
fn a_trace_of_a_run_has_the_bytes_of_its_report() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Plans, steps, and groups one after the other on the same workers.
    let words = "run linux-6.1 --preset tiny --trace run.json --format json --backward stash \
                 --method ulysses,libra,doc-zigzag,dynamic-cp";
    let done = run_at(folder.path(), &words.split(' ').collect::<Vec<_>>());
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let text = std::fs::read_to_string(folder.path().join("run.json")).expect("written");
    let trace = serde_json::from_str(&text).expect("JSON");
    check(&trace);
    let events = || trace["traceEvents"].as_array().expect("a list").iter();
    for case in report["cases"].as_array().expect("a list") {
        let method = case["method"].as_str().expect("text");
        // Four workers on two nodes.
        let processes: Vec<&Value> = events()
            .filter(|event| event["name"] == "process_name")
            .filter(|event| {
                event["args"]["name"]
                    .as_str()
                    .expect("text")
                    .starts_with(method)
            })
            .map(|event| &event["pid"])
            .collect();
        assert_eq!(processes.len(), 2);
        for (direction, field) in [
            ("forward start", "moved_bytes"),
            ("backward start", "backward_moved_bytes"),
        ] {
            let bytes: u64 = events()
                .filter(|event| processes.contains(&&event["pid"]))
                .filter(|event| event["name"].as_str().expect("text").starts_with(direction))
                .map(|event| event["args"]["bytes"].as_u64().expect("bytes"))
                .sum();
            assert_eq!(
                bytes,
                case[field].as_u64().expect("bytes"),
                "{method} {direction}"
            );
        }
    }
}

#[test]
fn a_trace_that_cannot_be_written_is_refused_before_anything_is_done() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("made")).expect("made");
    for command in ["simulate", "run"] {
        for (file, why) in [
            ("no/trace.json", "No such file or directory (os error 2)"),
            ("made", "it is a directory"),
        ] {
            // Lengths are read first of all, and these are not there.
            let words = [command, "nowhere.txt", "--preset", "tiny", "--trace", file];
            let done = run_at(folder.path(), &words);
            let message = format!("error: {file}: cannot be written: {why}\n");
            assert_eq!((done.code, done.stderr), (3, message), "{command}");
        }
    }
}
