//! A stage of libra-sched imports only earlier stages, and `verify` shares no code with what it checks.

use super::Texts;
use super::source::{Named, crate_paths, only_code, without_tests};

const SOURCES: &str = "libra-sched/src/";

/// The modules in order. Modules of one row do not import each other.
const STAGES: &[&[&str]] = &[
    &["ids"],
    &["search"],
    &["error"],
    &["mask"],
    &["heads"],
    &["lengths"],
    &["topology"],
    &["layout"],
    &["vrsp"],
    &["tiles"],
    &["placement"],
    &["exchange"],
    &["plan"],
    &["wire", "verify", "audit", "bound", "reverse"],
];

/// What `verify` may name: whole modules that hold no planning, and types of the stages it checks.
const VERIFY_MAY_NAME: &[(&str, &[&str])] = &[
    ("ids", &[]),
    ("error", &[]),
    ("mask", &[]),
    ("heads", &[]),
    ("lengths", &[]),
    ("layout", &[]),
    ("tiles", &["ShTile"]),
    (
        "exchange",
        &["ExchangePlan", "KvFetch", "KvMove", "KvRoute", "TileMove"],
    ),
    ("plan", &["PlanConfig", "PoolPlan"]),
];

pub(super) fn problems(sources: &Texts) -> Vec<String> {
    let ours = sources
        .iter()
        .filter_map(|(path, text)| Some((path, path.strip_prefix(SOURCES)?, text)));
    let stages = ours.filter(|(_, file, _)| *file != "lib.rs" && !file.ends_with("tests.rs"));
    stages
        .flat_map(|(path, file, text)| file_problems(path, file, text))
        .collect()
}

fn file_problems(path: &str, file: &str, text: &str) -> Vec<String> {
    let stage = file.split(['/', '.']).next().unwrap_or(file);
    let Some(row) = row_of(stage) else {
        return vec![format!(
            "{path}: `{stage}` has no place in the order of stages"
        )];
    };
    let named = crate_paths(&without_tests(&only_code(text)), depth(file));
    let why = |named: &Named| {
        why_not(stage, row, named).map(|why| format!("{path}:{}: {why}", named.line))
    };
    named.iter().filter_map(why).collect()
}

fn why_not(stage: &str, row: usize, named: &Named) -> Option<String> {
    let (other, item) = (named.segment(0), named.segment(1));
    if other == stage {
        return None;
    }
    let Some(other_row) = row_of(other) else {
        return Some(format!(
            "`crate::{other}` is no stage: name the module that holds it"
        ));
    };
    if other_row >= row {
        return Some(format!(
            "`{stage}` may not name `{other}`, which does not come before it"
        ));
    }
    (stage == "verify" && !verify_may_name(other, item))
        .then(|| format!("`verify` may not share `{other}::{item}` with what it checks"))
}

fn verify_may_name(module: &str, item: &str) -> bool {
    let listed = VERIFY_MAY_NAME.iter().find(|(name, _)| *name == module);
    listed.is_some_and(|(_, types)| types.is_empty() || types.contains(&item))
}

fn row_of(module: &str) -> Option<usize> {
    STAGES.iter().position(|row| row.contains(&module))
}

/// How many `super` lead from a file to the crate's root.
fn depth(file: &str) -> usize {
    let folders = file.matches('/').count();
    if file.ends_with("/mod.rs") {
        folders
    } else {
        folders + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, text: &str) -> Vec<String> {
        problems(&[(format!("{SOURCES}{file}"), text.to_owned())].into())
    }

    #[test]
    fn a_stage_may_not_look_ahead() {
        assert_eq!(
            check(
                "tiles.rs",
                "use crate::{error::Error, layout::TokenLayout};"
            ),
            [""; 0]
        );
        let problems = check("tiles.rs", "\nuse crate::placement::Placement;");
        assert_eq!(
            problems,
            [
                "libra-sched/src/tiles.rs:2: `tiles` may not name `placement`, which does not come before it"
            ]
        );
        assert_eq!(
            check("vrsp/paper.rs", "use super::super::plan::PoolPlan;").len(),
            1
        );
        assert_eq!(check("vrsp/mod.rs", "use super::plan::PoolPlan;").len(), 1);
        assert_eq!(
            check("vrsp/paper.rs", "use super::plan::PoolPlan;").len(),
            0
        );
    }

    #[test]
    fn the_last_stages_do_not_know_each_other() {
        assert_eq!(
            check("wire.rs", "fn f() { crate::audit::read(); }").len(),
            1
        );
    }

    #[test]
    fn tests_comments_and_the_root_are_exempt() {
        assert_eq!(
            check(
                "tiles.rs",
                "/// See [`crate::plan`].\n#[cfg(test)]\nmod tests { use crate::plan::X; }"
            ),
            [""; 0]
        );
        assert_eq!(check("lib.rs", "use crate::plan::X;"), [""; 0]);
    }

    #[test]
    fn a_new_module_needs_a_place_and_a_re_export_hides_its_stage() {
        assert_eq!(check("helpers.rs", "").len(), 1);
        assert_eq!(check("tiles.rs", "use crate::Error;").len(), 1);
    }

    #[test]
    fn verify_may_name_types_of_the_stages_but_not_their_functions() {
        assert_eq!(
            check(
                "verify.rs",
                "use crate::tiles::ShTile;\nuse crate::lengths::pairs;"
            ),
            [""; 0]
        );
        for bad in [
            "tiles::cut",
            "tiles::*",
            "placement::Placement",
            "plan::plan_pool",
            "exchange::derive",
            "vrsp::place",
            "topology::Topology",
        ] {
            assert_eq!(
                check("verify.rs", &format!("use crate::{bad};")).len(),
                1,
                "{bad}"
            );
        }
    }
}
