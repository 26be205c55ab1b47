//! `doctor`: this machine, for a bug report. Looks, never installs, and always ends well.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::Outcome;
use crate::exit;
use crate::report::{Column, PROGRAM, Report, Table, commit};
use crate::units::format_bytes;

/// Where shared libraries usually are.
const LIBRARY_FOLDERS: [&str; 7] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/cuda/lib64",
];

pub(super) fn run() -> Outcome {
    let mut report = Report::new("doctor", "libra-bench doctor".to_owned());
    report.header();
    report.note("");
    let mut rows = Vec::new();
    for (item, found) in machine()
        .into_iter()
        .chain(accelerators())
        .chain(backends())
    {
        report.cases.push(json!({ "item": item, "found": found }));
        rows.push(vec![
            item.to_owned(),
            found.unwrap_or_else(|| "not found".to_owned()),
        ]);
    }
    report.table(Table {
        columns: vec![Column::text("what"), Column::text("found")],
        rows,
    });
    report.reproduce(report.reproduce.clone());
    Ok((report, exit::DONE))
}

type Finding = (&'static str, Option<String>);

fn machine() -> Vec<Finding> {
    let cores = std::thread::available_parallelism().ok();
    vec![
        ("program", Some(PROGRAM.to_owned())),
        ("commit", commit().map(str::to_owned)),
        ("os", Some(std::env::consts::OS.to_owned())),
        ("kernel", first_line("/proc/sys/kernel/osrelease")),
        ("architecture", Some(std::env::consts::ARCH.to_owned())),
        ("processor", cpu_info("model name")),
        ("cores", cores.map(|cores| cores.to_string())),
        ("cpu features", features()),
        ("memory", memory()),
        ("rustc", said("rustc", &["--version"])),
    ]
}

fn accelerators() -> Vec<Finding> {
    let gpus = said(
        "nvidia-smi",
        &[
            "--query-gpu=name,memory.total,driver_version",
            "--format=csv,noheader",
        ],
    );
    vec![
        ("nvidia driver", first_line("/proc/driver/nvidia/version")),
        ("gpus", gpus),
        ("libcuda", library("libcuda.so")),
        ("libnccl", library("libnccl.so")),
        ("mpirun", said("mpirun", &["--version"])),
    ]
}

fn backends() -> Vec<Finding> {
    let absent = "not in this build, which has only the cpu backend";
    vec![
        ("backend cpu", Some("in this build".to_owned())),
        ("backend nccl", Some(absent.to_owned())),
        ("backend mpi", Some(absent.to_owned())),
    ]
}

fn first_line(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

fn cpu_info(name: &str) -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Vector extensions that matter to the fast kernel.
fn features() -> Option<String> {
    let flags = cpu_info("flags").or_else(|| cpu_info("Features"))?;
    let known = [
        "sse4_2", "avx", "avx2", "fma", "avx512f", "amx_bf16", "asimd", "sve",
    ];
    let found = flags.split_whitespace().filter(|flag| known.contains(flag));
    let found: Vec<&str> = found.collect();
    (!found.is_empty()).then(|| found.join(" "))
}

fn memory() -> Option<String> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(format_bytes(kib.saturating_mul(1024)))
}

/// The first line that a program says, if there is one.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    match lines[..] {
        [] => None,
        [one] => Some(one.to_owned()),
        // As many lines as GPUs; other programs say what matters first.
        [first, ..] if program != "nvidia-smi" => Some(first.to_owned()),
        [first, ..] => Some(format!("{} x {first}", lines.len())),
    }
}

/// A file that begins with `name` where the loader looks.
fn library(name: &str) -> Option<String> {
    let own = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = own.split(':').filter(|folder| !folder.is_empty());
    folders.chain(LIBRARY_FOLDERS).find_map(|folder| {
        let entries = std::fs::read_dir(Path::new(folder)).ok()?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|file| file.starts_with(name))
            .collect();
        names.sort();
        names.first().map(|file| format!("{folder}/{file}"))
    })
}
