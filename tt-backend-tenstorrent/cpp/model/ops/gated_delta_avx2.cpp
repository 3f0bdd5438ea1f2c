// The gated delta rule on 32 columns: four sums side by side, each in the order of the scalar loop.
// Two passes over the state instead of four: the decayed value is made again rather than stored.
#include "gated_delta.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2")

namespace tt::ops::gated_delta {
namespace {

constexpr std::uint32_t kVectors = 4;

// 32 neighbouring columns of one row: two faces of a tile, two vectors each.
struct Line {
    float* faces[2];

    float* at(std::uint32_t vector) const { return faces[vector / 2] + vector % 2 * 8; }
};

// Calls `visit(Line, row)` for every row of the state.
template <typename Visit>
inline __attribute__((always_inline)) void for_each_row(const Matrix<float>& state, std::uint32_t col, Visit&& visit) {
    for (std::uint32_t top = 0; top < state.rows; top += kFace) {
        Line line{{state.at(top, col), state.at(top, col + kFace)}};
        const std::uint32_t end = std::min(state.rows, top + kFace);
        for (std::uint32_t row = top; row < end; ++row) {
            visit(line, row);
            line.faces[0] += kFace;
            line.faces[1] += kFace;
        }
    }
}

}  // namespace

void step_tile_avx2(const Matrix<float>& state, std::uint32_t col, const Row& row, float* out) {
    const __m256 decay = _mm256_set1_ps(row.decay);
    const __m256 zero = _mm256_setzero_ps();
    __m256 recalled[kVectors] = {zero, zero, zero, zero};
    for_each_row(state, col, [&](const Line& line, std::uint32_t i) __attribute__((always_inline)) {
        const __m256 key = _mm256_broadcast_ss(row.key + i);
#pragma GCC unroll 4
        for (std::uint32_t v = 0; v < kVectors; ++v) {
            const __m256 cells = _mm256_mul_ps(_mm256_loadu_ps(line.at(v)), decay);
            recalled[v] = _mm256_add_ps(recalled[v], _mm256_mul_ps(cells, key));
        }
    });
    __m256 change[kVectors];
    const __m256 beta = _mm256_set1_ps(row.beta);
#pragma GCC unroll 4
    for (std::uint32_t v = 0; v < kVectors; ++v) {
        change[v] = _mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(row.value + col + v * 8), recalled[v]), beta);
    }
    __m256 sums[kVectors] = {zero, zero, zero, zero};
    for_each_row(state, col, [&](const Line& line, std::uint32_t i) __attribute__((always_inline)) {
        const __m256 key = _mm256_broadcast_ss(row.key + i);
        const __m256 query = _mm256_broadcast_ss(row.query + i);
#pragma GCC unroll 4
        for (std::uint32_t v = 0; v < kVectors; ++v) {
            const __m256 decayed = _mm256_mul_ps(_mm256_loadu_ps(line.at(v)), decay);
            const __m256 cells = _mm256_add_ps(decayed, _mm256_mul_ps(key, change[v]));
            _mm256_storeu_ps(line.at(v), cells);
            sums[v] = _mm256_add_ps(sums[v], _mm256_mul_ps(cells, query));
        }
    });
#pragma GCC unroll 4
    for (std::uint32_t v = 0; v < kVectors; ++v) {
        _mm256_storeu_ps(out + col + v * 8, sums[v]);
    }
}

}  // namespace tt::ops::gated_delta

#pragma GCC pop_options

#else

namespace tt::ops::gated_delta {

void step_tile_avx2(const Matrix<float>& state, std::uint32_t col, const Row& row, float* out) {
    step_columns(state, col, kFace, row, out);
    step_columns(state, col + kFace, kFace, row, out);
}

}  // namespace tt::ops::gated_delta

#endif
