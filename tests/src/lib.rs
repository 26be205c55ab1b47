//! What the tests of several crates share: slow twins, named cases, plans as text, files taken
//! apart, and the bodies of the fuzz targets.

#![forbid(unsafe_code)]

pub mod blessed;
pub mod cases;
pub mod fuzz;
pub mod plan_file;
pub mod show;
#[path = "../twins/mod.rs"]
pub mod twins;
