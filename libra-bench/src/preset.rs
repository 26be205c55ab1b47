//! Presets, what a command line makes of them, and the command line that makes the same again.

use clap::ValueEnum;
use libra_sched::vrsp::{Elastic, GaOrder, Vrsp};
use libra_sched::{
    CostTable, ElementBytes, Error, HeadSplit, KvFetch, KvRoute, LayoutKind, Mask, Measured,
    Placer, PlanConfig, Proxy, Slack, Speeds, Tiling, TokenLayout, Topology, WindowShape,
};
use serde_json::{Value, json};

use crate::cli::{ClusterArgs, Pack, Placement, PlanArgs, ProxyKind, Route, WorkloadArgs};
use crate::failure::Failure;
use crate::measured;
use crate::units::format_count;

/// Values for all flags, named by intent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// 256K tokens, GBS 128, DP 16, CP 8, P 8: runs, ranges, one copy a node
    #[default]
    #[value(name = "256k")]
    Runs256K,
    /// 1M tokens, GBS 32, DP 16, CP 16, P 8: likewise
    #[value(name = "1m")]
    Runs1M,
    /// The window of `256k`, placed by Algorithm 2 in the paper's blocks
    #[value(name = "paper-256k")]
    Paper256K,
    /// The window of `1m`, likewise
    #[value(name = "paper-1m")]
    Paper1M,
    /// The smallest numbers that reach every branch
    Tiny,
}

impl Preset {
    /// Its name on the command line.
    fn name(self) -> String {
        let value = self.to_possible_value().expect("no preset is skipped");
        value.get_name().to_owned()
    }

    /// Its values.
    pub(crate) fn settings(self) -> Settings {
        let paper = Settings {
            preset: self,
            seed: 7,
            tokens: 256 << 10,
            gbs: 128,
            pack: Pack::Concat,
            fill_last: false,
            skip_windows: 0,
            dp: 16,
            cp: 8,
            pp: 1,
            gpus_per_node: 8,
            nodes_per_pod: None,
            max_recv_bytes: None,
            pool_size: 8,
            head_shards: 2,
            block_tokens: 4096,
            chunks: 4,
            slack: Slack::PAPER,
            q_heads: 32,
            kv_heads: 8,
            head_dim: 128,
            v_head_dim: None,
            mask: Mask::Causal,
            layout: LayoutKind::Contiguous,
            kv: KvFetch::Whole,
            kv_route: Route::Direct,
            tiles: Tiling::Fixed,
            vrsp: Vrsp::default(),
            elastic: Elastic::default(),
            ga_order: GaOrder::default(),
            placement: Placement::Paper,
            proxy: ProxyKind::Pairs,
            costs: None,
            speeds: None,
        };
        let paper_1m = Settings {
            tokens: 1 << 20,
            gbs: 32,
            cp: 16,
            block_tokens: 8192,
            ..paper.clone()
        };
        // Beyond the paper; blocks do not matter to runs, and a run reads the keys of a whole shard.
        let runs = |paper: Settings| Settings {
            head_shards: paper.kv_heads,
            kv: KvFetch::Range,
            kv_route: Route::Node,
            placement: Placement::Export,
            ..paper
        };
        match self {
            Self::Paper256K => paper,
            Self::Paper1M => paper_1m,
            Self::Runs256K => runs(paper),
            Self::Runs1M => runs(paper_1m),
            // Two pools an index, two indices, two KV heads a shard's worth of queries each, two
            // chunks, and blocks that cut samples.
            Self::Tiny => Settings {
                tokens: 64,
                gbs: 8,
                dp: 4,
                cp: 2,
                gpus_per_node: 2,
                pool_size: 2,
                block_tokens: 8,
                chunks: 2,
                q_heads: 4,
                kv_heads: 2,
                head_dim: 8,
                ..paper
            },
        }
    }
}

