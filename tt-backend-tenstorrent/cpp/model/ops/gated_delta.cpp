// The gated delta rule, on the vector unit: state, queries, keys and their products are f32 (the
// matrix unit would take them as tf32), one store of the output. Rows run one after the other for
// every length of step, so a prefill and as many decode steps leave the same bits.
#include "gated_delta.hpp"

#include "../matmul.hpp"
#include "ops.hpp"

namespace tt::ops::gated_delta {

// dims: key heads, key dim, value heads, value dim
void check(const Call& call, Program&) {
    const std::uint32_t key_heads = call.dim(0);
    const std::uint32_t key_dim = call.dim(1);
    const std::uint32_t value_heads = call.dim(2);
    const std::uint32_t value_dim = call.dim(3);
    const std::uint32_t rows = call.operand(0).spec.rows;
    require(key_heads != 0 && value_heads % key_heads == 0, call, "value heads in whole groups");
    require_tiles(call, 0, DataType::Bf16, rows, 2 * key_heads * key_dim + value_heads * value_dim,
                  "queries, keys and values");
    require_tiles(call, 1, DataType::Bf16, rows, value_heads, "beta of all value heads");
    require_tiles(call, 2, DataType::F32, rows, value_heads, "log_decay of all value heads in f32");
    const Spec& state = call.operand(3).spec;
    require(state.dtype == DataType::F32 && state.page == Page::Tile && state.batch == value_heads &&
                state.rows == key_dim && state.cols == value_dim,
            call, "a state of value heads, key dim and value dim in f32");
    require_step(call, 4, rows);
    require_tiles(call, 5, DataType::Bf16, rows, value_heads * value_dim, "an output of all value heads");
}

namespace {

constexpr float kUnitEps = 1e-6f;

// A vector scaled to unit length, and then by `scale`.
void unit(float* values, std::uint32_t count, float scale) {
    float squares = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        squares += values[i] * values[i];
    }
    const float norm = rsqrt(squares + kUnitEps);
    for (std::uint32_t i = 0; i < count; ++i) {
        values[i] = values[i] * norm * scale;
    }
}

void step_head(const Matrix<float>& state, const Row& row, float* out) {
    std::uint32_t col = 0;
    if (has_avx2()) {
        for (; col + kTile <= state.cols; col += kTile) {
            step_tile_avx2(state, col, row, out);
        }
    }
    for (; col < state.cols; col += kFace) {
        step_columns(state, col, std::min(kFace, state.cols - col), row, out);
    }
}

void run_head(const Call& call, const StepView& step, std::uint32_t head) {
    const std::uint32_t key_dim = call.dim(1);
    const std::uint32_t value_dim = call.dim(3);
    const std::uint32_t keys = call.dim(0) * key_dim;
    const std::uint32_t key_head = head / (call.dim(2) / call.dim(0));
    const Matrix<std::uint16_t> qkv = call.bf16(0);
    const Matrix<float> state = call.f32(3, head);
    const float query_scale = rsqrt(static_cast<float>(key_dim));
    std::vector<float> query(key_dim);
    std::vector<float> key(key_dim);
    std::vector<float> value(value_dim);
    std::vector<float> out(value_dim);
    for (std::uint32_t row = 0; row < step.rows; ++row) {
        load(call.how, qkv, row, key_head * key_dim, key_dim, query.data());
        load(call.how, qkv, row, keys + key_head * key_dim, key_dim, key.data());
        load(call.how, qkv, row, 2 * keys + head * value_dim, value_dim, value.data());
        unit(query.data(), key_dim, query_scale);
        unit(key.data(), key_dim, 1.0f);
        const float beta = unpack(call.how, *call.bf16(1).at(row, head));
        const float decay = std::exp(*call.f32(2).at(row, head));
        step_head(state, {query.data(), key.data(), value.data(), beta, decay}, out.data());
        save(call.how, out.data(), call.bf16(5), row, head * value_dim, value_dim);
    }
}

}  // namespace

void step_columns(const Matrix<float>& state, std::uint32_t col, std::uint32_t count, const Row& row, float* out) {
    float recalled[kFace] = {};
    for (std::uint32_t i = 0; i < state.rows; ++i) {
        float* cells = state.at(i, col);
        for (std::uint32_t j = 0; j < count; ++j) {
            cells[j] *= row.decay;
            recalled[j] += cells[j] * row.key[i];
        }
    }
    float change[kFace];
    for (std::uint32_t j = 0; j < count; ++j) {
        change[j] = (row.value[col + j] - recalled[j]) * row.beta;
        out[col + j] = 0;
    }
    for (std::uint32_t i = 0; i < state.rows; ++i) {
        float* cells = state.at(i, col);
        for (std::uint32_t j = 0; j < count; ++j) {
            cells[j] += row.key[i] * change[j];
            out[col + j] += cells[j] * row.query[i];
        }
    }
}

void run(const Call& call, const Program&) {
    const std::uint32_t rows = call.operand(0).spec.rows;
    const StepView step = valid_step(call, 4, rows);
    const std::uint64_t cost = std::uint64_t{step.rows} * call.dim(1) * call.dim(3);
    call.workers.share(call.dim(2), cost, [&](std::uint32_t first, std::uint32_t last) {
        for (std::uint32_t head = first; head < last; ++head) {
            run_head(call, step, head);
        }
    });
    for (std::uint32_t row = step.rows; row < rows; ++row) {
        zero_row(call.bf16(5), row);
    }
}

}  // namespace tt::ops::gated_delta
