// `bf(x rsqrt(mean(x^2) + eps) (1 + w))` over each head: on the vector unit, f32 up to the one store.
#include "ops.hpp"

namespace tt::ops::rms_norm {

// dims: heads, width, run, stride, offset
void check(const Call& call, Program&) {
    const Spec& x = call.operand(0).spec;
    const std::uint32_t width = call.dim(1);
    require_tiles(call, 0, DataType::Bf16, x.rows, x.cols, "activations in bf16 tiles");
    require_tiles(call, 1, DataType::Bf16, 1, width, "a weight as wide as a head");
    require_tiles(call, 2, DataType::Bf16, x.rows, call.dim(0) * width, "an output of all heads");
    Heads(call, 1, 0).require_within(call, std::uint64_t{x.rows} * call.dim(0), x.rows);
}

void run(const Call& call, const Program&) {
    const Matrix<std::uint16_t> x = call.bf16(0);
    const Matrix<std::uint16_t> out = call.bf16(2);
    const std::uint32_t heads = call.dim(0);
    const std::uint32_t width = call.dim(1);
    const Heads view(call, 1, 0);
    const auto eps = static_cast<float>(call.command.scalar);
    std::vector<float> weight(width);
    load(call.how, call.bf16(1), 0, 0, width, weight.data());
    call.workers.share(x.rows * heads, width * kElementNanos, [&](std::uint32_t first, std::uint32_t last) {
        std::vector<float> values(width);
        for (std::uint32_t head = first; head < last; ++head) {
            load(call.how, x, view.row(head), view.col(head), width, values.data());
            float squares = 0;
            for (const float value : values) {
                squares += value * value;
            }
            const float scale = rsqrt(squares / static_cast<float>(width) + eps);
            for (std::uint32_t i = 0; i < width; ++i) {
                values[i] = values[i] * scale * (1.0f + weight[i]);
            }
            save(call.how, values.data(), out, head / heads, head % heads * width, width);
        }
    });
}

}  // namespace tt::ops::rms_norm
