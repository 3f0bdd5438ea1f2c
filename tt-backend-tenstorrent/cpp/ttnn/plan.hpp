// A plan: what a recorded list became. One step is one ttnn call with its operands bound, so that a
// list that comes again is replayed without looking anything up.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "library.hpp"
#include "tt-backend-tenstorrent/src/bridge.rs.h"

namespace tt::on_ttnn {

using Tensor = ::ttnn::Tensor;
using Dtype = tt_metal::DataType;
using Dims = std::array<std::uint32_t, 4>;

// The kinds of calls, for the table of what a step costs.
enum class Kind : std::uint8_t {
    Matmul,
    Linear,
    Addcmul,
    Where,
    Add,
    Multiply,
    Subtract,
    Unary,
    RmsNorm,
    Typecast,
    Embedding,
    Argmax,
    Slice,
    Concat,
    Reshape,
    Transpose,
    Permute,
    CreateHeads,
    ConcatHeads,
    Rotary,
    UpdateCache,
    FillCache,
    Attention,
    AttentionDecode,
    PlusOne,
    Cumsum,
    Read,
    Write,
    Count,
};

constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::Count);

inline const char* name(Kind kind) {
    static constexpr std::array<const char*, kKinds> kNames{
        "matmul",    "linear",  "addcmul", "where",     "add",        "multiply",
        "subtract",  "unary",   "rms_norm", "typecast", "embedding",  "argmax",
        "slice",     "concat",  "reshape", "transpose", "permute",    "nlp_create_qkv_heads",
        "nlp_concat_heads", "rotary_embedding_hf", "update_cache", "fill_cache",
        "scaled_dot_product_attention", "scaled_dot_product_attention_decode", "plus_one", "cumsum",
        "read back", "write"};
    return kNames[static_cast<std::size_t>(kind)];
}

// Whether there is a tensor; a default-constructed one may not be asked itself.
inline bool allocated(const Tensor& tensor) { return tensor.tensor_attributes != nullptr && tensor.is_allocated(); }

// A tensor of a plan. `held` ones exist before the plan runs and are written in place; the others
// are whatever the call that defines them returned last.
struct Node {
    Dims dims{};
    Dtype dtype{};
    Tensor tensor;
    bool held = false;
};

using Cell = std::shared_ptr<Node>;

// Where a forward pass stands. The host knows both numbers, for they passed through its hands; on the
// device the ids and the position are kept tensors.
struct StepState {
    std::uint32_t start = 0;
    std::uint32_t valid = 0;
    // Counts the writes of the step, so that what depends on the position is made once a pass.
    std::uint64_t version = 0;
    // Rows on the device: one in decode, whole tiles in prefill.
    std::uint32_t rows = 0;
    Cell ids;        // UINT32 row-major [1, rows]
    Cell positions;  // UINT32 row-major [1, rows]
    Cell current;    // INT32 row-major [1]; decode only
};

struct PlanStep {
    Kind kind;
    Op op;
    std::function<void()> run;
};

struct Plan {
    std::vector<PlanStep> steps;
    // Results of calls that take no output tensor; freed after each run.
    std::vector<Cell> fresh;
    // The slots that the plan is bound to.
    std::vector<std::uint32_t> slots;
};

}  // namespace tt::on_ttnn
