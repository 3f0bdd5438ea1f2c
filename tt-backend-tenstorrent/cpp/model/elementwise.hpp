// Element-wise products and sums of the matrix unit over contiguous runs.
#pragma once

#include <cstdint>

#include "numerics.hpp"

namespace tt {

// `dest += a b`; `a` is SrcA.
void multiply_add_run(const Arithmetic& how, const std::uint16_t* a, const std::uint16_t* b, float* dest,
                      std::uint32_t count);

// `dest = a + b`.
void add_run(const Arithmetic& how, const std::uint16_t* a, const std::uint16_t* b, float* dest,
             std::uint32_t count);

// `out = bf(a b)` and `out = bf(a + b)`. `out` may be an operand.
void product_run(const Arithmetic& how, const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out,
                 std::uint32_t count);
void sum_run(const Arithmetic& how, const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out,
             std::uint32_t count);

// The exact arithmetic for the whole eights of a run; returns how many elements that was. Only to be
// called where the processor has AVX2.
std::uint32_t multiply_add_avx2(const Arithmetic& how, const std::uint16_t* a, const std::uint16_t* b, float* dest,
                                std::uint32_t count);
std::uint32_t add_avx2(const Arithmetic& how, const std::uint16_t* a, const std::uint16_t* b, float* dest,
                       std::uint32_t count);

}  // namespace tt