/// Everything that decides a plan, beside the lengths.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // The names are those of the flags.
pub(crate) struct Settings {
    pub(crate) preset: Preset,
    pub(crate) seed: u64,
    pub(crate) tokens: u64,
    pub(crate) gbs: u32,
    pub(crate) pack: Pack,
    pub(crate) fill_last: bool,
    pub(crate) skip_windows: u64,
    pub(crate) dp: u32,
    pub(crate) cp: u32,
    pub(crate) pp: u32,
    pub(crate) gpus_per_node: u32,
    pub(crate) nodes_per_pod: Option<u32>,
    pub(crate) max_recv_bytes: Option<u64>,
    pub(crate) pool_size: u32,
    pub(crate) head_shards: u32,
    pub(crate) block_tokens: u32,
    pub(crate) chunks: u32,
    pub(crate) slack: Slack,
    pub(crate) q_heads: u32,
    pub(crate) kv_heads: u32,
    pub(crate) head_dim: u32,
    pub(crate) v_head_dim: Option<u32>,
    pub(crate) mask: Mask,
    pub(crate) layout: LayoutKind,
    /// How much of a KV group is fetched.
    pub(crate) kv: KvFetch,
    pub(crate) kv_route: Route,
    /// Whether blocks stay as they are cut.
    pub(crate) tiles: Tiling,
    pub(crate) vrsp: Vrsp,
    pub(crate) elastic: Elastic,
    pub(crate) ga_order: GaOrder,
    pub(crate) placement: Placement,
    pub(crate) proxy: ProxyKind,
    pub(crate) costs: Option<String>,
    pub(crate) speeds: Option<String>,
}

/// The scheduler's shapes of a window, checked.
#[derive(Clone, Debug)]
pub(crate) struct Shapes {
    /// DP, CP, P.
    pub(crate) window: WindowShape,
    /// Heads, shards, chunks.
    pub(crate) heads: HeadSplit,
    /// Home of every token of a pool of P.
    pub(crate) layout: TokenLayout,
    /// How tokens are laid out.
    pub(crate) layout_kind: LayoutKind,
    /// Mask, blocks, placer.
    pub(crate) plan: PlanConfig,
    /// Nodes.
    pub(crate) topology: Topology,
    /// What VRSP balances.
    pub(crate) proxy: Proxy,
    /// Who fills pools.
    pub(crate) vrsp: Vrsp,
    /// Measured times.
    pub(crate) costs: Option<CostTable>,
    /// Speeds of the workers of a pool of P.
    pub(crate) speeds: Option<Speeds>,
    /// How far pools may grow.
    pub(crate) elastic: Elastic,
    /// Which pools run side by side.
    pub(crate) ga_order: GaOrder,
    /// Pipeline stages.
    pub(crate) pp: u32,
}

impl Shapes {
    /// What was measured; speeds are those of the pool at hand.
    pub(crate) fn measured<'a>(&'a self, speeds: Option<&'a Speeds>) -> Measured<'a> {
        Measured {
            costs: self.costs.as_ref(),
            speeds,
        }
    }

    /// Speeds of the workers of a pool of `slots` sequences: a merged pool runs where several of P
    /// would, each with the same.
    pub(crate) fn speeds_of(&self, slots: usize) -> Option<Speeds> {
        let of_p = self.speeds.as_ref()?.as_slice();
        let workers = slots * self.window.cp() as usize;
        Some(Speeds::new(
            of_p.iter().copied().cycle().take(workers).collect(),
        ))
    }

    /// Home of every token of a pool of `slots` sequences.
    pub(crate) fn layout_of(&self, slots: usize) -> Result<TokenLayout, Error> {
        if slots == self.layout.slots() as usize {
            return Ok(self.layout.clone());
        }
        let (tokens, cp) = (self.window.seq_tokens(), self.window.cp());
        TokenLayout::new(self.layout_kind, slots as u32, tokens, cp)
    }
}

