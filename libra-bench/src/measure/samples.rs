//! Samples between a window and the groups that compute them: every method has the same values for the same sample.

use libra_exec::{PoolOutputs, PoolTensors};
use libra_sched::{PackedLengths, SampleId};
use num_traits::Zero;

/// Where the samples of a group lie in the window.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    slots: usize,
    seq_tokens: usize,
    window_tokens: usize,
    copies: Vec<Copied>,
}

/// Consecutive tokens, as sequence and first token of it.
#[derive(Clone, Copy, Debug)]
struct Copied {
    of_window: (usize, usize),
    of_group: (usize, usize),
    tokens: usize,
}

impl Samples {
    /// The samples of `group`, in order, are those of `window` that `samples` names.
    ///
    /// # Panics
    /// If one has another length.
    pub(super) fn new(window: &PackedLengths, group: &PackedLengths, samples: &[SampleId]) -> Self {
        assert_eq!(group.samples(), samples.len(), "a name for each sample");
        let sequences = sequences(window);
        let in_group = self::sequences(group);
        let copy = |(number, &sample): (usize, &SampleId)| {
            let (from, to) = (window.tokens(sample), group.tokens(SampleId::new(number)));
            assert_eq!(from.len(), to.len(), "a sample keeps its tokens");
            Copied {
                of_window: (sequences[sample.index()], from.start as usize),
                of_group: (in_group[number], to.start as usize),
                tokens: from.len(),
            }
        };
        Self {
            slots: group.sequences(),
            seq_tokens: group.seq_tokens() as usize,
            window_tokens: window.seq_tokens() as usize,
            copies: samples.iter().enumerate().map(copy).collect(),
        }
    }

    /// What the group reads; padding is zero.
    pub(super) fn inputs<T: Copy + Zero>(&self, window: &PoolTensors<T>) -> PoolTensors<T> {
        let taken = |tensor: &[Vec<T>]| {
            let width = self.width(tensor);
            let mut own = vec![vec![T::zero(); self.seq_tokens * width]; self.slots];
            for copy in &self.copies {
                let to = rows(copy.of_group, copy.tokens, width);
                let from = rows(copy.of_window, copy.tokens, width);
                own[copy.of_group.0][to].copy_from_slice(&tensor[copy.of_window.0][from]);
            }
            own
        };
        PoolTensors {
            q: taken(&window.q),
            k: taken(&window.k),
            v: taken(&window.v),
            d_o: taken(&window.d_o),
        }
    }

    /// Puts what the group made into results of the window.
    pub(super) fn put<T: Copy>(&self, group: &PoolOutputs<T>, window: &mut PoolOutputs<T>) {
        for (from, to) in [
            (&group.o, &mut window.o),
            (&group.d_q, &mut window.d_q),
            (&group.d_k, &mut window.d_k),
            (&group.d_v, &mut window.d_v),
        ] {
            let width = self.width(to);
            for copy in &self.copies {
                let own = rows(copy.of_window, copy.tokens, width);
                let made = rows(copy.of_group, copy.tokens, width);
                to[copy.of_window.0][own].copy_from_slice(&from[copy.of_group.0][made]);
            }
        }
    }

    /// Elements of a token in a tensor of the window.
    fn width<T>(&self, tensor: &[Vec<T>]) -> usize {
        tensor.first().map_or(0, Vec::len) / self.window_tokens
    }
}

/// The sequence of every sample.
fn sequences(lengths: &PackedLengths) -> Vec<usize> {
    let of = |sequence| lengths.samples_of(sequence).map(move |_| sequence);
    (0..lengths.sequences()).flat_map(of).collect()
}

fn rows((_, first): (usize, usize), tokens: usize, width: usize) -> std::ops::Range<usize> {
    first * width..(first + tokens) * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repacked_samples_find_their_values_and_their_place() {
        let window = PackedLengths::new(4, [vec![1u32, 2], vec![3]]).expect("fits");
        let group = PackedLengths::new(5, [vec![3u32, 1]]).expect("fits");
        let samples = Samples::new(&window, &group, &[SampleId(2), SampleId(0)]);
        let tensor = || vec![vec![1, 2, 3, 0], vec![4, 5, 6, 0]];
        let inputs = PoolTensors {
            q: vec![
                vec![1, 10, 2, 20, 3, 30, 0, 0],
                vec![4, 40, 5, 50, 6, 60, 0, 0],
            ],
            k: tensor(),
            v: tensor(),
            d_o: tensor(),
        };
        let own = samples.inputs(&inputs);
        assert_eq!(own.k, [[4, 5, 6, 1, 0]]);
        assert_eq!(own.q, [[4, 40, 5, 50, 6, 60, 1, 10, 0, 0]]);
        let made = PoolOutputs {
            o: vec![vec![7, 8, 9, 10, 11]],
            d_q: own.q,
            d_k: own.k,
            d_v: own.v,
        };
        let empty = || vec![vec![0; 4]; 2];
        let mut outputs = PoolOutputs {
            o: empty(),
            d_q: vec![vec![0; 8]; 2],
            d_k: empty(),
            d_v: empty(),
        };
        samples.put(&made, &mut outputs);
        assert_eq!(outputs.o, [[10, 0, 0, 0], [7, 8, 9, 0]]);
        assert_eq!(outputs.d_q[1], [4, 40, 5, 50, 6, 60, 0, 0]);
    }
}
