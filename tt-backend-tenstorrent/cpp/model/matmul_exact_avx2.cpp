// The matrix unit's arithmetic, 16 outputs at a time.
//
// A product's exponent is the same in every phase up to a constant, so a group's alignment is found
// once for all its phases. A product has at most 12 bits and eight of them fit 16: an aligned product
// is one `mulhrs`, which is exactly "shift right, round half up", by a power of two from a table.
#include "matmul.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")

#include "accumulate_avx2.hpp"
#include "simd_avx2.hpp"

namespace tt {
namespace {

using simd::accumulate;
using simd::Face;

// Lanes of a group, and groups of a K tile.
constexpr std::uint32_t kGroup = 8;
constexpr std::uint32_t kGroups = kTile / kGroup;

// The weights of 16 outputs at the 32 inputs of a K tile, taken apart. Mantissa parts are times
// four, so that `mulhrs` (which divides by 2^15) and a power of two up to 2^13 make a shift by 0.
struct SplitWeights {
    __m256i exponent[kTile];
    __m256i high[kTile];
    __m256i low[kTile];
    __m256i sign[kTile];

    void fill(const Face& face, std::uint32_t at) {
        const __m256i never = _mm256_set1_epi16(static_cast<short>(0xe000));
        for (std::uint32_t k = 0; k < kFace; ++k) {
            const __m256i bits = face[k];
            const __m256i field = _mm256_and_si256(_mm256_srli_epi16(bits, 7), _mm256_set1_epi16(255));
            const __m256i zero = _mm256_cmpeq_epi16(field, _mm256_setzero_si256());
            exponent[at + k] = _mm256_blendv_epi8(field, never, zero);
            const __m256i mantissa = _mm256_or_si256(bits, _mm256_set1_epi16(0x80));
            high[at + k] = _mm256_and_si256(_mm256_srli_epi16(mantissa, 1), _mm256_set1_epi16(0x7c));
            low[at + k] = _mm256_slli_epi16(_mm256_and_si256(bits, _mm256_set1_epi16(7)), 4);
            // The lowest bit keeps `sign_epi16` from ever seeing a zero.
            sign[at + k] = _mm256_or_si256(bits, _mm256_set1_epi16(1));
        }
    }
};

// 2^(13 - shift) for a shift of 0 to 13, else 0, in each 16-bit lane. A byte shuffle looks both
// bytes up at once: adding -6 to the low byte's index and 122 to the high byte's sets bit 7, which
// reads as zero, wherever the power does not lie in that byte.
inline __m256i power(__m256i shift) {
    const __m256i table = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-128, 64, 32, 16, 8, 4, 2, 1, 0, 0, 32, 16, 8, 4, 2, 1));
    const __m256i clamped = _mm256_min_epi16(shift, _mm256_set1_epi16(15));
    const __m256i twice = _mm256_mullo_epi16(clamped, _mm256_set1_epi16(0x101));
    return _mm256_shuffle_epi8(table, _mm256_add_epi8(twice, _mm256_set1_epi16(0x7afa)));
}

// The groups of one K tile: their common exponents (before the phase's constant) and, for each
// phase, their signed sums.
template <std::uint32_t kPhases>
struct Sums {
    __m256i exponent[kGroups];
    __m256i sum[kPhases][kGroups];
};

template <std::uint32_t kPhases>
inline void sum_groups(const SplitWeights& w, const SplitActivation* x, Sums<kPhases>& out) {
    for (std::uint32_t group = 0; group < kGroups; ++group) {
        const std::uint32_t first = group * kGroup;
        __m256i exponents[kGroup];
        __m256i largest = _mm256_set1_epi16(-32768);
        for (std::uint32_t i = 0; i < kGroup; ++i) {
            const __m256i exponent = _mm256_set1_epi32(static_cast<int>(x[first + i].exponent));
            exponents[i] = _mm256_add_epi16(w.exponent[first + i], exponent);
            largest = _mm256_max_epi16(largest, exponents[i]);
        }
        __m256i sums[kPhases] = {};
        for (std::uint32_t i = 0; i < kGroup; ++i) {
            const SplitActivation& value = x[first + i];
            const __m256i scale = power(_mm256_sub_epi16(largest, exponents[i]));
            const __m256i sign =
                _mm256_xor_si256(w.sign[first + i], _mm256_set1_epi32(static_cast<int>(value.sign)));
            const __m256i high = _mm256_set1_epi32(static_cast<int>(value.high));
            const __m256i low = _mm256_set1_epi32(static_cast<int>(value.low));
            for (std::uint32_t phase = 0; phase < kPhases; ++phase) {
                const __m256i product = _mm256_mullo_epi16((phase & 1) != 0 ? w.low[first + i] : w.high[first + i],
                                                           (phase & 2) != 0 ? low : high);
                const __m256i aligned = _mm256_mulhrs_epi16(product, scale);
                sums[phase] = _mm256_add_epi16(sums[phase], _mm256_sign_epi16(aligned, sign));
            }
        }
        out.exponent[group] = largest;
        for (std::uint32_t phase = 0; phase < kPhases; ++phase) {
            out.sum[phase][group] = sums[phase];
        }
    }
}

