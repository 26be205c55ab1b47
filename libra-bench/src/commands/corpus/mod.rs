//! `corpus`: what a length source is, before and after packing, in one pass and constant memory.

mod counted;
mod plot;

use serde_json::json;

use self::counted::Counted;
use super::plan::line;
use super::{Context, Outcome, code, excess};
use crate::cli::{ClusterArgs, CorpusArgs, PlanArgs, WindowArgs, WorkloadArgs};
use crate::failure::Failure;
use crate::measure::{Source, windows};
use crate::preset::Settings;
use crate::report::{Column, Report, Table};
use crate::units::{format_bytes, format_count};
use crate::workload::stats::{expected_excess, pool_size_for};
use crate::workload::{Bucket, CorpusStats, Order, PackError, PackedStats, PackedTally, Share};
use crate::{interrupt, store};

/// Excesses for which a pool size is named, if none are asked for.
const TARGETS: [f64; 4] = [0.5, 0.2, 0.1, 0.05];
/// Characters of the longest bar.
const BAR: u64 = 40;

pub(super) fn run(
    context: &Context,
    workload: &WorkloadArgs,
    window_args: &WindowArgs,
    args: &CorpusArgs,
) -> Outcome {
    let source = Source::new(workload)?;
    let settings = Settings::new(workload, &ClusterArgs::default(), &PlanArgs::default());
    let output = match context.others().next() {
        Some(path) => Some(plot::checked(path)?),
        None => None,
    };
    let count = match source.is_drawn() {
        false => window_args.windows,
        // A distribution has no end.
        true => Some(window_args.windows.unwrap_or(1)),
    };
    let described = describe(context, &source, &settings, count)?;
    let mut words = vec!["corpus".to_owned()];
    words.extend(source.words());
    if let Some(windows) = window_args.windows {
        words.extend(["--windows".to_owned(), format_count(windows)]);
    }
    for excess in &args.excess {
        words.extend(["--excess".to_owned(), excess.to_string()]);
    }
    words.extend(settings.flags());
    let mut report = Report::new("corpus", line(&words));
    report.seed = Some(settings.seed);
    report.config = json!({
        "lengths": source.name(),
        "order": source.order().to_string(),
        "tokens": settings.tokens,
        "gbs": settings.gbs,
        "pack": settings.pack.to_string(),
        "fill_last": settings.fill_last,
        "skip_windows": settings.skip_windows,
        "windows": count,
    });
    report.header();
    report.note(format!("lengths {}", source.name()));
    if let (Some(stats), true) = (&described.samples, source.order() != Order::AsIs) {
        let held = format_bytes(source.order().held_bytes(stats.samples));
        report.note(format!(
            "order {}, {held} of lengths in memory",
            source.order()
        ));
    }
    report.note("");
    if let Some(stats) = &described.samples {
        samples(&mut report, stats);
        if let Some(path) = output {
            store::write_file(path, plot::svg(&source.name(), stats).as_bytes())?;
            context.detail(&format!("wrote {}", path.display()));
        }
    }
    if let Some(stats) = &described.packed {
        report.note("");
        sequences(&mut report, stats, &settings, described.windows);
        within_windows(&mut report, &described.within);
        let targets = if args.excess.is_empty() {
            &TARGETS
        } else {
            args.excess.as_slice()
        };
        pool_sizes(&mut report, stats, &settings, targets);
    }
    report.reproduce(report.reproduce.clone());
    Ok((report, code()))
}

/// What one pass over a source finds.
struct Described {
    samples: Option<CorpusStats>,
    packed: Option<PackedStats>,
    windows: u64,
    within: WithinWindows,
}

/// Packs up to `count` windows; counts all samples of a file, and as many of a distribution as the windows take.
fn describe(
    context: &Context,
    source: &Source,
    settings: &Settings,
    count: Option<u64>,
) -> Result<Described, Failure> {
    let lengths = Counted::new(source.lengths(settings)?, source.is_drawn());
    let mut stream = windows(lengths, settings)?;
    let (mut tally, mut within) = (PackedTally::default(), WithinWindows::default());
    let mut taken = 0;
    while count.is_none_or(|count| taken < count) && !interrupt::requested() {
        let window = stream.next();
        stream.lengths_mut().begin_window()?;
        match window {
            None => break,
            Some(Err(error @ PackError::TooShort { .. })) => {
                context.warn(&error.to_string());
                break;
            }
            Some(window) => {
                let window = window?;
                tally.add(&window);
                within.add(PackedStats::of([&window]));
                taken += 1;
            }
        }
    }
    let counted = stream.lengths_mut();
    if !source.is_drawn() {
        counted.drain()?;
    }
    Ok(Described {
        samples: counted.stats(),
        packed: tally.stats(),
        windows: taken,
        within,
    })
}

