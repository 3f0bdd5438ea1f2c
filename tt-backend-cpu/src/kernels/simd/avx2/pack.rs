//! Rows of bf16, widened and laid out for [`gemm`](super::gemm): the values of several rows at
//! the same place of K lie side by side.

use std::arch::x86_64::*;

use half::bf16;

use super::lanes::{BLOCK, LINE, evens, load_bf16, odds, store};

/// Rows that are transposed at once: one a lane.
pub(super) const LANES: usize = 8;

/// `to[k * stride + r] = rows[r][k]` as f32, for `k` up to the next multiple of 16 of the longest
/// row. Rows that are shorter, or empty, are filled up with zeros.
///
/// Values are written eight at a time and in the order of `k`. With a stride below 8, those of
/// rows from `stride` on are overwritten by what follows, and the last of them lie behind the end.
///
/// # Panics
///
/// If `to` has no room for the last eight.
#[target_feature(enable = "avx2,fma")]
pub(super) fn interleave(rows: [&[bf16]; LANES], stride: usize, to: &mut [f32]) {
    interleave_and_fetch(rows, stride, to, [std::ptr::null(); LANES]);
}

/// [`interleave`], and asks meanwhile for what lies at `then`: the rows that are next. They are runs
/// too short, and too many at a time, for the CPU to see what is coming. An address need not be one
/// of memory: then that is a wasted hint, and no more.
#[target_feature(enable = "avx2,fma")]
pub(super) fn interleave_and_fetch(
    rows: [&[bf16]; LANES],
    stride: usize,
    to: &mut [f32],
    then: [*const bf16; LANES],
) {
    let width = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    for first in (0..width).step_by(BLOCK) {
        if first % LINE == 0 {
            for then in then {
                _mm_prefetch::<_MM_HINT_T0>(then.wrapping_add(first).cast());
            }
        }
        // A closure would not be compiled for these instructions.
        let mut words = [_mm256_setzero_si256(); LANES];
        for (words, row) in words.iter_mut().zip(rows) {
            *words = load_bf16(&row[first.min(row.len())..]);
        }
        for (pair, words) in transpose(words).into_iter().enumerate() {
            let at = (first + 2 * pair) * stride;
            store_at(to, at, evens(words));
            store_at(to, at + stride, odds(words));
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn store_at(to: &mut [f32], at: usize, value: __m256) {
    let (eight, _) = to[at..].as_chunks_mut::<8>();
    store(&mut eight[0], value);
}

/// Transposes eight by eight words of 32 bits.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn transpose(rows: [__m256i; 8]) -> [__m256i; 8] {
    let mut pairs = rows;
    for i in 0..4 {
        pairs[2 * i] = _mm256_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm256_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
    }
    let mut fours = pairs;
    for half in [0, 4] {
        for i in 0..2 {
            let (low, high) = (pairs[half + i], pairs[half + 2 + i]);
            fours[half + 2 * i] = _mm256_unpacklo_epi64(low, high);
            fours[half + 2 * i + 1] = _mm256_unpackhi_epi64(low, high);
        }
    }
    let mut columns = fours;
    for i in 0..4 {
        columns[i] = _mm256_permute2x128_si256::<0x20>(fours[i], fours[4 + i]);
        columns[4 + i] = _mm256_permute2x128_si256::<0x31>(fours[i], fours[4 + i]);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_side_by_side() {
        if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
            return;
        }
        for (count, width, stride) in [(8, 16, 8), (8, 40, 16), (5, 37, 5), (1, 3, 1), (6, 0, 6)] {
            let value = |r: usize, k: usize| bf16::from_f32((r * 100 + k) as f32 / 4.0);
            let data: Vec<Vec<bf16>> =
                (0..count).map(|r| (0..width).map(|k| value(r, k)).collect()).collect();
            let rows = std::array::from_fn(|r| data.get(r).map_or(&[][..], |row| row));
            let padded = width.next_multiple_of(BLOCK);
            let mut to = vec![f32::NAN; padded * stride + LANES];
            // SAFETY: the CPU has AVX2 and FMA.
            unsafe { interleave(rows, stride, &mut to) };
            for k in 0..padded {
                for r in 0..stride.min(LANES) {
                    let expected = if r < count && k < width { value(r, k).to_f32() } else { 0.0 };
                    assert_eq!(to[k * stride + r], expected, "row {r} at {k}");
                }
            }
        }
    }
}
