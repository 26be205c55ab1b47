//! Random pools, layouts, head splits and configurations: small, and of every kind.

use libra_sched::error::divisors;
use libra_sched::{
    ElementBytes, Fragment, HeadSplit, KvFetch, KvRoute, LayoutKind, Mask, PackedLengths, Placer,
    PlanConfig, PoolPlan, SampleId, ShTile, Slack, TileSet, Tiling, TokenLayout, Topology,
    plan_pool, tiles,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// One pool to plan.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) pool: PackedLengths,
    pub(crate) layout: TokenLayout,
    pub(crate) heads: HeadSplit,
    pub(crate) config: PlanConfig,
}

impl Case {
    pub(crate) fn plan(&self) -> PoolPlan {
        plan_pool(&self.pool, &self.layout, &self.heads, &self.config).unwrap()
    }

    pub(crate) fn tiles(&self) -> Vec<ShTile> {
        self.tiles_of(self.config.block_tokens)
    }

    pub(crate) fn tiles_of(&self, block_tokens: u32) -> Vec<ShTile> {
        let mask = self.config.mask;
        let cut = tiles::cut(&self.pool, &self.layout, &self.heads, mask, block_tokens);
        cut.unwrap().into_vec()
    }

    /// Any tiles of this pool as a set.
    pub(crate) fn set(&self, tiles: &[ShTile]) -> TileSet {
        TileSet::new(&self.pool, &self.layout, &self.heads, tiles.to_vec()).unwrap()
    }

    pub(crate) fn slots(&self) -> std::ops::Range<usize> {
        0..self.pool.sequences()
    }
}

pub(crate) fn runs(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// A number of tokens of a mask: about as many as a sample has, or more than any has.
fn mask_number() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1u32..=12, 4 => 1u32..=90, 1 => Just(u32::MAX)]
}

/// Every kind of mask, with numbers below, at and beyond the lengths of samples.
pub(crate) fn masks() -> impl Strategy<Value = Mask> {
    let number = mask_number;
    let few = || prop_oneof![3 => 1u32..4, 1 => mask_number()];
    let or_none = |some| prop_oneof![1 => Just(0u32), 3 => some];
    prop_oneof![
        3 => Just(Mask::Causal),
        2 => Just(Mask::Full),
        1 => number().prop_map(|offset| Mask::causal_with_offset(offset).unwrap()),
        2 => (number(), or_none(number().boxed()))
            .prop_map(|(window, sinks)| Mask::window(window, sinks).unwrap()),
        5 => (1u32..4, 1u32..4).prop_map(|(window, sinks)| Mask::window(window, sinks).unwrap()),
        1 => (or_none(number().boxed()), or_none(number().boxed()))
            .prop_map(|(left, right)| Mask::two_sided(left, right)),
        1 => number().prop_map(|chunk| Mask::chunked(chunk).unwrap()),
        2 => (number(), few(), or_none(few().boxed()))
            .prop_map(|(block, local, sinks)| Mask::block_causal(block, local, sinks).unwrap()),
        1 => number().prop_map(|prefix| Mask::prefix(prefix).unwrap()),
        1 => (0u32..60, number())
            .prop_map(|(start, keys)| Mask::restricted(start, start.saturating_add(keys)).unwrap()),
    ]
}

/// Sample lengths of one sequence of `seq_tokens`: none, some with padding, or a full one.
pub(crate) fn sequence(seq_tokens: u32) -> impl Strategy<Value = Vec<u32>> {
    let longest = prop_oneof![Just(3u32), Just(seq_tokens.div_ceil(3)), Just(seq_tokens)];
    let raw = longest.prop_flat_map(|longest| prop::collection::vec(1..=longest, 0..12));
    (raw, any::<bool>()).prop_map(move |(raw, fill)| {
        let mut left = seq_tokens;
        let mut lengths = Vec::new();
        for length in raw {
            if length <= left {
                lengths.push(length);
                left -= length;
            }
        }
        if fill && left > 0 {
            lengths.push(left);
        }
        lengths
    })
}

