//! One step of the gated delta rule.
//!
//! The columns of a head's state are independent but for the shared key and query. A strip of
//! 32 of them is read twice, and the second time it is in the first level cache. Each column's
//! sums run over the rows from the first to the last, with products and sums rounded one by
//! one: bit for bit the reference.

use std::arch::x86_64::*;

use half::bf16;

use super::super::isa::Avx2;
use super::lanes::{load, store};
use crate::kernels::reference::{query_scale, unit};
use crate::kernels::{DeltaDims, DeltaInputs};
use crate::pool::Pool;

/// Elements of the state in about a nanosecond.
const SPEED: usize = 4;

/// See [`reference::delta_step`](crate::kernels::reference::delta_step).
pub(in super::super) fn delta_step(
    isa: Avx2,
    pool: &Pool,
    dims: DeltaDims,
    inputs: DeltaInputs<'_>,
    state: &mut [f32],
    out: &mut [bf16],
) {
    let DeltaInputs { qkv, beta, g } = inputs;
    dims.check(1, [qkv.len(), beta.len(), g.len()], state.len(), out.len());
    let size = dims.head_state();
    if size == 0 {
        return out.fill(bf16::ZERO);
    }
    let block = pool.block(dims.value_heads, size / SPEED);
    let states = state.chunks_mut(block * size);
    let outs = out.chunks_mut(block * dims.value_dim);
    pool.for_each(states.zip(outs), |part, (states, outs)| {
        let outs = outs.chunks_exact_mut(dims.value_dim);
        for (i, (state, out)) in states.chunks_exact_mut(size).zip(outs).enumerate() {
            step_head(isa, dims, inputs, part * block + i, state, out);
        }
    });
}

/// What the columns of a head share.
struct Head {
    q: Vec<f32>,
    k: Vec<f32>,
    beta: f32,
    decay: f32,
}

fn step_head(
    _: Avx2,
    dims: DeltaDims,
    inputs: DeltaInputs<'_>,
    head: usize,
    state: &mut [f32],
    out: &mut [bf16],
) {
    let (q, k, v) = dims.offsets(head);
    let shared = Head {
        q: unit(&inputs.qkv[q..q + dims.key_dim], query_scale(dims)),
        k: unit(&inputs.qkv[k..k + dims.key_dim], 1.0),
        beta: inputs.beta[head].to_f32(),
        decay: inputs.g[head].exp(),
    };
    let v = &inputs.qkv[v..v + dims.value_dim];
    // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
    unsafe { columns(&shared, v, state, out) }
}

#[target_feature(enable = "avx2,fma")]
fn columns(head: &Head, v: &[bf16], state: &mut [f32], out: &mut [bf16]) {
    let width = v.len();
    let mut first = 0;
    while first + 32 <= width {
        strip::<4>(head, v, state, first, out);
        first += 32;
    }
    while first + 8 <= width {
        strip::<1>(head, v, state, first, out);
        first += 8;
    }
    for column in first..width {
        single(head, v[column], &mut state[column..], width, &mut out[column]);
    }
}

/// Columns `first .. first + 8 N`.
#[target_feature(enable = "avx2,fma")]
fn strip<const N: usize>(head: &Head, v: &[bf16], state: &mut [f32], first: usize, out: &mut [bf16]) {
    let width = v.len();
    let decay = _mm256_set1_ps(head.decay);
    let mut recalled = [_mm256_setzero_ps(); N];
    for (k, row) in head.k.iter().zip(state.chunks_exact(width)) {
        let k = _mm256_set1_ps(*k);
        let (row, _) = row[first..first + 8 * N].as_chunks::<8>();
        for (recalled, s) in recalled.iter_mut().zip(row) {
            let s = _mm256_mul_ps(load(s), decay);
            *recalled = _mm256_add_ps(*recalled, _mm256_mul_ps(s, k));
        }
    }

    let mut d = [_mm256_setzero_ps(); N];
    for n in 0..N {
        let values: [f32; 8] = std::array::from_fn(|i| v[first + 8 * n + i].to_f32());
        let error = _mm256_sub_ps(load(&values), recalled[n]);
        d[n] = _mm256_mul_ps(error, _mm256_set1_ps(head.beta));
    }

    let mut o = [_mm256_setzero_ps(); N];
    let rows = state.chunks_exact_mut(width);
    for ((k, q), row) in head.k.iter().zip(&head.q).zip(rows) {
        let (k, q) = (_mm256_set1_ps(*k), _mm256_set1_ps(*q));
        let (row, _) = row[first..first + 8 * N].as_chunks_mut::<8>();
        for ((o, d), s) in o.iter_mut().zip(d).zip(row) {
            let decayed = _mm256_mul_ps(load(s), decay);
            let new = _mm256_add_ps(decayed, _mm256_mul_ps(k, d));
            store(s, new);
            *o = _mm256_add_ps(*o, _mm256_mul_ps(new, q));
        }
    }
    for n in 0..N {
        let mut values = [0.0; 8];
        store(&mut values, o[n]);
        for (out, o) in out[first + 8 * n..].iter_mut().zip(values) {
            *out = bf16::from_f32(o);
        }
    }
}

/// One column, every `stride`th element of `state`.
fn single(head: &Head, v: bf16, state: &mut [f32], stride: usize, out: &mut bf16) {
    let mut recalled = 0.0;
    for (k, s) in head.k.iter().zip(state.iter().step_by(stride)) {
        recalled += s * head.decay * k;
    }
    let d = (v.to_f32() - recalled) * head.beta;
    let mut o = 0.0;
    let column = state.iter_mut().step_by(stride);
    for ((k, q), s) in head.k.iter().zip(&head.q).zip(column) {
        *s = *s * head.decay + k * d;
        o += *s * q;
    }
    *out = bf16::from_f32(o);
}
