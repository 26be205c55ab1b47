//! Where results go beside stdout.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use super::Format;

/// A value of `-o`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// `-`, where results go anyway.
    Stdout,
    /// A file, in the format that its suffix names.
    File(PathBuf, Format),
    /// A file that ends in `.html`: a page of the results.
    Page(PathBuf),
    /// A name without such a suffix: a directory, where a command fills one.
    Other(PathBuf),
}

impl FromStr for Output {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        if text == "-" {
            return Ok(Self::Stdout);
        }
        let path = PathBuf::from(text);
        let format = match path.extension().and_then(|suffix| suffix.to_str()) {
            Some("json") => Format::Json,
            Some("csv") => Format::Csv,
            Some("md") => Format::Md,
            Some("txt") => Format::Table,
            Some("html") => return Ok(Self::Page(path)),
            _ => return Ok(Self::Other(path)),
        };
        Ok(Self::File(path, format))
    }
}
