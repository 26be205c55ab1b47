//! One copy of a KV range a node: direct moves become a first hop to a relay, and forwards inside its node.
//!
//! In: moves that each come from a home. Out: the same deliveries, in two lists. A range whose home is
//! on another node is cut where its set of readers on the node changes; every piece crosses once, to
//! one of its readers, and the others get it from there. So a relay reads all that it forwards, and
//! each worker receives as many bytes as before: only the sender is another.
//!
//! Each GPU has its own port to the network, so pieces go to the reader whose port has received
//! least: pieces with a single reader first, then the others, largest first. O((m + f) log m) for m
//! moves and f forwards.
//!
//! *Paper*: beyond it; §4.4 fetches a group once a destination. The rule is the greedy one of R. L.
//! Graham, "Bounds on multiprocessing timing anomalies" (1969), on ports instead of machines.

use std::cmp::Reverse;
use std::ops::Range;

use super::{ExchangePlan, KvMove, KvRoute, TileMove};
use crate::error::{Error, check_limit};
use crate::heads::HeadSplit;
use crate::ids::WorkerId;
use crate::lengths::MAX_COUNT;
use crate::tiles::ShTile;
use crate::topology::Topology;

/// Sends the moves of `direct`, all from homes, along `route`; `tiles` are those that Q moves name.
///
/// ```
/// use libra_sched::exchange::{KvRoute, route};
/// use libra_sched::{Error, ExchangePlan, HeadSplit, KvMove, SampleId, Topology, WorkerId};
/// let read = |dst, end| KvMove {
///     dst: WorkerId(dst), sample: SampleId(0), span: 0, start: 0, end, src: WorkerId(0),
/// };
/// // Worker 2 reads six tokens of worker 0 and worker 3 reads four: two nodes of two.
/// let direct = ExchangePlan { kv: vec![read(2, 6), read(3, 4)], ..ExchangePlan::default() };
/// let heads = HeadSplit::new(1, 1, 8, 8, 1, 1)?;
/// let routed = route(direct, &heads, &[], KvRoute::Node(Topology::new(2)?))?;
/// // Only worker 2 reads the last two, so the port of worker 3 is idle and takes the first four.
/// assert_eq!(routed.kv, [KvMove { start: 4, ..read(2, 6) }, read(3, 4)]);
/// assert_eq!(routed.forward, [KvMove { src: WorkerId(3), ..read(2, 4) }]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Too many moves.
pub fn route(
    direct: ExchangePlan,
    heads: &HeadSplit,
    tiles: &[ShTile],
    route: KvRoute,
) -> Result<ExchangePlan, Error> {
    let mut plan = direct;
    if let KvRoute::Node(topology) = route {
        let mut scratch = Scratch::default();
        route_with(&mut scratch, &mut plan.kv, &plan.q, heads, tiles, topology)?;
        plan.forward = scratch.forward;
    }
    Ok(plan)
}

/// Memory that the step reuses.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    entering: Vec<KvMove>,
    pieces: Pieces,
    ports: Vec<u128>,
    /// What relays send on, of the moves routed last.
    pub(super) forward: Vec<KvMove>,
}

/// As [`route`] through nodes: `kv` becomes the first hops, and `scratch` has the forwards.
pub(super) fn route_with(
    scratch: &mut Scratch,
    kv: &mut Vec<KvMove>,
    q: &[TileMove],
    heads: &HeadSplit,
    tiles: &[ShTile],
    topology: Topology,
) -> Result<(), Error> {
    let Scratch {
        entering,
        pieces,
        ports,
        forward,
    } = scratch;
    entering.clear();
    entering.extend(kv.extract_if(.., |m| topology.crosses_nodes(m.src, m.dst)));
    entering.sort_unstable_by_key(|m| (topology.node(m.dst), m.sample, m.span, m.src, m.start));
    let same = |a: &KvMove, b: &KvMove| {
        (topology.node(a.dst), a.sample, a.span, a.src)
            == (topology.node(b.dst), b.sample, b.span, b.src)
    };
    pieces.list.clear();
    pieces.readers.clear();
    for moves in entering.chunk_by(same) {
        pieces.cut(moves);
        check_limit(
            "number of KV deliveries",
            pieces.readers.len() as u128,
            MAX_COUNT.into(),
        )?;
    }
    let mut ports = Ports::new(ports, q, heads, tiles, topology);
    pieces.choose_relays(heads, &mut ports);
    forward.clear();
    for piece in &pieces.list {
        kv.push(piece.first_hop);
        for &dst in pieces.readers_of(piece) {
            let src = piece.first_hop.dst;
            if dst != src {
                forward.push(KvMove {
                    dst,
                    src,
                    ..piece.first_hop
                });
            }
        }
    }
    for moves in [kv, forward] {
        moves.sort_unstable();
        join(moves);
        check_limit("number of KV moves", moves.len() as u128, MAX_COUNT.into())?;
    }
    Ok(())
}

