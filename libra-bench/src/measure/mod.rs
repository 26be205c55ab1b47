//! Finding out: lengths, plans, executions. Returns data, prints nothing.

mod compare;
mod execute;
mod pool;
mod reference;
mod source;
mod summary;
mod sweep;
mod window;

pub(crate) use execute::{Exact, ExecuteOptions, MethodCase, execute, least};
pub(crate) use pool::{Pool, scaled_pool};
pub(crate) use source::{Source, windows};
pub(crate) use summary::Summary;
pub(crate) use sweep::{SweepCase, combination};
pub(crate) use window::{AdaptiveCase, Inter, PoolCase, WindowPlan, Windows};