impl Settings {
    /// The preset of `workload`, and what the command line says instead.
    pub(crate) fn new(workload: &WorkloadArgs, cluster: &ClusterArgs, plan: &PlanArgs) -> Self {
        let preset = workload.preset.settings();
        Self {
            preset: workload.preset,
            seed: workload.seed.unwrap_or(preset.seed),
            tokens: workload.tokens.unwrap_or(preset.tokens),
            gbs: workload.gbs.unwrap_or(preset.gbs),
            pack: workload.pack.unwrap_or(preset.pack),
            fill_last: workload.fill_last,
            skip_windows: workload.skip_windows,
            dp: cluster.dp.unwrap_or(preset.dp),
            cp: cluster.cp.unwrap_or(preset.cp),
            pp: cluster.pp.unwrap_or(preset.pp),
            gpus_per_node: cluster.gpus_per_node.unwrap_or(preset.gpus_per_node),
            nodes_per_pod: cluster.nodes_per_pod,
            max_recv_bytes: cluster.max_recv_bytes,
            pool_size: plan.pool_size.unwrap_or(preset.pool_size),
            head_shards: plan.head_shards.unwrap_or_else(|| match preset.placement {
                // A run reads the keys of a whole shard: one KV head each.
                Placement::Export => plan.kv_heads.unwrap_or(preset.kv_heads),
                _ => preset.head_shards,
            }),
            block_tokens: plan.block.unwrap_or(preset.block_tokens),
            chunks: plan.chunks.unwrap_or(preset.chunks),
            slack: plan.slack.unwrap_or(preset.slack),
            q_heads: plan.q_heads.unwrap_or(preset.q_heads),
            kv_heads: plan.kv_heads.unwrap_or(preset.kv_heads),
            head_dim: plan.head_dim.unwrap_or(preset.head_dim),
            v_head_dim: plan.v_head_dim,
            mask: plan.mask.unwrap_or(preset.mask),
            layout: plan.layout.unwrap_or(preset.layout),
            kv: plan.kv.unwrap_or(preset.kv),
            kv_route: plan.kv_route.unwrap_or(preset.kv_route),
            tiles: plan.tiles.unwrap_or(preset.tiles),
            vrsp: plan.vrsp.unwrap_or(preset.vrsp),
            elastic: plan.elastic.unwrap_or(preset.elastic),
            ga_order: plan.ga_order.unwrap_or(preset.ga_order),
            placement: plan.placement.unwrap_or_else(|| {
                // Adaptive tiles are for placers of tiles.
                let tiles = plan.tiles == Some(Tiling::Adaptive);
                if tiles && preset.placement == Placement::Export {
                    Placement::Paper
                } else {
                    preset.placement
                }
            }),
            proxy: plan.proxy.unwrap_or(preset.proxy),
            costs: plan.costs.clone(),
            speeds: plan.speeds.clone(),
        }
    }

