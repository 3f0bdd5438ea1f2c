// A stand-in for the library: what each declared call means, in plain loops over f32, rounded once to the
// dtype of its result. It makes no claim about speed or about a card's arithmetic. It exists so that the
// driver's lowering can be run where there is no library and compared, value by value, with other backends.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "../declarations/ttnn.hpp"

namespace tt::tt_metal {

struct TensorAttributes {
    TensorSpec spec;
    // Of every dtype but the integers.
    std::vector<float> values;
    std::vector<std::uint32_t> words;
};

}  // namespace tt::tt_metal

namespace {

using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::PageConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;
using tt::tt_metal::TensorLayout;
using tt::tt_metal::TensorSpec;
using ttnn::operations::unary::UnaryOpType;
using Dims = std::array<std::size_t, 4>;

std::size_t bytes_in_use = 0;

struct Account {
    std::size_t bytes;
    explicit Account(std::size_t bytes) : bytes(bytes) { bytes_in_use += bytes; }
    ~Account() { bytes_in_use -= bytes; }
};

void expect(bool holds, const std::string& what) {
    if (!holds) {
        throw std::runtime_error("TT_FATAL @ stand-in\ninfo:\n" + what + "\nbacktrace:\n");
    }
}

Dims dims_of(const Shape& shape) {
    Dims dims{1, 1, 1, 1};
    for (std::size_t i = 0; i < shape.rank(); ++i) {
        dims[4 - shape.rank() + i] = shape[static_cast<std::int32_t>(i)];
    }
    return dims;
}

Dims dims_of(const Tensor& tensor) {
    expect(tensor.tensor_attributes != nullptr, "a tensor that is not allocated is used");
    return dims_of(tensor.tensor_attributes->spec.shape);
}

std::size_t volume(const Dims& dims) { return dims[0] * dims[1] * dims[2] * dims[3]; }

Shape shape_of(const Dims& dims) {
    return Shape({static_cast<std::uint32_t>(dims[0]), static_cast<std::uint32_t>(dims[1]),
                  static_cast<std::uint32_t>(dims[2]), static_cast<std::uint32_t>(dims[3])});
}

bool integer(DataType dtype) { return dtype == DataType::UINT32 || dtype == DataType::INT32; }

Tensor make(const TensorSpec& spec) {
    const std::size_t count = volume(dims_of(spec.shape));
    const std::size_t bytes = count * (spec.layout.dtype == DataType::BFLOAT16 ? 2 : 4);
    auto data = std::shared_ptr<tt::tt_metal::TensorAttributes>(new tt::tt_metal::TensorAttributes{spec, {}, {}},
                                              [account = std::make_shared<Account>(bytes)](tt::tt_metal::TensorAttributes* data) mutable {
                                                  account.reset();
                                                  delete data;
                                              });
    if (integer(spec.layout.dtype)) {
        data->words.resize(count);
    } else {
        data->values.resize(count);
    }
    Tensor tensor;
    tensor.tensor_attributes = std::move(data);
    return tensor;
}

DataType dtype_of(const Tensor& tensor) { return tensor.tensor_attributes->spec.layout.dtype; }
const std::vector<float>& values(const Tensor& tensor) {
    expect(tensor.tensor_attributes != nullptr, "a tensor that is not allocated is used");
    return tensor.tensor_attributes->values;
}

// A result: into the tensor that was given for it, which must be of its size, or a new one.
Tensor result(const std::optional<Tensor>& given, const Dims& dims, DataType dtype, std::vector<float>&& made) {
    if (given.has_value()) {
        expect(dims_of(*given) == dims, "an output of another shape was given");
        expect(dtype_of(*given) == dtype, "an output of another dtype was given");
    }
    Tensor out = given.has_value() ? *given : make({shape_of(dims), TensorLayout(dtype, PageConfig(Layout::TILE), MemoryConfig())});
    if (dtype == DataType::BFLOAT16) {
        for (float& value : made) {
            value = bfloat16(value);
        }
    }
    out.tensor_attributes->values = std::move(made);
    return out;
}

float activate(UnaryOpType op, float x) {
    switch (op) {
        case UnaryOpType::EXP: return std::exp(x);
        case UnaryOpType::SIGMOID: return 1.0f / (1.0f + std::exp(-x));
        case UnaryOpType::SILU: return x / (1.0f + std::exp(-x));
        default: return x > 20.0f ? x : std::log1p(std::exp(x));
    }
}

template <typename Chain>
float activate_all(const Chain& chain, float x) {
    for (const auto& op : chain) {
        x = activate(op.op_type, x);
    }
    return x;
}

// The index of an element of a broadcast operand.
struct Broadcast {
    Dims dims;
    std::size_t operator()(const Dims& at) const {
        std::size_t index = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            index = index * dims[i] + (dims[i] == 1 ? 0 : at[i]);
        }
        return index;
    }
};

