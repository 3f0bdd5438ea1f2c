//! The measurement: a prefill and decode steps on one backend.
//!
//! It runs twice. The first run is plain, as a program runs it; walls, counters and the host's share
//! are its. The second runs through [`Traced`], which tells the ops apart and costs a little.

use super::ProfileError;
use super::facts::Facts;
use super::phase::{Crossing, Phase};
use super::position::{self, PositionMap};
use crate::golden::Golden;
use crate::parity::layers::{self, LayerFigures, Rounding};
use qwen35_model::checkpoint::Checkpoint;
use qwen35_model::{Config, Model, Prefill, Sequence, SequenceError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tt_backend_tenstorrent::{OpTime, Session, StagingStats};
use tt_dsl::Backend;
use tt_dsl::traced::{TraceReport, Traced};

/// What is run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The ids of the prefill.
    pub prompt: Vec<u32>,
    /// Decode steps before the measured ones, at least one.
    pub warm_up: usize,
    /// Measured decode steps, at least one.
    pub steps: usize,
}

/// What was measured on one backend.
pub struct BackendProfile {
    /// The backend's label.
    pub label: String,
    /// Wall of the model's load, in the plain run.
    pub load: Duration,
    /// Wall of the prefill, in the plain run.
    pub prefill_wall: Duration,
    /// Median wall of a measured decode step, in the plain run.
    pub step_wall: Duration,
    /// Host work outside the device's operations as a share of a decode step's wall: the median over
    /// the measured steps of the plain run. None for a backend whose ops are the host's own work.
    pub host_share: Option<f64>,
    /// What crosses at load, in the traced run.
    pub load_crossings: Vec<Crossing>,
    /// The prefill, in the traced run.
    pub prefill: Phase,
    /// The mean of the measured decode steps, in the traced run.
    pub step: Phase,
    /// The session's counters in the plain run; none for a backend without a session.
    pub facts: Option<Facts>,
    /// The residual stream against the golden's; none without a golden of the model.
    pub parity: Option<Parity>,
}

/// The residual stream against the golden's.
pub struct Parity {
    /// Each layer, over all positions of a prompt.
    pub layers: Vec<LayerFigures>,
    /// For each of `layers`: relative L2 of the reference's own bf16 run to its f32 run.
    pub reference: Vec<f64>,
    /// Each layer at each position, a map a prompt.
    pub maps: Vec<PositionMap>,
}

/// What a session's device did in one interval.
pub(super) struct Device {
    pub(super) stats: StagingStats,
    pub(super) ops: Vec<OpTime>,
}

impl Device {
    /// Time in operations.
    pub(super) fn op_time(&self) -> Duration {
        Duration::from_nanos(self.ops.iter().map(|op| op.nanos).sum())
    }
}

/// One pass: its wall, and what was seen in it.
pub(super) struct Interval<S> {
    pub(super) wall: Duration,
    pub(super) seen: S,
}

/// Profiles one backend, called `label` in the report. `session` is its session, just opened, if it
/// has one; `against`, a golden of the model with the rounding to hold the backend to.
pub fn profile<B: Backend, C: Config>(
    label: &str,
    b: B,
    session: Option<&Arc<Session>>,
    checkpoint: &Checkpoint,
    against: Option<(&Golden, Rounding)>,
    plan: &Plan,
) -> Result<BackendProfile, ProfileError> {
    let failed = |error: &dyn std::error::Error| ProfileError::Run {
        backend: label.to_owned(),
        reason: error.to_string(),
    };
    let verified = checkpoint.verify::<C>()?;
    let mut meter = Meter::new(session);
    let traced = Traced::new(b);

    let b = traced.inner();
    let start = Instant::now();
    let model = Model::<B, C>::load(b, &verified.weights(b)).map_err(|error| failed(&error))?;
    let load = start.elapsed();
    let at_load = meter.take();
    let plain = walk(b, &model, plan, || meter.take()).map_err(|error| failed(&error))?;
    let parity = match against {
        Some((golden, rounding)) => Some(Parity {
            layers: layers::layers(b, &model, golden, rounding)?,
            reference: position::reference(golden)?,
            maps: position::maps(b, &model, golden)?,
        }),
        None => None,
    };
    drop(model);

    traced.reset();
    let model =
        Model::<Traced<B>, C>::load(&traced, &verified.weights(&traced)).map_err(|error| failed(&error))?;
    let load_crossings = Crossing::of(&traced.report().ops, 1);
    let mut take = || {
        let report = traced.report();
        traced.reset();
        (report, meter.take())
    };
    take();
    let seen = walk(&traced, &model, plan, take).map_err(|error| failed(&error))?;

    Ok(BackendProfile {
        label: label.to_owned(),
        load,
        prefill_wall: plain.prefill.wall,
        step_wall: median(plain.steps(plan).map(|step| step.wall.as_secs_f64()))
            .map_or(Duration::ZERO, Duration::from_secs_f64),
        host_share: median(plain.steps(plan).filter_map(host_share)),
        load_crossings,
        prefill: Phase::mean(std::slice::from_ref(&seen.prefill)),
        step: Phase::mean(seen.steps(plan).as_slice()),
        facts: at_load.and_then(|load| facts(load.stats, &plain, plan)),
        parity,
    })
}

