//! Messages over `std::sync::mpsc`: one inbox a worker, one sender a peer.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use libra_sched::{PlanId, WorkerId};
use num_traits::Float;

use super::{CpuBuffer, CpuDevice};
use crate::backend::{Tag, Transport};
use crate::error::Failure;

enum Packet<T> {
    Hello(PlanId),
    Data(Tag, CpuBuffer<T>),
    Abort(String),
}

/// One worker's end of a mesh of channels.
pub struct ChannelTransport<T> {
    worker: WorkerId,
    outboxes: Vec<Sender<(WorkerId, Packet<T>)>>,
    inbox: Receiver<(WorkerId, Packet<T>)>,
    /// Arrived and not yet asked for.
    early: BTreeMap<(Tag, WorkerId), CpuBuffer<T>>,
    hellos: BTreeMap<WorkerId, PlanId>,
}

impl<T> std::fmt::Debug for ChannelTransport<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelTransport")
            .field("worker", &self.worker)
            .field("peers", &self.outboxes.len())
            .finish_non_exhaustive()
    }
}

/// Ends of a full mesh between `workers` workers.
#[must_use]
pub fn mesh<T>(workers: u32) -> Vec<ChannelTransport<T>> {
    let (outboxes, inboxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| channel()).unzip();
    inboxes
        .into_iter()
        .zip(0..)
        .map(|(inbox, id)| ChannelTransport {
            worker: WorkerId(id),
            outboxes: outboxes.clone(),
            inbox,
            early: BTreeMap::new(),
            hellos: BTreeMap::new(),
        })
        .collect()
}

impl<T> ChannelTransport<T> {
    fn peers(&self) -> impl Iterator<Item = WorkerId> + use<T> {
        let own = self.worker;
        (0..self.outboxes.len())
            .map(WorkerId::new)
            .filter(move |&peer| peer != own)
    }

    fn send(&self, peer: WorkerId, packet: Packet<T>) -> Result<(), Failure> {
        let sent = self.outboxes[peer.index()].send((self.worker, packet));
        sent.map_err(|_| Failure::Closed { peer })
    }

    /// Takes one packet in, waiting for `peer` until `until`.
    fn receive(&mut self, peer: WorkerId, from: Instant, until: Instant) -> Result<(), Failure> {
        let left = until.saturating_duration_since(Instant::now());
        match self.inbox.recv_timeout(left) {
            Ok((by, Packet::Abort(reason))) => Err(Failure::Aborted { by, reason }),
            Ok((by, Packet::Hello(id))) => {
                self.hellos.insert(by, id);
                Ok(())
            }
            Ok((by, Packet::Data(tag, buffer))) => {
                self.early.insert((tag, by), buffer);
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => Err(Failure::Stalled {
                peer,
                waited: until.saturating_duration_since(from),
            }),
            Err(RecvTimeoutError::Disconnected) => Err(Failure::Closed { peer }),
        }
    }
}

impl<T: Float> Transport<CpuDevice<T>> for ChannelTransport<T> {
    type Ticket = (Tag, Vec<(WorkerId, usize)>);

    fn handshake(&mut self, id: PlanId, deadline: Duration) -> Result<(), Failure> {
        for peer in self.peers() {
            self.send(peer, Packet::Hello(id))?;
        }
        let from = Instant::now();
        for peer in self.peers() {
            let theirs = loop {
                if let Some(&theirs) = self.hellos.get(&peer) {
                    break theirs;
                }
                self.receive(peer, from, from + deadline)?;
            };
            if theirs != id {
                return Err(Failure::PlanMismatch {
                    peer,
                    theirs,
                    own: id,
                });
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        _queue: &(),
        tag: Tag,
        sends: Vec<(WorkerId, CpuBuffer<T>)>,
        receives: Vec<(WorkerId, usize)>,
    ) -> Result<Self::Ticket, Failure> {
        for (peer, buffer) in sends {
            self.send(peer, Packet::Data(tag, buffer))?;
        }
        Ok((tag, receives))
    }

    fn wait(
        &mut self,
        _queue: &(),
        (tag, receives): Self::Ticket,
        deadline: Duration,
    ) -> Result<Vec<(WorkerId, CpuBuffer<T>)>, Failure> {
        let from = Instant::now();
        let mut arrived = Vec::with_capacity(receives.len());
        for (peer, _) in receives {
            let buffer = loop {
                if let Some(buffer) = self.early.remove(&(tag, peer)) {
                    break buffer;
                }
                self.receive(peer, from, from + deadline)?;
            };
            arrived.push((peer, buffer));
        }
        Ok(arrived)
    }

    fn abort(&mut self, reason: &str) {
        for peer in self.peers() {
            // A peer that is gone needs no telling.
            let _ = self.send(peer, Packet::Abort(reason.to_owned()));
        }
    }
}
