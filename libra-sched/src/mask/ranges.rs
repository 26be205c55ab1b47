//! The keys that queries read: at most two ranges.

use std::ops::Range;

/// At most two ascending ranges of keys with a gap between them, none of them empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyRanges {
    /// (start, end) of each; ranges that are not there are zeros at the end.
    ranges: [(u32, u32); 2],
}

impl KeyRanges {
    /// No key at all.
    pub const EMPTY: Self = Self {
        ranges: [(0, 0); 2],
    };

    /// The keys of one range.
    pub(crate) const fn one(start: u32, end: u32) -> Self {
        if start < end {
            Self {
                ranges: [(start, end), (0, 0)],
            }
        } else {
            Self::EMPTY
        }
    }

    /// Keys `0..first_end` and `start..end`.
    pub(crate) const fn with_first(first_end: u32, start: u32, end: u32) -> Self {
        if first_end == 0 {
            Self::one(start, end)
        } else if start >= end {
            Self::one(0, first_end)
        } else if start <= first_end {
            Self::one(0, if first_end > end { first_end } else { end })
        } else {
            Self {
                ranges: [(0, first_end), (start, end)],
            }
        }
    }

    /// The ranges, ascending.
    pub fn iter(self) -> impl Iterator<Item = Range<u32>> {
        let there = self.ranges.into_iter().filter(|(start, end)| start < end);
        there.map(|(start, end)| start..end)
    }

    /// Number of keys.
    #[must_use]
    pub const fn len(self) -> u32 {
        let [first, second] = self.ranges;
        first.1 - first.0 + second.1 - second.0
    }

    /// Whether there is no key.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.ranges[0].0 == self.ranges[0].1
    }

    /// Whether `key` is one of them.
    #[must_use]
    pub const fn contains(self, key: u32) -> bool {
        let [first, second] = self.ranges;
        first.0 <= key && key < first.1 || second.0 <= key && key < second.1
    }

    /// Those of them that lie in `start..end`.
    ///
    /// ```
    /// use libra_sched::Mask;
    /// // Query 9 reads keys 0, 1 and 7 to 9.
    /// let keys = Mask::window(3, 2)?.keys_of(10, 9);
    /// assert_eq!(keys.within(1, 8).iter().collect::<Vec<_>>(), [1..2, 7..8]);
    /// assert_eq!(keys.within(2, 8).iter().collect::<Vec<_>>(), [7..8]);
    /// # Ok::<(), libra_sched::Error>(())
    /// ```
    #[must_use]
    pub const fn within(self, start: u32, end: u32) -> Self {
        let [first, second] = self.ranges;
        let first = clipped(first, start, end);
        let second = clipped(second, start, end);
        let ranges = if first.0 < first.1 {
            [first, second]
        } else {
            [second, (0, 0)]
        };
        Self { ranges }
    }

    /// From the first key to the last; empty at 0 where there is none.
    #[must_use]
    pub const fn hull(self) -> Range<u32> {
        let [first, second] = self.ranges;
        first.0..if second.1 > 0 { second.1 } else { first.1 }
    }
}

/// The part of a range from `start` to `end`, zeros where there is none.
const fn clipped(range: (u32, u32), start: u32, end: u32) -> (u32, u32) {
    let from = if range.0 > start { range.0 } else { start };
    let to = if range.1 < end { range.1 } else { end };
    if from < to { (from, to) } else { (0, 0) }
}
