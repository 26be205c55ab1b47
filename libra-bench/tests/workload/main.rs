//! From a source of lengths to windows of packed sequences.

mod array;
mod pack;
mod read;
mod sources;
mod stats;
