//! What a mask lets a query read, from the definition alone: two ranges a query, and the queries
//! where their number of keys stops growing evenly.

use crate::mask::Mask;

/// Keys `start..end`; empty where start is not below end.
pub(super) type Keys = (u32, u32);

/// The keys of `query` in a sample of `len` tokens, as two ranges without a common key.
fn keys_of(mask: Mask, len: u32, query: u32) -> [Keys; 2] {
    let own = query + 1;
    // First keys are read as far as the other range does not hold them already.
    let with_first = |first: u32, start: u32| [(0, first.min(start)), (start, own)];
    match mask {
        Mask::Causal => [(0, own), (0, 0)],
        Mask::Full => [(0, len), (0, 0)],
        Mask::Offset { offset, .. } => {
            let reach = u64::from(query) + 1 + u64::from(offset);
            [(0, reach.min(len.into()) as u32), (0, 0)]
        }
        Mask::Window { window, sinks, .. } => with_first(sinks, own.saturating_sub(window)),
        Mask::TwoSided { left, right, .. } => {
            let reach = u64::from(query) + u64::from(right) + 1;
            let reach = reach.min(len.into()) as u32;
            [(query.saturating_sub(left), reach), (0, 0)]
        }
        Mask::Chunked { chunk, .. } => [(query / chunk * chunk, own), (0, 0)],
        Mask::Block {
            block,
            local,
            sinks,
            ..
        } => {
            let at = query / block;
            let first = at.min(sinks) * block;
            with_first(first, (at + 1).saturating_sub(local) * block)
        }
        Mask::Prefix { prefix, .. } => [(0, own.max(prefix.min(len))), (0, 0)],
        Mask::Keys { start, end, .. } => [(start, own.min(end)), (0, 0)],
    }
}

/// Queries of `first..end` from which on the keys follow another line, and both ends.
fn bends(mask: Mask, len: u32, first: u32, end: u32) -> Vec<u32> {
    let mut at = vec![first, end];
    let mut bend = |query: u64| {
        if u64::from(first) < query && query < u64::from(end) {
            at.push(query as u32);
        }
    };
    let mut every = |period: u32| {
        let period = u64::from(period);
        let start = u64::from(first) / period;
        (start..=u64::from(end) / period).for_each(|i| bend(i * period));
    };
    match mask {
        Mask::Causal | Mask::Full => {}
        Mask::Offset { offset, .. } => bend(len.saturating_sub(offset).into()),
        Mask::Window { window, sinks, .. } => {
            bend(window.into());
            bend(u64::from(window) + u64::from(sinks));
        }
        Mask::TwoSided { left, right, .. } => {
            bend(left.into());
            bend(len.saturating_sub(right).into());
        }
        Mask::Chunked { chunk, .. } => every(chunk),
        Mask::Block { block, .. } => every(block),
        Mask::Prefix { prefix, .. } => bend(prefix.into()),
        Mask::Keys { start, end, .. } => {
            bend(start.into());
            bend(end.into());
        }
    }
    at.sort_unstable();
    at.dedup();
    at
}

/// Runs of queries (first, last) of `queries`, between whose ends the keys change by even steps.
fn runs(mask: Mask, len: u32, queries: (u32, u32)) -> Vec<(u32, u32)> {
    let at = bends(mask, len, queries.0, queries.1);
    at.windows(2).map(|pair| (pair[0], pair[1] - 1)).collect()
}

/// Pairs of `queries` (first, end) of a sample of `len` tokens: an arithmetic series a run.
pub(super) fn pairs(mask: Mask, len: u32, queries: (u32, u32)) -> u128 {
    let count = |query: u32| -> u128 {
        let ranges = keys_of(mask, len, query);
        let keys = ranges.map(|(start, end)| u128::from(end.saturating_sub(start)));
        keys[0] + keys[1]
    };
    let runs = runs(mask, len, queries);
    let series = |&(first, last): &(u32, u32)| {
        u128::from(last - first + 1) * (count(first) + count(last)) / 2
    };
    runs.iter().map(series).sum()
}

/// Keys that `queries` (first, end) of a sample of `len` tokens read, in any order: from where a
/// run's first query begins to where its last one ends, since both ends of a range only rise, and
/// leave no gap.
pub(super) fn read(mask: Mask, len: u32, queries: (u32, u32)) -> Vec<Keys> {
    let mut read = Vec::new();
    for (first, last) in runs(mask, len, queries) {
        let ends = keys_of(mask, len, first)
            .into_iter()
            .zip(keys_of(mask, len, last));
        read.extend(
            ends.map(|(begin, end)| (begin.0, end.1))
                .filter(|(start, end)| start < end),
        );
    }
    read
}
