//! `sweep`: combinations of settings over the same windows, one row each, and which to take.

mod combinations;
mod front;
mod resume;
mod table;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::combinations::Combination;
use self::front::Point;
use super::plan::{config, line, words};
use super::{Context, Outcome, code};
use crate::cli::{
    Beside, ClusterArgs, Format, Over, PlanArgs, SweepArgs, Verify, WindowArgs, WorkloadArgs,
};
use crate::failure::Failure;
use crate::identity::FileIdentity;
use crate::interrupt;
use crate::measure::{Source, SweepOptions, VERIFIED_EVERY, combination};
use crate::measured;
use crate::preset::Settings;
use crate::report::Report;

/// Files are written after a combination, but no more often than this.
const SAVE_EVERY: Duration = Duration::from_secs(1);

pub(super) fn run(
    context: &Context,
    workload: &WorkloadArgs,
    windows: &WindowArgs,
    cluster: &ClusterArgs,
    plan: &PlanArgs,
    asked: &SweepArgs,
) -> Outcome {
    let base = Settings::new(workload, cluster, plan);
    let source = Source::new(workload)?;
    let combinations = combinations::all(&base, &asked.over)?;
    let sweep = Sweep {
        context,
        files: files(&source, &combinations)?,
        source,
        combinations,
        base,
        over: &asked.over,
        options: SweepOptions {
            windows: windows.windows.unwrap_or(1),
            beside: asked.beside,
            verify: asked.verify,
        },
    };
    let mut cases = vec![None; sweep.combinations.len()];
    if asked.resume {
        let report = sweep.report(&cases);
        cases = resume::cases(resumed(context)?, &report, &sweep.combinations)?;
    }
    let done = sweep.measure(&mut cases);
    let report = sweep.report(&cases);
    if let Err(failure) = done {
        // What was done before the failure is kept.
        context.save(&report)?;
        return Err(failure);
    }
    Ok((report, code()))
}

/// The file that holds what is done.
fn resumed(context: &Context) -> Result<&Path, Failure> {
    let json = |&(_, format): &(&Path, Format)| format == Format::Json;
    let mut files = context.files().filter(json).map(|(path, _)| path);
    match (files.next(), files.next()) {
        (Some(path), None) => Ok(path),
        (None, _) => Err(Failure::ResumeFile("none was given".to_owned())),
        (Some(_), Some(_)) => Err(Failure::ResumeFile("several were given".to_owned())),
    }
}

/// The files that decide numbers, as they are. One that cannot be read is left out: its reader will say why.
fn files(source: &Source, combinations: &[Combination]) -> Result<Vec<FileIdentity>, Failure> {
    let mut paths = source.files()?;
    for Combination { settings, .. } in combinations {
        let speeds = settings.speeds.as_deref().and_then(measured::speeds_file);
        let costs = settings.costs.as_deref().map(Path::new);
        for path in costs.into_iter().chain(speeds) {
            if paths.iter().all(|known| known != path) {
                paths.push(path.to_owned());
            }
        }
    }
    let identities = paths.iter().map(|path| FileIdentity::of(path));
    Ok(identities.filter_map(Result::ok).collect())
}

/// What was asked for.
struct Sweep<'a> {
    context: &'a Context,
    source: Source,
    files: Vec<FileIdentity>,
    base: Settings,
    over: &'a [Over],
    combinations: Vec<Combination>,
    options: SweepOptions,
}

