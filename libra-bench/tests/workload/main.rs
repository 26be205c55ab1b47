//! From a source of lengths to windows of packed sequences.

mod array;
mod columnar;
mod compressed;
mod counts;
mod draw;
mod idx;
mod order;
mod pack;
mod read;
mod sources;
mod stats;
