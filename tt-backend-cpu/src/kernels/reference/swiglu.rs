//! The activation of the MLP.

use half::bf16;

use super::scalar::{bf, silu};
use crate::kernels::dims::check;

/// `g = bf(silu(gate)); out = bf(g up)`, element by element. Reference 3, "MLP".
///
/// # Panics
///
/// If a length disagrees.
pub fn swiglu(gate: &[bf16], up: &[bf16], out: &mut [bf16]) {
    check("swiglu up", up.len(), gate.len());
    check("swiglu out", out.len(), gate.len());
    for ((y, gate), up) in out.iter_mut().zip(gate).zip(up) {
        let g = bf(silu(gate.to_f32()));
        *y = bf(g.to_f32() * up.to_f32());
    }
}
