//! Cases of two reports that are about the same thing.

use serde_json::{Map, Value};

use super::numbers::{self, Pair};

/// Fields that name a case, beside those that repeat the report's settings.
const NAMES: [&str; 10] = [
    "window",
    "pool",
    "pool_size",
    "worker",
    "slot",
    "item",
    "method",
    "backend",
    "dtype",
    "name",
];

/// Parts of a document that are no results.
const NO_RESULTS: [&str; 2] = ["config", "environment"];

/// What two reports have in common, and what they have not.
#[derive(Debug)]
pub(super) struct Matched {
    /// Cases of both, with the numbers of both.
    pub(super) both: Vec<(String, Vec<Pair>)>,
    /// Cases of the first alone.
    pub(super) only_a: Vec<String>,
    /// Cases of the second alone.
    pub(super) only_b: Vec<String>,
}

/// A case and what it is about.
struct Case<'a> {
    names: Map<String, Value>,
    case: &'a Value,
}

/// Matches the cases of `a` and `b`; those of equal names in their order.
pub(super) fn matched(a: &Value, b: &Value) -> Matched {
    let (first, mut second) = (cases(a), cases(b));
    let varying = varying(first.iter().chain(&second));
    let mut found = Matched {
        both: Vec::new(),
        only_a: Vec::new(),
        only_b: Vec::new(),
    };
    for one in first {
        match second.iter().position(|other| other.names == one.names) {
            Some(place) => {
                let other = second.remove(place);
                let name = one.name(&varying);
                found.both.push((name, one.pairs(&other)));
            }
            None => found.only_a.push(one.name(&varying)),
        }
    }
    found.only_b = second.iter().map(|case| case.name(&varying)).collect();
    found
}

/// The cases of a report, then its other results as one case each.
fn cases(report: &Value) -> Vec<Case<'_>> {
    let is_setting = |name: &str| report["config"].get(name).is_some();
    let case = |case| {
        let fields = Value::as_object(case).into_iter().flatten();
        let names = fields.filter(|(name, _)| NAMES.contains(&name.as_str()) || is_setting(name));
        Case {
            names: names
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            case,
        }
    };
    let mut cases: Vec<Case<'_>> = report["cases"]
        .as_array()
        .into_iter()
        .flatten()
        .map(case)
        .collect();
    for (name, value) in report.as_object().into_iter().flatten() {
        if value.is_object() && !NO_RESULTS.contains(&name.as_str()) {
            let names = [("part".to_owned(), Value::String(name.clone()))];
            cases.push(Case {
                names: names.into_iter().collect(),
                case: value,
            });
        }
    }
    cases
}

/// Names by which some two cases differ.
fn varying<'a>(cases: impl Iterator<Item = &'a Case<'a>>) -> Vec<String> {
    let mut seen: Map<String, Value> = Map::new();
    let mut varying = Vec::new();
    for case in cases {
        for (name, value) in &case.names {
            match seen.get(name) {
                None => {
                    seen.insert(name.clone(), value.clone());
                }
                Some(before) if before != value && !varying.contains(name) => {
                    varying.push(name.clone());
                }
                Some(_) => {}
            }
        }
    }
    varying
}

impl Case<'_> {
    /// For people: what tells it from other cases.
    fn name(&self, varying: &[String]) -> String {
        let shown = |(name, value): (&String, &Value)| match (name.as_str(), value) {
            ("part", Value::String(part)) => Some(part.clone()),
            (_, Value::String(text)) if varying.contains(name) => Some(format!("{name}={text}")),
            _ if varying.contains(name) => Some(format!("{name}={value}")),
            _ => None,
        };
        let shown: Vec<String> = self.names.iter().filter_map(shown).collect();
        match shown.is_empty() {
            true => "-".to_owned(),
            false => shown.join(" "),
        }
    }

    /// The numbers of both that are not their names.
    fn pairs(&self, other: &Self) -> Vec<Pair> {
        let second = numbers::all(other.case);
        let pair = |(name, a): (String, numbers::Number)| {
            let (_, b) = second.iter().find(|(other, _)| *other == name)?;
            let is_name = self.names.contains_key(&name);
            (!is_name).then_some(Pair { name, a, b: *b })
        };
        numbers::all(self.case)
            .into_iter()
            .filter_map(pair)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cases_match_by_what_they_are_about_in_any_order() {
        let case = |size: u64, slack: f64, bytes: u64| json!({ "pool_size": size, "slack": slack, "bytes": bytes });
        let report = |cases: Value| json!({ "config": { "slack": 0 }, "cases": cases, "summary": { "x": { "mean": 3 } }, "seed": 7 });
        let a = report(json!([case(2, 0.1, 10), case(4, 0.1, 20), case(4, 0.2, 1)]));
        let b = report(json!([case(4, 0.1, 40), case(2, 0.1, 10), case(8, 0.1, 1)]));
        let found = matched(&a, &b);
        let both: Vec<(&str, f64)> = (found.both.iter())
            .map(|(name, pairs)| (name.as_str(), pairs[0].ratio()))
            .collect();
        let expected = [
            ("pool_size=2 slack=0.1", 1.0),
            ("pool_size=4 slack=0.1", 2.0),
            ("summary", 1.0),
        ];
        assert_eq!(both, expected);
        assert_eq!(found.only_a, ["pool_size=4 slack=0.2"]);
        assert_eq!(found.only_b, ["pool_size=8 slack=0.1"]);
    }
}
