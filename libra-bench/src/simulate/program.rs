//! What the simulator runs: the steps, messages and attention of every worker of a group.
//!
//! A plan becomes one by way of the executor's own [`RankProgram`]s; methods that are no plan, as ring attention, make
//! theirs directly.

use libra_exec::program::{Leg, Pass, RankProgram, Step as PassStep};

/// Attention of consecutive queries of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attention {
    /// Number of queries.
    pub(crate) queries: u32,
    /// Query heads.
    pub(crate) heads: u32,
    /// Query–key pairs of one head.
    pub(crate) pairs: u64,
}

/// Bytes to or from one worker of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The other worker, counted within the group.
    pub(crate) peer: u32,
    /// As the plan counts them.
    pub(crate) bytes: u64,
}

/// Messages that start together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// To peers.
    pub(crate) sends: Vec<Message>,
    /// From peers.
    pub(crate) receives: Vec<Message>,
}

/// One step; numbers are places in [`Worker::exchanges`] and [`Worker::computes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Sends of the exchange set out; does not wait.
    Start(u32),
    /// Until all receives of the exchange are here and its sends have left.
    Wait(u32),
    /// Attention.
    Compute(u32),
}

/// One worker of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Worker {
    /// In order.
    pub(crate) steps: Vec<Step>,
    /// What moves. Every worker of the group numbers its exchanges alike.
    pub(crate) exchanges: Vec<Exchange>,
    /// What is computed.
    pub(crate) computes: Vec<Vec<Attention>>,
}

/// One direction of one layer in one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Program {
    /// By worker of the group.
    pub(crate) workers: Vec<Worker>,
}

impl Program {
    /// Forward passes of a pool's workers.
    pub(crate) fn forward(programs: &[RankProgram]) -> Self {
        Self::of(programs, |program| &program.forward)
    }

    /// Backward passes of a pool's workers.
    pub(crate) fn backward(programs: &[RankProgram]) -> Self {
        Self::of(programs, |program| &program.backward)
    }

    fn of(programs: &[RankProgram], pass: impl Fn(&RankProgram) -> &Pass) -> Self {
        let worker = |program: &RankProgram| worker(program, pass(program));
        Self {
            workers: programs.iter().map(worker).collect(),
        }
    }
}

fn worker(program: &RankProgram, pass: &Pass) -> Worker {
    let chunks = program.heads.chunks();
    let legs = [Leg::Dispatch, Leg::Relay, Leg::Gather, Leg::Return];
    let number = |leg: Leg, chunk: u32| leg_number(leg) * chunks + chunk;
    let step = |step: &PassStep| match *step {
        PassStep::Start(leg, chunk) => Step::Start(number(leg, chunk)),
        PassStep::Wait(leg, chunk) => Step::Wait(number(leg, chunk)),
        PassStep::Compute(chunk) => Step::Compute(chunk),
    };
    let messages = |messages: &[libra_exec::program::Message]| {
        let message = |message: &libra_exec::program::Message| Message {
            peer: message.peer.0,
            bytes: message.bytes,
        };
        messages.iter().map(message).collect()
    };
    let used = |leg: Leg, chunk: u32| pass.steps.contains(&PassStep::Start(leg, chunk));
    let exchange = |(leg, chunk): (Leg, u32)| {
        if !used(leg, chunk) {
            return Exchange::default();
        }
        let exchange = pass.exchange(leg, chunk);
        Exchange {
            sends: messages(&exchange.sends),
            receives: messages(&exchange.receives),
        }
    };
    let attention = |chunk: u32| {
        let of_entry = |entry: &libra_exec::program::Entry| Attention {
            queries: entry.rows,
            heads: program.heads_of(entry, chunk).len() as u32,
            pairs: program.pairs_of(entry),
        };
        program.entries.iter().map(of_entry).collect()
    };
    let all = legs
        .into_iter()
        .flat_map(|leg| (0..chunks).map(move |chunk| (leg, chunk)));
    Worker {
        steps: pass.steps.iter().map(step).collect(),
        exchanges: all.map(exchange).collect(),
        computes: (0..chunks).map(attention).collect(),
    }
}

const fn leg_number(leg: Leg) -> u32 {
    match leg {
        Leg::Dispatch => 0,
        Leg::Relay => 1,
        Leg::Gather => 2,
        Leg::Return => 3,
    }
}
