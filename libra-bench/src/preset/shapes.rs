//! Settings checked: what the scheduler takes.

use libra_sched::vrsp::{Elastic, GaOrder, Vrsp};
use libra_sched::{
    CostTable, ElementBytes, Error, HeadSplit, KvRoute, LayoutKind, Mask, Measured, Placer,
    PlanConfig, Proxy, Speeds, TokenLayout, Topology, WindowShape,
};

use super::Settings;
use crate::cli::{Placement, ProxyKind, Route};
use crate::failure::Failure;
use crate::measured;

/// The scheduler's shapes of a window, checked.
#[derive(Clone, Debug)]
pub(crate) struct Shapes {
    /// DP, CP, P.
    pub(crate) window: WindowShape,
    /// Heads, shards, chunks.
    pub(crate) heads: HeadSplit,
    /// Home of every token of a pool of P.
    pub(crate) layout: TokenLayout,
    /// How tokens are laid out.
    pub(crate) layout_kind: LayoutKind,
    /// Mask, blocks, placer.
    pub(crate) plan: PlanConfig,
    /// Nodes.
    pub(crate) topology: Topology,
    /// What VRSP balances.
    pub(crate) proxy: Proxy,
    /// Who fills pools.
    pub(crate) vrsp: Vrsp,
    /// Measured times.
    pub(crate) costs: Option<CostTable>,
    /// Speeds of the workers of a pool of P.
    pub(crate) speeds: Option<Speeds>,
    /// How far pools may grow.
    pub(crate) elastic: Elastic,
    /// Which pools run side by side.
    pub(crate) ga_order: GaOrder,
    /// Pipeline stages.
    pub(crate) pp: u32,
}

impl Shapes {
    /// What was measured; speeds are those of the pool at hand.
    pub(crate) fn measured<'a>(&'a self, speeds: Option<&'a Speeds>) -> Measured<'a> {
        Measured {
            costs: self.costs.as_ref(),
            speeds,
        }
    }

    /// Speeds of the workers of a pool of `slots` sequences: a merged pool runs where several of P
    /// would, each with the same.
    pub(crate) fn speeds_of(&self, slots: usize) -> Option<Speeds> {
        let of_p = self.speeds.as_ref()?.as_slice();
        let workers = slots * self.window.cp() as usize;
        Some(Speeds::new(
            of_p.iter().copied().cycle().take(workers).collect(),
        ))
    }

    /// Home of every token of a pool of `slots` sequences.
    pub(crate) fn layout_of(&self, slots: usize) -> Result<TokenLayout, Error> {
        if slots == self.layout.slots() as usize {
            return Ok(self.layout.clone());
        }
        let (tokens, cp) = (self.window.seq_tokens(), self.window.cp());
        TokenLayout::new(self.layout_kind, slots as u32, tokens, cp)
    }
}

impl Settings {
    /// Checks what must go together, and reads what was measured.
    pub(crate) fn shapes(&self) -> Result<Shapes, Failure> {
        let window = WindowShape::new(self.tokens, self.gbs, self.dp, self.cp, self.pool_size)?;
        let heads = HeadSplit::new(
            self.q_heads,
            self.kv_heads,
            self.head_dim,
            self.v_head_dim.unwrap_or(self.head_dim),
            self.head_shards,
            self.chunks,
        )?;
        if self.block_tokens == 0 {
            let name = "block tokens";
            return Err(Error::Zero { name }.into());
        }
        if self.pp == 0 {
            return Err(Error::Zero { name: "PP" }.into());
        }
        if self.elastic != Elastic::OFF && self.vrsp != Vrsp::Certified {
            let refused = Error::UnknownName {
                what: "vrsp algorithm of elastic pools",
                value: self.vrsp.to_string(),
                legal: "certified",
            };
            return Err(refused.into());
        }
        let (slots, cp) = (window.pool_size(), window.cp());
        let nodes = Topology::new(self.gpus_per_node)?;
        let topology = self
            .nodes_per_pod
            .map_or(Ok(nodes), |pod| nodes.with_pods(pod))?;
        Ok(Shapes {
            layout_kind: self.layout,
            layout: TokenLayout::new(self.layout, slots, window.seq_tokens(), cp)?,
            window,
            heads,
            plan: PlanConfig {
                mask: self.mask,
                block_tokens: self.block_tokens,
                tiling: self.tiles,
                placer: match self.placement {
                    Placement::Home => Placer::Home,
                    Placement::Paper => Placer::Paper(self.slack),
                    Placement::HeadShard => Placer::HeadShard,
                    Placement::Export => Placer::Export(self.slack, topology),
                },
                kv_fetch: self.kv,
                kv_route: match self.kv_route {
                    Route::Direct => KvRoute::Direct,
                    Route::Node => KvRoute::Node(topology),
                },
                bytes: ElementBytes::BF16,
                max_recv_bytes: self.max_recv_bytes,
            },
            topology,
            proxy: match self.proxy {
                ProxyKind::Squares => Proxy::SumSquares,
                ProxyKind::Pairs => Proxy::Pairs(self.mask),
                ProxyKind::Sparse(sparse) if self.mask == Mask::Causal => Proxy::Sparse(sparse),
                ProxyKind::Sparse(_) => {
                    let refused = Error::Combination {
                        what: "mask",
                        value: self.mask.to_string(),
                        with: "sparse attention as the proxy",
                        legal: "causal",
                    };
                    return Err(refused.into());
                }
            },
            vrsp: self.vrsp,
            elastic: self.elastic,
            ga_order: self.ga_order,
            pp: self.pp,
            costs: match &self.costs {
                Some(path) => Some(measured::read_costs(path.as_ref())?),
                None => None,
            },
            speeds: match &self.speeds {
                Some(text) => Some(measured::read_speeds(text, window.workers())?),
                None => None,
            },
        })
    }

    /// Sparse attention weighs sequences; `what` needs more than that.
    pub(crate) fn refuse_sparse(&self, what: &'static str) -> Result<(), Error> {
        match self.proxy {
            ProxyKind::Squares | ProxyKind::Pairs => Ok(()),
            ProxyKind::Sparse(sparse) => Err(Error::Combination {
                what: "proxy",
                value: sparse.to_string(),
                with: what,
                legal: "squares, pairs",
            }),
        }
    }
}