inline __m256i half_of(__m256i lanes, bool upper) {
    return _mm256_cvtepi16_epi32(upper ? _mm256_extracti128_si256(lanes, 1) : _mm256_castsi256_si128(lanes));
}

template <std::uint32_t kPhases, bool kDestF32>
void columns(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights, std::uint32_t first,
             std::uint32_t last, float* out, std::size_t stride) {
    const std::uint32_t k_tiles = x.padded() / kTile;
    SplitWeights split;
    Sums<kPhases> sums;
    for (std::uint32_t column = first; column < last; ++column) {
        float* dest = out + std::size_t{column} * kFace;
        for (std::uint32_t row = 0; row < x.rows(); ++row) {
            std::fill_n(dest + row * stride, kFace, 0.0f);
        }
        for (std::uint32_t k_tile = 0; k_tile < k_tiles; ++k_tile) {
            for (std::uint32_t half = 0; half < 2; ++half) {
                const std::uint32_t k = k_tile * kTile + half * kFace;
                const Face face = weights == Weights::kOutByIn
                                      ? simd::load_transposed(w.at(column * kFace, k))
                                      : simd::load_direct(w.at(k, column * kFace));
                split.fill(face, half * kFace);
            }
            for (std::uint32_t row = 0; row < x.rows(); ++row) {
                sum_groups<kPhases>(split, x.split(row) + std::size_t{k_tile} * kTile, sums);
                for (std::uint32_t upper = 0; upper < 2; ++upper) {
                    float* at = dest + row * stride + std::size_t{upper} * 8;
                    __m256i value = simd::load(at);
                    __m256i exponent[kGroups];
                    for (std::uint32_t group = 0; group < kGroups; ++group) {
                        exponent[group] = half_of(sums.exponent[group], upper != 0);
                    }
                    for (std::uint32_t phase = 0; phase < kPhases; ++phase) {
                        const __m256i bias =
                            _mm256_set1_epi32(127 + ((phase & 1) != 0 ? 5 : 0) + ((phase & 2) != 0 ? 7 : 0));
                        for (std::uint32_t group = 0; group < kGroups; group += 2) {
                            value = accumulate<kDestF32>(half_of(sums.sum[phase][group], upper != 0),
                                                         _mm256_sub_epi32(exponent[group], bias),
                                                         half_of(sums.sum[phase][group + 1], upper != 0),
                                                         _mm256_sub_epi32(exponent[group + 1], bias), value);
                        }
                    }
                    simd::store(at, value);
                }
            }
        }
    }
}

template <bool kDestF32>
void with_phases(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights,
                 std::uint32_t first, std::uint32_t last, float* out, std::size_t stride) {
    switch (x.how().phases) {
        case 1: return columns<1, kDestF32>(x, w, weights, first, last, out, stride);
        case 2: return columns<2, kDestF32>(x, w, weights, first, last, out, stride);
        case 3: return columns<3, kDestF32>(x, w, weights, first, last, out, stride);
        default: return columns<4, kDestF32>(x, w, weights, first, last, out, stride);
    }
}

}  // namespace

void matmul_exact_avx2(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights,
                       std::uint32_t first, std::uint32_t last, float* out, std::size_t stride) {
    x.how().dest_f32 ? with_phases<true>(x, w, weights, first, last, out, stride)
                     : with_phases<false>(x, w, weights, first, last, out, stride);
}

}  // namespace tt

#pragma GCC pop_options

#else

namespace tt {

void matmul_exact_avx2(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights,
                       std::uint32_t first, std::uint32_t last, float* out, std::size_t stride) {
    matmul_scalar(x, w, weights, first, last, out, stride);
}

}  // namespace tt

#endif
