// The last valid row: moved, not computed with.
#include "ops.hpp"

namespace tt::ops::last_row {

void check(const Call& call, Program&) {
    const Spec& x = call.operand(0).spec;
    require_tiles(call, 0, DataType::Bf16, x.rows, x.cols, "activations in bf16 tiles");
    require_step(call, 1, x.rows);
    require_tiles(call, 2, DataType::Bf16, 1, x.cols, "an output of one row");
}

void run(const Call& call, const Program&) {
    const Matrix<std::uint16_t> x = call.bf16(0);
    const StepView step = valid_step(call, 1, x.rows);
    require(step.rows != 0, call, "a valid row");
    std::vector<std::uint16_t> line(x.cols);
    copy_bits(x, step.rows - 1, 0, x.cols, line.data());
    place_bits(line.data(), call.bf16(2), 0, 0, x.cols);
}

}  // namespace tt::ops::last_row
