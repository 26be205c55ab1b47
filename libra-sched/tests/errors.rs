//! What people read when they ask for what cannot be: every message carries the numbers and what
//! would be legal.

#![forbid(unsafe_code)]

use std::fmt::Write;

use libra_sched::placement::{self, Problem};
use libra_sched::vrsp::{self, Elastic, GaOrder, Vrsp};
use libra_sched::{
    BackwardMode, CostTable, ElementBytes, Error, Fragment, HeadSplit, KvFetch, LayoutKind, Mask,
    PackedLengths, Placer, PlanConfig, PoolId, Proxy, SampleId, SequenceId, Slack, Speed, Speeds,
    TileSet, Tiling, TokenLayout, Topology, WindowShape, WorkerId, exchange, plan_pool, tiles,
};

/// One line a request: what was asked, and the answer.
fn answers<T>(requests: Vec<(&str, Result<T, Error>)>) -> String {
    let mut text = String::new();
    for (asked, answer) in requests {
        let answer = answer
            .err()
            .map_or_else(|| "is met".to_owned(), |error| error.to_string());
        writeln!(text, "{asked}: {answer}").expect("a string takes all that is written");
    }
    text
}

#[test]
fn window_shapes() {
    let text = answers(vec![
        (
            "P does not divide DP",
            WindowShape::new(1024, 128, 16, 8, 5),
        ),
        (
            "DP does not divide GBS",
            WindowShape::new(1024, 100, 16, 8, 8),
        ),
        ("L 0", WindowShape::new(0, 128, 16, 8, 8)),
        ("GBS 0", WindowShape::new(1024, 0, 16, 8, 8)),
        ("DP 0", WindowShape::new(1024, 128, 0, 8, 8)),
        ("CP 0", WindowShape::new(1024, 128, 16, 0, 8)),
        ("P 0", WindowShape::new(1024, 128, 16, 8, 0)),
        ("P above DP", WindowShape::new(1024, 128, 16, 8, 32)),
        ("L beyond 2^30", WindowShape::new(1 << 31, 128, 16, 8, 8)),
        (
            "W beyond 2^20",
            WindowShape::new(1024, 1 << 20, 1 << 20, 1 << 10, 1 << 20),
        ),
        ("many divisors", WindowShape::new(1024, 5040, 720, 8, 7)),
    ]);
    insta::assert_snapshot!(text, @r"
    P does not divide DP: DP is 16, not a multiple of P 5; legal P: 1, 2, 4, 8, 16
    DP does not divide GBS: GBS is 100, not a multiple of DP 16; legal DP: 1, 2, 4, 5, 10, 20, 25, 50, 100
    L 0: seq_tokens is 0, must be at least 1
    GBS 0: GBS is 0, must be at least 1
    DP 0: DP is 0, must be at least 1
    CP 0: CP is 0, must be at least 1
    P 0: P is 0, must be at least 1
    P above DP: DP is 16, not a multiple of P 32; legal P: 1, 2, 4, 8, 16
    L beyond 2^30: seq_tokens is 2147483648, above the limit of 1073741824
    W beyond 2^20: P*CP workers is 1073741824, above the limit of 1048576
    many divisors: DP is 720, not a multiple of P 7; legal P: 1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 18, 20, 24, 30, …
    ");
}

#[test]
fn head_splits() {
    let text = answers(vec![
        (
            "h_kv does not divide h_q",
            HeadSplit::new(32, 5, 128, 128, 8, 4),
        ),
        (
            "H does not divide h_q",
            HeadSplit::new(32, 8, 128, 128, 12, 4),
        ),
        (
            "M does not divide h_q/H",
            HeadSplit::new(24, 8, 128, 128, 2, 5),
        ),
        ("M above h_q/H", HeadSplit::new(32, 8, 128, 128, 8, 8)),
        ("h_q 0", HeadSplit::new(0, 8, 128, 128, 8, 4)),
        ("h_kv 0", HeadSplit::new(32, 0, 128, 128, 8, 4)),
        ("d_qk 0", HeadSplit::new(32, 8, 0, 128, 8, 4)),
        ("d_v 0", HeadSplit::new(32, 8, 128, 0, 8, 4)),
        ("H 0", HeadSplit::new(32, 8, 128, 128, 0, 4)),
        ("M 0", HeadSplit::new(32, 8, 128, 128, 8, 0)),
        (
            "h_q beyond 2^16",
            HeadSplit::new(1 << 17, 8, 128, 128, 8, 4),
        ),
        (
            "d_qk beyond 2^16",
            HeadSplit::new(32, 8, 1 << 17, 128, 8, 4),
        ),
        ("d_v beyond 2^16", HeadSplit::new(32, 8, 128, 1 << 17, 8, 4)),
    ]);
    insta::assert_snapshot!(text, @r"
    h_kv does not divide h_q: h_q is 32, not a multiple of h_kv 5; legal h_kv: 1, 2, 4, 8, 16, 32
    H does not divide h_q: h_q is 32, not a multiple of H 12; legal H: 1, 2, 4, 8, 16, 32
    M does not divide h_q/H: h_q/H is 12, not a multiple of M 5; legal M: 1, 2, 3, 4, 6, 12
    M above h_q/H: h_q/H is 4, not a multiple of M 8; legal M: 1, 2, 4
    h_q 0: h_q is 0, must be at least 1
    h_kv 0: h_kv is 0, must be at least 1
    d_qk 0: d_qk is 0, must be at least 1
    d_v 0: d_v is 0, must be at least 1
    H 0: H is 0, must be at least 1
    M 0: M is 0, must be at least 1
    h_q beyond 2^16: h_q is 131072, above the limit of 65536
    d_qk beyond 2^16: d_qk is 131072, above the limit of 65536
    d_v beyond 2^16: d_v is 131072, above the limit of 65536
    ");
}

#[test]
fn lengths() {
    let new = |seq_tokens, lists: &[&[u64]]| {
        PackedLengths::new(seq_tokens, lists.iter().map(|list| list.to_vec()))
    };
    let text = answers(vec![
        ("no sequence", new(16, &[])),
        ("L 0", new(0, &[&[1]])),
        ("L beyond 2^30", new(1 << 40, &[&[1]])),
        ("a sample of 0 tokens", new(16, &[&[16], &[4, 0]])),
        ("a sample longer than L", new(16, &[&[4, 17]])),
        ("a sample of 2^64 - 1 tokens", new(16, &[&[u64::MAX]])),
        ("a sequence longer than L", new(16, &[&[16], &[8, 8, 1]])),
        (
            "cu_seqlens from 3",
            PackedLengths::from_cu_seqlens(16, &[&[3, 5]]),
        ),
        (
            "cu_seqlens that fall",
            PackedLengths::from_cu_seqlens(16, &[&[0, 5, 4]]),
        ),
        (
            "cu_seqlens that rest",
            PackedLengths::from_cu_seqlens(16, &[&[0, 5, 5]]),
        ),
        (
            "cu_seqlens beyond L",
            PackedLengths::from_cu_seqlens(16, &[&[0, 5, 17]]),
        ),
        (
            "a member that is not there",
            new(16, &[&[4]]).and_then(|l| l.select(&[SequenceId(1)])),
        ),
        ("no member", new(16, &[&[4]]).and_then(|l| l.select(&[]))),
    ]);
    insta::assert_snapshot!(text, @r"
    no sequence: number of sequences is 0, must be at least 1
    L 0: seq_tokens is 0, must be at least 1
    L beyond 2^30: seq_tokens is 1099511627776, above the limit of 1073741824
    a sample of 0 tokens: sequence 1, sample 1: length is 0, must be at least 1 token
    a sample longer than L: sequence 0, sample 1: length 17 exceeds seq_tokens 16; cut it or raise seq_tokens
    a sample of 2^64 - 1 tokens: sequence 0, sample 0: length 18446744073709551615 exceeds seq_tokens 16; cut it or raise seq_tokens
    a sequence longer than L: sequence 1: samples add up to 17 tokens, more than seq_tokens 16
    cu_seqlens from 3: cu_seqlens[0] is 3 after 0, must start at 0 and never fall
    cu_seqlens that fall: cu_seqlens[2] is 4 after 5, must start at 0 and never fall
    cu_seqlens that rest: sequence 0, sample 1: length is 0, must be at least 1 token
    cu_seqlens beyond L: sequence 0: samples add up to 17 tokens, more than seq_tokens 16
    a member that is not there: sequence 1 does not exist, there are 1
    no member: number of sequences is 0, must be at least 1
    ");

    let longest = vec![vec![1u64 << 30]; 17];
    let window = PackedLengths::new(1 << 30, longest).unwrap();
    let text = answers(vec![
        (
            "15 squares of 2^30",
            window
                .select(&[SequenceId(0); 15])
                .and_then(|w| w.work(Proxy::SumSquares)),
        ),
        ("17 squares of 2^30", window.work(Proxy::SumSquares)),
        (
            "17 full samples of 2^30",
            window.work(Proxy::Pairs(Mask::Full)),
        ),
        (
            "17 causal samples of 2^30",
            window.work(Proxy::Pairs(Mask::Causal)),
        ),
    ]);
    insta::assert_snapshot!(text, @r"
    15 squares of 2^30: is met
    17 squares of 2^30: work of the window overflows 64 bits: 19599665578316398592
    17 full samples of 2^30: work of the window overflows 64 bits: 19599665578316398592
    17 causal samples of 2^30: is met
    ");
}

#[test]
fn layouts() {
    let fragment = |start, end, rank| Fragment { start, end, rank };
    let explicit = |list: Vec<Fragment>| TokenLayout::explicit(12, 2, 1, vec![list]);
    let kind = LayoutKind::Contiguous;
    let text = answers(vec![
        (
            "a gap",
            explicit(vec![fragment(0, 4, 0), fragment(5, 12, 1)]),
        ),
        (
            "an overlap",
            explicit(vec![fragment(0, 6, 0), fragment(5, 12, 1)]),
        ),
        (
            "an empty fragment",
            explicit(vec![fragment(0, 0, 0), fragment(0, 12, 1)]),
        ),
        ("a short end", explicit(vec![fragment(0, 6, 0)])),
        ("a long end", explicit(vec![fragment(0, 13, 0)])),
        ("nothing", explicit(vec![])),
        (
            "a rank that is not there",
            explicit(vec![fragment(0, 12, 2)]),
        ),
        ("no slot", TokenLayout::explicit(12, 2, 1, vec![])),
        ("0 slots", TokenLayout::new(kind, 0, 12, 2)),
        ("0 tokens", TokenLayout::new(kind, 2, 0, 2)),
        ("0 workers", TokenLayout::new(kind, 2, 12, 0)),
        ("0 tensor ranks", TokenLayout::grid(kind, 2, 12, 2, 0)),
        ("too many tokens", TokenLayout::new(kind, 2, 1 << 31, 2)),
        (
            "too many workers",
            TokenLayout::grid(kind, 1 << 10, 12, 1 << 10, 1 << 10),
        ),
    ]);
    insta::assert_snapshot!(text, @r"
    a gap: slot 0: fragment 1 covers tokens 5..12, expected to start at 4 and end by 12
    an overlap: slot 0: fragment 1 covers tokens 5..12, expected to start at 6 and end by 12
    an empty fragment: slot 0: fragment 0 covers tokens 0..0, expected to start at 0 and end by 12
    a short end: slot 0: fragment 1 covers tokens 6..12, expected to start at 6 and end by 12
    a long end: slot 0: fragment 0 covers tokens 0..13, expected to start at 0 and end by 12
    nothing: slot 0: fragment 0 covers tokens 0..12, expected to start at 0 and end by 12
    a rank that is not there: context rank 2 does not exist, there are 2
    no slot: number of sequences is 0, must be at least 1
    0 slots: number of sequences is 0, must be at least 1
    0 tokens: seq_tokens is 0, must be at least 1
    0 workers: context ranks is 0, must be at least 1
    0 tensor ranks: tensor ranks is 0, must be at least 1
    too many tokens: seq_tokens is 2147483648, above the limit of 1073741824
    too many workers: workers of the pool is 1073741824, above the limit of 1048576
    ");

    let topology = answers(vec![
        ("0 GPUs a node", Topology::new(0)),
        ("0 nodes a pod", Topology::default().with_pods(0)),
    ]);
    insta::assert_snapshot!(topology, @r"
    0 GPUs a node: GPUs per node is 0, must be at least 1
    0 nodes a pod: nodes per pod is 0, must be at least 1
    ");
}

#[test]
fn pools() {
    let place = |work: &[u64], size| vrsp::place(work, size, Vrsp::Paper).map(drop);
    let costs = |costs: &[f64], size| vrsp::place_costs(costs, size).map(drop);
    let text = answers(vec![
        ("P does not divide the window", place(&[1; 12], 5)),
        ("P 0", place(&[1; 12], 0)),
        ("no sequence", place(&[], 4)),
        ("work beyond 2^64", place(&[u64::MAX, 1], 1)),
        (
            "bound with P that does not divide",
            vrsp::lower_bound(&[1; 12], 5).map(drop),
        ),
        (
            "bound beyond 2^64",
            vrsp::lower_bound(&[u64::MAX, 1], 1).map(drop),
        ),
        ("a negative cost", costs(&[1.0, -0.5], 1)),
        ("a cost that is no number", costs(&[f64::NAN, 1.0], 1)),
        ("an infinite cost", costs(&[f64::INFINITY, 1.0], 1)),
        (
            "costs with an infinite sum",
            costs(&[f64::MAX, f64::MAX], 1),
        ),
        ("P that does not divide the costs", costs(&[1.0; 3], 2)),
    ]);
    insta::assert_snapshot!(text, @r"
    P does not divide the window: number of sequences is 12, not a multiple of P 5; legal P: 1, 2, 3, 4, 6, 12
    P 0: P is 0, must be at least 1
    no sequence: number of sequences is 0, must be at least 1
    work beyond 2^64: work of the window overflows 64 bits: 18446744073709551616
    bound with P that does not divide: number of sequences is 12, not a multiple of P 5; legal P: 1, 2, 3, 4, 6, 12
    bound beyond 2^64: work of the window overflows 64 bits: 18446744073709551616
    a negative cost: cost 1 is -0.5, must be finite and not negative
    a cost that is no number: cost 0 is NaN, must be finite and not negative
    an infinite cost: cost 0 is inf, must be finite and not negative
    costs with an infinite sum: cost 1 is sum inf, must be finite and not negative
    P that does not divide the costs: number of sequences is 3, not a multiple of P 2; legal P: 1, 3
    ");
}

#[test]
fn measurements() {
    let table = |lengths: &[u32], heads: &[u32], times: &[Vec<f64>]| {
        CostTable::new(Mask::Causal, lengths, heads, times).map(drop)
    };
    let times = |time| vec![vec![1.0, 2.0], vec![3.0, time]];
    let (lengths, heads) = ([128, 256], [8, 16]);
    let text = answers(vec![
        ("no lengths", table(&[], &heads, &[])),
        ("no heads", table(&lengths, &[], &times(4.0))),
        ("lengths that fall", table(&[256, 128], &heads, &times(4.0))),
        ("a length twice", table(&[128, 128], &heads, &times(4.0))),
        ("0 heads", table(&lengths, &[0, 8], &times(4.0))),
        (
            "a length beyond 2^30",
            table(&[128, 1 << 31], &heads, &times(4.0)),
        ),
        (
            "a length without a key",
            CostTable::new(
                Mask::restricted(200, 300).unwrap(),
                &lengths,
                &heads,
                &times(4.0),
            )
            .map(drop),
        ),
        ("a row too few", table(&lengths, &heads, &times(4.0)[..1])),
        ("a column too many", table(&lengths, &[8], &times(4.0))),
        ("a time of 0", table(&lengths, &heads, &times(0.0))),
        ("a negative time", table(&lengths, &heads, &times(-4.0))),
        (
            "a time that is no number",
            table(&lengths, &heads, &times(f64::NAN)),
        ),
        (
            "an infinite time",
            table(&lengths, &heads, &times(f64::INFINITY)),
        ),
        (
            "a time too short for a rate",
            table(&lengths, &heads, &times(1e-9)),
        ),
        (
            "a time too long for a rate",
            table(&lengths, &heads, &times(1e30)),
        ),
    ]);
    insta::assert_snapshot!(text, @r"
    no lengths: number of lengths is 0, must be at least 1
    no heads: number of head counts is 0, must be at least 1
    lengths that fall: lengths[1] is 128, must be above 256: lengths rise
    a length twice: lengths[1] is 128, must be above 128: lengths rise
    0 heads: heads[0] is 0, must be above 0: heads rise
    a length beyond 2^30: lengths is 2147483648, above the limit of 1073741824
    a length without a key: lengths[0] is 128, must be a length at which keys:200..300 reads a key
    a row too few: the number of entries in time_ns is 1, must be 2, one for each of lengths
    a column too many: the number of entries in a row of time_ns is 2, must be 1, one for each of heads
    a time of 0: time_ns[1][1] is 0.0, must be a time from 1e-7 to 1e12 ns for so many queries and heads
    a negative time: time_ns[1][1] is -4.0, must be a time from 1e-7 to 1e12 ns for so many queries and heads
    a time that is no number: time_ns[1][1] is NaN, must be a time from 1e-7 to 1e12 ns for so many queries and heads
    an infinite time: time_ns[1][1] is inf, must be a time from 1e-7 to 1e12 ns for so many queries and heads
    a time too short for a rate: time_ns[1][1] is 1e-9, must be a time from 1e-7 to 1e12 ns for so many queries and heads
    a time too long for a rate: time_ns[1][1] is 1e30, must be a time from 1e-7 to 1e12 ns for so many queries and heads
    ");

    let pool = PackedLengths::new(12, [vec![8u64, 4], vec![3, 3, 3]]).unwrap();
    let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 12, 2).unwrap();
    let heads = HeadSplit::new(2, 2, 4, 4, 2, 1).unwrap();
    let mut tiles = tiles::cut(&pool, &layout, &heads, Mask::Causal, 12).unwrap();
    let dear = CostTable::new(Mask::Causal, &[1], &[1], &[vec![2e6]]).unwrap();
    let long = PackedLengths::new(1 << 20, [vec![1u64 << 20]]).unwrap();
    let long_layout = TokenLayout::new(LayoutKind::Contiguous, 1, 1 << 20, 1).unwrap();
    let long = tiles::cut(&long, &long_layout, &heads, Mask::Causal, 1 << 20).unwrap();
    let one_shard = HeadSplit::new(2, 2, 4, 4, 1, 1).unwrap();
    let parents = [None, Some(SampleId(0)), None, Some(SampleId(2)), None];
    let tree = pool.clone().with_parents(&parents).unwrap();
    let tree = tiles::cut(&tree, &layout, &heads, Mask::Causal, 12).unwrap();
    let window = Mask::window(4, 0).unwrap();
    let mut few = vec![1; tiles.len() - 1];
    let mut much = vec![u64::MAX / 2; tiles.len()];
    let problem = Problem::new(&pool, &layout, &heads, ElementBytes::BF16).unwrap();
    let three = Speeds::new(vec![Speed::NOMINAL; 3]);
    let text = answers(vec![
        (
            "time beyond 2^64",
            tiles::reweigh(&long, &heads, Mask::Causal, &dear).map(drop),
        ),
        (
            "tiles of another split",
            tiles::reweigh(&tiles, &one_shard, Mask::Causal, &dear).map(drop),
        ),
        (
            "times of a tree under a window",
            tiles::reweigh(&tree, &heads, window, &dear).map(drop),
        ),
        (
            "parts of a tree under a window",
            tiles::split(&tree, &heads, window, 9).map(drop),
        ),
        ("a weight too few", tiles.swap_work(&mut few)),
        ("weights beyond 2^64", tiles.swap_work(&mut much)),
        ("a speed too few", problem.with_speeds(&three).map(drop)),
        ("a speed of 0", "0".parse::<Speed>().map(drop)),
        (
            "a speed that is no number",
            "fast".parse::<Speed>().map(drop),
        ),
        ("a speed beyond 1000", "1000.1".parse::<Speed>().map(drop)),
        ("a speed of 0 ppm", Speed::from_ppm(0).map(drop)),
    ]);
    insta::assert_snapshot!(text, @r#"
    time beyond 2^64: time of a tile overflows 64 bits: 1099512676352000000000
    tiles of another split: H is 2 in the tile set but 1 in the pool
    times of a tree under a window: mask window:4 cannot be combined with parents of samples; one of causal
    parts of a tree under a window: mask window:4 cannot be combined with parents of samples; one of causal
    a weight too few: number of tiles is 7 in the weights but 8 in the tile set
    weights beyond 2^64: weight of the pool overflows 64 bits: 73786976294838206456
    a speed too few: number of workers is 3 in the speeds but 4 in the pool
    a speed of 0: a speed is "0", must be a number from 0.000001 to 1000 with up to six digits after the point
    a speed that is no number: a speed is "fast", must be a number from 0.000001 to 1000 with up to six digits after the point
    a speed beyond 1000: a speed is "1000.1", must be a number from 0.000001 to 1000 with up to six digits after the point
    a speed of 0 ppm: a speed is 0 ppm, must be a number from 0.000001 to 1000 with up to six digits after the point
    "#);
}

#[test]
fn orders_and_growing_pools() {
    let shape = WindowShape::new(16, 8, 4, 1, 2).unwrap();
    let order = |loads: &[u64], pp| vrsp::ga_order(loads, &shape, GaOrder::Balanced, pp).map(drop);
    let time = |order: &[u32]| {
        let order: Vec<PoolId> = order.iter().map(|&pool| PoolId(pool)).collect();
        vrsp::ga_time(&[1; 4], &order, &shape, 1).map(drop)
    };
    let elastic = |work: &[u64]| vrsp::elastic(work, &shape, Elastic::new(2).unwrap()).map(drop);
    let placed = vrsp::elastic(&[90, 1, 1, 1, 1, 1, 1, 1], &shape, Elastic::new(2).unwrap());
    let placed = placed.unwrap().placement;
    let all: Vec<PoolId> = (0..placed.pools()).map(PoolId::new).collect();
    let text = answers(vec![
        ("three loads of four pools", order(&[1; 3], 1)),
        ("no pipeline stage", order(&[1; 4], 0)),
        ("loads beyond 2^64", order(&[u64::MAX, 1, 1, 1], 1)),
        ("a pool twice", time(&[0, 1, 1, 3])),
        ("a pool that does not exist", time(&[0, 1, 2, 4])),
        ("three pools of four", time(&[0, 1, 2])),
        (
            "merged pools in another order",
            placed.reordered(&all).map(drop),
        ),
        ("a cap of three", Elastic::new(3).map(drop)),
        ("seven sequences of eight", elastic(&[1; 7])),
        (
            "work that twice is beyond 2^64",
            elastic(&[u64::MAX / 8; 8]),
        ),
        (
            "a largest pool that does not divide the window",
            vrsp::lower_bound_up_to(&[1; 12], 8).map(drop),
        ),
        (
            "a bound beyond 2^64",
            vrsp::lower_bound_up_to(&[u64::MAX / 4; 4], 2).map(drop),
        ),
    ]);
    insta::assert_snapshot!(text, @r#"
    three loads of four pools: number of pools is 3 in loads but 4 in GBS/P
    no pipeline stage: PP is 0, must be at least 1
    loads beyond 2^64: work of the window overflows 64 bits: 18446744073709551618
    a pool twice: pool that has not run 1 does not exist, there are 4
    a pool that does not exist: pool that has not run 4 does not exist, there are 4
    three pools of four: number of pools is 3 in order but 4 in loads
    merged pools in another order: pool size is 4 in the first pool but 2 in a later one
    a cap of three: elastic cap "3" is unknown; one of 1, 2, 4, 8 and further powers of two
    seven sequences of eight: 7 sequences given, 8 expected (GBS)
    work that twice is beyond 2^64: work of the window times the elastic cap overflows 64 bits: 36893488147419103216
    a largest pool that does not divide the window: number of sequences is 12, not a multiple of largest pool 8; legal largest pool: 1, 2, 3, 4, 6, 12
    a bound beyond 2^64: work of the window times the pool size overflows 64 bits: 36893488147419103224
    "#);
}

#[test]
fn plans() {
    let pool = PackedLengths::new(12, [vec![8u64, 4], vec![3, 3, 3]]).unwrap();
    let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 12, 2).unwrap();
    let heads = HeadSplit::new(4, 2, 4, 4, 2, 1).unwrap();
    let plan = |pool: &PackedLengths, layout: &TokenLayout, heads: &HeadSplit, config| {
        plan_pool(pool, layout, heads, &config).map(drop)
    };
    let paper = PlanConfig::paper(6);
    let three = TokenLayout::new(LayoutKind::Contiguous, 3, 12, 2).unwrap();
    let longer = TokenLayout::new(LayoutKind::Contiguous, 2, 16, 2).unwrap();
    let wide = TokenLayout::new(LayoutKind::Contiguous, 2, 12, 3).unwrap();
    let tensor = |tensor| TokenLayout::grid(LayoutKind::Contiguous, 2, 12, 1, tensor).unwrap();
    let four_shards = HeadSplit::new(4, 2, 4, 4, 4, 1).unwrap();
    let with = |change: fn(&mut PlanConfig)| {
        let mut config = paper;
        change(&mut config);
        config
    };
    let huge = ElementBytes {
        activation: u32::MAX,
        statistic: 4,
    };
    let wide_heads = HeadSplit::new(1 << 16, 1 << 16, 1 << 16, 1 << 16, 1, 1).unwrap();
    let long = PackedLengths::new(1 << 30, vec![vec![1u64 << 30]; 2]).unwrap();
    let long_layout = TokenLayout::new(LayoutKind::Contiguous, 2, 1 << 30, 2).unwrap();
    let mut long_config = PlanConfig::paper(1 << 29);
    long_config.mask = Mask::Full;
    let many_heads = HeadSplit::new(16, 1, 1, 1, 1, 1).unwrap();
    let text = answers(vec![
        (
            "B 0",
            plan(&pool, &layout, &heads, with(|c| c.block_tokens = 0)),
        ),
        (
            "lengths of another pool",
            plan(&pool, &three, &heads, paper),
        ),
        ("lengths of another L", plan(&pool, &longer, &heads, paper)),
        (
            "tensor ranks do not divide H",
            plan(&pool, &tensor(4), &heads, paper),
        ),
        (
            "tensor ranks do not divide h_kv",
            plan(&pool, &tensor(4), &four_shards, paper),
        ),
        (
            "CP does not divide H",
            plan(&pool, &wide, &heads, with(|c| c.placer = Placer::HeadShard)),
        ),
        (
            "a worker that receives too much",
            plan(
                &pool,
                &layout,
                &heads,
                with(|c| c.max_recv_bytes = Some(100)),
            ),
        ),
        (
            "bytes beyond 2^64",
            plan(
                &pool,
                &layout,
                &wide_heads,
                PlanConfig {
                    bytes: huge,
                    ..paper
                },
            ),
        ),
        (
            "work beyond 2^64",
            plan(&long, &long_layout, &many_heads, long_config),
        ),
        (
            "too many tiles",
            plan(&long, &long_layout, &heads, PlanConfig::paper(1)),
        ),
    ]);
    insta::assert_snapshot!(text, @r"
    B 0: block tokens is 0, must be at least 1
    lengths of another pool: 2 sequences given, 3 expected (slots of the layout)
    lengths of another L: seq_tokens is 12 in lengths but 16 in layout
    tensor ranks do not divide H: H is 2, not a multiple of tensor ranks 4; legal tensor ranks: 1, 2
    tensor ranks do not divide h_kv: h_kv is 2, not a multiple of tensor ranks 4; legal tensor ranks: 1, 2
    CP does not divide H: H is 2, not a multiple of CP 3; legal CP: 1, 2
    a worker that receives too much: w3 would receive 416 bytes, more than max_recv_bytes 100; raise the limit, the slack or the block size, or lower the pool size
    bytes beyond 2^64: bytes of the pool overflows 64 bits: 8854437153319013056512
    work beyond 2^64: work of the pool overflows 64 bits: 36893488147419103232
    too many tiles: number of tiles is 4294967304, above the limit of 268435456
    ");

    let tiles = tiles::cut(&pool, &layout, &heads, Mask::Causal, 6).unwrap();
    let derive = |workers: &[_]| {
        exchange::derive(
            &pool,
            &layout,
            &heads,
            &tiles,
            workers,
            Mask::Causal,
            KvFetch::Whole,
        )
        .map(drop)
    };
    let set = |slot| {
        let mut tile = tiles[0];
        tile.slot = slot;
        TileSet::new(&pool, &layout, &heads, vec![tile]).map(drop)
    };
    let longer = PackedLengths::new(12, [vec![6u64, 6], vec![3, 3, 4]]).unwrap();
    let problem = Problem::new(&longer, &layout, &heads, ElementBytes::BF16).unwrap();
    let place = placement::place(&problem, &tiles, Placer::Home).map(drop);
    let text = answers(vec![
        ("a worker too few", derive(&[WorkerId(0)])),
        (
            "a worker that is not there",
            derive(&vec![WorkerId(4); tiles.len()]),
        ),
        ("a tile of a slot that is not there", set(2)),
        ("a tile with samples of another slot", set(1)),
        ("tiles of another pool", place),
        (
            "a limit of 0",
            tiles::split(&tiles, &heads, Mask::Causal, 0).map(drop),
        ),
        (
            "a merge with a worker too few",
            tiles::merge(&tiles, &layout, &[WorkerId(0)]).map(drop),
        ),
        (
            "a merge in another layout",
            tiles::merge(&tiles, &three, &vec![WorkerId(0); tiles.len()]).map(drop),
        ),
    ]);
    insta::assert_snapshot!(text, @r"
    a worker too few: number of tiles is 8 in tiles but 1 in placement
    a worker that is not there: worker 4 does not exist, there are 4
    a tile of a slot that is not there: slot 2 does not exist, there are 2
    a tile with samples of another slot: first sample is 0 in the tile but 2 in its slot
    tiles of another pool: length of a sample is 8 in the tile set but 6 in the pool
    a limit of 0: limit of a tile's work is 0, must be at least 1
    a merge with a worker too few: number of tiles is 8 in tiles but 1 in placement
    a merge in another layout: 2 sequences given, 3 expected (slots of the layout)
    ");
}

#[test]
fn names_and_numbers() {
    fn parsed<T: std::str::FromStr<Err = Error>>(text: &str) -> Result<(), Error> {
        text.parse::<T>().map(drop)
    }
    let text = answers(vec![
        ("mask", parsed::<Mask>("sliding")),
        ("a window of no key", parsed::<Mask>("window:0,sinks:4")),
        ("no key at all", parsed::<Mask>("keys:9..4")),
        ("layout", parsed::<LayoutKind>("ring")),
        ("vrsp", parsed::<Vrsp>("random")),
        ("GA order", parsed::<GaOrder>("random")),
        ("elastic cap", parsed::<Elastic>("two")),
        ("kv", parsed::<KvFetch>("prefix")),
        ("tiling", parsed::<Tiling>("free")),
        ("backward", parsed::<BackwardMode>("")),
        ("slack -0.1", parsed::<Slack>("-0.1")),
        ("slack 5 %", parsed::<Slack>("5%")),
        ("slack 1001", parsed::<Slack>("1001")),
        ("slack of 7 digits", parsed::<Slack>("0.0000001")),
        (
            "2 000 000 001 ppm",
            Slack::from_ppm(2_000_000_001).map(drop),
        ),
    ]);
    insta::assert_snapshot!(text, @r#"
    mask: mask "sliding" is unknown; one of causal, full, causal+S, window:W, window:W,sinks:S, two-sided:L,R, chunked:C, block:B,local:N, block:B,local:N,sinks:S, prefix:P, keys:A..B
    a window of no key: window of a mask is 0, must be at least 1
    no key at all: number of keys of a mask is 0, must be at least 1
    layout: layout "ring" is unknown; one of contiguous, zigzag
    vrsp: vrsp algorithm "random" is unknown; one of arrival, paper, certified
    GA order: GA order "random" is unknown; one of paper, balanced
    elastic cap: elastic cap "two" is unknown; one of 1, 2, 4, 8 and further powers of two
    kv: kv fetch "prefix" is unknown; one of whole, range
    tiling: tiling "free" is unknown; one of fixed, adaptive
    backward: backward mode "" is unknown; one of recompute, stash, refetch
    slack -0.1: slack "-0.1" is not a number from 0 to 1000 (0.03 allows 3 % over the mean)
    slack 5 %: slack "5%" is not a number from 0 to 1000 (0.03 allows 3 % over the mean)
    slack 1001: slack "1001" is not a number from 0 to 1000 (0.03 allows 3 % over the mean)
    slack of 7 digits: slack "0.0000001" is not a number from 0 to 1000 (0.03 allows 3 % over the mean)
    2 000 000 001 ppm: slack "2000000001 ppm" is not a number from 0 to 1000 (0.03 allows 3 % over the mean)
    "#);
}

/// One of each variant.
#[test]
fn every_variant_has_a_message_in_lower_case_without_a_full_stop() {
    let text = |text: &str| text.to_owned();
    let all = vec![
        Error::Zero { name: "CP" },
        Error::TooLarge {
            name: "workers",
            value: 9,
            limit: 8,
        },
        Error::NotDivisible {
            whole_name: "DP",
            whole: 6,
            part_name: "P",
            part: 4,
            legal_parts: vec![1, 2, 3, 6],
        },
        Error::EmptySample {
            sequence: 1,
            sample: 2,
        },
        Error::SampleTooLong {
            sequence: 1,
            sample: 2,
            length: 9,
            seq_tokens: 8,
        },
        Error::SequenceTooLong {
            sequence: 1,
            tokens: 9,
            seq_tokens: 8,
        },
        Error::SequenceCount {
            found: 3,
            expected: 4,
            why: "slots of the layout",
        },
        Error::CumulativeOrder {
            index: 2,
            value: 4,
            previous: 5,
        },
        Error::OutOfRange {
            name: "sequence",
            value: 4,
            count: 4,
        },
        Error::FragmentGap {
            slot: 0,
            fragment: 1,
            start: 5,
            end: 12,
            expected: 4,
            seq_tokens: 12,
        },
        Error::Overflow {
            name: "work of the window",
            value: 1 << 64,
        },
        Error::BadCost {
            index: 3,
            value: text("NaN"),
        },
        Error::BadSlack {
            value: text("5%"),
            limit: 1000,
        },
        Error::UnknownName {
            what: "mask",
            value: text("ring"),
            legal: "causal, full",
        },
        Error::Combination {
            what: "mask",
            value: text("full"),
            with: "parents of samples",
            legal: "causal",
        },
        Error::Parent {
            sample: 5,
            parent: 7,
            first: 3,
        },
        Error::ReceiveLimit {
            worker: WorkerId(3),
            bytes: 10,
            limit: 9,
        },
        Error::Mismatch {
            name: "seq_tokens",
            left: 12,
            left_of: "lengths",
            right: 16,
            right_of: "layout",
        },
    ];
    let messages: Vec<String> = all.iter().map(Error::to_string).collect();
    for message in &messages {
        assert!(!message.ends_with('.'), "{message}");
        assert!(
            message.chars().any(|c| c.is_ascii_digit()) || message.contains("one of"),
            "{message}"
        );
    }
    insta::assert_snapshot!(messages.join("\n"), @r#"
    CP is 0, must be at least 1
    workers is 9, above the limit of 8
    DP is 6, not a multiple of P 4; legal P: 1, 2, 3, 6
    sequence 1, sample 2: length is 0, must be at least 1 token
    sequence 1, sample 2: length 9 exceeds seq_tokens 8; cut it or raise seq_tokens
    sequence 1: samples add up to 9 tokens, more than seq_tokens 8
    3 sequences given, 4 expected (slots of the layout)
    cu_seqlens[2] is 4 after 5, must start at 0 and never fall
    sequence 4 does not exist, there are 4
    slot 0: fragment 1 covers tokens 5..12, expected to start at 4 and end by 12
    work of the window overflows 64 bits: 18446744073709551616
    cost 3 is NaN, must be finite and not negative
    slack "5%" is not a number from 0 to 1000 (0.03 allows 3 % over the mean)
    mask "ring" is unknown; one of causal, full
    mask full cannot be combined with parents of samples; one of causal
    sample 5: parent 7 must be an earlier sample of its sequence, which begins with sample 3
    w3 would receive 10 bytes, more than max_recv_bytes 9; raise the limit, the slack or the block size, or lower the pool size
    seq_tokens is 12 in lengths but 16 in layout
    "#);
}

#[test]
fn parents_of_samples() {
    let two = || PackedLengths::new(12, [vec![8u64, 4], vec![3, 3, 3]]).unwrap();
    let given =
        |parents: [Option<u32>; 5]| two().with_parents(&parents.map(|parent| parent.map(SampleId)));
    let tree = given([None, Some(0), None, Some(2), Some(3)]).unwrap();
    let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 12, 2).unwrap();
    let heads = HeadSplit::new(2, 2, 4, 4, 2, 1).unwrap();
    let window = PlanConfig {
        mask: Mask::window(4, 0).unwrap(),
        ..PlanConfig::paper(6)
    };
    let tiles = tiles::cut(&tree, &layout, &heads, Mask::Causal, 6).unwrap();
    let home = vec![WorkerId(0); tiles.len()];
    let derive = |pool: &PackedLengths, mask| {
        let fetch = KvFetch::Range;
        exchange::derive(pool, &layout, &heads, &tiles, &home, mask, fetch).map(drop)
    };
    let text = answers(vec![
        ("too few", two().with_parents(&[None; 4]).map(drop)),
        ("itself", given([None, Some(1), None, None, None]).map(drop)),
        (
            "a later one",
            given([None, None, Some(4), None, None]).map(drop),
        ),
        (
            "another sequence",
            given([None, None, None, Some(1), None]).map(drop),
        ),
        (
            "under a window",
            plan_pool(&tree, &layout, &heads, &window).map(drop),
        ),
        ("exchange under a window", derive(&tree, window.mask)),
        (
            "weighed as full",
            tree.work(Proxy::Pairs(Mask::Full)).map(drop),
        ),
        ("tiles of another tree", derive(&two(), Mask::Causal)),
    ]);
    insta::assert_snapshot!(text, @r"
    too few: number of samples is 4 in parents but 5 in lengths
    itself: sample 1: parent 1 must be an earlier sample of its sequence, which begins with sample 0
    a later one: sample 2: parent 4 must be an earlier sample of its sequence, which begins with sample 2
    another sequence: sample 3: parent 1 must be an earlier sample of its sequence, which begins with sample 2
    under a window: mask window:4 cannot be combined with parents of samples; one of causal
    exchange under a window: mask window:4 cannot be combined with parents of samples; one of causal
    weighed as full: mask full cannot be combined with parents of samples; one of causal
    tiles of another tree: parent of a sample is 0 in the tile set but 5 in the pool
    ");
    assert_eq!(given([None; 5]), Ok(two()));
}
