// What the AVX2 kernels share. Included only between the target pragmas of their files.
#pragma once

#include <cstdint>

#include "layout.hpp"

namespace tt::simd {

// A face of 16-bit values: vector k holds the value of each of 16 outputs at input k.
struct Face {
    __m256i lanes[kFace];

    __m256i& operator[](std::uint32_t k) { return lanes[k]; }
    __m256i operator[](std::uint32_t k) const { return lanes[k]; }
};

inline __m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

inline void store(void* to, __m256i value) { _mm256_storeu_si256(static_cast<__m256i*>(to), value); }

// Transposes 8 vectors of 8 32-bit lanes.
inline void transpose32(__m256i (&r)[8]) {
    __m256i a[8];
    __m256i b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
        a[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    for (int i = 0; i < 4; ++i) {
        r[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
        r[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
    }
}

// Pairs of inputs of a face whose rows are outputs: `low[j]` holds, for outputs 0 to 7, the values
// at inputs 2j (lower half of a lane) and 2j + 1 (upper half); `high[j]` for outputs 8 to 15.
inline void transpose_pairs(const std::uint16_t* face, __m256i (&low)[8], __m256i (&high)[8]) {
    for (int i = 0; i < 8; ++i) {
        low[i] = load(face + i * kFace);
        high[i] = load(face + (i + 8) * kFace);
    }
    transpose32(low);
    transpose32(high);
}

// A face whose rows are outputs, transposed.
inline Face load_transposed(const std::uint16_t* face) {
    __m256i low[8];
    __m256i high[8];
    transpose_pairs(face, low, high);
    Face out;
    const __m256i mask = _mm256_set1_epi32(0xffff);
    for (std::uint32_t j = 0; j < 8; ++j) {
        // packus works within 128-bit halves, so the middle quarters change places afterwards.
        const __m256i even = _mm256_packus_epi32(_mm256_and_si256(low[j], mask), _mm256_and_si256(high[j], mask));
        const __m256i odd = _mm256_packus_epi32(_mm256_srli_epi32(low[j], 16), _mm256_srli_epi32(high[j], 16));
        out[2 * j] = _mm256_permute4x64_epi64(even, 0xd8);
        out[2 * j + 1] = _mm256_permute4x64_epi64(odd, 0xd8);
    }
    return out;
}

// A face whose rows are inputs, as it lies.
inline Face load_direct(const std::uint16_t* face) {
    Face out;
    for (std::uint32_t k = 0; k < kFace; ++k) {
        out[k] = load(face + k * kFace);
    }
    return out;
}

}  // namespace tt::simd
