#include "program.hpp"

#include <bit>

#include "fault.hpp"
#include "ops/ops.hpp"

namespace tt {

std::uint64_t DeviceTensor::elements(const Spec& spec) {
    return std::uint64_t{spec.batch} * spec.rows * spec.cols;
}

std::uint64_t DeviceTensor::host_bytes(const Spec& spec) {
    return elements(spec) * (spec.dtype == DataType::Bf16 ? 2 : 4);
}

std::uint64_t DeviceTensor::device_bytes(const Spec& spec) {
    if (spec.page == Page::RowMajor) {
        return host_bytes(spec);
    }
    const std::uint64_t tiles = std::uint64_t{spec.batch} * tiles_for(spec.rows) * tiles_for(spec.cols);
    return tiles * kTileElements * (spec.dtype == DataType::Bf16 ? 2 : 4);
}

namespace {

struct Operation {
    const char* name;
    std::size_t operands;
    void (*check)(const Call&, Program&);
    void (*run)(const Call&, const Program&);
};

const Operation& operation(Op op) {
    static constexpr Operation kNone{"unknown", 0, nullptr, nullptr};
    switch (op) {
#define TT_OPERATION(NAME, COUNT, SPACE)                                             \
    case Op::NAME: {                                                                 \
        static constexpr Operation kEntry{#NAME, COUNT, ops::SPACE::check, ops::SPACE::run}; \
        return kEntry;                                                               \
    }
        TT_OPERATION(Embed, 3, embed)
        TT_OPERATION(Linear, 3, linear)
        TT_OPERATION(LmHead, 3, linear)
        TT_OPERATION(Add, 3, add)
        TT_OPERATION(RmsNorm, 3, rms_norm)
        TT_OPERATION(Swiglu, 3, swiglu)
        TT_OPERATION(Rotary, 3, rotary)
        TT_OPERATION(Rope, 4, rope)
        TT_OPERATION(Attention, 7, attention)
        TT_OPERATION(SigmoidGate, 3, sigmoid_gate)
        TT_OPERATION(CausalConv, 5, causal_conv)
        TT_OPERATION(GdnGates, 6, gdn_gates)
        TT_OPERATION(GatedDelta, 6, gated_delta)
        TT_OPERATION(GatedNorm, 4, gated_norm)
        TT_OPERATION(LastRow, 3, last_row)
        TT_OPERATION(Argmax, 2, argmax)
#undef TT_OPERATION
        default: return kNone;
    }
}

}  // namespace

std::size_t operand_count(Op op) { return operation(op).operands; }

void require(bool holds, const Call& call, const char* what) {
    if (!holds) {
        throw Fault(FaultKind::Invalid, std::string(operation(call.command.op).name) + ": expected " + what);
    }
}

Program build_program(const Call& call) {
    Program program;
    const Operation& entry = operation(call.command.op);
    require(entry.check != nullptr, call, "an operation of this driver");
    entry.check(call, program);
    return program;
}

void run_program(const Call& call, const Program& program) { operation(call.command.op).run(call, program); }

std::size_t ProgramCache::Hash::operator()(const Key& key) const noexcept {
    std::uint64_t hash = 0x9e3779b97f4a7c15;
    for (const std::uint32_t word : key.words) {
        hash = (hash ^ word) * 0xff51afd7ed558ccd;
        hash ^= hash >> 32;
    }
    return hash;
}

const Program& ProgramCache::get(const Call& call) {
    Key key;
    std::size_t at = 0;
    key.words[at++] = static_cast<std::uint32_t>(call.command.op);
    for (const std::uint32_t dim : call.command.dims) {
        key.words[at++] = dim;
    }
    const auto scalar = std::bit_cast<std::uint64_t>(call.command.scalar);
    key.words[at++] = static_cast<std::uint32_t>(scalar);
    key.words[at++] = static_cast<std::uint32_t>(scalar >> 32);
    for (const DeviceTensor* tensor : call.operands) {
        if (tensor == nullptr) {
            break;
        }
        const Spec& spec = tensor->spec;
        for (const std::uint32_t word : {static_cast<std::uint32_t>(spec.dtype), static_cast<std::uint32_t>(spec.page),
                                         spec.batch, spec.rows, spec.cols}) {
            key.words[at++] = word;
        }
    }
    if (const auto found = programs_.find(key); found != programs_.end()) {
        ++hits_;
        return found->second;
    }
    ++misses_;
    return programs_.emplace(key, build_program(call)).first->second;
}

}  // namespace tt
