//! What every trace of this program keeps to.

use std::collections::BTreeMap;

use serde_json::Value;

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
        if name.contains(" to ") {
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
