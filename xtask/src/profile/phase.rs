//! The wall of a pass, divided into its parts.

use super::measure::{Interval, Seen};
use std::time::Duration;
use tt_backend_tenstorrent::OpTime;
use tt_dsl::traced::{Crossings, OpTrace};

/// Backend methods that cross, with what they are called in tables.
const CROSSING: [(&str, &str); 5] = [
    ("stage", "staged masters"),
    ("zeros", "tensors of zeros"),
    ("upload_tokens", "token uploads"),
    ("submit", "submits"),
    ("download", "reads"),
];

/// Whose time a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An operation: the device's, or the CPU backend's own.
    Op,
    /// The host's, beside the operations.
    Host,
}

/// A part of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The operation, or what the host did.
    pub name: &'static str,
    /// Whose time it is.
    pub place: Place,
    /// How often, in one pass.
    pub calls: u64,
    /// Its time in one pass.
    pub time: Duration,
}

/// Crossings of one kind in one pass, as the backend's caller sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crossing {
    /// What crossed.
    pub kind: &'static str,
    /// How often.
    pub count: u64,
    /// Bytes to the backend.
    pub written: u64,
    /// Bytes from it.
    pub read: u64,
}

impl Crossing {
    /// The crossings among the calls of `passes` passes, for one of them.
    pub(super) fn of(ops: &[OpTrace], passes: u64) -> Vec<Self> {
        let of_kind = |&(op, kind): &(&str, &'static str)| {
            let trace = ops.iter().find(|trace| trace.op == op)?;
            Some(Self {
                kind,
                count: trace.calls / passes,
                written: trace.crossings.written / passes,
                read: trace.crossings.read / passes,
            })
        };
        CROSSING.iter().filter_map(of_kind).collect()
    }
}

/// One pass, or the mean of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// Its wall, of which the parts are the whole.
    pub wall: Duration,
    /// The operations, the longest first, then the host's parts.
    pub parts: Vec<Part>,
    /// Calls of the backend.
    pub calls: u64,
    /// What crossed.
    pub crossings: Vec<Crossing>,
}

impl Phase {
    /// The mean of passes.
    pub(super) fn mean(passes: &[Interval<Seen>]) -> Self {
        let count = u32::try_from(passes.len()).unwrap_or(u32::MAX).max(1);
        let mut sums = Sums::default();
        for pass in passes {
            sums.add(pass);
        }
        let parts = sums.parts().into_iter();
        Self {
            wall: sums.wall / count,
            parts: parts
                .map(|part| Part { calls: part.calls / u64::from(count), time: part.time / count, ..part })
                .collect(),
            calls: sums.traces.iter().map(|trace| trace.calls).sum::<u64>() / u64::from(count),
            crossings: Crossing::of(&sums.traces, count.into()),
        }
    }

    /// `time` as a share of the wall.
    pub fn share(&self, time: Duration) -> f64 {
        if self.wall.is_zero() { 0.0 } else { time.as_secs_f64() / self.wall.as_secs_f64() }
    }
}

/// What several passes took together.
#[derive(Default)]
struct Sums {
    wall: Duration,
    traces: Vec<OpTrace>,
    device: Option<DeviceSums>,
}

#[derive(Default)]
struct DeviceSums {
    ops: Vec<OpTime>,
    /// Time in which lists ran: the operations, and what lies between them.
    nanos: u64,
}

impl Sums {
    fn add(&mut self, pass: &Interval<Seen>) {
        let (report, device) = &pass.seen;
        self.wall += pass.wall;
        for trace in &report.ops {
            match self.traces.iter_mut().find(|sum| sum.op == trace.op) {
                Some(sum) => {
                    sum.calls += trace.calls;
                    sum.time += trace.time;
                    sum.crossings = total(sum.crossings, trace.crossings);
                }
                None => self.traces.push(trace.clone()),
            }
        }
        let Some(device) = device else { return };
        let sums = self.device.get_or_insert_default();
        sums.nanos += device.stats.device_nanos;
        for time in &device.ops {
            match sums.ops.iter_mut().find(|sum| sum.op == time.op) {
                Some(sum) => {
                    sum.calls += time.calls;
                    sum.nanos += time.nanos;
                }
                None => sums.ops.push(*time),
            }
        }
    }

