//! Addition of the residual stream.

use half::bf16;

use super::scalar::bf;
use crate::kernels::dims::check;

/// `out = bf(a + b)`, element by element. Reference 3, "Skeleton".
///
/// # Panics
///
/// If a length disagrees.
pub fn add(a: &[bf16], b: &[bf16], out: &mut [bf16]) {
    check("add b", b.len(), a.len());
    check("add out", out.len(), a.len());
    for ((y, a), b) in out.iter_mut().zip(a).zip(b) {
        *y = bf(a.to_f32() + b.to_f32());
    }
}
