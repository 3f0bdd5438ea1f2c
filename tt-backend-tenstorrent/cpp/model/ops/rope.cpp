// Rotates the first dims of each head: products and sums of the matrix unit, each rounded to bf16,
// `x` and the sum's first term as SrcA.
#include "../elementwise.hpp"
#include "ops.hpp"

namespace tt::ops::rope {

// dims: heads, width, rotary
void check(const Call& call, Program&) {
    const std::uint32_t cols = call.dim(0) * call.dim(1);
    const std::uint32_t rotary = call.dim(2);
    const std::uint32_t rows = call.operand(0).spec.rows;
    require(rotary % 2 == 0 && rotary <= call.dim(1), call, "an even number of rotary dims within a head");
    require_tiles(call, 0, DataType::Bf16, rows, cols, "activations of all heads");
    require_tiles(call, 1, DataType::Bf16, rows, rotary, "cosines of the rotary dims");
    require_tiles(call, 2, DataType::Bf16, rows, rotary, "sines of the rotary dims");
    require_tiles(call, 3, DataType::Bf16, rows, cols, "an output as large as the input");
}

void run(const Call& call, const Program&) {
    const Arithmetic& how = call.how;
    const Matrix<std::uint16_t> x = call.bf16(0);
    const Matrix<std::uint16_t> out = call.bf16(3);
    const std::uint32_t heads = call.dim(0);
    const std::uint32_t width = call.dim(1);
    const std::uint32_t rotary = call.dim(2);
    const std::uint32_t half = rotary / 2;
    constexpr std::uint16_t kSign = 0x8000;
    call.workers.share(x.rows, std::uint64_t{x.cols} * kElementNanos, [&](std::uint32_t first, std::uint32_t last) {
        std::vector<std::uint16_t> line(x.cols);
        std::vector<std::uint16_t> cosine(rotary);
        std::vector<std::uint16_t> sine(rotary);
        std::vector<std::uint16_t> turned(rotary);
        for (std::uint32_t row = first; row < last; ++row) {
            copy_bits(x, row, 0, x.cols, line.data());
            copy_bits(call.bf16(1), row, 0, rotary, cosine.data());
            copy_bits(call.bf16(2), row, 0, rotary, sine.data());
            for (std::uint32_t head = 0; head < heads; ++head) {
                std::uint16_t* values = line.data() + std::size_t{head} * width;
                for (std::uint32_t j = 0; j < half; ++j) {
                    turned[j] = values[j + half] ^ kSign;
                    turned[j + half] = values[j];
                }
                product_run(how, values, cosine.data(), values, rotary);
                product_run(how, turned.data(), sine.data(), turned.data(), rotary);
                sum_run(how, values, turned.data(), values, rotary);
            }
            place_bits(line.data(), out, row, 0, x.cols);
        }
    });
}

}  // namespace tt::ops::rope
