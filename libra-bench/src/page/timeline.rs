//! What workers did when, from traces in the format of Chrome and Perfetto.

use std::collections::BTreeMap;

use serde_json::Value;

use super::parts::figures;
use super::{Document, Section};
use crate::plot::{Figure, Panel, Span, SpanKind, Timeline};

/// Groups of processes that are drawn, as one method or pass.
const PANELS_MAX: usize = 4;
/// Lanes of a group that are drawn.
const LANES_MAX: usize = 32;
/// Events of a group that are drawn.
const SPANS_MAX: usize = 2000;

/// Process and thread.
type Lane = (u64, u64);
/// Events of lanes, and what lanes are called.
#[derive(Default)]
struct Group {
    lanes: BTreeMap<Lane, Vec<Span>>,
}

pub(super) fn section(documents: &[Document]) -> Section {
    let drawn: Vec<Figure> = documents
        .iter()
        .enumerate()
        .filter_map(|(nth, document)| draw(nth, document))
        .collect();
    Section {
        id: "timeline",
        title: "Timeline",
        content: if drawn.is_empty() {
            Err("what each worker did when: a trace file of `--trace FILE`")
        } else {
            Ok(figures(drawn.iter().map(|drawn| (drawn, None))))
        },
    }
}

fn draw(nth: usize, document: &Document) -> Option<Figure> {
    let events = document.value["traceEvents"].as_array()?;
    let (mut processes, mut threads) = (BTreeMap::new(), BTreeMap::new());
    for event in events.iter().filter(|event| event["ph"] == "M") {
        let Some(name) = event["args"]["name"].as_str() else {
            continue;
        };
        match event["name"].as_str() {
            Some("process_name") => drop(processes.insert(lane(event).0, name)),
            Some("thread_name") => drop(threads.insert(lane(event), name)),
            _ => {}
        }
    }
    // Nodes of one method are processes whose names differ after the colon alone.
    let title = |process: u64| {
        processes
            .get(&process)
            .map_or("workers", |name| name.split(": ").next().unwrap_or(name))
    };
    let mut groups: BTreeMap<&str, Group> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let lane = lane(event);
        let group = groups.entry(title(lane.0)).or_default();
        group.lanes.entry(lane).or_default().extend(span(event));
    }
    groups.retain(|_, group| group.lanes.values().any(|spans| !spans.is_empty()));
    let of = groups.values().map(Group::events).sum::<usize>();
    let mut drawn = 0;
    let mut panels = Vec::new();
    for (title, group) in groups.into_iter().take(PANELS_MAX) {
        let lanes = group.most_telling();
        drawn += lanes.iter().map(|(_, spans)| spans.len()).sum::<usize>();
        let name = |(process, thread): Lane| match threads.get(&(process, thread)) {
            Some(name) => (*name).to_owned(),
            None => format!("{process}.{thread}"),
        };
        panels.push(Panel::Timeline(Timeline {
            title: title.to_owned(),
            unit: "µs",
            lanes: lanes
                .into_iter()
                .map(|(lane, spans)| (name(lane), spans))
                .collect(),
        }));
    }
    let left_out = match of - drawn {
        0 => String::new(),
        more => format!(" {more} more events are in the file."),
    };
    (drawn > 0).then(|| Figure {
        id: format!("timeline-{nth}"),
        title: format!("What each worker did when: {}", document.name),
        description: format!(
            "{drawn} events over time: attention, waiting and messages.{left_out}"
        ),
        panels,
    })
}

impl Group {
    fn events(&self) -> usize {
        self.lanes.values().map(Vec::len).sum()
    }

    /// Lanes that compute or wait, others where there is room.
    fn most_telling(self) -> Vec<(Lane, Vec<Span>)> {
        let tells = |spans: &[Span]| spans.iter().any(|span| span.kind != SpanKind::Transfer);
        let (first, rest): (Vec<_>, Vec<_>) =
            self.lanes.into_iter().partition(|(_, spans)| tells(spans));
        let mut chosen: Vec<(Lane, Vec<Span>)> =
            first.into_iter().chain(rest).take(LANES_MAX).collect();
        chosen.sort_by_key(|&(lane, _)| lane);
        let mut room = SPANS_MAX;
        for (_, spans) in &mut chosen {
            spans.truncate(room);
            room -= spans.len();
        }
        chosen
    }
}

fn lane(event: &Value) -> Lane {
    let number = |field: &str| event[field].as_u64().unwrap_or(0);
    (number("pid"), number("tid"))
}

/// A complete event: times in microseconds.
fn span(event: &Value) -> Option<Span> {
    let (from, length) = (event["ts"].as_f64()?, event["dur"].as_f64()?);
    let name = event["name"].as_str().unwrap_or("").to_owned();
    let words = format!("{} {name}", event["cat"].as_str().unwrap_or("")).to_lowercase();
    let kind = if words.contains("wait") {
        SpanKind::Wait
    } else if words.contains("compute") || words.contains("attention") {
        SpanKind::Compute
    } else {
        SpanKind::Transfer
    };
    (from.is_finite() && length.is_finite() && length >= 0.0).then_some(Span {
        from,
        to: from + length,
        kind,
        name,
    })
}
