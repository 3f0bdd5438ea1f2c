//! Bounds on figures.

use core::fmt;

/// A figure that a comparison measures and a tolerance bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Elements that are NaN or infinite. Always bounded, by zero.
    NonFinite,
    /// Pearson's correlation, at least. Ignores scale and offset: never bound it alone.
    Pcc,
    /// Relative L2 distance, at most.
    RelativeL2,
    /// Largest distance over the reference's root mean square, at most.
    Peak,
    /// Largest distance, at most.
    MaxAbs,
    /// Largest distance in bf16 units in the last place, at most.
    MaxUlp,
    /// Mean distance in bf16 units in the last place, at most.
    MeanUlp,
    /// KL(reference || ours) of logits in nats, at most.
    Kl,
    /// Whether the largest logit is the same one: 1 or 0, at least.
    Top1,
    /// Share of the five best ids in common, at least.
    Top5,
}

impl Metric {
    /// Whether `found` satisfies the bound. NaN satisfies none.
    fn holds(self, found: f64, allowed: f64) -> bool {
        if self.is_lower_bound() { found >= allowed } else { found <= allowed }
    }

    fn is_lower_bound(self) -> bool {
        matches!(self, Self::Pcc | Self::Top1 | Self::Top5)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NonFinite => "non-finite",
            Self::Pcc => "pcc",
            Self::RelativeL2 => "rel-l2",
            Self::Peak => "peak",
            Self::MaxAbs => "max-abs",
            Self::MaxUlp => "max ulp",
            Self::MeanUlp => "mean ulp",
            Self::Kl => "kl",
            Self::Top1 => "top-1",
            Self::Top5 => "top-5",
        })
    }
}

/// Something that a [`Tolerance`] can check.
pub trait Measures {
    /// The figure, or `None` where it is undefined or not measured.
    fn measure(&self, metric: Metric) -> Option<f64>;
}

/// Which figures are bounded, and by what. Non-finite elements are never tolerated.
#[derive(Debug, Clone, PartialEq)]
pub struct Tolerance {
    bounds: Vec<(Metric, f64)>,
}

impl Tolerance {
    /// No bound but the one on non-finite elements.
    pub fn finite() -> Self {
        Self { bounds: vec![(Metric::NonFinite, 0.0)] }
    }

    /// Every element equal.
    pub fn exact() -> Self {
        Self::finite().with(Metric::MaxAbs, 0.0)
    }

    /// Bounds `metric` by `allowed`, instead of by what it was bounded by before. The bound on
    /// non-finite elements stays zero.
    #[must_use]
    pub fn with(mut self, metric: Metric, allowed: f64) -> Self {
        if metric != Metric::NonFinite {
            self.bounds.retain(|(bounded, _)| *bounded != metric);
            self.bounds.push((metric, allowed));
        }
        self
    }

    /// Names each bound that does not hold. A bounded figure that is undefined or was not
    /// measured is a violation.
    pub fn check(&self, measured: &impl Measures) -> Result<(), Violations> {
        let violations: Vec<Violation> = self
            .bounds
            .iter()
            .map(|&(metric, allowed)| Violation { metric, found: measured.measure(metric), allowed })
            .filter(|v| !v.found.is_some_and(|found| v.metric.holds(found, v.allowed)))
            .collect();
        if violations.is_empty() { Ok(()) } else { Err(Violations(violations)) }
    }
}

/// For one op in bf16: a few roundings, each of at most 2^-9 of the value. The relative L2
/// distance sees scale, offset and permutations; the peak sees one wrong element in a long vector.
impl Default for Tolerance {
    fn default() -> Self {
        Self::finite().with(Metric::Pcc, 0.999).with(Metric::RelativeL2, 0.01).with(Metric::Peak, 0.125)
    }
}

/// A bound that does not hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Violation {
    /// The figure.
    pub metric: Metric,
    /// Its value, or `None` where it is undefined or was not measured.
    pub found: Option<f64>,
    /// The bound.
    pub allowed: f64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.metric.is_lower_bound() { "at least" } else { "at most" };
        // Four places, as for what was found, but none that are zero: 0.01, 0.999.
        let allowed = (self.allowed * 1e4).round() / 1e4;
        write!(f, "{}: expected {side} {allowed}, found ", self.metric)?;
        match self.found {
            Some(found) => write!(f, "{found:.4}"),
            None => f.write_str("no value"),
        }
    }
}

/// Every bound that does not hold; never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Violations(pub Vec<Violation>);

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, violation) in self.0.iter().enumerate() {
            write!(f, "{}{violation}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}

#[cfg(test)]
mod tests {
    use super::super::{Comparison, LogitsComparison};
    use super::*;

    #[test]
    fn a_violation_says_what_was_found_and_allowed() {
        let found = Comparison::of(&[1.0f32, 2.0, 4.0], &[2.0f32, 4.0, 8.0]).unwrap();
        let violations = Tolerance::default().check(&found).unwrap_err();
        assert_eq!(
            violations.to_string(),
            "rel-l2: expected at most 0.01, found 1.0000; peak: expected at most 0.125, found 1.5119"
        );
    }

    #[test]
    fn non_finite_elements_cannot_be_tolerated() {
        let found = Comparison::of(&[1.0f32, f32::INFINITY], &[1.0f32, f32::INFINITY]).unwrap();
        let lax = Tolerance::finite().with(Metric::NonFinite, 9.0);
        assert_eq!(lax.check(&found).unwrap_err().0[0].metric, Metric::NonFinite);
    }

    #[test]
    fn a_figure_that_was_not_measured_is_a_violation() {
        let found = Comparison::of(&[1.0f32], &[1.0f32]).unwrap();
        let kl = Tolerance::finite().with(Metric::Kl, 1.0);
        assert_eq!(kl.check(&found).unwrap_err().to_string(), "kl: expected at most 1, found no value");
        let logits = LogitsComparison::of(&[1.0], &[1.0]).unwrap();
        assert_eq!(kl.check(&logits), Ok(()));
    }

    #[test]
    fn a_later_bound_replaces_an_earlier_one() {
        let found = Comparison::of(&[1.0f32], &[1.5f32]).unwrap();
        let bounds = Tolerance::finite().with(Metric::MaxAbs, 0.1).with(Metric::MaxAbs, 1.0);
        assert_eq!(bounds.check(&found), Ok(()));
        assert!(Tolerance::exact().check(&found).is_err());
    }
}
