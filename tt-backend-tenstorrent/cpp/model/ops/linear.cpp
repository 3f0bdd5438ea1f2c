// `x w^T` on the matrix unit: bf16 operands, one destination for the whole of K. `Linear` packs the
// destination to bf16, `LmHead` to f32, which is the destination as it is.
#include "../matmul.hpp"
#include "ops.hpp"

namespace tt::ops::linear {

void check(const Call& call, Program&) {
    const Spec& x = call.operand(0).spec;
    const Spec& w = call.operand(1).spec;
    require_tiles(call, 0, DataType::Bf16, x.rows, x.cols, "activations in bf16 tiles");
    require_tiles(call, 1, DataType::Bf16, w.rows, x.cols, "a weight as wide as the activations");
    const DataType result = call.command.op == Op::LmHead ? DataType::F32 : DataType::Bf16;
    require_tiles(call, 2, result, x.rows, w.rows, "an output of as many columns as the weight has rows");
}

void run(const Call& call, const Program&) {
    const Matrix<std::uint16_t> x = call.bf16(0);
    const Matrix<const std::uint16_t> w{call.bf16(1).base, call.bf16(1).rows, call.bf16(1).cols};
    const bool to_f32 = call.command.op == Op::LmHead;
    Activations activations(call.how, x.rows, x.cols);
    for (std::uint32_t row = 0; row < x.rows; ++row) {
        copy_bits(x, row, 0, x.cols, activations.row(row));
    }
    activations.finish();

    const std::uint32_t columns = w.rows / kFace + (w.rows % kFace != 0);
    const std::size_t stride = std::size_t{columns} * kFace;
    const auto dest = std::make_unique_for_overwrite<float[]>(x.rows * stride);
    // A product takes roughly a tenth of a nanosecond in f32, and in each phase of the exact kernel.
    // In f32 a single row waits for its weights, two bytes in as long.
    const std::uint64_t cost =
        std::uint64_t{x.rows} * x.cols * kTile * (call.how.tensix ? call.how.phases : 1) / 10;
    // By rows of whole tiles, so that no two threads read one.
    call.workers.share(tiles_for(w.rows), cost, [&](std::uint32_t first_tile, std::uint32_t last_tile) {
        const std::uint32_t first = first_tile * 2;
        const std::uint32_t last = std::min(columns, last_tile * 2);
        matmul(activations, w, Weights::kOutByIn, first, last, dest.get(), stride);
        const std::uint32_t col = first * kFace;
        const std::uint32_t count = std::min(w.rows, last * kFace) - col;
        for (std::uint32_t row = 0; row < x.rows; ++row) {
            const float* line = dest.get() + row * stride + col;
            if (to_f32) {
                call.f32(2).runs(row, col, count, [&](float* run, std::uint32_t done, std::uint32_t length) {
                    std::copy_n(line + done, length, run);
                });
            } else {
                call.bf16(2).runs(row, col, count, [&](std::uint16_t* run, std::uint32_t done, std::uint32_t length) {
                    for (std::uint32_t i = 0; i < length; ++i) {
                        run[i] = pack(call.how, line[done + i]);
                    }
                });
            }
        }
    });
}

}  // namespace tt::ops::linear
