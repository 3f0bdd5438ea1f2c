//! Logits: what two models would say next.

use super::tensor::{CompareError, Comparison};
use super::tolerance::{Measures, Metric};
use core::cmp::Ordering;
use core::fmt;

/// How far logits are from the reference's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogitsComparison {
    /// The figures of any two tensors.
    pub values: Comparison,
    /// Whether both have the same largest logit; the lowest id wins a tie.
    pub top1: bool,
    /// The share of the reference's five best ids that are among our five best.
    pub top5: f64,
    /// `KL(reference || ours)` of the two distributions, in nats. NaN with a non-finite logit.
    pub kl: f64,
}

impl LogitsComparison {
    /// Compares the logits of one position.
    pub fn of(reference: &[f32], ours: &[f32]) -> Result<Self, CompareError> {
        let values = Comparison::of(reference, ours)?;
        let (best_reference, best_ours) = (best(reference, 5), best(ours, 5));
        let shared = best_reference.iter().filter(|id| best_ours.contains(id)).count();
        Ok(Self {
            values,
            top1: best_reference[0] == best_ours[0],
            top5: shared as f64 / best_reference.len() as f64,
            kl: kl(reference, ours),
        })
    }
}

impl Measures for LogitsComparison {
    fn measure(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Kl => Some(self.kl),
            Metric::Top1 => Some(f64::from(u8::from(self.top1))),
            Metric::Top5 => Some(self.top5),
            other => self.values.measure(other),
        }
    }
}

impl fmt::Display for LogitsComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let top1 = if self.top1 { "same" } else { "other" };
        write!(f, "top-1 {top1}  top-5 {:.1}  kl {:.2e}  {}", self.top5, self.kl, self.values)
    }
}

/// By how many milli-nats the reference prefers `preferred` over `chosen`; negative if it does
/// not. Log-probabilities and logits give the same gap: the normalizer cancels.
pub fn near_tie_gap(log_probs: &[f32], preferred: usize, chosen: usize) -> Result<f64, CompareError> {
    let at = |index: usize| {
        let value = log_probs.get(index).ok_or(CompareError::Index { index, len: log_probs.len() })?;
        Ok::<f64, CompareError>(f64::from(*value))
    };
    Ok(1000.0 * (at(preferred)? - at(chosen)?))
}

/// The ids of the `count` largest logits, best first; the lower id wins a tie, NaN comes last.
fn best(logits: &[f32], count: usize) -> Vec<usize> {
    let worse = |&a: &usize, &b: &usize| {
        let (x, y) = (logits[a], logits[b]);
        x.is_nan().cmp(&y.is_nan()).then(y.partial_cmp(&x).unwrap_or(Ordering::Equal)).then(a.cmp(&b))
    };
    let mut ids: Vec<usize> = (0..logits.len()).collect();
    let count = count.min(ids.len());
    if count < ids.len() {
        ids.select_nth_unstable_by(count, worse);
        ids.truncate(count);
    }
    ids.sort_unstable_by(worse);
    ids
}

/// `KL(p || q)` of two softmax distributions.
fn kl(p: &[f32], q: &[f32]) -> f64 {
    let (norm_p, norm_q) = (log_sum_exp(p), log_sum_exp(q));
    let terms = p.iter().zip(q).map(|(&p, &q)| {
        let (log_p, log_q) = (f64::from(p) - norm_p, f64::from(q) - norm_q);
        log_p.exp() * (log_p - log_q)
    });
    let kl: f64 = terms.sum();
    // Rounding may leave a divergence of zero slightly negative. A comparison, not `max`, which
    // would turn NaN into zero.
    if kl < 0.0 { 0.0 } else { kl }
}

/// The logarithm of softmax's denominator, computed from the largest logit down.
fn log_sum_exp(logits: &[f32]) -> f64 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&x| (f64::from(x) - f64::from(largest)).exp()).sum();
    f64::from(largest) + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_logits_have_no_divergence() {
        let logits: Vec<f32> = (0..100).map(|i| (i as f32 * 0.7).sin() * 9.0).collect();
        let c = LogitsComparison::of(&logits, &logits).unwrap();
        assert_eq!((c.top1, c.top5, c.kl), (true, 1.0, 0.0));
    }

    #[test]
    fn divergence_has_its_textbook_value_and_ignores_an_offset() {
        // p = (3/4, 1/4), q = (1/2, 1/2).
        let (p, q) = ([3f32.ln() + 500.0, 500.0], [-500.0f32, -500.0]);
        let expected = 0.75 * 1.5f64.ln() + 0.25 * 0.5f64.ln();
        assert!((kl(&p, &q) - expected).abs() < 1e-5);
    }

    #[test]
    fn nan_reaches_every_figure() {
        let c = LogitsComparison::of(&[1.0, 2.0, 0.0], &[1.0, f32::NAN, 0.0]).unwrap();
        assert!(c.kl.is_nan());
        assert!(!c.top1);
        assert_eq!(c.values.non_finite, 1);
    }

    #[test]
    fn ties_go_to_the_lowest_id() {
        assert_eq!(best(&[1.0, 3.0, 3.0, f32::NAN, 2.0], 3), [1, 2, 4]);
        assert_eq!(best(&[1.0, 2.0], 5), [1, 0]);
    }

    #[test]
    fn gaps_are_in_milli_nats() {
        let log_probs = [-0.5f32, -1.0, -2.0];
        assert_eq!(near_tie_gap(&log_probs, 0, 1), Ok(500.0));
        assert_eq!(near_tie_gap(&log_probs, 1, 0), Ok(-500.0));
        assert_eq!(near_tie_gap(&log_probs, 0, 3), Err(CompareError::Index { index: 3, len: 3 }));
    }
}
