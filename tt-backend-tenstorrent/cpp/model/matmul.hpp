// Matrix products against a matrix in tiles.
//
// The order is the card's: K tiles one after the other, one destination for all of them (no K
// blocks). In `tensix` arithmetic each tile runs its fidelity phases, each phase K-face 0 and then
// K-face 1. In `fast` arithmetic the products of an output are added in f32 one after the other, k
// upwards; a product of two bf16 is exact in f32, so fused and separate multiply-adds agree.
//
// Rows of `x` do not depend on each other, so the rows that pad a tile are simply not computed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "layout.hpp"
#include "numerics.hpp"

namespace tt {

// How the matrix in tiles is read.
enum class Weights {
    kOutByIn,  // (n, k), as a checkpoint's: faces are transposed on their way in
    kInByOut,  // (k, n)
};

// One bf16 activation, taken apart for the exact kernel. Every field holds its 16-bit value twice,
// so that one 32-bit broadcast fills a vector of 16-bit lanes.
struct SplitActivation {
    std::uint32_t exponent;
    std::uint32_t high;
    std::uint32_t low;
    std::uint32_t sign;
};

// The left operand, prepared once for all outputs.
class Activations {
public:
    Activations(const Arithmetic& how, std::uint32_t rows, std::uint32_t inputs);

    // Row `row` of `x`: `inputs` bf16 values to be filled in, then `finish` called.
    std::uint16_t* row(std::uint32_t index) { return bits_.data() + std::size_t{index} * padded_; }
    const std::uint16_t* row(std::uint32_t index) const { return bits_.data() + std::size_t{index} * padded_; }
    void finish();

    const Arithmetic& how() const { return how_; }
    std::uint32_t rows() const { return rows_; }
    std::uint32_t inputs() const { return inputs_; }
    // `inputs` rounded up to whole tiles; the rest of a row is zero.
    std::uint32_t padded() const { return padded_; }
    const SplitActivation* split(std::uint32_t row) const { return split_.get() + std::size_t{row} * padded_; }
    const float* floats(std::uint32_t row) const { return floats_.get() + row * float_stride(); }
    // Whole tiles and a line: at a power of two, rows would crowd in a few sets of the caches.
    std::size_t float_stride() const { return std::size_t{padded_} + kFace; }

private:
    Arithmetic how_;
    std::uint32_t rows_;
    std::uint32_t inputs_;
    std::uint32_t padded_;
    std::vector<std::uint16_t> bits_;
    std::unique_ptr<SplitActivation[]> split_;
    std::unique_ptr<float[]> floats_;
};

// Outputs of the face columns `first .. last` (16 each) for every row: `out[row * stride + n]`
// becomes the destination. `out` has room for whole face columns.
void matmul(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights, std::uint32_t first,
            std::uint32_t last, float* out, std::size_t stride);

// The scalar kernels, which define the result.
void matmul_scalar(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights,
                   std::uint32_t first, std::uint32_t last, float* out, std::size_t stride);

// The vectorised kernels; only to be called where the processor has AVX2 and FMA.
void matmul_exact_avx2(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights,
                       std::uint32_t first, std::uint32_t last, float* out, std::size_t stride);
void matmul_fast_avx2(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights,
                      std::uint32_t first, std::uint32_t last, float* out, std::size_t stride);

// Whether the vectorised kernels may run here.
bool has_avx2();

}  // namespace tt
