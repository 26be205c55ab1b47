//! What the simulator runs: the steps, messages and attention of every worker of a group.
//!
//! It is made of the executor's own [`RankProgram`]s, those of a plan or those of steps, so that what is simulated is what is
//! sent.

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
    let firsts = first_numbers(pass);
    let number = |leg: Leg, exchange: u32| firsts[leg_number(leg)] + exchange;
    let step = |step: &PassStep| match *step {
        PassStep::Start(leg, exchange) => Step::Start(number(leg, exchange)),
        PassStep::Wait(leg, exchange) => Step::Wait(number(leg, exchange)),
        PassStep::Compute(part) => Step::Compute(part),
    };
    let messages = |messages: &[libra_exec::program::Message]| {
        let message = |message: &libra_exec::program::Message| Message {
            peer: message.peer.0,
            bytes: message.bytes,
        };
        messages.iter().map(message).collect()
    };
    let mut exchanges = vec![Exchange::default(); firsts[LEGS.len()] as usize];
    for step in &pass.steps {
        if let PassStep::Start(leg, exchange) = *step {
            let own = pass.exchange(leg, exchange);
            exchanges[number(leg, exchange) as usize] = Exchange {
                sends: messages(&own.sends),
                receives: messages(&own.receives),
            };
        }
    }
    let attention = |part: u32| {
        let of_entry = |entry: &libra_exec::program::Entry| Attention {
            queries: entry.rows,
            heads: program.heads_of(entry, part).len() as u32,
            pairs: program.pairs_of(entry),
        };
        program.entries_of(part).iter().map(of_entry).collect()
    };
    Worker {
        steps: pass.steps.iter().map(step).collect(),
        exchanges,
        computes: (0..program.compute_steps()).map(attention).collect(),
    }
}

/// In the order in which exchanges are numbered.
const LEGS: [Leg; 4] = [Leg::Dispatch, Leg::Relay, Leg::Gather, Leg::Return];

/// Number of the first exchange of each leg, and of all exchanges.
pub(crate) fn first_numbers(pass: &Pass) -> [u32; LEGS.len() + 1] {
    let counts = [&pass.dispatch, &pass.relay, &pass.gather, &pass.back].map(Vec::len);
    let mut firsts = [0; LEGS.len() + 1];
    for (leg, count) in counts.into_iter().enumerate() {
        firsts[leg + 1] = firsts[leg] + count as u32;
    }
    firsts
}

/// Place of `leg` in [`LEGS`].
pub(crate) const fn leg_number(leg: Leg) -> usize {
    match leg {
        Leg::Dispatch => 0,
        Leg::Relay => 1,
        Leg::Gather => 2,
        Leg::Return => 3,
    }
}
