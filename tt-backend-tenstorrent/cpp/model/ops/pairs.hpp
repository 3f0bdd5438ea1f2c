// Operations on two tensors of one size, element by element.
#pragma once

#include "../elementwise.hpp"
#include "ops.hpp"

namespace tt::ops {

inline void check_pair(const Call& call) {
    const Spec& out = call.operand(2).spec;
    for (const std::size_t operand : {0, 1, 2}) {
        require_tiles(call, operand, DataType::Bf16, out.rows, out.cols, "operands of one size in bf16 tiles");
    }
}

// `f(a, b, out, count)` on the contiguous runs of each row, of up to 16 elements.
template <typename Function>
void for_each_run(const Call& call, Function&& f) {
    const Matrix<std::uint16_t> a = call.bf16(0);
    const Matrix<std::uint16_t> b = call.bf16(1);
    const Matrix<std::uint16_t> out = call.bf16(2);
    const std::uint32_t runs = out.cols / kFace + (out.cols % kFace != 0);
    call.workers.share(out.rows * runs, kFace * kElementNanos, [&](std::uint32_t first, std::uint32_t last) {
        for (std::uint32_t index = first; index < last; ++index) {
            const std::uint32_t row = index / runs;
            const std::uint32_t col = index % runs * kFace;
            const std::uint32_t count = std::min(kFace, out.cols - col);
            f(a.at(row, col), b.at(row, col), out.at(row, col), count);
        }
    });
}

}  // namespace tt::ops
