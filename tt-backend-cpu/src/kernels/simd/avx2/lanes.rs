//! Eight f32 in a register, and how bf16 get there.
//!
//! Sixteen bf16 fill a register as eight 32-bit words, each with an even-numbered value in its
//! low half and the odd-numbered one after it in its high half. A bf16 is the high half of the
//! f32 it stands for. So one shift makes eight f32 of the even-numbered values, and one mask
//! eight of the odd-numbered; nothing crosses a lane. Whatever meets them is kept in the same
//! order: see [`arrange`].

use std::arch::x86_64::*;

use half::bf16;

/// How many bf16 are loaded at once.
pub(super) const BLOCK: usize = 16;

/// Widens a row and puts each block of 16 in the order of [`evens`] and [`odds`]: values 0, 2,
/// .. 14, then 1, 3, .. 15. The last block is filled up with zeros.
#[target_feature(enable = "avx2,fma")]
pub(super) fn arrange(row: &[bf16], out: &mut [f32]) {
    let (halves, _) = out.as_chunks_mut::<8>();
    for (block, halves) in row.chunks(BLOCK).zip(halves.chunks_exact_mut(2)) {
        let block = load_bf16(block);
        store(&mut halves[0], evens(block));
        store(&mut halves[1], odds(block));
    }
}

/// Where value `i` of a block lies after [`arrange`].
pub(super) fn arranged(i: usize) -> usize {
    i / BLOCK * BLOCK + i % BLOCK / 2 + (i % 2) * (BLOCK / 2)
}

/// Loads the first [`BLOCK`] values, or what there is of them and zeros.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load_bf16(from: &[bf16]) -> __m256i {
    if from.len() >= BLOCK {
        // SAFETY: the slice holds at least 16 values of 2 bytes, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    } else {
        let mut block = [bf16::ZERO; BLOCK];
        block[..from.len()].copy_from_slice(from);
        // SAFETY: the array holds 16 values of 2 bytes, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(block.as_ptr().cast()) }
    }
}

/// The even-numbered of 16 bf16, as f32.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn evens(block: __m256i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(block))
}

/// The odd-numbered of 16 bf16, as f32.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn odds(block: __m256i) -> __m256 {
    let high = _mm256_set1_epi32(0xffff_0000_u32.cast_signed());
    _mm256_castsi256_ps(_mm256_and_si256(block, high))
}

/// Loads eight f32.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load(from: &[f32; 8]) -> __m256 {
    // SAFETY: the array holds 8 values of 4 bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_ps(from.as_ptr()) }
}

/// Stores eight f32.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn store(to: &mut [f32; 8], value: __m256) {
    // SAFETY: the array has room for 8 values of 4 bytes, and the store needs no alignment.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), value) }
}

/// The sum of the eight, always as `((0+4)+(2+6)) + ((1+5)+(3+7))`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn sum(x: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    let one = _mm_add_ss(two, _mm_movehdup_ps(two));
    _mm_cvtss_f32(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arranged_values_lie_where_arranged_says() {
        let row: Vec<bf16> = (1..=21u8).map(|i| bf16::from_f32(f32::from(i))).collect();
        let mut out = [f32::NAN; 32];
        if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
            return;
        }
        // SAFETY: the CPU has AVX2 and FMA.
        unsafe { arrange(&row, &mut out) };
        for (i, x) in row.iter().enumerate() {
            assert_eq!(out[arranged(i)], x.to_f32());
        }
        let padding = (21..32).map(|i| out[arranged(i)]);
        assert!(padding.into_iter().all(|x| x == 0.0));
    }
}
