//! The verdict on a backend, as a table for people and as JSON for machines.

use super::layers::LayerFigures;
use super::self_check::SelfCheck;
use super::tokens::{Divergence, FreeRunning, NEAR_TIE_MILLINATS, TeacherForced};
use crate::golden::Golden;
use serde_json::{Value, json};
use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

/// What a pass requires beyond the tokens.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// No cell may be excused as a near tie.
    pub strict: bool,
    /// Largest quality ratio.
    pub quality_ratio: f64,
}

/// A backend's report with the limits that it is held to.
pub struct Judged {
    /// What was found out.
    pub report: BackendReport,
    /// What a pass requires.
    pub limits: Limits,
}

impl Judged {
    /// Whether it passes.
    pub fn passes(&self) -> bool {
        self.report.failures(self.limits).is_empty()
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        self.report.json(self.limits)
    }
}

/// What the whole run cost.
#[derive(Debug, Clone, Copy)]
pub struct Expense {
    /// From the golden's opening to the last verdict.
    pub time: Duration,
    /// The largest resident memory of the process so far, mapped files included; none where the system
    /// does not say.
    pub peak_bytes: Option<u64>,
}

impl Expense {
    /// Since `start`.
    pub fn since(start: Instant) -> Self {
        // `VmHWM:    123456 kB`.
        let kib = fs::read_to_string("/proc/self/status").ok().and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
            line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
        });
        Self { time: start.elapsed(), peak_bytes: kib.map(|kib| kib * 1024) }
    }
}

impl fmt::Display for Expense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.time.as_secs_f64())?;
        match self.peak_bytes {
            Some(bytes) => write!(f, ", peak resident memory {:.2} GiB", bytes as f64 / (1u64 << 30) as f64),
            None => Ok(()),
        }
    }
}

/// Everything that was found out about one backend.
pub struct BackendReport {
    /// The backend's name.
    pub name: String,
    /// Prompts of the golden.
    pub prompts: usize,
    /// Cells of the golden.
    pub cells: usize,
    /// Prompts whose text our tokenizer encodes otherwise.
    pub token_mismatches: Vec<usize>,
    /// Free-running tokens.
    pub free_running: FreeRunning,
    /// Teacher-forced tokens.
    pub teacher_forced: TeacherForced,
    /// The ways to read a prompt against each other.
    pub self_check: SelfCheck,
    /// The residual stream against the reference's.
    pub layers: Vec<LayerFigures>,
}

impl BackendReport {
    /// Teacher-forced cells that differ but lie within the near-tie band.
    pub fn excused(&self) -> impl Iterator<Item = &Divergence> {
        self.teacher_forced.divergences.iter().filter(|divergence| divergence.is_near_tie())
    }

    /// The first place of the residual stream that is out of tolerance.
    pub fn first_layer_out(&self) -> Option<&LayerFigures> {
        self.layers.iter().find(|figures| figures.violation.is_some())
    }

    /// Every reason not to pass, in words.
    pub fn failures(&self, limits: Limits) -> Vec<String> {
        let mut failures = Vec::new();
        if !self.token_mismatches.is_empty() {
            failures.push(format!("the tokenizer encodes other ids for prompts {:?}", self.token_mismatches));
        }
        for divergence in &self.free_running.divergences {
            if limits.strict || !divergence.is_near_tie() {
                failures.push(format!("free running parts at {}", Cell(divergence)));
            }
        }
        for divergence in &self.teacher_forced.divergences {
            if limits.strict || !divergence.is_near_tie() {
                failures.push(format!("teacher-forced token differs at {}", Cell(divergence)));
            }
        }
        if self.teacher_forced.non_finite > 0 {
            failures.push(format!("{} logits are NaN or infinite", self.teacher_forced.non_finite));
        }
        if !self.self_check.pass {
            let what = self.self_check.violation.as_deref().unwrap_or("the best tokens differ");
            failures.push(format!("self-check: {what}"));
        }
        let ratio = self.teacher_forced.quality_ratio;
        // Not `ratio > limit`: NaN must fail.
        if ratio.partial_cmp(&limits.quality_ratio).is_none_or(std::cmp::Ordering::is_gt) {
            failures
                .push(format!("quality ratio: expected at most {}, found {ratio:.3}", limits.quality_ratio));
        }
        if let Some(LayerFigures { prompt, place, violation: Some(violation), .. }) = self.first_layer_out() {
            failures.push(format!("first layer out of tolerance: {place} (prompt {prompt}): {violation}"));
        }
        failures
    }

