//! What larger pools give and cost in time: layers and steps over P, from simulations that differ in P alone.

use serde_json::Value;

use super::Document;
use super::curves::Curves;
use super::parts::{Grid, excess};
use crate::plot::{Figure, value_text};

/// What may differ between simulations of one picture: P, and which methods were asked for.
const FREE: [&str; 2] = ["pool_size", "methods"];

/// A picture for every two simulations or more of the same but for P.
pub(super) fn draw(documents: &[Document]) -> impl Iterator<Item = (Figure, Grid)> {
    let mut alike: Vec<([Value; 2], Vec<&Document>)> = Vec::new();
    for document in documents.iter().filter(|one| one.is_of(&["simulate"])) {
        let [mut config, seed] = ["config", "seed"].map(|field| document.value[field].clone());
        if let Some(fields) = config.as_object_mut() {
            fields.retain(|name, _| !FREE.contains(&name.as_str()));
        }
        let settings = [config, seed];
        match alike.iter_mut().find(|(known, _)| *known == settings) {
            Some((_, documents)) => documents.push(document),
            None => alike.push((settings, vec![document])),
        }
    }
    let draw =
        |(nth, (_, documents)): (usize, ([Value; 2], Vec<&Document>))| picture(nth, &documents);
    alike.into_iter().enumerate().filter_map(draw)
}

fn picture(nth: usize, documents: &[&Document]) -> Option<(Figure, Grid)> {
    let curves = curves(documents);
    if curves.sizes().len() < 2 {
        return None;
    }
    let names: Vec<&str> = documents.iter().map(|one| one.name.as_str()).collect();
    let names = names.join(", ");
    let mut grid = Grid::new(
        format!("{names}: simulated, means over windows"),
        &[
            "P",
            "method",
            "layer forward, slowest ms",
            "step, ms",
            "slowest worker, R - 1",
            "busiest port, ms",
        ],
    );
    for (size, method, &[layer, step, balance, port]) in curves.places() {
        grid.rows.push(vec![
            size.to_string(),
            method.to_owned(),
            value_text(layer),
            value_text(step),
            excess(balance),
            value_text(port),
        ]);
    }
    let drawn = Figure {
        id: format!("pool-times-{nth}"),
        title: format!("What larger pools give and cost in time: {names}"),
        description: format!(
            "Larger pools are more even and move more; the time says which counts. Above the slowest attention of a layer \
             forward, and the whole step; below the attention of the busiest worker over the mean, less 1, and the time of \
             the busiest port.{}",
            curves.left_out()
        ),
        panels: vec![
            curves.panel("attention of a layer forward", "ms", 0),
            curves.panel("whole step", "ms", 1),
            curves.panel("busiest worker over mean, less 1", "R - 1", 2),
            curves.panel("busiest port of a layer forward", "ms", 3),
        ],
    };
    Some((drawn, grid))
}

/// By method: layer, step, balance and busiest port.
fn curves(documents: &[&Document]) -> Curves<4> {
    let mut curves = Curves::default();
    for document in documents {
        let Some(size) = document.value["config"]["pool_size"].as_u64() else {
            continue;
        };
        for case in document.cases() {
            let number = |field: &str| case[field].as_f64();
            let place = || {
                let (busiest, mean) = (
                    number("busiest_compute_ms_mean")?,
                    number("compute_ms_mean")?,
                );
                Some([
                    number("straggler_ms_mean")?,
                    number("step_ms_mean")?,
                    busiest / mean - 1.0,
                    number("busiest_port_ms_mean")?,
                ])
            };
            if let (Some(method), Some(values)) = (case["method"].as_str(), place()) {
                curves.add(method.to_owned(), size, values);
            }
        }
    }
    curves
}
