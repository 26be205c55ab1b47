//! `cargo xtask deps`: which crates may depend on what.

mod licence;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::process::{Outcome, Trouble, capture, cargo, verdict};
use crate::tree::Tree;

/// What libra-sched depends on, and all it may depend on.
const SCHED_DEPENDENCIES: [&str; 5] = [
    "binary-heap-plus",
    "bytemuck",
    "ordered-float",
    "thiserror",
    "xxhash-rust",
];

/// What each crate of the workspace may depend on within the workspace.
const DIRECTIONS: &[(&str, &[&str])] = &[
    ("libra-sched", &[]),
    ("libra-exec", &["libra-sched"]),
    ("libra-bench", &["libra-exec", "libra-sched"]),
    ("libra-tests", &["libra-bench", "libra-exec", "libra-sched"]),
    ("libra-docs", &["libra-bench", "libra-exec", "libra-sched"]),
    ("xtask", &["libra-bench", "libra-exec", "libra-sched"]),
];

/// One package of the graph.
struct Package {
    id: String,
    name: String,
    version: String,
    licence: Option<String>,
    rust_version: Option<String>,
    dependencies: Vec<Dependency>,
}

/// One line of a manifest.
struct Dependency {
    name: String,
    is_dev: bool,
}

/// What `cargo metadata` says, as far as the rules need it.
struct Graph {
    members: BTreeSet<String>,
    packages: Vec<Package>,
    /// Packages a build without tests can contain, by id.
    built: BTreeSet<String>,
}

pub(crate) fn main(tree: &Tree) -> Outcome {
    let metadata = capture(&mut cargo(
        tree,
        &["metadata", "--format-version", "1", "--locked"],
    ))?;
    let metadata = serde_json::from_str(&metadata)
        .map_err(|error| Trouble::failed(format!("cargo metadata: {error}")))?;
    let graph = Graph::read(&metadata);
    let problems = [
        sched_is_light(&graph),
        directions(&graph),
        licences(&graph),
        compiler_versions(&graph),
    ]
    .concat();
    verdict(&problems)?;
    println!(
        "{} packages, {} of them outside tests",
        graph.packages.len(),
        graph.built.len()
    );
    Ok(())
}

impl Graph {
    fn read(metadata: &Value) -> Self {
        let members: BTreeSet<String> = strings(&metadata["workspace_members"]).collect();
        let packages = items(&metadata["packages"]).map(Package::read).collect();
        let built = built(&metadata["resolve"]["nodes"], &members);
        Self {
            members,
            packages,
            built,
        }
    }

    fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| self.members.contains(&package.id))
    }
}

