//! Root mean square norm with zero-centred weights.

use half::bf16;

use super::scalar::{bf, inverse_rms};
use crate::kernels::Rows;
use crate::kernels::dims::check;

/// Each row: `y = bf(x rsqrt(mean(x^2) + eps) (1 + w))`, f32 inside, one rounding. Reference 3,
/// "RMSNorm, zero-centred". Gated norms have plain weights: [`gated_norm`](super::gated_norm).
///
/// - `x`: rows of width `H`; heads are rows too
/// - `w`: `H`
/// - `out`: `rows × H`, contiguous
///
/// # Panics
///
/// If a length disagrees.
pub fn rms_norm(x: Rows<'_>, w: &[bf16], eps: f32, out: &mut [bf16]) {
    check("rms_norm w", w.len(), x.width());
    check("rms_norm out", out.len(), x.count() * x.width());
    for i in 0..x.count() {
        let row = x.row(i);
        let scale = inverse_rms(row, eps);
        let out = &mut out[i * row.len()..(i + 1) * row.len()];
        for ((y, x), w) in out.iter_mut().zip(row).zip(w) {
            *y = bf(x.to_f32() * scale * (1.0 + w.to_f32()));
        }
    }
}
