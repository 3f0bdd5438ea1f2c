// f32 accumulation, 16 outputs at a time, in the order of the scalar kernel: k upwards.
#include "matmul.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <iterator>
#include <utility>

#pragma GCC push_options
#pragma GCC target("avx2,fma")

#include "simd_avx2.hpp"

namespace tt {
namespace {

// Inputs of one panel: 16 outputs' weights, widened, take 16 KiB and stay in the first cache while all
// rows pass over them.
constexpr std::uint32_t kDepth = 256;
// Rows whose chains of additions run side by side: with two vectors each, all registers but four.
constexpr std::uint32_t kRows = 6;
// Up to so many rows each face is used as it comes, with so many sums side by side.
constexpr std::uint32_t kFewRows = 4;
// How many inputs ahead of its use a face is then asked for. Every weight is used once, so the time is
// the memory's; its own prefetcher starts anew at every page.
constexpr std::uint32_t kAhead = 2 * kTile;

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

inline const std::uint16_t* face_at(const Matrix<const std::uint16_t>& w, Weights weights, std::uint32_t column,
                                    std::uint32_t k) {
    return weights == Weights::kOutByIn ? w.at(column * kFace, k) : w.at(k, column * kFace);
}

// Asks for a face before it is needed. One past the matrix's end is not missed: nothing is read.
inline void prefetch(const std::uint16_t* face) {
    for (std::size_t line = 0; line < kFaceElements * sizeof *face; line += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(face) + line, _MM_HINT_T0);
    }
}

// The weights of 16 outputs at up to `kDepth` inputs: 16 floats an input.
struct alignas(64) Panel {
    float values[kDepth * kFace];

