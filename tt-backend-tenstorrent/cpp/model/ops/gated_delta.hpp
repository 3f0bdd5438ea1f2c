// The gated delta rule's inner loop: one row of a step on some columns of one head's state.
#pragma once

#include <cstdint>

#include "../layout.hpp"

namespace tt::ops::gated_delta {

// What a row brings to a head, in f32.
struct Row {
    const float* query;  // as many as the state has rows
    const float* key;    // as many
    const float* value;  // as many as the state has columns
    float beta;
    float decay;
};

// `S <- decay S; S <- S + k ((v - S^T k) beta)^T; o = S^T q` on `count` columns from `col` on, within a
// run of 16. Sums go over the state's rows upwards; products and sums are rounded apart.
void step_columns(const Matrix<float>& state, std::uint32_t col, std::uint32_t count, const Row& row, float* out);

// The same on the 32 columns of a whole tile. Only to be called where the processor has AVX2.
void step_tile_avx2(const Matrix<float>& state, std::uint32_t col, const Row& row, float* out);

}  // namespace tt::ops::gated_delta
