use serde_json::Value;

use super::super::engine::{Lane, run};
use super::super::fabric::Fabric;
use super::super::trace::TraceEvents;
use super::{ROUND, cluster, exchanges};

#[test]
fn a_trace_has_every_span_and_threads_do_one_thing_at_a_time() {
    let moves: Vec<(u32, u32, u64)> = (0..6)
        .flat_map(|w| (0..6).map(move |peer| (w, peer, 70 + u64::from(w))))
        .filter(|(w, peer, _)| w != peer)
        .collect();
    let program = exchanges(6, &[&moves, &moves]);
    let fabric = Fabric::new(&cluster(ROUND), 0, 6);
    let mut spans = Vec::new();
    let times = run(&program, &fabric, &vec![Vec::new(); 6], Some(&mut spans));
    let mut trace = TraceEvents::default();
    trace.name_workers("test", 5, 6, |worker| fabric.node(worker));
    trace.add(
        &spans,
        0,
        |worker| 5 + fabric.node(worker),
        "forward",
        |e| format!("exchange {e}"),
    );

    let document: Value = serde_json::from_str(&trace.text()).expect("JSON");
    let events = document["traceEvents"].as_array().expect("a list");
    let named = events
        .iter()
        .filter(|e| e["name"] == "process_name")
        .count();
    assert_eq!(named, 2, "nodes");
    let mut whole: Vec<(u64, u64, f64, f64)> = Vec::new();
    let mut bytes = 0;
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let number = |name: &str| event[name].as_f64().expect("a number");
        whole.push((
            number("pid") as u64,
            number("tid") as u64,
            number("ts"),
            number("dur"),
        ));
        bytes += event["args"]["bytes"].as_u64().unwrap_or(0);
        assert!(number("dur") >= 0.0);
    }
    assert_eq!(whole.len(), spans.len());
    whole.sort_by(|a, b| a.partial_cmp(b).expect("no NaN"));
    for pair in whole.windows(2) {
        let same = (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1);
        assert!(
            !same || pair[0].2 + pair[0].3 <= pair[1].2 + 1e-9,
            "{pair:?}"
        );
    }
    let sent: u64 = moves.iter().map(|m| m.2).sum();
    assert_eq!(bytes, 2 * 2 * sent, "each message out and in, twice");
    let busy: f64 = whole.iter().map(|event| event.3).sum();
    let expected: u64 = times
        .iter()
        .map(|t| t.exposed_ns + t.port_ns.iter().sum::<u64>())
        .sum();
    assert!((busy - expected as f64 / 1e3).abs() < 1e-6);
    let out = spans
        .iter()
        .filter(|s| matches!(s.lane, Lane::NicOut))
        .count();
    assert_eq!(out, 2 * 2 * 4 * 2);
}
