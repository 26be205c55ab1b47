//! `compare`: two reports of one command, number by number.

mod matching;
mod numbers;

use serde_json::{Value, json};

use self::matching::Matched;
use self::numbers::{Pair, Worse};
use super::plan::line;
use super::{Context, Outcome, typed};
use crate::cli::CompareArgs;
use crate::exit;
use crate::failure::Failure;
use crate::report::{self, Column, Report, Table};

pub(super) fn run(context: &Context, asked: &CompareArgs) -> Outcome {
    let (a, b) = (report::read(&asked.a)?, report::read(&asked.b)?);
    let names = [&asked.a, &asked.b].map(|path| typed(path));
    if a["command"] != b["command"] {
        return Err(Failure::Incomparable(format!(
            "{} is of {} and {} of {}; legal are two reports of one command",
            names[0], a["command"], names[1], b["command"],
        )));
    }
    let matched = matching::matched(&a, &b);
    let all: Vec<(&str, &Pair)> = (matched.both.iter())
        .flat_map(|(case, pairs)| pairs.iter().map(|pair| (case.as_str(), pair)))
        .filter(|(_, pair)| !(context.global.no_timings && is_time(&pair.name)))
        .collect();
    if all.is_empty() {
        return Err(Failure::Incomparable(format!(
            "{} and {} have no case with a number in common{}",
            names[0],
            names[1],
            only(&matched, &names).map_or(String::new(), |text| format!("; {text}")),
        )));
    }
    let is_over = |pair: &Pair| asked.fail_above.is_some_and(|limit| pair.is_over(limit));
    let mut report = Report::new("compare", line(&words(context, asked)));
    report.config = json!({ "a": names[0], "b": names[1], "fail_above": asked.fail_above });
    report.header();
    report.note(format!(
        "A {}, B {}: reports of {}",
        names[0],
        names[1],
        text(&a["command"])
    ));
    for remark in differences(&a, &b) {
        report.note(remark);
    }
    report.note("");
    let shown: Vec<_> = (all.iter().copied())
        .filter(|(_, pair)| asked.all || !pair.is_equal())
        .collect();
    report.table(table(&shown, is_over));
    report.note("B/A: of medians where there are samples, and of 1 + R-1; + is worse, - is better");
    if shown.len() < all.len() {
        report.note(format!(
            "{} more numbers are equal; --all shows them",
            all.len() - shown.len()
        ));
    }
    if let Some(text) = only(&matched, &names) {
        report.note(text);
    }
    let over = all.iter().filter(|(_, pair)| is_over(pair)).count();
    let mut code = super::code();
    if let Some(limit) = asked.fail_above {
        // 7 % is 7.000000000000001 otherwise.
        let limit = (limit * 1e8).round() / 1e6;
        report.note(format!(
            "worse by more than {limit} %: {over} of {} numbers",
            all.len()
        ));
        if over > 0 {
            let text = match over {
                1 => format!("1 number is worse by more than {limit} %"),
                _ => format!("{over} numbers are worse by more than {limit} %"),
            };
            context.say("error", "31", &text);
            code = exit::COMPARISON;
        }
    }
    report.reproduce(report.reproduce.clone());
    report.cases = (all.iter())
        .map(|(case, pair)| json_case(case, pair, is_over(pair)))
        .collect();
    report
        .more
        .insert("only_a".to_owned(), json!(matched.only_a));
    report
        .more
        .insert("only_b".to_owned(), json!(matched.only_b));
    Ok((report, code))
}

fn words(context: &Context, asked: &CompareArgs) -> Vec<String> {
    let mut words = vec!["compare".to_owned(), typed(&asked.a), typed(&asked.b)];
    if let Some(limit) = asked.fail_above {
        words.extend(["--fail-above".to_owned(), limit.to_string()]);
    }
    words.extend(asked.all.then(|| "--all".to_owned()));
    words.extend(super::global_flags(&context.global));
    words
}

/// Whether a number is a time that was measured, not one that was computed.
fn is_time(name: &str) -> bool {
    name.ends_with("_ns") || name.ends_with("_ns_median")
}

/// What was asked for and differs: a line each.
fn differences(a: &Value, b: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut compare = |name: &str, a: &Value, b: &Value| {
        if a != b {
            lines.push(format!("{name} is {} in A and {} in B", text(a), text(b)));
        }
    };
    compare("seed", &a["seed"], &b["seed"]);
    compare("commit", &a["commit"], &b["commit"]);
    let version = |report: &Value| report["environment"]["version"].clone();
    compare("version", &version(a), &version(b));
    let (first, second) = (&a["config"], &b["config"]);
    for (name, value) in first.as_object().into_iter().flatten() {
        compare(name, value, &second[name]);
    }
    for (name, value) in second.as_object().into_iter().flatten() {
        if first.get(name).is_none() {
            compare(name, &Value::Null, value);
        }
    }
    lines
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Cases that only one report has.
fn only(matched: &Matched, names: &[String; 2]) -> Option<String> {
    let sides = [(&names[0], &matched.only_a), (&names[1], &matched.only_b)];
    let side =
        |(name, cases): &(&String, &Vec<String>)| format!("only in {name}: {}", cases.join(", "));
    let sides: Vec<String> = (sides.iter().filter(|(_, cases)| !cases.is_empty()))
        .map(side)
        .collect();
    (!sides.is_empty()).then(|| sides.join("; "))
}

fn table(pairs: &[(&str, &Pair)], is_over: impl Fn(&Pair) -> bool) -> Table {
    let row = |(case, pair): &(&str, &Pair)| {
        let ratio = pair.ratio();
        let bad = match Worse::of(&pair.name) {
            Worse::Larger => ratio > 1.0,
            Worse::Smaller => ratio < 1.0,
            Worse::Neither => false,
        };
        let mark = match Worse::of(&pair.name) {
            Worse::Neither => "",
            _ if pair.is_equal() => "",
            _ if is_over(pair) => "+ over",
            _ if bad => "+",
            _ => "-",
        };
        vec![
            (*case).to_owned(),
            pair.name.clone(),
            number(pair.a.value),
            number(pair.b.value),
            format!("{ratio:.3}"),
            pair.spread()
                .map_or(String::new(), |spread| format!("± {spread:.3}")),
            mark.to_owned(),
        ]
    };
    Table {
        columns: vec![
            Column::text("case"),
            Column::text("number"),
            Column::number("A", ""),
            Column::number("B", ""),
            Column::number("B/A", ""),
            Column::text(""),
            Column::text(""),
        ],
        rows: pairs.iter().map(row).collect(),
    }
}

/// Whole numbers as they are, others with six decimals.
fn number(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true => format!("{value:.0}"),
        false if value != 0.0 && value.abs() < 1e-3 => format!("{value:.3e}"),
        false => format!("{value:.6}"),
    }
}

fn json_case(case: &str, pair: &Pair, is_over: bool) -> Value {
    // An infinite ratio is null.
    json!({
        "case": case,
        "number": pair.name,
        "a": pair.a.value,
        "b": pair.b.value,
        "ratio": pair.ratio(),
        "ratio_spread": pair.spread(),
        "worse": Worse::of(&pair.name).name(),
        "over": is_over,
    })
}
