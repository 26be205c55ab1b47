//! How fast lengths are read: `cargo bench -p libra-bench --bench lengths -- [SAMPLES]`, 10^8 unless said otherwise.
//!
//! Writes a `.npy` of 32-bit numbers and a `.idx` of as many samples into a temporary folder (24 bytes a sample), then
//! reads each several times, in blocks, one by one and counted, and prints the best rate. Best, because whatever else
//! the machine does only slows a run down. Documents have one sequence each, as those of most datasets.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use libra_bench::workload::{
    Distribution, IdxSamples, LengthCounts, LengthSource, Lengths, Samples, open,
};

const ROUNDS: usize = 5;

fn main() -> std::io::Result<()> {
    let asked = std::env::args().skip(1).find_map(|word| word.parse().ok());
    let samples: u64 = asked.unwrap_or(100_000_000);
    let folder = tempfile::tempdir()?;
    let (npy, idx) = (folder.path().join("a.npy"), folder.path().join("a.idx"));
    write_npy(&npy, samples)?;
    write_idx(&idx, samples)?;
    println!("{samples} samples, best of {ROUNDS}, in millions a second");
    println!(
        "  {:22} {:>9} {:>11} {:>8}",
        "", "in blocks", "one by one", "counted"
    );
    for (name, path, idx) in [
        (".npy", &npy, None),
        (".idx, documents", &idx, Some(IdxSamples::Documents)),
        (".idx, sequences", &idx, Some(IdxSamples::Sequences)),
    ] {
        let options = LengthSource {
            idx,
            ..LengthSource::default()
        };
        let rate = |read: fn(Lengths) -> u64| {
            let times = (0..ROUNDS).map(|_| {
                let spec = path.to_str().expect("temporary folders are UTF-8");
                let begin = Instant::now();
                let found = read(open(&[spec], &options).expect("the file is whole"));
                let time = begin.elapsed();
                assert_eq!(found, samples, "{name}");
                time.as_secs_f64()
            });
            samples as f64 / 1e6 / times.fold(f64::INFINITY, f64::min)
        };
        let (blocks, singly, counted) = (rate(in_blocks), rate(one_by_one), rate(counted));
        println!("  {name:22} {blocks:>9.0} {singly:>11.0} {counted:>8.0}");
    }
    Ok(())
}

/// Touches every length and returns how many there are.
fn in_blocks(mut lengths: Lengths) -> u64 {
    let (mut count, mut tokens) = (0, 0_u64);
    while let Some(block) = lengths.next_block().expect("the file is whole") {
        count += block.len() as u64;
        tokens += block.iter().copied().map(u64::from).sum::<u64>();
    }
    black_box(tokens);
    count
}

fn one_by_one(lengths: Lengths) -> u64 {
    let (count, tokens) = lengths.fold((0, 0), |(count, tokens), length| {
        (count + 1, tokens + length)
    });
    black_box(tokens);
    count
}

fn counted(mut lengths: Lengths) -> u64 {
    let mut counts = LengthCounts::default();
    while let Some(block) = lengths.next_block().expect("the file is whole") {
        counts.add_all(block);
    }
    counts.stats().map_or(0, |stats| stats.samples)
}

/// A million drawn lengths, again and again.
fn drawn() -> impl Iterator<Item = u32> {
    let distribution: Distribution = "calibrated-256k".parse().expect("legal");
    let drawn: Samples = distribution.samples(256 << 10, 7).expect("legal");
    let lengths: Vec<u32> = drawn.take(1_000_000).map(|length| length as u32).collect();
    (0..).map(move |index: usize| lengths[index % lengths.len()])
}

fn write_npy(path: &Path, samples: u64) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let header = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': ({samples},), }}");
    file.write_all(b"\x93NUMPY\x01\x00\x76\x00")?;
    writeln!(file, "{header:<117}")?;
    for length in drawn().take(samples as usize) {
        file.write_all(&length.to_le_bytes())?;
    }
    file.flush()
}

fn write_idx(path: &Path, samples: u64) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(b"MMIDIDX\0\0")?;
    file.write_all(&1_u64.to_le_bytes())?;
    file.write_all(&[4])?;
    file.write_all(&samples.to_le_bytes())?;
    file.write_all(&(samples + 1).to_le_bytes())?;
    for length in drawn().take(samples as usize) {
        file.write_all(&length.to_le_bytes())?;
    }
    let mut offset = 0_u64;
    for length in drawn().take(samples as usize) {
        file.write_all(&offset.to_le_bytes())?;
        offset += 4 * u64::from(length);
    }
    for index in 0..=samples {
        file.write_all(&index.to_le_bytes())?;
    }
    file.flush()
}
