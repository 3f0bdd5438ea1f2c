// The operations: for each a `check` of its shapes, run once a program, and a `run`.
#pragma once

#include <cstdint>
#include <vector>

#include "../program.hpp"

namespace tt::ops {

#define TT_DECLARE(SPACE)                                \
    namespace SPACE {                                    \
    void check(const Call& call, Program& program);      \
    void run(const Call& call, const Program& program);  \
    }
TT_DECLARE(embed)
TT_DECLARE(linear)
TT_DECLARE(add)
TT_DECLARE(rms_norm)
TT_DECLARE(swiglu)
TT_DECLARE(rotary)
TT_DECLARE(rope)
TT_DECLARE(attention)
TT_DECLARE(sigmoid_gate)
TT_DECLARE(causal_conv)
TT_DECLARE(gdn_gates)
TT_DECLARE(gated_delta)
TT_DECLARE(gated_norm)
TT_DECLARE(last_row)
TT_DECLARE(argmax)
#undef TT_DECLARE

// Nanoseconds that one element of simple vector work costs, roughly; for sharing work out.
constexpr std::uint64_t kElementNanos = 8;

// Requires that an operand is a single matrix in tiles of that dtype and size.
inline void require_tiles(const Call& call, std::size_t index, DataType dtype, std::uint32_t rows, std::uint32_t cols,
                          const char* what) {
    const Spec& spec = call.operand(index).spec;
    require(spec.dtype == dtype && spec.page == Page::Tile && spec.batch == 1 && spec.rows == rows &&
                spec.cols == cols,
            call, what);
}

// Requires a step: position, valid rows and at least `rows` ids.
inline void require_step(const Call& call, std::size_t index, std::uint32_t rows) {
    const Spec& spec = call.operand(index).spec;
    require(spec.dtype == DataType::U32 && spec.page == Page::RowMajor && spec.cols >= 2 && spec.cols - 2 >= rows,
            call, "a step of as many tokens as rows");
}

// Requires that the step's run-time values are within what was checked.
inline StepView valid_step(const Call& call, std::size_t index, std::uint32_t rows) {
    const StepView step(call.operand(index));
    require(step.rows <= rows, call, "no more valid rows than the tensor has");
    return step;
}

// Elements of a row as they pass the unpacker.
inline void load(const Arithmetic& how, const Matrix<std::uint16_t>& from, std::uint32_t row, std::uint32_t col,
                 std::uint32_t count, float* out) {
    from.runs(row, col, count, [&](const std::uint16_t* run, std::uint32_t done, std::uint32_t length) {
        for (std::uint32_t i = 0; i < length; ++i) {
            out[done + i] = unpack(how, run[i]);
        }
    });
}

inline void load(const Matrix<float>& from, std::uint32_t row, std::uint32_t col, std::uint32_t count, float* out) {
    from.runs(row, col, count, [&](const float* run, std::uint32_t done, std::uint32_t length) {
        std::copy_n(run, length, out + done);
    });
}

// Values of the vector unit to a row.
inline void save(const Arithmetic& how, const float* values, const Matrix<std::uint16_t>& to, std::uint32_t row,
                 std::uint32_t col, std::uint32_t count) {
    to.runs(row, col, count, [&](std::uint16_t* run, std::uint32_t done, std::uint32_t length) {
        for (std::uint32_t i = 0; i < length; ++i) {
            run[i] = store(how, values[done + i]);
        }
    });
}

// Bits of a row, moved and not computed with.
inline void copy_bits(const Matrix<std::uint16_t>& from, std::uint32_t row, std::uint32_t col, std::uint32_t count,
                      std::uint16_t* out) {
    from.runs(row, col, count, [&](const std::uint16_t* run, std::uint32_t done, std::uint32_t length) {
        std::copy_n(run, length, out + done);
    });
}

inline void place_bits(const std::uint16_t* bits, const Matrix<std::uint16_t>& to, std::uint32_t row,
                       std::uint32_t col, std::uint32_t count) {
    to.runs(row, col, count, [&](std::uint16_t* run, std::uint32_t done, std::uint32_t length) {
        std::copy_n(bits + done, length, run);
    });
}

inline void zero_row(const Matrix<std::uint16_t>& to, std::uint32_t row) {
    to.runs(row, 0, to.cols, [](std::uint16_t* run, std::uint32_t, std::uint32_t length) {
        std::fill_n(run, length, std::uint16_t{0});
    });
}

// Heads of equal width seen through a geometry of equal runs at a fixed stride, as the halves of a
// query and gate projection are.
struct Heads {
    std::uint32_t width;
    std::uint64_t run;
    std::uint64_t stride;
    std::uint64_t offset;
    std::uint32_t cols;

    // Dims from `first` on: width, run, stride, offset.
    Heads(const Call& call, std::size_t first, std::size_t owner)
        : width(call.dim(first)),
          run(call.dim(first + 1)),
          stride(call.dim(first + 2)),
          offset(call.dim(first + 3)),
          cols(call.operand(owner).spec.cols) {}

    // Requires that `heads` of them lie in the owner, none across two of its rows.
    void require_within(const Call& call, std::uint64_t heads, std::uint32_t owner_rows) const {
        require(width != 0 && run % width == 0 && run != 0 && stride % width == 0 && offset % width == 0 &&
                    cols % width == 0,
                call, "a view whose runs are whole heads");
        require(heads == 0 || start(heads - 1) + width <= std::uint64_t{owner_rows} * cols, call,
                "a view within its owner");
    }

    std::uint64_t start(std::uint64_t head) const {
        const std::uint64_t element = head * width;
        return element / run * stride + offset + element % run;
    }

    std::uint32_t row(std::uint64_t head) const { return static_cast<std::uint32_t>(start(head) / cols); }
    std::uint32_t col(std::uint64_t head) const { return static_cast<std::uint32_t>(start(head) % cols); }
};

}  // namespace tt::ops
