//! WLB-LLM's packing without its delay: documents of a step repacked into DP × GA micro-batches of like work and unlike
//! length. Wang et al. 2025 (OSDI), arXiv 2503.17924, as hao-ai-lab/DistCA runs it for comparison.
//!
//! Work of a document is (ℓ/b)² + ℓ/b, b = 128K tokens: where attention takes as long as all else. Longest first, a
//! document goes to the micro-batch with the least work, else with the fewest tokens, unless it then exceeds twice its share
//! of the tokens; what fits neither goes to the least work in the end. Within a micro-batch every document lies in zigzag
//! over the CP workers, which gather keys. O(documents · micro-batches).

use libra_exec::steps::Piece;
use libra_sched::{Mask, PackedLengths, SampleId};
use rayon::prelude::*;

use super::pieces::held;
use super::ring::{self, Sharding};
use super::{Group, all_gather, pools};
use crate::failure::Failure;
use crate::preset::Shapes;

/// Tokens of a document whose attention takes as long as its other layers.
const BREAK_EVEN_TOKENS: u128 = 128 << 10;
/// Padding of a micro-batch without a document.
const PADDING_TOKENS: u64 = 128;
/// Rows of a tile of the attention kernel.
const KERNEL_TOKENS: u64 = 128;

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Document {
    pub(super) tokens: u32,
    /// In the window that it came in.
    pub(super) sample: SampleId,
}

/// Documents that a replica computes at one index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MicroBatch {
    pub(super) documents: Vec<Document>,
    tokens: u64,
    /// In units of 1/b².
    work: u128,
}

impl MicroBatch {
    pub(super) fn push(&mut self, document: Document) {
        let length = u128::from(document.tokens);
        self.documents.push(document);
        self.tokens += u64::from(document.tokens);
        self.work += length * (length + BREAK_EVEN_TOKENS);
    }
}

/// Micro-batches with room for every document of the window.
pub(super) fn groups(window: &PackedLengths, shapes: &Shapes) -> Result<Vec<Group>, Failure> {
    let mut batches = vec![MicroBatch::default(); window.sequences()];
    let left = pack(&mut batches, documents(window), limit(shapes));
    for document in left {
        least(&mut batches, |batch| batch.work).push(document);
    }
    scheduled(&batches, shapes, |_| Ok(Sharding::Document))
}

/// Twice the tokens of a sequence.
pub(super) fn limit(shapes: &Shapes) -> u64 {
    2 * u64::from(shapes.window.seq_tokens())
}

/// Samples of the window, each a document.
pub(super) fn documents(window: &PackedLengths) -> Vec<Document> {
    let document = |sample| Document {
        tokens: window.length(sample),
        sample,
    };
    (0..window.samples())
        .map(SampleId::new)
        .map(document)
        .collect()
}

/// Adds documents, longest first, where they fit; returns those that do not.
pub(super) fn pack(
    batches: &mut [MicroBatch],
    mut documents: Vec<Document>,
    limit_tokens: u64,
) -> Vec<Document> {
    documents.sort_unstable_by_key(|d| (std::cmp::Reverse(d.tokens), d.sample));
    documents.retain(|&document| {
        let fits = |batch: &MicroBatch| batch.tokens + u64::from(document.tokens) <= limit_tokens;
        let mut place = least(batches, |batch| batch.work);
        if !fits(place) {
            place = least(batches, |batch| u128::from(batch.tokens));
        }
        let is_placed = fits(place);
        if is_placed {
            place.push(document);
        }
        !is_placed
    });
    documents
}

/// The first with the least.
fn least(batches: &mut [MicroBatch], of: fn(&MicroBatch) -> u128) -> &mut MicroBatch {
    let least = batches.iter_mut().min_by_key(|batch| of(batch));
    least.expect("a step has micro-batches")
}

/// A program a micro-batch, in order, sharded as `sharding` says of its lengths.
pub(super) fn scheduled(
    batches: &[MicroBatch],
    shapes: &Shapes,
    sharding: impl Fn(&PackedLengths) -> Result<Sharding, Failure> + Sync,
) -> Result<Vec<Group>, Failure> {
    let groups: Vec<Result<Group, Failure>> = batches
        .par_iter()
        .enumerate()
        .map(|(place, batch)| {
            let tokens = if batch.documents.is_empty() {
                PADDING_TOKENS
            } else {
                batch.tokens
            };
            let documents = batch.documents.iter();
            let lengths = PackedLengths::new(tokens, [documents.clone().map(|d| d.tokens)])?;
            let layout = ring::layout(&lengths, shapes.window.cp(), sharding(&lengths)?)?;
            let work = all_gather::steps(lengths, &layout, shapes)?;
            let samples = documents.map(|document| document.sample).collect();
            Ok(pools::group(&shapes.window, place, samples, work, &layout))
        })
        .collect();
    groups.into_iter().collect()
}

