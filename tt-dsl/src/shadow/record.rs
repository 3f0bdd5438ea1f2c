//! What a shadow saw.

use crate::parity::{Comparison, Tolerance, Violations};
use core::fmt;

/// Which comparison a shadow makes after an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Both backends get the subject's inputs: shows which op is wrong.
    Local,
    /// Each backend gets what it computed itself: shows how far errors have grown.
    Global,
    /// Both comparisons.
    Both,
}

impl Mode {
    pub(super) fn has_local(self) -> bool {
        self != Self::Global
    }

    pub(super) fn has_global(self) -> bool {
        self != Self::Local
    }
}

/// One result of one call of an op.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The name of the backend's method.
    pub op: &'static str,
    /// Which call of the shadow it was, from zero, over all ops.
    pub ordinal: usize,
    /// Which of the op's results: `out`, or a state's name.
    pub result: &'static str,
    /// Its shape, as its author wrote it.
    pub shape: String,
    /// How many of its rows are no padding and were compared.
    pub rows: usize,
    /// Against the reference given the same inputs.
    pub local: Option<Comparison>,
    /// Against the reference's own chain.
    pub global: Option<Comparison>,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {}.{} {}", self.ordinal, self.op, self.result, self.shape)?;
        for (name, comparison) in [("local", &self.local), ("global", &self.global)] {
            if let Some(comparison) = comparison {
                write!(f, "\n    {name:<7}{comparison}")?;
            }
        }
        Ok(())
    }
}

/// The first result that a tolerance refuses.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The result.
    pub record: Record,
    /// The comparison that failed, `Local` or `Global`.
    pub mode: Mode,
    /// The bounds that do not hold.
    pub violations: Violations,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n    {:?}: {}", self.record, self.mode, self.violations)
    }
}

/// All results, in the order of the calls. Its `Display` is a table of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ShadowReport {
    /// Each result of each call.
    pub records: Vec<Record>,
}

impl ShadowReport {
    /// The first result that either comparison finds beyond the tolerance. Where both do, the local
    /// one is named: it says that this op is at fault, the global one only that an error got here.
    pub fn first_beyond(&self, tolerance: &Tolerance) -> Option<Finding> {
        self.records.iter().find_map(|record| {
            let compared = [(Mode::Local, &record.local), (Mode::Global, &record.global)];
            compared.into_iter().find_map(|(mode, comparison)| {
                let violations = tolerance.check(comparison.as_ref()?).err()?;
                Some(Finding { record: record.clone(), mode, violations })
            })
        })
    }
}

impl fmt::Display for ShadowReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>5}  {:<24}{:>12}{:>10}{:>12}{:>10}{:>12}  shape",
            "call", "result", "local l2", "ulp", "global l2", "ulp", "non-finite"
        )?;
        for record in &self.records {
            write!(f, "{:>5}  {:<24}", record.ordinal, format!("{}.{}", record.op, record.result))?;
            for comparison in [&record.local, &record.global] {
                match comparison {
                    Some(c) => write!(f, "{:>12.2e}{:>10.1}", c.relative_l2, c.max_ulp)?,
                    None => write!(f, "{:>12}{:>10}", "-", "-")?,
                }
            }
            let non_finite =
                [&record.local, &record.global].into_iter().flatten().map(|c| c.non_finite).max();
            writeln!(f, "{:>12}  {}", non_finite.unwrap_or(0), record.shape)?;
        }
        Ok(())
    }
}