/// A share for people.
fn per_cent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

fn samples(report: &mut Report, stats: &CorpusStats) {
    let rows = [
        ("samples", stats.samples.to_string()),
        ("tokens", stats.tokens.to_string()),
        ("shortest", stats.min_tokens.to_string()),
        ("median", stats.p50_tokens.to_string()),
        ("mean", format!("{:.0}", stats.mean_tokens)),
        ("75th percentile", stats.p75_tokens.to_string()),
        ("90th percentile", stats.p90_tokens.to_string()),
        ("99th percentile", stats.p99_tokens.to_string()),
        ("99.9th percentile", stats.p999_tokens.to_string()),
        ("longest", stats.max_tokens.to_string()),
    ];
    report.table(Table {
        columns: vec![Column::text("samples as they are"), Column::number("", "")],
        rows: rows
            .map(|(name, value)| vec![name.to_owned(), value])
            .to_vec(),
    });
    report.note("");
    if !stats.tails.is_empty() {
        report.table(Table {
            columns: [Column::number("samples", "over")]
                .into_iter()
                .chain(SHARES)
                .collect(),
            rows: stats.tails.iter().map(share_row).collect(),
        });
        report.note("");
    }
    report.table(sample_histogram(stats));
    report.more.insert("samples".to_owned(), json!(stats));
}

/// Columns of [`share_row`].
const SHARES: [Column; 4] = [
    Column::number("samples", ""),
    Column::number("of them", "%"),
    Column::number("tokens", "%"),
    Column::number("work", "%"),
];

fn share_row(share: &Share) -> Vec<String> {
    vec![
        format_count(share.tokens),
        share.samples.to_string(),
        per_cent(share.sample_share),
        per_cent(share.token_share),
        per_cent(share.work_share),
    ]
}

/// Samples by powers of two.
fn sample_histogram(stats: &CorpusStats) -> Table {
    let most = stats
        .shares
        .iter()
        .map(|share| share.samples)
        .max()
        .unwrap_or(0);
    let row = |share: &Share| {
        let mut row = share_row(share);
        row.push(bar(share.samples, most));
        row
    };
    let columns = [Column::number("tokens", "from")].into_iter().chain(SHARES);
    Table {
        columns: columns.chain([Column::text("")]).collect(),
        rows: stats.shares.iter().map(row).collect(),
    }
}

fn sequences(report: &mut Report, stats: &PackedStats, settings: &Settings, windows: u64) {
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
#[derive(Debug, Default)]
struct WithinWindows {
    windows: u64,
    cv: SumAndMost,
    phi: SumAndMost,
}

#[derive(Debug, Default)]
struct SumAndMost {
    sum: f64,
    most: f64,
}

impl SumAndMost {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.most = self.most.max(value);
    }
}

impl WithinWindows {
    fn add(&mut self, stats: Option<PackedStats>) {
        if let Some(stats) = stats {
            self.windows += 1;
            self.cv.add(stats.work_cv);
            self.phi.add(stats.work_max_over_mean);
        }
    }
}

fn within_windows(report: &mut Report, within: &WithinWindows) {
    let mean = |of: &SumAndMost| of.sum / within.windows as f64;
    let (cv_mean, cv_max) = (mean(&within.cv), within.cv.most);
    let (phi_mean, phi_max) = (mean(&within.phi), within.phi.most);
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
fn pool_sizes(report: &mut Report, stats: &PackedStats, settings: &Settings, targets: &[f64]) {
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
    for &target in targets {
        let pool_size = pool_size_for(stats.work_cv, gbs, target);
        asked.push(json!({ "excess": target, "pool_size": pool_size }));
        report.note(format!("an excess of {target} asks for P = {pool_size}"));
    }
    report.more.insert("pool_size_for".to_owned(), json!(asked));
}

/// A bar a power of two.
fn histogram(of: &'static str, count: &'static str, buckets: &[Bucket]) -> Table {
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0);
    let row = |bucket: &Bucket| {
        vec![
            format_count(bucket.from),
            bucket.count.to_string(),
            bar(bucket.count, most),
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

/// A bar for `count` where `most` has the longest. A bucket with anything in it is seen.
fn bar(count: u64, most: u64) -> String {
    let length = (u128::from(count) * u128::from(BAR)).div_ceil(u128::from(most.max(1)));
    "#".repeat(length as usize)
}
