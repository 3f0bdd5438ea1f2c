//! The counted facts of a session, a column for each phase.

use tt_backend_tenstorrent::StagingStats;

/// What a session counted in each phase.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Opening the session and loading the model.
    pub load: StagingStats,
    /// The prefill, with the choice of its token.
    pub prefill: StagingStats,
    /// The first decode step.
    pub first_step: StagingStats,
    /// The measured decode steps.
    pub steps: Vec<StagingStats>,
}

/// A counter's name and how it is read.
type Counter = (&'static str, fn(&StagingStats) -> u64);

const COUNTERS: [Counter; 12] = [
    ("handle resolutions", |s| s.handle_resolutions),
    ("staging calls", |s| s.staging_calls),
    ("host-to-device writes", |s| s.h2d_writes),
    ("host-to-device bytes", |s| s.h2d_bytes),
    ("device-to-host reads", |s| s.d2h_reads),
    ("device-to-host bytes", |s| s.d2h_bytes),
    ("bytes staged through f32", |s| s.f32_staged_bytes),
    ("submits", |s| s.submits),
    ("commands", |s| s.commands),
    ("program-cache hits", |s| s.program_cache_hits),
    ("program-cache misses", |s| s.program_cache_misses),
    ("allocations", |s| s.allocations),
];

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What is counted.
    pub name: &'static str,
    /// One cell for each of [`Facts::COLUMNS`].
    pub cells: [String; 4],
}

impl Facts {
    /// The phases, in the order of a [`Row`]'s cells.
    pub const COLUMNS: [&'static str; 4] = ["open and load", "prefill", "first decode step", "decode step"];

    /// Every counter in every phase.
    pub fn rows(&self) -> Vec<Row> {
        let row = |&(name, of): &Counter| {
            let [load, prefill, first] =
                [self.load, self.prefill, self.first_step].map(|stats| of(&stats).to_string());
            Row { name, cells: [load, prefill, first, self.step(of)] }
        };
        COUNTERS.iter().map(row).collect()
    }

    /// A counter over the measured steps: its value, or the range where steps differ.
    fn step(&self, of: fn(&StagingStats) -> u64) -> String {
        let values = || self.steps.iter().map(of);
        let (low, high) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
        if low == high { low.to_string() } else { format!("{low} to {high}") }
    }
}
