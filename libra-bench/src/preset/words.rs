//! Settings written down: as flags that make them again, in JSON, and in a line.

use libra_sched::Slack;
use serde_json::{Value, json};

use super::{Preset, Settings};
use crate::cli::Placement;
use crate::units::format_count;

impl Settings {
    /// Flags that differ from the preset's, as they are typed.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        if self.preset != Preset::default() {
            flags.extend(["--preset".to_owned(), self.preset.name()]);
        }
        let mut preset = self.preset.settings();
        if preset.placement == Placement::Export {
            preset.head_shards = self.kv_heads;
        }
        for ((name, value), (_, default)) in self.values().into_iter().zip(preset.values()) {
            if value != default {
                flags.push(name.to_owned());
                // A switch has no value.
                flags.extend(value.filter(|value| !value.is_empty()));
            }
        }
        flags
    }

    /// Every flag and its value; empty for a switch that is on.
    fn values(&self) -> [(&'static str, Option<String>); 33] {
        let count = |count: u64| Some(format_count(count));
        let count32 = |count: u32| Some(format_count(count.into()));
        [
            ("--seed", Some(self.seed.to_string())),
            ("--tokens", count(self.tokens)),
            ("--gbs", count32(self.gbs)),
            ("--pack", Some(self.pack.to_string())),
            ("--fill-last", self.fill_last.then(String::new)),
            ("--skip-windows", count(self.skip_windows)),
            ("--dp", count32(self.dp)),
            ("--cp", count32(self.cp)),
            ("--pp", count32(self.pp)),
            ("--gpus-per-node", count32(self.gpus_per_node)),
            ("--nodes-per-pod", self.nodes_per_pod.and_then(count32)),
            ("--max-recv-bytes", self.max_recv_bytes.map(format_count)),
            ("-P", count32(self.pool_size)),
            ("-H", count32(self.head_shards)),
            ("-B", count32(self.block_tokens)),
            ("-M", count32(self.chunks)),
            ("--slack", Some(self.slack.to_string())),
            ("--q-heads", count32(self.q_heads)),
            ("--kv-heads", count32(self.kv_heads)),
            ("--head-dim", count32(self.head_dim)),
            ("--v-head-dim", self.v_head_dim.and_then(count32)),
            ("--mask", Some(self.mask.to_string())),
            ("--layout", Some(self.layout.to_string())),
            ("--kv", Some(self.kv.to_string())),
            ("--kv-route", Some(self.kv_route.to_string())),
            ("--tiles", Some(self.tiles.to_string())),
            ("--vrsp", Some(self.vrsp.to_string())),
            ("--elastic", Some(self.elastic.to_string())),
            ("--ga-order", Some(self.ga_order.to_string())),
            ("--placement", Some(self.placement.to_string())),
            ("--proxy", Some(self.proxy.to_string())),
            ("--costs", self.costs.clone()),
            ("--speeds", self.speeds.clone()),
        ]
    }

    /// The settings in JSON, by the names of the report format.
    pub(crate) fn json(&self) -> Value {
        json!({
            "preset": self.preset.name(),
            "tokens": self.tokens,
            "gbs": self.gbs,
            "pack": self.pack.to_string(),
            "fill_last": self.fill_last,
            "skip_windows": self.skip_windows,
            "dp": self.dp,
            "cp": self.cp,
            "pp": self.pp,
            "gpus_per_node": self.gpus_per_node,
            "nodes_per_pod": self.nodes_per_pod,
            "max_recv_bytes": self.max_recv_bytes,
            "pool_size": self.pool_size,
            "head_shards": self.head_shards,
            "block_tokens": self.block_tokens,
            "chunks": self.chunks,
            "slack": match self.slack {
                Slack::UNBOUNDED => json!("inf"),
                slack => json!(slack.ppm() as f64 / 1e6),
            },
            "q_heads": self.q_heads,
            "kv_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "v_head_dim": self.v_head_dim.unwrap_or(self.head_dim),
            "mask": self.mask.to_string(),
            "layout": self.layout.to_string(),
            "kv": self.kv.to_string(),
            "kv_route": self.kv_route.to_string(),
            "tiles": self.tiles.to_string(),
            "vrsp": self.vrsp.to_string(),
            "elastic": self.elastic.most(),
            "ga_order": self.ga_order.to_string(),
            "placement": self.placement.to_string(),
            "proxy": self.proxy.to_string(),
            "costs": self.costs,
            "speeds": self.speeds,
        })
    }

    /// The settings in one line under 100 characters.
    pub(crate) fn line(&self) -> String {
        let count = |number: u64| format_count(number);
        let width = match self.v_head_dim {
            Some(v) => format!("{}/{v}", self.head_dim),
            None => self.head_dim.to_string(),
        };
        format!(
            "L={} GBS={} DP={} CP={}  P={} H={} B={} M={}  slack {}  heads {}/{}x{width} {}",
            count(self.tokens),
            self.gbs,
            self.dp,
            self.cp,
            self.pool_size,
            self.head_shards,
            count(self.block_tokens.into()),
            self.chunks,
            self.slack,
            self.q_heads,
            self.kv_heads,
            self.mask,
        )
    }
}

/// A command line that a shell reads as `words`.
pub(crate) fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words = words.into_iter().map(|word| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