/// What the busiest worker of a sharding would compute, rows filled up to tiles of the kernel.
pub(super) fn predicted(
    lengths: &PackedLengths,
    shapes: &Shapes,
    sharding: Sharding,
) -> Result<u128, Failure> {
    let layout = ring::layout(lengths, shapes.window.cp(), sharding)?;
    let mask = shapes.plan.mask;
    let worker = |pieces: &Vec<Piece>| pieces.iter().map(|piece| tiled(lengths, mask, piece)).sum();
    Ok(held(lengths, &layout, 0)
        .iter()
        .map(worker)
        .max()
        .unwrap_or(0))
}

fn tiled(lengths: &PackedLengths, mask: Mask, piece: &Piece) -> u128 {
    let len = lengths.length(piece.sample);
    let pairs = mask.pairs(len, piece.start..piece.end);
    let rows = u64::from(piece.len());
    u128::from(pairs) * u128::from(rows.next_multiple_of(KERNEL_TOKENS)) / u128::from(rows)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::baseline::tests::{shapes, window};
    use crate::preset::Preset;

    fn packed(count: usize, documents: &[u32], limit: u64) -> (Vec<Vec<u32>>, Vec<u32>) {
        let mut batches = vec![MicroBatch::default(); count];
        let left = pack(&mut batches, numbered(documents), limit);
        let tokens = |documents: Vec<Document>| documents.iter().map(|d| d.tokens).collect();
        let batches = batches.into_iter().map(|batch| tokens(batch.documents));
        (batches.collect(), tokens(left))
    }

    fn numbered(lengths: &[u32]) -> Vec<Document> {
        let document = |(sample, &tokens)| Document {
            tokens,
            sample: SampleId::new(sample),
        };
        lengths.iter().enumerate().map(document).collect()
    }

    #[test]
    fn a_document_of_twice_the_break_even_weighs_eight_of_half_of_it() {
        // 2² + 2 = 6 against ½² + ½ = ¾ each.
        let (long, half) = (256 << 10, 64 << 10);
        let documents = [half, half, half, half, long, half, half, half, half, half];
        let (batches, left) = packed(2, &documents, 1 << 30);
        assert_eq!(batches, [vec![long, half], vec![half; 8]]);
        assert!(left.is_empty());
    }

    #[test]
    fn what_exceeds_the_limit_goes_to_the_shortest_or_is_left() {
        // In units of 16K tokens, work ℓ² + 8ℓ: 12 alone has 240; 5s have 65 each.
        let unit = 16 << 10;
        let of = |lengths: &[u32]| lengths.iter().map(|l| l * unit).collect::<Vec<_>>();
        // The third 5 may not join the two others, whose 130 is less than 240, but fits on 12.
        let limit = 14 * u64::from(unit);
        let (batches, left) = packed(2, &of(&[12, 5, 5, 5, 2]), limit);
        assert_eq!(batches, [of(&[12]), of(&[5, 5, 2])]);
        assert_eq!(left, of(&[5]));
        let (batches, left) = packed(2, &of(&[12, 7, 7, 1]), limit);
        assert_eq!(batches, [of(&[12, 1]), of(&[7, 7])]);
        assert!(left.is_empty());
    }

    proptest! {
        #[test]
        fn every_document_of_a_window_is_packed_once(lengths in prop::collection::vec(1..65u32, 1..30)) {
            let mut next = lengths.iter().copied().cycle();
            let window = window(8, 64, || next.next().expect("endless"));
            let shapes = shapes(Preset::Tiny, |_| {});
            let mut batches = vec![MicroBatch::default(); 8];
            let left = pack(&mut batches, documents(&window), limit(&shapes));
            let packed = batches.iter().flat_map(|batch| batch.documents.iter().copied());
            let mut packed: Vec<Document> = packed.chain(left).collect();
            let mut arrived = documents(&window);
            packed.sort_unstable();
            arrived.sort_unstable();
            prop_assert_eq!(packed, arrived);
            for batch in &batches {
                prop_assert!(batch.tokens <= limit(&shapes));
                let tokens: u64 = batch.documents.iter().map(|d| u64::from(d.tokens)).sum();
                prop_assert_eq!(tokens, batch.tokens);
            }
        }
    }

    #[test]
    fn a_micro_batch_without_documents_is_padding() {
        let shapes = shapes(Preset::Tiny, |settings| settings.tokens = 256);
        let window =
            PackedLengths::new(256, [vec![1u32]].into_iter().chain(vec![vec![]; 7])).expect("fits");
        let groups = groups(&window, &shapes).expect("legal");
        assert_eq!(
            (&groups[0].tokens, &groups[1].tokens),
            (&vec![1, 0], &vec![64, 64])
        );
    }
}
