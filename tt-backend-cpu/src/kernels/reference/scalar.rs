//! Functions of one number.

use half::bf16;

/// `bf(x)`: to the nearest bf16, ties to even.
pub(super) fn bf(x: f32) -> bf16 {
    bf16::from_f32(x)
}

/// `1 / (1 + exp(-x))`.
pub(in crate::kernels) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// `x sigmoid(x)`, as `x / (1 + exp(-x))`.
pub(in crate::kernels) fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

/// `ln(1 + exp(x))`, and `x` itself above 20.
pub(super) fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { x.exp().ln_1p() }
}

/// `1 / sqrt(x)`.
pub(in crate::kernels) fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// The sum from the first term to the last, beginning at zero. (`Iterator::sum` begins at minus
/// zero, and a sum of nothing would be that.)
pub(super) fn sum(terms: impl Iterator<Item = f32>) -> f32 {
    terms.fold(0.0, |sum, term| sum + term)
}

/// The sum of squares.
pub(super) fn sum_of_squares(x: &[bf16]) -> f32 {
    sum(x.iter().map(|x| x.to_f32() * x.to_f32()))
}

/// `rsqrt(mean(x^2) + eps)`.
pub(super) fn inverse_rms(x: &[bf16], eps: f32) -> f32 {
    rsqrt(sum_of_squares(x) / x.len() as f32 + eps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;

    #[test]
    fn agree_with_f64() {
        for i in -400..=400i16 {
            let x = f32::from(i) / 8.0;
            let y = f64::from(x);
            let sigmoid64 = 1.0 / (1.0 + (-y).exp());
            let close = |found: f32, expected: f64| {
                assert_relative_eq!(f64::from(found), expected, max_relative = 3e-7);
            };
            close(sigmoid(x), sigmoid64);
            close(silu(x), y * sigmoid64);
            close(softplus(x), y.exp().ln_1p());
        }
        assert_eq!(rsqrt(0.25), 2.0);
    }

    #[test]
    fn limits() {
        assert_eq!(sigmoid(f32::INFINITY), 1.0);
        assert_eq!(sigmoid(f32::NEG_INFINITY), 0.0);
        assert_eq!(softplus(f32::NEG_INFINITY), 0.0);
        assert_eq!(softplus(f32::INFINITY), f32::INFINITY);
        assert_eq!(silu(f32::INFINITY), f32::INFINITY);
        assert_eq!(silu(-200.0), -0.0);
        assert!(silu(f32::NAN).is_nan() && softplus(f32::NAN).is_nan());
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        let bits = |x: u32| bf(f32::from_bits(x)).to_bits();
        assert_eq!(bits(0x3f80_7fff), 0x3f80);
        assert_eq!(bits(0x3f80_8000), 0x3f80, "a tie, to the even below");
        assert_eq!(bits(0x3f81_8000), 0x3f82, "a tie, to the even above");
        assert_eq!(bits(0x3f80_8001), 0x3f81);
        assert_eq!(bits(0x7f7f_ffff), 0x7f80, "overflow, to infinity");
        assert_eq!(bits(0x0000_8001), 0x0001, "a subnormal");
        assert!(bf(f32::from_bits(0x7f80_0001)).is_nan());
    }
}