/// A run's intervals.
struct Walk<S> {
    prefill: Interval<S>,
    /// Warm-up steps and measured ones.
    steps: Vec<Interval<S>>,
}

impl<S> Walk<S> {
    /// The measured steps.
    fn steps(&self, plan: &Plan) -> std::slice::Iter<'_, Interval<S>> {
        self.steps[plan.warm_up.min(self.steps.len())..].iter()
    }
}

/// One greedy generation. `take`, which says what was seen since its last call, is not on the clock.
fn walk<B: Backend, C: Config, S>(
    b: &B,
    model: &Model<B, C>,
    plan: &Plan,
    mut take: impl FnMut() -> S,
) -> Result<Walk<S>, SequenceError<B::Error>> {
    let start = Instant::now();
    let mut sequence = Sequence::new(b, model);
    let mut next = |ids: &[u32], prefill| {
        let logits = sequence.append(ids, prefill)?;
        let token = b.download(&b.argmax(&logits)).map_err(SequenceError::Backend)?;
        Ok::<_, SequenceError<B::Error>>(token.values()[0])
    };
    let mut token = next(&plan.prompt, Prefill::Buckets)?;
    let prefill = Interval { wall: start.elapsed(), seen: take() };
    let mut steps = Vec::with_capacity(plan.warm_up + plan.steps);
    for _ in 0..plan.warm_up + plan.steps {
        let start = Instant::now();
        token = next(&[token], Prefill::TokenByToken)?;
        steps.push(Interval { wall: start.elapsed(), seen: take() });
    }
    Ok(Walk { prefill, steps })
}

/// Reads a session's counters from one interval to the next.
struct Meter<'s> {
    session: Option<&'s Arc<Session>>,
    stats: StagingStats,
    ops: Vec<OpTime>,
}

impl<'s> Meter<'s> {
    /// The first interval begins when the session is opened.
    fn new(session: Option<&'s Arc<Session>>) -> Self {
        Self { session, stats: StagingStats::default(), ops: Vec::new() }
    }

    fn take(&mut self) -> Option<Device> {
        let session = self.session?;
        let (stats, ops) = (session.stats(), session.op_times());
        let since = |now: &OpTime| {
            let before = self.ops.iter().find(|before| before.op == now.op);
            let (calls, nanos) = before.map_or((0, 0), |before| (before.calls, before.nanos));
            OpTime { op: now.op, calls: now.calls - calls, nanos: now.nanos - nanos }
        };
        let device = Device {
            stats: stats - self.stats,
            ops: ops.iter().map(since).filter(|time| time.calls > 0).collect(),
        };
        (self.stats, self.ops) = (stats, ops);
        Some(device)
    }
}

fn host_share(step: &Interval<Option<Device>>) -> Option<f64> {
    let outside = step.wall.saturating_sub(step.seen.as_ref()?.op_time());
    Some(outside.as_secs_f64() / step.wall.as_secs_f64())
}

fn facts(load: StagingStats, plain: &Walk<Option<Device>>, plan: &Plan) -> Option<Facts> {
    let stats = |interval: &Interval<Option<Device>>| Some(interval.seen.as_ref()?.stats);
    Some(Facts {
        load,
        prefill: stats(&plain.prefill)?,
        first_step: stats(plain.steps.first()?)?,
        steps: plain.steps(plan).map(stats).collect::<Option<_>>()?,
    })
}

/// The middle one, of an even number the upper of the two in the middle.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// What the traced run sees in an interval.
pub(super) type Seen = (TraceReport, Option<Device>);
