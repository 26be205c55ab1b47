//! Properties of every stage, each a sentence; slow twins stand beside the fast code.

#![forbid(unsafe_code)]

mod adapt;
mod bound;
mod cases;
mod costs;
mod exchange;
mod export;
mod heads;
mod layout;
mod lengths;
mod mask;
mod orders;
mod placement;
mod plan;
#[path = "../../../tests/src/plan_file.rs"]
mod plan_file;
mod reverse;
mod sparse;
mod tiles;
#[path = "../../../tests/twins/mod.rs"]
mod twins;
mod vrsp;
mod wire;
