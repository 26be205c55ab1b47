//! Times of the simulator in the settings of the paper's figures: what `simulate` prints for the same flags.

pub(super) mod attention;
pub(super) mod training;

use libra_sched::BackwardMode;

use super::grouping::Corpus;
use super::{Effort, Point};
use crate::baseline::method::Method;
use crate::cli::Pack;
use crate::failure::Failure;
use crate::interrupt;
use crate::measure::Source;
use crate::preset::Settings;
use crate::simulate::cluster::Cluster;
use crate::simulate::model::Model;
use crate::simulate::step::MethodTimes;
use crate::simulate::windows::Request;

/// What runs, where, and on which lengths.
#[derive(Clone, Debug)]
struct Setup {
    source: Source,
    settings: Settings,
    cluster: Cluster,
}

impl Setup {
    /// The paper's window of `corpus` on `cluster`, with attention alone.
    fn new(corpus: &Corpus, effort: Effort, cluster: &Cluster) -> Result<Self, Failure> {
        let mut settings = Settings {
            seed: effort.seed,
            gpus_per_node: cluster.file.node.gpus,
            // Whole documents: cut ones would end the longest, and the windows' tails would be lighter than the paper's.
            pack: Pack::BestFit,
            ..corpus.preset.settings()
        };
        settings.tokens = effort.tokens(settings.tokens as u32).into();
        settings.block_tokens = effort.tokens(settings.block_tokens);
        Ok(Self {
            source: Source::drawn(corpus.distribution()),
            settings,
            cluster: cluster.clone(),
        })
    }

    /// The same for attention and all else of the model of that name.
    fn of_model(mut self, model: &str) -> Result<Self, Failure> {
        let model = Model::read(model)?;
        self.settings.q_heads = model.q_heads;
        self.settings.kv_heads = model.kv_heads;
        let peak_tflops = self.cluster.file.gpu.peak_tflops;
        self.cluster.file.model = model.section(&self.cluster.file.model, peak_tflops);
        Ok(self)
    }

    /// Times by method; `None` where the user asked for an end.
    fn run(
        &self,
        methods: &[Method],
        effort: Effort,
        step: &(dyn Fn() + Sync),
    ) -> Result<Option<Vec<MethodTimes>>, Failure> {
        let request = Request {
            source: &self.source,
            settings: &self.settings,
            shapes: &self.settings.shapes()?,
            cluster: &self.cluster,
            methods,
            windows: effort.windows,
            backward: BackwardMode::Recompute,
        };
        let simulated = request.run(false, step)?;
        Ok((!interrupt::requested()).then_some(simulated.methods))
    }

    /// Sequences of a replica in a window.
    fn ga(&self) -> usize {
        (self.settings.gbs / self.settings.dp) as usize
    }
}

/// How often [`Setup::run`] calls back.
const fn steps(methods: usize, windows: u64) -> u64 {
    methods as u64 * windows
}

fn point(
    corpus: &'static str,
    method: &MethodTimes,
    at: &str,
    quantity: &'static str,
    value: f64,
) -> Point {
    let named = Method::ALL
        .iter()
        .find(|known| known.name() == method.method);
    Point {
        corpus,
        method: named.expect("a method of ours").name(),
        at: at.to_owned(),
        quantity,
        value,
    }
}
