//! Small named pools that several tests plan, damage and print.

use libra_sched::{
    CostTable, ElementBytes, Fragment, HeadSplit, KvFetch, KvRoute, LayoutKind, Mask, Measured,
    PackedLengths, Placer, PlanConfig, PoolPlan, SampleId, Slack, Tiling, TokenLayout, Topology,
    plan::Scratch, plan_pool_measured,
};

/// One pool to plan.
#[derive(Clone, Debug)]
pub struct Case {
    /// Sample lengths.
    pub pool: PackedLengths,
    /// Home of every token and head.
    pub layout: TokenLayout,
    /// Head counts, shards and chunks.
    pub heads: HeadSplit,
    /// How to plan.
    pub config: PlanConfig,
    /// Measured times that decide in the place of work.
    pub costs: Option<CostTable>,
}

impl Case {
    /// The plan of the case.
    ///
    /// # Panics
    /// If the case cannot be planned.
    #[must_use]
    pub fn plan(&self) -> PoolPlan {
        self.plan_with(&mut Scratch::default())
    }

    /// The same, with memory that other plans may have used.
    ///
    /// # Panics
    /// If the case cannot be planned.
    #[must_use]
    pub fn plan_with(&self, scratch: &mut Scratch) -> PoolPlan {
        let Self {
            pool,
            layout,
            heads,
            config,
            costs,
        } = self;
        let measured = Measured {
            costs: costs.as_ref(),
            speeds: None,
        };
        let planned = plan_pool_measured(scratch, pool, layout, heads, config, measured);
        planned.unwrap_or_else(|error| panic!("a case can be planned: {error}"))
    }
}

/// A case with a name; its lengths are `tests/golden/NAME.lengths.txt`.
#[derive(Clone, Debug)]
pub struct Named {
    /// Name in lower case with underscores.
    pub name: &'static str,
    /// The case.
    pub case: Case,
}

/// Every named case.
///
/// # Panics
/// If one of them is not legal.
#[must_use]
pub fn named() -> Vec<Named> {
    vec![
        causal_contiguous(),
        causal_ranges(),
        two_hops(),
        runs_on_nodes(),
        runs_over_nodes(),
        runs_by_costs(),
        adaptive_tiles(),
        window_sinks_ranges(),
        blocks_zigzag_ranges(),
        restricted_keys_ranges(),
        shared_prefix_ranges(),
        shared_prefix_two_hops_adaptive(),
        full_zigzag_shared_kv(),
        tensor_ranks_without_slack(),
        uneven_heads_explicit_fragments(),
        head_shard_uneven_pieces(),
        home_with_padding(),
    ]
}

/// Algorithm 2 with the paper's slack.
const PAPER: Placer = Placer::Paper(Slack::PAPER);

fn config(mask: Mask, block_tokens: u32, placer: Placer, bytes: ElementBytes) -> PlanConfig {
    PlanConfig {
        mask,
        block_tokens,
        placer,
        bytes,
        kv_fetch: KvFetch::Whole,
        kv_route: KvRoute::Direct,
        tiling: Tiling::Fixed,
        max_recv_bytes: None,
    }
}

/// Two sequences, twelve tokens, four workers.
fn causal_contiguous() -> Named {
    let pool = lengths(include_str!("../golden/causal_contiguous.lengths.txt"));
    Named {
        name: "causal_contiguous",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Contiguous, &pool, 2, 1),
            heads: split(2, 2, [4, 4], 2, 1),
            config: PlanConfig::paper(6),
            pool,
        },
    }
}

/// As `causal_contiguous`, but only the keys that are read travel.
fn causal_ranges() -> Named {
    let pool = lengths(include_str!("../golden/causal_ranges.lengths.txt"));
    Named {
        name: "causal_ranges",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Contiguous, &pool, 2, 1),
            heads: split(4, 2, [4, 4], 2, 2),
            config: PlanConfig {
                kv_fetch: KvFetch::Range,
                ..PlanConfig::paper(4)
            },
            pool,
        },
    }
}

