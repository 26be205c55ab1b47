//! Presets, and what a command line makes of them.

mod shapes;
mod words;

use clap::ValueEnum;
use libra_sched::vrsp::{Elastic, GaOrder, Vrsp};
use libra_sched::{KvFetch, LayoutKind, Mask, Slack, Tiling};

pub(crate) use shapes::Shapes;
pub(crate) use words::command_line;

use crate::cli::{ClusterArgs, Pack, Placement, PlanArgs, ProxyKind, Route, WorkloadArgs};

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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{format_count, parse_count};

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
