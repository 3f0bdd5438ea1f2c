//! The exponential of eight numbers at once.

use std::arch::x86_64::*;

/// `exp(x)` within 2 units in the last place for `x <= 0`; zero below -87.3, where `exp` would be
/// subnormal. NaN stays NaN.
///
/// `exp(x) = 2^n exp(r)` with `n` the integer nearest to `x / ln 2` and so `|r| <= ln 2 / 2`, where
/// a polynomial will do. Its coefficients are those of Cephes' `expf`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn exp(x: __m256) -> __m256 {
    const LEAST: f32 = -87.3;
    // The two halves of ln 2: a multiple of the first by an integer below 2^8 is exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    const POLYNOMIAL: [f32; 6] =
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];

    let least = _mm256_set1_ps(LEAST);
    // Of a NaN and a number the maximum is its second operand.
    let bounded = _mm256_max_ps(least, x);
    let scaled = _mm256_mul_ps(bounded, _mm256_set1_ps(std::f32::consts::LOG2_E));
    let n = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(scaled);
    let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(LN_2[0]), bounded);
    let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(LN_2[1]), r);
    let mut p = _mm256_set1_ps(POLYNOMIAL[0]);
    for coefficient in &POLYNOMIAL[1..] {
        p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(*coefficient));
    }
    // 1 + r + r^2 p
    let p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
    let p = _mm256_add_ps(p, _mm256_set1_ps(1.0));
    let exponent = _mm256_slli_epi32::<23>(_mm256_cvtps_epi32(n));
    let y = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
    _mm256_and_ps(y, _mm256_cmp_ps::<_CMP_NLT_UQ>(x, least))
}

#[cfg(test)]
mod tests {
    use super::super::lanes::{load, store};
    use super::*;

    fn exps(x: [f32; 8]) -> [f32; 8] {
        let mut y = [0.0; 8];
        // SAFETY: the caller has asked for AVX2 and FMA.
        unsafe { store(&mut y, exp(load(&x))) };
        y
    }

    #[test]
    fn near_that_of_f64() {
        if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
            return;
        }
        let steps = 1 << 20;
        for i in (0..steps).step_by(8) {
            let x = std::array::from_fn(|j| -87.3 * (i + j) as f32 / steps as f32);
            for (x, y) in x.iter().zip(exps(x)) {
                let expected = f64::from(*x).exp();
                let error = (f64::from(y) - expected).abs() / expected;
                assert!(error < 2.0 * f64::from(f32::EPSILON), "exp({x}) = {y}, off by {error:e}");
            }
        }
        assert_eq!(exps([0.0; 8]), [1.0; 8]);
        assert_eq!(exps([-0.0; 8]), [1.0; 8]);
    }

    #[test]
    fn limits() {
        if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
            return;
        }
        let y = exps([f32::NEG_INFINITY, -1e30, -88.0, f32::NAN, -f32::NAN, -1e-40, -1e-8, -87.0]);
        assert_eq!(y[..3], [0.0; 3]);
        assert!(y[3].is_nan() && y[4].is_nan());
        assert_eq!(y[5..7], [1.0; 2]);
        assert!(y[7] > 0.0);
    }
}