/// Two nodes of three: K and V enter the second once, and are forwarded there.
fn two_hops() -> Named {
    let pool = lengths(include_str!("../golden/two_hops.lengths.txt"));
    let nodes = Topology::new(3).expect("three are a node");
    Named {
        name: "two_hops",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Contiguous, &pool, 3, 1),
            heads: split(2, 1, [4, 4], 2, 1),
            config: PlanConfig {
                kv_fetch: KvFetch::Range,
                kv_route: KvRoute::Node(nodes),
                ..PlanConfig::paper(3)
            },
            pool,
        },
    }
}

/// Runs of any length: a long sample over two nodes of three, whose tail stays with the worker
/// before.
fn runs_on_nodes() -> Named {
    let pool = lengths(include_str!("../golden/runs_on_nodes.lengths.txt"));
    let nodes = Topology::new(3).expect("three are a node");
    let slack = Slack::from_ppm(100_000).expect("0.1 is a slack");
    Named {
        name: "runs_on_nodes",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Contiguous, &pool, 3, 1),
            heads: split(4, 2, [4, 4], 2, 2),
            config: PlanConfig {
                placer: Placer::Export(slack, nodes),
                kv_fetch: KvFetch::Range,
                kv_route: KvRoute::Node(nodes),
                ..PlanConfig::paper(1)
            },
            pool,
        },
    }
}

/// As `runs_on_nodes`, where both sequences have two nodes of three: runs of the long sample start
/// in one and end in the other.
fn runs_over_nodes() -> Named {
    let Named { case, .. } = runs_on_nodes();
    let pool = lengths(include_str!("../golden/runs_over_nodes.lengths.txt"));
    Named {
        name: "runs_over_nodes",
        case: Case {
            layout: grid(LayoutKind::Contiguous, &pool, 6, 1),
            pool,
            ..case
        },
    }
}

/// As `runs_on_nodes`, where pairs of short samples take three times as long.
fn runs_by_costs() -> Named {
    let Named { case, .. } = runs_on_nodes();
    let times_ns = [8u32, 32].map(|len| {
        let pairs = f64::from(len * (len + 1) / 2);
        vec![if len == 8 { 3.0 * pairs } else { pairs }]
    });
    let costs = CostTable::new(Mask::Causal, &[8, 32], &[1], &times_ns);
    Named {
        name: "runs_by_costs",
        case: Case {
            costs: Some(costs.expect("a legal table")),
            pool: lengths(include_str!("../golden/runs_by_costs.lengths.txt")),
            ..case
        },
    }
}

/// One long sample whose tiles are split, and short ones whose tiles are merged where they stay.
fn adaptive_tiles() -> Named {
    let pool = lengths(include_str!("../golden/adaptive_tiles.lengths.txt"));
    Named {
        name: "adaptive_tiles",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Contiguous, &pool, 2, 1),
            heads: split(4, 2, [4, 4], 2, 2),
            config: PlanConfig {
                tiling: Tiling::Adaptive,
                ..PlanConfig::paper(4)
            },
            pool,
        },
    }
}

/// Two ranges a sample: its sinks, and what the windows cover.
fn window_sinks_ranges() -> Named {
    let pool = lengths(include_str!("../golden/window_sinks_ranges.lengths.txt"));
    let mask = Mask::window(3, 2).expect("a legal window");
    Named {
        name: "window_sinks_ranges",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Contiguous, &pool, 2, 1),
            heads: split(4, 2, [4, 4], 2, 2),
            config: PlanConfig {
                kv_fetch: KvFetch::Range,
                ..config(mask, 4, PAPER, ElementBytes::BF16)
            },
            pool,
        },
    }
}

