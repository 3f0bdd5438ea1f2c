//! `cargo xtask bench`: a model's speed as a fraction of what the machine can do.
//!
//! | file | what it holds |
//! |---|---|
//! | [`measure`] | rounds of limits, prefill and decode, one next to the other |
//! | [`growth`] | decode steps after more and more tokens |
//! | [`peer`] | another program on the same weights, in turn with ours |
//! | [`table`] | all of it for the terminal |
//!
//! Times of a shared machine mean little alone. So each round measures the limits, our run and the
//! peer's next to each other, and what is printed is the median over rounds of a round's own ratio.

pub mod growth;
pub mod measure;
pub mod peer;
pub mod table;

use crate::backends::BackendName;
use crate::sizes::{self, NotBuilt};
use crate::weights::{WeightArguments, WeightError};
use growth::Growth;
use measure::{Plan, Round};
use peer::{Peer, PeerError};
use qwen35_model::checkpoint::{CheckpointError, Verified};
use qwen35_model::known::ForConfig;
use qwen35_model::{Config, LoadError, Model, Sequence, SequenceError};
use std::error::Error;
use std::sync::Arc;
use tt_backend_cpu::kernels::{Plain, Simd};
use tt_backend_cpu::pool::Pool;
use tt_backend_cpu::{CpuBackend, CpuKernels};
use tt_backend_tenstorrent::{Session, SessionOptions, Tenstorrent};
use tt_dsl::{Backend, Dim};

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// There are no weights.
    #[error(transparent)]
    Weights(#[from] WeightError),
    /// The checkpoint is a configuration that is not compiled in.
    #[error(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// The checkpoint is not the model.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The peer did not do its part.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// More positions than the configuration keeps.
    #[error("{what}: expected at most {capacity} positions, which {config} keeps, found {wanted}")]
    Context {
        /// Which argument asks for them.
        what: &'static str,
        /// Positions that it needs.
        wanted: usize,
        /// The `Context` dim's size.
        capacity: usize,
        /// The configuration's name.
        config: &'static str,
    },
    /// A backend could not be opened, loaded or run.
    #[error("{backend}: {reason}")]
    Run {
        /// The backend's label.
        backend: String,
        /// Its own error.
        reason: String,
    },
}

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    weights: WeightArguments,
    /// Which backends to measure; `tt` is the device model with `fast` numerics.
    #[arg(long = "backend", value_enum, value_delimiter = ',', default_value = "cpu")]
    backends: Vec<BackendName>,
    /// Numbers of threads, a measurement for each; all cores when not given.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Vec<u16>,
    /// Tokens of the prefill.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u16).range(1..))]
    prefill: u16,
    /// Tokens to decode, from an almost empty context.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    decode: u16,
    /// Rounds of limits, prefill, decode and peer.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Also measure decode steps after this many tokens each, in rising order. The tokens are
    /// really prefilled: tens of thousands take minutes.
    #[arg(long, value_delimiter = ',', value_name = "TOKENS")]
    contexts: Vec<u32>,
    /// Another program to be run in turn with each round, as NAME=COMMAND. It prints lines like
    /// `prefill 72.1 tok/s` and `decode 8.3 tok/s`, or the JSON lines of llama-bench.
    #[arg(long = "peer", value_name = "NAME=COMMAND")]
    peers: Vec<Peer>,
}

/// What was measured of one backend with one number of threads.
pub struct Measured {
    /// The backend, and its threads.
    pub label: String,
    /// The rounds, in order.
    pub rounds: Vec<Round>,
}

/// Everything that was measured.
pub struct Bench {
    /// The configuration's name.
    pub model: &'static str,
    /// What was run.
    pub plan: Plan,
    /// Names of the peers, in the order of each round's speeds.
    pub peers: Vec<String>,
    /// One for each backend and number of threads.
    pub measured: Vec<Measured>,
    /// One for each backend, if contexts were asked for.
    pub growths: Vec<Growth>,
}

/// Measures what `arguments` ask for. Returns the tables.
pub fn command(arguments: &Arguments) -> Result<String, BenchError> {
    let weights = arguments.weights.open()?;
    sizes::with(weights.known(), Run { arguments, weights: &weights })?
}

struct Run<'a> {
    arguments: &'a Arguments,
    weights: &'a crate::weights::OpenWeights,
}

