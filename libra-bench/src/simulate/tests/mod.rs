//! Closed forms, slow twins, and what the executor really sends.

mod cluster;
mod engine;
mod jitter;
mod kernel;
mod model;
mod pipeline;
mod plain;
mod real;
mod step;
mod trace;
mod twin;

use std::path::Path;

use super::cluster::Cluster;
use super::program::{Attention, Exchange, Message, Program, Step, Worker};

/// A cluster whose numbers are easily multiplied: 1 byte a nanosecond, latency 100 ns in a node and 1,000 ns between.
const ROUND: &str = r#"
name = "round"
[node]
gpus = 4
nics = 4
[gpu]
kernel = "h100-fa2-varlen"
peak_tflops = 1000
[nvlink]
bandwidth_gb_s = 1
latency_us = 0.1
message_us = 0.01
[nic]
bandwidth_gb_s = 1
efficiency = 1
latency_us = 1
message_us = 0.02
"#;

/// Of a cluster file.
fn cluster(text: &str) -> Cluster {
    Cluster::parse("test", text, Path::new("")).expect("legal")
}

/// One exchange in which `moves` (from, to, bytes) set out at once; workers wait for it.
fn one_exchange(workers: u32, moves: &[(u32, u32, u64)]) -> Program {
    exchanges(workers, &[moves])
}

/// Exchanges that are all started, then all waited for.
fn exchanges(workers: u32, exchanges: &[&[(u32, u32, u64)]]) -> Program {
    let worker = |own: u32| Worker {
        steps: (0..exchanges.len() as u32)
            .map(Step::Start)
            .chain((0..exchanges.len() as u32).map(Step::Wait))
            .collect(),
        exchanges: exchanges.iter().map(|moves| exchange(own, moves)).collect(),
        computes: Vec::new(),
    };
    Program {
        workers: (0..workers).map(worker).collect(),
    }
}

fn exchange(own: u32, moves: &[(u32, u32, u64)]) -> Exchange {
    let sends = moves.iter().filter(|m| m.0 == own);
    let receives = moves.iter().filter(|m| m.1 == own);
    Exchange {
        sends: sends
            .map(|&(_, peer, bytes)| Message { peer, bytes })
            .collect(),
        receives: receives
            .map(|&(peer, _, bytes)| Message { peer, bytes })
            .collect(),
    }
}

/// A whole causal document.
fn document(tokens: u32, heads: u32) -> Attention {
    Attention {
        queries: tokens,
        heads,
        pairs: u64::from(tokens) * (u64::from(tokens) + 1) / 2,
    }
}
