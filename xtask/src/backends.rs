//! The backends that a command can run on, and how each is opened.

use crate::parity::layers::Rounding;
use clap::ValueEnum;
use std::sync::Arc;
use tt_backend_cpu::kernels::{Plain, Simd};
use tt_backend_cpu::{CpuBackend, CpuKernels};
use tt_backend_tenstorrent::ttnn::{self, Policy, TtnnOptions};
use tt_backend_tenstorrent::{Destination, Error, Fidelity, Numerics, Session, SessionOptions, Tenstorrent};
use tt_dsl::Backend;

/// A backend's name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    /// The CPU backend with its fast kernels.
    Cpu,
    /// The CPU backend with plain kernels.
    CpuReference,
    /// The Tenstorrent backend on the device model.
    Tt,
}

/// Fidelity of the device model's matrix unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FidelityName {
    /// One phase.
    Lofi,
    /// Two phases.
    Hifi2,
    /// Three phases.
    Hifi3,
    /// All four.
    Hifi4,
}

/// Destination of the device model's matrix unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DestinationName {
    /// bf16.
    #[value(name = "16")]
    Bits16,
    /// f32.
    #[value(name = "32")]
    Bits32,
}

/// Arithmetic of the device model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NumericsName {
    /// The card's own, bit for bit.
    Tensix,
    /// f32 accumulation.
    Fast,
}

/// What stands behind the Tenstorrent backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DriverName {
    /// The device model.
    Model,
    /// tt-metal's ttnn, in a build with the feature `ttnn`.
    Ttnn,
}

/// The ttnn driver's compute configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// Every product in full.
    Accuracy,
    /// Fewer fidelity phases.
    Performance,
}

/// Which backends to run, and how they are opened.
#[derive(Debug, Clone, clap::Args)]
pub struct BackendArguments {
    /// Which backends to run. When not given, all of them, but the CPU's plain kernels, which are for
    /// reading and not for speed, on the tiny model only.
    #[arg(long = "backend", value_enum, value_delimiter = ',')]
    pub backends: Vec<BackendName>,
    /// Threads to compute with; all cores when not given.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Fidelities of the Tenstorrent matrix unit, a run for each.
    #[arg(long = "fidelity", value_enum, value_delimiter = ',', default_value = "hifi4")]
    pub fidelities: Vec<FidelityName>,
    /// Destinations of the Tenstorrent matrix unit, a run for each.
    #[arg(long = "dest", value_enum, value_delimiter = ',', default_value = "32")]
    pub destinations: Vec<DestinationName>,
    /// Arithmetic of the Tenstorrent device model; `tensix` for the tiny model and `fast` for
    /// others when not given.
    #[arg(long, value_enum)]
    pub numerics: Option<NumericsName>,
    /// What stands behind the Tenstorrent backend.
    #[arg(long, value_enum, default_value = "model")]
    pub driver: DriverName,
    /// Compute configurations of the ttnn driver, a run for each.
    #[arg(long = "policy", value_enum, value_delimiter = ',', default_value = "accuracy")]
    pub policies: Vec<PolicyName>,
}

/// A backend to be opened.
#[derive(Debug, Clone)]
pub struct Choice {
    /// What it is called in tables: the backend's name, and what else tells it apart.
    pub label: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Cpu(Option<u16>),
    CpuReference(Option<u16>),
    Tt(SessionOptions),
    Ttnn(TtnnOptions),
}

/// What is to be done on a backend.
pub trait OnBackend {
    /// What comes of it.
    type Output;

    /// Does it. `session` is the Tenstorrent session, on that backend.
    fn run<B: Backend>(self, b: &B, session: Option<&Arc<Session>>) -> Self::Output;
}

/// What is to be done with a backend of one's own, as by what wraps it in a decorator.
pub trait TakeBackend {
    /// What comes of it.
    type Output;

    /// Does it. `session` is the Tenstorrent session, on that backend.
    fn run<B: Backend>(self, b: B, session: Option<&Arc<Session>>) -> Self::Output;
}

/// Lends the backend that it takes.
struct Lend<F>(F);

impl<F: OnBackend> TakeBackend for Lend<F> {
    type Output = F::Output;

    fn run<B: Backend>(self, b: B, session: Option<&Arc<Session>>) -> F::Output {
        self.0.run(&b, session)
    }
}