Dims joint(const Dims& a, const Dims& b) {
    Dims dims{};
    for (std::size_t i = 0; i < 4; ++i) {
        expect(a[i] == b[i] || a[i] == 1 || b[i] == 1, "shapes that do not broadcast");
        dims[i] = std::max(a[i], b[i]);
    }
    return dims;
}

template <typename Use>
void each(const Dims& dims, Use&& use) {
    for (std::size_t a = 0; a < dims[0]; ++a) {
        for (std::size_t b = 0; b < dims[1]; ++b) {
            for (std::size_t c = 0; c < dims[2]; ++c) {
                for (std::size_t d = 0; d < dims[3]; ++d) {
                    use(Dims{a, b, c, d});
                }
            }
        }
    }
}

using Activations = ttsl::Span<const ttnn::operations::unary::EltwiseUnaryWithParam>;

template <typename Function>
Tensor binary(const Tensor& a, const Tensor& b, const std::optional<const DataType>& dtype, const std::optional<Tensor>& out,
              Activations post, Activations lhs, Activations rhs, Function function) {
    const Dims dims = joint(dims_of(a), dims_of(b));
    const Broadcast at_a{dims_of(a)};
    const Broadcast at_b{dims_of(b)};
    std::vector<float> made;
    made.reserve(volume(dims));
    each(dims, [&](const Dims& at) {
        const float x = activate_all(lhs, values(a)[at_a(at)]);
        const float y = activate_all(rhs, values(b)[at_b(at)]);
        made.push_back(activate_all(post, function(x, y)));
    });
    return result(out, dims, dtype.value_or(dtype_of(a)), std::move(made));
}

Tensor product(const Tensor& a, const Tensor& b, const std::optional<const Tensor>& bias, bool ta, bool tb,
               std::optional<const DataType> dtype, const std::optional<const ttnn::Activation>& activation,
               const std::optional<Tensor>& out) {
    const Dims da = dims_of(a);
    const Dims db = dims_of(b);
    const std::size_t rows = ta ? da[3] : da[2];
    const std::size_t inner = ta ? da[2] : da[3];
    const std::size_t cols = tb ? db[2] : db[3];
    expect(inner == (tb ? db[3] : db[2]), "a product of matrices that do not fit");
    expect((da[0] == db[0] && da[1] == db[1]) || (db[0] == 1 && db[1] == 1), "a product of batches that do not fit");
    const Dims dims{da[0], da[1], rows, cols};
    std::vector<float> made(volume(dims));
    const bool shared = db[0] == 1 && db[1] == 1;
    std::vector<float> line(cols);
    for (std::size_t batch = 0; batch < da[0] * da[1]; ++batch) {
        const float* x = values(a).data() + batch * da[2] * da[3];
        const float* w = values(b).data() + (shared ? 0 : batch * db[2] * db[3]);
        for (std::size_t row = 0; row < rows; ++row) {
            std::fill(line.begin(), line.end(), 0.0f);
            for (std::size_t k = 0; k < inner; ++k) {
                const float left = ta ? x[k * da[3] + row] : x[row * da[3] + k];
                for (std::size_t col = 0; col < cols; ++col) {
                    line[col] += left * (tb ? w[col * db[3] + k] : w[k * db[3] + col]);
                }
            }
            for (std::size_t col = 0; col < cols; ++col) {
                float value = line[col];
                if (bias.has_value()) {
                    const Dims size = dims_of(*bias);
                    expect(size[0] * size[1] * size[2] == 1 && size[3] == cols, "a bias that is not one row");
                    value += values(*bias)[col];
                }
                if (activation.has_value()) {
                    value = activate(std::get<ttnn::operations::unary::UnaryWithParam>(*activation).op_type, value);
                }
                made[(batch * rows + row) * cols + col] = value;
            }
        }
    }
    return result(out, dims, dtype.value_or(dtype_of(a)), std::move(made));
}

}  // namespace

