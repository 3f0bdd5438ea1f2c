// Attention with a cache. On the matrix unit: `q k^T`, and the product of the exponentials, rounded
// to bf16, with `v`; both with bf16 operands and one destination. On the vector unit, in f32: scale,
// maximum, exponential, sum, division. The causal mask is the number of positions that a row sees.
#include "../matmul.hpp"
#include "ops.hpp"

namespace tt::ops::attention {

// dims: heads, kv heads, width, context
void check(const Call& call, Program&) {
    const std::uint32_t heads = call.dim(0);
    const std::uint32_t kv_heads = call.dim(1);
    const std::uint32_t width = call.dim(2);
    const std::uint32_t rows = call.operand(0).spec.rows;
    require(kv_heads != 0 && heads % kv_heads == 0, call, "query heads in whole groups");
    require(width % kTile == 0, call, "heads of whole tiles");
    require_tiles(call, 0, DataType::Bf16, rows, heads * width, "queries of all heads");
    require_tiles(call, 1, DataType::Bf16, rows, kv_heads * width, "keys of all kv heads");
    require_tiles(call, 2, DataType::Bf16, rows, kv_heads * width, "values of all kv heads");
    for (const std::size_t cache : {3, 4}) {
        const Spec& spec = call.operand(cache).spec;
        require(spec.dtype == DataType::Bf16 && spec.page == Page::Tile && spec.batch == kv_heads &&
                    spec.rows == call.dim(3) && spec.cols == width,
                call, "a cache of kv heads, context and width");
    }
    require_step(call, 5, rows);
    require_tiles(call, 6, DataType::Bf16, rows, heads * width, "an output as large as the queries");
}

namespace {

// Writes the valid rows of `fresh` to their positions.
void append(const Call& call, std::size_t fresh, std::size_t cache, const StepView& step) {
    const std::uint32_t width = call.dim(2);
    std::vector<std::uint16_t> line(width);
    for (std::uint32_t head = 0; head < call.dim(1); ++head) {
        const Matrix<std::uint16_t> to = call.bf16(cache, head);
        for (std::uint32_t row = 0; row < step.rows; ++row) {
            copy_bits(call.bf16(fresh), row, head * width, width, line.data());
            place_bits(line.data(), to, step.start + row, 0, width);
        }
    }
}

// The query heads of one row that share a kv head.
void attend(const Call& call, std::uint32_t row, std::uint32_t kv_head, std::uint32_t positions) {
    const std::uint32_t width = call.dim(2);
    const std::uint32_t group = call.dim(0) / call.dim(1);
    const Matrix<std::uint16_t> keys = call.bf16(3, kv_head);
    const Matrix<std::uint16_t> values = call.bf16(4, kv_head);

    Activations queries(call.how, group, width);
    for (std::uint32_t head = 0; head < group; ++head) {
        copy_bits(call.bf16(0), row, (kv_head * group + head) * width, width, queries.row(head));
    }
    queries.finish();
    const std::uint32_t score_columns = positions / kFace + (positions % kFace != 0);
    const std::size_t score_stride = std::size_t{score_columns} * kFace;
    std::vector<float> scores(group * score_stride);
    matmul(queries, {keys.base, keys.rows, keys.cols}, Weights::kOutByIn, 0, score_columns, scores.data(),
           score_stride);

    Activations weights(call.how, group, positions);
    std::vector<float> sums(group);
    const float scale = 1.0f / std::sqrt(static_cast<float>(width));
    for (std::uint32_t head = 0; head < group; ++head) {
        float* line = scores.data() + head * score_stride;
        float largest = -INFINITY;
        for (std::uint32_t i = 0; i < positions; ++i) {
            line[i] *= scale;
            // Not `std::max`: a NaN must not stick.
            largest = line[i] > largest ? line[i] : largest;
        }
        std::uint16_t* rounded = weights.row(head);
        for (std::uint32_t i = 0; i < positions; ++i) {
            const float exponential = std::exp(line[i] - largest);
            sums[head] += exponential;
            rounded[i] = store(call.how, exponential);
        }
    }
    weights.finish();

    const std::uint32_t value_columns = width / kFace;
    std::vector<float> mixed(std::size_t{group} * width);
    matmul(weights, {values.base, values.rows, values.cols}, Weights::kInByOut, 0, value_columns, mixed.data(), width);
    for (std::uint32_t head = 0; head < group; ++head) {
        float* line = mixed.data() + std::size_t{head} * width;
        for (std::uint32_t i = 0; i < width; ++i) {
            line[i] /= sums[head];
        }
        save(call.how, line, call.bf16(6), row, (kv_head * group + head) * width, width);
    }
}

}  // namespace

void run(const Call& call, const Program&) {
    const std::uint32_t rows = call.operand(0).spec.rows;
    const std::uint32_t kv_heads = call.dim(1);
    const StepView step = valid_step(call, 5, rows);
    require(std::uint64_t{step.start} + step.rows <= call.dim(3), call, "positions within the context");
    append(call, 1, 3, step);
    append(call, 2, 4, step);
    const std::uint64_t cost = std::uint64_t{step.start + step.rows} * call.dim(2) * 2;
    call.workers.share(step.rows * kv_heads, cost, [&](std::uint32_t first, std::uint32_t last) {
        for (std::uint32_t index = first; index < last; ++index) {
            const std::uint32_t row = index / kv_heads;
            attend(call, row, index % kv_heads, step.start + row + 1);
        }
    });
    for (std::uint32_t row = step.rows; row < rows; ++row) {
        zero_row(call.bf16(6), row);
    }
}

}  // namespace tt::ops::attention
