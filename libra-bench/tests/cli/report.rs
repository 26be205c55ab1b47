//! `report`: one page from the documents of other commands.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Done, json, run_at, stdout};

/// Writes `files`, makes a page of them and returns how it went and the page.
fn page(files: &[(&str, &str)]) -> (Done, String) {
    let at = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(at.path().join(name), text).expect("written");
    }
    let mut arguments = vec!["report", "-o", "page.html"];
    arguments.extend(files.iter().map(|(name, _)| *name));
    let done = run_at(at.path(), &arguments);
    let page = fs::read_to_string(at.path().join("page.html")).unwrap_or_default();
    (done, page)
}

fn plan() -> String {
    stdout("plan linux-6.1 --preset tiny --windows 5 --no-timings --format json")
}

#[test]
fn a_page_holds_everything_it_shows() {
    let (done, page) = page(&[("plan.json", &plan())]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for outside in [
        "<script", "<link", "<img", "src=", "@import", "url(", "https:",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    // The one address is the name of SVG, which nothing fetches.
    assert_eq!(
        page.matches("http:").count(),
        page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count()
    );
}

#[test]
fn equal_documents_make_equal_pages() {
    let text = plan();
    assert_eq!(
        page(&[("plan.json", &text)]).1,
        page(&[("plan.json", &text)]).1
    );
}

#[test]
fn sections_are_there_when_their_data_is_and_are_named_when_not() {
    let (done, page) = page(&[("plan.json", &plan())]);
    for there in ["inputs", "balance", "loads", "traffic", "certificates"] {
        assert!(page.contains(&format!("<h2 id=\"{there}\">")), "{there}");
    }
    for missing in ["stragglers", "pool-sizes", "timeline", "published"] {
        assert!(
            !page.contains(&format!("<h2 id=\"{missing}\">")),
            "{missing}"
        );
    }
    assert!(page.contains(
        "<dt>Pool sizes</dt><dd>what larger pools give and cost: `sweep --over P=2,4,8,16"
    ));
    assert!(
        done.stdout
            .contains("Pool sizes        not in these documents"),
        "{}",
        done.stdout
    );
}

#[test]
fn simulations_that_differ_in_their_pool_size_alone_become_curves() {
    let simulate = |flags: &str| {
        let line = format!("simulate linux-6.1 --preset tiny --windows 1 {flags} --format json");
        stdout(&line)
    };
    let texts = ["-P 1", "-P 2", "-P 4", "-P 4 --seed 8"].map(simulate);
    let names = ["1.json", "2.json", "4.json", "other.json"];
    let files: Vec<(&str, &str)> = names
        .into_iter()
        .zip(texts.iter().map(String::as_str))
        .collect();
    let title = "What larger pools give and cost in time: 1.json, 2.json, 4.json";
    let (_, joined) = page(&files);
    assert!(joined.contains(title) && !joined.contains("4.json, other.json"));
    // Three methods at three sizes, in each of four pictures.
    for panel in ["attention of a layer forward", "whole step"] {
        let picture = joined.split(&format!("{title}: {panel}</title>")).nth(1);
        let picture = picture.and_then(|rest| rest.split("</svg>").next());
        let picture = picture.expect(panel);
        for method in ["ulysses", "paper", "libra"] {
            assert_eq!(
                picture.matches(&format!("<title>{method}, ")).count(),
                3,
                "{panel}"
            );
        }
    }
    let rows = texts.iter().take(3).flat_map(|text| {
        let document: Value = serde_json::from_str(text).expect("JSON");
        let size = document["config"]["pool_size"].to_string();
        let cases = document["cases"].as_array().expect("a list").clone();
        let row = move |case: &Value| {
            let method = case["method"].as_str().expect("text");
            format!("<th scope=\"row\">{size}</th><td>{method}</td>")
        };
        cases.iter().map(row).collect::<Vec<_>>()
    });
    for row in rows {
        assert_eq!(joined.matches(&row).count(), 1, "{row}");
    }
    let (_, alone) = page(&files[2..]);
    assert!(alone.contains("<dt>Pool sizes</dt>"));
}

#[test]
fn ids_of_a_page_are_unique() {
    let text = plan();
    let (_, page) = page(&[("a.json", &text), ("b.json", &text)]);
    let mut ids: Vec<&str> = page
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('"')?.0))
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert!(count > 10 && ids.len() == count, "{count} {}", ids.len());
}