namespace tt::tt_metal {

template <typename T>
Tensor Tensor::from_span(ttsl::Span<const T> buffer, const TensorSpec& spec, distributed::MeshDevice*, std::optional<QueueId>, T) {
    Tensor tensor = make(spec);
    expect(buffer.size() == volume(dims_of(spec.shape)), "a buffer of another size than its tensor");
    std::copy(buffer.begin(), buffer.end(), tensor.tensor_attributes->values.begin());
    return tensor;
}

template <typename T>
Tensor Tensor::from_vector(const std::vector<T>& buffer, const TensorSpec& spec, distributed::MeshDevice* device,
                           std::optional<QueueId>, T) {
    std::vector<float> copy(buffer.begin(), buffer.end());
    return result(std::nullopt, dims_of(spec.shape), spec.layout.dtype, std::move(copy));
    static_cast<void>(device);
}

template <typename T>
std::vector<T> Tensor::to_vector(std::optional<QueueId>) const {
    return {values(*this).begin(), values(*this).end()};
}

template Tensor Tensor::from_span<float>(ttsl::Span<const float>, const TensorSpec&, distributed::MeshDevice*,
                                         std::optional<QueueId>, float);
template Tensor Tensor::from_span<bfloat16>(ttsl::Span<const bfloat16>, const TensorSpec&, distributed::MeshDevice*,
                                            std::optional<QueueId>, bfloat16);
template Tensor Tensor::from_vector<float>(const std::vector<float>&, const TensorSpec&, distributed::MeshDevice*,
                                           std::optional<QueueId>, float);
template std::vector<float> Tensor::to_vector<float>(std::optional<QueueId>) const;
template std::vector<bfloat16> Tensor::to_vector<bfloat16>(std::optional<QueueId>) const;

Tensor create_device_tensor(const TensorSpec& spec, distributed::MeshDevice*, std::optional<TensorTopology>) {
    Tensor tensor = make(spec);
    // What a card's memory holds before it is written is nobody's: a lowering that reads it is found.
    std::fill(tensor.tensor_attributes->values.begin(), tensor.tensor_attributes->values.end(), std::numeric_limits<float>::quiet_NaN());
    return tensor;
}

void copy_to_device(distributed::MeshCommandQueue&, const std::byte* src, Tensor& tensor, const std::optional<BufferRegion>&) {
    expect(integer(dtype_of(tensor)), "bytes for a tensor of numbers");
    std::memcpy(tensor.tensor_attributes->words.data(), src, tensor.tensor_attributes->words.size() * 4);
}

void copy_to_host(distributed::MeshCommandQueue&, const Tensor& tensor, std::byte* dst, const std::optional<BufferRegion>&, bool) {
    expect(integer(dtype_of(tensor)), "bytes of a tensor of numbers");
    std::memcpy(dst, tensor.tensor_attributes->words.data(), tensor.tensor_attributes->words.size() * 4);
}

namespace distributed {

CoreCoord MeshDevice::compute_with_storage_grid_size() const { return {11, 10}; }

MeshCommandQueue& MeshDevice::mesh_command_queue(std::optional<std::uint8_t>) const {
    static MeshCommandQueue queue;
    return queue;
}

std::size_t MeshDevice::num_program_cache_entries() { return 0; }

void MeshDevice::clear_program_cache() {}

void Synchronize(MeshDevice*, std::optional<std::uint8_t>, ttsl::Span<const SubDeviceId>) {}

}  // namespace distributed

namespace experimental {

void configure_mock_mode(tt::ARCH, std::uint32_t) {}

}  // namespace experimental

namespace detail {

MemoryView GetMemoryView(const distributed::MeshDevice*, const BufferType&) {
    constexpr std::size_t kCapacity = std::size_t{32} << 30;
    return {1, bytes_in_use, kCapacity - bytes_in_use, kCapacity - bytes_in_use};
}

}  // namespace detail
}  // namespace tt::tt_metal

