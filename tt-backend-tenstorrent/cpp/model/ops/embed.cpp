// Row `id` of the table for each token: moved, not computed with. A token past the valid ones is
// padding, whose id is zero.
#include "ops.hpp"

namespace tt::ops::embed {

void check(const Call& call, Program&) {
    const Spec& out = call.operand(2).spec;
    require_step(call, 0, out.rows);
    require_tiles(call, 1, DataType::Bf16, call.operand(1).spec.rows, out.cols, "a table as wide as the output");
    require_tiles(call, 2, DataType::Bf16, out.rows, out.cols, "an output in bf16 tiles");
}

void run(const Call& call, const Program&) {
    const Matrix<std::uint16_t> table = call.bf16(1);
    const Matrix<std::uint16_t> out = call.bf16(2);
    const StepView step(call.operand(0));
    std::vector<std::uint16_t> line(out.cols);
    for (std::uint32_t row = 0; row < out.rows; ++row) {
        require(step.ids[row] < table.rows, call, "ids within the table");
        copy_bits(table, step.ids[row], 0, out.cols, line.data());
        place_bits(line.data(), out, row, 0, out.cols);
    }
}

}  // namespace tt::ops::embed
