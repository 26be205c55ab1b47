//! Where lengths come from.

use std::path::{Path, PathBuf};

use crate::cli::{Pack, WorkloadArgs};
use crate::failure::Failure;
use crate::preset::Settings;
use crate::workload::{self, Distribution, LengthSource, Lengths, Order, Packer, WindowOptions};

/// Files and bundled corpora, or a distribution; and the order of its samples.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    origin: Origin,
    order: Order,
}

#[derive(Clone, Debug)]
enum Origin {
    /// Files or bundled corpora, as typed, and how to read them.
    Read(Vec<String>, LengthSource),
    /// A distribution, without end.
    Drawn(Distribution),
}

impl Source {
    /// What the command line names.
    pub(crate) fn new(workload: &WorkloadArgs) -> Result<Self, Failure> {
        let origin = match &workload.dist {
            Some(distribution) => Origin::Drawn(distribution.clone()),
            None if workload.lengths.is_empty() => return Err(Failure::NoLengths),
            None => Origin::Read(
                workload.lengths.clone(),
                LengthSource {
                    column: workload.column.clone(),
                    cumulative: workload.cumulative,
                    idx: workload.idx,
                },
            ),
        };
        let order = workload.order;
        if matches!((&origin, order), (Origin::Drawn(_), Order::Shuffled)) {
            return Err(Failure::EndlessShuffle);
        }
        Ok(Self { origin, order })
    }

    /// Lengths of a distribution.
    pub(crate) fn drawn(distribution: Distribution) -> Self {
        Self {
            origin: Origin::Drawn(distribution),
            order: Order::AsIs,
        }
    }

    /// A bundled corpus.
    pub(crate) fn bundled(name: &str) -> Self {
        Self {
            origin: Origin::Read(vec![name.to_owned()], LengthSource::default()),
            order: Order::AsIs,
        }
    }

    /// Whether its lengths are drawn, and have no end.
    pub(crate) fn is_drawn(&self) -> bool {
        matches!(self.origin, Origin::Drawn(_))
    }

    /// The order of its samples.
    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Its name for people.
    pub(crate) fn name(&self) -> String {
        let origin = match &self.origin {
            Origin::Read(specs, _) => specs.join(" "),
            Origin::Drawn(distribution) => distribution.to_string(),
        };
        match self.order {
            Order::AsIs => origin,
            order => format!("{origin} ({order})"),
        }
    }

    /// The words of the command line that name it.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = match &self.origin {
            Origin::Read(specs, source) => {
                let mut words = specs.clone();
                if let Some(column) = &source.column {
                    words.extend(["--column".to_owned(), column.clone()]);
                }
                if source.cumulative {
                    words.push("--cumulative".to_owned());
                }
                if let Some(samples) = source.idx {
                    words.extend(["--idx".to_owned(), samples.to_string()]);
                }
                words
            }
            Origin::Drawn(distribution) => vec!["--dist".to_owned(), distribution.to_string()],
        };
        if self.order != Order::AsIs {
            words.extend(["--order".to_owned(), self.order.to_string()]);
        }
        words
    }

    /// The files that it is read from.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        Ok(match &self.origin {
            Origin::Read(specs, source) => workload::files(specs, source)?,
            Origin::Drawn(distribution) => distribution
                .file()
                .map(Path::to_owned)
                .into_iter()
                .collect(),
        })
    }

    /// All lengths in their order; without end where they are drawn.
    pub(crate) fn lengths(&self, settings: &Settings) -> Result<Lengths, Failure> {
        let lengths = match &self.origin {
            Origin::Read(specs, source) => workload::open(specs, source)?,
            Origin::Drawn(distribution) => {
                distribution.samples(settings.tokens, settings.seed)?.into()
            }
        };
        Ok(self.order.apply(lengths, settings.seed))
    }
}

/// Windows of `lengths`, packed as `settings` say.
pub(crate) fn windows<I: Iterator<Item = u64>>(
    lengths: I,
    settings: &Settings,
) -> Result<workload::Windows<I>, Failure> {
    let packer = match settings.pack {
        Pack::Concat => Packer::ConcatenateAndCut,
        Pack::BestFit => Packer::BestFit {
            open_sequences: settings.gbs.into(),
        },
    };
    let options = WindowOptions {
        gbs: settings.gbs.into(),
        skip: settings.skip_windows,
        fill_last: settings.fill_last,
    };
    Ok(packer.pack(lengths, settings.tokens)?.windows(&options)?)
}
