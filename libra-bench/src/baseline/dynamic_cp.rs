//! Dynamic context parallelism: every sample on as many workers as it needs, in groups of samples between barriers.
//! Megatron Core's balanced scheduler of hybrid context parallelism (NVIDIA/Megatron-LM).
//!
//! Samples of a window, longest first, need 2^⌈log₂(ℓ/c)⌉ workers of c = L/CP tokens. They lie in buckets of like work, as
//! many as there are sizes. The first bucket's longest that can run goes to free workers, else to the team of its size
//! with the least work ℓ²/size, until nothing fits or, once a smaller size came up, all workers are within 5 %. Then the
//! last samples of the heaviest team are put back while that helps, and teams of the smallest size double into workers that
//! are free. What is left makes the next group, after a barrier. Within a team samples run one after the other as
//! zigzag rings. O(samples · (teams + sizes)) a group.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use libra_exec::Steps;
use libra_exec::steps::{Piece, Place, ring};
use libra_sched::{Error, LayoutKind, PackedLengths, SampleId, TokenLayout};

use super::steps::{Scheme, StepWork};
use super::{Group, Work};
use crate::failure::Failure;
use crate::preset::Shapes;

/// Workers are balanced when the lightest lacks less than the heaviest's 1/20.
const BALANCED: u128 = 20;
/// A bucket closes above 11/10 of its share.
const BUCKET: (u128, u128) = (11, 10);

/// A sample by its number in the window, and its tokens.
type Sample = (usize, u32);

/// Workers that run the same samples, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Team {
    size: u32,
    samples: Vec<Sample>,
    /// Of each worker.
    load: u128,
}

/// How many workers there are, and what each can hold.
#[derive(Clone, Copy, Debug)]
struct Scheduler {
    workers: u32,
    tokens_max: u32,
}

/// All workers, from barrier to barrier.
pub(super) fn groups(window: &PackedLengths, shapes: &Shapes) -> Result<Vec<Group>, Failure> {
    let shape = &shapes.window;
    let scheduler = Scheduler {
        workers: shape.dp() * shape.cp(),
        tokens_max: shape.seq_tokens().div_ceil(shape.cp()),
    };
    let sample = |sample| (sample, window.length(SampleId::new(sample)));
    let samples = (0..window.samples()).map(sample).collect();
    let rounds = scheduler.rounds(samples);
    let group = |(ga, teams): (usize, Vec<Team>)| group(&teams, ga as u32, scheduler, shapes);
    rounds.into_iter().enumerate().map(group).collect()
}

impl Scheduler {
    /// Teams of every group.
    fn rounds(self, mut samples: Vec<Sample>) -> Vec<Vec<Team>> {
        samples.sort_by_key(|&(sample, tokens)| (std::cmp::Reverse(tokens), sample));
        let mut rounds = Vec::new();
        while !samples.is_empty() {
            rounds.push(self.round(&mut samples));
        }
        rounds
    }

    /// Workers that `tokens` need, all at most.
    fn needed(self, tokens: u32) -> u32 {
        tokens
            .div_ceil(self.tokens_max)
            .next_power_of_two()
            .min(self.workers)
    }

    /// Buckets of like work.
    fn buckets(self, samples: &[Sample]) -> VecDeque<VecDeque<Sample>> {
        let work_of = |tokens| work(tokens, self.needed(tokens));
        let sizes: BTreeSet<u32> = samples
            .iter()
            .map(|&(_, tokens)| self.needed(tokens))
            .collect();
        let total: u128 = samples.iter().map(|&(_, tokens)| work_of(tokens)).sum();
        let mut buckets = VecDeque::new();
        let (mut bucket, mut used) = (VecDeque::new(), 0);
        let (mut open, (above, below)) = (sizes.len(), BUCKET);
        for (at, &sample) in samples.iter().enumerate() {
            let more = used + work_of(sample.1);
            // So many samples must be left for the buckets to come.
            let is_scarce = samples.len() - at <= open.saturating_sub(buckets.len());
            let is_full = more * below * sizes.len() as u128 > total * above;
            if !bucket.is_empty() && (is_full || is_scarce) {
                buckets.push_back(std::mem::take(&mut bucket));
                used = 0;
                open = open.saturating_sub(1);
            }
            bucket.push_back(sample);
            used += work_of(sample.1);
        }
        buckets.push_back(bucket);
        buckets
    }

    /// Takes the samples of one group out of `samples`.
    fn round(self, samples: &mut Vec<Sample>) -> Vec<Team> {
        let mut buckets = self.buckets(samples);
        let mut teams: Vec<Team> = Vec::new();
        let mut first_size = None;
        let mut is_watched = false;
        while let Some(sample) = self.next(&mut buckets, &teams) {
            let size = self.needed(sample.1);
            if self.free(&teams) >= size {
                let mut team = Team::new(size);
                team.push(sample);
                teams.push(team);
            } else {
                let of_size = teams.iter_mut().filter(|team| team.size == size);
                let team = of_size.min_by_key(|team| team.load);
                team.expect("a sample that can run").push(sample);
            }
            // Sizes only shrink within a group, from the first on.
            is_watched |= size < *first_size.get_or_insert(size);
            if is_watched && !buckets.is_empty() && self.is_balanced(&teams) {
                break;
            }
        }
        *samples = buckets.into_iter().flatten().collect();
        self.trim(&mut teams, samples);
        self.fill(&mut teams);
        teams
    }