/// `pool` where some samples continue earlier ones: by each draw the sample, and its parent.
pub(crate) fn with_parents(pool: PackedLengths, draws: &[(Index, Index)]) -> PackedLengths {
    let mut parents = vec![None; pool.samples()];
    for (sample, parent) in draws.iter().filter(|_| pool.samples() > 0) {
        let sample = sample.index(pool.samples());
        let sequence = (0..pool.sequences()).find(|&s| pool.samples_of(s).contains(&sample));
        let first = pool.samples_of(sequence.unwrap()).start;
        if sample > first {
            parents[sample] = Some(SampleId::new(first + parent.index(sample - first)));
        }
    }
    pool.with_parents(&parents).unwrap()
}

/// No parents, or some.
fn parents() -> impl Strategy<Value = Vec<(Index, Index)>> {
    prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(any::<(Index, Index)>(), 1..12)]
}

pub(crate) fn pools(slots: u32, seq_tokens: u32) -> impl Strategy<Value = PackedLengths> {
    prop::collection::vec(sequence(seq_tokens), slots as usize)
        .prop_map(move |lists| PackedLengths::new(seq_tokens.into(), lists).unwrap())
}

/// Every relation of H to h_kv: dividing it, divided by it, equal, neither.
pub(crate) fn heads() -> impl Strategy<Value = HeadSplit> {
    let counts = (1u32..=6, 1u32..=4, any::<Index>(), any::<Index>());
    (counts, 1u32..=5, 1u32..=5).prop_map(|((kv_heads, group, shards, chunks), dim_qk, dim_v)| {
        let q_heads = kv_heads * group;
        let pick = |whole: u32, index: Index| *index.get(&divisors(whole.into())) as u32;
        let shards = pick(q_heads, shards);
        let chunks = pick(q_heads / shards, chunks);
        HeadSplit::new(q_heads, kv_heads, dim_qk, dim_v, shards, chunks).unwrap()
    })
}

/// Tensor ranks that divide both H and h_kv.
fn tensor_ranks(heads: &HeadSplit) -> impl Strategy<Value = u32> + use<> {
    let legal: Vec<u32> = (1..=3)
        .filter(|&t| heads.shards().is_multiple_of(t) && heads.kv_heads().is_multiple_of(t))
        .collect();
    select(legal)
}

pub(crate) fn layouts(
    slots: u32,
    seq_tokens: u32,
    ranks: u32,
    tensor: u32,
) -> impl Strategy<Value = TokenLayout> {
    let grid = move |kind| TokenLayout::grid(kind, slots, seq_tokens, ranks, tensor).unwrap();
    prop_oneof![
        Just(grid(LayoutKind::Contiguous)),
        Just(grid(LayoutKind::Zigzag)),
        prop::collection::vec(fragments(seq_tokens, ranks), slots as usize).prop_map(
            move |slots| TokenLayout::explicit(seq_tokens, ranks, tensor, slots).unwrap()
        ),
    ]
}

/// Random cuts held by random ranks.
fn fragments(seq_tokens: u32, ranks: u32) -> impl Strategy<Value = Vec<Fragment>> {
    let cuts = prop::collection::btree_set(0..seq_tokens, 0..6);
    (cuts, prop::collection::vec(0..ranks, 8)).prop_map(move |(mut cuts, holders)| {
        cuts.insert(0);
        let mut edges: Vec<u32> = cuts.into_iter().collect();
        edges.push(seq_tokens);
        edges
            .windows(2)
            .zip(holders)
            .map(|(edge, rank)| Fragment {
                start: edge[0],
                end: edge[1],
                rank,
            })
            .collect()
    })
}

pub(crate) fn slacks() -> impl Strategy<Value = Slack> {
    prop_oneof![
        Just(Slack::from_ppm(0).unwrap()),
        Just(Slack::PAPER),
        Just(Slack::UNBOUNDED),
        (0u32..3_000_000).prop_map(|ppm| Slack::from_ppm(ppm).unwrap()),
    ]
}

