//! A plan as text for people: every number that an executor reads, one item a line.

use std::fmt::Write;

use libra_sched::audit::audit;
use libra_sched::{
    KvFetch, KvMove, KvRoute, PlanId, PoolPlan, SampleId, ShTile, TileMove, Topology,
};

/// All of `plan`.
#[must_use]
pub fn plan(plan: &PoolPlan) -> String {
    let mut text = String::new();
    write_all(&mut text, plan).expect("a string takes all that is written");
    text
}

fn write_all(out: &mut String, plan: &PoolPlan) -> std::fmt::Result {
    writeln!(out, "plan id {}", PlanId::of(plan))?;
    write_shape(out, plan)?;
    for slot in 0..plan.layout.slots() {
        write_slot(out, plan, slot)?;
    }
    writeln!(out, "\nchunk of each query head: {:?}", plan.q_chunks)?;
    writeln!(out, "first and last of each KV head: {:?}", plan.kv_chunks)?;
    writeln!(out, "\n{} tiles", plan.tiles.len())?;
    for index in 0..plan.tiles.len() {
        write_tile(out, plan, index)?;
    }
    let exchange = &plan.exchange;
    write_tile_moves(out, plan, "Q", &exchange.q, PoolPlan::q_bytes)?;
    writeln!(out, "\n{} KV moves", exchange.kv.len())?;
    for m in &exchange.kv {
        write_kv_move(out, plan, m)?;
    }
    if plan.kv_route != KvRoute::Direct {
        writeln!(out, "\n{} forwards", exchange.forward.len())?;
        for m in &exchange.forward {
            write_kv_move(out, plan, m)?;
        }
    }
    write_tile_moves(out, plan, "O", &exchange.o, PoolPlan::o_bytes)?;
    write_sums(out, plan)
}

fn write_shape(out: &mut String, plan: &PoolPlan) -> std::fmt::Result {
    let (layout, heads) = (&plan.layout, &plan.heads);
    writeln!(
        out,
        "{} slots of {} tokens, {} context ranks x {} tensor ranks = {} workers",
        layout.slots(),
        layout.seq_tokens(),
        layout.ranks(),
        layout.tensor(),
        layout.workers()
    )?;
    writeln!(
        out,
        "h_q {}, h_kv {}, d_qk {}, d_v {}, H {}, M {}, {} mask, {} and {} bytes an element",
        heads.q_heads(),
        heads.kv_heads(),
        heads.dim_qk(),
        heads.dim_v(),
        heads.shards(),
        heads.chunks(),
        plan.mask,
        plan.bytes.activation,
        plan.bytes.statistic
    )?;
    if plan.kv_fetch != KvFetch::Whole {
        writeln!(out, "K and V fetched: {}", plan.kv_fetch)?;
    }
    if let KvRoute::Node(nodes) = plan.kv_route {
        let gpus = nodes.gpus_per_node();
        writeln!(out, "K and V once into each node of {gpus} workers")?;
    }
    let spans: Vec<_> = (0..heads.span_count())
        .map(|s| heads.kv_of_span(s))
        .collect();
    writeln!(out, "KV spans {spans:?}")
}

fn write_slot(out: &mut String, plan: &PoolPlan, slot: u32) -> std::fmt::Result {
    write!(out, "\nslot {slot}: samples")?;
    for sample in plan.lengths.samples_of(slot as usize) {
        write!(out, " {}", plan.lengths.length(SampleId::new(sample)))?;
        if let Some(parent) = plan.lengths.parent(SampleId::new(sample)) {
            write!(out, " (after {parent})")?;
        }
    }
    write!(out, "; fragments")?;
    for f in plan.layout.fragments(slot) {
        write!(out, " {}..{} rank {}", f.start, f.end, f.rank)?;
    }
    Ok(())
}

fn write_tile(out: &mut String, plan: &PoolPlan, index: usize) -> std::fmt::Result {
    let ShTile {
        slot,
        start,
        end,
        shard,
        q_home,
        work,
        ..
    } = plan.tiles[index];
    let (samples, worker) = (plan.tiles[index].samples(), plan.workers[index]);
    writeln!(
        out,
        "t{index}: slot {slot} tokens {start}..{end} shard {shard}, samples {samples:?}, work {work}, home {q_home}, at {worker}"
    )
}

fn write_tile_moves(
    out: &mut String,
    plan: &PoolPlan,
    leg: &str,
    moves: &[TileMove],
    bytes: fn(&PoolPlan, usize) -> u64,
) -> std::fmt::Result {
    writeln!(out, "\n{} {leg} moves", moves.len())?;
    for TileMove { tile, src, dst } in moves {
        let bytes = bytes(plan, tile.index());
        writeln!(out, "{tile}: {src} to {dst}, {bytes} bytes")?;
    }
    Ok(())
}

fn write_kv_move(out: &mut String, plan: &PoolPlan, m: &KvMove) -> std::fmt::Result {
    let KvMove {
        dst,
        sample,
        span,
        start,
        end,
        src,
    } = m;
    let bytes = plan.kv_bytes(m);
    writeln!(
        out,
        "{sample} span {span} tokens {start}..{end}: {src} to {dst}, {bytes} bytes"
    )
}

fn write_sums(out: &mut String, plan: &PoolPlan) -> std::fmt::Result {
    let nodes = match plan.kv_route {
        KvRoute::Node(nodes) => nodes,
        _ => Topology::default(),
    };
    let audit = audit(plan, nodes);
    writeln!(out, "\nwork at home {:?}", audit.home_loads)?;
    writeln!(
        out,
        "work {:?}, no less than {}",
        audit.loads, audit.tile_bound
    )?;
    writeln!(out, "bytes sent {:?}", audit.sent_bytes)?;
    writeln!(out, "bytes received {:?}", audit.received_bytes)?;
    writeln!(
        out,
        "{} bytes of Q and O, {} bytes of KV in {} groups",
        audit.qo_bytes,
        audit.kv_bytes,
        plan.kv_groups()
    )?;
    if plan.kv_route != KvRoute::Direct {
        writeln!(
            out,
            "{} bytes between nodes, {} forwarded within them",
            audit.cross_node_bytes, audit.forward_bytes
        )?;
    }
    Ok(())
}
