// What the driver uses of tt-metal 0.73.1: names, signatures and defaults, written down for machines
// without it. Nothing here says how the library is made: members that the driver does not touch are
// absent, classes hold what the stand-in beside this header needs. `signatures.cpp` holds this header
// and the real ones to the same list.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

class bfloat16 {
public:
    constexpr bfloat16() = default;
    template <typename T>
        requires std::is_arithmetic_v<T>
    constexpr bfloat16(T value) noexcept : bits_(nearest(static_cast<float>(value))) {}
    constexpr operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16); }

private:
    static constexpr std::uint16_t nearest(float value) {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        if (value != value) {
            return static_cast<std::uint16_t>(bits >> 16 | 0x40);
        }
        return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
    std::uint16_t bits_ = 0;
};

namespace ttsl {

template <typename T, std::size_t Extent = std::dynamic_extent>
class Span : public std::span<T, Extent> {
public:
    using std::span<T, Extent>::span;
    constexpr Span(std::initializer_list<std::remove_const_t<T>> list)
        requires std::is_const_v<T>
        : std::span<T, Extent>(list.begin(), list.size()) {}
};

template <typename T>
using SmallVector = std::vector<T>;

}  // namespace ttsl

namespace tt {

enum class ARCH { BLACKHOLE };

namespace tt_metal {

enum class DataType { BFLOAT16 = 0, FLOAT32 = 1, UINT32 = 2, INT32 = 7 };
enum class Layout { ROW_MAJOR, TILE };
enum class MathFidelity : std::uint8_t { LoFi = 0, HiFi2 = 2, HiFi3 = 3, HiFi4 = 4 };
enum class BufferType { DRAM, L1 };

// Of optional arguments that the driver never gives.
class BufferRegion {};
class CoreRangeSet {};
class SubDeviceId {};
class Tile {};
class TensorTopology {};
class QueueId {};
struct DispatchCoreConfig {};

struct CoreCoord {
    std::size_t x = 0;
    std::size_t y = 0;
    CoreCoord() = default;
    CoreCoord(std::size_t x, std::size_t y) : x(x), y(y) {}
};

class Shape {
public:
    Shape() = default;
    Shape(std::initializer_list<std::uint32_t> dims) : dims_(dims) {}
    std::uint32_t operator[](std::int32_t index) const {
        return dims_[static_cast<std::size_t>(index < 0 ? index + static_cast<std::int32_t>(dims_.size()) : index)];
    }
    std::size_t rank() const { return dims_.size(); }

private:
    std::vector<std::uint32_t> dims_;
};

class MemoryConfig {
public:
    MemoryConfig() = default;
};

class PageConfig {
public:
    PageConfig(Layout layout) : layout(layout) {}
    Layout layout;
};

class TensorLayout {
public:
    TensorLayout(DataType dtype, const PageConfig& page, const MemoryConfig&) : dtype(dtype), layout(page.layout) {}
    DataType dtype;
    Layout layout;
};

class TensorSpec {
public:
    TensorSpec(Shape shape, const TensorLayout& layout) : shape(std::move(shape)), layout(layout) {}
    Shape shape;
    TensorLayout layout;
};

namespace distributed {

class MeshCommandQueue {};

class MeshDevice {
public:
    CoreCoord compute_with_storage_grid_size() const;
    MeshCommandQueue& mesh_command_queue(std::optional<std::uint8_t> cq_id = std::nullopt) const;
    std::size_t num_program_cache_entries();
    void clear_program_cache();
};

void Synchronize(MeshDevice* device, std::optional<std::uint8_t> cq_id, ttsl::Span<const SubDeviceId> sub_device_ids = {});

}  // namespace distributed

struct TensorAttributes;

class Tensor {
public:
    explicit Tensor() = default;
    template <typename T>
    static Tensor from_span(ttsl::Span<const T> buffer, const TensorSpec& spec, distributed::MeshDevice* device = nullptr,
                            std::optional<QueueId> cq_id = std::nullopt, T pad_value = 0);
    template <typename T>
    static Tensor from_vector(const std::vector<T>& buffer, const TensorSpec& spec, distributed::MeshDevice* device = nullptr,
                              std::optional<QueueId> cq_id = std::nullopt, T pad_value = 0);
    template <typename T>
    std::vector<T> to_vector(std::optional<QueueId> cq_id = std::nullopt) const;
    bool is_allocated() const { return true; }