impl ForConfig for Run<'_> {
    type Output = Result<String, BenchError>;

    fn run<C: Config>(self) -> Self::Output {
        let Self { arguments, weights } = self;
        let plan = Plan {
            prefill: arguments.prefill.into(),
            decode: arguments.decode.into(),
            rounds: arguments.rounds.into(),
        };
        let mut contexts: Vec<usize> = arguments.contexts.iter().map(|&tokens| tokens as usize).collect();
        contexts.sort_unstable();
        check::<C>("--prefill", plan.prefill)?;
        check::<C>("--decode", plan.decode + 1)?;
        check::<C>("--contexts", contexts.last().map_or(0, |&last| last + growth::STEPS))?;
        let verified = weights.checkpoint().verify::<C>()?;
        let job = Job { plan: &plan, contexts: &contexts, peers: &arguments.peers, verified: &verified };

        let mut bench = Bench {
            model: C::NAME,
            plan: plan.clone(),
            peers: arguments.peers.iter().map(|peer| peer.name().to_owned()).collect(),
            measured: Vec::new(),
            growths: Vec::new(),
        };
        for backend in &arguments.backends {
            match backend {
                BackendName::Cpu => job.on_cpu::<Simd>("cpu", &arguments.threads, &mut bench)?,
                BackendName::CpuReference => {
                    job.on_cpu::<Plain>("cpu-reference", &arguments.threads, &mut bench)?;
                }
                BackendName::Tt => job.on_tenstorrent(&arguments.threads, &mut bench)?,
            }
        }
        Ok(table::tables::<C>(&bench))
    }
}

fn check<C: Config>(what: &'static str, wanted: usize) -> Result<(), BenchError> {
    let capacity = C::Context::SIZE;
    if wanted <= capacity {
        return Ok(());
    }
    Err(BenchError::Context { what, wanted, capacity, config: C::NAME })
}

/// One backend at a time; the model is loaded once for all its numbers of threads where they share it.
struct Job<'a, C: Config> {
    plan: &'a Plan,
    contexts: &'a [usize],
    peers: &'a [Peer],
    verified: &'a Verified<'a, C>,
}

impl<C: Config> Job<'_, C> {
    fn on_cpu<K: CpuKernels>(
        &self,
        name: &str,
        threads: &[u16],
        bench: &mut Bench,
    ) -> Result<(), BenchError> {
        let backends: Vec<(String, CpuBackend<K>, usize)> = match threads {
            [] => {
                let all = Pool::with_all_cores().threads();
                vec![(label(name, all), CpuBackend::new(), all)]
            }
            _ => threads
                .iter()
                .map(|&n| (label(name, n.into()), CpuBackend::with_threads(n.into()), n.into()))
                .collect(),
        };
        let Some((_, first, _)) = backends.first() else { return Ok(()) };
        let model = self.load(name, first)?;
        for (label, b, threads) in &backends {
            self.rounds(label, b, &model, *threads, bench)?;
        }
        let lent: Vec<(&str, &CpuBackend<K>, usize)> =
            backends.iter().map(|(label, b, threads)| (label.as_str(), b, *threads)).collect();
        self.growth(&lent, &model, bench)
    }

    fn on_tenstorrent(&self, threads: &[u16], bench: &mut Bench) -> Result<(), BenchError> {
        let all = Pool::with_all_cores().threads();
        let threads: Vec<usize> =
            if threads.is_empty() { vec![all] } else { threads.iter().map(|&n| n.into()).collect() };
        for threads in threads {
            let label = label("tt fast", threads);
            let options = SessionOptions { threads: threads as u32, ..SessionOptions::fast() };
            let session = Session::open(options).map_err(|error| failed(&label, &error))?;
            let b = Tenstorrent::new(Arc::clone(&session));
            let model = self.load(&label, &b)?;
            self.rounds(&label, &b, &model, threads, bench)?;
            self.growth(&[(label.as_str(), &b, threads)], &model, bench)?;
        }
        Ok(())
    }

    fn load<B: Backend>(&self, label: &str, b: &B) -> Result<Model<B, C>, BenchError> {
        Model::load(b, &self.verified.weights(b)).map_err(|error: LoadError<B::Error>| failed(label, &error))
    }

    fn rounds<B: Backend>(
        &self,
        label: &str,
        b: &B,
        model: &Model<B, C>,
        threads: usize,
        bench: &mut Bench,
    ) -> Result<(), BenchError> {
        let limits = Pool::new(threads);
        let mut sequence = Sequence::new(b, model);
        let mut rounds = Vec::new();
        for _ in 0..self.plan.rounds {
            let mut round = measure::round(b, &mut sequence, self.verified, &limits, self.plan)
                .map_err(|error: SequenceError<B::Error>| failed(label, &error))?;
            for peer in self.peers {
                round.peers.push(peer.run()?);
            }
            rounds.push(round);
        }
        bench.measured.push(Measured { label: label.to_owned(), rounds });
        Ok(())
    }

    fn growth<B: Backend>(
        &self,
        backends: &[(&str, &B, usize)],
        model: &Model<B, C>,
        bench: &mut Bench,
    ) -> Result<(), BenchError> {
        if self.contexts.is_empty() {
            return Ok(());
        }
        let growth = growth::measure(backends, model, self.verified, self.contexts)
            .map_err(|error| failed(backends.first().map_or("", |(label, ..)| label), &error))?;
        bench.growths.push(growth);
        Ok(())
    }
}

fn label(name: &str, threads: usize) -> String {
    let threads_are = if threads == 1 { "thread" } else { "threads" };
    format!("{name}, {threads} {threads_are}")
}

fn failed(backend: &str, error: &dyn Error) -> BenchError {
    BenchError::Run { backend: backend.to_owned(), reason: error.to_string() }
}