pub(crate) fn element_bytes() -> impl Strategy<Value = ElementBytes> {
    let free = (0u32..4, 0u32..9).prop_map(|(activation, statistic)| ElementBytes {
        activation,
        statistic,
    });
    prop_oneof![
        Just(ElementBytes::BF16),
        Just(ElementBytes::F32),
        Just(ElementBytes::F64),
        free
    ]
}

/// Slots and context ranks; one in four pools has more workers than a 64-bit word has bits.
fn grids() -> impl Strategy<Value = (u32, u32)> {
    prop_oneof![
        3 => (1u32..=4, 1u32..=4),
        1 => (10u32..=13, 8u32..=10),
    ]
}

/// Pools placed by Algorithm 2.
pub(crate) fn paper_cases() -> impl Strategy<Value = Case> {
    (grids(), 1u32..=72, heads())
        .prop_flat_map(|((slots, ranks), seq_tokens, heads)| {
            let tensor = tensor_ranks(&heads);
            (Just((slots, ranks, seq_tokens, heads)), tensor)
        })
        .prop_flat_map(|((slots, ranks, seq_tokens, heads), tensor)| {
            (
                pools(slots, seq_tokens),
                layouts(slots, seq_tokens, ranks, tensor),
                Just(heads),
                (masks(), 1u32..=24, slacks(), element_bytes()),
                parents(),
            )
        })
        .prop_map(
            |(pool, layout, heads, (mask, block_tokens, slack, bytes), parents)| {
                let pool = with_parents(pool, &parents);
                let mask = if pool.has_parents() {
                    Mask::Causal
                } else {
                    mask
                };
                let config = PlanConfig {
                    mask,
                    block_tokens,
                    tiling: Tiling::Fixed,
                    placer: Placer::Paper(slack),
                    kv_fetch: KvFetch::Whole,
                    kv_route: KvRoute::Direct,
                    bytes,
                    max_recv_bytes: None,
                };
                Case {
                    pool,
                    layout,
                    heads,
                    config,
                }
            },
        )
}

/// Nodes of any size, in one pod or in several.
fn topologies(gpus: std::ops::Range<u32>) -> impl Strategy<Value = Topology> {
    (gpus, proptest::option::weighted(0.3, 1u32..4)).prop_map(|(gpus, nodes)| {
        let topology = Topology::new(gpus).unwrap();
        nodes.map_or(topology, |nodes| topology.with_pods(nodes).unwrap())
    })
}

/// Direct, or through nodes.
pub(crate) fn routes() -> impl Strategy<Value = KvRoute> {
    prop_oneof![1 => Just(KvRoute::Direct), 3 => topologies(1..9).prop_map(KvRoute::Node)]
}

/// Fixed tiles twice as often as adaptive ones.
fn tilings() -> impl Strategy<Value = Tiling> {
    select(vec![Tiling::Fixed, Tiling::Fixed, Tiling::Adaptive])
}

/// Pools whose blocks are placed by anyone whose condition the pool meets.
pub(crate) fn tile_cases() -> impl Strategy<Value = Case> {
    let drawn = (paper_cases(), 0..4, 0..2usize, routes(), tilings());
    drawn.prop_map(|(mut case, placer, fetch, route, tiling)| {
        case.config.tiling = tiling;
        case.config.kv_fetch = KvFetch::ALL[fetch];
        case.config.kv_route = route;
        let ulysses = case.heads.shards().is_multiple_of(case.layout.cp());
        match placer {
            0 => case.config.placer = Placer::Home,
            1 if ulysses => case.config.placer = Placer::HeadShard,
            _ => {}
        }
        case
    })
}

/// Pools placed in blocks, or in runs.
pub(crate) fn cases() -> impl Strategy<Value = Case> {
    (tile_cases(), 0..4, topologies(1..10)).prop_map(|(mut case, by_runs, topology)| {
        if let (Placer::Paper(slack), 0) = (case.config.placer, by_runs) {
            case.config.placer = Placer::Export(slack, topology);
        }
        case
    })
}