    /// The longest sample of the first bucket whose longest can run.
    fn next(self, buckets: &mut VecDeque<VecDeque<Sample>>, teams: &[Team]) -> Option<Sample> {
        let free = self.free(teams);
        let can_run = |bucket: &&mut VecDeque<Sample>| {
            let size = bucket.front().map(|&(_, tokens)| self.needed(tokens));
            size.is_some_and(|size| size <= free || teams.iter().any(|team| team.size == size))
        };
        let sample = buckets.iter_mut().find(can_run)?.pop_front();
        while buckets.front().is_some_and(VecDeque::is_empty) {
            buckets.pop_front();
        }
        sample
    }

    /// Workers without a team.
    fn free(self, teams: &[Team]) -> u32 {
        self.workers - teams.iter().map(|team| team.size).sum::<u32>()
    }

    /// Work of the heaviest and the lightest worker.
    fn extremes(self, teams: &[Team]) -> (u128, u128) {
        let loads = || teams.iter().map(|team| team.load);
        let is_full = self.free(teams) == 0;
        let lightest = loads().min().filter(|_| is_full);
        (loads().max().unwrap_or(0), lightest.unwrap_or(0))
    }

    fn is_balanced(self, teams: &[Team]) -> bool {
        let (most, least) = self.extremes(teams);
        (most - least) * BALANCED <= most
    }

    /// Puts the last sample of the heaviest team back while workers then differ less.
    fn trim(self, teams: &mut [Team], left: &mut Vec<Sample>) {
        loop {
            let (most, least) = self.extremes(teams);
            let heaviest = teams.iter().position(|team| team.load == most);
            let Some(at) = heaviest.filter(|&at| teams[at].samples.len() > 1) else {
                return;
            };
            // Free workers are filled next.
            if self.is_balanced(teams) || least == 0 {
                return;
            }
            let Some(sample) = teams[at].pop() else {
                return;
            };
            let (most_after, least_after) = self.extremes(teams);
            if most_after - least_after >= most - least {
                teams[at].push(sample);
                return;
            }
            left.push(sample);
        }
    }

    /// Doubles teams of the smallest size, the first of equals, while workers are free.
    fn fill(self, teams: &mut [Team]) {
        loop {
            let free = self.free(teams);
            let Some(team) = teams.iter_mut().min_by_key(|team| team.size) else {
                return;
            };
            let size = (2 * team.size).min(self.workers);
            if free == 0 || size - team.size > free {
                return;
            }
            team.resize(size);
        }
    }
}

impl Team {
    fn new(size: u32) -> Self {
        Self {
            size,
            samples: Vec::new(),
            load: 0,
        }
    }

    fn push(&mut self, sample: Sample) {
        self.samples.push(sample);
        self.load += work(sample.1, self.size);
    }

    fn pop(&mut self) -> Option<Sample> {
        let sample = self.samples.pop()?;
        self.load -= work(sample.1, self.size);
        Some(sample)
    }

    fn resize(&mut self, size: u32) {
        self.size = size;
        self.load = self
            .samples
            .iter()
            .map(|&(_, tokens)| work(tokens, size))
            .sum();
    }
}

/// Work of each of `size` workers, in 2^-32 of a square.
fn work(tokens: u32, size: u32) -> u128 {
    let square = u128::from(tokens) * u128::from(tokens);
    (square << 32) / u128::from(size)
}

/// A team at its workers.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    workers: Range<u32>,
    /// By their numbers in the group.
    samples: Range<usize>,
}

/// Teams side by side, the first at the first worker.
fn group(teams: &[Team], ga: u32, scheduler: Scheduler, shapes: &Shapes) -> Result<Group, Failure> {
    let workers = scheduler.workers as usize;
    let mut tokens = vec![0; workers];
    let mut held: Vec<Vec<Piece>> = vec![Vec::new(); workers];
    let mut placed = Vec::new();
    let (mut first, mut number) = (0, 0);
    for team in teams {
        let members = first..first + team.size;
        let samples = number..number + team.samples.len();
        (first, number) = (members.end, samples.end);
        for (sample, &(_, length)) in samples.clone().zip(&team.samples) {
            let layout = TokenLayout::new(LayoutKind::Zigzag, 1, length, team.size)?;
            for fragment in layout.fragments(0) {
                let worker = (members.start + fragment.rank) as usize;
                tokens[worker] += u64::from(fragment.end - fragment.start);
                let (sample, start, end) = (SampleId::new(sample), fragment.start, fragment.end);
                match held[worker].last_mut() {
                    Some(last) if (last.sample, last.end) == (sample, start) => last.end = end,
                    _ => held[worker].push(Piece { sample, start, end }),
                }
            }
        }
        placed.push(Placed {
            workers: members,
            samples,
        });
    }
    let samples = || (teams.iter()).flat_map(|team| &team.samples);
    let lengths = packed(samples().map(|&(_, tokens)| tokens), shapes)?;
    let work = StepWork::new(lengths, held, shapes, Scheme::Teams(placed))?;
    Ok(Group {
        ga,
        replicas: 0..shapes.window.dp(),
        samples: samples()
            .map(|&(sample, _)| SampleId::new(sample))
            .collect(),
        tokens,
        work: Work::Steps(Box::new(work)),
    })
}

