//! What `sweep` takes beside the flags of `plan`: lists of values, a yardstick, how much is verified.

use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

use clap::{Args, CommandFactory, ValueEnum};

use super::Cli;
use crate::units::{format_count, parse_counts};

/// Flags of `sweep` alone.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Plan")]
pub(crate) struct SweepArgs {
    /// A flag and the values it takes in turn, as H=1,2,4,8 or B=2K..32K*2; all combinations where given several times.
    /// A list or range after the flag itself does the same: -P 2,4,8
    #[arg(long, value_name = "FLAG=V,V")]
    pub(crate) over: Vec<Over>,
    /// What is planned on the same pools to compare with
    #[arg(long, value_enum, default_value_t, help_heading = "Measure")]
    pub(crate) beside: Beside,
    /// Which plans are verified
    #[arg(long, value_enum, default_value_t, help_heading = "Measure")]
    pub(crate) verify: Verify,
    /// Take what is done from the .json file of -o, if it is there, and do what is missing
    #[arg(long, help_heading = "Output")]
    pub(crate) resume: bool,
}

/// A yardstick on the same pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Beside {
    /// Nothing.
    #[default]
    None,
    /// Algorithm 2 with whole groups.
    Paper,
}

/// Which plans an independent check looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verify {
    /// Every plan.
    All,
    /// Every plan of the first window, and some of the others, the same each time.
    #[default]
    Sample,
    /// No plan.
    None,
}

impl Beside {
    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        name(self)
    }
}

impl Verify {
    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        name(self)
    }
}

fn name(value: impl ValueEnum) -> String {
    let value = value.to_possible_value().expect("no value is skipped");
    value.get_name().to_owned()
}

/// A flag and the values it takes in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Over {
    /// As it is typed: `--placement`, or `-H`.
    pub(crate) flag: String,
    /// At least one.
    pub(crate) values: Vec<String>,
}

/// How a list of a flag's values is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    /// Counts and ranges.
    Counts,
    /// Words without a comma.
    Words,
    /// Words that may have a comma: parted by semicolons where one has.
    Phrases,
}

/// Flags of a plan or a cluster that may take several values: the name after `--over`, the long flag, what its values
/// are.
const SWEPT: &[(&str, &str, List)] = &[
    ("P", "pool-size", List::Counts),
    ("H", "head-shards", List::Counts),
    ("B", "block", List::Counts),
    ("M", "chunks", List::Counts),
    ("tokens", "tokens", List::Counts),
    ("gbs", "gbs", List::Counts),
    ("pack", "pack", List::Words),
    ("dp", "dp", List::Counts),
    ("cp", "cp", List::Counts),
    ("pp", "pp", List::Counts),
    ("gpus-per-node", "gpus-per-node", List::Counts),
    ("nodes-per-pod", "nodes-per-pod", List::Counts),
    ("slack", "slack", List::Words),
    ("q-heads", "q-heads", List::Counts),
    ("kv-heads", "kv-heads", List::Counts),
    ("head-dim", "head-dim", List::Counts),
    ("v-head-dim", "v-head-dim", List::Counts),
    ("mask", "mask", List::Phrases),
    ("layout", "layout", List::Words),
    ("kv", "kv", List::Words),
    ("kv-route", "kv-route", List::Words),
    ("tiles", "tiles", List::Words),
    ("vrsp", "vrsp", List::Words),
    ("elastic", "elastic", List::Words),
    ("ga-order", "ga-order", List::Words),
    ("placement", "placement", List::Words),
    ("proxy", "proxy", List::Phrases),
];

impl FromStr for Over {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) = text.split_once('=').unwrap_or((text, ""));
        let name = name.trim_start_matches('-');
        let Some((_, _, list)) = SWEPT.iter().find(|(known, ..)| *known == name) else {
            let legal: Vec<&str> = SWEPT.iter().map(|(name, ..)| *name).collect();
            let legal = legal.join(", ");
            return Err(format!("no flag `{name}` to sweep over; legal is {legal}"));
        };
        // Values with a comma of their own are parted by semicolons.
        let parts = if values.contains(';') { ';' } else { ',' };
        let mut parted: Vec<String> = values.split(parts).map(|v| v.trim().to_owned()).collect();
        if parted.iter().any(String::is_empty) {
            return Err(format!(
                "`{text}` lacks a value; legal is {name}=VALUE,VALUE"
            ));
        }
        if *list == List::Counts && values.contains("..") {
            let counts = parse_counts(values).map_err(|error| error.to_string())?;
            parted = counts.into_iter().map(format_count).collect();
        }
        let dashes = if name.len() == 1 { "-" } else { "--" };
        Ok(Self {
            flag: format!("{dashes}{name}"),
            values: parted,
        })
    }
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = if self.values.iter().any(|value| value.contains(',')) {
            ";"
        } else {
            ","
        };
        let name = self.flag.trim_start_matches('-');
        write!(f, "{name}={}", self.values.join(part))
    }
}

