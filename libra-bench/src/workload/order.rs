//! The order in which samples are packed: as they come, through a shuffle buffer, or all of them shuffled.
//!
//! Equal lengths, order and seed give equal lengths on every machine. The random numbers come from xoshiro256++, 2^192
//! steps beyond where drawn lengths begin, so that an order and the lengths that it orders share none.

use std::fmt;
use std::mem;
use std::str::FromStr;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::error::InputError;
use super::lengths::{BLOCK, Blocks, Held, Lengths};
use crate::units::{format_count, parse_count};

/// Most samples held at a time: 4 GiB of them.
const SAMPLES_MAX: usize = 1 << 30;

/// The order of samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// As they come.
    #[default]
    AsIs,
    /// Each is drawn from a buffer of so many, and the next takes its place there: a sample comes at most so many places
    /// early, and may come late. 4 bytes a place.
    Windowed(u32),
    /// Every order is as likely as any other. 4 bytes a sample.
    Shuffled,
}

impl Order {
    /// The samples of `lengths` in this order.
    pub fn apply(self, lengths: Lengths, seed: u64) -> Lengths {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        random.long_jump();
        match self {
            Self::AsIs => lengths,
            Self::Windowed(places) => Lengths::new(Windowed {
                lengths,
                places: places as usize,
                buffer: Vec::new(),
                random,
            }),
            Self::Shuffled => Lengths::new(Shuffled {
                state: State::Unread(lengths),
                limit: SAMPLES_MAX,
                random,
            }),
        }
    }

    /// Bytes that a corpus of `samples` takes in memory.
    pub fn held_bytes(self, samples: u64) -> u64 {
        let held = match self {
            Self::AsIs => 0,
            Self::Windowed(places) => samples.min(places.into()),
            Self::Shuffled => samples,
        };
        held.saturating_mul(4)
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsIs => f.write_str("as-is"),
            Self::Windowed(places) => write!(f, "windowed:{}", format_count((*places).into())),
            Self::Shuffled => f.write_str("shuffled"),
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = |problem: &str| {
            Err(format!(
                "`{text}` {problem}; legal is as-is, windowed:N with N from 1 to {SAMPLES_MAX}, or shuffled"
            ))
        };
        match text.split_once(':') {
            None if text == "as-is" => Ok(Self::AsIs),
            None if text == "shuffled" => Ok(Self::Shuffled),
            Some(("windowed", places)) => match parse_count(places) {
                Ok(places) if (1..=SAMPLES_MAX as u64).contains(&places) => {
                    Ok(Self::Windowed(places as u32))
                }
                _ => refuse("has no such number of places"),
            },
            _ => refuse("is not an order"),
        }
    }
}

/// A shuffle buffer.
struct Windowed {
    lengths: Lengths,
    places: usize,
    buffer: Vec<u32>,
    random: Xoshiro256PlusPlus,
}

impl Blocks for Windowed {
    fn fill(&mut self, block: &mut Vec<u32>) -> Result<(), InputError> {
        while block.len() < BLOCK {
            match self.lengths.next() {
                Some(length) if self.buffer.len() < self.places => self.buffer.push(length as u32),
                Some(length) => {
                    let place = below(&mut self.random, self.places as u64) as usize;
                    block.push(mem::replace(&mut self.buffer[place], length as u32));
                }
                None => {
                    if let Some(error) = self.lengths.take_error() {
                        return Err(error);
                    }
                    if self.buffer.is_empty() {
                        return Ok(());
                    }
                    let place = below(&mut self.random, self.buffer.len() as u64) as usize;
                    block.push(self.buffer.swap_remove(place));
                }
            }
        }
        Ok(())
    }
}

/// All samples, shuffled when the first is asked for.
struct Shuffled {
    state: State,
    limit: usize,
    random: Xoshiro256PlusPlus,
}

enum State {
    Unread(Lengths),
    Read(Held),
}

impl Blocks for Shuffled {
    fn fill(&mut self, block: &mut Vec<u32>) -> Result<(), InputError> {
        if let State::Unread(lengths) = &mut self.state {
            let mut all = Vec::new();
            while let Some(more) = lengths.next_block()? {
                if all.len() + more.len() > self.limit {
                    let limit = self.limit;
                    return Err(InputError::TooManyToShuffle { limit });
                }
                all.extend_from_slice(more);
            }
            shuffle(&mut all, &mut self.random);
            self.state = State::Read(Held::new(all));
        }
        match &mut self.state {
            State::Read(held) => held.fill(block),
            State::Unread(_) => Ok(()),
        }
    }
}

/// Fisher and Yates, from the end: Durstenfeld, Algorithm 235, CACM 1964. O(n).
fn shuffle(all: &mut [u32], random: &mut Xoshiro256PlusPlus) {
    for end in (1..all.len()).rev() {
        let place = below(random, end as u64 + 1) as usize;
        all.swap(end, place);
    }
}

/// Uniform on the integers below `limit`, without bias: Lemire, Fast Random Integer Generation in an Interval, ACM TOMACS
/// 2019. `rand` has it too, but not with a promise that its numbers stay the same.
fn below(random: &mut Xoshiro256PlusPlus, limit: u64) -> u64 {
    let mut product = u128::from(random.next_u64()) * u128::from(limit);
    if (product as u64) < limit {
        let refused = limit.wrapping_neg() % limit;
        while (product as u64) < refused {
            product = u128::from(random.next_u64()) * u128::from(limit);
        }
    }
    (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_shuffle_of_too_many_samples_is_refused_with_what_is_legal() {
        let mut shuffled = Lengths::new(Shuffled {
            state: State::Unread(Lengths::new(Held::new(vec![1; 9]))),
            limit: 8,
            random: Xoshiro256PlusPlus::seed_from_u64(7),
        });
        assert_eq!(shuffled.next(), None);
        let error = shuffled.take_error().expect("too many").to_string();
        assert_eq!(
            error,
            "the corpus has more than 8 samples, all that a full shuffle holds in memory, at 4 bytes each; \
             legal is --order windowed:N, which holds N"
        );
    }

    #[test]
    fn numbers_below_a_limit_are_all_there_and_equally_often() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[below(&mut random, 6) as usize] += 1;
        }
        // Five standard deviations of a binomial distribution are 456.
        assert!(
            counts.iter().all(|count| count.abs_diff(10_000) < 456),
            "{counts:?}"
        );
        // Most of the products are refused here.
        let limit = (1 << 63) + 1;
        assert!((0..1000).all(|_| below(&mut random, limit) < limit));
    }
}