impl Sweep<'_> {
    /// Fills in the cases that are missing, in order, until the user asks for an end.
    fn measure(&self, cases: &mut [Option<Value>]) -> Result<(), Failure> {
        let placements = match self.options.beside {
            Beside::None => 1,
            Beside::Paper => 2,
        };
        let pools = |one: &Combination| u64::from(one.shapes.window.pools()) * placements;
        let missing = self.combinations.iter().zip(cases.iter());
        let missing = missing.filter(|(_, case)| case.is_none());
        let steps = missing.fold(0u64, |sum, (one, _)| {
            sum.saturating_add(pools(one).saturating_mul(self.options.windows))
        });
        let progress = self.context.progress("planned", steps);
        let (mut saved, mut few) = (Instant::now(), None);
        for (index, one) in self.combinations.iter().enumerate() {
            if interrupt::requested() {
                break;
            }
            if cases[index].is_some() {
                continue;
            }
            let step = || progress.step();
            let (settings, shapes) = (&one.settings, &one.shapes);
            let Some(case) = combination(&self.source, settings, shapes, &self.options, step)?
            else {
                break;
            };
            if !case.is_partial() {
                self.warn_of_few(&mut few, one, case.windows());
            }
            let mut value = one.json();
            value.extend(case.json());
            if case.is_partial() {
                value.insert("interrupted".to_owned(), json!(true));
            }
            cases[index] = Some(Value::Object(value));
            if saved.elapsed() >= SAVE_EVERY {
                self.context.save(&self.report(cases))?;
                saved = Instant::now();
            }
        }
        Ok(())
    }

    /// Says that there are fewer windows than were asked for, once for combinations in a row that have as many.
    fn warn_of_few(&self, few: &mut Option<u64>, one: &Combination, windows: u64) {
        let asked = self.options.windows;
        if windows < asked && *few != Some(windows) {
            let of = match one.name.as_str() {
                "-" => String::new(),
                name => format!("{name}: "),
            };
            self.context.warn(&format!(
                "{of}{asked} windows asked for, the corpus has {windows}"
            ));
            *few = Some(windows);
        }
    }

    /// Of what is done.
    fn report(&self, cases: &[Option<Value>]) -> Report {
        let mut report = Report::new("sweep", line(&self.words()));
        report.seed = Some(self.base.seed);
        report.config = config(&self.source, &self.base, self.options.windows);
        report.config["over"] = json!(self.over.iter().map(Over::to_string).collect::<Vec<_>>());
        report.config["beside"] = json!(self.options.beside.name());
        report.config["verify"] = json!(self.options.verify.name());
        report.config["files"] = json!(self.files);
        report.header();
        report.note(self.base.line());
        report.note(format!("lengths {}", self.source.name()));
        report.note("");
        let done = self.combinations.iter().zip(cases);
        let rows: Vec<(&str, &Value)> = done
            .filter_map(|(one, case)| Some((one.name.as_str(), case.as_ref()?)))
            .collect();
        let points: Vec<Option<Point>> =
            rows.iter().map(|(name, case)| point(name, case)).collect();
        let places = table::places(&points);
        let beside = self.options.beside != Beside::None;
        report.table(table::table(self.context, &rows, &places, beside));
        report.note("pools, workers: heaviest over mean, less 1; gap: over what is proved, less 1");
        report.note("worst: heaviest worker of a window over the mean of all its workers, less 1");
        if beside {
            report
                .note("of alg 2: over what Algorithm 2 with whole groups costs on the same pools");
        }
        report.note(self.verified(&rows));
        let whole: Vec<Point> = points.into_iter().flatten().collect();
        let advice = front::advice(&whole);
        if let Some(advice) = &advice {
            report.note(
                "front: no other has a lower worst mean R-1 without more bytes a worker, or more time of a port",
            );
            report.note(format!("take {}: {}", advice.combination, advice.reason));
        }
        report.more.insert("recommended".to_owned(), json!(advice));
        report.reproduce(report.reproduce.clone());
        let value = |((_, case), place): (&(&str, &Value), &Option<table::Place>)| {
            let mut case = (*case).clone();
            if let Some(place) = place {
                case["pareto_bytes"] = json!(place.pareto_bytes);
                case["pareto_port"] = json!(place.pareto_port);
            }
            if self.context.global.no_timings {
                case["vrsp_ns_median"] = Value::Null;
                case["plan_ns_median"] = Value::Null;
            }
            case
        };
        report.cases = rows.iter().zip(&places).map(value).collect();
        report
    }

    fn words(&self) -> Vec<String> {
        let mut words = words("sweep", &self.source, &self.base, self.options.windows);
        for over in self.over {
            words.extend(["--over".to_owned(), over.to_string()]);
        }
        for (flag, value, usual) in [
            (
                "--beside",
                self.options.beside.name(),
                Beside::default().name(),
            ),
            (
                "--verify",
                self.options.verify.name(),
                Verify::default().name(),
            ),
        ] {
            if value != usual {
                words.extend([flag.to_owned(), value]);
            }
        }
        words.extend(super::global_flags(&self.context.global));
        words
    }

    /// How many plans were looked at.
    fn verified(&self, rows: &[(&str, &Value)]) -> String {
        let sum = |name: &str| {
            rows.iter()
                .filter_map(|(_, case)| case[name].as_u64())
                .sum::<u64>()
        };
        let (verified, pools) = (sum("verified_pools"), sum("pools"));
        match self.options.verify {
            Verify::All => format!("verified: every plan, {verified}"),
            Verify::Sample => format!(
                "verified: every plan of the first window and every {VERIFIED_EVERY}st after, {verified} of {pools}"
            ),
            Verify::None => "no plan was verified".to_owned(),
        }
    }
}

/// A case as it competes with others; one that was interrupted does not.
fn point(name: &str, case: &Value) -> Option<Point> {
    (case["interrupted"] != Value::Bool(true)).then(|| Point {
        name: name.to_owned(),
        worst_excess: table::number(case, "worst_excess_mean"),
        worker_bytes: table::number(case, "worker_moved_bytes_mean"),
        port_us: table::number(case, "busiest_port_us_mean"),
    })
}
