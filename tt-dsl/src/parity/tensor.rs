//! The figures of two tensors.

use super::tolerance::{Measures, Metric};
use core::fmt;
use num_traits::ToPrimitive;

/// Why two vectors cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// They are not equally long.
    #[error("expected {reference} elements as in the reference, found {ours}")]
    Length {
        /// Elements of the reference.
        reference: usize,
        /// Elements of the other vector.
        ours: usize,
    },
    /// They hold nothing, and nothing must not count as agreement.
    #[error("expected elements to compare, found none")]
    Empty,
    /// An index past the end.
    #[error("expected an index below {len}, found {index}")]
    Index {
        /// The index asked for.
        index: usize,
        /// The length of the vector.
        len: usize,
    },
}

/// How far a tensor is from its reference. All figures are computed in f64.
///
/// With a non-finite element on either side the distances are NaN and the correlation is
/// undefined: figures of the remaining elements would look like agreement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The number of elements.
    pub elements: usize,
    /// Elements that are NaN or infinite on either side.
    pub non_finite: usize,
    /// Pearson's correlation; 1 for equal vectors. `None` where it is undefined: one vector is
    /// constant and the two differ.
    pub pcc: Option<f64>,
    /// `max |ours - reference|`.
    pub max_abs: f64,
    /// `||ours - reference|| / ||reference||`; infinite where a zero reference is missed.
    pub relative_l2: f64,
    /// `max |ours - reference| / rms(reference)`: one wrong element, however long the vector.
    pub peak: f64,
    /// The largest distance in bf16 units in the last place.
    pub max_ulp: f64,
    /// The mean distance in bf16 units in the last place.
    pub mean_ulp: f64,
}

impl Comparison {
    /// Compares element by element. bf16, f32 and ids (below 2^24) are exact in f32.
    pub fn of<A: ToPrimitive, B: ToPrimitive>(reference: &[A], ours: &[B]) -> Result<Self, CompareError> {
        if reference.len() != ours.len() {
            return Err(CompareError::Length { reference: reference.len(), ours: ours.len() });
        }
        if reference.is_empty() {
            return Err(CompareError::Empty);
        }
        let pairs = || reference.iter().map(to_f32).zip(ours.iter().map(to_f32));
        let elements = reference.len();
        let non_finite = pairs().filter(|(r, o)| !(r.is_finite() && o.is_finite())).count();
        if non_finite > 0 {
            return Ok(Self {
                elements,
                non_finite,
                pcc: None,
                max_abs: f64::NAN,
                relative_l2: f64::NAN,
                peak: f64::NAN,
                max_ulp: f64::NAN,
                mean_ulp: f64::NAN,
            });
        }

        let n = elements as f64;
        let (mut error, mut norm, mut max_abs, mut max_ulp, mut ulps) = (0f64, 0f64, 0f64, 0f64, 0f64);
        for (r, o) in pairs() {
            let difference = (f64::from(o) - f64::from(r)).abs();
            let ulp = bf16_ulps(r, o);
            error += difference * difference;
            norm += f64::from(r) * f64::from(r);
            max_abs = max_abs.max(difference);
            max_ulp = max_ulp.max(ulp);
            ulps += ulp;
        }
        Ok(Self {
            elements,
            non_finite,
            pcc: if max_abs == 0.0 { Some(1.0) } else { correlation(pairs, n) },
            max_abs,
            relative_l2: ratio(error.sqrt(), norm.sqrt()),
            peak: ratio(max_abs, (norm / n).sqrt()),
            max_ulp,
            mean_ulp: ulps / n,
        })
    }

    /// Whether every element is equal.
    pub fn is_exact(&self) -> bool {
        self.non_finite == 0 && self.max_abs == 0.0
    }
}

impl Measures for Comparison {
    fn measure(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::NonFinite => Some(self.non_finite as f64),
            Metric::Pcc => self.pcc,
            Metric::RelativeL2 => Some(self.relative_l2),
            Metric::Peak => Some(self.peak),
            Metric::MaxAbs => Some(self.max_abs),
            Metric::MaxUlp => Some(self.max_ulp),
            Metric::MeanUlp => Some(self.mean_ulp),
            Metric::Kl | Metric::Top1 | Metric::Top5 => None,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pcc {
            Some(pcc) => write!(f, "pcc {pcc:.6}")?,
            None => write!(f, "pcc undefined")?,
        }
        write!(
            f,
            "  rel-l2 {:.2e}  peak {:.2e}  max-abs {:.2e}  ulp {:.1} max {:.3} mean  non-finite {} of {}",
            self.relative_l2,
            self.peak,
            self.max_abs,
            self.max_ulp,
            self.mean_ulp,
            self.non_finite,
            self.elements
        )
    }
}

/// The distance of two finite numbers in bf16 units in the last place: the number of bf16 values
/// from one to the other, a fraction for numbers between them. The two zeros are one.
pub fn bf16_ulps(a: f32, b: f32) -> f64 {
    /// f32 values in order, as consecutive integers.
    fn ordinal(x: f32) -> i64 {
        let magnitude = i64::from(x.to_bits() & 0x7fff_ffff);
        if x.is_sign_negative() { -magnitude } else { magnitude }
    }
    (ordinal(a) - ordinal(b)).abs() as f64 / 65_536.0
}

