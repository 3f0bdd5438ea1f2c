#include "lower.hpp"

#include <algorithm>
#include <cmath>

#include "../model/fault.hpp"
#include "blocks.hpp"

namespace tt::on_ttnn {
namespace {

using Unary = ::ttnn::operations::unary::UnaryWithParam;

// Which operands an operation reads, and which it makes. A state counts as neither: it is kept.
struct Roles {
    std::vector<std::size_t> reads;
    std::vector<std::size_t> makes;
};

const Roles& roles(Op op) {
    static const std::map<Op, Roles> kRoles{
        {Op::Embed, {{0, 1}, {2}}},
        {Op::Linear, {{0, 1}, {2}}},
        {Op::LmHead, {{0, 1}, {2}}},
        {Op::Add, {{0, 1}, {2}}},
        {Op::RmsNorm, {{0, 1}, {2}}},
        {Op::Swiglu, {{0, 1}, {2}}},
        {Op::Rotary, {{0}, {1, 2}}},
        {Op::Rope, {{0, 1, 2}, {3}}},
        {Op::Attention, {{0, 1, 2, 3, 4, 5}, {6}}},
        {Op::SigmoidGate, {{0, 1}, {2}}},
        {Op::CausalConv, {{0, 1, 2, 3}, {4}}},
        {Op::GdnGates, {{0, 1, 2, 3}, {4, 5}}},
        {Op::GatedDelta, {{0, 1, 2, 3, 4}, {5}}},
        {Op::GatedNorm, {{0, 1, 2}, {3}}},
        {Op::LastRow, {{0, 1}, {2}}},
        {Op::Argmax, {{0}, {1}}},
    };
    const auto found = kRoles.find(op);
    if (found == kRoles.end()) {
        throw Fault(FaultKind::Invalid, "expected an operation of this driver");
    }
    return found->second;
}

// Where a head's elements lie on the device: the first halves of the rotated pairs at the front, the
// second halves from the middle on, so that one call rotates a whole head of which a part is rotated.
std::vector<std::uint32_t> head_order(std::uint32_t width, std::uint32_t rotary) {
    std::vector<std::uint32_t> order(width);
    const std::uint32_t half = rotary / 2;
    std::uint32_t passes = rotary;
    for (std::uint32_t at = 0; at < width; ++at) {
        if (at < half) {
            order[at] = at;
        } else if (at >= width / 2 && at < width / 2 + half) {
            order[at] = half + at - width / 2;
        } else {
            order[at] = passes++;
        }
    }
    return order;
}

bool contiguous(const std::uint32_t* geometry) { return geometry[0] == geometry[1] && geometry[2] == 0; }

// The two vectors of a pair: `which` is 0 or 1.
bool pair_of(const std::uint32_t* geometry, std::uint32_t width, std::uint32_t which) {
    return geometry[0] == width && geometry[1] == 2 * width && geometry[2] == which * width;
}

}  // namespace

std::vector<std::uint32_t> rotated_order(std::uint32_t width, std::uint32_t rotary) {
    return head_order(width, rotary == 0 ? width : rotary);
}

Lowering::Lowering(Machine& machine, Tensors& tensors, Plan& plan, const Batch& batch, std::uint32_t context)
    : machine_(machine), tensors_(tensors), emit_(machine, plan), context_(context) {
    analyse(batch);
}

void Lowering::analyse(const Batch& batch) {
    std::map<std::uint32_t, std::size_t> current;
    for (const Command& command : batch.commands) {
        const std::size_t index = commands_.size();
        commands_.push_back(command);
        operands_.push_back({});
        const Roles& role = roles(command.op);
        for (const std::size_t operand : role.reads) {
            const std::uint32_t slot = command.operands[operand];
            if (!current.contains(slot)) {
                current[slot] = values_.size();
                values_.push_back({slot, {}, kBefore, false, nullptr});
            }
            operands_[index][operand] = current[slot];
            values_[current[slot]].readers.push_back(index);
        }
        for (const std::size_t operand : role.makes) {
            const std::uint32_t slot = command.operands[operand];
            current[slot] = values_.size();
            operands_[index][operand] = values_.size();
            values_.push_back({slot, {}, index, false, nullptr});
        }
    }
    for (const auto& [slot, value] : current) {
        const auto among = [slot = slot](const auto& slots) {
            return std::find(slots.begin(), slots.end(), slot) != slots.end();
        };
        values_[value].live_out = values_[value].definer != kBefore && !among(batch.dead) && !among(batch.releases);
    }
}

std::optional<std::size_t> Lowering::sole(std::size_t index, std::size_t operand, Op op, std::size_t readers) {
    const Value& of = value(index, operand);
    if (of.definer == kBefore || of.live_out || of.readers.size() != readers || command(of.definer).op != op ||
        absorbed_.contains(of.definer)) {
        return std::nullopt;
    }
    return of.definer;
}

Cell Lowering::in(std::size_t index, std::size_t operand) {
    Value& of = value(index, operand);
    if (of.cell == nullptr) {
        of.cell = tensors_.read(of.slot);
    }
    return of.cell;
}

// A value that outlives the list is written to its slot's own tensor, others wherever there is room.
Cell Lowering::destination(std::size_t index, std::size_t operand, const Dims& dims, Dtype dtype) {
    Value& of = value(index, operand);
    if (!of.live_out) {
        return nullptr;
    }
    of.cell = tensors_.write(of.slot, dims, dtype, machine_.levers().preallocate);
    return of.cell;
}

std::shared_ptr<StepState> Lowering::step(std::size_t index, std::size_t operand) {
    const std::shared_ptr<StepState>& step = tensors_.slot(slot(index, operand)).step;
    if (step == nullptr) {
        throw Fault(FaultKind::Invalid, "expected a step of tokens that was written");
    }
    return step;
}

void Lowering::run() {
    if (machine_.levers().fuse) {
        absorb_blocks();
        if (reordered()) {
            absorbed_.clear();
            attentions_.clear();
            delta_nets_.clear();
            gated_.clear();
            residual_.clear();
        }
    }
    for (std::size_t index = 0; index < commands_.size(); ++index) {
        if (!absorbed_.contains(index)) {
            emit_.op = command(index).op;
            lower(index);
        }
    }
}

void Lowering::absorb_blocks() {
    for (std::size_t index = 0; index < commands_.size(); ++index) {
        const Op op = command(index).op;
        if (op == Op::SigmoidGate) {
            if (auto block = attention_block(index)) {
                for (const std::size_t part : block->parts) {
                    absorbed_.insert(part);
                }
                attentions_.emplace(index, std::move(*block));
            }
        } else if (op == Op::GatedNorm) {
            if (auto block = delta_block(index)) {
                for (const std::size_t part : block->parts) {
                    absorbed_.insert(part);
                }
                delta_nets_.emplace(index, std::move(*block));
            }
        }
    }
    for (std::size_t index = 0; index < commands_.size(); ++index) {
        if (command(index).op == Op::Swiglu) {
            const auto gate = sole(index, 0, Op::Linear);
            const auto up = sole(index, 1, Op::Linear);
            if (gate.has_value() && up.has_value()) {
                absorbed_.insert({*gate, *up});
                gated_[index] = {*gate, *up};
            }
        } else if (command(index).op == Op::Add && spec(index, 0).rows == 1) {
            for (const std::size_t operand : {1, 0}) {
                if (const auto linear = sole(index, operand, Op::Linear)) {
                    absorbed_.insert(*linear);
                    residual_[index] = {*linear, 1 - operand};
                    break;
                }
            }
        }
    }
}

// Fusing moves a read to a later place. Where that would be behind a write to the same tensor, the list
// is lowered command by command; no list of the model is.
bool Lowering::reordered() const {
    std::map<std::size_t, std::size_t> at;
    const auto host = [&](std::size_t of, std::size_t by) { at[of] = by; };
    for (const auto& [index, block] : attentions_) {
        std::for_each(block.parts.begin(), block.parts.end(), [&, by = index](std::size_t part) { host(part, by); });
    }
    for (const auto& [index, block] : delta_nets_) {
        std::for_each(block.parts.begin(), block.parts.end(), [&, by = index](std::size_t part) { host(part, by); });
    }
    for (const auto& [index, projections] : gated_) {
        host(projections.first, index);
        host(projections.second, index);
    }
    for (const auto& [index, projection] : residual_) {
        host(projection.first, index);
    }
    const auto emitted = [&](std::size_t index) { return at.contains(index) ? at.at(index) : index; };
    for (const Value& written : values_) {
        for (const Value& before : values_) {
            const bool same = written.live_out && before.definer == kBefore && before.slot == written.slot;
            if (same && std::any_of(before.readers.begin(), before.readers.end(), [&](std::size_t reader) {
                    return emitted(reader) > emitted(written.definer);
                })) {
                return true;
            }
        }
    }
    return false;
}

void Lowering::lower(std::size_t index) {
    switch (command(index).op) {
        case Op::Embed: embed(index); break;
        case Op::Linear: linear(index); break;
        case Op::LmHead: lm_head(index); break;
        case Op::Add: add(index); break;
        case Op::RmsNorm: rms_norm(index); break;
        case Op::Swiglu: swiglu(index); break;
        case Op::Rotary: rotary(index); break;
        case Op::Rope: rope(index); break;
        case Op::Attention: attention(index); break;
        case Op::SigmoidGate: sigmoid_gate(index); break;
        case Op::CausalConv: causal_conv(index); break;
        case Op::GdnGates: gdn_gates(index); break;
        case Op::GatedDelta: gated_delta(index); break;
        case Op::GatedNorm: gated_norm(index); break;
        case Op::LastRow: last_row(index); break;
        default: argmax(index); break;
    }
}

void Lowering::embed(std::size_t index) {
    const auto at = step(index, 0);
    const Cell table = tensors_.table(slot(index, 1));
    const Dims dims{1, 1, at->rows, table->dims[3]};
    define(index, 2, emit_.embedding(at->ids, table, destination(index, 2, dims, Dtype::BFLOAT16)));
}

void Lowering::linear(std::size_t index) {
    const Cell x = in(index, 0);
    const Cell w = tensors_.transposed(slot(index, 1));
    const Dims dims{1, 1, x->dims[2], w->dims[3]};
    MatmulHow how;
    how.grid = true;
    how.into = destination(index, 2, dims, Dtype::BFLOAT16);
    define(index, 2, emit_.matmul(x, w, how));
}

void Lowering::lm_head(std::size_t index) {
    const Cell x = in(index, 0);
    const Cell w = tensors_.transposed(slot(index, 1));
    MatmulHow how;
    how.compute = &emit_.fidelity().head;
    how.dtype = Dtype::FLOAT32;
    how.into = destination(index, 2, {1, 1, 1, w->dims[3]}, Dtype::FLOAT32);
    define(index, 2, emit_.matmul(x, w, how));
}

// A projection's sum with the residual stream is the projection's bias, which one row of decode is: one
// call, and one rounding instead of two.
void Lowering::add(std::size_t index) {
    if (const auto found = residual_.find(index); found != residual_.end()) {
        const auto [projection, other] = found->second;
        const Cell x = in(projection, 0);
        const Cell w = tensors_.transposed(slot(projection, 1));
        MatmulHow how;
        how.grid = true;
        how.bias = in(index, other);
        how.into = destination(index, 2, how.bias->dims, Dtype::BFLOAT16);
        define(index, 2, emit_.matmul(x, w, how));
        return;
    }
    const Cell a = in(index, 0);
    const Cell into = destination(index, 2, a->dims, Dtype::BFLOAT16);
    define(index, 2, emit_.binary(Kind::Add, a, in(index, 1), std::nullopt, std::nullopt, std::nullopt, into));
}

// `1 + w` in f32, computed once; heads in the device's order.
Cell Lowering::gamma(std::size_t index, std::size_t operand, std::uint32_t rotated) {
    const std::uint32_t width = spec(index, operand).cols;
    const std::string key = "one plus " + std::to_string(rotated);
    return tensors_.derived(slot(index, operand), key, {1, 1, 1, width}, Dtype::FLOAT32, [&](const std::vector<float>& w) {
        const std::vector<std::uint32_t> order = rotated_order(width, rotated);
        std::vector<float> gamma(width);
        for (std::uint32_t at = 0; at < width; ++at) {
            gamma[at] = 1.0f + w[order[at]];
        }
        return gamma;
    });
}

// Rows of heads, [1, rows, heads, width], from where they lie side by side or in pairs.
Cell Lowering::heads_of(const Cell& x, std::uint32_t heads, std::uint32_t width, const std::uint32_t* geometry) {
    const std::uint32_t rows = x->dims[2];
    if (contiguous(geometry)) {
        return emit_.reshape(x, {1, rows, heads, width});
    }
    for (const std::uint32_t which : {0u, 1u}) {
        if (pair_of(geometry, width, which)) {
            const Cell pairs = emit_.reshape(x, {1, rows, heads, 2 * width});
            return emit_.slice(pairs, {0, 0, 0, which * width}, {1, rows, heads, (which + 1) * width});
        }
    }
    throw Fault(FaultKind::Invalid, "expected a view of whole heads, or of the halves of pairs");
}

void Lowering::rms_norm(std::size_t index) {
    const Command& norm = command(index);
    const Cell x = in(index, 0);
    const std::uint32_t heads = norm.dims[0];
    const std::uint32_t width = norm.dims[1];
    const Dims dims{1, 1, x->dims[2], heads * width};
    const Cell into = destination(index, 2, dims, Dtype::BFLOAT16);
    if (heads == 1 && contiguous(norm.dims.data() + 2)) {
        define(index, 2, emit_.rms_norm(x, norm.scalar, gamma(index, 1, 0), into));
        return;
    }
    const Cell rows = heads_of(x, heads, width, norm.dims.data() + 2);
    const Cell normed = emit_.rms_norm(rows, norm.scalar, gamma(index, 1, 0));
    define(index, 2, emit_.reshape(normed, dims, into));
}

void Lowering::swiglu(std::size_t index) {
    if (const auto found = gated_.find(index); found != gated_.end()) {
        const auto [gate, up] = found->second;
        const Cell x = in(gate, 0);
        MatmulHow how;
        how.grid = true;
        const Cell u = emit_.matmul(in(up, 0), tensors_.transposed(slot(up, 1)), how);
        how.activation = Unary(UnaryType::SILU);
        const Cell g = emit_.matmul(x, tensors_.transposed(slot(gate, 1)), how);
        define(index, 2, emit_.product(g, u, destination(index, 2, g->dims, Dtype::BFLOAT16)));
        return;
    }
    const Cell g = emit_.unary(UnaryType::SILU, in(index, 0));
    const Cell into = destination(index, 2, g->dims, Dtype::BFLOAT16);
    define(index, 2, emit_.binary(Kind::Multiply, g, in(index, 1), std::nullopt, std::nullopt, std::nullopt, into));
}

// Nothing is computed here: what form cos and sin take depends on who uses them.
void Lowering::rotary(std::size_t index) {
    static_cast<void>(step(index, 0));
    for (const std::size_t operand : {1, 2}) {
        Slot& table = tensors_.slot(slot(index, operand));
        table.rotary_step = slot(index, 0);
        table.theta = command(index).scalar;
        table.sine = operand == 2;
        table.zeros = false;
    }
}

std::pair<Cell, Cell> Lowering::rotation(std::size_t index, std::size_t operand, std::uint32_t rotary,
                                         std::uint32_t width, std::uint32_t context) {
    const Slot& table = tensors_.slot(slot(index, operand));
    if (!table.rotary_step.has_value()) {
        throw Fault(FaultKind::Invalid, "expected the cosines and sines of a rotary embedding");
    }
    Rotation& rotation = tensors_.rotation(*table.rotary_step, table.theta, rotary, width, context);
    const std::shared_ptr<StepState> at = tensors_.slot(*table.rotary_step).step;
    Machine* machine = &machine_;
    emit_.note([&rotation, at, machine] {
        if (rotation.version == at->version) {
            return;
        }
        rotation.version = at->version;
        const std::array<std::pair<Cell, Cell>, 2> tables{
            {{rotation.cos, rotation.cos_table}, {rotation.sin, rotation.sin_table}}};
        for (const auto& [rows, from] : tables) {
            rows->tensor = ::ttnn::reshape(
                ::ttnn::embedding(at->positions->tensor, from->tensor, std::nullopt, tt_metal::Layout::TILE), shape(rows->dims));
            machine->extra(Kind::Embedding);
        }
    });
    return {rotation.cos, rotation.sin};
}

void Lowering::rope(std::size_t index) {
    const Command& rope = command(index);
    const Cell x = in(index, 0);
    const std::uint32_t heads = rope.dims[0];
    const std::uint32_t width = rope.dims[1];
    const std::uint32_t rotary = rope.dims[2];
    const std::uint32_t rows = x->dims[2];
    const auto [cos, sin] = rotation(index, 1, rotary, rotary, context_);
    const Cell by_head = emit_.transpose(emit_.reshape(x, {1, rows, heads, width}), 1, 2);
    Cell turned = by_head;
    if (rotary == width) {
        turned = emit_.rotate(by_head, cos, sin);
    } else {
        const Cell front = emit_.rotate(emit_.slice(by_head, {0, 0, 0, 0}, {1, heads, rows, rotary}), cos, sin);
        const Cell back = emit_.slice(by_head, {0, 0, 0, rotary}, {1, heads, rows, width});
        turned = emit_.concat({front, back}, 3);
    }
    const Dims dims{1, 1, rows, heads * width};
    define(index, 3, emit_.concat_heads(turned, destination(index, 3, dims, Dtype::BFLOAT16)));
}

void Lowering::attention(std::size_t index) {
    const Command& attention = command(index);
    const std::uint32_t heads = attention.dims[0];
    const std::uint32_t kv_heads = attention.dims[1];
    const std::uint32_t width = attention.dims[2];
    const auto by_head = [&](const Cell& x, std::uint32_t count) {
        return emit_.transpose(emit_.reshape(x, {1, x->dims[2], count, width}), 1, 2);
    };
    const Cell q = by_head(in(index, 0), heads);
    const Cell k = by_head(in(index, 1), kv_heads);
    const Cell v = by_head(in(index, 2), kv_heads);
    const Dims dims{1, 1, in(index, 0)->dims[2], heads * width};
    const Cell into = destination(index, 6, dims, Dtype::BFLOAT16);
    define(index, 6, attend({q, k, v, slot(index, 3), slot(index, 4), attention.dims[3], 0, step(index, 5)}, into));
}

void Lowering::sigmoid_gate(std::size_t index) {
    if (const auto found = attentions_.find(index); found != attentions_.end()) {
        lower_block(found->second);
        return;
    }
    const Command& command = commands_[index];
    const Cell x = in(index, 0);
    const Cell flat = in(index, 1);
    Cell gate = flat;
    if (!contiguous(command.dims.data() + 2)) {
        gate = emit_.reshape(heads_of(flat, command.dims[0], command.dims[1], command.dims.data() + 2), x->dims);
    }
    const Cell into = destination(index, 2, x->dims, Dtype::BFLOAT16);
    const Cell open = emit_.unary(UnaryType::SIGMOID, gate);
    define(index, 2, emit_.binary(Kind::Multiply, x, open, std::nullopt, std::nullopt, std::nullopt, into));
}

void Lowering::causal_conv(std::size_t index) {
    const Cell x = in(index, 0);
    const Cell into = destination(index, 4, x->dims, Dtype::BFLOAT16);
    define(index, 4, convolve({x, slot(index, 2), slot(index, 1), command(index).dims[0], {}, step(index, 3), false}, into));
}

void Lowering::gdn_gates(std::size_t index) {
    const Cell a = in(index, 0);
    const Cell b = in(index, 1);
    const std::uint32_t heads = a->dims[3];
    const Dims row{1, 1, 1, heads};
    const Cell bias = tensors_.derived(slot(index, 3), "bias", row, Dtype::BFLOAT16, [](const std::vector<float>& v) { return v; });
    const Cell rate = decay_rate(index, 2, heads);
    define(index, 4, emit_.unary(UnaryType::SIGMOID, b, destination(index, 4, b->dims, Dtype::BFLOAT16)));
    const Cell sum = emit_.binary(Kind::Add, a, bias, Dtype::FLOAT32);
    const Cell soft = emit_.unary(UnaryType::SOFTPLUS, sum);
    const Cell into = destination(index, 5, a->dims, Dtype::FLOAT32);
    define(index, 5, emit_.binary(Kind::Multiply, soft, rate, std::nullopt, std::nullopt, std::nullopt, into));
}

// `-exp(a_log)`, f32, computed once on the host.
Cell Lowering::decay_rate(std::size_t index, std::size_t operand, std::uint32_t heads) {
    return tensors_.derived(slot(index, operand), "rate", {1, 1, 1, heads}, Dtype::FLOAT32, [](const std::vector<float>& a_log) {
        std::vector<float> rate;
        for (const float value : a_log) {
            rate.push_back(-std::exp(value));
        }
        return rate;
    });
}

void Lowering::gated_delta(std::size_t index) {
    const Command& command = commands_[index];
    const std::uint32_t key_heads = command.dims[0];
    const std::uint32_t key_dim = command.dims[1];
    const std::uint32_t value_heads = command.dims[2];
    const std::uint32_t value_dim = command.dims[3];
    const Cell x = in(index, 0);
    const std::uint32_t rows = x->dims[2];
    // Each part as rows of heads; a key head stands before every value head that it serves.
    const auto part = [&](std::uint32_t from, std::uint32_t heads, std::uint32_t width, std::uint32_t repeat) {
        const Cell flat = emit_.slice(x, {0, 0, 0, from}, {1, 1, rows, from + heads * width});
        const Cell by_head = emit_.transpose(emit_.reshape(flat, {1, rows, heads, width}), 1, 2);
        if (repeat == 1) {
            return by_head;
        }
        std::vector<Cell> repeated;
        for (std::uint32_t head = 0; head < heads; ++head) {
            repeated.insert(repeated.end(), repeat, emit_.slice(by_head, {0, head, 0, 0}, {1, head + 1, rows, width}));
        }
        return emit_.concat(repeated, 1);
    };
    Delta delta;
    delta.q = part(0, key_heads, key_dim, value_heads / key_heads);
    delta.k = part(key_heads * key_dim, key_heads, key_dim, value_heads / key_heads);
    delta.v = part(2 * key_heads * key_dim, value_heads, value_dim, 1);
    delta.beta = in(index, 1);
    delta.log_decay = in(index, 2);
    delta.state = slot(index, 3);
    delta.step = step(index, 4);
    const Dims dims{1, 1, rows, value_heads * value_dim};
    const Cell into = destination(index, 5, dims, Dtype::BFLOAT16);
    define(index, 5, emit_.concat_heads(delta_rule(delta), into));
}

void Lowering::gated_norm(std::size_t index) {
    if (const auto found = delta_nets_.find(index); found != delta_nets_.end()) {
        lower_block(found->second);
        return;
    }
    const Command& command = commands_[index];
    const Cell x = in(index, 0);
    const std::uint32_t heads = command.dims[0];
    const std::uint32_t width = command.dims[1];
    const Cell rows = emit_.reshape(x, {1, x->dims[2], heads, width});
    const Cell normed = emit_.reshape(emit_.rms_norm(rows, command.scalar, plain_gamma(index, 2)), x->dims);
    const Cell gate = emit_.unary(UnaryType::SILU, in(index, 1));
    const Cell into = destination(index, 3, x->dims, Dtype::BFLOAT16);
    define(index, 3, emit_.binary(Kind::Multiply, normed, gate, std::nullopt, std::nullopt, std::nullopt, into));
}

Cell Lowering::plain_gamma(std::size_t index, std::size_t operand) {
    return tensors_.derived(slot(index, operand), "gamma", {1, 1, 1, spec(index, operand).cols}, Dtype::FLOAT32,
                            [](const std::vector<float>& w) { return w; });
}

// In prefill the row is selected by a product with a one, which is exact.
void Lowering::last_row(std::size_t index) {
    const Cell x = in(index, 0);
    const auto at = step(index, 1);
    const Dims dims{1, 1, 1, x->dims[3]};
    if (x->dims[2] == 1 && !value(index, 2).live_out) {
        define(index, 2, x);
        return;
    }
    const Cell into = destination(index, 2, dims, Dtype::BFLOAT16);
    define(index, 2, select(x, 1, [at](std::uint32_t, std::uint32_t row) { return row == at->valid - 1; }, "last",
                            [at] { return std::to_string(at->valid); }, into));
}

void Lowering::argmax(std::size_t index) {
    const Cell into = tensors_.write(slot(index, 1), {1, 1, 1, 1}, Dtype::UINT32, machine_.levers().preallocate);
    define(index, 1, emit_.argmax(in(index, 0), into));
}

// --- Blocks -----------------------------------------------------------------------------------

std::optional<Lowering::Attention> Lowering::attention_block(std::size_t gate) {
    const auto attention = sole(gate, 0, Op::Attention);
    const auto query = sole(gate, 1, Op::Linear, 2);
    if (!attention || !query) {
        return std::nullopt;
    }
    const auto turned_q = sole(*attention, 0, Op::Rope);
    const auto turned_k = sole(*attention, 1, Op::Rope);
    const auto v = sole(*attention, 2, Op::Linear);
    if (!turned_q || !turned_k || !v) {
        return std::nullopt;
    }
    const auto normed_q = sole(*turned_q, 0, Op::RmsNorm);
    const auto normed_k = sole(*turned_k, 0, Op::RmsNorm);
    if (!normed_q || !normed_k) {
        return std::nullopt;
    }
    const auto k = sole(*normed_k, 0, Op::Linear);
    const std::uint32_t width = command(*attention).dims[2];
    const bool in_pairs = operands_[*normed_q][0] == operands_[gate][1] &&
                          pair_of(command(*normed_q).dims.data() + 2, width, 0) &&
                          pair_of(command(gate).dims.data() + 2, width, 1);
    const bool of_one = k && operands_[*query][0] == operands_[*k][0] && operands_[*k][0] == operands_[*v][0];
    if (!in_pairs || !of_one || width % 64 != 0) {
        return std::nullopt;
    }
    Attention block{*query, *k, *v, *normed_q, *normed_k, *turned_q, *attention, gate, {}};
    block.parts = {*query, *k, *v, *normed_q, *normed_k, *turned_q, *turned_k, *attention};
    return block;
}

void Lowering::lower_block(const Attention& block) {
    const Command& attention = command(block.attention);
    const std::uint32_t heads = attention.dims[0];
    const std::uint32_t kv_heads = attention.dims[1];
    const std::uint32_t width = attention.dims[2];
    const std::uint32_t rotary = command(block.rope).dims[2];
    const std::vector<std::uint32_t> order = rotated_order(width, rotary);
    const auto rows_of = [&](std::uint32_t count, std::uint32_t stride, std::uint32_t offset, bool turned) {
        std::vector<std::uint32_t> rows;
        for (std::uint32_t head = 0; head < count; ++head) {
            for (std::uint32_t at = 0; at < width; ++at) {
                rows.push_back(head * stride + offset + (turned ? order[at] : at));
            }
        }
        return rows;
    };
    const std::uint32_t wq = slot(block.query, 1);
    const std::uint32_t wk = slot(block.k, 1);
    const std::uint32_t wv = slot(block.v, 1);
    const std::string of = std::to_string(wq) + ' ' + std::to_string(wk) + ' ' + std::to_string(wv);
    const Cell qkv_weight = tensors_.projection("qkv " + of, {{wq, rows_of(heads, 2 * width, 0, true)},
                                                              {wk, rows_of(kv_heads, width, 0, true)},
                                                              {wv, rows_of(kv_heads, width, 0, false)}});
    const Cell gate_weight = tensors_.projection("gate " + of, {{wq, rows_of(heads, 2 * width, width, false)}});

    const Cell x = in(block.query, 0);
    MatmulHow how;
    how.grid = true;
    const Cell qkv = emit_.matmul(x, qkv_weight, how);
    how.activation = Unary(UnaryType::SIGMOID);
    const Cell open = emit_.matmul(x, gate_weight, how);
    const auto [q, k, v] = emit_.create_heads(qkv, heads, kv_heads);
    const auto [cos, sin] = rotation(block.rope, 1, rotary, width, attention.dims[3]);
    const Cell normed_q = emit_.rms_norm(q, command(block.norm_q).scalar, gamma(block.norm_q, 1, rotary));
    const Cell normed_k = emit_.rms_norm(k, command(block.norm_k).scalar, gamma(block.norm_k, 1, rotary));
    const Cell turned_q = emit_.rotate(normed_q, cos, sin);
    const Cell turned_k = emit_.rotate(normed_k, cos, sin);
    const Cell mixed = attend({turned_q, turned_k, v, slot(block.attention, 3), slot(block.attention, 4),
                               attention.dims[3], rotary, step(block.attention, 5)},
                              nullptr);
    define(block.gate, 2, emit_.product(mixed, open, destination(block.gate, 2, mixed->dims, Dtype::BFLOAT16)));
}

std::optional<Lowering::DeltaNet> Lowering::delta_block(std::size_t norm) {
    const auto delta = sole(norm, 0, Op::GatedDelta);
    const auto z = sole(norm, 1, Op::Linear);
    if (!delta || !z) {
        return std::nullopt;
    }
    const auto conv = sole(*delta, 0, Op::CausalConv);
    const auto gates = sole(*delta, 1, Op::GdnGates);
    if (!conv || !gates || sole(*delta, 2, Op::GdnGates) != gates) {
        return std::nullopt;
    }
    const auto m = sole(*conv, 0, Op::Linear);
    const auto a = sole(*gates, 0, Op::Linear);
    const auto b = sole(*gates, 1, Op::Linear);
    const bool square = command(*delta).dims[1] == command(*delta).dims[3];
    if (!m || !a || !b || !square) {
        return std::nullopt;
    }
    return DeltaNet{*m, *z, *a, *b, *conv, *gates, *delta, norm, {*m, *z, *a, *b, *conv, *gates, *delta}};
}

void Lowering::lower_block(const DeltaNet& block) {
    const Command& rule = command(block.delta);
    const std::uint32_t key_heads = rule.dims[0];
    const std::uint32_t width = rule.dims[1];
    const std::uint32_t heads = rule.dims[2];
    const Cell x = in(block.m, 0);
    const std::uint32_t rows = x->dims[2];

    // Where a key head serves several value heads, its channels are projected once for each, so that
    // all that follows has as many key heads as value heads.
    std::vector<std::uint32_t> channels;
    Cell weight;
    if (key_heads == heads) {
        weight = tensors_.transposed(slot(block.m, 1));
    } else {
        for (const std::uint32_t from : {0u, key_heads * width}) {
            for (std::uint32_t head = 0; head < heads; ++head) {
                for (std::uint32_t at = 0; at < width; ++at) {
                    channels.push_back(from + head / (heads / key_heads) * width + at);
                }
            }
        }
        for (std::uint32_t at = 0; at < heads * width; ++at) {
            channels.push_back(2 * key_heads * width + at);
        }
        weight = tensors_.projection("channels " + id(block.m, 1), {{slot(block.m, 1), channels}});
        }
    MatmulHow how;
    how.grid = true;
    const Cell m = emit_.matmul(x, weight, how);
    how.activation = Unary(UnaryType::SILU);
    const Cell gate = emit_.matmul(in(block.z, 0), tensors_.transposed(slot(block.z, 1)), how);
    how.activation = Unary(UnaryType::SIGMOID);
    const Cell beta = emit_.matmul(in(block.b, 0), tensors_.transposed(slot(block.b, 1)), how);
    how.activation = Unary(UnaryType::SOFTPLUS, std::vector<float>{kSoftplusBeta, kSoftplusThreshold});
    how.dtype = Dtype::FLOAT32;
    how.bias = tensors_.derived(slot(block.gates, 3), "bias", {1, 1, 1, heads}, Dtype::BFLOAT16,
                                [](const std::vector<float>& v) { return v; });
    const Cell soft = emit_.matmul(in(block.a, 0), tensors_.transposed(slot(block.a, 1)), how);
    const Cell rate = decay_rate(block.gates, 2, heads);

    const Cell mixed = convolve({m, slot(block.conv, 2), slot(block.conv, 1), command(block.conv).dims[0], channels,
                                 step(block.conv, 3), true},
                                nullptr);
    // The rule is f32 from here on: one cast for queries, keys and values.
    const auto [q, k, v] = emit_.create_heads(emit_.typecast(mixed, Dtype::FLOAT32), heads, heads);
    Delta delta;
    delta.q = q;
    delta.k = k;
    delta.v = v;
    delta.beta = beta;
    if (rows == 1) {
        delta.decay = emit_.binary(Kind::Multiply, soft, rate, std::nullopt, UnaryType::EXP);
    } else {
        delta.log_decay = emit_.product(soft, rate);
    }
    delta.state = slot(block.delta, 3);
    delta.step = step(block.delta, 4);
    const Cell o = delta_rule(delta);
    const Cell normed = emit_.concat_heads(emit_.rms_norm(o, command(block.norm).scalar, plain_gamma(block.norm, 2)));
    define(block.norm, 3, emit_.product(normed, gate, destination(block.norm, 3, gate->dims, Dtype::BFLOAT16)));
}

}  // namespace tt::on_ttnn
