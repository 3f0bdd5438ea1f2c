//! Matrix product with a weight.

use half::bf16;

use super::scalar::{bf, sum};
use crate::kernels::LinearDims;

/// `out[t, n] = bf(sum over k of x[t, k] w[n, k])`: bf16 in, f32 accumulation, one rounding.
/// Reference, "Notation".
///
/// - `x`: `T × K`
/// - `w`: `N × K`, as a checkpoint holds it
/// - `out`: `T × N`
///
/// # Panics
///
/// If a length disagrees.
pub fn linear(dims: LinearDims, x: &[bf16], w: &[bf16], out: &mut [bf16]) {
    dims.check(x.len(), w.len(), out.len());
    each(dims, x, w, |i, sum| out[i] = bf(sum));
}

/// [`linear`] without the rounding: `out[t, n] = sum over k of x[t, k] w[n, k]` in f32.
/// It makes logits of hidden states, and nothing else. Reference 3, "Skeleton".
///
/// # Panics
///
/// If a length disagrees.
pub fn linear_f32(dims: LinearDims, x: &[bf16], w: &[bf16], out: &mut [f32]) {
    dims.check(x.len(), w.len(), out.len());
    each(dims, x, w, |i, sum| out[i] = sum);
}

fn each(dims: LinearDims, x: &[bf16], w: &[bf16], mut store: impl FnMut(usize, f32)) {
    let LinearDims { rows, inputs, outputs } = dims;
    for t in 0..rows {
        let x = &x[t * inputs..(t + 1) * inputs];
        for n in 0..outputs {
            let w = &w[n * inputs..(n + 1) * inputs];
            let products = x.iter().zip(w).map(|(x, w)| x.to_f32() * w.to_f32());
            store(t * outputs + n, sum(products));
        }
    }
}