namespace ttnn {

std::shared_ptr<MeshDevice> open_mesh_device(int, std::size_t, std::size_t, std::size_t, const tt::tt_metal::DispatchCoreConfig&,
                                             std::size_t) {
    return std::make_shared<MeshDevice>();
}

void close_device(MeshDevice&) {}

Tensor add(const Tensor& a, const Tensor& b, const std::optional<const DataType>& dtype, const std::optional<MemoryConfig>&,
           const std::optional<Tensor>& out, Activations post, Activations lhs, Activations rhs,
           const std::optional<CoreRangeSet>&, const std::optional<tt::tt_metal::SubDeviceId>&) {
    return binary(a, b, dtype, out, post, lhs, rhs, [](float x, float y) { return x + y; });
}

Tensor subtract(const Tensor& a, const Tensor& b, const std::optional<const DataType>& dtype, const std::optional<MemoryConfig>&,
                const std::optional<Tensor>& out, Activations post, Activations lhs, Activations rhs,
                const std::optional<CoreRangeSet>&, const std::optional<tt::tt_metal::SubDeviceId>&) {
    return binary(a, b, dtype, out, post, lhs, rhs, [](float x, float y) { return x - y; });
}

Tensor multiply(const Tensor& a, const Tensor& b, const std::optional<const DataType>& dtype, const std::optional<MemoryConfig>&,
                const std::optional<Tensor>& out, Activations post, Activations lhs, Activations rhs, const std::optional<bool>&,
                const std::optional<CoreRangeSet>&, const std::optional<tt::tt_metal::SubDeviceId>&) {
    return binary(a, b, dtype, out, post, lhs, rhs, [](float x, float y) { return x * y; });
}

Tensor unary_chain(const Tensor& x, const std::vector<operations::unary::EltwiseUnaryWithParam>& chain,
                   const std::optional<MemoryConfig>&, const std::optional<Tensor>& out, const std::optional<CoreRangeSet>&) {
    std::vector<float> made = values(x);
    for (float& value : made) {
        value = activate_all(chain, value);
    }
    return result(out, dims_of(x), out.has_value() ? dtype_of(*out) : dtype_of(x), std::move(made));
}

Tensor addcmul(const Tensor& a, const Tensor& b, const Tensor& c, operations::ternary::ScalarVariant value,
               const std::optional<MemoryConfig>&, const std::optional<Tensor>& out) {
    expect(dtype_of(a) == dtype_of(b) && dtype_of(b) == dtype_of(c), "addcmul of operands of several dtypes");
    const float scale = std::get<float>(value);
    const Dims dims = joint(joint(dims_of(a), dims_of(b)), dims_of(c));
    const Broadcast at_a{dims_of(a)};
    const Broadcast at_b{dims_of(b)};
    const Broadcast at_c{dims_of(c)};
    std::vector<float> made;
    made.reserve(volume(dims));
    each(dims, [&](const Dims& at) { made.push_back(values(a)[at_a(at)] + scale * values(b)[at_b(at)] * values(c)[at_c(at)]); });
    return result(out, dims, out.has_value() ? dtype_of(*out) : dtype_of(a), std::move(made));
}

Tensor where(const Tensor& mask, const operations::ternary::TensorScalarVariant& yes,
             const operations::ternary::TensorScalarVariant& no, const std::optional<MemoryConfig>&,
             const std::optional<Tensor>& out, const std::optional<CoreRangeSet>&) {
    const Tensor& a = std::get<Tensor>(yes);
    const Tensor& b = std::get<Tensor>(no);
    const Dims dims = joint(joint(dims_of(mask), dims_of(a)), dims_of(b));
    const Broadcast at_mask{dims_of(mask)};
    const Broadcast at_a{dims_of(a)};
    const Broadcast at_b{dims_of(b)};
    std::vector<float> made;
    each(dims, [&](const Dims& at) { made.push_back(values(mask)[at_mask(at)] != 0 ? values(a)[at_a(at)] : values(b)[at_b(at)]); });
    return result(out, dims, dtype_of(a), std::move(made));
}

Tensor matmul(const Tensor& a, const Tensor& b, bool ta, bool tb, const std::optional<const MemoryConfig>&,
              std::optional<const DataType> dtype, const std::optional<const operations::matmul::MatmulProgramConfig>&,
              const std::optional<const Activation>& activation, std::optional<const DeviceComputeKernelConfig>,
              std::optional<const CoreGrid>, const std::optional<const tt::tt_metal::Tile>&, std::optional<Tensor> out,
              const std::optional<const GlobalCircularBuffer>&, const std::optional<tt::tt_metal::SubDeviceId>&) {
    return product(a, b, std::nullopt, ta, tb, dtype, activation, out);
}

Tensor linear(const Tensor& a, const Tensor& b, const std::optional<const Tensor>& bias, bool ta, bool tb,
              const std::optional<const MemoryConfig>&, std::optional<const DataType> dtype,
              const std::optional<const operations::matmul::MatmulProgramConfig>&,
              const std::optional<const Activation>& activation, std::optional<const DeviceComputeKernelConfig>,
              std::optional<const CoreGrid>, const std::optional<const tt::tt_metal::Tile>&, std::optional<Tensor> out,
              const std::optional<const GlobalCircularBuffer>&, const std::optional<tt::tt_metal::SubDeviceId>&) {
    return product(a, b, bias, ta, tb, dtype, activation, out);
}

Tensor rms_norm(const Tensor& x, float eps, const std::optional<const Tensor>& weight, const std::optional<const Tensor>&,
                const std::optional<const Tensor>&, const std::optional<MemoryConfig>&,
                const std::optional<const prim::LayerNormProgramConfig>&, std::optional<const DeviceComputeKernelConfig>) {
    const Dims dims = dims_of(x);
    std::vector<float> made = values(x);
    for (std::size_t row = 0; row < volume(dims) / dims[3]; ++row) {
        float* line = made.data() + row * dims[3];
        const float squares = std::inner_product(line, line + dims[3], line, 0.0f);
        const float scale = 1.0f / std::sqrt(squares / static_cast<float>(dims[3]) + eps);
        for (std::size_t i = 0; i < dims[3]; ++i) {
            line[i] *= scale * (weight.has_value() ? values(*weight)[i] : 1.0f);
        }
    }
    return result(std::nullopt, dims, dtype_of(x), std::move(made));
}

Tensor embedding(const Tensor& ids, const Tensor& table, const std::optional<int>&, const std::optional<Layout>&,
                 prim::EmbeddingsType, std::optional<const DataType>, const std::optional<MemoryConfig>&,
                 const std::optional<Tensor>&) {
    const std::size_t width = dims_of(table)[3];
    std::vector<float> made;
    for (const std::uint32_t id : ids.tensor_attributes->words) {
        expect(id < dims_of(table)[2], "an id without a row");
        const float* row = values(table).data() + id * width;
        made.insert(made.end(), row, row + width);
    }
    return result(std::nullopt, {1, 1, ids.tensor_attributes->words.size(), width}, dtype_of(table), std::move(made));
}

Tensor argmax(const Tensor& x, const std::optional<int>&, bool, const std::optional<CoreRangeSet>&, bool,
              const std::optional<MemoryConfig>&, std::optional<Tensor> out) {
    Tensor to = out.has_value() ? *out : make({Shape({1, 1, 1}), TensorLayout(DataType::UINT32, PageConfig(Layout::ROW_MAJOR), MemoryConfig())});
    const auto& all = values(x);
    to.tensor_attributes->words = {static_cast<std::uint32_t>(std::max_element(all.begin(), all.end()) - all.begin())};
    return to;
}

template <>
Tensor slice<std::uint32_t>(const Tensor& x, ttsl::Span<const std::uint32_t> begins, ttsl::Span<const std::uint32_t> ends,
                            ttsl::Span<const std::uint32_t>, const std::optional<MemoryConfig>&, const std::optional<Tensor>& out,
                            const std::optional<float>&, const std::optional<CoreRangeSet>&) {
    Dims dims{};
    for (std::size_t i = 0; i < 4; ++i) {
        dims[i] = ends[i] - begins[i];
    }
    const Broadcast at_x{dims_of(x)};
    std::vector<float> made;
    each(dims, [&](Dims at) {
        for (std::size_t i = 0; i < 4; ++i) {
            at[i] += begins[i];
        }
        made.push_back(values(x)[at_x(at)]);
    });
    return result(out, dims, dtype_of(x), std::move(made));
}

Tensor concat(const std::vector<Tensor>& parts, int dim, const std::optional<MemoryConfig>&, const std::optional<Tensor>& out,
              unsigned int, const std::optional<CoreRangeSet>&) {
    const auto axis = static_cast<std::size_t>(dim);
    Dims dims = dims_of(parts.front());
    dims[axis] = 0;
    for (const Tensor& part : parts) {
        dims[axis] += dims_of(part)[axis];
    }
    std::vector<float> made;
    each(dims, [&](Dims at) {
        std::size_t part = 0;
        while (at[axis] >= dims_of(parts[part])[axis]) {
            at[axis] -= dims_of(parts[part])[axis];
            ++part;
        }
        const Dims size = dims_of(parts[part]);
        made.push_back(values(parts[part])[((at[0] * size[1] + at[1]) * size[2] + at[2]) * size[3] + at[3]]);
    });
    return result(out, dims, dtype_of(parts.front()), std::move(made));
}

Tensor reshape(const Tensor& x, const Shape& shape, const std::optional<MemoryConfig>&, const std::optional<PadValue>&,
               TileReshapeMapMode, const std::optional<CoreRangeSet>&, bool) {
    expect(volume(dims_of(x)) == volume(dims_of(shape)), "a reshape to another size");
    Tensor out = make({shape, x.tensor_attributes->spec.layout});
    out.tensor_attributes->values = values(x);
    out.tensor_attributes->words = x.tensor_attributes->words;
    return out;
}

Tensor permute(const Tensor& x, const ttsl::SmallVector<std::int64_t>& order, float) {
    const Dims from = dims_of(x);
    Dims dims{};
    for (std::size_t i = 0; i < 4; ++i) {
        dims[i] = from[static_cast<std::size_t>(order[i])];
    }
    std::vector<float> made;
    each(dims, [&](const Dims& at) {
        Dims source{};
        for (std::size_t i = 0; i < 4; ++i) {
            source[static_cast<std::size_t>(order[i])] = at[i];
        }
        made.push_back(values(x)[((source[0] * from[1] + source[1]) * from[2] + source[2]) * from[3] + source[3]]);
    });
    return result(std::nullopt, dims, dtype_of(x), std::move(made));
}

Tensor transpose(const Tensor& x, std::int64_t first, std::int64_t second, float) {
    ttsl::SmallVector<std::int64_t> order{0, 1, 2, 3};
    std::swap(order[static_cast<std::size_t>(first)], order[static_cast<std::size_t>(second)]);
    return permute(x, order);
}

Tensor typecast(const Tensor& x, const DataType& dtype, const std::optional<MemoryConfig>&, const std::optional<Tensor>& out,
                const std::optional<CoreRangeSet>&) {
    return result(out, dims_of(x), dtype, std::vector<float>(values(x)));
}

Tensor to_layout(const Tensor& x, Layout, const std::optional<DataType>&, const std::optional<MemoryConfig>&,
                 const std::optional<CoreRangeSet>&, float) {
    return result(std::nullopt, dims_of(x), dtype_of(x), std::vector<float>(values(x)));
}

Tensor zeros(const Shape& shape, const std::optional<DataType>& dtype, const std::optional<Layout>&,
             std::optional<std::reference_wrapper<MeshDevice>>, const std::optional<MemoryConfig>&) {
    const Dims dims = dims_of(shape);
    return result(std::nullopt, dims, dtype.value_or(DataType::BFLOAT16), std::vector<float>(volume(dims)));
}

Tensor cumsum(const Tensor& x, const std::int32_t& dim, std::optional<DataType>, const bool&, std::optional<Tensor> out,
              const std::optional<MemoryConfig>&) {
    expect(dim == 2, "the stand-in sums over rows");
    const Dims dims = dims_of(x);
    std::vector<float> made = values(x);
    each(dims, [&](const Dims& at) {
        if (at[2] != 0) {
            const std::size_t index = ((at[0] * dims[1] + at[1]) * dims[2] + at[2]) * dims[3] + at[3];
            made[index] += made[index - dims[3]];
        }
    });
    return result(out, dims, dtype_of(x), std::move(made));
}

namespace {

void place(const Tensor& cache, const Tensor& input, std::uint32_t at, std::size_t rows) {
    const Dims to = dims_of(cache);
    const Dims from = dims_of(input);
    expect(to[1] == from[1] && to[3] == from[3] && at + rows <= to[2], "rows that are not of the cache");
    for (std::size_t head = 0; head < from[1]; ++head) {
        std::copy_n(input.tensor_attributes->values.begin() + static_cast<std::ptrdiff_t>(head * from[2] * from[3]), rows * from[3],
                    cache.tensor_attributes->values.begin() + static_cast<std::ptrdiff_t>((head * to[2] + at) * to[3]));
    }
}

}  // namespace

Tensor update_cache(const Tensor& cache, const Tensor& input, std::uint32_t at, std::uint32_t, std::optional<const DeviceComputeKernelConfig>) {
    place(cache, input, at, 1);
    return cache;
}

Tensor fill_cache(const Tensor& cache, const Tensor& input, std::uint32_t, std::uint32_t at) {
    expect(at % 32 == 0, "a fill that does not begin with a tile");
    place(cache, input, at, dims_of(input)[2]);
    return cache;
}

namespace operations::experimental {

Tensor plus_one(const Tensor& x, const std::optional<CoreRangeSet>&, bool) {
    for (std::uint32_t& word : x.tensor_attributes->words) {
        ++word;
    }
    return x;
}

}  // namespace operations::experimental

namespace experimental {

std::tuple<Tensor, Tensor, Tensor> nlp_create_qkv_heads(const Tensor& x, const std::optional<Tensor>&, std::uint32_t heads,
                                                        std::optional<std::uint32_t> kv_heads, bool, const std::optional<MemoryConfig>&,
                                                        const std::optional<std::vector<std::optional<Tensor>>>& out) {
    const Dims dims = dims_of(x);
    const std::size_t few = kv_heads.value_or(heads);
    const std::size_t width = dims[3] / (heads + 2 * few);
    const auto part = [&](std::size_t first, std::size_t count, std::size_t index) {
        std::vector<float> made;
        for (std::size_t head = 0; head < count; ++head) {
            for (std::size_t row = 0; row < dims[2]; ++row) {
                const float* from = values(x).data() + row * dims[3] + (first + head) * width;
                made.insert(made.end(), from, from + width);
            }
        }
        return result(out.has_value() ? (*out)[index] : std::nullopt, {1, count, dims[2], width}, dtype_of(x), std::move(made));
    };
    return {part(0, heads, 0), part(heads, few, 1), part(heads + few, few, 2)};
}

Tensor nlp_concat_heads(const Tensor& x, const std::optional<MemoryConfig>&) {
    const Dims dims = dims_of(x);
    return reshape(permute(x, {0, 2, 1, 3}), shape_of({1, 1, dims[2], dims[1] * dims[3]}));
}

Tensor rotary_embedding_hf(const Tensor& x, const Tensor& cos, const Tensor& sin, bool, const std::optional<MemoryConfig>&,
                           std::optional<const DeviceComputeKernelConfig>) {
    const Dims dims = dims_of(x);
    const std::size_t half = dims[3] / 2;
    std::vector<float> made;
    each(dims, [&](const Dims& at) {
        const float* line = values(x).data() + ((at[0] * dims[1] + at[1]) * dims[2] + at[2]) * dims[3];
        const std::size_t angle = at[2] * dims[3] + at[3];
        const float turned = at[3] < half ? -line[at[3] + half] : line[at[3] - half];
        made.push_back(bfloat16(line[at[3]] * values(cos)[angle]) + bfloat16(turned * values(sin)[angle]));
    });
    return result(std::nullopt, dims, dtype_of(x), std::move(made));
}

}  // namespace experimental

namespace transformer {
namespace {

// One query over the first `seen` keys, with what is added to its scores.
void attend(const float* query, const float* keys, const float* heads_values, std::size_t seen, std::size_t width, float scale,
            const float* added, float* out) {
    std::vector<float> scores(seen);
    float largest = -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < seen; ++i) {
        scores[i] = std::inner_product(query, query + width, keys + i * width, 0.0f) * scale + (added == nullptr ? 0.0f : added[i]);
        largest = std::max(largest, scores[i]);
    }
    float sum = 0;
    std::fill(out, out + width, 0.0f);
    for (std::size_t i = 0; i < seen; ++i) {
        const float weight = std::exp(scores[i] - largest);
        sum += weight;
        const float rounded = bfloat16(weight);
        for (std::size_t j = 0; j < width && weight != 0; ++j) {
            out[j] += rounded * heads_values[i * width + j];
        }
    }
    for (std::size_t j = 0; j < width; ++j) {
        out[j] /= sum;
    }
}

}  // namespace

Tensor scaled_dot_product_attention_decode(const Tensor& q, const Tensor& k, const Tensor& v, bool, const std::optional<const Tensor>&,
                                           const std::vector<std::uint32_t>&, const std::optional<const Tensor>& position,
                                           const std::optional<const Tensor>&, std::optional<float> scale, std::optional<std::uint32_t>,
                                           const std::optional<MemoryConfig>&, std::optional<operations::transformer::SDPAProgramConfig>,
                                           std::optional<DeviceComputeKernelConfig>, std::optional<bool>) {
    const Dims dims = dims_of(q);
    const Dims cache = dims_of(k);
    std::vector<float> made(volume(dims));
    for (std::size_t head = 0; head < dims[2]; ++head) {
        const std::size_t at = head / (dims[2] / cache[1]) * cache[2] * cache[3];
        attend(values(q).data() + head * dims[3], values(k).data() + at, values(v).data() + at, position->tensor_attributes->words[0] + 1, dims[3],
               *scale, nullptr, made.data() + head * dims[3]);
    }
    return result(std::nullopt, dims, dtype_of(q), std::move(made));
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask, bool causal,
                                    std::optional<float> scale, std::optional<std::uint32_t>, const std::optional<MemoryConfig>&,
                                    std::optional<operations::transformer::SDPAProgramConfig>, std::optional<DeviceComputeKernelConfig>,
                                    const std::optional<Tensor>&) {
    const Dims dims = dims_of(q);
    const Dims cache = dims_of(k);
    expect(causal != mask.has_value(), "attention is causal or has a mask");
    std::vector<float> made(volume(dims));
    for (std::size_t head = 0; head < dims[1]; ++head) {
        const std::size_t at = head / (dims[1] / cache[1]) * cache[2] * cache[3];
        for (std::size_t row = 0; row < dims[2]; ++row) {
            const std::size_t query = (head * dims[2] + row) * dims[3];
            const float* added = mask.has_value() ? values(*mask).data() + row * cache[2] : nullptr;
            attend(values(q).data() + query, values(k).data() + at, values(v).data() + at, causal ? row + 1 : cache[2], dims[3], *scale,
                   added, made.data() + query);
        }
    }
    return result(std::nullopt, dims, dtype_of(q), std::move(made));
}

}  // namespace transformer
}  // namespace ttnn
