//! What a traced backend counted, as a table.

use core::fmt;
use std::time::Duration;

/// Crossings between host and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Crossings {
    /// Host-to-device writes: staged masters and uploaded tokens.
    pub writes: u64,
    /// Bytes of those.
    pub written: u64,
    /// Device-to-host reads.
    pub reads: u64,
    /// Bytes of those.
    pub read: u64,
    /// Submits of recorded commands.
    pub submits: u64,
}

impl Crossings {
    pub(super) fn write(bytes: usize) -> Self {
        Self { writes: 1, written: bytes as u64, ..Self::default() }
    }

    pub(super) fn read(bytes: usize) -> Self {
        Self { reads: 1, read: bytes as u64, ..Self::default() }
    }

    pub(super) fn submit() -> Self {
        Self { submits: 1, ..Self::default() }
    }

    fn add(&mut self, other: Self) {
        self.writes += other.writes;
        self.written += other.written;
        self.reads += other.reads;
        self.read += other.read;
        self.submits += other.submits;
    }
}

/// The calls of one op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpTrace {
    /// The name of the backend's method.
    pub op: &'static str,
    /// How often it was called.
    pub calls: u64,
    /// Host time spent in it.
    pub time: Duration,
    /// The crossings it made.
    pub crossings: Crossings,
}

/// Everything that was counted. Its `Display` is a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceReport {
    /// Each op that was called.
    pub ops: Vec<OpTrace>,
    /// The crossings of all of them.
    pub crossings: Crossings,
}

impl TraceReport {
    pub(super) fn add(&mut self, op: &'static str, time: Duration, crossings: Crossings) {
        self.crossings.add(crossings);
        match self.ops.iter_mut().find(|trace| trace.op == op) {
            Some(trace) => {
                trace.calls += 1;
                trace.time += time;
                trace.crossings.add(crossings);
            }
            None => self.ops.push(OpTrace { op, calls: 1, time, crossings }),
        }
    }

    /// The calls of `op`, if there were any.
    pub fn op(&self, op: &str) -> Option<&OpTrace> {
        self.ops.iter().find(|trace| trace.op == op)
    }

    /// Host time spent in all ops.
    pub fn time(&self) -> Duration {
        self.ops.iter().map(|trace| trace.time).sum()
    }
}

impl fmt::Display for TraceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let total = self.time();
        writeln!(
            f,
            "{:<16}{:>8}{:>12}{:>8}{:>14}{:>14}",
            "op", "calls", "ms", "share", "bytes written", "bytes read"
        )?;
        for trace in &self.ops {
            let share = if total.is_zero() { 0.0 } else { trace.time.as_secs_f64() / total.as_secs_f64() };
            writeln!(
                f,
                "{:<16}{:>8}{:>12.3}{:>7.1}%{:>14}{:>14}",
                trace.op,
                trace.calls,
                milliseconds(trace.time),
                100.0 * share,
                trace.crossings.written,
                trace.crossings.read
            )?;
        }
        let Crossings { writes, written, reads, read, submits } = self.crossings;
        write!(
            f,
            "{:.3} ms; {writes} writes ({written} bytes), {reads} reads ({read} bytes), {submits} submits",
            milliseconds(total)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_plain() {
        let mut report = TraceReport::default();
        report.add("linear", Duration::from_millis(3), Crossings::default());
        report.add("download", Duration::from_millis(1), Crossings::read(4));
        let lines = [
            "op                 calls          ms   share bytes written    bytes read",
            "linear                 1       3.000   75.0%             0             0",
            "download               1       1.000   25.0%             0             4",
            "4.000 ms; 0 writes (0 bytes), 1 reads (4 bytes), 0 submits",
        ];
        assert_eq!(report.to_string(), lines.join("\n"));
    }
}
