//! What workers did when, from traces in the format of Chrome and Perfetto.

use std::collections::BTreeMap;

use serde_json::Value;

use super::parts::figures;
use super::{Document, Section};
use crate::plot::{Figure, Panel, Span, SpanKind, Timeline};

/// Lanes that are drawn.
const LANES_MAX: usize = 48;
/// Events that are drawn.
const SPANS_MAX: usize = 4000;

/// Process and thread.
type Lane = (u64, u64);

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
    let mut names: BTreeMap<Lane, String> = BTreeMap::new();
    let mut lanes: BTreeMap<Lane, Vec<Span>> = BTreeMap::new();
    let (mut drawn, mut left_out) = (0, 0);
    for event in events {
        let lane = (
            event["pid"].as_u64().unwrap_or(0),
            event["tid"].as_u64().unwrap_or(0),
        );
        match event["ph"].as_str() {
            Some("M") if event["name"] == "thread_name" => {
                names.extend(
                    event["args"]["name"]
                        .as_str()
                        .map(|name| (lane, name.to_owned())),
                );
            }
            Some("X") => {
                let Some(span) = span(event) else { continue };
                let is_known = lanes.contains_key(&lane);
                if drawn == SPANS_MAX || !is_known && lanes.len() == LANES_MAX {
                    left_out += 1;
                    continue;
                }
                drawn += 1;
                lanes.entry(lane).or_default().push(span);
            }
            _ => {}
        }
    }
    if lanes.is_empty() {
        return None;
    }
    let name = |lane: &Lane| {
        names
            .get(lane)
            .cloned()
            .unwrap_or_else(|| format!("{}.{}", lane.0, lane.1))
    };
    Some(Figure {
        id: format!("timeline-{nth}"),
        title: format!("What each worker did when: {}", document.name),
        description: format!(
            "{drawn} events of {} lanes over time: attention, waiting and messages.{}",
            lanes.len(),
            if left_out > 0 {
                format!(" {left_out} more are in the file.")
            } else {
                String::new()
            }
        ),
        panels: vec![Panel::Timeline(Timeline {
            title: "one layer".to_owned(),
            unit: "µs",
            lanes: lanes
                .into_iter()
                .map(|(lane, spans)| (name(&lane), spans))
                .collect(),
        })],
    })
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