impl BackendArguments {
    /// The backends that were asked for, in order; `tiny` says whether the model is the tiny one.
    pub fn choices(&self, tiny: bool) -> Vec<Choice> {
        let all: &[BackendName] = if tiny {
            &[BackendName::Cpu, BackendName::CpuReference, BackendName::Tt]
        } else {
            &[BackendName::Cpu, BackendName::Tt]
        };
        let wanted = if self.backends.is_empty() { all } else { &self.backends };
        let mut choices = Vec::new();
        for name in wanted {
            match name {
                BackendName::Cpu => {
                    choices.push(Choice { label: "cpu".into(), kind: Kind::Cpu(self.threads) });
                }
                BackendName::CpuReference => {
                    choices.push(Choice {
                        label: "cpu-reference".into(),
                        kind: Kind::CpuReference(self.threads),
                    });
                }
                BackendName::Tt if self.driver == DriverName::Ttnn => self.cards(&mut choices),
                BackendName::Tt => self.sessions(tiny, &mut choices),
            }
        }
        choices
    }

    /// A session on the library for each policy.
    fn cards(&self, choices: &mut Vec<Choice>) {
        for &policy in &self.policies {
            let (name, policy) = match policy {
                PolicyName::Accuracy => ("accuracy", Policy::Accuracy),
                PolicyName::Performance => ("performance", Policy::Performance),
            };
            let options = TtnnOptions { policy, ..TtnnOptions::default() };
            choices.push(Choice { label: format!("ttnn {name}"), kind: Kind::Ttnn(options) });
        }
    }

    /// A session for each fidelity and destination; with fast numerics, which have neither, just one.
    fn sessions(&self, tiny: bool, choices: &mut Vec<Choice>) {
        let threads = self.threads.map_or(0, u32::from);
        let numerics = self.numerics.unwrap_or(if tiny { NumericsName::Tensix } else { NumericsName::Fast });
        if numerics == NumericsName::Fast {
            let options = SessionOptions { threads, ..SessionOptions::fast() };
            choices.push(Choice { label: "tt fast".into(), kind: Kind::Tt(options) });
            return;
        }
        for &dest in &self.destinations {
            for &fidelity in &self.fidelities {
                let (name, fidelity) = match fidelity {
                    FidelityName::Lofi => ("lofi", Fidelity::LoFi),
                    FidelityName::Hifi2 => ("hifi2", Fidelity::HiFi2),
                    FidelityName::Hifi3 => ("hifi3", Fidelity::HiFi3),
                    FidelityName::Hifi4 => ("hifi4", Fidelity::HiFi4),
                };
                let (bits, dest) = match dest {
                    DestinationName::Bits16 => (16, Destination::Bits16),
                    DestinationName::Bits32 => (32, Destination::F32),
                };
                let numerics = Numerics::Tensix;
                let options =
                    SessionOptions { threads, fidelity, dest, numerics, ..SessionOptions::default() };
                choices.push(Choice { label: format!("tt {name}/{bits}"), kind: Kind::Tt(options) });
            }
        }
    }
}

impl Choice {
    /// How it rounds. The device model's fast numerics round to nearest even, as the CPU does.
    pub fn rounding(&self) -> Rounding {
        match &self.kind {
            Kind::Tt(options) if options.numerics == Numerics::Tensix => Rounding::ItsOwn,
            Kind::Ttnn(_) => Rounding::ItsOwn,
            _ => Rounding::AsTheReference,
        }
    }

    /// Whether it is the Tenstorrent backend.
    pub fn is_tenstorrent(&self) -> bool {
        matches!(self.kind, Kind::Tt(_) | Kind::Ttnn(_))
    }

    /// Opens the backend and does `task` on it.
    pub fn with<F: OnBackend>(&self, task: F) -> Result<F::Output, Error> {
        self.give(Lend(task))
    }

    /// Opens the backend and gives it to `task`.
    pub fn give<F: TakeBackend>(&self, task: F) -> Result<F::Output, Error> {
        Ok(match &self.kind {
            Kind::Cpu(threads) => task.run(cpu::<Simd>(*threads), None),
            Kind::CpuReference(threads) => task.run(cpu::<Plain>(*threads), None),
            Kind::Tt(options) => {
                let session = Session::open(*options)?;
                task.run(Tenstorrent::new(Arc::clone(&session)), Some(&session))
            }
            Kind::Ttnn(options) => {
                let session = ttnn::open(options)?;
                task.run(Tenstorrent::new(Arc::clone(&session)), Some(&session))
            }
        })
    }
}

fn cpu<K: CpuKernels>(threads: Option<u16>) -> CpuBackend<K> {
    threads.map_or_else(CpuBackend::new, |threads| CpuBackend::with_threads(threads.into()))
}
