//! In the place of the readers of columnar files, where they were not built.

use std::path::Path;

use super::LengthSource;
use super::error::InputError;
use super::lengths::Blocks;

pub(super) fn open_parquet(path: &Path, _: &LengthSource) -> Result<Box<dyn Blocks>, InputError> {
    Err(not_built(path, "Parquet"))
}

pub(super) fn open_arrow(path: &Path, _: &LengthSource) -> Result<Box<dyn Blocks>, InputError> {
    Err(not_built(path, "Arrow"))
}

fn not_built(path: &Path, format: &'static str) -> InputError {
    InputError::NotBuilt {
        path: path.to_owned(),
        format,
    }
}
