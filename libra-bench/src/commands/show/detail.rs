//! One worker's tiles and messages, and every transfer.

use std::collections::BTreeMap;

use libra_exec::lower;
use libra_exec::program::{Exchange, Pass};
use libra_sched::{BackwardMode, PoolPlan, WorkerId, reverse};
use serde_json::{Value, json};

use crate::report::{Column, Report, Table};
use crate::units::format_bytes;

/// What `worker` computes, and its messages.
pub(super) fn one_worker(report: &mut Report, plan: &PoolPlan, worker: WorkerId) {
    report.note(format!("tiles of {worker}"));
    let columns = vec![
        Column::number("tile", ""),
        Column::number("slot", ""),
        Column::number("tokens", ""),
        Column::number("shard", ""),
        Column::number("samples", ""),
        Column::number("work", "pairs x heads"),
        Column::text("home"),
    ];
    let mut rows = Vec::new();
    let tiles = plan.tiles.iter().zip(&plan.workers).enumerate();
    for (id, (tile, _)) in tiles.filter(|(_, (_, w))| **w == worker) {
        let home = match tile.q_home {
            home if home == worker => "here".to_owned(),
            home => home.to_string(),
        };
        rows.push(vec![
            format!("t{id}"),
            tile.slot.to_string(),
            format!("{}..{}", tile.start, tile.end),
            tile.shard.to_string(),
            tile.samples.to_string(),
            tile.work.to_string(),
            home,
        ]);
        report.cases.push(json!({
            "tile": id, "slot": tile.slot, "start": tile.start, "end": tile.end, "shard": tile.shard,
            "samples": tile.samples, "work": tile.work, "q_home": tile.q_home.0,
        }));
    }
    report.table(Table { columns, rows });
    report.note("");
    messages(report, plan, worker);
}

/// Messages of one worker, chunk by chunk.
fn messages(report: &mut Report, plan: &PoolPlan, worker: WorkerId) {
    let program = lower(
        plan,
        &reverse::derive(plan, BackwardMode::Recompute),
        worker,
    );
    report.note(format!(
        "messages of {worker}; backward after a second forward (recompute)"
    ));
    let columns = vec![
        Column::text("pass"),
        Column::number("chunk", ""),
        Column::text("leg"),
        Column::number("peer", ""),
        Column::number("sends", "bytes"),
        Column::number("receives", "bytes"),
    ];
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    for (name, pass) in [
        ("forward", &program.forward),
        ("backward", &program.backward),
    ] {
        for (chunk, leg, exchange) in legs(pass) {
            for (peer, sent, received) in by_peer(exchange) {
                rows.push(vec![
                    name.to_owned(),
                    chunk.to_string(),
                    leg.to_owned(),
                    peer.to_string(),
                    format_bytes(sent),
                    format_bytes(received),
                ]);
                values.push(json!({
                    "pass": name, "chunk": chunk, "leg": leg, "peer": peer.0,
                    "sent_bytes": sent, "received_bytes": received,
                }));
            }
        }
    }
    report.table(Table { columns, rows });
    report
        .more
        .insert("messages".to_owned(), Value::Array(values));
}

fn legs(pass: &Pass) -> impl Iterator<Item = (usize, &'static str, &Exchange)> {
    (0..pass.dispatch.len()).flat_map(|chunk| {
        [
            (chunk, "dispatch", &pass.dispatch[chunk]),
            (chunk, "relay", &pass.relay[chunk]),
            (chunk, "gather", &pass.gather[chunk]),
            (chunk, "return", &pass.back[chunk]),
        ]
    })
}

fn by_peer(exchange: &Exchange) -> Vec<(WorkerId, u64, u64)> {
    let mut peers = BTreeMap::<WorkerId, (u64, u64)>::new();
    for message in &exchange.sends {
        peers.entry(message.peer).or_default().0 += message.bytes;
    }
    for message in &exchange.receives {
        peers.entry(message.peer).or_default().1 += message.bytes;
    }
    let peers = peers.into_iter();
    peers
        .map(|(peer, (sent, received))| (peer, sent, received))
        .collect()
}

/// Q, O and KV moves of the whole pool.
pub(super) fn every_transfer(report: &mut Report, plan: &PoolPlan) {
    let columns = vec![
        Column::text("what"),
        Column::text("of"),
        Column::number("tokens", ""),
        Column::number("from", ""),
        Column::number("to", ""),
        Column::number("bytes", ""),
    ];
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    let mut add = |what: &str,
                   of: String,
                   tokens: [u32; 2],
                   src: WorkerId,
                   dst: WorkerId,
                   bytes: u64| {
        let [start, end] = tokens;
        values.push(json!({
            "what": what, "of": of, "start": start, "end": end, "src": src.0, "dst": dst.0, "bytes": bytes,
        }));
        let tokens = format!("{start}..{end}");
        rows.push(vec![
            what.to_owned(),
            of,
            tokens,
            src.to_string(),
            dst.to_string(),
            bytes.to_string(),
        ]);
    };
    let exchange = &plan.exchange;
    for (what, moves) in [("Q", &exchange.q), ("O", &exchange.o)] {
        for m in moves {
            let (index, tile) = (m.tile.index(), &plan.tiles[m.tile.index()]);
            let bytes = if what == "Q" {
                plan.q_bytes(index)
            } else {
                plan.o_bytes(index)
            };
            add(
                what,
                m.tile.to_string(),
                [tile.start, tile.end],
                m.src,
                m.dst,
                bytes,
            );
        }
    }
    for (what, moves) in [("KV", &exchange.kv), ("forward", &exchange.forward)] {
        for m in moves {
            let of = format!("{} span {}", m.sample, m.span);
            add(what, of, [m.start, m.end], m.src, m.dst, plan.kv_bytes(m));
        }
    }
    report.table(Table { columns, rows });
    report
        .more
        .insert("transfers".to_owned(), Value::Array(values));
}