/// Every element type here converts; one that did not would count as non-finite.
fn to_f32<A: ToPrimitive>(x: &A) -> f32 {
    x.to_f32().unwrap_or(f32::NAN)
}

/// `a / b`, where nothing over nothing is no error and something over nothing is an infinite one.
fn ratio(a: f64, b: f64) -> f64 {
    if a == 0.0 { 0.0 } else { a / b }
}

/// Pearson's correlation of two finite vectors of length `n`, `None` if either is constant.
fn correlation<I: Iterator<Item = (f32, f32)>>(pairs: impl Fn() -> I, n: f64) -> Option<f64> {
    let (mut sum_r, mut sum_o) = (0f64, 0f64);
    for (r, o) in pairs() {
        sum_r += f64::from(r);
        sum_o += f64::from(o);
    }
    let (mean_r, mean_o) = (sum_r / n, sum_o / n);
    let (mut covariance, mut variance_r, mut variance_o) = (0f64, 0f64, 0f64);
    let mut first = None;
    let (mut constant_r, mut constant_o) = (true, true);
    for (r, o) in pairs() {
        // Comparing with the first element finds constants exactly; a rounded mean would leave
        // them a tiny variance, and noise would be reported as a correlation.
        let (first_r, first_o) = *first.get_or_insert((r, o));
        constant_r &= r == first_r;
        constant_o &= o == first_o;
        let (dr, d_o) = (f64::from(r) - mean_r, f64::from(o) - mean_o);
        covariance += dr * d_o;
        variance_r += dr * dr;
        variance_o += d_o * d_o;
    }
    (!constant_r && !constant_o).then(|| (covariance / (variance_r * variance_o).sqrt()).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::bf16;

    #[test]
    fn equal_vectors_agree_in_every_figure_even_constant_ones() {
        for v in [[1.0f32, -2.0, 3.5], [4.0; 3], [0.0; 3]] {
            let c = Comparison::of(&v, &v).unwrap();
            assert!(c.is_exact());
            assert_eq!((c.pcc, c.relative_l2, c.peak, c.max_ulp), (Some(1.0), 0.0, 0.0, 0.0));
        }
    }

    #[test]
    fn constants_that_differ_have_no_correlation() {
        // 0.1 is not a sum of few powers of two: its mean over many elements is rounded.
        for (r, o) in [(vec![0.1f32; 1000], vec![0.3; 1000]), (vec![0.1; 3], vec![1.0, 2.0, 3.0])] {
            assert_eq!(Comparison::of(&r, &o).unwrap().pcc, None);
            assert_eq!(Comparison::of(&o, &r).unwrap().pcc, None);
        }
    }

    #[test]
    fn figures_have_their_textbook_values() {
        let c = Comparison::of(&[3.0f32, 4.0], &[3.0f32, 3.0]).unwrap();
        assert_eq!((c.max_abs, c.relative_l2), (1.0, 0.2));
        assert!((c.peak - 1.0 / 12.5f64.sqrt()).abs() < 1e-15);
        let c = Comparison::of(&[1.0f32, 2.0, 3.0], &[3.0f32, 2.0, 1.0]).unwrap();
        assert_eq!(c.pcc, Some(-1.0));
        let c = Comparison::of(&[0.0f32, 0.0], &[0.0f32, 1e-9]).unwrap();
        assert_eq!(c.relative_l2, f64::INFINITY);
    }

    #[test]
    fn ulps_count_bf16_values() {
        let one = bf16::ONE;
        let next = bf16::from_bits(one.to_bits() + 1);
        assert_eq!(bf16_ulps(one.to_f32(), next.to_f32()), 1.0);
        assert_eq!(bf16_ulps(0.0, -0.0), 0.0);
        let tiny = bf16::from_bits(1).to_f32();
        assert_eq!(bf16_ulps(tiny, -tiny), 2.0);
        assert!(bf16_ulps(1.0, 1.0 + f32::EPSILON) < 1e-4);
    }

    #[test]
    fn mixed_element_types_compare() {
        let ours = [bf16::from_f32(1.0), bf16::from_f32(2.0)];
        assert!(Comparison::of(&[1.0f32, 2.0], &ours).unwrap().is_exact());
        assert!(!Comparison::of(&[7u32], &[8u32]).unwrap().is_exact());
    }

    #[test]
    fn what_cannot_be_compared_is_an_error() {
        let error = Comparison::of(&[1.0f32], &[1.0f32, 2.0]).unwrap_err();
        assert_eq!(error.to_string(), "expected 1 elements as in the reference, found 2");
        assert_eq!(Comparison::of::<f32, f32>(&[], &[]), Err(CompareError::Empty));
    }

    #[test]
    fn one_readable_line() {
        let line = Comparison::of(&[1.0f32, f32::NAN], &[1.0f32, 2.0]).unwrap().to_string();
        assert_eq!(
            line,
            "pcc undefined  rel-l2 NaN  peak NaN  max-abs NaN  ulp NaN max NaN mean  non-finite 1 of 2"
        );
    }
}
