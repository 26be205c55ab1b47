//! WLB-LLM as published: outliers wait until every micro-batch can have one, what does not fit waits too, and every
//! micro-batch is sharded by sequence or by document, whichever its kernels are predicted to be faster on. Wang et al.
//! 2025 (OSDI), arXiv 2503.17924.
//!
//! A document then trains in a later step than it arrived in: no step equals the window's. Where the paper tunes its
//! thresholds, ours are a quarter and a half of a sequence; where it profiles kernels, ours are exact pairs with rows filled
//! up to tiles of 128. O(documents · micro-batches).

use std::collections::VecDeque;

use libra_sched::{LayoutKind, PackedLengths};

use super::Group;
use super::ring::Sharding;
use super::wlb::{self, Document, MicroBatch};
use crate::failure::Failure;
use crate::preset::Shapes;

/// A level holds documents from L over its number on, up to the next level's.
const LEVELS: [u32; 2] = [4, 2];
const BY_SEQUENCE: Sharding = Sharding::Sequence(LayoutKind::Zigzag);

/// Documents that wait for a later window.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// Outliers, first come first served, by level.
    outliers: [VecDeque<Document>; LEVELS.len()],
    /// Documents that did not fit.
    left: Vec<Document>,
}

/// Micro-batches of the documents of `window` and those that waited.
pub(super) fn groups(
    waiting: &mut Waiting,
    window: &PackedLengths,
    shapes: &Shapes,
) -> Result<Vec<Group>, Failure> {
    let batches = batches(waiting, window, wlb::limit(shapes));
    wlb::scheduled(&batches, shapes, |lengths| sharding(lengths, shapes))
}

fn batches(waiting: &mut Waiting, window: &PackedLengths, limit_tokens: u64) -> Vec<MicroBatch> {
    let mut documents = std::mem::take(&mut waiting.left);
    for document in wlb::documents(window) {
        let is_of = |&level: &usize| document.tokens >= window.seq_tokens().div_ceil(LEVELS[level]);
        match (0..LEVELS.len()).rev().find(is_of) {
            Some(level) => waiting.outliers[level].push_back(document),
            None => documents.push(document),
        }
    }
    let mut batches = vec![MicroBatch::default(); window.sequences()];
    for level in &mut waiting.outliers {
        if level.len() >= batches.len() {
            for (batch, document) in batches.iter_mut().zip(level.drain(..window.sequences())) {
                batch.push(document);
            }
        }
    }
    waiting.left = wlb::pack(&mut batches, documents, limit_tokens);
    batches
}

/// By sequence, unless documents are predicted to be faster.
fn sharding(lengths: &PackedLengths, shapes: &Shapes) -> Result<Sharding, Failure> {
    let of = |sharding| wlb::predicted(lengths, shapes, sharding);
    let is_faster = of(Sharding::Document)? < of(BY_SEQUENCE)?;
    Ok(if is_faster {
        Sharding::Document
    } else {
        BY_SEQUENCE
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::tests::{shapes, window};
    use crate::preset::Preset;

    fn lengths_of(batches: &[MicroBatch]) -> Vec<u32> {
        batches
            .iter()
            .flat_map(|batch| batch.documents.iter().map(|document| document.tokens))
            .collect()
    }

    fn outliers(waiting: &Waiting) -> Vec<Vec<u32>> {
        let tokens = |level: &VecDeque<Document>| level.iter().map(|d| d.tokens).collect();
        waiting.outliers.iter().map(tokens).collect()
    }

    #[test]
    fn outliers_wait_until_every_micro_batch_gets_one() {
        let mut waiting = Waiting::default();
        // 40 of 64 tokens is of the second level, 20 of the first, 8 of none.
        let eights = vec![8u32; 8];
        let of = |first: &[u32], second: &[u32]| {
            let sequences = [
                first.to_vec(),
                second.to_vec(),
                eights.clone(),
                eights.clone(),
            ];
            PackedLengths::new(64, sequences).expect("fits")
        };
        let first = batches(&mut waiting, &of(&[40, 20], &[20, 20]), 128);
        assert!(lengths_of(&first).iter().all(|&length| length == 8));
        assert_eq!(outliers(&waiting), [vec![20, 20, 20], vec![40]]);
        // The fourth lets four go, and the fifth waits; there are two of the other level.
        let second = batches(&mut waiting, &of(&[20, 40], &[21, 8]), 128);
        assert!(second.iter().all(|batch| batch.documents[0].tokens == 20));
        assert_eq!(outliers(&waiting), [vec![21], vec![40, 40]]);
    }

    #[test]
    fn what_arrives_is_packed_or_waits() {
        let mut waiting = Waiting::default();
        let mut next = [3, 50, 17, 64, 9, 1, 33].into_iter().cycle();
        let (mut arrived, mut packed) = (0u64, 0u64);
        for _ in 0..6 {
            let window = window(4, 64, || next.next().expect("endless"));
            let documents = |documents: &[Document]| -> u64 {
                documents.iter().map(|d| u64::from(d.tokens)).sum()
            };
            let sum = |lengths: &[u32]| lengths.iter().map(|&l| u64::from(l)).sum::<u64>();
            arrived += documents(&wlb::documents(&window));
            packed += sum(&lengths_of(&batches(&mut waiting, &window, 80)));
            let waits: u64 = outliers(&waiting).iter().map(|level| sum(level)).sum();
            assert_eq!(packed + waits + documents(&waiting.left), arrived);
        }
    }

    #[test]
    fn long_documents_are_sharded_by_document_and_crumbs_by_sequence() {
        let shapes = shapes(Preset::Tiny, |settings| settings.tokens = 4096);
        let of = |documents: &[u32]| {
            let tokens: u32 = documents.iter().sum();
            let lengths = PackedLengths::new(tokens.into(), [documents.iter().copied()]);
            sharding(&lengths.expect("fits"), &shapes).expect("legal")
        };
        // By sequence, a worker would have the inside of both and little more.
        assert_eq!(of(&[2048, 1024, 1024]), Sharding::Document);
        // Quarters of 64 tokens would fill a tile of 128 each.
        assert_eq!(of(&[64; 64]), BY_SEQUENCE);
    }
}
