// f32 accumulation, 16 outputs at a time, in the order of the scalar kernel: k upwards.
#include "matmul.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")

#include "simd_avx2.hpp"

namespace tt {
namespace {

// Face columns whose chains of additions run side by side when there is one row.
constexpr std::uint32_t kColumns = 4;
// Rows whose chains run side by side when there are many.
constexpr std::uint32_t kRows = 4;

// 16 outputs at 16 inputs, widened.
struct WideFace {
    __m256 low[kFace];
    __m256 high[kFace];
};

inline __m256 even(__m256i pair) { return _mm256_castsi256_ps(_mm256_slli_epi32(pair, 16)); }

inline __m256 odd(__m256i pair) {
    return _mm256_castsi256_ps(_mm256_and_si256(pair, _mm256_set1_epi32(static_cast<int>(0xffff0000))));
}

inline __m256 widen8(__m128i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

inline void load_wide(const std::uint16_t* face, Weights weights, WideFace& out) {
    if (weights == Weights::kOutByIn) {
        __m256i low[8];
        __m256i high[8];
        simd::transpose_pairs(face, low, high);
        for (std::uint32_t j = 0; j < 8; ++j) {
            out.low[2 * j] = even(low[j]);
            out.low[2 * j + 1] = odd(low[j]);
            out.high[2 * j] = even(high[j]);
            out.high[2 * j + 1] = odd(high[j]);
        }
    } else {
        for (std::uint32_t k = 0; k < kFace; ++k) {
            const __m256i bits = simd::load(face + k * kFace);
            out.low[k] = widen8(_mm256_castsi256_si128(bits));
            out.high[k] = widen8(_mm256_extracti128_si256(bits, 1));
        }
    }
}

// Adds the first `count` inputs of a face to `n` rows. Padding is left out rather than added as
// zero: zero times an infinity of the padding's would not be zero.
template <std::uint32_t kCount>
inline void add_face(const WideFace& face, const float* x, std::size_t x_stride, float* out, std::size_t stride,
                     std::uint32_t count) {
    __m256 low[kCount];
    __m256 high[kCount];
    for (std::uint32_t row = 0; row < kCount; ++row) {
        low[row] = _mm256_loadu_ps(out + row * stride);
        high[row] = _mm256_loadu_ps(out + row * stride + 8);
    }
    const auto step = [&](std::uint32_t k) __attribute__((always_inline)) {
        for (std::uint32_t row = 0; row < kCount; ++row) {
            const __m256 value = _mm256_broadcast_ss(x + row * x_stride + k);
            low[row] = _mm256_fmadd_ps(face.low[k], value, low[row]);
            high[row] = _mm256_fmadd_ps(face.high[k], value, high[row]);
        }
    };
    if (count == kFace) {
        for (std::uint32_t k = 0; k < kFace; ++k) {
            step(k);
        }
    } else {
        for (std::uint32_t k = 0; k < count; ++k) {
            step(k);
        }
    }
    for (std::uint32_t row = 0; row < kCount; ++row) {
        _mm256_storeu_ps(out + row * stride, low[row]);
        _mm256_storeu_ps(out + row * stride + 8, high[row]);
    }
}

}  // namespace

void matmul_fast_avx2(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights,
                      std::uint32_t first, std::uint32_t last, float* out, std::size_t stride) {
    for (std::uint32_t block = first; block < last; block += kColumns) {
        const std::uint32_t end = std::min(last, block + kColumns);
        for (std::uint32_t row = 0; row < x.rows(); ++row) {
            std::fill(out + row * stride + std::size_t{block} * kFace, out + row * stride + std::size_t{end} * kFace,
                      0.0f);
        }
        for (std::uint32_t k = 0; k < x.inputs(); k += kFace) {
            const std::uint32_t count = std::min(kFace, x.inputs() - k);
            for (std::uint32_t column = block; column < end; ++column) {
                const std::uint16_t* face =
                    weights == Weights::kOutByIn ? w.at(column * kFace, k) : w.at(k, column * kFace);
                float* dest = out + std::size_t{column} * kFace;
                WideFace wide;
                load_wide(face, weights, wide);
                std::uint32_t row = 0;
                for (; row + kRows <= x.rows(); row += kRows) {
                    add_face<kRows>(wide, x.floats(row) + k, x.padded(), dest + row * stride, stride, count);
                }
                for (; row < x.rows(); ++row) {
                    add_face<1>(wide, x.floats(row) + k, x.padded(), dest + row * stride, stride, count);
                }
            }
        }
    }
}

}  // namespace tt

#pragma GCC pop_options

#else

namespace tt {

void matmul_fast_avx2(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights,
                      std::uint32_t first, std::uint32_t last, float* out, std::size_t stride) {
    matmul_scalar(x, w, weights, first, last, out, stride);
}

}  // namespace tt

#endif