impl Package {
    fn read(package: &Value) -> Self {
        let text = |key: &str| package[key].as_str().map(str::to_owned);
        let dependency = |dependency: &Value| Dependency {
            name: dependency["name"].as_str().unwrap_or_default().to_owned(),
            is_dev: dependency["kind"] == "dev",
        };
        Self {
            id: text("id").unwrap_or_default(),
            name: text("name").unwrap_or_default(),
            version: text("version").unwrap_or_default(),
            licence: text("license"),
            rust_version: text("rust_version"),
            dependencies: items(&package["dependencies"]).map(dependency).collect(),
        }
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn strings(value: &Value) -> impl Iterator<Item = String> {
    items(value).filter_map(Value::as_str).map(str::to_owned)
}

/// What is reached from the members without following a development dependency.
fn built(nodes: &Value, members: &BTreeSet<String>) -> BTreeSet<String> {
    let is_built =
        |dependency: &&Value| items(&dependency["dep_kinds"]).any(|kind| kind["kind"] != "dev");
    let edges = |node: &Value| {
        items(&node["deps"])
            .filter(is_built)
            .filter_map(|dep| dep["pkg"].as_str())
            .map(str::to_owned)
            .collect()
    };
    let edges: BTreeMap<&str, Vec<String>> = items(nodes)
        .filter_map(|node| Some((node["id"].as_str()?, edges(node))))
        .collect();
    let mut reached = members.clone();
    let mut waiting: Vec<String> = members.iter().cloned().collect();
    while let Some(id) = waiting.pop() {
        for next in edges.get(id.as_str()).into_iter().flatten() {
            if reached.insert(next.clone()) {
                waiting.push(next.clone());
            }
        }
    }
    reached
}

fn sched_is_light(graph: &Graph) -> Vec<String> {
    let allowed: BTreeSet<&str> = SCHED_DEPENDENCIES.into();
    let Some(sched) = graph
        .members()
        .find(|package| package.name == "libra-sched")
    else {
        return vec!["libra-sched: not a member of the workspace".into()];
    };
    let normal = sched
        .dependencies
        .iter()
        .filter(|dependency| !dependency.is_dev);
    let named: BTreeSet<&str> = normal.map(|dependency| dependency.name.as_str()).collect();
    let added = named
        .difference(&allowed)
        .map(|name| format!("libra-sched: `{name}` is not in its short list of dependencies"));
    let gone = allowed
        .difference(&named)
        .map(|name| format!("libra-sched: `{name}` is listed but not used: shorten the list"));
    added.chain(gone).collect()
}

fn directions(graph: &Graph) -> Vec<String> {
    let names: BTreeSet<&str> = graph
        .members()
        .map(|package| package.name.as_str())
        .collect();
    let mut problems = Vec::new();
    for package in graph.members() {
        let Some((_, allowed)) = DIRECTIONS.iter().find(|(name, _)| *name == package.name) else {
            problems.push(format!(
                "{}: no direction is written down for it",
                package.name
            ));
            continue;
        };
        let ours = package
            .dependencies
            .iter()
            .filter(|dependency| names.contains(dependency.name.as_str()));
        let wrong = ours.filter(|dependency| !allowed.contains(&dependency.name.as_str()));
        problems.extend(
            wrong.map(|dependency| {
                format!("{} must not depend on {}", package.name, dependency.name)
            }),
        );
    }
    problems
}

fn licences(graph: &Graph) -> Vec<String> {
    let why = |package: &Package| match package.licence.as_deref() {
        None => Some("names no licence".to_owned()),
        Some(expression) if licence::is_allowed(expression) => None,
        Some(expression) => Some(format!("licence `{expression}` is not on the list")),
    };
    let problem = |package: &Package| {
        Some(format!(
            "{} {}: {}",
            package.name,
            package.version,
            why(package)?
        ))
    };
    graph.packages.iter().filter_map(problem).collect()
}

fn compiler_versions(graph: &Graph) -> Vec<String> {
    let Some(ours) = graph
        .members()
        .filter_map(|package| package.rust_version.as_deref())
        .map(version)
        .min()
    else {
        return vec!["no member of the workspace names a rust-version".into()];
    };
    let problem = |package: &Package| {
        let needed = package.rust_version.as_deref()?;
        let message = || {
            format!(
                "{} {}: needs rustc {needed}, newer than our rust-version",
                package.name, package.version
            )
        };
        (version(needed) > ours).then(message)
    };
    graph
        .packages
        .iter()
        .filter(|package| graph.built.contains(&package.id))
        .filter_map(problem)
        .collect()
}

/// `1.90` as numbers that compare; a part that is left out is zero.
fn version(text: &str) -> [u64; 3] {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(
        name: &str,
        licence: &str,
        rust_version: Option<&str>,
        dependencies: &[&str],
    ) -> Value {
        let dependencies: Vec<Value> = dependencies
            .iter()
            .map(|name| json!({ "name": name, "kind": null }))
            .collect();
        json!({ "id": name, "name": name, "version": "1.0.0", "license": licence, "rust_version": rust_version, "dependencies": dependencies })
    }

    fn graph(packages: &[Value], nodes: &Value) -> Graph {
        let is_ours = |name: &&str| name.starts_with("libra");
        let members: Vec<&str> = packages
            .iter()
            .filter_map(|package| package["id"].as_str())
            .filter(is_ours)
            .collect();
        Graph::read(
            &json!({ "workspace_members": members, "packages": packages, "resolve": { "nodes": nodes } }),
        )
    }

    #[test]
    fn libra_sched_may_not_grow_a_dependency() {
        let names = [&SCHED_DEPENDENCIES[1..], &["rayon"]].concat();
        let problems = sched_is_light(&graph(
            &[package("libra-sched", "MIT", None, &names)],
            &json!([]),
        ));
        assert_eq!(problems.len(), 2);
        assert!(problems[0].contains("rayon") && problems[1].contains("binary-heap-plus"));
    }

    #[test]
    fn an_arrow_against_the_direction_is_reported() {
        let packages = [
            package("libra-sched", "MIT", None, &["libra-exec"]),
            package("libra-exec", "MIT", None, &["libra-sched"]),
        ];
        assert_eq!(
            directions(&graph(&packages, &json!([]))),
            ["libra-sched must not depend on libra-exec"]
        );
    }

    #[test]
    fn every_package_needs_an_allowed_licence() {
        let packages = [
            package("good", "MIT OR GPL-3.0", None, &[]),
            package("bad", "GPL-3.0", None, &[]),
        ];
        let problems = licences(&graph(&packages, &json!([])));
        assert_eq!(
            problems,
            ["bad 1.0.0: licence `GPL-3.0` is not on the list"]
        );
    }

    #[test]
    fn a_dependency_may_not_need_a_newer_compiler_unless_only_tests_use_it() {
        let packages = [
            package("libra-sched", "MIT", Some("1.90"), &[]),
            package("a", "MIT", Some("1.90.1"), &[]),
            package("b", "MIT", Some("1.99"), &[]),
        ];
        let nodes = json!([{ "id": "libra-sched", "deps": [
            { "pkg": "a", "dep_kinds": [{ "kind": null }] },
            { "pkg": "b", "dep_kinds": [{ "kind": "dev" }] },
        ] }]);
        let problems = compiler_versions(&graph(&packages, &nodes));
        assert_eq!(
            problems,
            ["a 1.0.0: needs rustc 1.90.1, newer than our rust-version"]
        );
    }
}
