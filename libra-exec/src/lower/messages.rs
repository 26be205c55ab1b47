//! Passes of a worker: the parts of its tensors that each leg of each chunk moves.

use std::collections::BTreeMap;
use std::ops::Range;

use libra_sched::reverse::BackwardPlan;
use libra_sched::{BackwardMode, ElementBytes, KvMove, SampleId, TileMove, WorkerId};

use super::Lowering;
use super::kinds::{Hop, KvLike, KvTime, QLike};
use crate::program::{Exchange, Hops, LocalCopy, Message, Part, Pass, Tensor, pipelined_over};

impl Lowering<'_> {
    pub(super) fn forward(&self, backward: &BackwardPlan) -> Pass {
        let plan = self.plan;
        let chunks = plan.heads.chunks();
        let order: Vec<u32> = (0..chunks).collect();
        let lse_home = backward.mode == BackwardMode::Refetch;
        let hops = Hops {
            relay: !plan.exchange.forward.is_empty(),
            gather: false,
        };
        let mut dispatch = self.exchanges();
        let mut relay = self.exchanges();
        let mut back = self.exchanges();
        for chunk in 0..chunks {
            let at = &mut dispatch[chunk as usize];
            self.tile_parts(at, &plan.exchange.q, chunk, &[QLike::Q]);
            self.kv_parts(
                at,
                &plan.exchange.kv,
                chunk,
                KvTime::First,
                KvLike::Input,
                Hop::First,
            );
            let (at, moves) = (&mut relay[chunk as usize], &plan.exchange.forward);
            self.kv_parts(at, moves, chunk, KvTime::First, KvLike::Input, Hop::Second);
            let results: &[QLike] = if lse_home {
                &[QLike::O, QLike::Lse]
            } else {
                &[QLike::O]
            };
            self.tile_parts(&mut back[chunk as usize], &plan.exchange.o, chunk, results);
        }
        Pass {
            steps: pipelined_over(&order, hops),
            dispatch: finish(dispatch),
            relay: finish(relay),
            gather: finish(self.exchanges()),
            back: finish(back),
            copies_in: order
                .iter()
                .map(|&c| self.copies(c, KvTime::First, KvLike::Input))
                .collect(),
            copies_out: vec![Vec::new(); chunks as usize],
        }
    }

    pub(super) fn backward(&self, backward: &BackwardPlan) -> Pass {
        let chunks = self.plan.heads.chunks();
        // Descending: the chunk that fetched a KV head is then the last to touch its gradient, so
        // retracing the fetch returns a finished sum.
        let order: Vec<u32> = (0..chunks).rev().collect();
        let again = backward.mode == BackwardMode::Refetch;
        let hops = Hops {
            relay: !backward.forward.is_empty(),
            gather: !backward.gather.is_empty(),
        };
        let mut dispatch = self.exchanges();
        let mut relay = self.exchanges();
        let mut gather = self.exchanges();
        let mut back = self.exchanges();
        for chunk in 0..chunks {
            let at = &mut dispatch[chunk as usize];
            self.tile_parts(at, &backward.d_o, chunk, &[QLike::DO]);
            self.tile_parts(
                at,
                &backward.q,
                chunk,
                &[QLike::Q, QLike::Lse, QLike::Delta],
            );
            self.kv_parts(
                at,
                &backward.kv,
                chunk,
                KvTime::Last,
                KvLike::Input,
                Hop::First,
            );
            let (at, moves) = (&mut relay[chunk as usize], &backward.forward);
            self.kv_parts(at, moves, chunk, KvTime::Last, KvLike::Input, Hop::Second);
            // The same chunk goes home after the relay has all of its node's shares.
            let (at, moves) = (&mut gather[chunk as usize], &backward.gather);
            self.kv_parts(
                at,
                moves,
                chunk,
                KvTime::First,
                KvLike::Gradient,
                Hop::Second,
            );
            let at = &mut back[chunk as usize];
            self.tile_parts(at, &backward.d_q, chunk, &[QLike::DQ]);
            self.kv_parts(
                at,
                &backward.d_kv,
                chunk,
                KvTime::First,
                KvLike::Gradient,
                Hop::First,
            );
        }
        let in_order = 0..chunks;
        let copies_in = |c| {
            if again {
                self.copies(c, KvTime::Last, KvLike::Input)
            } else {
                Vec::new()
            }
        };
        Pass {
            steps: pipelined_over(&order, hops),
            dispatch: finish(dispatch),
            relay: finish(relay),
            gather: finish(gather),
            back: finish(back),
            copies_in: in_order.clone().map(copies_in).collect(),
            copies_out: in_order
                .map(|c| self.copies(c, KvTime::First, KvLike::Gradient))
                .collect(),
        }
    }

    fn exchanges(&self) -> Vec<Building> {
        (0..self.plan.heads.chunks())
            .map(|_| Building::default())
            .collect()
    }

    /// Chunk `chunk`'s heads of every tile in `moves` that this worker sends or receives.
    fn tile_parts(&self, at: &mut Building, moves: &[TileMove], chunk: u32, what: &[QLike]) {
        for m in moves
            .iter()
            .filter(|m| m.src == self.worker || m.dst == self.worker)
        {
            let tile = &self.plan.tiles[m.tile.index()];
            let heads = self.chunk_heads(tile.shard, chunk);
            let home = tile.q_home == self.worker;
            let (row, column) = if home {
                (self.row_of(tile.start), heads.start - self.first_heads().0)
            } else {
                let first = tile.shard * self.plan.heads.shard_width();
                (self.staged_row[&m.tile], heads.start - first)
            };
            for &kind in what {
                let part = Part {
                    tensor: if home { kind.home() } else { kind.staged() },
                    row,
                    rows: tile.len(),
                    head: column,
                    heads: heads.end - heads.start,
                };
                at.push(self, m.src, m.dst, part);
            }
        }
    }

    /// Query heads of `shard` that the plan computes in `chunk`; consecutive by `verify`.
    fn chunk_heads(&self, shard: u32, chunk: u32) -> Range<u32> {
        let table = &self.plan.q_chunks;
        let heads = self.plan.heads.q_of_shard(shard);
        let first = heads
            .clone()
            .find(|&h| table[h as usize] == chunk)
            .unwrap_or(heads.end);
        let end = (first..heads.end)
            .find(|&h| table[h as usize] != chunk)
            .unwrap_or(heads.end);
        first..end
    }

    /// KV heads of `span` that travel with `chunk`, and their place within the span.
    fn kv_heads(&self, span: u32, chunk: u32, time: KvTime) -> impl Iterator<Item = (u32, u32)> {
        let heads = self.plan.heads.kv_of_span(span);
        let table = &self.plan.kv_chunks;
        (0..)
            .zip(heads)
            .filter(move |&(_, head)| table[head as usize][time as usize] == chunk)
    }

    /// K and V (or dK and dV) of the moves that this worker sends or receives with `chunk`.
    fn kv_parts(
        &self,
        at: &mut Building,
        moves: &[KvMove],
        chunk: u32,
        time: KvTime,
        what: KvLike,
        hop: Hop,
    ) {
        for m in moves
            .iter()
            .filter(|m| m.src == self.worker || m.dst == self.worker)
        {
            // Gradients travel from where the group was read to its home; a relay is no home.
            let home = match (hop, what) {
                (Hop::First, KvLike::Input) => m.src == self.worker,
                (Hop::First, KvLike::Gradient) => m.dst == self.worker,
                (Hop::Second, _) => false,
            };
            let tokens = m.start..m.end;
            for (place, head) in self.kv_heads(m.span, chunk, time) {
                for part in self.kv_pair(home, m.sample.0, m.span, place, head, &tokens, what) {
                    at.push(self, m.src, m.dst, part);
                }
            }
        }
    }

    /// The K and the V part of `tokens` of one KV head, own or staged.
    #[allow(clippy::too_many_arguments)] // One call site a direction; a struct would be built to be taken apart.
    fn kv_pair(
        &self,
        home: bool,
        sample: u32,
        span: u32,
        place: u32,
        head: u32,
        tokens: &Range<u32>,
        what: KvLike,
    ) -> [Part; 2] {
        let rows = tokens.end - tokens.start;
        let (row, head) = if home {
            (self.row_of(tokens.start), head - self.first_heads().1)
        } else {
            let group = &self.groups[&(sample, span)];
            let first = self.plan.lengths.tokens(SampleId(sample)).start + group.tokens.start;
            (group.row_of_head(place) + tokens.start - first, 0)
        };
        what.tensors(home).map(|tensor| Part {
            tensor,
            row,
            rows,
            head,
            heads: 1,
        })
    }

    /// Own tokens of staged groups, in or out, for the KV heads that travel with `chunk`.
    fn copies(&self, chunk: u32, time: KvTime, what: KvLike) -> Vec<LocalCopy> {
        let mut copies = Vec::new();
        let (slot, ..) = self.plan.layout.place_of(self.worker);
        for (&(sample, span), group) in &self.groups {
            let own_slot = self
                .plan
                .lengths
                .samples_of(slot as usize)
                .contains(&(sample as usize));
            if !group.staged || !own_slot || !self.holds_span(span) {
                continue;
            }
            let start = self.plan.lengths.tokens(SampleId(sample)).start;
            let there = start + group.tokens.start..start + group.tokens.end;
            for (held, _) in &self.held {
                let tokens = held.start.max(there.start)..held.end.min(there.end);
                if tokens.start >= tokens.end {
                    continue;
                }
                for (place, head) in self.kv_heads(span, chunk, time) {
                    let own = self.kv_pair(true, sample, span, place, head, &tokens, what);
                    let staged = self.kv_pair(false, sample, span, place, head, &tokens, what);
                    for (own, staged) in own.into_iter().zip(staged) {
                        copies.push(match what {
                            KvLike::Input => LocalCopy {
                                from: own,
                                to: staged,
                            },
                            KvLike::Gradient => LocalCopy {
                                from: staged,
                                to: own,
                            },
                        });
                    }
                }
            }
        }
        copies
    }

    /// Whether this worker's tensor rank holds the KV heads of `span`.
    pub(super) fn holds_span(&self, span: u32) -> bool {
        let (_, _, tensor) = self.plan.layout.place_of(self.worker);
        let own = self.plan.layout.kv_heads_of(&self.plan.heads, tensor);
        own.contains(&self.plan.heads.kv_of_span(span).start)
    }

    fn bytes(&self, part: &Part) -> u64 {
        let ElementBytes {
            activation,
            statistic,
        } = self.plan.bytes;
        let width = self.shapes[part.tensor as usize].width as u64;
        let element = match part.tensor {
            Tensor::Lse | Tensor::Delta | Tensor::StagedLse | Tensor::StagedDelta => statistic,
            _ => activation,
        };
        u64::from(part.rows) * u64::from(part.heads) * width * u64::from(element)
    }
}

/// Messages of one leg of one chunk while they are collected.
#[derive(Default)]
struct Building {
    sends: BTreeMap<WorkerId, Message>,
    receives: BTreeMap<WorkerId, Message>,
}

impl Building {
    fn push(&mut self, lowering: &Lowering<'_>, src: WorkerId, dst: WorkerId, part: Part) {
        let (side, peer) = if src == lowering.worker {
            (&mut self.sends, dst)
        } else {
            (&mut self.receives, src)
        };
        let message = side.entry(peer).or_insert_with(|| Message {
            peer,
            parts: Vec::new(),
            elements: 0,
            bytes: 0,
            moves_on: false,
        });
        let width = lowering.shapes[part.tensor as usize].width;
        message.elements += part.rows as usize * part.heads as usize * width;
        message.bytes += lowering.bytes(&part);
        message.parts.push(part);
    }
}

fn finish(building: Vec<Building>) -> Vec<Exchange> {
    building
        .into_iter()
        .map(|b| Exchange {
            sends: b.sends.into_values().collect(),
            receives: b.receives.into_values().collect(),
        })
        .collect()
}
