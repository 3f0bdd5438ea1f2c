//! The runs: a prefill and decode steps, done the driver's way and others, on the same library.

use super::table::{self, Way};
use super::{Arguments, MockError};
use qwen35_model::checkpoint::{Checkpoint, ConfigJson};
use qwen35_model::known::{ForConfig, Known};
use qwen35_model::{Config, Model, Prefill, Sequence};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tt_backend_tenstorrent::ttnn::{self, CallTime, Levers, MemoryFigures, TtnnOptions};
use tt_backend_tenstorrent::{Session, StagingStats, Tenstorrent};
use tt_dsl::{Backend, Dim};

/// What was seen in one run.
pub(super) struct Seen {
    pub(super) load: Duration,
    pub(super) loaded: StagingStats,
    pub(super) prefill: Duration,
    pub(super) prefill_stats: StagingStats,
    pub(super) prefill_calls: u64,
    pub(super) first_step: Duration,
    pub(super) first_stats: StagingStats,
    /// Walls of the steps after the first, sorted.
    pub(super) steps: Vec<Duration>,
    /// Counters of all steps after the first.
    pub(super) steps_stats: StagingStats,
    /// Calls of all steps after the first.
    pub(super) calls: Vec<CallTime>,
    pub(super) before: MemoryFigures,
    pub(super) during: MemoryFigures,
    pub(super) after: MemoryFigures,
}

impl Seen {
    pub(super) fn count(&self) -> u64 {
        self.steps.len() as u64
    }

    pub(super) fn median(&self) -> Duration {
        self.steps[self.steps.len() / 2]
    }

    /// Calls a step.
    pub(super) fn calls_a_step(&self) -> f64 {
        self.calls.iter().map(|call| call.calls).sum::<u64>() as f64 / self.count() as f64
    }
}

/// Runs everything; whether all that must hold did.
pub(super) fn run(arguments: &Arguments) -> Result<bool, MockError> {
    println!("library: ttnn, mock of a P150 (host path only: no kernel runs, values mean nothing)");
    let figures = open_and_close()?;
    println!("open and close: {} bytes of DRAM in use when open, {} free", figures.allocated, figures.free);
    let mut holds = true;
    let tiny = PathBuf::from("goldens/tiny");
    for dir in std::iter::once(&tiny).chain(&arguments.checkpoints) {
        let checkpoint = Checkpoint::open(dir).map_err(|error| failed(dir, &error))?;
        let config = ConfigJson::of(&checkpoint).map_err(|error| failed(dir, &error))?;
        let known = Known::of(&config).map_err(|error| failed(dir, &error))?;
        let compares = !arguments.only_driver && dir != &tiny;
        holds &= crate::sizes::with(known, Runs { arguments, dir, checkpoint: &checkpoint, compares })
            .map_err(|error| failed(dir, &error))??;
    }
    Ok(holds)
}

fn failed(dir: &Path, error: &dyn std::error::Error) -> MockError {
    MockError::Run { what: dir.display().to_string(), reason: error.to_string() }
}

fn open(levers: Levers) -> Result<Arc<Session>, MockError> {
    ttnn::open(&TtnnOptions { mock: true, levers, ..TtnnOptions::default() })
        .map_err(|error| MockError::Run { what: "opening the device".to_owned(), reason: error.to_string() })
}

fn figures(session: &Session) -> Result<MemoryFigures, MockError> {
    ttnn::memory(session).ok_or_else(|| MockError::Run {
        what: "the allocator".to_owned(),
        reason: "it has no figures for DRAM".to_owned(),
    })
}

fn open_and_close() -> Result<MemoryFigures, MockError> {
    figures(open(Levers::ALL)?.as_ref())
}

struct Runs<'a> {
    arguments: &'a Arguments,
    dir: &'a Path,
    checkpoint: &'a Checkpoint,
    compares: bool,
}

impl ForConfig for Runs<'_> {
    type Output = Result<bool, MockError>;

    fn run<C: Config>(self) -> Self::Output {
        let steps = self.arguments.steps.max(2);
        let seen = self.measure::<C>(Levers::ALL, steps)?;
        let mut holds = table::driver(C::NAME, layers::<C>(), self.arguments.prompt, &seen);
        if self.compares {
            let mut ways = Vec::new();
            for (name, levers) in ways_of() {
                // The slow ones say as much in fewer steps.
                let few = if levers.residency { steps.min(16) } else { 3 };
                ways.push(Way { name, seen: self.measure::<C>(levers, few)? });
            }
            // Last again, so that the ratios are of runs with the same caches.
            holds &= table::ways(&self.measure::<C>(Levers::ALL, steps.min(16))?, &ways);
        }
        Ok(holds)
    }
}

