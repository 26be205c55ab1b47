//! What was freed of, as lines of shares that can change hands.

use crate::placement::export::pieces::Pieces;
use crate::placement::export::{Run, Task};

/// Consecutive tokens of a line that one worker computes and one holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// First token within the sample.
    pub(super) start: u32,
    /// One past the last.
    pub(super) end: u32,
    pub(super) home: u32,
    pub(super) worker: u32,
    /// A tail that the worker before keeps.
    pub(super) stays: bool,
}

impl Share {
    /// Whether it is a run of `worker`.
    pub(super) fn is_run_of(&self, worker: u32) -> bool {
        self.worker == worker && self.home != worker && !self.stays
    }

    pub(super) const fn tokens(&self) -> u64 {
        (self.end - self.start) as u64
    }
}

/// An end of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) line: usize,
    /// Place in the line.
    pub(super) share: usize,
    /// Where the share is cut.
    pub(super) cut: u32,
    /// Whether what is above the cut leaves, or what is below.
    pub(super) is_top: bool,
}

/// A sample in one shard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) sample: u32,
    pub(super) shard: u32,
    slot: u32,
    /// Its shares, ascending.
    begin: usize,
    end: usize,
}

/// Every shard of the samples of which something was freed.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    pub(super) all: Vec<Line>,
    shares: Vec<Share>,
    /// Lines that a worker holds or computes something of, ascending.
    of_worker: Vec<Vec<u32>>,
}

impl Lines {
    /// Lays out what is kept, and `runs`, sorted.
    pub(super) fn lay_out(&mut self, task: &Task<'_>, pieces: &Pieces, runs: &[Run]) {
        self.shares.clear();
        self.all.clear();
        self.of_worker.iter_mut().for_each(Vec::clear);
        self.of_worker.resize(task.targets.len(), Vec::new());
        let sample_of = |id: u32| pieces.pieces[id as usize].sample;
        for of_sample in pieces.freed.chunk_by(|&a, &b| sample_of(a) == sample_of(b)) {
            for shard in 0..task.problem.heads.shards() {
                self.lay_out_line(task, pieces, runs, (sample_of(of_sample[0]), shard));
            }
        }
    }

    fn lay_out_line(
        &mut self,
        task: &Task<'_>,
        pieces: &Pieces,
        runs: &[Run],
        (sample, shard): (u32, u32),
    ) {
        let offset = task.problem.pool.starts()[sample as usize];
        let slot = pieces.pieces_of(sample)[0].slot;
        let first = runs.partition_point(|r| (r.slot, r.shard, r.start) < (slot, shard, offset));
        let mut next = runs[first..].iter().peekable();
        let begin = self.shares.len();
        for id in pieces.of_sample(sample) {
            let piece = &pieces.pieces[id as usize];
            let keeper = pieces.keeper(piece, shard);
            let home = piece.home + (keeper - piece.keeper);
            let kept = pieces.kept_of(id, shard);
            let kept = Share {
                start: kept.start,
                end: kept.end,
                home,
                worker: keeper,
                stays: keeper != home,
            };
            let of_piece = self.shares.len();
            self.push(of_piece, kept);
            // What is not kept of a piece was given away in runs.
            let end = offset + piece.end;
            while let Some(run) =
                next.next_if(|r| (r.slot, r.shard) == (slot, shard) && r.start < end)
            {
                let run = Share {
                    start: run.start - offset,
                    end: run.end - offset,
                    worker: run.worker,
                    stays: false,
                    ..kept
                };
                self.push(of_piece, run);
            }
        }
        let end = self.shares.len();
        self.add(Line {
            sample,
            shard,
            slot,
            begin,
            end,
        });
    }

    /// Appends a share, or lengthens the last of the piece whose shares begin at `first`: tiles do not
    /// reach over pieces.
    fn push(&mut self, first: usize, share: Share) {
        if share.start == share.end {
            return;
        }
        if let Some(last) = self.shares[first..].last_mut() {
            let whose = |share: &Share| (share.home, share.worker, share.stays);
            if whose(last) == whose(&share) {
                last.end = share.end;
                return;
            }
        }
        self.shares.push(share);
    }

