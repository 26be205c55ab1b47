//! `corpus`: what a length source is, before and after packing.

use serde_json::json;

use super::plan::line;
use super::{Context, Outcome, code, excess};
use crate::cli::{ClusterArgs, PlanArgs, WindowArgs, WorkloadArgs};
use crate::failure::Failure;
use crate::measure::{Source, packed_windows};
use crate::preset::Settings;
use crate::report::{Column, Report, Table};
use crate::units::format_count;
use crate::workload::stats::{expected_excess, pool_size_for};
use crate::workload::{Bucket, CorpusStats, PackError, Packed, PackedStats};

/// Most samples drawn from a distribution.
const SAMPLES_MAX: usize = 100_000_000;
/// Excesses for which a pool size is named.
const TARGETS: [f64; 4] = [0.5, 0.2, 0.1, 0.05];
/// Characters of the longest bar.
const BAR: u64 = 40;

pub(super) fn run(context: &Context, workload: &WorkloadArgs, windows: &WindowArgs) -> Outcome {
    let source = Source::new(workload)?;
    let settings = Settings::new(workload, &ClusterArgs::default(), &PlanArgs::default());
    let count = match source {
        Source::Read(..) => windows.windows,
        // A distribution has no end.
        Source::Drawn(_) => Some(windows.windows.unwrap_or(1)),
    };
    let lengths = lengths(&source, &settings, count)?;
    let packed = match packed_windows(&lengths, &settings, count) {
        Err(Failure::Pack(error @ PackError::TooShort { .. })) => {
            context.warn(&error.to_string());
            Vec::new()
        }
        packed => packed?,
    };
    let mut words = vec!["corpus".to_owned()];
    words.extend(source.words());
    if let Some(windows) = windows.windows {
        words.extend(["--windows".to_owned(), format_count(windows)]);
    }
    words.extend(settings.flags());
    let mut report = Report::new("corpus", line(&words));
    report.seed = Some(settings.seed);
    report.config = json!({
        "lengths": source.name(),
        "tokens": settings.tokens,
        "gbs": settings.gbs,
        "pack": settings.pack.to_string(),
        "fill_last": settings.fill_last,
        "skip_windows": settings.skip_windows,
        "windows": count,
    });
    report.header();
    report.note(format!("lengths {}", source.name()));
    report.note("");
    if let Some(stats) = CorpusStats::of(&lengths) {
        samples(&mut report, &stats);
    }
    if let Some(stats) = PackedStats::of(&packed) {
        report.note("");
        sequences(&mut report, &stats, &settings, packed.len());
        within_windows(&mut report, &packed);
        pool_sizes(&mut report, &stats, &settings);
    }
    report.reproduce(report.reproduce.clone());
    Ok((report, code()))
}

/// All lengths of a source, or as many of a distribution as its windows hold.
fn lengths(source: &Source, settings: &Settings, count: Option<u64>) -> Result<Vec<u64>, Failure> {
    let lengths = source.lengths(settings)?;
    let Source::Drawn(_) = source else {
        return Ok(lengths.collect());
    };
    let windows = u128::from(count.unwrap_or(1)) + u128::from(settings.skip_windows);
    let mut missing = windows * u128::from(settings.gbs) * u128::from(settings.tokens);
    let mut drawn = Vec::new();
    for length in lengths {
        if missing == 0 {
            break;
        }
        if drawn.len() == SAMPLES_MAX {
            return Err(Failure::TooManySamples { limit: SAMPLES_MAX });
        }
        missing = missing.saturating_sub(length.into());
        drawn.push(length);
    }
    Ok(drawn)
}

fn samples(report: &mut Report, stats: &CorpusStats) {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let rows = [
        ("samples", stats.samples.to_string()),
        ("tokens", stats.tokens.to_string()),
        ("shortest", stats.min_tokens.to_string()),
        ("median", stats.p50_tokens.to_string()),
        ("mean", format!("{:.0}", stats.mean_tokens)),
        ("90th percentile", stats.p90_tokens.to_string()),
        ("99th percentile", stats.p99_tokens.to_string()),
        ("99.9th percentile", stats.p999_tokens.to_string()),
        ("longest", stats.max_tokens.to_string()),
        (
            "tokens in samples over 32K",
            percent(stats.long_token_share),
        ),
        ("work in samples over 32K", percent(stats.long_work_share)),
    ];
    report.table(Table {
        columns: vec![Column::text("samples as they are"), Column::number("", "")],
        rows: rows
            .map(|(name, value)| vec![name.to_owned(), value])
            .to_vec(),
    });
    report.note("");
    report.table(histogram("tokens", "samples", &stats.histogram));
    report.more.insert("samples".to_owned(), json!(stats));
}

