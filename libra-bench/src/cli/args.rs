//! Flags by group. What is not given comes from the preset.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use libra_sched::vrsp::{Elastic, GaOrder, Vrsp};
use libra_sched::{BackwardMode, KvFetch, LayoutKind, Mask, Slack, Tiling};

use super::simulate::{Methods, executed_methods};
use super::values::{
    Backend, Dtype, Pack, Placement, ProxyKind, Route, backward_modes, count, count_u32, elastics,
    excess, figures, ga_orders, kv_fetches, layouts, positive_count, seconds, tilings, vrsps,
};
use crate::preset::Preset;
use crate::workload::{Distribution, IdxSamples, Order};

/// Which lengths, and how they are packed.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Workload")]
pub(crate) struct WorkloadArgs {
    /// Sample lengths: .txt, .npy, .csv, .jsonl, .idx, .parquet, .arrow or .feather files in order, the first five also
    /// .gz or .zst, or the bundled corpus `linux-6.1`
    #[arg(value_name = "LENGTHS", conflicts_with = "dist")]
    pub(crate) lengths: Vec<String>,
    /// Values for all flags that are not given
    #[arg(long, value_enum, default_value_t)]
    pub(crate) preset: Preset,
    /// Draw lengths instead: calibrated-256k, calibrated-1m, magi-attention, lognormal:MEDIAN,SIGMA[,SHARE,FROM],
    /// pareto:MIN,ALPHA or histogram:FILE[,uniform]
    #[arg(long, value_name = "DIST")]
    pub(crate) dist: Option<Distribution>,
    /// Seed of drawn lengths, of their order and of the values that are executed [default: 7]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) seed: Option<u64>,
    /// Column of a table, or field of a .jsonl [default: length, tokens, or the only one]
    #[arg(long, value_name = "NAME", conflicts_with = "dist")]
    pub(crate) column: Option<String>,
    /// The numbers are running sums of lengths
    #[arg(long, conflicts_with = "dist")]
    pub(crate) cumulative: bool,
    /// What a sample of a Megatron .idx is: documents, or sequences [default: documents]
    #[arg(long, value_name = "SAMPLES", conflicts_with = "dist")]
    pub(crate) idx: Option<IdxSamples>,
    /// Order of the samples: as-is, windowed:N (drawn from a buffer of N) or shuffled
    #[arg(long, value_name = "ORDER", default_value_t)]
    pub(crate) order: Order,
    /// Tokens of a packed sequence, L
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) tokens: Option<u64>,
    /// Packed sequences of a window: the global batch size
    #[arg(long, value_name = "N", value_parser = count_u32)]
    pub(crate) gbs: Option<u32>,
    /// How samples become packed sequences
    #[arg(long, value_enum)]
    pub(crate) pack: Option<Pack>,
    /// Fill an incomplete last window with empty sequences
    #[arg(long)]
    pub(crate) fill_last: bool,
    /// Windows to pass over
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count)]
    pub(crate) skip_windows: u64,
}

/// How many windows.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Workload")]
pub(crate) struct WindowArgs {
    /// Most windows to take [default: 1; corpus: all of a file]
    #[arg(long, value_name = "N", value_parser = positive_count)]
    pub(crate) windows: Option<u64>,
}

/// What to say about a corpus.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CorpusArgs {
    /// Name the pool size that random order asks for at this excess of the heaviest pool; repeatable
    /// [default: 0.5, 0.2, 0.1 and 0.05]
    #[arg(long, value_name = "R-1", value_parser = excess, help_heading = "Output")]
    pub(crate) excess: Vec<f64>,
}

/// The machines.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Data-parallel replicas, DP
    #[arg(long, value_name = "N", value_parser = count_u32)]
    pub(crate) dp: Option<u32>,
    /// Workers that share a sequence, CP
    #[arg(long, value_name = "N", value_parser = count_u32)]
    pub(crate) cp: Option<u32>,
    /// Pipeline stages, PP: what a good GA order is depends on there being more than one
    #[arg(long, value_name = "N", value_parser = count_u32)]
    pub(crate) pp: Option<u32>,
    /// Workers of a node
    #[arg(long, value_name = "N", value_parser = count_u32)]
    pub(crate) gpus_per_node: Option<u32>,
    /// Nodes of a pod: runs leave it last, and bytes between pods are counted [default: all]
    #[arg(long, value_name = "N", value_parser = count_u32)]
    pub(crate) nodes_per_pod: Option<u32>,
    /// Most bytes of Q, K and V that a worker may receive forward [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = count)]
    pub(crate) max_recv_bytes: Option<u64>,
}

