//! Finding out: lengths, plans, executions. Returns data, prints nothing.

mod compare;
mod execute;
mod pool;
mod pool_case;
mod reference;
mod running;
mod source;
mod summary;
mod sweep;
mod window;

pub(crate) use execute::{Exact, ExecuteOptions, MethodCase, execute, least};
pub(crate) use pool::{Pool, scaled_pool};
pub(crate) use pool_case::{AdaptiveCase, PoolCase};
pub(crate) use source::{Source, packed_windows};
pub(crate) use summary::Summary;
pub(crate) use sweep::{SweepOptions, VERIFIED_EVERY, combination};
pub(crate) use window::{Inter, WindowPlan, Windows};