    /// Checks what must go together, and reads what was measured.
    pub(crate) fn shapes(&self) -> Result<Shapes, Failure> {
        let window = WindowShape::new(self.tokens, self.gbs, self.dp, self.cp, self.pool_size)?;
        let heads = HeadSplit::new(
            self.q_heads,
            self.kv_heads,
            self.head_dim,
            self.v_head_dim.unwrap_or(self.head_dim),
            self.head_shards,
            self.chunks,
        )?;
        if self.block_tokens == 0 {
            let name = "block tokens";
            return Err(Error::Zero { name }.into());
        }
        if self.pp == 0 {
            return Err(Error::Zero { name: "PP" }.into());
        }
        if self.elastic != Elastic::OFF && self.vrsp != Vrsp::Certified {
            let refused = Error::UnknownName {
                what: "vrsp algorithm of elastic pools",
                value: self.vrsp.to_string(),
                legal: "certified",
            };
            return Err(refused.into());
        }
        let (slots, cp) = (window.pool_size(), window.cp());
        let nodes = Topology::new(self.gpus_per_node)?;
        let topology = self
            .nodes_per_pod
            .map_or(Ok(nodes), |pod| nodes.with_pods(pod))?;
        Ok(Shapes {
            layout_kind: self.layout,
            layout: TokenLayout::new(self.layout, slots, window.seq_tokens(), cp)?,
            window,
            heads,
            plan: PlanConfig {
                mask: self.mask,
                block_tokens: self.block_tokens,
                tiling: self.tiles,
                placer: match self.placement {
                    Placement::Home => Placer::Home,
                    Placement::Paper => Placer::Paper(self.slack),
                    Placement::HeadShard => Placer::HeadShard,
                    Placement::Export => Placer::Export(self.slack, topology),
                },
                kv_fetch: self.kv,
                kv_route: match self.kv_route {
                    Route::Direct => KvRoute::Direct,
                    Route::Node => KvRoute::Node(topology),
                },
                bytes: ElementBytes::BF16,
                max_recv_bytes: self.max_recv_bytes,
            },
            topology,
            proxy: match self.proxy {
                ProxyKind::Squares => Proxy::SumSquares,
                ProxyKind::Pairs => Proxy::Pairs(self.mask),
                ProxyKind::Sparse(sparse) if self.mask == Mask::Causal => Proxy::Sparse(sparse),
                ProxyKind::Sparse(_) => {
                    let refused = Error::Combination {
                        what: "mask",
                        value: self.mask.to_string(),
                        with: "sparse attention as the proxy",
                        legal: "causal",
                    };
                    return Err(refused.into());
                }
            },
            vrsp: self.vrsp,
            elastic: self.elastic,
            ga_order: self.ga_order,
            pp: self.pp,
            costs: match &self.costs {
                Some(path) => Some(measured::read_costs(path.as_ref())?),
                None => None,
            },
            speeds: match &self.speeds {
                Some(text) => Some(measured::read_speeds(text, window.workers())?),
                None => None,
            },
        })
    }

    /// Sparse attention weighs sequences; `what` needs more than that.
    pub(crate) fn refuse_sparse(&self, what: &'static str) -> Result<(), Error> {
        match self.proxy {
            ProxyKind::Squares | ProxyKind::Pairs => Ok(()),
            ProxyKind::Sparse(sparse) => Err(Error::Combination {
                what: "proxy",
                value: sparse.to_string(),
                with: what,
                legal: "squares, pairs",
            }),
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::parse_count;

    #[test]
    fn every_preset_is_a_legal_shape() {
        for preset in Preset::value_variants() {
            assert!(preset.settings().shapes().is_ok(), "{preset:?}");
            assert!(parse_count(&format_count(preset.settings().tokens)).is_ok());
        }
    }

    #[test]
    fn tiny_reaches_every_branch() {
        let shapes = Preset::Tiny.settings().shapes().expect("legal");
        assert!(shapes.window.pools_per_ga() > 1 && shapes.window.ga() > 1);
        assert!(shapes.window.workers() > shapes.topology.gpus_per_node());
        assert!(shapes.heads.group() > 1 && shapes.heads.chunks() > 1);
        // Several blocks a fragment, several fragments a sequence.
        assert!(shapes.plan.block_tokens * shapes.window.cp() < shapes.window.seq_tokens());
    }

    #[test]
    fn only_what_differs_from_the_preset_is_typed_again() {
        let settings = Settings {
            pool_size: 4,
            fill_last: true,
            v_head_dim: Some(64),
            ..Preset::Tiny.settings()
        };
        let flags = settings.flags();
        assert_eq!(
            flags.join(" "),
            "--preset tiny --fill-last -P 4 --v-head-dim 64"
        );
        assert_eq!(Preset::default().settings().flags(), [""; 0]);
    }

    #[test]
    fn words_that_a_shell_would_change_are_quoted() {
        assert_eq!(
            command_line(["plan", "a b.txt", "it's", "-P", "4"]),
            r"plan 'a b.txt' 'it'\''s' -P 4"
        );
    }
}
