//! Root mean square norms: the bits of the plain kernels.
//!
//! A row's squares are summed from the first to the last, which leaves no room for lanes within a
//! row. So the lanes are eight rows.

use std::arch::x86_64::*;

use half::bf16;

use super::super::isa::Avx2;
use super::super::tables::SILU_F32;
use super::lanes::{
    BLOCK, evens, load, load_bf16, load_some, odds, paired, rounded, store, store_bf16, store_block, widened,
};
use super::pack::{LANES, transpose};
use crate::kernels::Rows;
use crate::kernels::dims::check;
use crate::kernels::reference::rsqrt;
use crate::pool::Pool;

/// Nanoseconds for a step of a sum.
const STEP: usize = 1;

/// See [`reference::rms_norm`](crate::kernels::reference::rms_norm).
pub(in super::super) fn rms_norm(_: Avx2, pool: &Pool, x: Rows<'_>, w: &[bf16], eps: f32, out: &mut [bf16]) {
    let width = x.width();
    check("rms_norm w", w.len(), width);
    check("rms_norm out", out.len(), x.count() * width);
    each_eight(pool, width, out, |first, out| {
        let rows = eight(out.len() / width, |r| x.row(first + r));
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { normed(rows, w, eps, out) }
    });
}

/// See [`reference::gated_norm`](crate::kernels::reference::gated_norm).
pub(in super::super) fn gated_norm(
    _: Avx2,
    pool: &Pool,
    x: &[bf16],
    z: &[bf16],
    w: &[f32],
    eps: f32,
    out: &mut [bf16],
) {
    let width = w.len();
    check("gated_norm z", z.len(), x.len());
    check("gated_norm out", out.len(), x.len());
    if width == 0 {
        return check("gated_norm x", x.len(), 0);
    }
    assert!(x.len().is_multiple_of(width), "gated_norm x: whole rows");
    each_eight(pool, width, out, |first, out| {
        let rows = eight(out.len() / width, |r| &x[(first + r) * width..][..width]);
        let z = &z[first * width..][..out.len()];
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { gated(rows, z, w, eps, out) }
    });
}

/// Calls `body` with the number of the first of up to eight rows, and their outputs.
fn each_eight(pool: &Pool, width: usize, out: &mut [bf16], body: impl Fn(usize, &mut [bf16]) + Sync) {
    if width == 0 {
        return;
    }
    let block = pool.block((out.len() / width).div_ceil(LANES), 2 * width * STEP) * LANES;
    pool.for_each(out.chunks_mut(block * width), |i, out| {
        for (j, out) in out.chunks_mut(LANES * width).enumerate() {
            body(i * block + j * LANES, out);
        }
    });
}

/// Eight rows, of which those from `count` on are empty.
fn eight<'a>(count: usize, row: impl Fn(usize) -> &'a [bf16]) -> [&'a [bf16]; LANES] {
    std::array::from_fn(|r| if r < count { row(r) } else { &[] })
}

/// `rsqrt(mean(x^2) + eps)` of rows of `width` values.
#[target_feature(enable = "avx2,fma")]
fn scales(rows: [&[bf16]; LANES], width: usize, eps: f32) -> [f32; LANES] {
    let mut sums = _mm256_setzero_ps();
    for first in (0..width).step_by(BLOCK) {
        let mut words = [_mm256_setzero_si256(); LANES];
        for (words, row) in words.iter_mut().zip(rows) {
            *words = load_bf16(&row[first.min(row.len())..]);
        }
        // What a row is filled up with adds zeros, and changes no sum of squares.
        for words in transpose(words) {
            let (even, odd) = (evens(words), odds(words));
            sums = _mm256_add_ps(sums, _mm256_mul_ps(even, even));
            sums = _mm256_add_ps(sums, _mm256_mul_ps(odd, odd));
        }
    }
    let mut scales = [0.0; LANES];
    store(&mut scales, sums);
    scales.map(|sum| rsqrt(sum / width as f32 + eps))
}

#[target_feature(enable = "avx2,fma")]
fn normed(rows: [&[bf16]; LANES], w: &[bf16], eps: f32, out: &mut [bf16]) {
    let scales = scales(rows, w.len(), eps);
    let one = _mm256_set1_ps(1.0);
    for ((row, scale), out) in rows.iter().zip(scales).zip(out.chunks_exact_mut(w.len())) {
        let scale = _mm256_set1_ps(scale);
        for ((x, w), out) in row.chunks(BLOCK).zip(w.chunks(BLOCK)).zip(out.chunks_mut(BLOCK)) {
            let (x, w) = (load_bf16(x), load_bf16(w));
            let (even, odd) = (_mm256_mul_ps(evens(x), scale), _mm256_mul_ps(odds(x), scale));
            let even = _mm256_mul_ps(even, _mm256_add_ps(one, evens(w)));
            let odd = _mm256_mul_ps(odd, _mm256_add_ps(one, odds(w)));
            store_block(out, paired(rounded(even), rounded(odd)));
        }
    }
}

#[target_feature(enable = "avx2,fma")]
fn gated(rows: [&[bf16]; LANES], z: &[bf16], w: &[f32], eps: f32, out: &mut [bf16]) {
    let scales = scales(rows, w.len(), eps);
    let width = w.len();
    let outs = out.chunks_exact_mut(width).zip(z.chunks_exact(width));
    for ((row, scale), (out, z)) in rows.iter().zip(scales).zip(outs) {
        let scale = _mm256_set1_ps(scale);
        for first in (0..width).step_by(BLOCK) {
            let part = first..width.min(first + BLOCK);
            let mut gates = [0.0; BLOCK];
            for (gate, z) in gates.iter_mut().zip(&z[part.clone()]) {
                *gate = SILU_F32.at(*z);
            }
            let (gates, _) = gates.as_chunks::<8>();
            let mut halves = [_mm256_setzero_si256(); 2];
            for (i, half) in halves.iter_mut().enumerate() {
                let from = (first + 8 * i).min(width);
                let n = to_f32(rounded(_mm256_mul_ps(widened(&row[from..]), scale)));
                let n = to_f32(rounded(_mm256_mul_ps(load_some(&w[from..]), n)));
                *half = rounded(_mm256_mul_ps(n, load(&gates[i])));
            }
            store_bf16(&mut out[part], halves[0], halves[1]);
        }
    }
}

/// The values of bf16 in the low halves.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn to_f32(low: __m256i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(low))
}
