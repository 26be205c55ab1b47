//! Positions found by bisection.

use std::ops::Range;

/// The first of `range` at which `holds`, which stays true from there on; its end where it never does.
pub(crate) fn first_where(range: Range<u32>, holds: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// As [`first_where`], in few steps where the answer is near `guess`: growing steps away from there,
/// then bisection between the last two.
pub(crate) fn first_where_near(range: Range<u32>, guess: u32, holds: impl Fn(u32) -> bool) -> u32 {
    let Range { start, end } = range;
    let guess = guess.clamp(start, end);
    let mut step = 1;
    if guess == end || holds(guess) {
        let mut high = guess;
        while high > start {
            let at = high.saturating_sub(step).max(start);
            if !holds(at) {
                return first_where(at + 1..high, holds);
            }
            (high, step) = (at, step.saturating_mul(4));
        }
        return start;
    }
    let mut low = guess + 1;
    while low < end {
        let at = low.saturating_add(step - 1).min(end - 1);
        if holds(at) {
            return first_where(low..at, holds);
        }
        (low, step) = (at + 1, step.saturating_mul(4));
    }
    end
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{first_where, first_where_near};

    #[test]
    fn bisection_finds_what_a_scan_finds() {
        for (start, end) in [(0, 0), (5, 5), (0, 1), (3, 40)] {
            for answer in start..=end {
                let holds = |at| at >= answer;
                assert_eq!(first_where(start..end, holds), answer);
                for guess in 0..50 {
                    assert_eq!(first_where_near(start..end, guess, holds), answer);
                }
            }
        }
    }

    #[test]
    fn near_a_good_guess_few_positions_are_looked_at() {
        let range = 0..u32::MAX;
        for (answer, guess) in [(1 << 20, 1 << 20), (1 << 20, (1 << 20) - 1), (7, 8), (0, 0)] {
            let looks = Cell::new(0);
            let holds = |at| {
                looks.set(looks.get() + 1);
                at >= answer
            };
            assert_eq!(first_where_near(range.clone(), guess, holds), answer);
            assert!(looks.get() <= 5, "{} looks at {answer}", looks.get());
        }
    }

    #[test]
    fn the_ends_of_what_32_bits_count_are_found() {
        let range = 0..u32::MAX;
        for answer in [0, 1, u32::MAX - 1, u32::MAX] {
            for guess in [0, 1 << 31, u32::MAX] {
                let found = first_where_near(range.clone(), guess, |at| at >= answer);
                assert_eq!(found, answer);
            }
        }
    }
}
