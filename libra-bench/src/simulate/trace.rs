//! Timelines as Chrome trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing show.
//!
//! A node is a process, each lane of a worker a thread. Format: "Trace Event Format", complete events (`X`), in
//! microseconds.

use serde_json::{Map, Value, json};

use super::engine::{Lane, Span, What};

/// Lanes of a worker, in the order in which they are shown.
const LANES: [(Lane, &str); 5] = [
    (Lane::Compute, "compute"),
    (Lane::NodeOut, "node out"),
    (Lane::NodeIn, "node in"),
    (Lane::NicOut, "NIC out"),
    (Lane::NicIn, "NIC in"),
];

/// Events so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceEvents {
    events: Vec<Value>,
}

/// Where a lane is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Track {
    /// Process.
    pub(crate) process: u32,
    /// Thread.
    pub(crate) thread: u32,
}

impl TraceEvents {
    /// A number above those of all processes so far.
    pub(crate) fn next_process(&self) -> u32 {
        let numbers = self.events.iter().filter_map(|event| event["pid"].as_u64());
        numbers.max().map_or(0, |most| most as u32 + 1)
    }

    /// Names a process.
    pub(crate) fn name_process(&mut self, process: u32, name: &str) {
        self.events.push(json!({
            "ph": "M", "name": "process_name", "pid": process, "args": { "name": name },
        }));
    }

    /// Names a thread.
    pub(crate) fn name_thread(&mut self, track: Track, name: &str) {
        let Track { process, thread } = track;
        self.events.push(json!({
            "ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": { "name": name },
        }));
        self.events.push(json!({
            "ph": "M", "name": "thread_sort_index", "pid": process, "tid": thread,
            "args": { "sort_index": thread },
        }));
    }

    /// Something that took time.
    pub(crate) fn span(
        &mut self,
        track: Track,
        name: &str,
        begin_ns: u64,
        time_ns: u64,
        more: Map<String, Value>,
    ) {
        self.events.push(json!({
            "ph": "X",
            "name": name,
            "pid": track.process,
            "tid": track.thread,
            "ts": begin_ns as f64 / 1e3,
            "dur": time_ns as f64 / 1e3,
            "args": more,
        }));
    }

    /// The file.
    pub(crate) fn text(&self) -> String {
        let document = json!({ "displayTimeUnit": "ns", "traceEvents": self.events });
        document.to_string() + "\n"
    }

    /// Names nodes and lanes of a group's workers; `node` says which process each is in, counted from `first_process`.
    pub(crate) fn name_workers(
        &mut self,
        title: &str,
        first_process: u32,
        workers: u32,
        node: impl Fn(u32) -> u32,
    ) {
        let mut named = None;
        for worker in 0..workers {
            let process = first_process + node(worker);
            if named != Some(process) {
                self.name_process(process, &format!("{title}: node {}", node(worker)));
                named = Some(process);
            }
            for (lane, name) in LANES {
                let track = track(process, worker, lane);
                self.name_thread(track, &format!("w{worker} {name}"));
            }
        }
    }

    /// Adds what the simulator recorded, `after_ns` later; `name` is that of an exchange.
    pub(crate) fn add(
        &mut self,
        spans: &[Span],
        after_ns: u64,
        process_of: impl Fn(u32) -> u32,
        direction: &str,
        name: impl Fn(u32) -> String,
    ) {
        for span in spans {
            let track = track(process_of(span.worker), span.worker, span.lane);
            let mut more = Map::new();
            let text = match span.what {
                What::Compute(chunk) => format!("{direction} compute chunk {chunk}"),
                What::Wait(exchange) => format!("{direction} wait for {}", name(exchange)),
                What::Message {
                    exchange,
                    peer,
                    bytes,
                } => {
                    more.insert("bytes".to_owned(), json!(bytes));
                    more.insert("peer".to_owned(), json!(peer));
                    let way = match span.lane {
                        Lane::NodeOut | Lane::NicOut => "to",
                        _ => "from",
                    };
                    format!("{direction} {} {way} w{peer}", name(exchange))
                }
            };
            let begin_ns = after_ns + span.begin_ns;
            self.span(track, &text, begin_ns, span.end_ns - span.begin_ns, more);
        }
    }
}

/// The thread of a worker's lane.
pub(crate) fn track(process: u32, worker: u32, lane: Lane) -> Track {
    let place = LANES.iter().position(|(known, _)| *known == lane);
    let place = place.expect("LANES has every lane") as u32;
    Track {
        process,
        thread: worker * LANES.len() as u32 + place,
    }
}
