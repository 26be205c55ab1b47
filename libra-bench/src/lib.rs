//! Asking what Libra would do to a corpus, and showing it.

#![forbid(unsafe_code)]

pub mod exit;
pub mod units;
pub mod workload;