    fn parts(&self) -> Vec<Part> {
        let (mut ops, mut host) = match &self.device {
            Some(device) => self.on_a_device(device),
            None => self.on_the_host(),
        };
        ops.sort_by(|a, b| b.time.cmp(&a.time).then(a.name.cmp(b.name)));
        host.retain(|part| part.calls > 0 || !part.time.is_zero());
        let told: Duration = ops.iter().chain(&host).map(|part| part.time).sum();
        ops.extend(host);
        ops.push(Part { name: "rest", place: Place::Host, calls: 0, time: self.wall.saturating_sub(told) });
        ops
    }

    /// A backend that computes when it is called: the calls are the operations.
    fn on_the_host(&self) -> (Vec<Part>, Vec<Part>) {
        let ops = self.ops().map(|trace| Part {
            name: trace.op,
            place: Place::Op,
            calls: trace.calls,
            time: trace.time,
        });
        let host = vec![
            self.host("staging", &["stage", "zeros", "upload_tokens"], Duration::ZERO),
            self.host("submitting", &["submit"], Duration::ZERO),
            self.host("reading", &["download"], Duration::ZERO),
        ];
        (ops.collect(), host)
    }

    /// A backend that records: the calls are the host's, the operations the device's. Lists run in
    /// the calls that hand them over, so the device's time is taken out of these.
    fn on_a_device(&self, device: &DeviceSums) -> (Vec<Part>, Vec<Part>) {
        let ops = device.ops.iter().map(|time| Part {
            name: time.op,
            place: Place::Op,
            calls: time.calls,
            time: Duration::from_nanos(time.nanos),
        });
        let running = Duration::from_nanos(device.nanos);
        let in_ops = Duration::from_nanos(device.ops.iter().map(|time| time.nanos).sum());
        // A pass submits everything but the choice of the token, which rides with the read.
        let with_the_read = device.ops.iter().find(|time| time.op == "argmax").map_or(0, |time| time.nanos);
        let with_the_read = Duration::from_nanos(with_the_read);
        let recording = Part {
            name: "recording",
            place: Place::Host,
            calls: self.ops().map(|trace| trace.calls).sum(),
            time: self.ops().map(|trace| trace.time).sum(),
        };
        let between = Part {
            name: "between operations",
            place: Place::Host,
            calls: 0,
            time: running.saturating_sub(in_ops),
        };
        let host = vec![
            self.host("staging", &["stage", "zeros", "upload_tokens"], Duration::ZERO),
            recording,
            self.host("bridge", &["submit"], running.saturating_sub(with_the_read)),
            between,
            self.host("waiting and reading", &["download"], with_the_read),
        ];
        (ops.collect(), host)
    }

    /// Calls that are no crossings.
    fn ops(&self) -> impl Iterator<Item = &OpTrace> {
        self.traces.iter().filter(|trace| CROSSING.iter().all(|(op, _)| *op != trace.op))
    }

    /// Calls that are crossings, without the device's time in them.
    fn host(&self, name: &'static str, methods: &[&str], device: Duration) -> Part {
        let of = || self.traces.iter().filter(|trace| methods.contains(&trace.op));
        let time = of().map(|trace| trace.time).sum::<Duration>().saturating_sub(device);
        Part { name, place: Place::Host, calls: of().map(|trace| trace.calls).sum(), time }
    }
}

fn total(a: Crossings, b: Crossings) -> Crossings {
    Crossings {
        writes: a.writes + b.writes,
        written: a.written + b.written,
        reads: a.reads + b.reads,
        read: a.read + b.read,
        submits: a.submits + b.submits,
    }
}