    // Null in a tensor that was default-constructed, of which nothing may be asked.
    std::shared_ptr<TensorAttributes> tensor_attributes;
};

Tensor create_device_tensor(const TensorSpec& tensor_spec, distributed::MeshDevice* mesh_device,
                            std::optional<TensorTopology> tensor_topology = std::nullopt);
void copy_to_device(distributed::MeshCommandQueue& queue, const std::byte* src, Tensor& device_tensor,
                    const std::optional<BufferRegion>& region = std::nullopt);
void copy_to_host(distributed::MeshCommandQueue& queue, const Tensor& device_tensor, std::byte* dst,
                  const std::optional<BufferRegion>& region = std::nullopt, bool blocking = true);

namespace experimental {

class GlobalCircularBuffer {};
void configure_mock_mode(tt::ARCH arch, std::uint32_t num_chips = 1);

}  // namespace experimental

namespace detail {

struct MemoryView {
    std::uint64_t num_banks = 0;
    std::size_t total_bytes_allocated_per_bank = 0;
    std::size_t total_bytes_free_per_bank = 0;
    std::size_t largest_contiguous_bytes_free_per_bank = 0;
};
MemoryView GetMemoryView(const distributed::MeshDevice* device, const BufferType& buffer_type);

}  // namespace detail
}  // namespace tt_metal
}  // namespace tt

