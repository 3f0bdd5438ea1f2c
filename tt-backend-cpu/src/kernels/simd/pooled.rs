//! The plain kernels, their outputs shared among the threads of a pool.
//!
//! Bit for bit the plain kernels: each part is computed by the kernel of
//! [`reference`](crate::kernels::reference) itself.

use half::bf16;

use super::split::strips;
use crate::kernels::dims::check;
use crate::kernels::reference::{self, CHUNK};
use crate::kernels::{
    AttentionCache, AttentionDims, AttentionInputs, ConvDims, DeltaDims, DeltaInputs, LinearDims, RopeDims,
    Rows, Span,
};
use crate::pool::Pool;

/// Nanoseconds to multiply and add two numbers, about, in a sum from the first index to the last.
const PRODUCT: usize = 1;
/// Nanoseconds to read, compute and round an element, about.
const ELEMENT: usize = 2;
/// Nanoseconds for an element with an exponential in it, about.
const EXPONENTIAL: usize = 8;

/// One row: its outputs are shared. More: the rows are.
pub(super) fn linear<T: Send>(
    pool: &Pool,
    dims: LinearDims,
    x: &[bf16],
    w: &[bf16],
    out: &mut [T],
    kernel: impl Fn(LinearDims, &[bf16], &[bf16], &mut [T]) + Sync,
) {
    dims.check(x.len(), w.len(), out.len());
    let LinearDims { rows, inputs, outputs } = dims;
    if rows == 1 {
        let block = pool.block(outputs, inputs * PRODUCT);
        pool.for_each(out.chunks_mut(block), |i, out| {
            let w = &w[i * block * inputs..][..out.len() * inputs];
            let outputs = out.len();
            kernel(LinearDims { outputs, ..dims }, x, w, out);
        });
    } else {
        let block = pool.block(rows, inputs * outputs * PRODUCT);
        pool.for_each(out.chunks_mut(block * outputs.max(1)), |i, out| {
            let rows = out.len() / outputs;
            let x = &x[i * block * inputs..][..rows * inputs];
            kernel(LinearDims { rows, ..dims }, x, w, out);
        });
    }
}

pub(super) fn rms_norm(pool: &Pool, x: Rows<'_>, w: &[bf16], eps: f32, out: &mut [bf16]) {
    let width = x.width();
    check("rms_norm w", w.len(), width);
    check("rms_norm out", out.len(), x.count() * width);
    let block = pool.block(x.count(), width * ELEMENT);
    pool.for_each(out.chunks_mut(block * width.max(1)), |i, out| {
        let rows = x.part(i * block, out.len() / width);
        reference::rms_norm(rows, w, eps, out);
    });
}

pub(super) fn add(pool: &Pool, a: &[bf16], b: &[bf16], out: &mut [bf16]) {
    check("add b", b.len(), a.len());
    check("add out", out.len(), a.len());
    let block = pool.block(out.len(), ELEMENT);
    pool.for_each(out.chunks_mut(block), |i, out| {
        let part = i * block..i * block + out.len();
        reference::add(&a[part.clone()], &b[part], out);
    });
}

pub(super) fn swiglu(pool: &Pool, gate: &[bf16], up: &[bf16], out: &mut [bf16]) {
    check("swiglu up", up.len(), gate.len());
    check("swiglu out", out.len(), gate.len());
    let block = pool.block(out.len(), EXPONENTIAL);
    pool.for_each(out.chunks_mut(block), |i, out| {
        let part = i * block..i * block + out.len();
        reference::swiglu(&gate[part.clone()], &up[part], out);
    });
}

pub(super) fn sigmoid_gate(pool: &Pool, x: &[bf16], gate: Rows<'_>, out: &mut [bf16]) {
    let width = gate.width();
    check("sigmoid_gate x", x.len(), gate.count() * width);
    check("sigmoid_gate out", out.len(), x.len());
    let block = pool.block(gate.count(), width * EXPONENTIAL);
    pool.for_each(out.chunks_mut(block * width.max(1)), |i, out| {
        let x = &x[i * block * width..][..out.len()];
        let gate = gate.part(i * block, out.len() / width);
        reference::sigmoid_gate(x, gate, out);
    });
}

pub(super) fn rope(pool: &Pool, dims: RopeDims, cos: &[bf16], sin: &[bf16], x: &mut [bf16]) {
    let width = dims.heads * dims.head_dim;
    if width == 0 || dims.rotary == 0 {
        return reference::rope(dims, cos, sin, x);
    }
    check("rope sin", sin.len(), cos.len());
    check("rope x", x.len() * dims.rotary, cos.len() * width);
    let block = pool.block(x.len() / width, dims.heads * dims.rotary * ELEMENT);
    pool.for_each(x.chunks_mut(block * width), |i, x| {
        let rows = i * block * dims.rotary..(i * block + x.len() / width) * dims.rotary;
        reference::rope(dims, &cos[rows.clone()], &sin[rows], x);
    });
}

