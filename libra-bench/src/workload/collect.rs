use std::path::{Path, PathBuf};

use serde_json::Value;

use super::TOKENS_MAX;
use super::error::{InputError, Place};
use crate::units::shorten;

/// Takes the numbers of a source one by one and makes lengths of them.
pub(super) struct Collector {
    path: PathBuf,
    unit: &'static str,
    cumulative: bool,
    /// The last running sum, if there was one.
    previous: Option<u64>,
    total: u64,
    samples: u64,
}

impl Collector {
    pub(super) fn new(path: &Path, unit: &'static str, cumulative: bool) -> Self {
        Self {
            path: path.to_owned(),
            unit,
            cumulative,
            previous: None,
            total: 0,
            samples: 0,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether numbers are lengths as they are.
    pub(super) fn is_plain(&self) -> bool {
        !self.cumulative
    }

    /// Takes the number that stands at line, row or element `number`.
    pub(super) fn push(
        &mut self,
        block: &mut Vec<u32>,
        number: u64,
        value: u64,
    ) -> Result<(), InputError> {
        if !self.cumulative {
            return self.push_length(block, number, value);
        }
        match self.previous.replace(value) {
            None if value == 0 => Ok(()),
            None => self.push_length(block, number, value),
            Some(previous) if value < previous => Err(InputError::Descending {
                place: self.place(number),
                value,
                previous,
            }),
            Some(previous) => self.push_length(block, number, value - previous),
        }
    }

    fn push_length(
        &mut self,
        block: &mut Vec<u32>,
        number: u64,
        length: u64,
    ) -> Result<(), InputError> {
        if length == 0 {
            return Err(InputError::Zero {
                place: self.place(number),
            });
        }
        if length > TOKENS_MAX {
            return Err(InputError::TooLong {
                place: self.place(number),
                value: length.to_string(),
            });
        }
        self.count(number, 1, length)?;
        block.push(length as u32);
        Ok(())
    }

    /// Counts samples that were checked elsewhere, the last of them at `number`.
    pub(super) fn count(
        &mut self,
        number: u64,
        samples: u64,
        tokens: u64,
    ) -> Result<(), InputError> {
        self.samples += samples;
        self.total = (self.total.checked_add(tokens)).ok_or_else(|| InputError::Total {
            place: self.place(number),
            value: tokens,
        })?;
        Ok(())
    }

    /// As [`Self::push`], for a number in decimal.
    pub(super) fn push_text(
        &mut self,
        block: &mut Vec<u32>,
        number: u64,
        text: &str,
    ) -> Result<(), InputError> {
        if let Ok(value) = text.parse() {
            return self.push(block, number, value);
        }
        let place = self.place(number);
        let value = shorten(text);
        Err(match is_integer(text) {
            true if text.starts_with('-') => InputError::Negative { place, value },
            true => InputError::TooLong { place, value },
            false => InputError::NotAnInteger { place, value },
        })
    }

    /// As [`Self::push`], for a number in JSON.
    pub(super) fn push_json(
        &mut self,
        block: &mut Vec<u32>,
        number: u64,
        value: &Value,
    ) -> Result<(), InputError> {
        // serde_json makes a float of an integer beyond 64 bits.
        let huge = |value: f64| value.abs() >= u64::MAX as f64;
        match value {
            Value::Number(float) if float.is_f64() && !float.as_f64().is_some_and(huge) => {
                let value = shorten(&float.to_string());
                Err(InputError::NotAnInteger {
                    place: self.place(number),
                    value,
                })
            }
            Value::Number(float) if float.as_f64().is_some_and(|value| value < 0.0) => {
                Err(self.negative(number, float.to_string()))
            }
            Value::Number(integer) => match integer.as_u64() {
                Some(value) => self.push(block, number, value),
                None => Err(InputError::TooLong {
                    place: self.place(number),
                    value: integer.to_string(),
                }),
            },
            other => {
                let value = shorten(&other.to_string());
                Err(InputError::NotAnInteger {
                    place: self.place(number),
                    value,
                })
            }
        }
    }

    /// A source of `entries` lines or elements must have at least one sample.
    pub(super) fn finish(&self, entries: u64) -> Result<(), InputError> {
        if self.samples == 0 {
            let path = self.path.clone();
            return Err(InputError::NoSamples {
                path,
                entries,
                unit: self.unit,
            });
        }
        Ok(())
    }

    pub(super) fn negative(&self, number: u64, value: String) -> InputError {
        InputError::Negative {
            place: self.place(number),
            value,
        }
    }

    pub(super) fn place(&self, number: u64) -> Place {
        Place {
            path: self.path.clone(),
            unit: self.unit,
            number,
        }
    }

    pub(super) fn missing_column(
        &self,
        number: u64,
        wanted: Option<&str>,
        names: &[&str],
    ) -> InputError {
        InputError::MissingColumn {
            place: self.place(number),
            column: wanted_column(wanted),
            present: present_columns(names),
        }
    }
}

/// A column that was looked for.
pub(super) fn wanted_column(wanted: Option<&str>) -> String {
    match wanted {
        Some(column) => format!("`{column}`"),
        None => "`length` or `tokens`".to_owned(),
    }
}

/// The columns that are there.
pub(super) fn present_columns(names: &[&str]) -> String {
    match names {
        [] => "none, only bare numbers".to_owned(),
        names => shorten(&names.join(", ")),
    }
}

/// The column of that name; without one `length`, else `tokens`, else the only one if it does not say that it counts
/// something else.
pub(super) fn choose_column(names: &[&str], wanted: Option<&str>) -> Option<usize> {
    let find = |wanted: &str| names.iter().position(|name| *name == wanted);
    let counts_other = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.contains("byte") || name.contains("char")
    };
    match wanted {
        Some(wanted) => find(wanted),
        None => find("length").or_else(|| find("tokens")).or(match names {
            [only] if !counts_other(only) => Some(0),
            _ => None,
        }),
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_beyond_64_bits_is_refused() {
        let mut lengths = Collector::new(Path::new("a.txt"), "line", false);
        let mut block = Vec::new();
        lengths.total = u64::MAX - 7;
        assert!(lengths.push(&mut block, 1, 7).is_ok());
        let error = lengths.push(&mut block, 2, 1).unwrap_err().to_string();
        assert_eq!(
            error,
            "a.txt, line 2: 1 more tokens bring the corpus past 18446744073709551615"
        );
    }
}
