//! The gate on the output of full attention.

use half::bf16;

use super::scalar::{bf, sigmoid};
use crate::kernels::Rows;
use crate::kernels::dims::check;

/// `out = bf(x bf(sigmoid(gate)))`, element by element. Reference 3, "Full attention", step 6.
///
/// - `x`: as many values as the gate has in its rows, contiguous
/// - `gate`: rows of any width; in the model the gate half of each head, `D` wide, `2 * D` apart
/// - `out`: as `x`
///
/// # Panics
///
/// If a length disagrees.
pub fn sigmoid_gate(x: &[bf16], gate: Rows<'_>, out: &mut [bf16]) {
    let width = gate.width();
    check("sigmoid_gate x", x.len(), gate.count() * width);
    check("sigmoid_gate out", out.len(), x.len());
    for i in 0..gate.count() {
        let row = i * width..(i + 1) * width;
        for ((y, x), gate) in out[row.clone()].iter_mut().zip(&x[row]).zip(gate.row(i)) {
            let s = bf(sigmoid(gate.to_f32()));
            *y = bf(x.to_f32() * s.to_f32());
        }
    }
}