namespace ttnn {

using tt::tt_metal::CoreCoord;
using tt::tt_metal::CoreRangeSet;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;
using tt::tt_metal::TensorSpec;
using tt::tt_metal::distributed::MeshDevice;
using tt::tt_metal::experimental::GlobalCircularBuffer;

struct CoreGrid {
    std::size_t x;
    std::size_t y;
    CoreGrid(std::size_t x, std::size_t y) : x(x), y(y) {}
};

struct ComputeKernelConfig {
    tt::tt_metal::MathFidelity math_fidelity = tt::tt_metal::MathFidelity::LoFi;
    bool math_approx_mode = true;
    bool fp32_dest_acc_en = false;
    bool packer_l1_acc = false;
};
using DeviceComputeKernelConfig = ComputeKernelConfig;

std::shared_ptr<MeshDevice> open_mesh_device(
    int device_id, std::size_t l1_small_size = 0, std::size_t trace_region_size = 0, std::size_t num_command_queues = 1,
    const tt::tt_metal::DispatchCoreConfig& dispatch_core_config = tt::tt_metal::DispatchCoreConfig{},
    std::size_t worker_l1_size = 0);
void close_device(MeshDevice& device);

namespace operations::unary {

enum class UnaryOpType { EXP, SIGMOID, SILU, SOFTPLUS };

struct EltwiseUnaryWithParam {
    EltwiseUnaryWithParam(UnaryOpType op_type) : op_type(op_type) {}
    EltwiseUnaryWithParam(UnaryOpType op_type, const std::vector<float>& params) : op_type(op_type), params(params) {}
    UnaryOpType op_type;
    std::vector<float> params;
};

struct UnaryWithParam {
    UnaryWithParam(UnaryOpType op_type) : op_type(op_type) {}
    UnaryWithParam(UnaryOpType op_type, const std::vector<float>& params) : op_type(op_type), params(params) {}
    UnaryOpType op_type;
    std::vector<float> params;
};

}  // namespace operations::unary

namespace operations::ternary {
using ScalarVariant = std::variant<std::uint32_t, std::int32_t, float>;
using TensorScalarVariant = std::variant<float, Tensor>;
}  // namespace operations::ternary

namespace operations::transformer {

struct SDPAProgramConfig {
    CoreCoord compute_with_storage_grid_size;
    std::optional<CoreRangeSet> sub_core_grids;
    std::size_t q_chunk_size;
    std::size_t k_chunk_size;
    std::optional<bool> exp_approx_mode;
    std::uint32_t max_cores_per_head_batch = 16;
};

}  // namespace operations::transformer

namespace operations::matmul {
struct MatmulProgramConfig {};
}  // namespace operations::matmul

using Activation = std::variant<std::string, operations::unary::UnaryWithParam>;

#define TT_DECLARE_BINARY(NAME)                                                                         \
    Tensor NAME(const Tensor& lhs, const Tensor& rhs, const std::optional<const DataType>& output_dtype = std::nullopt, \
                const std::optional<MemoryConfig>& memory_config = std::nullopt,                        \
                const std::optional<Tensor>& output = std::nullopt,                                     \
                ttsl::Span<const operations::unary::EltwiseUnaryWithParam> post_activations = {},       \
                ttsl::Span<const operations::unary::EltwiseUnaryWithParam> lhs_activations = {},        \
                ttsl::Span<const operations::unary::EltwiseUnaryWithParam> rhs_activations = {},        \
                const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt,                       \
                const std::optional<tt::tt_metal::SubDeviceId>& sub_device_id = std::nullopt);
TT_DECLARE_BINARY(add)
TT_DECLARE_BINARY(subtract)
#undef TT_DECLARE_BINARY
Tensor multiply(const Tensor& lhs, const Tensor& rhs, const std::optional<const DataType>& output_dtype = std::nullopt,
                const std::optional<MemoryConfig>& memory_config = std::nullopt,
                const std::optional<Tensor>& output = std::nullopt,
                ttsl::Span<const operations::unary::EltwiseUnaryWithParam> post_activations = {},
                ttsl::Span<const operations::unary::EltwiseUnaryWithParam> lhs_activations = {},
                ttsl::Span<const operations::unary::EltwiseUnaryWithParam> rhs_activations = {},
                const std::optional<bool>& fast_and_approximate_mode = std::nullopt,
                const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt,
                const std::optional<tt::tt_metal::SubDeviceId>& sub_device_id = std::nullopt);

Tensor unary_chain(const Tensor& input_tensor, const std::vector<operations::unary::EltwiseUnaryWithParam>& ops_chain,
                   const std::optional<MemoryConfig>& memory_config = std::nullopt,
                   const std::optional<Tensor>& optional_output_tensor = std::nullopt,
                   const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

Tensor addcmul(const Tensor& input_a, const Tensor& input_b, const Tensor& input_c,
               operations::ternary::ScalarVariant value = 1.0f,
               const std::optional<MemoryConfig>& memory_config = std::nullopt,
               const std::optional<Tensor>& output = std::nullopt);

Tensor where(const Tensor& predicate, const operations::ternary::TensorScalarVariant& value_true,
             const operations::ternary::TensorScalarVariant& value_false,
             const std::optional<MemoryConfig>& memory_config = std::nullopt,
             const std::optional<Tensor>& output = std::nullopt,
             const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

Tensor matmul(const Tensor& input_tensor_a, const Tensor& input_tensor_b, bool transpose_a = false,
              bool transpose_b = false, const std::optional<const MemoryConfig>& memory_config = std::nullopt,
              std::optional<const DataType> dtype = std::nullopt,
              const std::optional<const operations::matmul::MatmulProgramConfig>& program_config = std::nullopt,
              const std::optional<const Activation>& activation = std::nullopt,
              std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
              std::optional<const CoreGrid> core_grid = std::nullopt,
              const std::optional<const tt::tt_metal::Tile>& output_tile = std::nullopt,
              std::optional<Tensor> optional_output_tensor = std::nullopt,
              const std::optional<const GlobalCircularBuffer>& global_cb = std::nullopt,
              const std::optional<tt::tt_metal::SubDeviceId>& sub_device_id = std::nullopt);

Tensor linear(const Tensor& input_tensor_a, const Tensor& input_tensor_b,
              const std::optional<const Tensor>& bias = std::nullopt, bool transpose_a = false,
              bool transpose_b = false, const std::optional<const MemoryConfig>& memory_config = std::nullopt,
              std::optional<const DataType> dtype = std::nullopt,
              const std::optional<const operations::matmul::MatmulProgramConfig>& program_config = std::nullopt,
              const std::optional<const Activation>& activation = std::nullopt,
              std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
              std::optional<const CoreGrid> core_grid = std::nullopt,
              const std::optional<const tt::tt_metal::Tile>& output_tile = std::nullopt,
              std::optional<Tensor> optional_output_tensor = std::nullopt,
              const std::optional<const GlobalCircularBuffer>& global_cb = std::nullopt,
              const std::optional<tt::tt_metal::SubDeviceId>& sub_device_id = std::nullopt);

namespace prim {

enum class EmbeddingsType { GENERIC, PADDED, BINARY };
struct LayerNormProgramConfig {};

}  // namespace prim

Tensor rms_norm(const Tensor& input_tensor, float epsilon = 1e-12, const std::optional<const Tensor>& weight = std::nullopt,
                const std::optional<const Tensor>& bias = std::nullopt,
                const std::optional<const Tensor>& residual_input_tensor = std::nullopt,
                const std::optional<MemoryConfig>& memory_config = std::nullopt,
                const std::optional<const prim::LayerNormProgramConfig>& program_config = std::nullopt,
                std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt);

Tensor embedding(const Tensor& input_tensor, const Tensor& weight_arg, const std::optional<int>& pad_token = std::nullopt,
                 const std::optional<Layout>& layout = std::nullopt,
                 prim::EmbeddingsType embeddings_type = prim::EmbeddingsType::GENERIC,
                 std::optional<const DataType> dtype = std::nullopt,
                 const std::optional<MemoryConfig>& memory_config = std::nullopt,
                 const std::optional<Tensor>& optional_output_tensor = std::nullopt);

Tensor argmax(const Tensor& input_tensor, const std::optional<int>& dim = std::nullopt, bool keepdim = false,
              const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt, bool use_multicore = false,
              const std::optional<MemoryConfig>& memory_config = std::nullopt,
              std::optional<Tensor> optional_output_tensor = std::nullopt);

template <typename T>
Tensor slice(const Tensor& input_tensor, ttsl::Span<const T> begins, ttsl::Span<const T> ends, ttsl::Span<const T> step,
             const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
             const std::optional<Tensor>& optional_output_tensor = std::nullopt,
             const std::optional<float>& pad_value = std::nullopt,
             const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

Tensor concat(const std::vector<Tensor>& input_tensors, int dim,
              const std::optional<MemoryConfig>& memory_config = std::nullopt,
              const std::optional<Tensor>& optional_output_tensor = std::nullopt, unsigned int groups = 1,
              const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

enum class TileReshapeMapMode { CACHE, RECREATE };
using PadValue = std::variant<std::uint32_t, float>;
Tensor reshape(const Tensor& input_tensor, const Shape& logical_shape,
               const std::optional<MemoryConfig>& memory_config = std::nullopt,
               const std::optional<PadValue>& pad_value = std::nullopt,
               TileReshapeMapMode reshape_map_mode = TileReshapeMapMode::CACHE,
               const std::optional<CoreRangeSet>& sub_core_grid = std::nullopt, bool skip_padding_fill = false);

Tensor transpose(const Tensor& input_tensor, std::int64_t dim1, std::int64_t dim2, float pad_value = 0.0f);
Tensor permute(const Tensor& input_tensor, const ttsl::SmallVector<std::int64_t>& dims, float pad_value = 0.0f);

Tensor typecast(const Tensor& input, const DataType& output_dtype,
                const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
                const std::optional<Tensor>& optional_output_tensor = std::nullopt,
                const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

Tensor to_layout(const Tensor& tensor_arg, Layout layout, const std::optional<DataType>& dtype = std::nullopt,
                 const std::optional<MemoryConfig>& memory_config = std::nullopt,
                 const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt, float pad_value = 0.0f);

Tensor zeros(const Shape& shape, const std::optional<DataType>& dtype = std::nullopt,
             const std::optional<Layout>& layout = std::nullopt,
             std::optional<std::reference_wrapper<MeshDevice>> device = std::nullopt,
             const std::optional<MemoryConfig>& memory_config = std::nullopt);

Tensor cumsum(const Tensor& input, const std::int32_t& dim, std::optional<DataType> dtype = std::nullopt,
              const bool& reverse_order = false, std::optional<Tensor> optional_out = std::nullopt,
              const std::optional<MemoryConfig>& memory_config = std::nullopt);

Tensor update_cache(const Tensor& cache, const Tensor& input, std::uint32_t update_idx, std::uint32_t batch_offset = 0,
                    std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt);
Tensor fill_cache(const Tensor& cache_tensor, const Tensor& input_tensor, std::uint32_t batch_idx,
                  std::uint32_t update_idx = 0);

namespace operations::experimental {
Tensor plus_one(const Tensor& input_tensor, const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt,
                bool skip_negative_entries = false);
}  // namespace operations::experimental

namespace experimental {

std::tuple<Tensor, Tensor, Tensor> nlp_create_qkv_heads(
    const Tensor& input_tensor_q, const std::optional<Tensor>& input_tensor_kv, std::uint32_t num_q_heads,
    std::optional<std::uint32_t> num_kv_heads, bool transpose_k_heads, const std::optional<MemoryConfig>& memory_config,
    const std::optional<std::vector<std::optional<Tensor>>>& optional_output_tensors = std::nullopt);

Tensor nlp_concat_heads(const Tensor& input_tensor, const std::optional<MemoryConfig>& memory_config = std::nullopt);

Tensor rotary_embedding_hf(const Tensor& input_tensor, const Tensor& cos_cache, const Tensor& sin_cache,
                           bool is_decode_mode, const std::optional<MemoryConfig>& memory_config = std::nullopt,
                           std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt);

}  // namespace experimental

namespace transformer {

Tensor scaled_dot_product_attention_decode(
    const Tensor& input_tensor_q, const Tensor& input_tensor_k, const Tensor& input_tensor_v, bool is_causal = true,
    const std::optional<const Tensor>& attn_mask = std::nullopt,
    const std::vector<std::uint32_t>& cur_pos = std::vector<std::uint32_t>(),
    const std::optional<const Tensor>& cur_pos_tensor = std::nullopt,
    const std::optional<const Tensor>& attention_sink = std::nullopt, std::optional<float> scale = std::nullopt,
    std::optional<std::uint32_t> sliding_window_size = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    std::optional<operations::transformer::SDPAProgramConfig> program_config = std::nullopt,
    std::optional<DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
    std::optional<bool> share_cache = std::nullopt);

Tensor scaled_dot_product_attention(
    const Tensor& input_tensor_q, const Tensor& input_tensor_k, const Tensor& input_tensor_v,
    const std::optional<Tensor>& attn_mask = std::nullopt, bool is_causal = true,
    std::optional<float> scale = std::nullopt, std::optional<std::uint32_t> sliding_window_size = std::nullopt,
    const std::optional<MemoryConfig>& memory_config = std::nullopt,
    std::optional<operations::transformer::SDPAProgramConfig> program_config = std::nullopt,
    std::optional<DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
    const std::optional<Tensor>& attention_sink = std::nullopt);

}  // namespace transformer
}  // namespace ttnn
