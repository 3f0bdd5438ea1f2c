// `n = bf(o rsqrt(mean(o^2) + eps)); n = bf(w n); bf(n silu(z))` over each value head: the vector
// unit, with a store at each of the three roundings. The weight is f32, so its product is not the
// matrix unit's.
#include "ops.hpp"

namespace tt::ops::gated_norm {

// dims: value heads, value dim
void check(const Call& call, Program&) {
    const std::uint32_t cols = call.dim(0) * call.dim(1);
    const std::uint32_t rows = call.operand(0).spec.rows;
    require(call.dim(1) != 0, call, "heads that are not empty");
    require_tiles(call, 0, DataType::Bf16, rows, cols, "outputs of all heads");
    require_tiles(call, 1, DataType::Bf16, rows, cols, "z as large as the input");
    require_tiles(call, 2, DataType::F32, 1, call.dim(1), "a weight as wide as a head, in f32");
    require_tiles(call, 3, DataType::Bf16, rows, cols, "an output as large as the input");
}

void run(const Call& call, const Program&) {
    const Arithmetic& how = call.how;
    const std::uint32_t heads = call.dim(0);
    const std::uint32_t width = call.dim(1);
    const Matrix<std::uint16_t> x = call.bf16(0);
    std::vector<float> weight(width);
    load(call.f32(2), 0, 0, width, weight.data());
    call.workers.share(x.rows * heads, width * kElementNanos * 2, [&](std::uint32_t first, std::uint32_t last) {
        std::vector<float> values(width);
        std::vector<float> gate(width);
        for (std::uint32_t head = first; head < last; ++head) {
            const std::uint32_t row = head / heads;
            const std::uint32_t col = head % heads * width;
            load(how, x, row, col, width, values.data());
            load(how, call.bf16(1), row, col, width, gate.data());
            float squares = 0;
            for (const float value : values) {
                squares += value * value;
            }
            const float scale = rsqrt(squares / static_cast<float>(width) + static_cast<float>(call.command.scalar));
            for (std::uint32_t i = 0; i < width; ++i) {
                const float normed = widen(store(how, values[i] * scale));
                const float weighted = widen(store(how, weight[i] * normed));
                values[i] = weighted * silu(gate[i]);
            }
            save(how, values.data(), call.bf16(3), row, col, width);
        }
    });
}

}  // namespace tt::ops::gated_norm
