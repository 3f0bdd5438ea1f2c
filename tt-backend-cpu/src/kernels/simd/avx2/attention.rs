//! Causal attention with a cache.
//!
//! A task is one key head and a few rows: the query heads of all of them share its keys and
//! values. Scores are the matrix product of [`linear`](super::linear), the keys being the
//! weights. The softmax and the sum of values run over the positions from the first to the
//! last, as in the reference, and only over those a row may see: neither the bits of a row nor
//! its share in infinities depends on the other rows.

use std::arch::x86_64::*;

use half::bf16;

use super::super::isa::Avx2;
use super::super::split::strips;
use super::lanes::{BLOCK, arranged, evens, load, load_bf16, odds, store};
use super::linear::{ArrangedRows, products};
use crate::kernels::reference::{append, check_attention};
use crate::kernels::{AttentionCache, AttentionDims, AttentionInputs, Span};
use crate::pool::Pool;

/// Rows of one task.
const ROWS: usize = 4;

/// Positions whose values are mixed before the next dims: they stay in the first level cache.
const POSITIONS: usize = 32;

/// Multiplications in about a nanosecond.
const SPEED: usize = 8;

/// See [`reference::attention`](crate::kernels::reference::attention).
pub(in super::super) fn attention(
    isa: Avx2,
    pool: &Pool,
    dims: AttentionDims,
    span: Span,
    inputs: AttentionInputs<'_>,
    cache: AttentionCache<'_>,
    out: &mut [bf16],
) {
    check_attention(dims, span, inputs, &cache, out);
    append(dims, span, inputs.k, cache.k);
    append(dims, span, inputs.v, cache.v);
    let AttentionCache { k, v } = cache;
    let (k, v): (&[bf16], &[bf16]) = (k, v);

    let group = dims.group() * dims.head_dim;
    let width = dims.kv_heads * group;
    let (valid, rest) = out.split_at_mut(span.rows * width);
    rest.fill(bf16::ZERO);
    if group == 0 {
        return;
    }
    let mut parts: Vec<Part<'_>> = Vec::new();
    for (block, rows) in valid.chunks_mut(ROWS * width).enumerate() {
        for (kv, out) in strips(rows, width, group).into_iter().enumerate() {
            let first = block * ROWS;
            parts.push(Part { first, kv, out });
        }
    }
    let cost = (span.start + span.rows) * ROWS.min(span.rows) * group * 2 / SPEED;
    let block = pool.block(parts.len(), cost);
    pool.for_each(parts.chunks_mut(block), |_, parts| {
        for part in parts {
            part.attend(isa, dims, span.start, inputs.q, k, v);
        }
    });
}

/// The query heads of one key head, in a few rows.
struct Part<'a> {
    /// The first of the rows.
    first: usize,
    /// The key head.
    kv: usize,
    /// The output of each row, `group × head_dim`.
    out: Vec<&'a mut [bf16]>,
}

impl Part<'_> {
    fn attend(&mut self, isa: Avx2, dims: AttentionDims, start: usize, q: &[bf16], k: &[bf16], v: &[bf16]) {
        let (group, width) = (dims.group(), dims.head_dim);
        let cached = self.kv * dims.context * width;
        let seen = start + self.first + self.out.len();
        let keys = &k[cached..cached + seen * width];
        let values = &v[cached..cached + seen * width];

        let queries = ArrangedRows::new(isa, self.out.len() * group, width, |r| {
            let (t, h) = (self.first + r / group, self.kv * group + r % group);
            &q[(t * dims.heads + h) * width..][..width]
        });
        let mut scores = vec![0.0; self.out.len() * group * seen];
        let mut score_rows: Vec<&mut [f32]> = scores.chunks_exact_mut(seen).collect();
        products(isa, &queries, keys, &mut score_rows);

        for (i, out) in self.out.iter_mut().enumerate() {
            let positions = start + self.first + i + 1;
            let rows = &mut score_rows[i * group..(i + 1) * group];
            let mut sums = Vec::with_capacity(group);
            for row in &mut *rows {
                sums.push(exponentials(width, &mut row[..positions]));
            }
            let weights: Vec<&[f32]> = rows.iter().map(|row| &row[..positions]).collect();
            let mixed = mix(isa, &weights, width, values);
            let stride = width.next_multiple_of(BLOCK);
            for (h, out) in out.chunks_exact_mut(width).enumerate() {
                let mixed = &mixed[h * stride..];
                for (d, y) in out.iter_mut().enumerate() {
                    *y = bf16::from_f32(mixed[arranged(d)] / sums[h]);
                }
            }
        }
    }
}

/// Makes `bf(exp(s - max s))` of products, where `s` is the product scaled. Returns the sum of
/// the exponentials before rounding.
fn exponentials(width: usize, products: &mut [f32]) -> f32 {
    let scale = 1.0 / (width as f32).sqrt();
    products.iter_mut().for_each(|s| *s *= scale);
    let max = products.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for s in products {
        let e = (*s - max).exp();
        sum += e;
        *s = bf16::from_f32(e).to_f32();
    }
    sum
}

/// The sums of rows of `values` with each of the weights; arranged, and each filled up to a
/// multiple of 16.
fn mix(_: Avx2, weights: &[&[f32]], width: usize, values: &[bf16]) -> Vec<f32> {
    let stride = width.next_multiple_of(BLOCK);
    let mut mixed = vec![0.0; weights.len() * stride];
    for (weights, mixed) in weights.chunks(4).zip(mixed.chunks_mut(4 * stride)) {
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe {
            match *weights {
                [a, b, c, d] => mix_heads([a, b, c, d], width, values, mixed),
                [a, b, c] => mix_heads([a, b, c], width, values, mixed),
                [a, b] => mix_heads([a, b], width, values, mixed),
                [a] => mix_heads([a], width, values, mixed),
                _ => {}
            }
        }
    }
    mixed
}

/// [`mix`] for `R` heads. A product of two bf16 is exact in f32, so that it makes no difference
/// to multiply and add in one instruction.
#[target_feature(enable = "avx2,fma")]
fn mix_heads<const R: usize>(weights: [&[f32]; R], width: usize, values: &[bf16], mixed: &mut [f32]) {
    let stride = width.next_multiple_of(BLOCK);
    let positions = weights[0].len();
    for first in (0..positions).step_by(POSITIONS) {
        let last = positions.min(first + POSITIONS);
        for d in (0..width).step_by(BLOCK) {
            let mut even = [_mm256_setzero_ps(); R];
            let mut odd = even;
            for r in 0..R {
                let (lanes, _) = mixed[r * stride + d..].as_chunks::<8>();
                (even[r], odd[r]) = (load(&lanes[0]), load(&lanes[1]));
            }
            for p in first..last {
                let value = load_bf16(&values[p * width + d..(p + 1) * width]);
                for r in 0..R {
                    let weight = _mm256_set1_ps(weights[r][p]);
                    even[r] = _mm256_fmadd_ps(weight, evens(value), even[r]);
                    odd[r] = _mm256_fmadd_ps(weight, odds(value), odd[r]);
                }
            }
            for r in 0..R {
                let (lanes, _) = mixed[r * stride + d..].as_chunks_mut::<8>();
                store(&mut lanes[0], even[r]);
                store(&mut lanes[1], odd[r]);
            }
        }
    }
}
