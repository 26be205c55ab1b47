//! `figures`: the paper's figures from our own numbers, as pictures and files, and a summary.

use serde_json::{Value, json};

use super::plan::line;
use super::{Context, Outcome, code};
use crate::cli::FiguresArgs;
use crate::figures::{Asked, Comparison, Effort, Made, RECIPES, Recipe, Relation};
use crate::plot::value_text;
use crate::report::{Column, Report, Table};
use crate::store;

pub(super) fn run(context: &Context, figures: &FiguresArgs) -> Outcome {
    let is_wanted = |recipe: &&Recipe| {
        figures.only.is_empty() || figures.only.iter().any(|figure| figure == recipe.figure)
    };
    let recipes: Vec<&Recipe> = RECIPES.iter().filter(is_wanted).collect();
    let asked = Asked {
        windows: figures.windows,
        seed: figures.seed,
        is_small: figures.small,
    };
    let mut words = vec![
        "figures".to_owned(),
        "--out".to_owned(),
        super::typed(&figures.out),
    ];
    if !figures.only.is_empty() {
        let only: Vec<&str> = recipes.iter().map(|recipe| recipe.figure).collect();
        words.extend(["--only".to_owned(), only.join(",")]);
    }
    if let Some(windows) = asked.windows {
        words.extend(["--windows".to_owned(), windows.to_string()]);
    }
    words.extend(["--seed".to_owned(), asked.seed.to_string()]);
    words.extend(asked.is_small.then(|| "--small".to_owned()));
    let mut report = Report::new("figures", line(&words));
    report.seed = Some(asked.seed);
    report.config = json!({
        "figures": recipes.iter().map(|recipe| recipe.figure).collect::<Vec<_>>(),
        "windows": asked.windows,
    });
    report.header();

    store::make_directory(&figures.out)?;
    let steps = |recipe: &&Recipe| recipe.steps(recipe.effort(asked));
    let progress = context.progress("measured", recipes.iter().map(steps).sum());
    let mut comparisons = Vec::new();
    for recipe in recipes {
        let effort = recipe.effort(asked);
        let Some(made) = recipe.make(effort, &|| progress.step())? else {
            break;
        };
        let names = write(figures, &made, effort)?;
        report.note(format!(
            "figure {}, {}: {}",
            made.figure,
            made.title,
            names.join(", ")
        ));
        let compared = made.comparisons();
        report
            .cases
            .extend(compared.iter().map(|one| json_case(one, effort)));
        comparisons.extend(compared);
    }
    drop(progress);
    report.note("");
    report.table(table(&comparisons));
    report.note("difference: ours over the paper's, less 1; settings and reasons are in the book");
    report.reproduce(report.reproduce.clone());
    Ok((report, code()))
}

/// Writes a figure's files; returns their paths.
fn write(
    figures: &FiguresArgs,
    made: &Made,
    effort: Effort,
) -> Result<[String; 2], crate::failure::Failure> {
    let names = ["svg", "csv"].map(|suffix| format!("figure-{}.{suffix}", made.figure));
    // Whoever finds the file somewhere else needs no folder's name to make it again.
    let command = format!(
        "libra-bench figures --only {} --windows {} --seed {}{}",
        made.figure,
        effort.windows,
        effort.seed,
        if effort.is_small { " --small" } else { "" },
    );
    let texts = [made.drawn.file(), made.csv(&command)];
    for (name, text) in names.iter().zip(&texts) {
        store::write(&figures.out, name, text.as_bytes())?;
    }
    Ok(names.map(|name| super::typed(&figures.out.join(name))))
}

fn table(comparisons: &[Comparison]) -> Table {
    let row = |one: &Comparison| {
        let paper = &one.paper;
        let about = if paper.relation == Relation::About {
            "~"
        } else {
            ""
        };
        vec![
            paper.figure.clone(),
            format!(
                "{}, {}, {}: {}",
                paper.corpus, paper.method, paper.at, paper.quantity
            ),
            format!("{about}{}", value_text(paper.value)),
            one.ours.map_or("-".to_owned(), value_text),
            one.ours
                .map_or("-".to_owned(), |ours| percent(ours, paper.value)),
            one.why.to_owned(),
        ]
    };
    Table {
        columns: vec![
            Column::text("figure"),
            Column::text("quantity"),
            Column::number("paper", ""),
            Column::number("ours", ""),
            Column::number("difference", "%"),
            Column::text("why they may differ"),
        ],
        rows: comparisons.iter().map(row).collect(),
    }
}

fn percent(ours: f64, paper: f64) -> String {
    format!("{:+.0}", (ours / paper - 1.0) * 100.0).replace("-0", "0")
}

fn json_case(one: &Comparison, effort: Effort) -> Value {
    let paper = &one.paper;
    json!({
        "figure": paper.figure,
        "corpus": paper.corpus,
        "method": paper.method,
        "at": paper.at,
        "quantity": paper.quantity,
        "paper": paper.value,
        "paper_is_rounded": paper.relation == Relation::About,
        "paper_source": paper.source,
        "ours": one.ours,
        "windows": effort.windows,
        "why": one.why,
    })
}
