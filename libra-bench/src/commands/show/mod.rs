//! `show`: a plan for people.

mod detail;

use std::path::Path;

use libra_sched::audit::{self, Audit};
use libra_sched::wire::Decoded;
use libra_sched::{
    BackwardMode, KvRoute, PoolPlan, SampleId, Topology, WorkerId, reverse, verify, wire,
};
use serde_json::{Value, json};

use super::check::open;
use super::{Outcome, code, excess, percent, typed};
use crate::failure::Failure;
use crate::preset::command_line;
use crate::report::{Column, Report, Table};
use crate::units::{format_bytes, format_count};

pub(super) fn run(
    path: &Path,
    worker: Option<u32>,
    transfers: bool,
    [gpus_per_node, nodes_per_pod]: [Option<u32>; 2],
) -> Outcome {
    let (bytes, decoded) = open(path)?;
    let plan = &decoded.plan;
    let nodes = match (gpus_per_node, plan.kv_route) {
        (Some(gpus), _) => Topology::new(gpus)?,
        (None, KvRoute::Node(topology)) => topology,
        _ => Topology::default(),
    };
    let topology = nodes_per_pod.map_or(Ok(nodes), |pod| nodes.with_pods(pod))?;
    // What follows relies on the plan's rules.
    if let [first, rest @ ..] = &verify::check(plan)[..] {
        return Err(Failure::Broken {
            path: path.to_owned(),
            count: 1 + rest.len(),
            first: first.to_string(),
        });
    }
    let last = plan.layout.workers() - 1;
    if let Some(worker) = worker.map(WorkerId).filter(|worker| worker.0 > last) {
        return Err(Failure::NoWorker { worker, last });
    }
    let name = typed(path);
    let mut words = vec!["libra-bench".to_owned(), "show".to_owned(), name.clone()];
    words.extend(worker.map(|worker| format!("--worker={worker}")));
    words.extend(transfers.then(|| "--transfers".to_owned()));
    words.extend(gpus_per_node.map(|gpus| format!("--gpus-per-node={gpus}")));
    words.extend(nodes_per_pod.map(|nodes| format!("--nodes-per-pod={nodes}")));
    let words = words.iter().map(String::as_str);
    let mut report = Report::new("show", command_line(words));
    report.plan_id = Some(decoded.id.to_string());
    report.config = json!({
        "file": name,
        "gpus_per_node": topology.gpus_per_node(),
        "nodes_per_pod": nodes_per_pod,
    });
    let audit = audit::audit(plan, topology);
    report.header();
    summary(&mut report, &decoded, &audit, bytes.len() as u64);
    report.note("");
    match worker {
        Some(worker) => detail::one_worker(&mut report, plan, WorkerId(worker)),
        None => {
            every_worker(&mut report, plan, &audit);
            report.note("");
            backward(&mut report, plan);
        }
    }
    if transfers {
        report.note("");
        detail::every_transfer(&mut report, plan);
    }
    report.reproduce(report.reproduce.clone());
    Ok((report, code()))
}

fn summary(report: &mut Report, decoded: &Decoded, audit: &Audit, bytes: u64) {
    let plan = &decoded.plan;
    let (layout, heads, lengths) = (&plan.layout, &plan.heads, &plan.lengths);
    let away = plan.exchange.q.len();
    report.note(format!("plan {}  {}", decoded.id, format_bytes(bytes)));
    if !decoded.provenance.is_empty() {
        report.note(format!("from {}", decoded.provenance.replace('\n', " ")));
    }
    report.note(format!(
        "{} sequences of {} tokens, {} samples; {} workers, {} a sequence",
        layout.slots(),
        format_count(layout.seq_tokens().into()),
        lengths.samples(),
        layout.workers(),
        layout.cp(),
    ));
    let continued = (0..lengths.samples())
        .filter(|&sample| lengths.parent(SampleId::new(sample)).is_some())
        .count();
    if continued > 0 {
        report.note(format!(
            "{continued} samples continue others and read them whole"
        ));
    }
    report.note(format!(
        "heads {}/{}x{} (V {})  H={} M={}  {}  {} bytes an element",
        heads.q_heads(),
        heads.kv_heads(),
        heads.dim_qk(),
        heads.dim_v(),
        heads.shards(),
        heads.chunks(),
        plan.mask,
        plan.bytes.activation,
    ));
    report.note(format!(
        "{} tiles, {away} away from home; {} KV groups in {} moves ({})",
        plan.tiles.len(),
        plan.kv_groups(),
        plan.exchange.kv.len(),
        plan.kv_fetch,
    ));
    if let KvRoute::Node(nodes) = plan.kv_route {
        report.note(format!(
            "K and V once into each node of {} workers; {} forwards of {} within them",
            nodes.gpus_per_node(),
            plan.exchange.forward.len(),
            format_bytes(audit.forward_bytes),
        ));
    }
    report.note(format!(
        "work R-1: {} at home, {} as placed, {} at best with these tiles",
        excess(audit.home_excess()),
        excess(audit.intra_excess()),
        excess(audit.tile_bound_excess()),
    ));
    report.note(format!(
        "moved {}: Q and O {}, K and V {}; {} % cross nodes",
        format_bytes(audit.moved_bytes()),
        format_bytes(audit.qo_bytes),
        format_bytes(audit.kv_bytes),
        percent(audit.cross_node_bytes, audit.moved_bytes()),
    ));
    if audit.cross_pod_bytes > 0 {
        let share = percent(audit.cross_pod_bytes, audit.moved_bytes());
        report.note(format!("of it between pods: {share} %"));
    }
    let value = json!({
        "provenance": decoded.provenance,
        "file_bytes": bytes,
        "format": wire::VERSION,
        "sequences": layout.slots(),
        "tokens": layout.seq_tokens(),
        "samples": lengths.samples(),
        "samples_with_parents": continued,
        "workers": layout.workers(),
        "cp": layout.cp(),
        "q_heads": heads.q_heads(),
        "kv_heads": heads.kv_heads(),
        "head_dim": heads.dim_qk(),
        "v_head_dim": heads.dim_v(),
        "head_shards": heads.shards(),
        "chunks": heads.chunks(),
        "mask": plan.mask.to_string(),
        "kv": plan.kv_fetch.to_string(),
        "kv_route": plan.kv_route.to_string(),
        "tiles": plan.tiles.len(),
        "tiles_away": away,
        "kv_groups": plan.kv_groups(),
        "kv_moves": plan.exchange.kv.len(),
        "forwards": plan.exchange.forward.len(),
        "work_total": audit.work_total,
        "home_excess": audit.home_excess(),
        "intra_excess": audit.intra_excess(),
        "tile_bound_excess": audit.tile_bound_excess(),
        "qo_bytes": audit.qo_bytes,
        "kv_bytes": audit.kv_bytes,
        "moved_bytes": audit.moved_bytes(),
        "cross_node_bytes": audit.cross_node_bytes,
        "cross_pod_bytes": audit.cross_pod_bytes,
        "forward_bytes": audit.forward_bytes,
        "busiest_port_bytes": audit.busiest_port_bytes(),
    });
    report.more.insert("plan".to_owned(), value);
}

