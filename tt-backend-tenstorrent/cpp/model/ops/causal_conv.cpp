// Causal depthwise convolution and silu. The taps are element-wise products of the matrix unit that
// accumulate in one destination, oldest column first, `x` as SrcA; silu runs on the vector unit.
#include "../elementwise.hpp"
#include "ops.hpp"

namespace tt::ops::causal_conv {

// dims: kernel
void check(const Call& call, Program&) {
    const Spec& x = call.operand(0).spec;
    const Spec& w = call.operand(1).spec;
    const std::uint32_t kernel = call.dim(0);
    require(kernel != 0, call, "a kernel of at least one tap");
    require_tiles(call, 0, DataType::Bf16, x.rows, x.cols, "activations in bf16 tiles");
    require(w.dtype == DataType::Bf16 && w.page == Page::RowMajor && w.batch == x.cols && w.rows == 1 &&
                w.cols == kernel,
            call, "row-major taps of each channel");
    require_tiles(call, 2, DataType::Bf16, kernel - 1, x.cols, "a state of all columns but the newest");
    require_step(call, 3, x.rows);
    require_tiles(call, 4, DataType::Bf16, x.rows, x.cols, "an output as large as the input");
}

void run(const Call& call, const Program&) {
    const Arithmetic& how = call.how;
    const Matrix<std::uint16_t> x = call.bf16(0);
    const Matrix<std::uint16_t> state = call.bf16(2);
    const Matrix<std::uint16_t> out = call.bf16(4);
    const auto* taps = call.operand(1).flat<const std::uint16_t>();
    const std::uint32_t kernel = call.dim(0);
    const std::uint32_t history = kernel - 1;
    const StepView step = valid_step(call, 3, x.rows);

    // Channels are independent, and each leaves its own column of the state, so a thread can advance
    // the state of its channels as soon as it has read it.
    const std::uint32_t runs = x.cols / kFace + (x.cols % kFace != 0);
    const std::uint64_t cost =
        std::uint64_t{step.rows} * kFace * (kElementNanos + kernel * (how.tensix ? how.phases : 1));
    call.workers.share(runs, cost, [&](std::uint32_t first, std::uint32_t last) {
        std::vector<std::uint16_t> past(std::size_t{history + step.rows} * kFace);
        std::vector<std::uint16_t> weights(std::size_t{kernel} * kFace);
        for (std::uint32_t run = first; run < last; ++run) {
            const std::uint32_t channel = run * kFace;
            const std::uint32_t count = std::min(kFace, x.cols - channel);
            for (std::uint32_t i = 0; i < history + step.rows; ++i) {
                const std::uint16_t* from = i < history ? state.at(i, channel) : x.at(i - history, channel);
                std::copy_n(from, count, past.data() + std::size_t{i} * kFace);
            }
            for (std::uint32_t i = 0; i < count; ++i) {
                const std::uint16_t* own = taps + std::size_t{channel + i} * kernel;
                for (std::uint32_t tap = 0; tap < kernel; ++tap) {
                    weights[std::size_t{tap} * kFace + i] = own[tap];
                }
            }
            for (std::uint32_t row = 0; row < step.rows; ++row) {
                float dest[kFace] = {};
                for (std::uint32_t tap = 0; tap < kernel; ++tap) {
                    multiply_add_run(how, past.data() + std::size_t{row + tap} * kFace,
                                     weights.data() + std::size_t{tap} * kFace, dest, count);
                }
                for (std::uint32_t i = 0; i < count; ++i) {
                    out.at(row, channel)[i] = store(how, silu(unpack(how, pack(how, dest[i]))));
                }
            }
            for (std::uint32_t i = 0; i < history; ++i) {
                std::copy_n(past.data() + std::size_t{step.rows + i} * kFace, count, state.at(i, channel));
            }
        }
    });
    for (std::uint32_t row = step.rows; row < x.rows; ++row) {
        zero_row(out, row);
    }
}

}  // namespace tt::ops::causal_conv
