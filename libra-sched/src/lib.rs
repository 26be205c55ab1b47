//! Libra's scheduler: which packed sequences share a pool, which worker computes which part of
//! their attention, and what has to move. Pure functions over integers; no device, no clock.
//!
//! ```
//! use libra_sched::{
//!     HeadSplit, LayoutKind, Mask, PackedLengths, PlanConfig, PoolId, Proxy, TokenLayout,
//!     WindowShape, plan_pool, verify, vrsp, wire,
//! };
//!
//! let shape = WindowShape::new(16, 4, 4, 2, 2)?;
//! let window = PackedLengths::new(16, [vec![16u64], vec![8, 8], vec![4; 4], vec![2; 8]])?;
//! let work = window.work(Proxy::Pairs(Mask::Causal))?;
//! let pools = vrsp::place(&work, shape.pool_size() as usize, vrsp::Vrsp::Certified)?;
//!
//! let heads = HeadSplit::new(4, 2, 8, 8, 2, 2)?;
//! let layout = TokenLayout::new(LayoutKind::Contiguous, shape.pool_size(), 16, shape.cp())?;
//! let pool = window.select(pools.members(PoolId(0)))?;
//! let plan = plan_pool(&pool, &layout, &heads, &PlanConfig::paper(4))?;
//! assert!(verify::check(&plan).is_empty());
//! assert_eq!(wire::decode(&wire::encode(&plan))?, plan);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Modules stand in pipeline order; each imports only from earlier ones. Equal inputs give equal
//! plan bytes on every machine: decisions use integers, and every sort key ends in an id.

#![forbid(unsafe_code)]

pub mod error;
pub mod ids;

mod search;

pub mod mask;

pub mod lengths;

pub mod heads;

pub mod topology;

pub mod layout;

pub mod vrsp;

pub mod tiles;

pub mod placement;

pub mod exchange;

pub mod plan;

pub mod audit;

pub mod bound;

pub mod reverse;

pub mod verify;

pub mod wire;

pub use error::Error;
pub use exchange::{ExchangePlan, KvFetch, KvMove, KvRoute, TileMove};
pub use heads::{ElementBytes, HeadSplit};
pub use ids::{PoolId, SampleId, SequenceId, TileId, WorkerId};
pub use layout::{Fragment, LayoutKind, TokenLayout};
pub use lengths::{PackedLengths, Proxy, WindowShape};
pub use mask::{KeyRanges, Mask, SparseAttention};
pub use placement::{Placer, Slack, Speed, Speeds};
pub use plan::{Measured, PlanConfig, PoolPlan, plan_pool, plan_pool_measured, plan_pool_with};
pub use reverse::BackwardMode;
pub use tiles::{CostTable, ShTile, TileSet, Tiling};
pub use topology::{Bandwidths, Topology};
pub use wire::{DecodeError, PlanId};