fn every_worker(report: &mut Report, plan: &PoolPlan, audit: &Audit) {
    let columns = vec![
        Column::number("worker", ""),
        Column::number("slot", ""),
        Column::number("tiles", ""),
        Column::number("away", ""),
        Column::number("work", "pairs x heads"),
        Column::number("work", "/ mean"),
        Column::number("home", "/ mean"),
        Column::number("sends", "bytes"),
        Column::number("receives", "bytes"),
    ];
    let mut rows = Vec::new();
    let workers = audit.loads.len();
    let ratio = |load| 1.0 + audit::excess(load, audit.work_total, workers);
    for index in 0..workers {
        let worker = WorkerId::new(index);
        let (slot, _, _) = plan.layout.place_of(worker);
        let own = || {
            plan.tiles
                .iter()
                .zip(&plan.workers)
                .filter(|(_, w)| **w == worker)
        };
        let tiles = own().count();
        let away = own().filter(|(tile, _)| tile.q_home != worker).count();
        let (load, home) = (audit.loads[index], audit.home_loads[index]);
        let (sent, received) = (audit.sent_bytes[index], audit.received_bytes[index]);
        rows.push(vec![
            worker.to_string(),
            slot.to_string(),
            tiles.to_string(),
            away.to_string(),
            load.to_string(),
            format!("{:.3}", ratio(load)),
            format!("{:.3}", ratio(home)),
            format_bytes(sent),
            format_bytes(received),
        ]);
        report.cases.push(json!({
            "worker": index,
            "slot": slot,
            "tiles": tiles,
            "tiles_away": away,
            "load": load,
            "home_load": home,
            "sent_bytes": sent,
            "received_bytes": received,
            "staged_bytes": audit.staged_bytes[index],
        }));
    }
    report.table(Table { columns, rows });
}

/// What each backward mode moves and keeps.
fn backward(report: &mut Report, plan: &PoolPlan) {
    let columns = vec![
        Column::text("backward"),
        Column::number("dispatched", "bytes"),
        Column::number("returned", "bytes"),
        Column::number("run again", "bytes"),
        Column::number("forward adds", "bytes"),
        Column::number("kept, most", "bytes"),
        Column::number("kept, all", "bytes"),
    ];
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    for mode in BackwardMode::ALL {
        let cost = reverse::derive(plan, mode).cost;
        let kept_max = cost.stashed_bytes.iter().copied().max().unwrap_or(0);
        let kept: u64 = cost.stashed_bytes.iter().sum();
        let numbers = [
            cost.dispatched_bytes,
            cost.returned_bytes,
            cost.recomputed_bytes,
            cost.forward_extra_bytes,
            kept_max,
            kept,
        ];
        let cells = numbers.into_iter().map(format_bytes);
        rows.push(std::iter::once(mode.to_string()).chain(cells).collect());
        values.push(json!({
            "mode": mode.to_string(),
            "dispatched_bytes": cost.dispatched_bytes,
            "returned_bytes": cost.returned_bytes,
            "recomputed_bytes": cost.recomputed_bytes,
            "forward_extra_bytes": cost.forward_extra_bytes,
            "moved_bytes": cost.moved_bytes(),
            "stashed_bytes_max": kept_max,
            "stashed_bytes": kept,
        }));
    }
    report.table(Table { columns, rows });
    report
        .more
        .insert("backward".to_owned(), Value::Array(values));
}