/// Samples in order in sequences of L tokens: each holds as many as fit.
fn packed(samples: impl Iterator<Item = u32>, shapes: &Shapes) -> Result<PackedLengths, Error> {
    let limit = shapes.window.seq_tokens();
    let (mut sequences, mut used) = (vec![Vec::new()], 0);
    for tokens in samples {
        if tokens > limit - used {
            sequences.push(Vec::new());
            used = 0;
        }
        used += tokens;
        sequences.last_mut().expect("there is one").push(tokens);
    }
    PackedLengths::new(limit.into(), sequences)
}

/// A worker alone computes its samples at once, a team one after the other.
pub(super) fn run(steps: &mut Steps, teams: &[Placed]) {
    for Placed { workers, samples } in teams {
        if workers.len() == 1 {
            let alone = workers.start;
            let compute = steps.block(alone, vec![Place::Own], samples.clone());
            steps.forward(alone, compute);
            steps.backward(alone, compute);
            continue;
        }
        let team: Vec<u32> = workers.clone().collect();
        for sample in samples.clone() {
            ring(steps, &team, sample..sample + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sizes and lengths of the teams of every group, of workers that hold 10 tokens.
    fn rounds(workers: u32, lengths: &[u32]) -> Vec<Vec<(u32, Vec<u32>)>> {
        let scheduler = Scheduler {
            workers,
            tokens_max: 10,
        };
        let samples = lengths.iter().copied().enumerate().collect();
        let lengths = |team: Team| (team.size, team.samples.into_iter().map(|s| s.1).collect());
        let of = |teams: Vec<Team>| teams.into_iter().map(lengths).collect();
        scheduler.rounds(samples).into_iter().map(of).collect()
    }

    #[test]
    fn a_sample_on_all_workers_is_a_group_of_its_own() {
        let [alone, five] = [vec![(4, vec![40])], vec![(4, vec![5])]];
        // 5 on 10 makes 125 beside 100, more than 5 % apart: it is put back, and then has all workers to itself.
        let tens = vec![(1, vec![10]); 4];
        assert_eq!(rounds(4, &[10, 10, 40, 5, 10, 10]), [alone, tens, five]);
    }

    #[test]
    fn a_free_worker_doubles_the_smallest_team() {
        assert_eq!(rounds(4, &[20, 10]), [[(2, vec![20]), (2, vec![10])]]);
        assert_eq!(rounds(8, &[10]), [[(8, vec![10])]]);
    }

    #[test]
    fn what_overloads_a_team_is_put_back() {
        // 100 and 81; 8 on 9 makes 145, 1 on 10 makes 101. Without 8: 101 and 81; without 1 too: 100 and 81.
        let expected = [[(1, vec![10]), (1, vec![9])], [(1, vec![8]), (1, vec![1])]];
        assert_eq!(rounds(2, &[10, 9, 8, 1]), expected);
    }

    #[test]
    fn long_samples_get_the_next_power_of_two() {
        let scheduler = Scheduler {
            workers: 8,
            tokens_max: 10,
        };
        let needed = [1, 10, 11, 20, 21, 40, 41, 80].map(|tokens| scheduler.needed(tokens));
        assert_eq!(needed, [1, 1, 2, 2, 4, 4, 8, 8]);
    }

    proptest! {
        #[test]
        fn every_sample_runs_once_on_enough_workers(
            lengths in prop::collection::vec(1..80u32, 1..60),
            workers in prop::sample::select(vec![8u32, 12, 16]),
        ) {
            let rounds = rounds(workers, &lengths);
            let mut seen = Vec::new();
            for teams in &rounds {
                prop_assert!(teams.iter().map(|team| team.0).sum::<u32>() <= workers);
                for (size, samples) in teams {
                    prop_assert!(samples.iter().all(|&tokens| tokens <= 10 * size));
                    seen.extend(samples.iter().copied());
                }
            }
            seen.sort_unstable();
            let mut lengths = lengths;
            lengths.sort_unstable();
            prop_assert_eq!(seen, lengths);
        }
    }
}
