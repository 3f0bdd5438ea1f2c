#include "emit.hpp"

#include <algorithm>

namespace tt::on_ttnn {
namespace {

using tt_metal::Layout;

::ttnn::TensorSpec spec_of(const Dims& dims, Dtype dtype, Layout layout) {
    return {shape(dims), tt_metal::TensorLayout(dtype, tt_metal::PageConfig(layout), tt_metal::MemoryConfig())};
}

// What a call returned becomes the cell's tensor, unless it was written in place.
void settle(const Cell& cell, Tensor&& result) {
    if (!cell->held) {
        cell->tensor = std::move(result);
    }
}

std::optional<Tensor> given(const Cell& cell) {
    return cell->held ? std::optional<Tensor>(cell->tensor) : std::nullopt;
}

using Activations = std::vector<::ttnn::operations::unary::EltwiseUnaryWithParam>;

using ActivationSpan = ttsl::Span<const ::ttnn::operations::unary::EltwiseUnaryWithParam>;

std::string text(const Dims& dims) {
    std::string text;
    for (const std::uint32_t dim : dims) {
        text += ' ' + std::to_string(dim);
    }
    return text;
}

Dims broadcast(const Dims& a, const Dims& b) {
    Dims out{};
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = std::max(a[i], b[i]);
    }
    return out;
}

}  // namespace

Machine::Machine(::ttnn::MeshDevice* device, const Fidelity& fidelity, const Levers& levers)
    : device_(device), fidelity_(fidelity), levers_(levers), grid_(1, 1) {
    resolve_handles();
}

// Device, queue and grid.
void Machine::resolve_handles() {
    const auto grid = device_->compute_with_storage_grid_size();
    grid_ = ::ttnn::CoreGrid(grid.x, grid.y);
    static_cast<void>(device_->mesh_command_queue());
    static_cast<void>(device_->num_program_cache_entries());
    handle_resolutions += 3;
}

Tensor Machine::create(const Dims& dims, Dtype dtype, Layout layout) const {
    return tt_metal::create_device_tensor(spec_of(dims, dtype, layout), device_);
}

Tensor Machine::zeros(const Dims& dims, Dtype dtype) const {
    return ::ttnn::zeros(shape(dims), dtype, Layout::TILE, std::ref(*device_));
}

Tensor Machine::upload(const Dims& dims, Dtype dtype, Layout layout, const std::vector<float>& values) const {
    if (dtype == Dtype::FLOAT32) {
        return Tensor::from_span<float>(values, spec_of(dims, dtype, layout), device_);
    }
    std::vector<bfloat16> narrow(values.begin(), values.end());
    return upload_bf16(dims, layout, narrow.data());
}

Tensor Machine::upload_bf16(const Dims& dims, Layout layout, const bfloat16* values) const {
    const std::size_t count = std::size_t{dims[0]} * dims[1] * dims[2] * dims[3];
    return Tensor::from_span<bfloat16>({values, count}, spec_of(dims, Dtype::BFLOAT16, layout), device_);
}

Cell Machine::scratch(const Dims& dims, Dtype dtype, std::size_t index) {
    std::vector<Cell>& cells = scratch_[{dims, dtype}];
    while (cells.size() <= index) {
        cells.push_back(std::make_shared<Node>(Node{dims, dtype, create(dims, dtype, Layout::TILE), true}));
    }
    return cells[index];
}

Cell Machine::constant(const std::string& key, const Dims& dims, Dtype dtype,
                       const std::function<std::vector<float>()>& make) {
    Cell& cell = constants_[key];
    if (cell == nullptr) {
        cell = std::make_shared<Node>(Node{dims, dtype, upload(dims, dtype, Layout::TILE, make()), true});
        ++constant_uploads;
    }
    return cell;
}

void Machine::drop_scratch() {
    scratch_.clear();
    constants_.clear();
}

Cell Emitter::output(const Dims& dims, Dtype dtype, const Cell& into) {
    if (into != nullptr) {
        return into;
    }
    if (!machine_.levers().preallocate) {
        return fresh(dims, dtype);
    }
    return machine_.scratch(dims, dtype, taken_[{dims, dtype}]++);
}

