//! From a source of lengths to windows of packed sequences.

mod array;
mod columnar;
mod compressed;
mod counts;
mod draw;
mod idx;
#[path = "../../../tests/twins/idx.rs"]
mod idx_twin;
mod order;
mod pack;
mod read;
mod sources;
mod stats;