#[test]
fn what_documents_say_is_text_and_never_markup() {
    let evil = r#"{"schema":1,"command":"simulate","seed":"<b>\"'&","config":{"lengths":"</style><script>alert(1)</script>"},
        "reproduce":"<img src=x onerror=alert(1)>","cases":[
        {"method":"</title><script>1</script>","straggler_ms_mean":1e308,"straggler_ms_max":1e999},
        {"method":"a","straggler_ms_mean":1.0,"straggler_ms_max":2.0},{"method":7},null,[]]}"#;
    let evil = evil.replace("1e999", "-5");
    let (done, page) = page(&[("a&<b>.json", &evil)]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("<b>"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn fields_of_the_wrong_kind_are_left_out() {
    for text in [
        r#"{"schema":1,"command":"plan","cases":{"a":1},"summary":[],"detail":{"load_mean":0}}"#,
        r#"{"schema":1,"command":"plan","cases":[{"window":0}],"detail":{"load_mean":1,"workers_per_load":0,"loads":[1],"home_loads":["x"],"traffic_bytes":[[1,2],[3]],"workers_per_row":1}}"#,
        r#"{"schema":1,"command":"sweep","cases":[{"pool_size":2},{"pool_size":"x"},3]}"#,
        r#"{"traceEvents":[{"ph":"X","ts":"a"},{"ph":"X","ts":1,"dur":-1},5]}"#,
    ] {
        let (done, page) = page(&[("odd.json", text)]);
        assert_eq!(done.code, 0, "{text}: {}", done.stderr);
        assert!(!page.contains("<svg"), "{text}");
        assert!(page.contains("<h2 id=\"inputs\">"));
    }
}

#[test]
fn files_that_are_no_documents_are_refused_by_name() {
    for (text, says) in [
        ("{", "odd.json: is not JSON"),
        ("{}", "odd.json: is neither a report nor a trace"),
        ("[1]", "odd.json: is neither a report nor a trace"),
        (
            r#"{"schema":2,"command":"plan"}"#,
            "odd.json: has schema 2, this program reads up to 1",
        ),
    ] {
        let (done, page) = page(&[("odd.json", text)]);
        assert_eq!(done.code, 3, "{text}");
        assert!(done.stderr.contains(says), "{}", done.stderr);
        assert!(page.is_empty());
    }
    let done = run_at(
        Path::new("."),
        &["report", "nowhere.json", "-o", "page.html"],
    );
    assert_eq!(done.code, 3);
    assert!(
        done.stderr.contains("nowhere.json: cannot be read"),
        "{}",
        done.stderr
    );
}

#[test]
fn the_demo_writes_its_page_where_it_is_told() {
    let at = tempfile::tempdir().expect("a folder");
    let done = run_at(at.path(), &["demo", "-o", "page.html", "-q"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let page = fs::read_to_string(at.path().join("page.html")).expect("written");
    for there in ["balance", "stragglers", "loads", "traffic", "certificates"] {
        assert!(page.contains(&format!("<h2 id=\"{there}\">")), "{there}");
    }
}

#[test]
fn the_details_of_a_pool_add_up_to_its_case_and_stay_small() {
    for (line, loads_max, rows) in [
        ("plan linux-6.1 --preset tiny --windows 3", 4, 4),
        (
            "plan --dist lognormal:20,1 --preset tiny --gbs 600 --dp 300 -P 300",
            200,
            60,
        ),
    ] {
        let document = json(line);
        let detail = &document["detail"];
        let cases = document["cases"].as_array().expect("a list");
        let most_uneven = cases
            .iter()
            .map(|case| case["home_excess"].as_f64().expect("a number"))
            .fold(0.0, f64::max);
        let case = cases
            .iter()
            .find(|case| case["window"] == detail["window"] && case["pool"] == detail["pool"]);
        let case = case.expect("the pool is one of them");
        assert_eq!(case["home_excess"], most_uneven);

        let list = |value: &Value| -> Vec<u64> {
            let list = value.as_array().expect("a list").iter();
            list.map(|number| number.as_u64().expect("a number"))
                .collect()
        };
        let mean = detail["load_mean"].as_f64().expect("a number");
        for (loads, excess) in [("home_loads", "home_excess"), ("loads", "intra_excess")] {
            let loads = list(&detail[loads]);
            assert_eq!(loads.len(), loads_max);
            let most = loads.into_iter().max().expect("workers") as f64;
            assert!((most / mean - 1.0 - case[excess].as_f64().expect("a number")).abs() < 1e-9);
        }
        let traffic: Vec<Vec<u64>> = detail["traffic_bytes"]
            .as_array()
            .expect("rows")
            .iter()
            .map(list)
            .collect();
        assert!(
            traffic.len() == rows && traffic.iter().all(|row| row.len() == rows),
            "{}",
            traffic.len()
        );
        assert_eq!(
            traffic.iter().flatten().sum::<u64>(),
            case["moved_bytes"].as_u64().expect("a number")
        );
    }
}

#[test]
fn a_trace_of_two_methods_has_a_panel_for_each_and_lanes_that_compute_before_others() {
    let mut events = Vec::new();
    for (method, name) in ["ulysses", "libra"].into_iter().enumerate() {
        events.push(format!(r#"{{"ph":"M","name":"process_name","pid":{method},"args":{{"name":"{name}: node 0"}}}}"#));
        for thread in 0..100 {
            let what = if thread < 90 { "node out" } else { "compute" };
            events.push(format!(
                r#"{{"ph":"M","name":"thread_name","pid":{method},"tid":{thread},"args":{{"name":"w{thread} {what}"}}}}"#
            ));
            events.push(format!(r#"{{"ph":"X","name":"{what} 0","pid":{method},"tid":{thread},"ts":{thread},"dur":5}}"#));
        }
    }
    let (_, page) = page(&[(
        "trace.json",
        &format!(r#"{{"traceEvents":[{}]}}"#, events.join(",")),
    )]);
    for panel in ["libra</title>", "ulysses</title>"] {
        assert_eq!(
            page.matches(&format!("What each worker did when: trace.json: {panel}"))
                .count(),
            1
        );
    }
    assert_eq!(page.matches("attention, compute 0: ").count(), 20);
    assert_eq!(page.matches("messages, node out 0: ").count(), 44);
    assert!(page.contains(
        "64 events over time: attention, waiting and messages. 136 more events are in the file."
    ));
}