Cell Emitter::fresh(const Dims& dims, Dtype dtype, const Cell& into) {
    if (into != nullptr) {
        // The call returns its own tensor: the destination is no longer one that is written in place.
        into->held = false;
        return into;
    }
    Cell cell = std::make_shared<Node>(Node{dims, dtype, Tensor(), false});
    plan_.fresh.push_back(cell);
    return cell;
}

Cell Emitter::matmul(const Cell& a, const Cell& b, const MatmulHow& how) {
    const Dims dims{std::max(a->dims[0], b->dims[0]), std::max(a->dims[1], b->dims[1]),
                    how.transpose_a ? a->dims[3] : a->dims[2], how.transpose_b ? b->dims[2] : b->dims[3]};
    const Dtype dtype = how.dtype.value_or(a->dtype);
    const Cell out = output(dims, dtype, how.into);
    const Compute compute = how.compute != nullptr ? *how.compute : fidelity().linear;
    std::optional<const ::ttnn::CoreGrid> grid;
    if (how.grid) {
        grid.emplace(machine_.grid());
    }
    std::optional<const ::ttnn::Activation> activation;
    if (how.activation.has_value()) {
        activation.emplace(*how.activation);
    }
    const bool ta = how.transpose_a;
    const bool tb = how.transpose_b;
    if (how.bias != nullptr) {
        call(Kind::Linear, [out, a, b, bias = how.bias, ta, tb, dtype, compute, grid, activation] {
            settle(out, ::ttnn::linear(a->tensor, b->tensor, bias->tensor, ta, tb, std::nullopt, dtype, std::nullopt,
                                       activation, compute, grid, std::nullopt, given(out)));
        });
    } else {
        call(Kind::Matmul, [out, a, b, ta, tb, dtype, compute, grid, activation] {
            settle(out, ::ttnn::matmul(a->tensor, b->tensor, ta, tb, std::nullopt, dtype, std::nullopt, activation,
                                       compute, grid, std::nullopt, given(out)));
        });
    }
    return out;
}

// Scratch tensors of the operands' shapes and one of the output's, if the output is an operand and no
// program was made for these shapes yet.
std::vector<Cell> Emitter::stand_ins(const std::vector<Cell>& operands, const Cell& out) {
    const bool in_place = std::find(operands.begin(), operands.end(), out) != operands.end();
    std::string program;
    for (const Cell& operand : operands) {
        program += text(operand->dims) + ',' + std::to_string(static_cast<int>(operand->dtype));
    }
    if (!in_place || !out->held || !machine_.levers().preallocate || !machine_.first_in_place(program)) {
        return {};
    }
    std::vector<Cell> cells;
    std::map<std::pair<Dims, Dtype>, std::size_t> taken;
    for (const Cell& operand : operands) {
        cells.push_back(machine_.scratch(operand->dims, operand->dtype, taken[{operand->dims, operand->dtype}]++));
    }
    cells.push_back(machine_.scratch(out->dims, out->dtype, taken[{out->dims, out->dtype}]++));
    return cells;
}

Cell Emitter::addcmul(const Cell& a, const Cell& b, const Cell& c, float value, const Cell& into,
                      std::optional<Dtype> dtype) {
    const Cell out = output(broadcast(broadcast(a->dims, b->dims), c->dims), dtype.value_or(a->dtype), into);
    if (const auto other = stand_ins({a, b, c}, out); !other.empty()) {
        static_cast<void>(::ttnn::addcmul(other[0]->tensor, other[1]->tensor, other[2]->tensor, value, std::nullopt, other[3]->tensor));
    }
    call(Kind::Addcmul, [out, a, b, c, value] {
        settle(out, ::ttnn::addcmul(a->tensor, b->tensor, c->tensor, value, std::nullopt, given(out)));
    });
    return out;
}

Cell Emitter::product(const Cell& b, const Cell& c, const Cell& into, std::optional<Dtype> dtype) {
    const Dims dims = broadcast(b->dims, c->dims);
    const std::string key = "zeros " + std::to_string(static_cast<int>(b->dtype)) + text(dims);
    const Cell zeros = machine_.constant(key, dims, b->dtype, [&] {
        return std::vector<float>(std::size_t{dims[0]} * dims[1] * dims[2] * dims[3], 0.0f);
    });
    return addcmul(zeros, b, c, 1.0f, into, dtype);
}

