//! The softmax between the two products, and the division after them.

use std::arch::x86_64::*;

use half::bf16;

use super::super::exp::exp;
use super::super::lanes::{BLOCK, load, load_some, paired, rounded, store, store_block, sum};

/// Multiplies by `scale`. Returns the largest product.
#[target_feature(enable = "avx2,fma")]
pub(super) fn scale_and_max(products: &mut [f32], scale: f32) -> f32 {
    let factor = _mm256_set1_ps(scale);
    let mut best = _mm256_set1_ps(f32::NEG_INFINITY);
    let (eights, rest) = products.as_chunks_mut::<8>();
    for eight in eights {
        let scaled = _mm256_mul_ps(load(eight), factor);
        store(eight, scaled);
        // Of a NaN and a number the maximum is its second operand.
        best = _mm256_max_ps(scaled, best);
    }
    let mut lanes = [0.0; 8];
    store(&mut lanes, best);
    rest.iter_mut().for_each(|s| *s *= scale);
    lanes.iter().chain(&*rest).copied().fold(f32::NEG_INFINITY, f32::max)
}

/// Makes `bf(exp(s - max))` of the scores. Returns their sum before rounding.
#[target_feature(enable = "avx2,fma")]
pub(super) fn exponentials(scores: &mut [f32], max: f32) -> f32 {
    let largest = _mm256_set1_ps(max);
    let mut sums = _mm256_setzero_ps();
    let (eights, rest) = scores.as_chunks_mut::<8>();
    for eight in eights {
        sums = _mm256_add_ps(sums, exponential(eight, largest));
    }
    if !rest.is_empty() {
        let mut lanes = [f32::NEG_INFINITY; 8];
        lanes[..rest.len()].copy_from_slice(rest);
        // What the last eight is filled up with becomes zero; or NaN, if all scores are minus
        // infinity, and then so is every exponential.
        sums = _mm256_add_ps(sums, exponential(&mut lanes, largest));
        rest.copy_from_slice(&lanes[..rest.len()]);
    }
    sum(sums)
}

/// Makes `bf(exp(s - largest))` of eight scores. Returns them before rounding.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn exponential(scores: &mut [f32; 8], largest: __m256) -> __m256 {
    let e = exp(_mm256_sub_ps(load(scores), largest));
    store(scores, _mm256_castsi256_ps(_mm256_slli_epi32::<16>(rounded(e))));
    e
}

/// `bf(sum / total)` of a row, arranged.
#[target_feature(enable = "avx2,fma")]
pub(super) fn divide(sums: &[f32], total: f32, out: &mut [bf16]) {
    let total = _mm256_set1_ps(total);
    for (sums, out) in sums.chunks_exact(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let even = _mm256_div_ps(load_some(sums), total);
        let odd = _mm256_div_ps(load_some(&sums[8..]), total);
        store_block(out, paired(rounded(even), rounded(odd)));
    }
}