fn sequences(report: &mut Report, stats: &PackedStats, settings: &Settings, windows: usize) {
    report.note(format!(
        "packed: {windows} {} of {} sequences of {} tokens, {} tokens of padding",
        if windows == 1 { "window" } else { "windows" },
        settings.gbs,
        format_count(settings.tokens),
        stats.padding_tokens,
    ));
    report.note(format!(
        "work of a sequence (sum of squares), all windows: CV {:.3}, heaviest over mean {:.3}",
        stats.work_cv, stats.work_max_over_mean,
    ));
    report.table(histogram("work", "sequences", &stats.histogram));
    report.more.insert("packed".to_owned(), json!(stats));
}

/// What one optimizer step sees: the same figures window by window.
fn within_windows(report: &mut Report, packed: &[Packed]) {
    let each: Vec<PackedStats> = packed.iter().filter_map(|w| PackedStats::of([w])).collect();
    let mean_and_worst = |of: fn(&PackedStats) -> f64| {
        let worst = each.iter().map(of).fold(0.0, f64::max);
        (each.iter().map(of).sum::<f64>() / each.len() as f64, worst)
    };
    let (cv_mean, cv_max) = mean_and_worst(|stats| stats.work_cv);
    let (phi_mean, phi_max) = mean_and_worst(|stats| stats.work_max_over_mean);
    report.note(format!(
        "within a window: CV {cv_mean:.3} on average, {cv_max:.3} at worst; heaviest over mean {phi_mean:.3} on \
         average, {phi_max:.3} at worst"
    ));
    report.more.insert(
        "within_window".to_owned(),
        json!({
            "work_cv_mean": cv_mean,
            "work_cv_max": cv_max,
            "work_max_over_mean_mean": phi_mean,
            "work_max_over_mean_max": phi_max,
        }),
    );
}

/// What the estimate for pools in random order says.
fn pool_sizes(report: &mut Report, stats: &PackedStats, settings: &Settings) {
    report.note("");
    report.note("pools in random order: how far the heaviest is expected above the mean");
    let mut rows = Vec::new();
    let gbs = u64::from(settings.gbs);
    for pool_size in (0..=7)
        .map(|power| 1u64 << power)
        .filter(|p| gbs.is_multiple_of(*p))
    {
        let expected = expected_excess(stats.work_cv, pool_size, gbs);
        rows.push(vec![pool_size.to_string(), excess(expected)]);
        report
            .cases
            .push(json!({ "pool_size": pool_size, "expected_excess": expected }));
    }
    report.table(Table {
        columns: vec![Column::number("P", ""), Column::number("R-1", "")],
        rows,
    });
    let mut asked = Vec::new();
    for target in TARGETS {
        let pool_size = pool_size_for(stats.work_cv, gbs, target);
        asked.push(json!({ "excess": target, "pool_size": pool_size }));
        report.note(format!("an excess of {target} asks for P = {pool_size}"));
    }
    report.more.insert("pool_size_for".to_owned(), json!(asked));
}

/// A bar a power of two.
fn histogram(of: &'static str, count: &'static str, buckets: &[Bucket]) -> Table {
    let most = buckets
        .iter()
        .map(|bucket| bucket.count)
        .max()
        .unwrap_or(1)
        .max(1);
    let row = |bucket: &Bucket| {
        // A bucket with anything in it is seen.
        let bar = (u128::from(bucket.count) * u128::from(BAR)).div_ceil(u128::from(most)) as usize;
        vec![
            format_count(bucket.from),
            bucket.count.to_string(),
            "#".repeat(bar),
        ]
    };
    Table {
        columns: vec![
            Column::number(of, "from"),
            Column::number(count, ""),
            Column::text(""),
        ],
        rows: buckets.iter().map(row).collect(),
    }
}
