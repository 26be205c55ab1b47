//! Slow twins: literal transcriptions that share no code with the library beyond its value types.

pub mod brute;
pub mod costs;
pub mod exchange;
pub mod idx;
pub mod mask;
pub mod npy;
pub mod placement;
pub mod relay;
pub mod vrsp;
