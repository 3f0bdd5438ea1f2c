// `beta = bf(sigmoid(b))`; `log_decay = -exp(a_log) softplus(a + dt_bias)`, f32: the vector unit.
#include "ops.hpp"

namespace tt::ops::gdn_gates {

void check(const Call& call, Program&) {
    const Spec& a = call.operand(0).spec;
    require_tiles(call, 0, DataType::Bf16, a.rows, a.cols, "a in bf16 tiles");
    require_tiles(call, 1, DataType::Bf16, a.rows, a.cols, "b as large as a");
    require_tiles(call, 2, DataType::F32, 1, a.cols, "a_log of all heads in f32");
    require_tiles(call, 3, DataType::Bf16, 1, a.cols, "dt_bias of all heads");
    require_tiles(call, 4, DataType::Bf16, a.rows, a.cols, "beta as large as a");
    require_tiles(call, 5, DataType::F32, a.rows, a.cols, "log_decay as large as a, in f32");
}

void run(const Call& call, const Program&) {
    const std::uint32_t rows = call.operand(0).spec.rows;
    const std::uint32_t heads = call.operand(0).spec.cols;
    for (std::uint32_t row = 0; row < rows; ++row) {
        for (std::uint32_t head = 0; head < heads; ++head) {
            const float a = unpack(call.how, *call.bf16(0).at(row, head));
            const float b = unpack(call.how, *call.bf16(1).at(row, head));
            const float bias = unpack(call.how, *call.bf16(3).at(0, head));
            *call.bf16(4).at(row, head) = store(call.how, sigmoid(b));
            *call.f32(5).at(row, head) = -std::exp(*call.f32(2).at(0, head)) * softplus(a + bias);
        }
    }
}

}  // namespace tt::ops::gdn_gates
