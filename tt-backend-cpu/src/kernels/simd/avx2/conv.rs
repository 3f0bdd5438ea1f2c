//! Causal depthwise convolution of four taps, and silu: the bits of the plain kernel.

use std::arch::x86_64::*;

use half::bf16;

use super::super::isa::Avx2;
use super::super::pooled;
use super::super::tables::SILU;
use super::lanes::{BLOCK, evens, load_bf16, odds, rounded, store_bf16, widened};
use crate::kernels::ConvDims;
use crate::kernels::reference::{check_conv, past_row, shift_state};
use crate::pool::Pool;

/// Taps of the kernel that is written out here; others are left to the plain kernel.
const TAPS: usize = 4;

/// Nanoseconds for eight channels of a row.
const EIGHT: usize = 8;

/// See [`reference::causal_conv`](crate::kernels::reference::causal_conv).
pub(in super::super) fn causal_conv(
    _: Avx2,
    pool: &Pool,
    dims: ConvDims,
    x: &[bf16],
    w: &[bf16],
    state: &mut [bf16],
    out: &mut [bf16],
) {
    let channels = dims.channels;
    if dims.kernel != TAPS || channels == 0 {
        return pooled::causal_conv(pool, dims, x, w, state, out);
    }
    check_conv(dims, x, w, state, out);
    let before: &[bf16] = state;
    let row = |t: usize, first: usize, out: &mut [bf16]| {
        if t >= dims.rows {
            return out.fill(bf16::ZERO);
        }
        let rows = std::array::from_fn(|j| &past_row(dims, x, before, t + j)[first..first + out.len()]);
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { convolve(rows, &w[first * TAPS..][..out.len() * TAPS], out) }
    };
    if out.len() == channels {
        let block = pool.block(channels.div_ceil(BLOCK), 2 * EIGHT) * BLOCK;
        pool.for_each(out.chunks_mut(block), |i, out| row(0, i * block, out));
    } else {
        let block = pool.block(out.len() / channels, channels.div_ceil(8) * EIGHT);
        pool.for_each(out.chunks_mut(block * channels), |i, out| {
            for (t, out) in out.chunks_exact_mut(channels).enumerate() {
                row(i * block + t, 0, out);
            }
        });
    }
    shift_state(dims, x, state);
}

/// One row: `rows` are the inputs under each tap, the oldest first; `w` is `channels × TAPS`.
#[target_feature(enable = "avx2,fma")]
fn convolve(rows: [&[bf16]; TAPS], w: &[bf16], out: &mut [bf16]) {
    let whole = rows.map(|row| row.as_chunks::<BLOCK>().0);
    let (taps, _) = w.as_chunks::<{ BLOCK * TAPS }>();
    let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
    for (i, (taps, out)) in taps.iter().zip(blocks.iter_mut()).enumerate() {
        block(whole.map(|row| &row[i][..]), taps, out);
    }
    if !rest.is_empty() {
        let first = blocks.len() * BLOCK;
        block(rows.map(|row| &row[first..]), &w[first * TAPS..], rest);
    }
    // All of them at once: what was just stored in one piece cannot be loaded in others right away.
    let silu = &*SILU;
    for y in out {
        *y = silu.at(*y);
    }
}

/// At most 16 channels, without the silu.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn block(rows: [&[bf16]; TAPS], w: &[bf16], out: &mut [bf16]) {
    let mut halves = [_mm256_setzero_si256(); 2];
    for (half, sums) in halves.iter_mut().enumerate() {
        let first = (8 * half).min(rows[0].len());
        let taps = taps(&w[first * TAPS..]);
        let mut sum = _mm256_setzero_ps();
        for (tap, row) in taps.into_iter().zip(rows) {
            sum = _mm256_add_ps(sum, _mm256_mul_ps(tap, widened(&row[first..])));
        }
        *sums = rounded(sum);
    }
    store_bf16(out, halves[0], halves[1]);
}

/// The taps of eight channels, each tap in a register: of `8 × TAPS` values, or what there is of
/// them and zeros.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn taps(w: &[bf16]) -> [__m256; TAPS] {
    // Each channel is two words, of two taps each; a register holds four channels.
    let low = _mm256_castsi256_ps(load_bf16(w));
    let high = _mm256_castsi256_ps(load_bf16(&w[BLOCK.min(w.len())..]));
    // Of channels 0, 1, 4, 5, 2, 3, 6, 7 all first words, and all second words; then in order.
    let first = in_order(_mm256_shuffle_ps::<0b10_00_10_00>(low, high));
    let second = in_order(_mm256_shuffle_ps::<0b11_01_11_01>(low, high));
    [evens(first), odds(first), evens(second), odds(second)]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn in_order(words: __m256) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(words))
}