Cell Emitter::where(const Cell& mask, const Cell& yes, const Cell& no, const Cell& into) {
    const Cell out = output(broadcast(broadcast(mask->dims, yes->dims), no->dims), yes->dtype, into);
    if (const auto other = stand_ins({mask, yes, no}, out); !other.empty()) {
        static_cast<void>(::ttnn::where(other[0]->tensor, other[1]->tensor, other[2]->tensor, std::nullopt, other[3]->tensor));
    }
    call(Kind::Where, [out, mask, yes, no] {
        settle(out, ::ttnn::where(mask->tensor, yes->tensor, no->tensor, std::nullopt, given(out)));
    });
    return out;
}

Cell Emitter::binary(Kind kind, const Cell& a, const Cell& b, std::optional<Dtype> dtype,
                     std::optional<UnaryType> after, std::optional<UnaryType> on_b, const Cell& into) {
    const Dtype result = dtype.value_or(a->dtype);
    const Cell out = output(broadcast(a->dims, b->dims), result, into);
    Activations post;
    if (after.has_value()) {
        post.emplace_back(*after);
    }
    Activations rhs;
    if (on_b.has_value()) {
        rhs.emplace_back(*on_b);
    }
    call(kind, [kind, out, a, b, result, post, rhs] {
        const std::optional<const Dtype> as(result);
        const ActivationSpan none;
        const Tensor& x = a->tensor;
        const Tensor& y = b->tensor;
        const std::optional<Tensor> into = given(out);
        switch (kind) {
            case Kind::Add: settle(out, ::ttnn::add(x, y, as, std::nullopt, into, post, none, rhs)); break;
            case Kind::Subtract: settle(out, ::ttnn::subtract(x, y, as, std::nullopt, into, post, none, rhs)); break;
            default: settle(out, ::ttnn::multiply(x, y, as, std::nullopt, into, post, none, rhs)); break;
        }
    });
    return out;
}

Cell Emitter::unary(UnaryType type, const Cell& x, const Cell& into, std::optional<Dtype> dtype) {
    const Cell out = output(x->dims, dtype.value_or(x->dtype), into);
    call(Kind::Unary, [out, x, type] {
        Activations chain;
        if (type == UnaryType::SOFTPLUS) {
            chain.emplace_back(type, std::vector<float>{kSoftplusBeta, kSoftplusThreshold});
        } else {
            chain.emplace_back(type);
        }
        settle(out, ::ttnn::unary_chain(x->tensor, chain, std::nullopt, given(out)));
    });
    return out;
}

Cell Emitter::rms_norm(const Cell& x, double eps, const Cell& weight, const Cell& into) {
    const Cell out = fresh(x->dims, x->dtype, into);
    call(Kind::RmsNorm, [out, x, eps = static_cast<float>(eps), weight, compute = fidelity().norm] {
        settle(out, ::ttnn::rms_norm(x->tensor, eps, weight->tensor, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                                     compute));
    });
    return out;
}

Cell Emitter::typecast(const Cell& x, Dtype dtype, const Cell& into) {
    const Cell out = output(x->dims, dtype, into);
    call(Kind::Typecast, [out, x, dtype] {
        settle(out, ::ttnn::typecast(x->tensor, dtype, std::nullopt, given(out)));
    });
    return out;
}

// The call gives a tensor of rank three; the view of rank four is no device work.
Cell Emitter::embedding(const Cell& ids, const Cell& table, const Cell& into) {
    const Dims dims{1, 1, ids->dims[3], table->dims[3]};
    const Cell out = fresh(dims, Dtype::BFLOAT16, into);
    call(Kind::Embedding, [out, ids, table, dims] {
        out->tensor = ::ttnn::reshape(::ttnn::embedding(ids->tensor, table->tensor, std::nullopt, Layout::TILE), shape(dims));
    });
    return out;
}

Cell Emitter::argmax(const Cell& x, const Cell& into) {
    call(Kind::Argmax, [into, x] {
        settle(into, ::ttnn::argmax(x->tensor, 3, false, std::nullopt, false, std::nullopt, given(into)));
    });
    return into;
}

Cell Emitter::slice(const Cell& x, const Dims& begin, const Dims& end, const Cell& into) {
    const Dims dims{end[0] - begin[0], end[1] - begin[1], end[2] - begin[2], end[3] - begin[3]};
    const Cell out = output(dims, x->dtype, into);
    call(Kind::Slice, [out, x, begin, end] {
        const Dims step{1, 1, 1, 1};
        using Span = ttsl::Span<const std::uint32_t>;
        settle(out, ::ttnn::slice<std::uint32_t>(x->tensor, Span(begin), Span(end), Span(step), std::nullopt, given(out)));
    });
    return out;
}

