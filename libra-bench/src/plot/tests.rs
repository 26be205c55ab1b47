use super::*;

fn axes(mark: Mark, points: Vec<(f64, f64)>) -> Axes {
    Axes {
        title: "panel".to_owned(),
        x: Axis::names("P", ["2", "4", "8"]),
        y: Axis::log("R - 1", points.iter().map(|&(_, y)| y)),
        series: vec![Series {
            name: "VRSP <paper>".to_owned(),
            colour: 0,
            mark,
            points,
        }],
    }
}

fn figure(panels: Vec<Panel>) -> Figure {
    Figure {
        id: "f".to_owned(),
        title: "R & more".to_owned(),
        description: "Falls.".to_owned(),
        panels,
    }
}

#[test]
fn a_line_with_points_is_drawn_as_expected() {
    let points = vec![(0.0, 1.0), (1.0, 0.1), (2.0, 0.01)];
    let text = figure(vec![Panel::Axes(axes(Mark::Line, points))]).file();
    insta::assert_snapshot!(text.replace("><", ">\n<").replace(CSS, "…"));
}

#[test]
fn names_are_escaped_and_read_aloud() {
    let text = figure(vec![Panel::Axes(axes(Mark::Points, vec![(0.0, 1.0)]))]).file();
    assert!(
        text.contains("<title id=\"f-title\">R &amp; more</title>"),
        "{text}"
    );
    assert!(text.contains("<desc id=\"f-desc\">Falls.</desc>"), "{text}");
    assert!(text.contains("VRSP &lt;paper&gt;, 2: 1"), "{text}");
}

#[test]
fn panels_on_a_page_do_not_share_ids() {
    let panel = || Panel::Axes(axes(Mark::Bars, vec![(0.0, 1.0)]));
    let inline = figure(vec![panel(), panel()]).inline();
    assert!(inline[0].0.contains("id=\"f-1-title\""));
    assert!(inline[1].0.contains("id=\"f-2-title\""));
    assert!(!inline[0].0.contains("<style"));
}

#[test]
fn a_linear_axis_ends_on_round_numbers_at_or_beyond_its_values() {
    let texts = |values: &[f64]| -> Vec<String> {
        let ticks = Axis::linear("", values.iter().copied()).ticks();
        ticks.into_iter().map(|(_, text)| text).collect()
    };
    assert_eq!(texts(&[0.93]), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    assert_eq!(texts(&[16.0]), ["0", "5", "10", "15", "20"]);
    assert_eq!(texts(&[-1.0, 1.0]), ["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
    assert_eq!(texts(&[]).len(), 6);
    assert_eq!(texts(&[f64::NAN, 5.0]), ["0", "1", "2", "3", "4", "5"]);
}

#[test]
fn a_logarithmic_axis_has_a_place_for_zero() {
    let axis = Axis::log("", [0.0, 0.02, 3.0].into_iter());
    let ticks: Vec<String> = axis.ticks().into_iter().map(|(_, text)| text).collect();
    assert_eq!(ticks, ["0.01", "0.1", "1", "10"]);
    assert_eq!(axis.place(0.0), 0.0);
    assert_eq!(axis.place(100.0), 1.0);
    assert!((axis.place(1.0) - 2.0 / 3.0).abs() < 1e-12);
}

#[test]
fn shares_of_values_rise_to_one() {
    assert_eq!(
        ecdf(&[2.0, 1.0, 2.0, 4.0]),
        [(1.0, 0.25), (2.0, 0.75), (4.0, 1.0)]
    );
    assert_eq!(ecdf(&[]), []);
}

#[test]
fn numbers_have_three_digits_that_matter() {
    let texts = [0.0, 0.005, 1.0771, 23.14, 1234.4, 0.00001, -0.25].map(value_text);
    assert_eq!(
        texts,
        ["0", "0.005", "1.08", "23.1", "1234", "1.0e-5", "-0.25"]
    );
}

/// Red, green and blue of `#rrggbb`, or of `#rgb`.
fn rgb(text: &str) -> [f64; 3] {
    let digits = text.trim_start_matches('#');
    let wide: String = match digits.len() {
        3 => digits.chars().flat_map(|digit| [digit, digit]).collect(),
        _ => digits.to_owned(),
    };
    [0, 2, 4].map(|at| {
        f64::from(u8::from_str_radix(&wide[at..at + 2], 16).expect("hexadecimal")) / 255.0
    })
}

/// Contrast of WCAG 2.
fn contrast(one: &str, other: &str) -> f64 {
    let luminance = |colour: &str| {
        let linear = rgb(colour).map(|c| {
            if c <= 0.04045 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn every_colour_stands_out_from_the_paper_in_light_and_dark() {
    let (light, dark) = CSS.split_once("@media").expect("two schemes");
    for (part, paper) in [(light, "#fff"), (dark, "#16171b")] {
        assert!(part.contains(paper));
        for colour in 0..COLOURS {
            let start = part
                .split_once(&format!(".plot-f{colour}{{fill:"))
                .expect("a rule")
                .1;
            let value = start.split_once('}').expect("closed").0;
            assert!(contrast(value, paper) >= 4.5, "{colour} {value} on {paper}");
        }
    }
}

#[test]
fn every_kind_of_panel_keeps_to_its_box() {
    let heat = Heat {
        title: "bytes".to_owned(),
        x_label: "to".to_owned(),
        y_label: "from".to_owned(),
        columns: vec!["0".to_owned(), "1".to_owned()],
        rows: vec!["0".to_owned(), "1".to_owned()],
        values: vec![vec![Some(0.0), Some(4.0)], vec![None, Some(1.0)]],
        text: value_text,
    };
    let span = |from, to, kind| Span {
        from,
        to,
        kind,
        name: "chunk 0".to_owned(),
    };
    let timeline = Timeline {
        title: "workers".to_owned(),
        unit: "µs",
        lanes: vec![(
            "0".to_owned(),
            vec![
                span(0.0, 2.0, SpanKind::Wait),
                span(2.0, 9.0, SpanKind::Compute),
                span(1.0, 3.0, SpanKind::Transfer),
            ],
        )],
    };
    let bars = axes(Mark::Bars, vec![(0.0, 1.0), (2.0, 100.0)]);
    let figure = figure(vec![
        Panel::Heat(heat),
        Panel::Timeline(timeline),
        Panel::Axes(bars),
    ]);
    for svg in figure.inline() {
        for part in svg.0.split(" x=\"").skip(1) {
            let x: f64 = part
                .split_once('"')
                .expect("closed")
                .0
                .parse()
                .expect("a number");
            assert!((0.0..=WIDTH).contains(&x), "{x}");
        }
        assert!(
            !svg.0.contains("NaN") && !svg.0.contains("inf"),
            "{}",
            svg.0
        );
    }
}
