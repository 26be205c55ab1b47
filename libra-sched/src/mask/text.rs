//! Masks as text: what command lines take and reports print.

use std::fmt;
use std::str::FromStr;

use super::Mask;
use crate::error::Error;

impl Mask {
    /// Every text form, for messages and help; capitals stand for numbers of tokens or blocks.
    pub const FORMS: &str = "causal, full, causal+S, window:W, window:W,sinks:S, two-sided:L,R, \
        chunked:C, block:B,local:N, block:B,local:N,sinks:S, prefix:P, keys:A..B";
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Causal => f.write_str("causal"),
            Self::Full => f.write_str("full"),
            Self::Offset { offset } => write!(f, "causal+{offset}"),
            Self::Window { window, sinks } => {
                write!(f, "window:{window}")?;
                write_sinks(f, sinks)
            }
            Self::TwoSided { left, right } => write!(f, "two-sided:{left},{right}"),
            Self::Chunked { chunk } => write!(f, "chunked:{chunk}"),
            Self::Block {
                block,
                local,
                sinks,
            } => {
                write!(f, "block:{block},local:{local}")?;
                write_sinks(f, sinks)
            }
            Self::Prefix { prefix } => write!(f, "prefix:{prefix}"),
            Self::Keys { start, end } => write!(f, "keys:{start}..{end}"),
        }
    }
}

fn write_sinks(f: &mut fmt::Formatter<'_>, sinks: u32) -> fmt::Result {
    match sinks {
        0 => Ok(()),
        _ => write!(f, ",sinks:{sinks}"),
    }
}

impl FromStr for Mask {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mask = match text {
            "causal" => Some(Ok(Self::Causal)),
            "full" => Some(Ok(Self::Full)),
            _ => with_numbers(text),
        };
        mask.unwrap_or_else(|| {
            Err(Error::UnknownName {
                what: "mask",
                value: text.to_owned(),
                legal: Self::FORMS,
            })
        })
    }
}

/// `None` for a text of none of the forms, an error for numbers that make no mask.
fn with_numbers(text: &str) -> Option<Result<Mask, Error>> {
    if let Some(offset) = text.strip_prefix("causal+") {
        return Some(Mask::causal_with_offset(number(offset)?));
    }
    let (name, rest) = text.split_once(':')?;
    Some(match name {
        "window" => {
            let (window, sinks) = split_sinks(rest)?;
            Mask::window(number(window)?, sinks)
        }
        "two-sided" => {
            let (left, right) = rest.split_once(',')?;
            Ok(Mask::two_sided(number(left)?, number(right)?))
        }
        "chunked" => Mask::chunked(number(rest)?),
        "block" => {
            let (rest, sinks) = split_sinks(rest)?;
            let (block, local) = rest.split_once(",local:")?;
            Mask::block_causal(number(block)?, number(local)?, sinks)
        }
        "prefix" => Mask::prefix(number(rest)?),
        "keys" => {
            let (start, end) = rest.split_once("..")?;
            Mask::restricted(number(start)?, number(end)?)
        }
        _ => return None,
    })
}

/// What stands before `,sinks:S`, and S; 0 where it is not given.
fn split_sinks(text: &str) -> Option<(&str, u32)> {
    match text.split_once(",sinks:") {
        Some((rest, sinks)) => Some((rest, number(sinks)?)),
        None => Some((text, 0)),
    }
}

/// Digits alone: no sign, no space.
pub(super) fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}
