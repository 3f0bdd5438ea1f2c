// `bf(x bf(sigmoid(gate)))`: sigmoid on the vector unit, the product on the matrix unit with `x` as
// SrcA.
#include "../elementwise.hpp"
#include "ops.hpp"

namespace tt::ops::sigmoid_gate {

// dims: heads, width, run, stride, offset
void check(const Call& call, Program&) {
    const Spec& out = call.operand(2).spec;
    const Spec& gate = call.operand(1).spec;
    require_tiles(call, 0, DataType::Bf16, out.rows, out.cols, "activations as large as the output");
    require_tiles(call, 1, DataType::Bf16, out.rows, gate.cols, "a gate of as many rows");
    require_tiles(call, 2, DataType::Bf16, out.rows, call.dim(0) * call.dim(1), "an output of all heads");
    Heads(call, 1, 1).require_within(call, std::uint64_t{out.rows} * call.dim(0), gate.rows);
}

void run(const Call& call, const Program&) {
    const Matrix<std::uint16_t> x = call.bf16(0);
    const Matrix<std::uint16_t> gates = call.bf16(1);
    const Matrix<std::uint16_t> out = call.bf16(2);
    const std::uint32_t heads = call.dim(0);
    const std::uint32_t width = call.dim(1);
    const Heads view(call, 1, 1);
    call.workers.share(out.rows * heads, width * kElementNanos, [&](std::uint32_t first, std::uint32_t last) {
        std::vector<std::uint16_t> values(width);
        std::vector<float> gate(width);
        std::vector<std::uint16_t> opened(width);
        for (std::uint32_t head = first; head < last; ++head) {
            const std::uint32_t row = head / heads;
            const std::uint32_t col = head % heads * width;
            load(call.how, gates, view.row(head), view.col(head), width, gate.data());
            copy_bits(x, row, col, width, values.data());
            for (std::uint32_t i = 0; i < width; ++i) {
                opened[i] = store(call.how, sigmoid(gate[i]));
            }
            product_run(call.how, values.data(), opened.data(), values.data(), width);
            place_bits(values.data(), out, row, col, width);
        }
    });
}

}  // namespace tt::ops::sigmoid_gate