/// How a pool is planned.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Plan")]
pub(crate) struct PlanArgs {
    /// Packed sequences of a pool, P
    #[arg(short = 'P', long, value_name = "P", value_parser = count_u32)]
    pub(crate) pool_size: Option<u32>,
    /// Head shards, H
    #[arg(short = 'H', long, value_name = "H", value_parser = count_u32)]
    pub(crate) head_shards: Option<u32>,
    /// Tokens of a block, B
    #[arg(short = 'B', long, value_name = "B", value_parser = count_u32)]
    pub(crate) block: Option<u32>,
    /// Pipeline chunks of a shard, M
    #[arg(short = 'M', long, value_name = "M", value_parser = count_u32)]
    pub(crate) chunks: Option<u32>,
    /// How far above the mean a worker may go, τ
    #[arg(long, value_name = "TAU")]
    pub(crate) slack: Option<Slack>,
    /// Query heads
    #[arg(long, value_name = "N", value_parser = count_u32)]
    pub(crate) q_heads: Option<u32>,
    /// KV heads
    #[arg(long, value_name = "N", value_parser = count_u32)]
    pub(crate) kv_heads: Option<u32>,
    /// Width of a head
    #[arg(long, value_name = "N", value_parser = count_u32)]
    pub(crate) head_dim: Option<u32>,
    /// Width of a V or O head [default: that of a head]
    #[arg(long, value_name = "N", value_parser = count_u32)]
    pub(crate) v_head_dim: Option<u32>,
    /// Which keys of its sample a query reads: causal, full, causal+S, window:W, window:W,sinks:S, two-sided:L,R,
    /// chunked:C, block:B,local:N, block:B,local:N,sinks:S, prefix:P or keys:A..B
    #[arg(long, value_name = "MASK")]
    pub(crate) mask: Option<Mask>,
    /// Which worker holds which tokens
    #[arg(long, value_parser = layouts())]
    pub(crate) layout: Option<LayoutKind>,
    /// How much of a sample's K and V a destination fetches: all, or what its tiles read [default: whole]
    #[arg(long, value_parser = kv_fetches())]
    pub(crate) kv: Option<KvFetch>,
    /// Which way K and V take [default: direct]
    #[arg(long, value_enum)]
    pub(crate) kv_route: Option<Route>,
    /// Whether blocks stay as they are cut, or are split where heavy and merged at home [default: fixed]
    #[arg(long, value_parser = tilings())]
    pub(crate) tiles: Option<Tiling>,
    /// Who groups sequences into pools
    #[arg(long, value_parser = vrsps())]
    pub(crate) vrsp: Option<Vrsp>,
    /// Larger pools where P cannot balance a window: up to this many times P
    #[arg(long, value_parser = elastics())]
    pub(crate) elastic: Option<Elastic>,
    /// Which pools run at one gradient-accumulation index
    #[arg(long, value_parser = ga_orders())]
    pub(crate) ga_order: Option<GaOrder>,
    /// Who places tiles on workers
    #[arg(long, value_enum)]
    pub(crate) placement: Option<Placement>,
    /// Measured times of attention, in JSON: tiles are placed by time instead of work
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<String>,
    /// Speeds of workers where they differ, 1 for the nominal: WORKER=SPEED,... or a file with one a line
    #[arg(long, value_name = "SPEEDS")]
    pub(crate) speeds: Option<String>,
    /// What VRSP takes for the work of a sequence: squares, pairs, or the pairs of sparse attention, moba:B,top:K or
    /// nsa:L,stride:D,block:B,top:N,window:W
    #[arg(long, value_name = "PROXY")]
    pub(crate) proxy: Option<ProxyKind>,
}

/// Which figures, and where to.
#[derive(Clone, Debug, Args)]
pub(crate) struct FiguresArgs {
    /// Directory for one .svg and one .csv a figure and cluster, made if need be
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: PathBuf,
    /// Only these figures [default: all]
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = figures())]
    pub(crate) only: Vec<String>,
    /// Windows of each corpus [default: 64 for figures 4 and 8, 15 for 14, 1 to 4 for others]
    #[arg(long, value_name = "N", value_parser = positive_count, help_heading = "Workload")]
    pub(crate) windows: Option<u64>,
    /// Seed of drawn lengths and orders
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = count, help_heading = "Workload")]
    pub(crate) seed: u64,
    /// What times are simulated on: h200, h200-nvl64, h100 or a cluster file in TOML
    #[arg(
        long,
        value_name = "CLUSTER",
        default_value = "h200-nvl64",
        help_heading = "Cluster"
    )]
    pub(crate) cluster: String,
    /// Likewise, once more for the figures that the size of nodes decides: 12, 15 and 16
    #[arg(
        long,
        value_name = "CLUSTER",
        default_value = "h200",
        help_heading = "Cluster"
    )]
    pub(crate) beside: String,
    /// Simulate small sequences and windows: for tests
    #[arg(long, hide = true)]
    pub(crate) small: bool,
}

/// From which files, and where to.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReportArgs {
    /// The files
    #[arg(value_name = "JSON", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// What is executed, and how often.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Measure")]
pub(crate) struct MeasureArgs {
    /// Where attention is executed
    #[arg(long, value_enum, default_value = "cpu")]
    pub(crate) backend: Backend,
    /// Which pool of the window
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = count_u32)]
    pub(crate) pool: u32,
    /// Divide lengths, L, B and the tokens of a mask by N
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) scale: u32,
    /// Methods to execute, with commas between them, or all; libra is placed as the flags above say
    #[arg(long, value_name = "METHODS", default_value = "ulysses,libra", value_parser = executed_methods)]
    pub(crate) method: Methods,
    /// Element type
    #[arg(long, value_enum, default_value = "f32")]
    pub(crate) dtype: Dtype,
    /// What stays with a worker from forward to backward
    #[arg(long, default_value = "recompute", value_parser = backward_modes())]
    pub(crate) backward: BackwardMode,
    /// Runs to measure [default: 3; 1 with f64]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: Option<u32>,
    /// Runs before those [default: 1; 0 with f64]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub(crate) warmup: Option<u32>,
    /// Longest wait for a peer
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Write the last run's timeline, as Chrome trace events
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) trace: Option<PathBuf>,
}

impl MeasureArgs {
    /// Runs to measure and runs before those, unless asked for others. The reference kernel is slow and its results do
    /// not need a second look.
    pub(crate) fn usual(dtype: Dtype) -> (u32, u32) {
        match dtype {
            Dtype::F64 => (1, 0),
            Dtype::F32 => (3, 1),
        }
    }

    /// Runs to measure.
    pub(crate) fn runs(&self) -> u32 {
        self.runs.unwrap_or(Self::usual(self.dtype).0)
    }

    /// Runs before those.
    pub(crate) fn warmup(&self) -> u32 {
        self.warmup.unwrap_or(Self::usual(self.dtype).1)
    }
}
