//! Files of what was measured on the machines: times of attention, and speeds of workers.

use std::fs;
use std::path::Path;

use libra_sched::{CostTable, Mask, Speed, Speeds};
use serde::Deserialize;

use crate::failure::Failure;

/// Most bytes of such a file: far more than a table of any use.
const BYTES_MAX: u64 = 16 << 20;

/// A file of `--costs`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CostFile {
    /// For people: device, kernel, date.
    #[serde(default, rename = "about")]
    _about: String,
    /// What was measured.
    mask: String,
    /// Tokens of the measured samples: rows.
    lengths: Vec<u32>,
    /// Query heads: columns.
    heads: Vec<u32>,
    /// A row a length, an entry a head count.
    time_ns: Vec<Vec<f64>>,
}

/// The table in `path`.
pub(crate) fn read_costs(path: &Path) -> Result<CostTable, Failure> {
    let text = read(path)?;
    let file: CostFile = serde_json::from_str(&text).map_err(|source| Failure::CostFile {
        path: path.to_owned(),
        source,
    })?;
    let table = file
        .mask
        .parse()
        .and_then(|mask: Mask| CostTable::new(mask, &file.lengths, &file.heads, &file.time_ns));
    table.map_err(|source| Failure::Measured {
        place: path.display().to_string(),
        source,
    })
}

/// The file that `text` of `--speeds` names, if it names one.
pub(crate) fn speeds_file(text: &str) -> Option<&Path> {
    (!text.contains('=')).then(|| Path::new(text))
}

/// The speeds that `text` gives to `workers`: `W=SPEED,…` with 1 for all others, or a file with one
/// speed a line.
pub(crate) fn read_speeds(text: &str, workers: u32) -> Result<Speeds, Failure> {
    let speeds = match speeds_file(text) {
        Some(path) => lines(path)?,
        None => listed(text, workers)?,
    };
    let speeds = Speeds::new(speeds);
    speeds.check_workers(workers)?;
    Ok(speeds)
}

fn listed(text: &str, workers: u32) -> Result<Vec<Speed>, Failure> {
    let mut speeds = vec![Speed::NOMINAL; workers as usize];
    let mut given = vec![false; workers as usize];
    for word in text.split(',') {
        let refuse = |why: String| Failure::SpeedList {
            word: word.to_owned(),
            why,
        };
        let (worker, speed) = word
            .split_once('=')
            .ok_or_else(|| refuse("legal is WORKER=SPEED such as 3=0.8".to_owned()))?;
        let worker = worker.parse::<usize>().ok();
        let worker = worker
            .filter(|&worker| worker < speeds.len())
            .ok_or_else(|| refuse(format!("workers are 0 to {}", workers.saturating_sub(1))))?;
        if std::mem::replace(&mut given[worker], true) {
            return Err(refuse(format!("worker {worker} is named before")));
        }
        speeds[worker] = speed.parse().map_err(|source| Failure::Measured {
            place: format!("--speeds, {word}"),
            source,
        })?;
    }
    Ok(speeds)
}

fn lines(path: &Path) -> Result<Vec<Speed>, Failure> {
    let text = read(path)?;
    let numbered = (1..).zip(text.lines());
    let speeds = numbered
        .map(|(number, line)| (number, line.split('#').next().unwrap_or("").trim()))
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| {
            line.parse().map_err(|source| Failure::Measured {
                place: format!("{}, line {number}", path.display()),
                source,
            })
        });
    speeds.collect()
}

/// The text of a regular file.
fn read(path: &Path) -> Result<String, Failure> {
    let fail = |source| Failure::Read {
        path: path.to_owned(),
        source,
    };
    let metadata = fs::metadata(path).map_err(fail)?;
    if !metadata.is_file() || metadata.len() > BYTES_MAX {
        let why = format!("legal is a regular file of at most {BYTES_MAX} bytes");
        return Err(fail(std::io::Error::other(why)));
    }
    fs::read_to_string(path).map_err(fail)
}