#[test]
fn cases_are_of_every_kind() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    type Holds = fn(&Case) -> bool;

    let mut runner = TestRunner::deterministic();
    let mut count = |holds: Holds| {
        let drawn = (0..400).map(|_| cases().new_tree(&mut runner).unwrap().current());
        drawn.filter(holds).count()
    };
    let kinds: [(&str, Holds); 20] = [
        ("a sample with a parent in another block", |c| {
            c.tiles().iter().any(|tile| {
                let above = |s| c.pool.ancestors(SampleId::new(s)).last();
                let mut above = tile.samples().filter_map(above);
                above.any(|above| c.pool.tokens(above).end <= tile.start)
            })
        }),
        ("a sample with a grandparent", |c| {
            (0..c.pool.samples()).any(|s| c.pool.ancestors(SampleId::new(s)).count() > 1)
        }),
        ("a sample read in two ranges", |c| {
            let two = |len: u32| c.config.mask.keys(len, len - 1..len).iter().count() == 2;
            (0..c.pool.samples()).any(|s| two(c.pool.length(SampleId::new(s))))
        }),
        ("a tile that reads no key", |c| {
            c.tiles().iter().any(|tile| tile.work == 0)
        }),
        ("more workers than a word has bits", |c| {
            c.layout.workers() > 64
        }),
        ("two tensor ranks", |c| c.layout.tensor() > 1),
        ("H above h_kv", |c| c.heads.shards() > c.heads.kv_heads()),
        ("neither of H and h_kv divides the other", |c| {
            let (shards, kv_heads) = (c.heads.shards(), c.heads.kv_heads());
            !shards.is_multiple_of(kv_heads) && !kv_heads.is_multiple_of(shards)
        }),
        ("an empty sequence", |c| {
            c.slots().any(|slot| c.pool.tokens_of(slot) == 0)
        }),
        ("a full sequence", |c| {
            c.slots()
                .any(|slot| c.pool.tokens_of(slot) == c.pool.seq_tokens())
        }),
        ("a sample over three blocks", |c| {
            let longest = (0..c.pool.samples())
                .map(|s| c.pool.length(SampleId::new(s)))
                .max();
            longest > Some(3 * c.config.block_tokens)
        }),
        ("a block over three samples", |c| {
            c.tiles().iter().any(|tile| tile.samples > 3)
        }),
        ("tiles away from home", |c| !c.plan().exchange.q.is_empty()),
        ("a range that is forwarded", |c| {
            !c.plan().exchange.forward.is_empty()
        }),
        ("runs away from home", |c| {
            matches!(c.config.placer, Placer::Export(..)) && !c.plan().exchange.q.is_empty()
        }),
        (
            "split or merged tiles, and a range that is forwarded",
            |c| {
                let plan = c.plan();
                plan.tiles != c.tiles() && !plan.exchange.forward.is_empty()
            },
        ),
        (
            "two ranges of a sample, and a range that is forwarded",
            |c| {
                let two = |len: u32| c.config.mask.keys(len, len - 1..len).iter().count() == 2;
                let forward = c.plan().exchange.forward;
                forward.iter().any(|m| two(c.pool.length(m.sample)))
            },
        ),
        ("a prefix that is forwarded", |c| {
            let forward = c.plan().exchange.forward;
            let is_parent = |parent| {
                (0..c.pool.samples()).any(|s| c.pool.parent(SampleId::new(s)) == Some(parent))
            };
            forward.iter().any(|m| is_parent(m.sample))
        }),
        ("split or merged tiles of a tree", |c| {
            c.pool.has_parents() && c.plan().tiles != c.tiles()
        }),
        ("a head-shard plan", |c| {
            c.config.placer == Placer::HeadShard
        }),
    ];
    for (kind, holds) in kinds {
        let found = count(holds);
        assert!(found >= 10, "{kind}: {found} of 400");
    }
}
