//! Finding out: lengths, plans, executions. Returns data, prints nothing.

mod compare;
mod detail;
mod execute;
mod pool;
mod pool_case;
mod reference;
mod running;
mod samples;
mod schedule;
mod source;
mod summary;
mod sweep;
mod timeline;
mod window;

pub(crate) use detail::Detail;
pub(crate) use execute::{Exact, ExecuteOptions, MethodCase, execute, least};
pub(crate) use pool::{Chosen, Pool};
pub(crate) use pool_case::{AdaptiveCase, PoolCase};
pub(crate) use source::{Source, windows};
pub(crate) use summary::Summary;
pub(crate) use sweep::{SweepOptions, VERIFIED_EVERY, combination};
pub(crate) use timeline::add_timeline;
pub(crate) use window::{Inter, WindowPlan, Windows};
