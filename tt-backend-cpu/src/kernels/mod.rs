//! Kernels on plain slices, one an operation.
//!
//! # Conventions
//!
//! - Every slice is row-major and contiguous; what is read with a stride is a [`Rows`]. Shapes
//!   are written outermost first, `T × Heads × D`. `T` is the number of rows of the slices;
//!   kernels with a state also take the number of *valid* rows, `rows <= T`: they leave the
//!   state as the last valid row left it, and fill the outputs of the other rows with zeros.
//! - `bf(x)` is the rounding to the nearest bf16, ties to even. Inputs are widened exactly,
//!   everything in between is f32, and a kernel rounds exactly where its documentation
//!   writes `bf()`. "Reference" there is the written reference of the model, by section.
//! - Lengths that disagree are a mistake of the caller, and panic. Values never do: NaN and
//!   infinities go through by the rules of IEEE arithmetic.
//! - A kernel may share its work in the [`Pool`] it is given. Its result has the same bits for
//!   every number of threads, and a row of an output has the same bits whatever other rows are
//!   computed with it. Two operations have two forms, which are different sums, and within each of
//!   which this holds: products with a weight, of fewer than 8 rows and of more; and the gated delta
//!   rule, whose forms are the step and the chunk.

mod dims;
mod operands;
pub mod reference;
mod rows;
mod simd;

use half::bf16;

use crate::pool::Pool;

pub use dims::{AttentionDims, ConvDims, DeltaDims, LinearDims, RopeDims, Span};
pub use operands::{AttentionCache, AttentionInputs, DeltaInputs};
pub use rows::Rows;
pub use simd::Simd;

/// The operations of the model, on plain slices.
///
/// Each method's default body is the plain kernel of [`mod@reference`], where the operation is
/// defined: shapes, rounding points and formula. An implementation overrides what it can do
/// faster.
pub trait Kernels: Send + Sync + 'static {
    /// Rows of a table: see [`reference::embed`].
    fn embed(&self, ids: &[u32], table: &[bf16], width: usize, out: &mut [bf16]) {
        reference::embed(ids, table, width, out);
    }

    /// `bf(x W^T)`: see [`reference::linear`].
    fn linear(&self, _pool: &Pool, dims: LinearDims, x: &[bf16], w: &[bf16], out: &mut [bf16]) {
        reference::linear(dims, x, w, out);
    }

    /// `x W^T`, not rounded: see [`reference::linear_f32`].
    fn linear_f32(&self, _pool: &Pool, dims: LinearDims, x: &[bf16], w: &[bf16], out: &mut [f32]) {
        reference::linear_f32(dims, x, w, out);
    }

    /// Zero-centred RMS norm: see [`reference::rms_norm`].
    fn rms_norm(&self, _pool: &Pool, x: Rows<'_>, w: &[bf16], eps: f32, out: &mut [bf16]) {
        reference::rms_norm(x, w, eps, out);
    }

    /// `bf(a + b)`: see [`reference::add`].
    fn add(&self, _pool: &Pool, a: &[bf16], b: &[bf16], out: &mut [bf16]) {
        reference::add(a, b, out);
    }

    /// `bf(bf(silu(gate)) up)`: see [`reference::swiglu`].
    fn swiglu(&self, _pool: &Pool, gate: &[bf16], up: &[bf16], out: &mut [bf16]) {
        reference::swiglu(gate, up, out);
    }

    /// `bf(x bf(sigmoid(gate)))`: see [`reference::sigmoid_gate`].
    fn sigmoid_gate(&self, _pool: &Pool, x: &[bf16], gate: Rows<'_>, out: &mut [bf16]) {
        reference::sigmoid_gate(x, gate, out);
    }

    /// Cosines and sines of a run of positions: see [`reference::rope_tables`].
    fn rope_tables(&self, start: usize, rotary: usize, theta: f32, cos: &mut [bf16], sin: &mut [bf16]) {
        reference::rope_tables(start, rotary, theta, cos, sin);
    }

    /// Rotary position embedding in place: see [`reference::rope`].
    fn rope(&self, _pool: &Pool, dims: RopeDims, cos: &[bf16], sin: &[bf16], x: &mut [bf16]) {
        reference::rope(dims, cos, sin, x);
    }

    /// Causal attention with a cache: see [`reference::attention`].
    fn attention(
        &self,
        _pool: &Pool,
        dims: AttentionDims,
        span: Span,
        inputs: AttentionInputs<'_>,
        cache: AttentionCache<'_>,
        out: &mut [bf16],
    ) {
        reference::attention(dims, span, inputs, cache, out);
    }

    /// Causal depthwise convolution and silu, of one row or many: see
    /// [`reference::causal_conv`].
    fn causal_conv(
        &self,
        _pool: &Pool,
        dims: ConvDims,
        x: &[bf16],
        w: &[bf16],
        state: &mut [bf16],
        out: &mut [bf16],
    ) {
        reference::causal_conv(dims, x, w, state, out);
    }

    /// The gates of the delta rule: see [`reference::gdn_gates`].
    fn gdn_gates(
        &self,
        a: &[bf16],
        b: &[bf16],
        a_log: &[f32],
        dt_bias: &[bf16],
        beta: &mut [bf16],
        g: &mut [f32],
    ) {
        reference::gdn_gates(a, b, a_log, dt_bias, beta, g);
    }

    /// One step of the gated delta rule: see [`reference::delta_step`].
    fn delta_step(
        &self,
        _pool: &Pool,
        dims: DeltaDims,
        inputs: DeltaInputs<'_>,
        state: &mut [f32],
        out: &mut [bf16],
    ) {
        reference::delta_step(dims, inputs, state, out);
    }

    /// The gated delta rule in chunks: see [`reference::delta_chunk`].
    fn delta_chunk(
        &self,
        _pool: &Pool,
        dims: DeltaDims,
        rows: usize,
        inputs: DeltaInputs<'_>,
        state: &mut [f32],
        out: &mut [bf16],
    ) {
        reference::delta_chunk(dims, rows, inputs, state, out);
    }

    /// Gated RMS norm with plain weights: see [`reference::gated_norm`].
    fn gated_norm(&self, _pool: &Pool, x: &[bf16], z: &[bf16], w: &[f32], eps: f32, out: &mut [bf16]) {
        reference::gated_norm(x, z, w, eps, out);
    }

    /// The index of the largest value: see [`reference::argmax`].
    fn argmax(&self, logits: &[f32]) -> usize {
        reference::argmax(logits)
    }
}

/// The plain kernels: the definition of every operation, on one thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Kernels for Plain {}
