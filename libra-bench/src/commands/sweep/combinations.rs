//! All combinations of the values that flags take in turn.

use clap::Parser;
use serde_json::{Map, Value};

use crate::cli::{ClusterArgs, Over, PlanArgs, WorkloadArgs};
use crate::failure::Failure;
use crate::preset::{Settings, Shapes};

/// Combinations of one sweep.
const MOST: usize = 10_000;

/// Flags of a combination, parsed as the command line is.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, args_override_self = true)]
struct Flags {
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    plan: PlanArgs,
}

/// Settings of a row, and the flags that tell it from the others.
pub(super) struct Combination {
    /// The flags, as they are typed; `-` where there is nothing to tell it from.
    pub(super) name: String,
    pub(super) settings: Settings,
    pub(super) shapes: Shapes,
}

impl Combination {
    /// Its settings, by the names of the report format.
    pub(super) fn json(&self) -> Map<String, Value> {
        match self.settings.json() {
            Value::Object(settings) => settings,
            _ => Map::new(),
        }
    }
}

/// All of them, the last flag's values changing fastest; every one is legal.
pub(super) fn all(base: &Settings, over: &[Over]) -> Result<Vec<Combination>, Failure> {
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    for (index, Over { flag, values }) in over.iter().enumerate() {
        if over[..index].iter().any(|before| before.flag == *flag) {
            return Err(Failure::Over(format!("{flag} is there twice")));
        }
        let longer = |words: &Vec<String>| {
            let words = words.clone();
            values.iter().map(move |value| {
                let mut words = words.clone();
                words.extend([flag.clone(), value.clone()]);
                words
            })
        };
        if all.len().saturating_mul(values.len()) > MOST {
            return Err(Failure::Over(format!("more than {MOST} combinations")));
        }
        all = all.iter().flat_map(longer).collect();
    }
    all.into_iter()
        .map(|words| combination(base, words))
        .collect()
}

fn combination(base: &Settings, words: Vec<String>) -> Result<Combination, Failure> {
    let typed = base.flags().into_iter().chain(words.iter().cloned());
    let flags = Flags::try_parse_from(typed).map_err(|error| {
        // The first paragraph: the rest is about the usage of no command at all.
        let text = error.to_string();
        let text = text.trim_start_matches("error: ").split("\n\n").next();
        Failure::Over(text.unwrap_or_default().trim().to_owned())
    })?;
    let settings = Settings::new(&flags.workload, &flags.cluster, &flags.plan);
    Ok(Combination {
        shapes: settings.shapes()?,
        settings,
        name: match words.is_empty() {
            true => "-".to_owned(),
            false => words.join(" "),
        },
    })
}
