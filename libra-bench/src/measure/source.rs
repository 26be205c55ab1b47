//! Where lengths come from.

use crate::cli::{Pack, WorkloadArgs};
use crate::failure::Failure;
use crate::preset::Settings;
use crate::workload::{self, Distribution, LengthSource, Packed, Packer, WindowOptions};

/// Lengths one after the other.
pub(crate) type Lengths = Box<dyn Iterator<Item = u64> + Send>;

/// A file, a bundled corpus or a distribution.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A file or a bundled corpus, as typed, and how to read it.
    Read(String, LengthSource),
    /// A distribution, without end.
    Drawn(Distribution),
}

impl Source {
    /// What the command line names.
    pub(crate) fn new(workload: &WorkloadArgs) -> Result<Self, Failure> {
        match (&workload.lengths, workload.dist) {
            (Some(spec), _) => Ok(Self::Read(
                spec.clone(),
                LengthSource {
                    column: workload.column.clone(),
                    cumulative: workload.cumulative,
                },
            )),
            (None, Some(distribution)) => Ok(Self::Drawn(distribution)),
            (None, None) => Err(Failure::NoLengths),
        }
    }

    /// A bundled corpus.
    pub(crate) fn bundled(name: &str) -> Self {
        Self::Read(name.to_owned(), LengthSource::default())
    }

    /// Its name for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Read(spec, _) => spec.clone(),
            Self::Drawn(distribution) => distribution.to_string(),
        }
    }

    /// The words of the command line that name it.
    pub(crate) fn words(&self) -> Vec<String> {
        match self {
            Self::Read(spec, source) => {
                let mut words = vec![spec.clone()];
                if let Some(column) = &source.column {
                    words.extend(["--column".to_owned(), column.clone()]);
                }
                if source.cumulative {
                    words.push("--cumulative".to_owned());
                }
                words
            }
            Self::Drawn(distribution) => vec!["--dist".to_owned(), distribution.to_string()],
        }
    }

    /// All lengths; without end where they are drawn.
    pub(crate) fn lengths(&self, settings: &Settings) -> Result<Lengths, Failure> {
        Ok(match self {
            Self::Read(spec, source) => Box::new(workload::load(spec, source)?.into_iter()),
            Self::Drawn(distribution) => {
                Box::new(distribution.samples(settings.tokens, settings.seed)?)
            }
        })
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

/// At most `count` windows of `lengths`.
pub(crate) fn packed_windows(
    lengths: &[u64],
    settings: &Settings,
    count: Option<u64>,
) -> Result<Vec<Packed>, Failure> {
    let windows = windows(lengths.iter().copied(), settings)?;
    let count = count.map_or(usize::MAX, |count| {
        usize::try_from(count).unwrap_or(usize::MAX)
    });
    Ok(windows.take(count).collect::<Result<_, _>>()?)
}
