// The destination's addition, eight elements at a time. Included only between the target pragmas of
// the AVX2 kernels' files.
#pragma once

namespace tt::simd {

inline __m256i shift_half(__m256i by) { return _mm256_srli_epi32(_mm256_sllv_epi32(_mm256_set1_epi32(1), by), 1); }

// Brings a group to the common exponent and gives it its sign.
template <bool kDestF32>
inline __m256i align_group(__m256i sum, __m256i exponent, __m256i common) {
    const __m256i by = _mm256_sub_epi32(common, exponent);
    const __m256i negative = _mm256_srai_epi32(sum, 31);
    const __m256i magnitude = _mm256_slli_epi32(_mm256_abs_epi32(sum), 13);
    const __m256i shifted = _mm256_cmpgt_epi32(by, _mm256_setzero_si256());
    __m256i part = _mm256_add_epi32(magnitude, shift_half(by));
    part = _mm256_add_epi32(part, _mm256_and_si256(negative, shifted));
    part = _mm256_srlv_epi32(part, by);
    if constexpr (!kDestF32) {
        part = _mm256_add_epi32(_mm256_add_epi32(part, _mm256_set1_epi32(1 << 12)), negative);
        part = _mm256_and_si256(part, _mm256_set1_epi32(~0x1fff));
    }
    return _mm256_sub_epi32(_mm256_xor_si256(part, negative), negative);
}

// Adds two groups to eight destination elements. A group is a signed sum whose bit 10 weighs
// 2^(exponent - 127); one whose exponent is not positive counts for nothing.
template <bool kDestF32>
inline __m256i accumulate(__m256i sum0, __m256i exponent0, __m256i sum1, __m256i exponent1, __m256i dest) {
    const __m256i none = _mm256_setzero_si256();
    const __m256i one = _mm256_set1_epi32(1);
    const __m256i fraction = _mm256_set1_epi32(0x7fffff);
    sum0 = _mm256_and_si256(sum0, _mm256_cmpgt_epi32(exponent0, none));
    sum1 = _mm256_and_si256(sum1, _mm256_cmpgt_epi32(exponent1, none));

    const __m256i old_exponent = _mm256_and_si256(_mm256_srli_epi32(dest, 23), _mm256_set1_epi32(255));
    __m256i old = _mm256_or_si256(_mm256_and_si256(dest, fraction), _mm256_set1_epi32(0x800000));
    old = _mm256_andnot_si256(_mm256_cmpeq_epi32(old_exponent, none), old);
    const __m256i common = _mm256_max_epi32(_mm256_max_epi32(exponent0, exponent1), old_exponent);

    const __m256i old_by = _mm256_sub_epi32(common, old_exponent);
    old = _mm256_srlv_epi32(_mm256_add_epi32(old, shift_half(old_by)), old_by);
    if constexpr (!kDestF32) {
        old = _mm256_and_si256(_mm256_add_epi32(old, _mm256_set1_epi32(1 << 12)), _mm256_set1_epi32(~0x1fff));
    }
    const __m256i old_negative = _mm256_srai_epi32(dest, 31);
    __m256i total = _mm256_sub_epi32(_mm256_xor_si256(old, old_negative), old_negative);
    total = _mm256_add_epi32(total, align_group<kDestF32>(sum0, exponent0, common));
    total = _mm256_add_epi32(total, align_group<kDestF32>(sum1, exponent1, common));

    __m256i magnitude = _mm256_abs_epi32(total);
    // The top bit's place is the float's exponent; the bit below it is cleared first, or the
    // conversion could round up to the next power of two.
    const __m256i top_only = _mm256_andnot_si256(_mm256_srli_epi32(magnitude, 1), magnitude);
    const __m256i top = _mm256_sub_epi32(
        _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(top_only)), 23), _mm256_set1_epi32(127));
    __m256i exponent = _mm256_add_epi32(common, _mm256_sub_epi32(top, _mm256_set1_epi32(23)));
    const __m256i right = _mm256_sub_epi32(top, _mm256_set1_epi32(kDestF32 ? 23 : 7));
    const __m256i rounded = _mm256_srlv_epi32(_mm256_add_epi32(magnitude, shift_half(right)), right);
    if constexpr (kDestF32) {
        // A shift by a negative count gives zero, so one of the two is the value (both, where the
        // count is zero).
        const __m256i left = _mm256_sllv_epi32(magnitude, _mm256_sub_epi32(none, right));
        magnitude = _mm256_or_si256(rounded, left);
    } else {
        magnitude = _mm256_slli_epi32(rounded, 16);
    }
    exponent = _mm256_add_epi32(exponent, _mm256_and_si256(_mm256_srli_epi32(magnitude, 24), one));

    const __m256i infinite = _mm256_cmpgt_epi32(exponent, _mm256_set1_epi32(254));
    __m256i bits = _mm256_or_si256(_mm256_slli_epi32(exponent, 23), _mm256_and_si256(magnitude, fraction));
    bits = _mm256_blendv_epi8(bits, _mm256_set1_epi32(0x7f800000), infinite);
    bits = _mm256_or_si256(bits, _mm256_and_si256(total, _mm256_set1_epi32(static_cast<int>(0x80000000))));
    const __m256i zero = _mm256_or_si256(_mm256_cmpeq_epi32(total, none), _mm256_cmpgt_epi32(one, exponent));
    return _mm256_andnot_si256(zero, bits);
}

}  // namespace tt::simd
