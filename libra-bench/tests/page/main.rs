//! The page of `report` in a real browser. `cargo xtask ci --only report` installs one and runs these tests.

mod browser;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use browser::{Browser, picture};
use serde_json::Value;

/// Narrow as a telephone, wide as a screen.
const WIDTHS: [u32; 2] = [360, 1400];

/// A page with every section, from what the commands write today.
fn page() -> &'static Path {
    static PAGE: OnceLock<PathBuf> = OnceLock::new();
    PAGE.get_or_init(|| {
        let at = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
        std::fs::create_dir_all(&at).expect("a folder");
        let run = |arguments: &str, to: Option<&str>| {
            let words = arguments.split_whitespace();
            let done = Command::new(env!("CARGO_BIN_EXE_libra-bench"))
                .args(words)
                .current_dir(&at)
                .output();
            let done = done.expect("the program is built");
            assert!(
                done.status.success(),
                "{arguments}: {}",
                String::from_utf8_lossy(&done.stderr)
            );
            if let Some(to) = to {
                std::fs::write(at.join(to), done.stdout).expect("written");
            }
        };
        run("demo --format json", Some("demo.json"));
        run(
            "plan --dist calibrated-256k --windows 4 --format json",
            Some("plan.json"),
        );
        run(
            "sweep linux-6.1 --over P=2,4,8 --over H=2,8 --format json",
            Some("sweep.json"),
        );
        run(
            "figures --out figures --windows 1 --small --format json",
            Some("figures.json"),
        );
        run(
            "simulate --dist calibrated-256k --gbs 8 --dp 8 --trace trace.json --format json",
            Some("simulate.json"),
        );
        for size in ["2", "4"] {
            let line =
                format!("simulate --dist calibrated-256k --gbs 8 --dp 8 -P {size} --format json");
            run(&line, Some(&format!("simulate-{size}.json")));
        }
        let all = "demo.json plan.json sweep.json figures.json simulate.json simulate-2.json simulate-4.json trace.json";
        run(&format!("report {all} -o page.html"), None);
        at.join("page.html")
    })
}

fn opened() -> Browser {
    let mut browser = Browser::start();
    browser.open(page());
    browser
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.map(|text| text.as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Addresses that were asked for.
fn requests(browser: &Browser) -> Vec<String> {
    let events = browser.events("Network.requestWillBeSent").into_iter();
    let url = |event: &Value| {
        event["params"]["request"]["url"]
            .as_str()
            .map(str::to_owned)
    };
    events.filter_map(url).collect()
}

/// What the console says.
fn complaints(browser: &Browser) -> Vec<String> {
    let kinds = [
        "Runtime.consoleAPICalled",
        "Runtime.exceptionThrown",
        "Log.entryAdded",
    ];
    let events = kinds.iter().flat_map(|kind| browser.events(kind));
    events.map(Value::to_string).collect()
}

/// Widths of page and window; figures, and those that do not show.
fn measures(browser: &mut Browser) -> Value {
    browser.evaluate(
        "(() => { const boxes = [...document.querySelectorAll('svg.plot')].map(svg => svg.getBoundingClientRect());
          return { wide: document.documentElement.scrollWidth, window: innerWidth, count: boxes.length,
                   hidden: boxes.filter(box => box.width < 200 || box.height < 50).length }; })()",
    )
}

#[test]
#[ignore = "needs chromium: cargo xtask ci --only report"]
fn a_page_that_does_everything_wrong_is_found_out() {
    let mut browser = Browser::start();
    browser.size(WIDTHS[0], 800);
    browser.open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/canary.html"));
    assert!(
        requests(&browser)
            .iter()
            .any(|url| url.starts_with("http:"))
    );
    let complaints = complaints(&browser).concat();
    assert!(
        complaints.contains("noise") && complaints.contains("undefined_function"),
        "{complaints}"
    );
    let found = measures(&mut browser);
    assert!(found["wide"].as_u64() > found["window"].as_u64(), "{found}");
    assert_eq!(
        (found["count"].as_u64(), found["hidden"].as_u64()),
        (Some(1), Some(1))
    );
    let faint = texts(&browser.evaluate(include_str!("contrast.js"))["faint"]);
    assert_eq!(faint, ["2.85 P: faint text"]);
}

#[test]
#[ignore = "needs chromium: cargo xtask ci --only report"]
fn the_page_asks_for_nothing_but_itself_and_nothing_goes_wrong() {
    let browser = opened();
    let requests = requests(&browser);
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert!(
        requests[0].starts_with("file://") && requests[0].ends_with("page.html"),
        "{requests:?}"
    );
    assert_eq!(complaints(&browser), [""; 0]);
}

