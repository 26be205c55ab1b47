//! Programs put together step by step.

use crate::simulate::program::{Attention, Exchange, Message, Program, Step, Worker};

/// A program in the making. Exchanges are numbered for all workers alike.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    workers: Vec<Worker>,
    exchanges: usize,
}

impl Steps {
    /// Of `workers` workers.
    pub(super) fn new(workers: usize) -> Self {
        Self {
            workers: vec![Worker::default(); workers],
            exchanges: 0,
        }
    }

    /// A new exchange, without a message.
    pub(super) fn exchange(&mut self) -> u32 {
        self.exchanges += 1;
        self.exchanges as u32 - 1
    }

    /// A message of `exchange`; none where there is nothing to send, or nowhere to.
    pub(super) fn send(&mut self, exchange: u32, src: u32, dst: u32, bytes: u64) {
        if bytes > 0 && src != dst {
            self.at(src, exchange)
                .sends
                .push(Message { peer: dst, bytes });
            self.at(dst, exchange)
                .receives
                .push(Message { peer: src, bytes });
        }
    }

    fn at(&mut self, worker: u32, exchange: u32) -> &mut Exchange {
        let exchanges = &mut self.workers[worker as usize].exchanges;
        let count = exchanges.len().max(exchange as usize + 1);
        exchanges.resize_with(count, Exchange::default);
        &mut exchanges[exchange as usize]
    }

    /// `worker` begins `exchange`.
    pub(super) fn start(&mut self, worker: u32, exchange: u32) {
        self.workers[worker as usize]
            .steps
            .push(Step::Start(exchange));
    }

    /// `worker` waits for `exchange`.
    pub(super) fn wait(&mut self, worker: u32, exchange: u32) {
        self.workers[worker as usize]
            .steps
            .push(Step::Wait(exchange));
    }

    /// `worker` computes `entries`.
    pub(super) fn compute(&mut self, worker: u32, entries: Vec<Attention>) {
        let worker = &mut self.workers[worker as usize];
        worker
            .steps
            .push(Step::Compute(worker.computes.len() as u32));
        worker.computes.push(entries);
    }

    /// The program.
    pub(super) fn finish(mut self) -> Program {
        for worker in &mut self.workers {
            worker
                .exchanges
                .resize_with(self.exchanges, Exchange::default);
        }
        Program {
            workers: self.workers,
        }
    }
}
