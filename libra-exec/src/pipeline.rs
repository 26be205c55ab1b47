//! The order of one worker's steps: what moves while what computes.
//!
//! *Paper*: §4.5. Chunk m's dispatch is waited for just before it is computed; while it computes,
//! chunk m+1 is dispatched and chunk m−1 returns. Only the first dispatch and the last return are
//! exposed.
//!
//! Where K and V travel in two hops, a chunk's second hop runs beside the chunk before, and its
//! first beside the one before that; sums of gradients leave in the same way. No order can hang: all
//! workers of a pool run the same steps, each start comes before its wait, and no start waits. So
//! the worker that is furthest behind never waits for a start that is still to come.

use std::fmt;

/// A direction of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leg {
    /// Inputs travel to where they are computed.
    Dispatch,
    /// Results travel home.
    Return,
    /// Inputs that have come to a relay travel on within its node.
    Relay,
    /// Gradients of such inputs travel back to the relay.
    Gather,
}

/// One step of a worker's pipeline. Programs of steps have numbered exchanges and compute steps in place of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Begin a leg of a chunk; does not wait.
    Start(Leg, u32),
    /// Wait until a leg of a chunk has arrived, and put it in place.
    Wait(Leg, u32),
    /// Compute a chunk.
    Compute(u32),
}

impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dispatch => "dispatch",
            Self::Return => "return",
            Self::Relay => "relay",
            Self::Gather => "gather",
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(leg, chunk) => write!(f, "start {leg} of chunk {chunk}"),
            Self::Wait(leg, chunk) => write!(f, "wait for {leg} of chunk {chunk}"),
            Self::Compute(chunk) => write!(f, "compute chunk {chunk}"),
        }
    }
}

/// Which second hops a pass has: the same for every worker of a pool, whether it takes part or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hops {
    /// Inputs travel on from relays.
    pub relay: bool,
    /// Gradients are summed at relays.
    pub gather: bool,
}

/// The pipeline over `chunks` in the given order, all of one hop.
///
/// ```
/// use libra_exec::program::{Leg::*, Step::*, pipelined};
/// let steps = pipelined(&[0, 1]);
/// assert_eq!(steps, [
///     Start(Dispatch, 0),
///     Wait(Dispatch, 0), Start(Dispatch, 1), Compute(0),
///     Wait(Dispatch, 1), Start(Return, 0), Compute(1),
///     Start(Return, 1), Wait(Return, 0), Wait(Return, 1),
/// ]);
/// ```
#[must_use]
pub fn pipelined(chunks: &[u32]) -> Vec<Step> {
    pipelined_over(chunks, Hops::default())
}

/// As [`pipelined`], with the second hops that `hops` names.
///
/// ```
/// use libra_exec::program::{Hops, Leg::*, Step::*, pipelined_over};
/// let steps = pipelined_over(&[0, 1], Hops { relay: true, gather: true });
/// assert_eq!(steps, [
///     Start(Dispatch, 0), Wait(Dispatch, 0), Start(Relay, 0), Start(Dispatch, 1),
///     Wait(Relay, 0), Wait(Dispatch, 1), Start(Relay, 1), Compute(0),
///     Wait(Relay, 1), Start(Gather, 0), Compute(1),
///     Start(Gather, 1), Wait(Gather, 0), Start(Return, 0), Wait(Gather, 1), Start(Return, 1),
///     Wait(Return, 0), Wait(Return, 1),
/// ]);
/// ```
#[must_use]
pub fn pipelined_over(chunks: &[u32], hops: Hops) -> Vec<Step> {
    let inward: &[Leg] = if hops.relay {
        &[Leg::Dispatch, Leg::Relay]
    } else {
        &[Leg::Dispatch]
    };
    let outward: &[Leg] = if hops.gather {
        &[Leg::Gather, Leg::Return]
    } else {
        &[Leg::Return]
    };
    let mut steps = Vec::with_capacity(9 * chunks.len());
    let count = chunks.len() as isize;
    for before in -(inward.len() as isize)..0 {
        bring(&mut steps, inward, chunks, before);
    }
    for (at, &chunk) in (0..).zip(chunks) {
        bring(&mut steps, inward, chunks, at);
        take(&mut steps, outward, chunks, at);
        steps.push(Step::Compute(chunk));
    }
    for after in count..count + outward.len() as isize {
        take(&mut steps, outward, chunks, after);
    }
    steps.extend(
        chunks
            .iter()
            .map(|&chunk| Step::Wait(outward[outward.len() - 1], chunk)),
    );
    steps
}

/// Before the chunk at `place` is computed: its last inward leg arrives, and every other leg moves a
/// later chunk on by one leg.
fn bring(steps: &mut Vec<Step>, legs: &[Leg], chunks: &[u32], place: isize) {
    let mut next = None;
    for (ahead, &leg) in (0..).zip(legs.iter().rev()) {
        if let Some(chunk) = at(chunks, place + ahead) {
            steps.push(Step::Wait(leg, chunk));
            steps.extend(next.map(|leg| Step::Start(leg, chunk)));
        }
        next = Some(leg);
    }
    let first = at(chunks, place + legs.len() as isize);
    steps.extend(first.map(|chunk| Step::Start(legs[0], chunk)));
}

/// Beside the chunk at `place`: results of the one before set out, those of earlier ones move on.
fn take(steps: &mut Vec<Step>, legs: &[Leg], chunks: &[u32], place: isize) {
    let mut arrived = None;
    for (behind, &leg) in (1..).zip(legs) {
        if let Some(chunk) = at(chunks, place - behind) {
            steps.extend(arrived.map(|leg| Step::Wait(leg, chunk)));
            steps.push(Step::Start(leg, chunk));
        }
        arrived = Some(leg);
    }
}

fn at(chunks: &[u32], place: isize) -> Option<u32> {
    chunks.get(usize::try_from(place).ok()?).copied()
}