    /// The object that `--json` prints for this backend.
    pub fn json(&self, limits: Limits) -> Value {
        let failures = self.failures(limits);
        json!({
            "name": self.name,
            "prompts": self.prompts,
            "prompts_equal": self.free_running.prompts_equal,
            "cells": self.cells,
            "cells_equal": self.free_running.cells_equal,
            "cells_equal_teacher_forced": self.teacher_forced.cells_equal,
            "cells_excused": self.excused().collect::<Vec<_>>(),
            "self_check": self.self_check,
            "quality_ratio": self.teacher_forced.quality_ratio,
            "logits_sha256": self.teacher_forced.logits_sha256,
            "first_divergence": self.free_running.divergences.first(),
            "first_layer_out": self.first_layer_out().map(|figures| &figures.place),
            "pass": failures.is_empty(),
            "failures": failures,
        })
    }
}

/// A cell in words.
struct Cell<'d>(&'d Divergence);

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Divergence { prompt, cell, expected, found, gap_millinats } = self.0;
        write!(f, "prompt {prompt}, cell {cell}: expected token {expected}, found {found}, ")?;
        match gap_millinats {
            Some(gap) => write!(f, "{gap:.0} millinats below"),
            None => write!(f, "which the reference did not consider"),
        }
    }
}

/// The table of all backends, with the excused cells and the failures below it.
pub fn table(golden: &Golden, reports: &[Judged]) -> String {
    let of = if golden.prompts.len() < golden.recorded {
        format!(" of {}", golden.recorded)
    } else {
        String::new()
    };
    let mut out = format!(
        "golden {} ({}): {}{of} prompts x {} tokens\n\n{:<14} {:>9} {:>11} {:>14} {:>8} {:>11} {:>9}  {}\n",
        golden.dir.display(),
        golden.model,
        golden.prompts.len(),
        golden.cells_per_prompt(),
        "backend",
        "prompts",
        "cells",
        "teacher-forced",
        "excused",
        "self-check",
        "quality",
        "verdict"
    );
    for Judged { report, limits } in reports {
        let verdict = if report.failures(*limits).is_empty() { "pass" } else { "FAIL" };
        out += &format!(
            "{:<14} {:>9} {:>11} {:>14} {:>8} {:>11} {:>9.3}  {verdict}\n",
            report.name,
            format!("{}/{}", report.free_running.prompts_equal, report.prompts),
            format!("{}/{}", report.free_running.cells_equal, report.cells),
            format!("{}/{}", report.teacher_forced.cells_equal, report.cells),
            report.excused().count(),
            if report.self_check.pass { "holds" } else { "FAILS" },
            report.teacher_forced.quality_ratio,
        );
    }
    out += "\nquality: mean KL to the f32 reference over that of the reference's own bf16 run; 1.0 is as good.\n";
    for Judged { report, limits } in reports {
        out += &format!(
            "{}: self-check relative L2 at most {:.1e} in logits, {:.1e} in states; logits SHA-256 {}\n",
            report.name,
            report.self_check.logits,
            report.self_check.states,
            report.teacher_forced.logits_sha256
        );
        for divergence in report.excused() {
            out += &format!(
                "{}: excused (gap at most {NEAR_TIE_MILLINATS} millinats): {}\n",
                report.name,
                Cell(divergence)
            );
        }
        for failure in report.failures(*limits) {
            out += &format!("{}: FAIL: {failure}\n", report.name);
        }
    }
    out
}

/// The per-layer figures of one backend against the reference's bf16 and f32 runs.
pub fn layer_table(report: &BackendReport) -> String {
    let mut out = format!("{}: residual stream against the reference\n", report.name);
    let mut prompt = None;
    for figures in &report.layers {
        if prompt != Some(figures.prompt) {
            prompt = Some(figures.prompt);
            out += &format!("prompt {}\n", figures.prompt);
        }
        out += &format!("  {:<22} bf16  {}\n", figures.place, figures.to_bf16);
        out += &format!("  {:<22} f32   {}\n", "", figures.to_f32);
        if let Some(violation) = &figures.violation {
            out += &format!("  {:<22} OUT OF TOLERANCE: {violation}\n", "");
        }
    }
    match report.first_layer_out() {
        Some(figures) => {
            out += &format!("first layer out of tolerance: {} (prompt {})\n", figures.place, figures.prompt);
        }
        None => out += "every layer is within tolerance\n",
    }
    out
}
