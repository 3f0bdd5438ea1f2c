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

/// How many bf16 lie in a line of the cache.
pub(super) const LINE: usize = 32;

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

/// The first eight values, or what there is of them and zeros.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load_some(from: &[f32]) -> __m256 {
    match from.first_chunk() {
        Some(eight) => load(eight),
        None => {
            let mut eight = [0.0; 8];
            eight[..from.len()].copy_from_slice(from);
            load(&eight)
        }
    }
}

/// Stores eight f32.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn store(to: &mut [f32; 8], value: __m256) {
    // SAFETY: the array has room for 8 values of 4 bytes, and the store needs no alignment.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), value) }
}

/// Eight f32 rounded to bf16, to nearest even, each in the low half of its 32 bits.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn rounded(x: __m256) -> __m256i {
    let bits = _mm256_castps_si256(x);
    let high = _mm256_srli_epi32::<16>(bits);
    let even = _mm256_and_si256(high, _mm256_set1_epi32(1));
    let half = _mm256_add_epi32(even, _mm256_set1_epi32(0x7fff));
    let nearest = _mm256_srli_epi32::<16>(_mm256_add_epi32(bits, half));
    // A NaN is cut off and made quiet: rounding might carry it into the sign.
    let quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
    _mm256_blendv_epi8(nearest, quiet, nan)
}

/// Stores the first `to.len()` of sixteen bf16: `low`, then `high`, as [`rounded`] makes them.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn store_bf16(to: &mut [bf16], low: __m256i, high: __m256i) {
    // Packing works in each half of a register: the quarters come out as 0, 2, 1, 3.
    store_block(to, _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(low, high)));
}

/// Sixteen bf16 of the even-numbered and the odd-numbered of them, as [`rounded`] makes them.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn paired(even: __m256i, odd: __m256i) -> __m256i {
    _mm256_or_si256(even, _mm256_slli_epi32::<16>(odd))
}

/// Stores the first `to.len()` of sixteen bf16.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn store_block(to: &mut [bf16], block: __m256i) {
    if to.len() >= BLOCK {
        // SAFETY: there is room for 16 values of 2 bytes, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), block) }
    } else {
        let mut whole = [bf16::ZERO; BLOCK];
        // SAFETY: the array has room for 16 values of 2 bytes, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(whole.as_mut_ptr().cast(), block) }
        to.copy_from_slice(&whole[..to.len()]);
    }
}

/// The first eight values as f32, or what there is of them and zeros.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn widened(from: &[bf16]) -> __m256 {
    let words = if from.len() >= 8 {
        // SAFETY: the slice holds at least 8 values of 2 bytes, and the load needs no alignment.
        unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
    } else {
        let mut eight = [bf16::ZERO; 8];
        eight[..from.len()].copy_from_slice(from);
        // SAFETY: the array holds 8 values of 2 bytes, and the load needs no alignment.
        unsafe { _mm_loadu_si128(eight.as_ptr().cast()) }
    };
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(words)))
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
    fn rounding_is_that_of_one_number() {
        if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
            return;
        }
        // Every upper half, with lower halves about a tie.
        let lower = [0u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff];
        for upper in (0..=0xffffu32).step_by(16) {
            for lower in lower {
                let x: [f32; 16] = std::array::from_fn(|i| f32::from_bits((upper + i as u32) << 16 | lower));
                let mut found = [bf16::ZERO; 16];
                let (halves, _) = x.as_chunks::<8>();
                // SAFETY: the CPU has AVX2 and FMA.
                unsafe { store_bf16(&mut found, rounded(load(&halves[0])), rounded(load(&halves[1]))) };
                assert_eq!(found.map(bf16::to_bits), x.map(|x| bf16::from_f32(x).to_bits()));
            }
        }
    }

    #[test]
    fn blocks_are_arranged_by_evens_and_odds() {
        let row: Vec<bf16> = (0..21u8).map(|i| bf16::from_f32(f32::from(i + 1))).collect();
        let mut out = [f32::NAN; 32];
        if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
            return;
        }
        // SAFETY: the CPU has AVX2 and FMA.
        unsafe { arrange(&row, &mut out) };
        let expected = |first: usize| (0..8).map(move |i| first + 2 * i);
        let places = [0, 1, 16, 17].into_iter().flat_map(expected);
        for (found, i) in out.into_iter().zip(places) {
            assert_eq!(found, row.get(i).map_or(0.0, |x| x.to_f32()), "value {i}");
        }
    }
}