#[test]
#[ignore = "needs chromium: cargo xtask ci --only report"]
fn every_figure_shows_and_the_page_fits_at_any_width() {
    let mut browser = opened();
    for width in WIDTHS {
        browser.size(width, 800);
        let found = measures(&mut browser);
        assert_eq!(found["window"], width);
        assert!(
            found["wide"].as_u64() <= found["window"].as_u64(),
            "{found}"
        );
        assert!(found["count"].as_u64() >= Some(10), "{found}");
        assert_eq!(found["hidden"], 0, "{found}");
    }
}

#[test]
#[ignore = "needs chromium: cargo xtask ci --only report"]
fn all_text_stands_out_in_light_and_dark() {
    let mut browser = opened();
    let mut papers = BTreeSet::new();
    for scheme in ["light", "dark"] {
        browser.scheme(scheme);
        let found = browser.evaluate(include_str!("contrast.js"));
        assert_eq!(texts(&found["faint"]), [""; 0], "{scheme}");
        assert!(found["count"].as_u64() > Some(300), "{found}");
        papers.insert(found["paper"].to_string());
    }
    assert_eq!(papers.len(), 2, "{papers:?}");
}

#[test]
#[ignore = "needs chromium: cargo xtask ci --only report"]
fn the_keyboard_reaches_every_section() {
    let mut browser = opened();
    let sections = texts(&browser.evaluate("[...document.querySelectorAll('main section')].map(s => s.getAttribute('aria-labelledby'))"));
    assert!(sections.len() >= 9, "{sections:?}");
    let (mut first, mut links, mut reached) = (None, BTreeSet::new(), BTreeSet::new());
    for _ in 0..400 {
        browser.tab();
        let focus = browser.evaluate(
            "(() => { const on = document.activeElement, section = on.closest('section');
              return [on.tagName, on.getAttribute('href'), section && section.getAttribute('aria-labelledby')]; })()",
        );
        let [tag, link, section] = [0, 1, 2].map(|at| focus[at].as_str().map(str::to_owned));
        if tag.as_deref() == Some("BODY") {
            break;
        }
        first.get_or_insert(link.clone());
        links.extend(link.and_then(|link| Some(link.strip_prefix('#')?.to_owned())));
        reached.extend(section);
    }
    assert_eq!(
        first.flatten().as_deref(),
        Some("#main"),
        "the way past the navigation comes first"
    );
    for section in &sections {
        assert!(links.contains(section), "no link leads to {section}");
        assert!(
            reached.contains(section) || section == "missing",
            "{section} is not reached: {reached:?}"
        );
    }
}

#[test]
#[ignore = "needs chromium: cargo xtask ci --only report"]
fn a_screen_reader_finds_landmarks_headings_pictures_and_tables_by_name() {
    let mut browser = opened();
    let svgs = browser.evaluate("document.querySelectorAll('svg.plot').length");
    let tree = browser.call("Accessibility.getFullAXTree", serde_json::json!({}));
    let nodes: Vec<(String, String)> = tree["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|node| node["ignored"] == false)
        .map(|node| {
            let text = |field: &str| node[field]["value"].as_str().unwrap_or_default().to_owned();
            (text("role"), text("name"))
        })
        .collect();
    let of = |wanted: &[&str]| -> Vec<&String> {
        nodes
            .iter()
            .filter(|(role, _)| wanted.contains(&role.as_str()))
            .map(|(_, name)| name)
            .collect()
    };
    for landmark in ["banner", "navigation", "main", "contentinfo"] {
        assert_eq!(of(&[landmark]).len(), 1, "{landmark}");
    }
    let pictures = of(&["image", "img"]);
    assert_eq!(Some(pictures.len() as u64), svgs.as_u64());
    for (role, least) in [("heading", 10), ("region", 10), ("table", 3)] {
        assert!(of(&[role]).len() >= least, "{role}: {}", of(&[role]).len());
    }
    for name in pictures
        .into_iter()
        .chain(of(&["heading", "region", "table", "link"]))
    {
        assert!(!name.trim().is_empty());
    }
}

#[test]
#[ignore = "needs chromium: cargo xtask ci --only report"]
fn a_picture_is_taken_for_a_person() {
    let at = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, width, height) in [("wide.png", 1400, 5200), ("narrow.png", 500, 9000)] {
        let file = at.join(name);
        picture(page(), &file, width, height);
        let bytes = std::fs::metadata(&file).expect("written").len();
        assert!(bytes > 20_000, "{bytes} bytes");
        println!("{}", file.display());
    }
}
