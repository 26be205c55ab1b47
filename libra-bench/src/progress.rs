//! How far a command is: a bar on a terminal, a line per 10 % elsewhere. All of it on stderr.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressMode {
    /// A bar on a terminal; elsewhere lines, once it takes more than two seconds.
    #[default]
    Auto,
    /// A line per 10 %.
    Plain,
    /// Nothing.
    Off,
}

/// Below this no lines are printed unless asked for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Progress through a known number of steps; may be shared by threads.
pub(crate) struct Progress {
    what: &'static str,
    steps: u64,
    done: AtomicU64,
    begin: Instant,
    show: Show,
}

enum Show {
    Nothing,
    Lines { patience: Duration },
    Bar(ProgressBar),
}

impl Progress {
    /// Begins `steps` steps of `what`: `planned`, `checked`.
    pub(crate) fn new(mode: ProgressMode, what: &'static str, steps: u64) -> Self {
        let show = match mode {
            ProgressMode::Off => Show::Nothing,
            ProgressMode::Plain => Show::Lines {
                patience: Duration::ZERO,
            },
            ProgressMode::Auto if std::io::stderr().is_terminal() => Show::Bar(bar(what, steps)),
            ProgressMode::Auto => Show::Lines { patience: PATIENCE },
        };
        Self {
            what,
            steps,
            done: AtomicU64::new(0),
            begin: Instant::now(),
            show,
        }
    }

    /// One step is done.
    pub(crate) fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        match &self.show {
            Show::Nothing => {}
            Show::Bar(bar) => bar.inc(1),
            Show::Lines { patience } => {
                let tenth = |done: u64| done * 10 / self.steps.max(1);
                let elapsed = self.begin.elapsed();
                if tenth(done) > tenth(done - 1) && elapsed >= *patience {
                    let (what, steps) = (self.what, self.steps);
                    let percent = done * 100 / steps.max(1);
                    eprintln!(
                        "{what} {done} of {steps} ({percent} %){}",
                        left(elapsed, done, steps)
                    );
                }
            }
        }
    }
}

/// About how long the rest takes, where it takes a while.
fn left(elapsed: Duration, done: u64, steps: u64) -> String {
    let left = elapsed.as_secs_f64() * steps.saturating_sub(done) as f64 / done.max(1) as f64;
    match left >= PATIENCE.as_secs_f64() {
        true => format!(", about {left:.0} s left"),
        false => String::new(),
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Show::Bar(bar) = &self.show {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str, steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {pos}/{len}, {eta} left")
        .expect("the template is a constant");
    ProgressBar::new(steps)
        .with_style(style.progress_chars("=> "))
        .with_message(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_once_it_is_worth_it() {
        let left = |elapsed, done| left(Duration::from_secs(elapsed), done, 100);
        assert_eq!(left(10, 25), ", about 30 s left");
        assert_eq!(left(10, 90), "");
        assert_eq!(left(10, 100), "");
    }
}
