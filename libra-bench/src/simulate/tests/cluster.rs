use std::path::Path;

use super::super::cluster::{Cluster, ClusterFile, PROFILES};
use super::{ROUND, cluster};

/// What is said about [`ROUND`] with `from` replaced by `to`.
fn refused(from: &str, to: &str) -> String {
    let text = ROUND.replacen(from, to, 1);
    assert_ne!(text, ROUND, "{from}");
    match Cluster::parse("c.toml", &text, Path::new("")) {
        Ok(_) => "nothing".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_profile_is_legal() {
    for (name, _) in PROFILES {
        let read = Cluster::read(name).expect(name);
        assert_eq!(read.file.name, name);
    }
}

#[test]
fn larger_domains_are_all_that_tells_the_second_h200_from_the_first() {
    let [small, mut large] = ["h200", "h200-nvl64"].map(|name| Cluster::read(name).expect(name));
    assert_eq!((large.file.node.gpus, large.file.node.nics), (64, 64));
    (large.file.name, large.file.node) = (small.file.name.clone(), small.file.node.clone());
    assert_eq!(large.file, small.file);
}

#[test]
fn impossible_numbers_are_named_with_what_is_legal() {
    for (from, to, message) in [
        (
            "gpus = 4",
            "gpus = 0",
            "c.toml: node.gpus is 0; legal is 1 to 1000000",
        ),
        (
            "nics = 4",
            "nics = 3",
            "c.toml: node.nics is 3; legal is a divisor or a multiple of the 4 GPUs of a node",
        ),
        (
            "nics = 4",
            "nics = 0",
            "c.toml: node.nics is 0; legal is 1 to 1000000",
        ),
        (
            "peak_tflops = 1000",
            "peak_tflops = nan",
            "c.toml: gpu.peak_tflops is NaN; legal is 0.001 to 1000000",
        ),
        (
            "efficiency = 1",
            "efficiency = 1.5",
            "c.toml: nic.efficiency is 1.5; legal is 0.001 to 1",
        ),
        (
            "latency_us = 0.1",
            "latency_us = -1",
            "c.toml: nvlink.latency_us is -1; legal is 0 to 1000000",
        ),
        (
            "bandwidth_gb_s = 1",
            "bandwidth_gb_s = 0",
            "c.toml: nvlink.bandwidth_gb_s is 0; legal is 0.001 to 1000000",
        ),
        (
            "bandwidth_gb_s = 1",
            "bandwidth_gb_s = inf",
            "c.toml: nvlink.bandwidth_gb_s is inf; legal is 0.001 to 1000000",
        ),
        (
            "message_us = 0.02",
            "message_us = 0\n[network]\noversubscription = 0.5",
            "c.toml: network.oversubscription is 0.5; legal is 1 to 1000",
        ),
        (
            "[node]",
            "nodes = 10\n[network]\nnodes_per_pod = 4\n[node]",
            "c.toml: network.nodes_per_pod is 4; legal is a divisor of the 10 nodes",
        ),
        (
            "message_us = 0.02",
            "message_us = 0\n[jitter]\nsigma = 0.5",
            "c.toml: jitter.sigma is 0.5; legal is 0 to 0.2",
        ),
        (
            "h100-fa2-varlen",
            "h300",
            "h300: neither a file nor a built-in kernel table; legal are h200-fa3, h100-fa3, h100-fa3-varlen, h100-fa2-varlen",
        ),
    ] {
        assert_eq!(refused(from, to), message);
    }
}

#[test]
fn a_word_that_is_not_known_is_shown_where_it_stands() {
    let message = refused("nics = 4", "nics = 4\nnicks = 4");
    assert!(message.contains("line 6"), "{message}");
    assert!(
        message.contains("unknown field `nicks`, expected `gpus` or `nics`"),
        "{message}"
    );
    let message = refused("nics = 4\n", "");
    assert!(message.contains("missing field `nics`"), "{message}");
}

#[test]
fn a_cluster_that_is_neither_built_in_nor_a_file_is_refused() {
    let message = Cluster::read("h300.toml").expect_err("nowhere").to_string();
    assert_eq!(
        message,
        "h300.toml: neither a file nor a built-in cluster; legal are h200, h200-nvl64, h100"
    );
}

#[test]
fn more_gpus_than_nodes_have_are_refused() {
    let four = cluster(&format!("nodes = 4\n{ROUND}"));
    assert!(four.check_size(16).is_ok());
    let message = four.check_size(17).expect_err("17 of 16").to_string();
    assert_eq!(
        message,
        "test: 4 nodes of 4 are 16 GPUs, DP*CP*PP asks for 17"
    );
    assert!(cluster(ROUND).check_size(1 << 40).is_ok());
}

#[test]
fn a_kernel_table_may_be_a_file_beside_the_cluster_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = r#"{ "name": "own", "tokens": 1024, "lengths": [128], "heads": [1],
        "forward_tflops": [[100]], "backward_over_forward": 1, "launch_us": 0 }"#;
    std::fs::write(folder.path().join("own.json"), table).expect("written");
    let text = ROUND.replace("h100-fa2-varlen", "own.json");
    let read = Cluster::parse("c.toml", &text, folder.path()).expect("legal");
    assert_eq!(read.kernel.name(), "own");
    for (from, to, message) in [
        (
            "[128]",
            "[128, 64]",
            "own.json: lengths is [128, 64]; legal is ascending numbers from 1, at least one",
        ),
        (
            "[[100]]",
            "[[100, 200]]",
            "own.json: forward_tflops is of another shape; legal is 1 rows of 1 numbers: one a length, one a head count",
        ),
        (
            "[[100]]",
            "[[0]]",
            "own.json: forward_tflops is 0; legal is 0.000001 to 1000000",
        ),
        (
            "\"backward_over_forward\": 1, ",
            "",
            "own.json: backward is missing; legal is either backward_tflops or backward_over_forward",
        ),
    ] {
        std::fs::write(folder.path().join("own.json"), table.replace(from, to)).expect("written");
        let error = Cluster::parse("c.toml", &text, folder.path()).expect_err(message);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn what_is_left_out_costs_nothing() {
    let file: ClusterFile = cluster(ROUND).file;
    assert_eq!(file.jitter.sigma, 0.0);
    assert_eq!(
        (file.model.layers, file.model.linear_us_per_token),
        (1, 0.0)
    );
    assert_eq!(
        (file.network.oversubscription, file.network.nodes_per_pod),
        (1.0, None)
    );
}

#[test]
fn the_books_cluster_file_is_legal_and_has_the_defaults_where_it_says_so() {
    let page = include_str!("../../../../docs/src/simulate.md");
    let text = page
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let book = cluster(text.expect("a block")).file;
    let default = Cluster::read("h200").expect("built in").file;
    assert_eq!((book.nodes, book.node.nics), (Some(2), 4));
    assert_eq!(
        (book.gpu, book.nvlink, book.nic),
        (default.gpu, default.nvlink, default.nic)
    );
    assert_eq!((book.jitter, book.model), (default.jitter, default.model));
}
