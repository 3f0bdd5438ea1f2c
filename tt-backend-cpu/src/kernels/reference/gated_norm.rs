//! Root mean square norm with plain weights and a gate.

use half::bf16;

use super::scalar::{bf, inverse_rms, silu};
use crate::kernels::dims::check;

/// Each row: `n = bf(x rsqrt(mean(x^2) + eps)); n = bf(w n); out = bf(n silu(z))`, silu in f32.
/// Reference 3, "Gated DeltaNet", step 6. The weight is plain, not zero-centred.
///
/// - `x`, `z`, `out`: rows of width `Dv`; a row is a value head
/// - `w`: `Dv`, f32
///
/// # Panics
///
/// If a length disagrees.
pub fn gated_norm(x: &[bf16], z: &[bf16], w: &[f32], eps: f32, out: &mut [bf16]) {
    check("gated_norm z", z.len(), x.len());
    check("gated_norm out", out.len(), x.len());
    let width = w.len();
    if width == 0 {
        return check("gated_norm x", x.len(), 0);
    }
    assert!(x.len().is_multiple_of(width), "gated_norm x: whole rows");
    for (i, x) in x.chunks_exact(width).enumerate() {
        let row = i * width..(i + 1) * width;
        let scale = inverse_rms(x, eps);
        for (((y, x), z), w) in out[row.clone()].iter_mut().zip(x).zip(&z[row]).zip(w) {
            let n = bf(x.to_f32() * scale);
            let n = bf(w * n.to_f32());
            *y = bf(n.to_f32() * silu(z.to_f32()));
        }
    }
}
