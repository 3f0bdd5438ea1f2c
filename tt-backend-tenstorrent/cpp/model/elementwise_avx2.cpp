// Element-wise products and sums of the matrix unit, eight at a time.
#include "elementwise.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")

#include "accumulate_avx2.hpp"
#include "simd_avx2.hpp"

namespace tt {
namespace {

constexpr std::uint32_t kLanes = 8;

inline __m256i load_wide(const std::uint16_t* from) {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

inline __m256i exponent_of(__m256i bits) {
    return _mm256_and_si256(_mm256_srli_epi32(bits, 7), _mm256_set1_epi32(255));
}

inline __m256i is_zero(__m256i value) { return _mm256_cmpeq_epi32(value, _mm256_setzero_si256()); }

// `value` with the sign of bit 15 of `bits`.
inline __m256i with_sign(__m256i value, __m256i bits) {
    const __m256i negative = _mm256_srai_epi32(_mm256_slli_epi32(bits, 16), 31);
    return _mm256_sub_epi32(_mm256_xor_si256(value, negative), negative);
}

template <bool kDestF32>
void multiply_add(std::uint32_t phases, const std::uint16_t* a, const std::uint16_t* b, float* dest,
                  std::uint32_t count) {
    const __m256i none = _mm256_setzero_si256();
    for (std::uint32_t i = 0; i < count; i += kLanes) {
        const __m256i x = load_wide(a + i);
        const __m256i y = load_wide(b + i);
        const __m256i x_exponent = exponent_of(x);
        const __m256i y_exponent = exponent_of(y);
        const __m256i zero = _mm256_or_si256(is_zero(x_exponent), is_zero(y_exponent));
        const __m256i exponent = _mm256_andnot_si256(zero, _mm256_add_epi32(x_exponent, y_exponent));
        const __m256i sign = _mm256_xor_si256(x, y);
        const __m256i x_mantissa = _mm256_or_si256(x, _mm256_set1_epi32(0x80));
        const __m256i y_mantissa = _mm256_or_si256(y, _mm256_set1_epi32(0x80));
        const __m256i x_high = _mm256_and_si256(_mm256_srli_epi32(x_mantissa, 3), _mm256_set1_epi32(31));
        const __m256i x_low = _mm256_slli_epi32(_mm256_and_si256(x, _mm256_set1_epi32(7)), 2);
        const __m256i y_high = _mm256_and_si256(_mm256_srli_epi32(y_mantissa, 1), _mm256_set1_epi32(127));
        const __m256i y_low = _mm256_slli_epi32(_mm256_and_si256(y, _mm256_set1_epi32(1)), 6);
        __m256i value = simd::load(dest + i);
        for (std::uint32_t phase = 0; phase < phases; ++phase) {
            const __m256i magnitude = _mm256_mullo_epi32((phase & 1) != 0 ? x_low : x_high,
                                                         (phase & 2) != 0 ? y_low : y_high);
            const __m256i bias =
                _mm256_set1_epi32(127 + ((phase & 1) != 0 ? 5 : 0) + ((phase & 2) != 0 ? 7 : 0));
            value = simd::accumulate<kDestF32>(with_sign(magnitude, sign), _mm256_sub_epi32(exponent, bias), none,
                                               none, value);
        }
        simd::store(dest + i, value);
    }
}

template <bool kDestF32>
void add(const std::uint16_t* a, const std::uint16_t* b, float* dest, std::uint32_t count) {
    const __m256i none = _mm256_setzero_si256();
    const __m256i all = _mm256_set1_epi32(0x7fff);
    for (std::uint32_t i = 0; i < count; i += kLanes) {
        __m256i x = load_wide(a + i);
        __m256i y = load_wide(b + i);
        x = _mm256_andnot_si256(is_zero(exponent_of(x)), x);
        y = _mm256_andnot_si256(is_zero(exponent_of(y)), y);
        const __m256i swap = _mm256_cmpgt_epi32(_mm256_and_si256(y, all), _mm256_and_si256(x, all));
        const __m256i large = _mm256_blendv_epi8(x, y, swap);
        const __m256i small = _mm256_blendv_epi8(y, x, swap);
        const auto mantissa = [&](__m256i bits) {
            const __m256i whole = _mm256_or_si256(_mm256_and_si256(bits, _mm256_set1_epi32(0x7f)), _mm256_set1_epi32(0x80));
            return _mm256_andnot_si256(is_zero(exponent_of(bits)), _mm256_slli_epi32(whole, 3));
        };
        const __m256i exponent = exponent_of(large);
        const __m256i by = _mm256_sub_epi32(exponent, exponent_of(small));
        __m256i lesser = _mm256_srlv_epi32(_mm256_add_epi32(mantissa(small), simd::shift_half(by)), by);
        lesser = _mm256_andnot_si256(_mm256_cmpgt_epi32(by, _mm256_set1_epi32(11)), lesser);
        // The smaller one relative to the larger one's sign, then the sum with that sign.
        const __m256i total =
            _mm256_add_epi32(mantissa(large), with_sign(lesser, _mm256_xor_si256(large, small)));
        const __m256i value =
            simd::accumulate<kDestF32>(with_sign(total, large), exponent, none, none, none);
        simd::store(dest + i, value);
    }
}

}  // namespace

std::uint32_t multiply_add_avx2(const Arithmetic& how, const std::uint16_t* a, const std::uint16_t* b, float* dest,
                                std::uint32_t count) {
    const std::uint32_t whole = count / kLanes * kLanes;
    how.dest_f32 ? multiply_add<true>(how.phases, a, b, dest, whole) : multiply_add<false>(how.phases, a, b, dest, whole);
    return whole;
}

std::uint32_t add_avx2(const Arithmetic& how, const std::uint16_t* a, const std::uint16_t* b, float* dest,
                       std::uint32_t count) {
    const std::uint32_t whole = count / kLanes * kLanes;
    how.dest_f32 ? add<true>(a, b, dest, whole) : add<false>(a, b, dest, whole);
    return whole;
}

}  // namespace tt

#pragma GCC pop_options

#else

namespace tt {

std::uint32_t multiply_add_avx2(const Arithmetic&, const std::uint16_t*, const std::uint16_t*, float*,
                                std::uint32_t) {
    return 0;
}

std::uint32_t add_avx2(const Arithmetic&, const std::uint16_t*, const std::uint16_t*, float*, std::uint32_t) {
    return 0;
}

}  // namespace tt

#endif
