//! Causal depthwise convolution, followed by silu.

use half::bf16;

use super::scalar::{bf, silu, sum};
use crate::kernels::ConvDims;
use crate::kernels::dims::check as check_length;

/// `c[t] = bf(sum over j of w[j] x[t - (K - 1) + j])`, the terms added from the oldest row to
/// the newest, in f32; then `out[t] = bf(silu(c[t]))`: a rounding stands between the two. Each
/// channel by itself. Reference 3, "Gated DeltaNet", step 1.
///
/// Rows before the first are read from the state, which afterwards holds the last `K - 1` rows
/// up to the last valid one. One row or many make no difference to the bits.
///
/// - `x`: `T × channels`
/// - `w`: `channels × K`, as a checkpoint holds it
/// - `state`: `(K - 1) × channels`, the oldest row first: rows of `x` as they lie, zeros before
///   the start of a sequence
/// - `out`: `T × channels`; rows from `dims.rows` on become zeros
///
/// # Panics
///
/// If a length disagrees.
pub fn causal_conv(dims: ConvDims, x: &[bf16], w: &[bf16], state: &mut [bf16], out: &mut [bf16]) {
    check(dims, x, w, state, out);
    if dims.channels == 0 {
        return;
    }
    for (t, out) in out.chunks_exact_mut(dims.channels).enumerate() {
        conv_channels(dims, x, w, state, t, 0, out);
    }
    shift_state(dims, x, state);
}

/// The output of row `t`, channels `first .. first + out.len()`.
pub(in crate::kernels) fn conv_channels(
    dims: ConvDims,
    x: &[bf16],
    w: &[bf16],
    state: &[bf16],
    t: usize,
    first: usize,
    out: &mut [bf16],
) {
    if t >= dims.rows {
        out.fill(bf16::ZERO);
        return;
    }
    let channels = first..first + out.len();
    let rows: Vec<&[bf16]> =
        (0..dims.kernel).map(|j| &past_row(dims, x, state, t + j)[channels.clone()]).collect();
    let taps = w[first * dims.kernel..].chunks_exact(dims.kernel);
    for (i, (y, taps)) in out.iter_mut().zip(taps).enumerate() {
        let c = bf(sum(taps.iter().zip(&rows).map(|(w, row)| w.to_f32() * row[i].to_f32())));
        *y = bf(silu(c.to_f32()));
    }
}

/// Row `index` of the state followed by `x`.
pub(in crate::kernels) fn past_row<'a>(
    dims: ConvDims,
    x: &'a [bf16],
    state: &'a [bf16],
    index: usize,
) -> &'a [bf16] {
    let history = dims.kernel - 1;
    if index < history {
        &state[index * dims.channels..(index + 1) * dims.channels]
    } else {
        let t = index - history;
        &x[t * dims.channels..(t + 1) * dims.channels]
    }
}

/// Moves the state on by the valid rows of `x`.
pub(in crate::kernels) fn shift_state(dims: ConvDims, x: &[bf16], state: &mut [bf16]) {
    let valid = &x[..dims.rows * dims.channels];
    let size = state.len();
    if valid.len() >= size {
        state.copy_from_slice(&valid[valid.len() - size..]);
    } else {
        state.copy_within(valid.len().., 0);
        state[size - valid.len()..].copy_from_slice(valid);
    }
}

/// Panics if a length disagrees.
pub(in crate::kernels) fn check(dims: ConvDims, x: &[bf16], w: &[bf16], state: &[bf16], out: &[bf16]) {
    let ConvDims { rows, channels, kernel } = dims;
    assert!(kernel > 0, "a convolution has a tap");
    check_length("conv w", w.len(), channels * kernel);
    check_length("conv state", state.len(), (kernel - 1) * channels);
    check_length("conv out", out.len(), x.len());
    assert!(rows * channels <= x.len(), "{rows} valid rows of fewer");
    assert!(channels == 0 || x.len().is_multiple_of(channels), "conv x: whole rows");
}
