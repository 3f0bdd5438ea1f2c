//! Causal attention with a cache.

use half::bf16;

use super::scalar::{bf, sum};
use crate::kernels::dims::check as check_length;
use crate::kernels::{AttentionCache, AttentionDims, AttentionInputs, Span};

/// Appends the valid rows of `k` and `v` to the cache, then lets the query of each valid row
/// attend to all positions up to its own. Reference 3, "Full attention", steps 4 and 5:
/// `softmax(q k^T / sqrt(D), causal) v`.
///
/// For each row and query head, in f32: the scores `s`, `e = exp(s - max s)` and `sum e`; then
/// `out = bf((sum over positions of bf(e) v) / sum e)`. Query head `h` uses key and value head
/// `h / (heads / kv_heads)`.
///
/// - `inputs`, `cache`: see [`AttentionInputs`] and [`AttentionCache`]
/// - `out`: `T × heads × head_dim`; rows that are not valid become zeros
///
/// # Panics
///
/// If a length disagrees, or if the last position is not within the context.
pub fn attention(
    dims: AttentionDims,
    span: Span,
    inputs: AttentionInputs<'_>,
    cache: AttentionCache<'_>,
    out: &mut [bf16],
) {
    check(dims, span, inputs, &cache, out);
    append(dims, span, inputs.k, cache.k);
    append(dims, span, inputs.v, cache.v);
    let width = dims.head_dim;
    for (i, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
        let (t, h) = (i / dims.heads, i % dims.heads);
        if t < span.rows {
            let positions = span.start + t + 1;
            let kv = (h / dims.group()) * dims.context * width;
            let seen = kv..kv + positions * width;
            let q = &inputs.q[i * width..(i + 1) * width];
            attend(q, &cache.k[seen.clone()], &cache.v[seen], out);
        } else {
            out.fill(bf16::ZERO);
        }
    }
}

/// One query head of one row: `q` and `out` of `D`, `keys` and `values` of `positions × D`.
pub(in crate::kernels) fn attend(q: &[bf16], keys: &[bf16], values: &[bf16], out: &mut [bf16]) {
    let width = q.len();
    let scale = 1.0 / (width as f32).sqrt();
    let scores: Vec<f32> = keys
        .chunks_exact(width)
        .map(|k| sum(q.iter().zip(k).map(|(q, k)| q.to_f32() * k.to_f32())) * scale)
        .collect();
    let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    let mut mixed = vec![0.0f32; width];
    for (s, v) in scores.iter().zip(values.chunks_exact(width)) {
        let e = (s - max).exp();
        total += e;
        let weight = bf(e).to_f32();
        for (m, v) in mixed.iter_mut().zip(v) {
            *m += weight * v.to_f32();
        }
    }
    for (y, m) in out.iter_mut().zip(mixed) {
        *y = bf(m / total);
    }
}

/// Writes the valid rows of `new`, `T × kv_heads × D`, to `cache`, `kv_heads × context × D`.
pub(in crate::kernels) fn append(dims: AttentionDims, span: Span, new: &[bf16], cache: &mut [bf16]) {
    let width = dims.head_dim;
    for t in 0..span.rows {
        for h in 0..dims.kv_heads {
            let from = (t * dims.kv_heads + h) * width;
            let to = (h * dims.context + span.start + t) * width;
            cache[to..to + width].copy_from_slice(&new[from..from + width]);
        }
    }
}

/// Panics if a length disagrees.
pub(in crate::kernels) fn check(
    dims: AttentionDims,
    span: Span,
    inputs: AttentionInputs<'_>,
    cache: &AttentionCache<'_>,
    out: &[bf16],
) {
    let AttentionDims { heads, kv_heads, head_dim, context } = dims;
    assert!(kv_heads > 0 && heads % kv_heads == 0, "{heads} query heads for {kv_heads} key heads");
    assert!(
        span.start + span.rows <= context,
        "positions {} to {} in a context of {context}",
        span.start,
        span.start + span.rows
    );
    let room = kv_heads * context * head_dim;
    check_length("attention cache k", cache.k.len(), room);
    check_length("attention cache v", cache.v.len(), room);
    check_length("attention out", out.len(), inputs.q.len());
    check_length("attention v", inputs.v.len(), inputs.k.len());
    check_length("attention k", inputs.k.len() * heads, inputs.q.len() * kv_heads);
    assert!(span.rows * heads * head_dim <= out.len(), "{} valid rows of fewer", span.rows);
}