    void fill(const Matrix<const std::uint16_t>& w, Weights weights, std::uint32_t column, std::uint32_t first,
              std::uint32_t depth) {
        for (std::uint32_t k = 0; k < depth; k += kFace) {
            // The same place in the next tile.
            prefetch(face_at(w, weights, column + 2, first + k));
            WideFace wide;
            load_wide(face_at(w, weights, column, first + k), weights, wide);
            float* to = values + std::size_t{k} * kFace;
            for (std::uint32_t i = 0; i < kFace; ++i) {
                _mm256_store_ps(to + i * kFace, wide.low[i]);
                _mm256_store_ps(to + i * kFace + 8, wide.high[i]);
            }
        }
    }
};

// Adds `depth` inputs to 16 outputs of as many rows as `kRow` counts. A pack instead of a loop: its
// indices are constants from the start, which keeps the sums in registers.
template <std::uint32_t... kRow>
void add_panel(std::integer_sequence<std::uint32_t, kRow...>, const Panel& panel, std::uint32_t depth,
               const float* x, std::size_t x_stride, float* out, std::size_t stride) {
    __m256 low[] = {_mm256_loadu_ps(out + kRow * stride)...};
    __m256 high[] = {_mm256_loadu_ps(out + kRow * stride + 8)...};
    for (std::uint32_t k = 0; k < depth; ++k) {
        const __m256 weights_low = _mm256_load_ps(panel.values + std::size_t{k} * kFace);
        const __m256 weights_high = _mm256_load_ps(panel.values + std::size_t{k} * kFace + 8);
        const auto add = [&](__m256& row_low, __m256& row_high, const float* from) __attribute__((always_inline)) {
            const __m256 value = _mm256_broadcast_ss(from);
            row_low = _mm256_fmadd_ps(weights_low, value, row_low);
            row_high = _mm256_fmadd_ps(weights_high, value, row_high);
        };
        (add(low[kRow], high[kRow], x + kRow * x_stride + k), ...);
    }
    (_mm256_storeu_ps(out + kRow * stride, low[kRow]), ...);
    (_mm256_storeu_ps(out + kRow * stride + 8, high[kRow]), ...);
}

template <std::uint32_t kCount>
void add_rows(const Panel& panel, std::uint32_t depth, const float* x, std::size_t x_stride, float* out,
              std::size_t stride) {
    add_panel(std::make_integer_sequence<std::uint32_t, kCount>{}, panel, depth, x, x_stride, out, stride);
}

// How many of the rows that are left go next: never one or two alone behind a full six, whose few
// chains would wait for each other.
constexpr std::uint32_t rows_next(std::uint32_t left) {
    return left == kRows + 1 || left == kRows + 2 ? 4 : std::min(left, kRows);
}

// Adds `depth` inputs from `k` on to the 16 outputs of a face column, for every row.
void add_column(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights, std::uint32_t column,
                std::uint32_t k, std::uint32_t depth, Panel& panel, float* out, std::size_t stride) {
    constexpr decltype(&add_rows<1>) kKernels[] = {add_rows<1>, add_rows<2>, add_rows<3>,
                                                   add_rows<4>, add_rows<5>, add_rows<6>};
    static_assert(std::size(kKernels) == kRows);
    panel.fill(w, weights, column, k, depth);
    for (std::uint32_t row = 0; row < x.rows();) {
        const std::uint32_t count = rows_next(x.rows() - row);
        kKernels[count - 1](panel, depth, x.floats(row) + k, x.float_stride(),
                            out + row * stride + std::size_t{column} * kFace, stride);
        row += count;
    }
}

void many_rows(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights, std::uint32_t first,
               std::uint32_t last, float* out, std::size_t stride) {
    Panel panel;
    for (std::uint32_t k = 0; k < x.inputs(); k += kDepth) {
        // Padding is left out rather than added as zero: zero times an infinity of the padding's would
        // not be zero.
        const std::uint32_t depth = std::min(kDepth, x.inputs() - k);
        for (std::uint32_t column = first; column < last; ++column) {
            add_column(x, w, weights, column, k, depth, panel, out, stride);
        }
    }
}

// Adds `depth` inputs from `first` on to the outputs of `kColumns` face columns, for `kRowCount` rows: each
// face is used as it comes, and the sums, `kFewRows` times two vectors, stay in registers.
template <std::uint32_t kRowCount, std::uint32_t kColumns>
void add_faces(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights, std::uint32_t column,
               std::uint32_t first, std::uint32_t depth, float* out, std::size_t stride) {
    __m256 low[kColumns][kRowCount];
    __m256 high[kColumns][kRowCount];
    for (std::uint32_t i = 0; i < kColumns; ++i) {
        for (std::uint32_t row = 0; row < kRowCount; ++row) {
            const float* from = out + row * stride + std::size_t{column + i} * kFace;
            low[i][row] = _mm256_loadu_ps(from);
            high[i][row] = _mm256_loadu_ps(from + 8);
        }
    }
    for (std::uint32_t k = first; k < first + depth; k += kFace) {
        const std::uint32_t count = std::min(kFace, first + depth - k);
        for (std::uint32_t i = 0; i < kColumns; ++i) {
            prefetch(face_at(w, weights, column + i, k + kAhead));
            WideFace wide;
            load_wide(face_at(w, weights, column + i, k), weights, wide);
            const auto step = [&](std::uint32_t j) __attribute__((always_inline)) {
                for (std::uint32_t row = 0; row < kRowCount; ++row) {
                    const __m256 value = _mm256_broadcast_ss(x.floats(row) + k + j);
                    low[i][row] = _mm256_fmadd_ps(wide.low[j], value, low[i][row]);
                    high[i][row] = _mm256_fmadd_ps(wide.high[j], value, high[i][row]);
                }
            };
            if (count == kFace) {
                for (std::uint32_t j = 0; j < kFace; ++j) {
                    step(j);
                }
            } else {
                for (std::uint32_t j = 0; j < count; ++j) {
                    step(j);
                }
            }
        }
    }
    for (std::uint32_t i = 0; i < kColumns; ++i) {
        for (std::uint32_t row = 0; row < kRowCount; ++row) {
            float* to = out + row * stride + std::size_t{column + i} * kFace;
            _mm256_storeu_ps(to, low[i][row]);
            _mm256_storeu_ps(to + 8, high[i][row]);
        }
    }
}

template <std::uint32_t kRowCount>
void few_rows(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights, std::uint32_t first,
              std::uint32_t last, float* out, std::size_t stride) {
    constexpr std::uint32_t kColumns = kFewRows / kRowCount;
    // Rows of the matrix lie together: where they are outputs a face column is read to its end, where they
    // are inputs all columns of some.
    const std::uint32_t block = weights == Weights::kOutByIn ? x.inputs() : kDepth;
    for (std::uint32_t k = 0; k < x.inputs(); k += block) {
        const std::uint32_t depth = std::min(block, x.inputs() - k);
        std::uint32_t column = first;
        for (; column + kColumns <= last; column += kColumns) {
            add_faces<kRowCount, kColumns>(x, w, weights, column, k, depth, out, stride);
        }
        for (; column < last; ++column) {
            add_faces<kRowCount, 1>(x, w, weights, column, k, depth, out, stride);
        }
    }
}

}  // namespace

void matmul_fast_avx2(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights,
                      std::uint32_t first, std::uint32_t last, float* out, std::size_t stride) {
    for (std::uint32_t row = 0; row < x.rows(); ++row) {
        std::fill(out + row * stride + std::size_t{first} * kFace, out + row * stride + std::size_t{last} * kFace,
                  0.0f);
    }
    constexpr decltype(&many_rows) kKernels[] = {few_rows<1>, few_rows<2>, few_rows<3>, few_rows<4>};
    static_assert(std::size(kKernels) == kFewRows);
    const bool few = x.rows() != 0 && x.rows() <= kFewRows;
    const auto kernel = few ? kKernels[x.rows() - 1] : many_rows;
    kernel(x, w, weights, first, last, out, stride);
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
