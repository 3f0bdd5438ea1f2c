//! One step of the gated delta rule.

use half::bf16;

use super::scalar::{bf, rsqrt, sum_of_squares};
use crate::kernels::{DeltaDims, DeltaInputs};

/// One row of the recurrence, all in f32 but for the last rounding. Reference 3, "Gated
/// DeltaNet", steps 3 and 4. For each value head, whose key head is
/// `head / (value_heads / key_heads)`:
///
/// - `q, k`: `u rsqrt(sum u^2 + 1e-6)`, and `q` also `/ sqrt(Dk)`
/// - `S = exp(g) S; d = (v - S^T k) beta; S = S + k d^T; out = bf(S^T q)`
///
/// Sums run over the rows of `S`, from the first to the last.
///
/// - `inputs`: see [`DeltaInputs`], `T = 1`
/// - `state`: `value_heads × key_dim × value_dim`, zeros before the start of a sequence
/// - `out`: `value_heads × value_dim`
///
/// # Panics
///
/// If a length disagrees.
pub fn delta_step(dims: DeltaDims, inputs: DeltaInputs<'_>, state: &mut [f32], out: &mut [bf16]) {
    let DeltaInputs { qkv, beta, g } = inputs;
    dims.check(1, [qkv.len(), beta.len(), g.len()], state.len(), out.len());
    for head in 0..dims.value_heads {
        let state = &mut state[head * dims.head_state()..(head + 1) * dims.head_state()];
        let out = &mut out[head * dims.value_dim..(head + 1) * dims.value_dim];
        step_head(dims, inputs, head, state, out);
    }
}

/// The step of one value head, on its own state and output.
pub(in crate::kernels) fn step_head(
    dims: DeltaDims,
    inputs: DeltaInputs<'_>,
    head: usize,
    state: &mut [f32],
    out: &mut [bf16],
) {
    let (q, k, v) = dims.offsets(head);
    let q = unit(&inputs.qkv[q..q + dims.key_dim], query_scale(dims));
    let k = unit(&inputs.qkv[k..k + dims.key_dim], 1.0);
    let v = &inputs.qkv[v..v + dims.value_dim];
    let beta = inputs.beta[head].to_f32();
    let decay = inputs.g[head].exp();

    state.iter_mut().for_each(|s| *s *= decay);
    for (c, out) in out.iter_mut().enumerate() {
        let cell = |row: usize| row * dims.value_dim + c;
        let mut recalled = 0.0;
        for (row, k) in k.iter().enumerate() {
            recalled += state[cell(row)] * k;
        }
        let d = (v[c].to_f32() - recalled) * beta;
        let mut o = 0.0;
        for (row, (k, q)) in k.iter().zip(&q).enumerate() {
            state[cell(row)] += k * d;
            o += state[cell(row)] * q;
        }
        *out = bf(o);
    }
}

/// `u rsqrt(sum u^2 + 1e-6) scale`: a sum, not a mean.
pub(in crate::kernels) fn unit(u: &[bf16], scale: f32) -> Vec<f32> {
    let norm = rsqrt(sum_of_squares(u) + 1e-6);
    u.iter().map(|u| u.to_f32() * norm * scale).collect()
}

/// `1 / sqrt(Dk)`.
pub(in crate::kernels) fn query_scale(dims: DeltaDims) -> f32 {
    rsqrt(dims.key_dim as f32)
}
