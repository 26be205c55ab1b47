//! Plans of named cases, as bytes and as text, equal the committed ones.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;

use libra_sched::{PlanId, verify, wire};
use libra_tests::blessed::{assert_holds, at, is_blessing};
use libra_tests::cases::{Named, named};
use libra_tests::show;

fn path(name: &str, extension: &str) -> String {
    format!("tests/golden/{name}.{extension}")
}

#[test]
fn golden_plans_are_made_byte_by_byte() {
    for Named { name, case } in named() {
        let plan = case.plan();
        assert_eq!(verify::check(&plan), [], "{name}");
        assert_holds(&path(name, "plan"), &wire::encode(&plan));
        assert_holds(&path(name, "txt"), show::plan(&plan).as_bytes());
    }
}

#[test]
fn golden_files_are_read_to_the_plan_and_the_id_that_their_text_names() {
    if is_blessing() {
        return;
    }
    for Named { name, case } in named() {
        let read = |extension| {
            let path = path(name, extension);
            fs::read(at(&path)).unwrap_or_else(|error| panic!("{path}: {error}"))
        };
        let opened = wire::open(&read("plan")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let plan = case.plan();
        assert_eq!(opened.plan, plan, "{name}");
        let text = String::from_utf8_lossy(&read("txt")).into_owned();
        let literal = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("plan id "));
        assert_eq!(literal, Some(opened.id.to_string().as_str()), "{name}");
        assert_eq!(opened.id, PlanId::of(&plan), "{name}");
    }
}

#[test]
fn every_golden_file_belongs_to_a_case() {
    if is_blessing() {
        return;
    }
    let there: BTreeSet<String> = fs::read_dir(at("tests/golden"))
        .expect("tests/golden can be listed")
        .map(|entry| entry.expect("tests/golden can be listed").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let made: BTreeSet<String> = named()
        .iter()
        .flat_map(|named| ["lengths.txt", "plan", "txt"].map(|e| format!("{}.{e}", named.name)))
        .collect();
    assert_eq!(there, made);
}
