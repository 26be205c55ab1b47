//! Messages of steps: which rows of which tensor go to which peer in which exchange.

use libra_sched::WorkerId;

use super::{Located, Piece, Place, Steps, Worker};
use crate::program::{Exchange, Message, Part, Tensor};

/// Who sends from where, and who receives where.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Sender.
    pub src: u32,
    /// Where the pieces lie at the sender.
    pub from: Place,
    /// Receiver.
    pub dst: u32,
    /// Where they come to lie at the receiver.
    pub to: Place,
}

/// One side of a message; rows of a buffer count from its first.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    is_send: bool,
    peer: u32,
    place: Place,
    is_gradient: bool,
    /// First row and number of rows.
    runs: Vec<(u32, u32)>,
}

impl Steps {
    /// K and V of `pieces` travel with an exchange, and lie behind what it has brought to the receiver so far. No message
    /// where there is nothing to send, or nowhere to.
    ///
    /// # Panics
    /// If the sender has not all of them in its place, or they are to arrive anywhere but where an exchange puts them.
    pub fn send_keys(&mut self, route: Route, pieces: &[Piece]) {
        let Place::Arrived(exchange) = route.to else {
            panic!("K and V arrive where an exchange puts them");
        };
        if pieces.is_empty() || route.src == route.dst {
            return;
        }
        let arrival = at_number(
            &mut self.workers[route.dst as usize].arrivals,
            exchange as usize,
        );
        let mut row = arrival.iter().map(|located| located.piece.len()).sum();
        for &piece in pieces {
            arrival.push(Located { piece, row });
            row += piece.len();
        }
        arrival.sort_unstable();
        self.transfer(exchange, route, pieces, false);
    }

    /// dK and dV of `pieces` leave their place at the sender with `exchange`, and are added to what the receiver has in
    /// its. No message as with keys.
    ///
    /// # Panics
    /// If one of the two has not all of them in its place.
    pub fn send_gradients(&mut self, exchange: u32, route: Route, pieces: &[Piece]) {
        if !pieces.is_empty() && route.src != route.dst {
            self.transfer(exchange, route, pieces, true);
        }
    }

    fn transfer(&mut self, exchange: u32, route: Route, pieces: &[Piece], is_gradient: bool) {
        for (worker, peer, place, is_send) in [
            (route.src, route.dst, route.from, true),
            (route.dst, route.src, route.to, false),
        ] {
            let worker = &mut self.workers[worker as usize];
            let transfer = Transfer {
                is_send,
                peer,
                place,
                is_gradient,
                runs: runs(worker.at(place), pieces),
            };
            let exchanges = if is_gradient {
                &mut worker.gradients
            } else {
                &mut worker.keys
            };
            at_number(exchanges, exchange as usize).push(transfer);
        }
    }

    /// The messages of one exchange at `worker`, whose buffers begin at `first_rows`.
    pub(super) fn exchange(&self, transfers: &[Transfer], first_rows: &[u32]) -> Exchange {
        let of = |is_send: bool| {
            let own = transfers.iter().filter(|t| t.is_send == is_send);
            let mut messages: Vec<Message> = own.map(|t| self.message(t, first_rows)).collect();
            // Ascending peers: sums of gradients have one order.
            messages.sort_by_key(|message| message.peer);
            messages
        };
        Exchange {
            sends: of(true),
            receives: of(false),
        }
    }

    fn message(&self, transfer: &Transfer, first_rows: &[u32]) -> Message {
        let heads = &self.heads;
        let (first, is_own) = match transfer.place {
            Place::Own => (0, true),
            Place::Arrived(exchange) => {
                (first_rows[self.buffers[exchange as usize] as usize], false)
            }
        };
        let tensors = match (transfer.is_gradient, is_own) {
            (false, true) => [Tensor::K, Tensor::V],
            (false, false) => [Tensor::StagedK, Tensor::StagedV],
            (true, true) => [Tensor::DK, Tensor::DV],
            (true, false) => [Tensor::StagedDK, Tensor::StagedDV],
        };
        let part = |tensor, &(row, rows): &(u32, u32)| Part {
            tensor,
            row: first + row,
            rows,
            head: 0,
            heads: heads.kv_heads(),
        };
        let of = |tensor| transfer.runs.iter().map(move |run| part(tensor, run));
        let rows = transfer.rows();
        let width = (heads.dim_qk() + heads.dim_v()) as usize;
        Message {
            peer: WorkerId(transfer.peer),
            parts: tensors.into_iter().flat_map(of).collect(),
            elements: rows as usize * heads.kv_heads() as usize * width,
            bytes: rows * self.bytes.kv_token(heads, heads.kv_heads()),
            moves_on: transfer.is_gradient && transfer.is_send,
        }
    }

    /// First row of every buffer of `worker`, and the number of all rows.
    pub(super) fn first_rows(&self, worker: &Worker) -> Vec<u32> {
        let buffers = self
            .buffers
            .iter()
            .max()
            .map_or(0, |&last| last as usize + 1);
        let mut rows = vec![0; buffers];
        for (arrival, &buffer) in worker.arrivals.iter().zip(&self.buffers) {
            let tokens: u32 = arrival.iter().map(|located| located.piece.len()).sum();
            rows[buffer as usize] = tokens.max(rows[buffer as usize]);
        }
        let mut first = vec![0];
        first.extend(rows.into_iter().scan(0, |end, rows| {
            *end += rows;
            Some(*end)
        }));
        first
    }
}

impl Transfer {
    fn rows(&self) -> u64 {
        self.runs.iter().map(|&(_, rows)| u64::from(rows)).sum()
    }

    /// What tells it from another one.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let runs = self.runs.iter().flat_map(|&(row, rows)| [row, rows]);
        let who = [u32::from(self.is_send), self.peer, self.runs.len() as u32];
        who.into_iter().chain(runs)
    }
}

impl Worker {
    /// What is at `place`, by (sample, token); rows count from the place's first.
    pub(super) fn at(&self, place: Place) -> &[Located] {
        match place {
            Place::Own => &self.held,
            Place::Arrived(exchange) => {
                let arrival = self.arrivals.get(exchange as usize);
                arrival.map_or(&[], Vec::as_slice)
            }
        }
    }
}

/// Rows of `pieces`, those that adjoin in one.
fn runs(there: &[Located], pieces: &[Piece]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for piece in pieces {
        let begins_before =
            |l: &Located| (l.piece.sample, l.piece.start) <= (piece.sample, piece.start);
        let at = there.partition_point(begins_before).checked_sub(1);
        let holds = |l: &&Located| l.piece.sample == piece.sample && piece.end <= l.piece.end;
        let located = at.map(|at| &there[at]).filter(holds);
        let located = located.expect("what travels is there");
        let row = located.row + piece.start - located.piece.start;
        match runs.last_mut() {
            Some((first, rows)) if *first + *rows == row => *rows += piece.len(),
            _ => runs.push((row, piece.len())),
        }
    }
    runs
}

fn at_number<T>(lists: &mut Vec<Vec<T>>, number: usize) -> &mut Vec<T> {
    let count = lists.len().max(number + 1);
    lists.resize_with(count, Vec::new);
    &mut lists[number]
}
