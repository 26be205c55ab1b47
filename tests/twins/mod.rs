//! Slow twins: literal transcriptions that share no code with the library beyond its value types.

pub mod brute;
pub mod exchange;
pub mod mask;
pub mod placement;
pub mod vrsp;