pub(super) fn attention(
    pool: &Pool,
    dims: AttentionDims,
    span: Span,
    inputs: AttentionInputs<'_>,
    cache: AttentionCache<'_>,
    out: &mut [bf16],
) {
    reference::check_attention(dims, span, inputs, &cache, out);
    reference::append(dims, span, inputs.k, cache.k);
    reference::append(dims, span, inputs.v, cache.v);
    let AttentionCache { k, v } = cache;
    let (k, v): (&[bf16], &[bf16]) = (k, v);
    let width = dims.head_dim;
    if width == 0 {
        return;
    }
    let valid = span.rows * dims.heads;
    let (heads, rest) = out.split_at_mut(valid * width);
    rest.fill(bf16::ZERO);
    let positions = span.start + span.rows;
    let block = pool.block(valid, positions * (2 * width * PRODUCT + EXPONENTIAL));
    pool.for_each(heads.chunks_mut(block * width), |part, heads| {
        for (i, out) in heads.chunks_exact_mut(width).enumerate() {
            let i = part * block + i;
            let (t, h) = (i / dims.heads, i % dims.heads);
            let kv = (h / dims.group()) * dims.context * width;
            let seen = kv..kv + (span.start + t + 1) * width;
            let q = &inputs.q[i * width..(i + 1) * width];
            reference::attend(q, &k[seen.clone()], &v[seen], out);
        }
    });
}

/// One row: its channels are shared. More: the rows are.
pub(super) fn causal_conv(
    pool: &Pool,
    dims: ConvDims,
    x: &[bf16],
    w: &[bf16],
    state: &mut [bf16],
    out: &mut [bf16],
) {
    reference::check_conv(dims, x, w, state, out);
    let channels = dims.channels;
    if channels == 0 {
        return;
    }
    let cost = EXPONENTIAL + dims.kernel * ELEMENT;
    let before: &[bf16] = state;
    if out.len() == channels {
        let block = pool.block(channels, cost);
        pool.for_each(out.chunks_mut(block), |i, out| {
            reference::conv_channels(dims, x, w, before, 0, i * block, out);
        });
    } else {
        let block = pool.block(out.len() / channels, channels * cost);
        pool.for_each(out.chunks_mut(block * channels), |i, out| {
            for (t, out) in out.chunks_exact_mut(channels).enumerate() {
                reference::conv_channels(dims, x, w, before, i * block + t, 0, out);
            }
        });
    }
    reference::shift_state(dims, x, state);
}

pub(super) fn delta_step(
    pool: &Pool,
    dims: DeltaDims,
    inputs: DeltaInputs<'_>,
    state: &mut [f32],
    out: &mut [bf16],
) {
    let DeltaInputs { qkv, beta, g } = inputs;
    dims.check(1, [qkv.len(), beta.len(), g.len()], state.len(), out.len());
    if dims.head_state() == 0 {
        return reference::delta_step(dims, inputs, state, out);
    }
    let block = pool.block(dims.value_heads, dims.head_state() * 4 * PRODUCT);
    let states = state.chunks_mut(block * dims.head_state());
    let outs = out.chunks_mut(block * dims.value_dim);
    pool.for_each(states.zip(outs), |part, (states, outs)| {
        let states = states.chunks_exact_mut(dims.head_state());
        let outs = outs.chunks_exact_mut(dims.value_dim);
        for (i, (state, out)) in states.zip(outs).enumerate() {
            reference::step_head(dims, inputs, part * block + i, state, out);
        }
    });
}

pub(super) fn delta_chunk(
    pool: &Pool,
    dims: DeltaDims,
    rows: usize,
    inputs: DeltaInputs<'_>,
    state: &mut [f32],
    out: &mut [bf16],
) {
    if dims.head_state() == 0 {
        return reference::delta_chunk(dims, rows, inputs, state, out);
    }
    let DeltaInputs { qkv, beta, g } = inputs;
    let t = beta.len() / dims.value_heads.max(1);
    dims.check(t, [qkv.len(), beta.len(), g.len()], state.len(), out.len());
    assert!(rows <= t, "{rows} valid rows of {t}");
    let states = state.chunks_exact_mut(dims.head_state());
    let outs = strips(out, dims.value_heads * dims.value_dim, dims.value_dim);
    pool.for_each(states.zip(outs), |head, (state, mut outs)| {
        for first in (0..rows).step_by(CHUNK) {
            let len = CHUNK.min(rows - first);
            let o = reference::chunk_head(dims, inputs, head, first, len, state);
            for (out, o) in outs[first..].iter_mut().zip(&o) {
                for (y, o) in out.iter_mut().zip(o) {
                    *y = bf16::from_f32(*o);
                }
            }
        }
        for out in &mut outs[rows..] {
            out.fill(bf16::ZERO);
        }
    });
}

pub(super) fn gated_norm(pool: &Pool, x: &[bf16], z: &[bf16], w: &[f32], eps: f32, out: &mut [bf16]) {
    let width = w.len();
    if width == 0 {
        return reference::gated_norm(x, z, w, eps, out);
    }
    check("gated_norm z", z.len(), x.len());
    check("gated_norm out", out.len(), x.len());
    let block = pool.block(x.len() / width, width * EXPONENTIAL);
    pool.for_each(out.chunks_mut(block * width), |i, out| {
        let part = i * block * width..i * block * width + out.len();
        reference::gated_norm(&x[part.clone()], &z[part], w, eps, out);
    });
}