/// Elements that have reached each worker over the network.
struct Ports<'a> {
    received: &'a mut Vec<u128>,
}

impl<'a> Ports<'a> {
    /// Q that comes from other nodes is there in any case.
    fn new(
        received: &'a mut Vec<u128>,
        q: &[TileMove],
        heads: &HeadSplit,
        tiles: &[ShTile],
        topology: Topology,
    ) -> Self {
        received.clear();
        let mut ports = Self { received };
        let row = u128::from(heads.shard_width()) * u128::from(heads.dim_qk());
        for m in q {
            if topology.crosses_nodes(m.src, m.dst) {
                *ports.at(m.dst) += row * u128::from(tiles[m.tile.index()].len());
            }
        }
        ports
    }

    fn at(&mut self, worker: WorkerId) -> &mut u128 {
        if self.received.len() <= worker.index() {
            self.received.resize(worker.index() + 1, 0);
        }
        &mut self.received[worker.index()]
    }
}

/// Consecutive tokens of one home that the same workers of a node read.
#[derive(Clone, Debug)]
struct Piece {
    /// To the first of the readers, until a relay is chosen.
    first_hop: KvMove,
    /// Place of the readers in [`Pieces::readers`].
    readers: Range<usize>,
}

#[derive(Clone, Debug, Default)]
struct Pieces {
    list: Vec<Piece>,
    /// Readers of one piece after another, ascending.
    readers: Vec<WorkerId>,
    /// Edges of the moves at hand: token, whether the move ends there, reader.
    edges: Vec<(u32, bool, WorkerId)>,
    /// Readers of the tokens at hand, ascending.
    reading: Vec<WorkerId>,
    /// Pieces with several readers, by size.
    shared: Vec<(Reverse<u128>, usize)>,
}

impl Pieces {
    fn readers_of(&self, piece: &Piece) -> &[WorkerId] {
        &self.readers[piece.readers.clone()]
    }

    /// Cuts `moves`, of one node, sample, span and home, where their set of readers changes.
    fn cut(&mut self, moves: &[KvMove]) {
        self.edges.clear();
        for m in moves {
            self.edges.push((m.start, false, m.dst));
            self.edges.push((m.end, true, m.dst));
        }
        // Of one reader's moves that touch, the earlier ends before the later begins.
        self.edges
            .sort_unstable_by_key(|&(token, ends, dst)| (token, !ends, dst));
        self.reading.clear();
        let mut start = 0;
        for &(token, ends, dst) in &self.edges {
            if start < token && !self.reading.is_empty() {
                let begin = self.readers.len();
                self.readers.extend(&self.reading);
                self.list.push(Piece {
                    first_hop: KvMove {
                        dst: self.reading[0],
                        start,
                        end: token,
                        ..moves[0]
                    },
                    readers: begin..self.readers.len(),
                });
            }
            start = token;
            match (self.reading.binary_search(&dst), ends) {
                (Ok(place), true) => drop(self.reading.remove(place)),
                (Err(place), false) => self.reading.insert(place, dst),
                // No worker fetches a token twice.
                _ => {}
            }
        }
    }

    /// The reader of each piece whose port has received least so far; the first of equals.
    fn choose_relays(&mut self, heads: &HeadSplit, ports: &mut Ports<'_>) {
        let width = u128::from(heads.dim_qk()) + u128::from(heads.dim_v());
        self.shared.clear();
        for (at, piece) in self.list.iter().enumerate() {
            let span = heads.kv_of_span(piece.first_hop.span);
            let size = u128::from(piece.first_hop.tokens()) * span.len() as u128 * width;
            if piece.readers.len() == 1 {
                *ports.at(piece.first_hop.dst) += size;
            } else {
                self.shared.push((Reverse(size), at));
            }
        }
        self.shared.sort_unstable();
        for &(Reverse(size), at) in &self.shared {
            let piece = &mut self.list[at];
            let relay = self.readers[piece.readers.clone()]
                .iter()
                .copied()
                .min_by_key(|&reader| (*ports.at(reader), reader))
                .expect("a piece has a reader");
            *ports.at(relay) += size;
            piece.first_hop.dst = relay;
        }
    }
}

/// Joins moves that follow each other between the same workers.
fn join(moves: &mut Vec<KvMove>) {
    moves.dedup_by(|next, last| {
        let follows = (last.dst, last.sample, last.span, last.end, last.src)
            == (next.dst, next.sample, next.span, next.start, next.src);
        if follows {
            last.end = next.end;
        }
        follows
    });
}
