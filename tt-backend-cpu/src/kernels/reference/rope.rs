//! Rotary position embedding.

use half::bf16;

use super::scalar::bf;
use crate::kernels::RopeDims;
use crate::kernels::dims::check;

/// The cosines and sines of positions `start .. start + T`, for `R = rotary` dims. Reference 3,
/// "Full attention", step 3.
///
/// `inv_freq[j] = theta^(-2j/R)` for `j < R/2`, `angle = position inv_freq[j]`, `cos` and `sin`
/// of it, all in f32; then `bf()`. The second half of a row repeats the first.
///
/// - `cos`, `sin`: `T × R`
///
/// # Panics
///
/// If a length disagrees, or if `rotary` is odd.
pub fn rope_tables(start: usize, rotary: usize, theta: f32, cos: &mut [bf16], sin: &mut [bf16]) {
    check("rope_tables sin", sin.len(), cos.len());
    assert_eq!(rotary % 2, 0, "rotary dims are even");
    if rotary == 0 {
        return check("rope_tables cos", cos.len(), 0);
    }
    assert_eq!(cos.len() % rotary, 0, "rope_tables cos: whole rows");
    let half = rotary / 2;
    let inv_freq: Vec<f32> = (0..half).map(|j| 1.0 / theta.powf((2 * j) as f32 / rotary as f32)).collect();
    let rows = cos.chunks_exact_mut(rotary).zip(sin.chunks_exact_mut(rotary));
    for (t, (cos, sin)) in rows.enumerate() {
        for (j, inv_freq) in inv_freq.iter().enumerate() {
            let angle = (start + t) as f32 * inv_freq;
            cos[j] = bf(angle.cos());
            sin[j] = bf(angle.sin());
            cos[j + half] = cos[j];
            sin[j + half] = sin[j];
        }
    }
}

/// Rotates the first `R = dims.rotary` values of each head, in place. Reference 3, "Full
/// attention", step 3. With `h = R/2` and `j < h`, every product and every sum rounded:
///
/// - `x'[j]     = bf(bf(x[j] cos[j]) + bf(-x[j + h] sin[j]))`
/// - `x'[j + h] = bf(bf(x[j + h] cos[j + h]) + bf(x[j] sin[j + h]))`
///
/// Values from `R` on pass.
///
/// - `cos`, `sin`: `T × R`, of [`rope_tables`]
/// - `x`: `T × heads × head_dim`
///
/// # Panics
///
/// If a length disagrees, if `rotary` is odd, or if it is more than `head_dim`.
pub fn rope(dims: RopeDims, cos: &[bf16], sin: &[bf16], x: &mut [bf16]) {
    let RopeDims { heads, head_dim, rotary } = dims;
    assert!(rotary.is_multiple_of(2) && rotary <= head_dim, "{rotary} rotary dims in a head of {head_dim}");
    check("rope sin", sin.len(), cos.len());
    check("rope x", x.len() * rotary, cos.len() * heads * head_dim);
    if rotary == 0 {
        return;
    }
    let half = rotary / 2;
    let product = |a: bf16, b: bf16| bf(a.to_f32() * b.to_f32()).to_f32();
    let tables = cos.chunks_exact(rotary).zip(sin.chunks_exact(rotary));
    for (t, (cos, sin)) in tables.enumerate() {
        for h in 0..heads {
            let head = &mut x[(t * heads + h) * head_dim..][..rotary];
            for j in 0..half {
                let (a, b) = (head[j], head[j + half]);
                head[j] = bf(product(a, cos[j]) + product(-b, sin[j]));
                head[j + half] = bf(product(b, cos[j + half]) + product(a, sin[j + half]));
            }
        }
    }
}