Cell Emitter::concat(const std::vector<Cell>& parts, int dim, const Cell& into) {
    Dims dims = parts.front()->dims;
    const auto axis = static_cast<std::size_t>(dim);
    dims[axis] = 0;
    for (const Cell& part : parts) {
        dims[axis] += part->dims[axis];
    }
    // The library has the argument, and refuses it.
    const Cell out = fresh(dims, parts.front()->dtype, into);
    call(Kind::Concat, [out, parts, dim] {
        std::vector<Tensor> tensors;
        for (const Cell& part : parts) {
            tensors.push_back(part->tensor);
        }
        settle(out, ::ttnn::concat(tensors, dim));
    });
    return out;
}

Cell Emitter::reshape(const Cell& x, const Dims& dims, const Cell& into) {
    const Cell out = fresh(dims, x->dtype, into);
    call(Kind::Reshape, [out, x, dims] { settle(out, ::ttnn::reshape(x->tensor, shape(dims))); });
    return out;
}

Cell Emitter::transpose(const Cell& x, int first, int second, const Cell& into) {
    Dims dims = x->dims;
    std::swap(dims[static_cast<std::size_t>(first)], dims[static_cast<std::size_t>(second)]);
    const Cell out = fresh(dims, x->dtype, into);
    call(Kind::Transpose, [out, x, first, second] { settle(out, ::ttnn::transpose(x->tensor, first, second)); });
    return out;
}

Cell Emitter::permute(const Cell& x, const std::array<int, 4>& order, const Cell& into) {
    Dims dims{};
    for (std::size_t i = 0; i < dims.size(); ++i) {
        dims[i] = x->dims[static_cast<std::size_t>(order[i])];
    }
    const Cell out = fresh(dims, x->dtype, into);
    call(Kind::Permute, [out, x, order] {
        settle(out, ::ttnn::permute(x->tensor, ttsl::SmallVector<std::int64_t>(order.begin(), order.end())));
    });
    return out;
}

std::array<Cell, 3> Emitter::create_heads(const Cell& x, std::uint32_t q, std::uint32_t kv) {
    const std::uint32_t width = x->dims[3] / (q + 2 * kv);
    const Dims many{1, q, x->dims[2], width};
    const Dims few{1, kv, x->dims[2], width};
    const std::array<Cell, 3> out{output(many, x->dtype), output(few, x->dtype), output(few, x->dtype)};
    call(Kind::CreateHeads, [out, x, q, kv] {
        std::optional<std::vector<std::optional<Tensor>>> into;
        if (out[0]->held) {
            into.emplace({given(out[0]), given(out[1]), given(out[2])});
        }
        auto [first, second, third] =
            ::ttnn::experimental::nlp_create_qkv_heads(x->tensor, std::nullopt, q, kv, false, std::nullopt, into);
        settle(out[0], std::move(first));
        settle(out[1], std::move(second));
        settle(out[2], std::move(third));
    });
    return out;
}

Cell Emitter::concat_heads(const Cell& x, const Cell& into) {
    const Cell out = fresh({1, 1, x->dims[2], x->dims[1] * x->dims[3]}, x->dtype, into);
    call(Kind::ConcatHeads, [out, x] { settle(out, ::ttnn::experimental::nlp_concat_heads(x->tensor)); });
    return out;
}

Cell Emitter::rotate(const Cell& x, const Cell& cos, const Cell& sin, const Cell& into) {
    const Cell out = fresh(x->dims, x->dtype, into);
    call(Kind::Rotary, [out, x, cos, sin, compute = fidelity().exact] {
        settle(out, ::ttnn::experimental::rotary_embedding_hf(x->tensor, cos->tensor, sin->tensor, false, std::nullopt,
                                                              compute));
    });
    return out;
}

Cell Emitter::cumsum(const Cell& x, int dim) {
    const Cell out = output(x->dims, x->dtype);
    call(Kind::Cumsum, [out, x, dim] {
        settle(out, ::ttnn::cumsum(x->tensor, dim, std::nullopt, false, given(out)));
    });
    return out;
}

}  // namespace tt::on_ttnn