/// The words of a command line in which a flag of `sweep` with a list or a range, `-P 2,4,8` or `--block=2K..32K*2`, is
/// `--over` with the same values. A flag whose single values may have commas is left alone, and so is any other command.
pub(crate) fn with_lists_as_over(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let words: Vec<OsString> = words.into_iter().collect();
    let program = Cli::command();
    let is_command = |word: &OsString| {
        let word = word.to_str();
        word.is_some_and(|word| program.find_subcommand(word).is_some())
    };
    let Some(command) = words.iter().skip(1).position(is_command) else {
        return words;
    };
    let (before, after) = words.split_at(command + 2);
    if before.last().is_none_or(|word| word != "sweep") {
        return words;
    }
    let mut read = before.to_vec();
    let mut rest = after.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            read.push(word.clone());
            break;
        }
        let next = rest.as_slice().first().and_then(|next| next.to_str());
        match word.to_str().and_then(|word| list_of(word, next)) {
            Some((over, from_next)) => {
                read.extend(["--over".into(), over.into()]);
                if from_next {
                    rest.next();
                }
            }
            None => read.push(word.clone()),
        }
    }
    read.extend(rest.cloned());
    read
}

/// What follows `--over`, and whether its values are the next word, where `word` is a flag with a list of values.
fn list_of(word: &str, next: Option<&str>) -> Option<(String, bool)> {
    for &(name, long, list) in SWEPT.iter().filter(|(.., list)| *list != List::Phrases) {
        let is_list = |values: &str| {
            let has_range = list == List::Counts && values.contains("..");
            has_range || values.contains(',')
        };
        let short = (name.len() == 1).then(|| word.strip_prefix('-')?.strip_prefix(name));
        let rest = match short.flatten() {
            Some(rest) => rest,
            None => match word.strip_prefix("--").and_then(|w| w.strip_prefix(long)) {
                Some(rest) if rest.is_empty() || rest.starts_with('=') => rest,
                _ => continue,
            },
        };
        let (values, from_next) = match rest {
            "" => (next?, true),
            rest => (rest.strip_prefix('=').unwrap_or(rest), false),
        };
        return is_list(values).then(|| (format!("{name}={values}"), from_next));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        let words = line.split_whitespace().map(OsString::from);
        let words = with_lists_as_over(words).into_iter();
        let words: Vec<String> = words.filter_map(|word| word.into_string().ok()).collect();
        words.join(" ")
    }

    #[test]
    fn lists_and_ranges_after_a_flag_are_swept_over() {
        for (typed, meant) in [
            ("-P 2,4", "--over P=2,4"),
            ("-P2,4", "--over P=2,4"),
            ("-P=2,4", "--over P=2,4"),
            ("--pool-size=2..4 x", "--over P=2..4 x"),
            ("--block 2K..32K*2 -q", "--over B=2K..32K*2 -q"),
            ("--kv whole,range", "--over kv=whole,range"),
            ("--slack 0.03,0.1", "--over slack=0.03,0.1"),
        ] {
            assert_eq!(
                read(&format!("bench sweep {typed}")),
                format!("bench sweep {meant}")
            );
        }
    }

    #[test]
    fn what_is_no_list_and_what_is_no_sweep_stays() {
        for line in [
            "bench sweep a,b.txt -P 2 --pool-size=4 -q",
            "bench sweep --mask window:6,sinks:2 --dist lognormal:12,1",
            "bench sweep --slack 0..1 --kv-heads",
            "bench sweep -- -P 2,4",
            "bench plan sweep -P 2,4",
            "bench -P 2,4",
        ] {
            assert_eq!(read(line), line);
        }
    }

    #[test]
    fn ranges_of_counts_are_written_out() {
        let over: Over = "B=2K..16K*2,1".parse().expect("legal");
        assert_eq!(over.to_string(), "B=2K,4K,8K,16K,1");
        let over: Over = "mask=keys:3..9;causal".parse().expect("legal");
        assert_eq!(over.values, ["keys:3..9", "causal"]);
        assert_eq!(over.to_string().parse(), Ok(over));
        assert!(
            "B=4..2"
                .parse::<Over>()
                .is_err_and(|error| error.contains("upwards"))
        );
    }
}