/// Two ranges of which one home holds both, with tokens of another home between.
fn blocks_zigzag_ranges() -> Named {
    let pool = lengths(include_str!("../golden/blocks_zigzag_ranges.lengths.txt"));
    let mask = Mask::block_causal(3, 2, 1).expect("a legal block mask");
    Named {
        name: "blocks_zigzag_ranges",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Zigzag, &pool, 2, 1),
            heads: split(4, 2, [4, 4], 2, 1),
            config: PlanConfig {
                kv_fetch: KvFetch::Range,
                ..config(mask, 5, PAPER, ElementBytes::F32)
            },
            pool,
        },
    }
}

/// Tiles that read few keys or none.
fn restricted_keys_ranges() -> Named {
    let pool = lengths(include_str!("../golden/restricted_keys_ranges.lengths.txt"));
    let mask = Mask::restricted(4, 9).expect("five keys");
    Named {
        name: "restricted_keys_ranges",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Contiguous, &pool, 2, 1),
            heads: split(2, 2, [4, 4], 2, 1),
            config: PlanConfig {
                kv_fetch: KvFetch::Range,
                ..config(mask, 4, PAPER, ElementBytes::BF16)
            },
            pool,
        },
    }
}

/// A question with three answers, one of which is asked back, beside a sample of its own; and a
/// chain.
fn shared_prefix_ranges() -> Named {
    let pool = lengths(include_str!("../golden/shared_prefix_ranges.lengths.txt"));
    let parents = [
        None,
        Some(0),
        Some(0),
        Some(2),
        None,
        Some(0),
        None,
        Some(6),
        Some(7),
    ];
    let parents = parents.map(|parent| parent.map(SampleId));
    let pool = pool.with_parents(&parents).expect("parents are earlier");
    Named {
        name: "shared_prefix_ranges",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Contiguous, &pool, 2, 1),
            heads: split(4, 2, [4, 4], 2, 1),
            config: PlanConfig {
                kv_fetch: KvFetch::Range,
                ..PlanConfig::paper(5)
            },
            pool,
        },
    }
}

/// A prefix that enters a node once and is forwarded there, and tiles that are split.
fn shared_prefix_two_hops_adaptive() -> Named {
    let pool = lengths(include_str!(
        "../golden/shared_prefix_two_hops_adaptive.lengths.txt"
    ));
    let parents = [
        None,
        Some(0),
        Some(0),
        Some(2),
        None,
        Some(4),
        None,
        None,
        None,
    ];
    let parents = parents.map(|parent| parent.map(SampleId));
    let pool = pool.with_parents(&parents).expect("parents are earlier");
    let nodes = Topology::new(3).expect("three are a node");
    Named {
        name: "shared_prefix_two_hops_adaptive",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Contiguous, &pool, 2, 1),
            heads: split(4, 1, [4, 4], 2, 2),
            config: PlanConfig {
                kv_fetch: KvFetch::Range,
                kv_route: KvRoute::Node(nodes),
                tiling: Tiling::Adaptive,
                ..PlanConfig::paper(8)
            },
            pool,
        },
    }
}

/// H above h_kv: shards share their KV groups.
fn full_zigzag_shared_kv() -> Named {
    let pool = lengths(include_str!("../golden/full_zigzag_shared_kv.lengths.txt"));
    let slack = Slack::from_ppm(100_000).expect("0.1 is a slack");
    Named {
        name: "full_zigzag_shared_kv",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Zigzag, &pool, 2, 1),
            heads: split(8, 2, [2, 3], 4, 2),
            config: config(Mask::Full, 4, Placer::Paper(slack), ElementBytes::F32),
            pool,
        },
    }
}

/// Two tensor ranks a context rank, and no slack.
fn tensor_ranks_without_slack() -> Named {
    let pool = lengths(include_str!(
        "../golden/tensor_ranks_without_slack.lengths.txt"
    ));
    let slack = Slack::from_ppm(0).expect("0 is a slack");
    let bytes = ElementBytes::BF16;
    Named {
        name: "tensor_ranks_without_slack",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Contiguous, &pool, 2, 2),
            heads: split(8, 4, [4, 4], 4, 2),
            config: config(Mask::Causal, 5, Placer::Paper(slack), bytes),
            pool,
        },
    }
}