/// Gated DeltaNet layers and attention layers.
fn layers<C: Config>() -> (usize, usize) {
    let attention = (0..C::LAYERS).filter(|&layer| C::is_full_attention(layer)).count();
    (C::LAYERS - attention, attention)
}

/// The other ways: the straightforward step, the origin's, and the driver's with one thing left out.
fn ways_of() -> Vec<(&'static str, Levers)> {
    let all = Levers::ALL;
    vec![
        ("straightforward", Levers::STRAIGHTFORWARD),
        ("the origin's way", Levers::ORIGIN),
        ("without kept handles", Levers { handles: false, ..all }),
        ("without bulk staging", Levers { bulk_staging: false, ..all }),
        ("without layer batches", Levers { layer_batches: false, ..all }),
        ("without residency", Levers { residency: false, ..all }),
        ("without fusion", Levers { fusion: false, ..all }),
        ("without preallocated outputs", Levers { preallocation: false, ..all }),
        ("without kept plans", Levers { plans: false, ..all }),
    ]
}

impl Runs<'_> {
    fn measure<C: Config>(&self, levers: Levers, steps: usize) -> Result<Seen, MockError> {
        let session = open(levers)?;
        let before = figures(&session)?;
        let b = Tenstorrent::new(Arc::clone(&session));
        let verified = self.checkpoint.verify::<C>().map_err(|error| failed(self.dir, &error))?;
        let mut meter = Meter::new(&session);
        let start = Instant::now();
        let model = Model::<Tenstorrent, C>::load(&b, &verified.weights(&b))
            .map_err(|error| failed(self.dir, &error))?;
        let load = start.elapsed();
        let (loaded, _) = meter.take();

        let mut sequence = Sequence::new(&b, &model);
        let prompt: Vec<u32> =
            (0..self.arguments.prompt.max(1)).map(|i| (i * 37 % C::Vocab::SIZE) as u32).collect();
        let start = Instant::now();
        let mut token = self.next(&b, &mut sequence, &prompt)?;
        let prefill = start.elapsed();
        let (prefill_stats, prefill_calls) = meter.take();

        let mut walls = Vec::new();
        let mut first = None;
        for _ in 0..=steps {
            let start = Instant::now();
            token = self.next(&b, &mut sequence, &[token])?;
            let wall = start.elapsed();
            if first.is_none() {
                let (stats, _) = meter.take();
                first = Some((wall, stats));
            } else {
                walls.push(wall);
            }
        }
        let (steps_stats, calls) = meter.take();
        walls.sort_unstable();
        let during = figures(&session)?;
        drop(sequence);
        drop(model);
        b.submit().map_err(|error| failed(self.dir, &error))?;
        ttnn::trim(&session).map_err(|error| failed(self.dir, &error))?;
        let after = figures(&session)?;
        let (first_step, first_stats) = first.unwrap_or_default();
        Ok(Seen {
            load,
            loaded,
            prefill,
            prefill_stats,
            prefill_calls: prefill_calls.iter().map(|call| call.calls).sum(),
            first_step,
            first_stats,
            steps: walls,
            steps_stats,
            calls,
            before,
            during,
            after,
        })
    }

    /// The token after `ids`. A mock answers with whatever was in the memory; what it must be is in the
    /// vocabulary.
    fn next<C: Config>(
        &self,
        b: &Tenstorrent,
        sequence: &mut Sequence<'_, Tenstorrent, C>,
        ids: &[u32],
    ) -> Result<u32, MockError> {
        let logits = sequence.append(ids, Prefill::Buckets).map_err(|error| failed(self.dir, &error))?;
        let token = b.download(&b.argmax(&logits)).map_err(|error| failed(self.dir, &error))?;
        Ok(token.values()[0] % C::Vocab::SIZE as u32)
    }
}

/// Differences of a session's counters.
struct Meter<'a> {
    session: &'a Session,
    stats: StagingStats,
    calls: Vec<CallTime>,
}

impl<'a> Meter<'a> {
    fn new(session: &'a Session) -> Self {
        Self { session, stats: session.stats(), calls: ttnn::calls(session) }
    }

    fn take(&mut self) -> (StagingStats, Vec<CallTime>) {
        let (stats, calls) = (self.session.stats(), ttnn::calls(self.session));
        let earlier = |kind: &str| self.calls.iter().find(|call| call.kind == kind);
        let since = calls
            .iter()
            .map(|call| {
                let (was, nanos) = earlier(&call.kind).map_or((0, 0), |call| (call.calls, call.nanos));
                CallTime { kind: call.kind.clone(), calls: call.calls - was, nanos: call.nanos - nanos }
            })
            .filter(|call| call.calls > 0)
            .collect();
        let difference = stats - self.stats;
        (self.stats, self.calls) = (stats, calls);
        (difference, since)
    }
}
