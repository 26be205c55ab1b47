//! `figures`: the paper's figures from our own numbers, as pictures and files, and a summary.

use serde_json::{Value, json};

use super::plan::line;
use super::{Context, Outcome, code};
use crate::cli::FiguresArgs;
use crate::failure::Failure;
use crate::figures::{Asked, Comparison, Effort, Machines, Made, RECIPES, Recipe, Relation};
use crate::plot::value_text;
use crate::report::{Column, Report, Table};
use crate::simulate::cluster::Cluster;
use crate::store;

/// On what times are simulated.
struct Clusters {
    first: Cluster,
    /// None where it would be the first again.
    second: Option<Cluster>,
}

impl Clusters {
    fn read(figures: &FiguresArgs) -> Result<Self, Failure> {
        let is_another = figures.beside != figures.cluster;
        Ok(Self {
            first: Cluster::read(&figures.cluster)?,
            second: is_another
                .then(|| Cluster::read(&figures.beside))
                .transpose()?,
        })
    }

    fn beside(&self, recipe: &Recipe) -> Option<&Cluster> {
        let second = self.second.as_ref();
        second.filter(|_| recipe.machines == Machines::Two)
    }
}

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
    let clusters = Clusters::read(figures)?;
    let mut report = Report::new("figures", line(&words(figures, &recipes)));
    report.seed = Some(asked.seed);
    report.config = json!({
        "figures": recipes.iter().map(|recipe| recipe.figure).collect::<Vec<_>>(),
        "windows": asked.windows,
        "cluster": figures.cluster,
        "beside": clusters.second.as_ref().map(|cluster| &cluster.source),
    });
    report.header();

    store::make_directory(&figures.out)?;
    let steps = |recipe: &&Recipe| {
        let clusters = 1 + u64::from(clusters.beside(recipe).is_some());
        clusters * recipe.steps(recipe.effort(asked))
    };
    let progress = context.progress("measured", recipes.iter().map(steps).sum());
    let mut comparisons = Vec::new();
    for recipe in &recipes {
        let effort = recipe.effort(asked);
        let mut make = |cluster: &Cluster, suffix| -> Result<Option<Made>, Failure> {
            let made = recipe.make(effort, cluster, &|| progress.step())?;
            if let Some(made) = &made {
                let source = source(recipe, effort, cluster);
                let [picture, numbers] = write(figures, made, suffix, &source)?;
                report.note(format!("{}: {picture}, {numbers}", made.drawn.title));
            }
            Ok(made)
        };
        let Some(made) = make(&clusters.first, "")? else {
            break;
        };
        let beside = match clusters.beside(recipe) {
            Some(cluster) => make(cluster, "-beside")?,
            None => None,
        };
        let compared = made.comparisons(beside.as_ref());
        report
            .cases
            .extend(compared.iter().map(|one| json_case(one, effort)));
        comparisons.extend(compared);
    }
    drop(progress);
    report.note("");
    report.table(table(&comparisons));
    report.note("difference: ours over the paper's, less 1; settings and reasons are in the book");
    add_clusters(&mut report, &clusters, &recipes);
    report.reproduce(report.reproduce.clone());
    Ok((report, code()))
}

/// The words that make the same figures.
fn words(figures: &FiguresArgs, recipes: &[&Recipe]) -> Vec<String> {
    let mut words = vec![
        "figures".to_owned(),
        "--out".to_owned(),
        super::typed(&figures.out),
    ];
    if !figures.only.is_empty() {
        let only: Vec<&str> = recipes.iter().map(|recipe| recipe.figure).collect();
        words.extend(["--only".to_owned(), only.join(",")]);
    }
    if let Some(windows) = figures.windows {
        words.extend(["--windows".to_owned(), windows.to_string()]);
    }
    words.extend(["--seed".to_owned(), figures.seed.to_string()]);
    for (name, value, default) in [
        ("--cluster", &figures.cluster, "h200-nvl64"),
        ("--beside", &figures.beside, "h200"),
    ] {
        if value != default {
            words.extend([name.to_owned(), value.clone()]);
        }
    }
    words.extend(figures.small.then(|| "--small".to_owned()));
    words
}

/// What to say of a file's numbers. Whoever finds the file somewhere else needs no folder's name to make it again.
fn source(recipe: &Recipe, effort: Effort, cluster: &Cluster) -> String {
    let cluster = match recipe.machines {
        Machines::Any => String::new(),
        Machines::One | Machines::Two => format!(" --cluster {}", cluster.source),
    };
    format!(
        "libra-bench figures --only {} --windows {} --seed {}{cluster}{}",
        recipe.figure,
        effort.windows,
        effort.seed,
        if effort.is_small { " --small" } else { "" },
    )
}

/// Writes a figure's files; returns their paths.
fn write(
    figures: &FiguresArgs,
    made: &Made,
    suffix: &str,
    source: &str,
) -> Result<[String; 2], Failure> {
    let names = ["svg", "csv"].map(|kind| format!("figure-{}{suffix}.{kind}", made.figure));
    let texts = [made.drawn.file(), made.csv(source)];
    for (name, text) in names.iter().zip(&texts) {
        store::write(&figures.out, name, text.as_bytes())?;
    }
    Ok(names.map(|name| super::typed(&figures.out.join(name))))
}

fn table(comparisons: &[Comparison]) -> Table {
    let has_beside = comparisons.iter().any(|one| one.beside.is_some());
    let row = |one: &Comparison| {
        let paper = &one.paper;
        let about = if paper.relation == Relation::About {
            "~"
        } else {
            ""
        };
        let value = |value: Option<f64>| value.map_or("-".to_owned(), value_text);
        let mut row = vec![
            paper.figure.clone(),
            format!(
                "{}, {}, {}: {}",
                paper.corpus, paper.method, paper.at, paper.quantity
            ),
            format!("{about}{}", value_text(paper.value)),
            value(one.ours),
            one.ours
                .map_or("-".to_owned(), |ours| percent(ours, paper.value)),
            one.why.to_owned(),
        ];
        if has_beside {
            row.insert(5, value(one.beside));
        }
        row
    };
    let mut columns = vec![
        Column::text("figure"),
        Column::text("quantity"),
        Column::number("paper", ""),
        Column::number("ours", ""),
        Column::number("difference", "%"),
        Column::text("why they may differ"),
    ];
    if has_beside {
        columns.insert(5, Column::number("beside", ""));
    }
    Table {
        columns,
        rows: comparisons.iter().map(row).collect(),
    }
}

/// Which clusters the numbers are of.
fn add_clusters(report: &mut Report, clusters: &Clusters, recipes: &[&Recipe]) {
    if recipes
        .iter()
        .all(|recipe| recipe.machines == Machines::Any)
    {
        return;
    }
    let words = |cluster: &Cluster| {
        let file = &cluster.file;
        format!("{}, nodes of {} GPUs", file.name, file.node.gpus)
    };
    report.note(format!("ours: times on {}", words(&clusters.first)));
    let beside = recipes.iter().find_map(|recipe| clusters.beside(recipe));
    if let Some(second) = beside {
        report.note(format!("beside: the same on {}", words(second)));
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
        "beside": one.beside,
        "windows": effort.windows,
        "why": one.why,
    })
}