    fn add(&mut self, line: Line) {
        let id = self.all.len() as u32;
        for share in &self.shares[line.begin..line.end] {
            for worker in [share.home, share.worker] {
                let lines = &mut self.of_worker[worker as usize];
                if lines.last() != Some(&id) {
                    lines.push(id);
                }
            }
        }
        self.all.push(line);
    }

    /// Shares of a line, ascending.
    pub(super) fn shares_of(&self, line: usize) -> &[Share] {
        let Line { begin, end, .. } = self.all[line];
        &self.shares[begin..end]
    }

    /// Lines of which both workers hold or compute something; all that they ever will.
    pub(super) fn common(&self, [a, b]: [u32; 2]) -> impl Iterator<Item = usize> {
        let mut of_b = self.of_worker[b as usize].iter().peekable();
        let of_a = self.of_worker[a as usize].iter();
        of_a.filter(move |&line| {
            while of_b.next_if(|&other| other < line).is_some() {}
            of_b.peek() == Some(&line)
        })
        .map(|&line| line as usize)
    }

    /// Work of the runs of `worker` in a line.
    pub(super) fn work_of_runs(&self, task: &Task<'_>, line: usize, worker: u32) -> u64 {
        let sample = self.all[line].sample;
        let runs = self.shares_of(line).iter().filter(|s| s.is_run_of(worker));
        runs.map(|run| task.work(sample, run.start, run.end)).sum()
    }

    /// Work of an end.
    pub(super) fn work_of_end(&self, task: &Task<'_>, end: End) -> u64 {
        let (share, sample) = (
            self.shares_of(end.line)[end.share],
            self.all[end.line].sample,
        );
        if end.is_top {
            task.work(sample, end.cut, share.end)
        } else {
            task.work(sample, share.start, end.cut)
        }
    }

    /// The runs of one worker in a line go to another.
    pub(super) fn hand_runs(&mut self, line: usize, [from, to]: [u32; 2]) {
        let Line { begin, end, .. } = self.all[line];
        hand_runs(&mut self.shares[begin..end], [from, to]);
    }

    /// An end goes to `worker`.
    pub(super) fn hand_end(&mut self, end: End, worker: u32) {
        let line = self.all[end.line];
        let before = self.shares.len();
        cut_off(&mut self.shares, line.begin + end.share, end, worker);
        let grown = self.shares.len() - before;
        self.all[end.line].end += grown;
        for line in &mut self.all[end.line + 1..] {
            line.begin += grown;
            line.end += grown;
        }
    }

    /// Runs of all lines, in place of those before.
    pub(super) fn write(&self, task: &Task<'_>, runs: &mut Vec<Run>) {
        runs.clear();
        for (at, line) in self.all.iter().enumerate() {
            let offset = task.problem.pool.starts()[line.sample as usize];
            let shares = self.shares_of(at).iter();
            runs.extend(shares.filter(|s| s.is_run_of(s.worker)).map(|share| Run {
                slot: line.slot,
                shard: line.shard,
                start: offset + share.start,
                end: offset + share.end,
                worker: share.worker,
            }));
        }
    }
}

/// The runs of one worker among `shares` go to another.
pub(super) fn hand_runs(shares: &mut [Share], [from, to]: [u32; 2]) {
    let runs = shares.iter_mut().filter(|share| share.is_run_of(from));
    runs.for_each(|share| share.worker = to);
}

/// Cuts the share at `place` and gives the end to `worker`.
pub(super) fn cut_off(shares: &mut Vec<Share>, place: usize, end: End, worker: u32) {
    let share = shares[place];
    let mut low = Share {
        end: end.cut,
        ..share
    };
    let mut high = Share {
        start: end.cut,
        ..share
    };
    let given = if end.is_top { &mut high } else { &mut low };
    given.worker = worker;
    if high.start == high.end {
        shares[place] = low;
    } else if low.start == low.end {
        shares[place] = high;
    } else {
        shares[place] = high;
        shares.insert(place, low);
    }
}
