//! Runs plans of [`libra_sched`]: one worker's part of a plan becomes a [`RankProgram`], which an
//! [`Executor`] runs on a backend.
//!
//! ```
//! use libra_exec::cpu::{CpuPool, ReferenceKernel};
//! use libra_exec::{PoolTensors, unsharded};
//! use libra_sched::{
//!     BackwardMode, HeadSplit, LayoutKind, PackedLengths, PlanConfig, TokenLayout, plan_pool,
//! };
//!
//! let pool = PackedLengths::new(12, [vec![12u64], vec![3, 3, 3, 3]])?;
//! let layout = TokenLayout::new(LayoutKind::Contiguous, 2, 12, 2)?;
//! let heads = HeadSplit::new(4, 2, 8, 8, 2, 2)?;
//! let plan = plan_pool(&pool, &layout, &heads, &PlanConfig::paper(4))?;
//!
//! let inputs = PoolTensors::<f64>::random(&plan, 7);
//! let run = CpuPool::new(&plan, BackwardMode::Recompute, ReferenceKernel).run(&inputs)?;
//! let expected = unsharded::attention(&plan, &inputs);
//! assert_eq!(run.outputs.o, expected.o); // bit for bit: no softmax is ever split
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(unsafe_code)]

pub mod backend;
mod entries;
pub mod error;
pub mod executor;
pub mod lower;
mod pipeline;
pub mod program;
pub mod steps;
mod tensors;
pub mod unsharded;

pub use backend::cpu;
pub use error::{ExecError, Failure};
pub use executor::{Executor, StepRecord, Trace};
pub use lower::{lower, lower_all};
pub use program::RankProgram;
pub use steps::{StepPrograms, Steps};
pub use tensors::{PoolOutputs, PoolTensors};