/// H and h_kv neither divide each other; fragments of any size, of which one rank holds two.
fn uneven_heads_explicit_fragments() -> Named {
    let pool = lengths(include_str!(
        "../golden/uneven_heads_explicit_fragments.lengths.txt"
    ));
    let fragments = |edges: &[(u32, u32, u32)]| {
        let fragment = |&(start, end, rank): &_| Fragment { start, end, rank };
        edges.iter().map(fragment).collect::<Vec<_>>()
    };
    let slots = vec![
        fragments(&[(0, 5, 1), (5, 7, 0), (7, 16, 2)]),
        fragments(&[(0, 2, 2), (2, 9, 0), (9, 10, 2), (10, 16, 1)]),
    ];
    let layout = TokenLayout::explicit(pool.seq_tokens(), 3, 1, slots);
    let placer = Placer::Paper(Slack::from_ppm(500_000).expect("0.5 is a slack"));
    Named {
        name: "uneven_heads_explicit_fragments",
        case: Case {
            costs: None,
            layout: layout.expect("the fragments cover their slots"),
            heads: split(12, 6, [2, 2], 4, 3),
            config: config(Mask::Causal, 7, placer, ElementBytes::F64),
            pool,
        },
    }
}

/// Ulysses, with tokens that no rank count divides.
fn head_shard_uneven_pieces() -> Named {
    let pool = lengths(include_str!(
        "../golden/head_shard_uneven_pieces.lengths.txt"
    ));
    let bytes = ElementBytes::BF16;
    Named {
        name: "head_shard_uneven_pieces",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Zigzag, &pool, 2, 1),
            heads: split(4, 2, [3, 1], 2, 2),
            config: config(Mask::Causal, 8, Placer::HeadShard, bytes),
            pool,
        },
    }
}

/// Nothing is placed, yet keys move; one sequence is padding only.
fn home_with_padding() -> Named {
    let pool = lengths(include_str!("../golden/home_with_padding.lengths.txt"));
    let bytes = ElementBytes::BF16;
    Named {
        name: "home_with_padding",
        case: Case {
            costs: None,
            layout: grid(LayoutKind::Contiguous, &pool, 3, 1),
            heads: split(2, 1, [4, 4], 2, 1),
            config: config(Mask::Full, 4, Placer::Home, bytes),
            pool,
        },
    }
}

fn grid(kind: LayoutKind, pool: &PackedLengths, ranks: u32, tensor: u32) -> TokenLayout {
    let slots = pool.sequences() as u32;
    TokenLayout::grid(kind, slots, pool.seq_tokens(), ranks, tensor).expect("the grid is small")
}

fn split(q_heads: u32, kv_heads: u32, dims: [u32; 2], shards: u32, chunks: u32) -> HeadSplit {
    let [dim_qk, dim_v] = dims;
    HeadSplit::new(q_heads, kv_heads, dim_qk, dim_v, shards, chunks).expect("the heads divide")
}

/// Lengths as text: `seq_tokens N`, then one line a sequence, `-` for one of padding only.
///
/// # Panics
/// If the text is none.
#[must_use]
pub fn lengths(text: &str) -> PackedLengths {
    let mut lines = text.lines();
    let number = |word: &str| word.parse::<u64>().unwrap_or_else(|_| panic!("{word:?}"));
    let first = lines
        .next()
        .and_then(|line| line.strip_prefix("seq_tokens "));
    let seq_tokens = number(first.expect("the first line gives seq_tokens"));
    let sequences = lines.map(|line| {
        let words = line.split_whitespace().filter(|word| *word != "-");
        words.map(number).collect::<Vec<_>>()
    });
    PackedLengths::new(seq_tokens, sequences).expect("the lengths fit their sequences")
}
