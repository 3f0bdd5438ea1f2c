// Operations as programs: what is checked and prepared once for a set of shapes, and the cache that
// finds it again. The key is what ttnn's is: operation, shapes, layouts, options.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "layout.hpp"
#include "numerics.hpp"
#include "tt-backend-tenstorrent/src/bridge.rs.h"
#include "workers.hpp"

namespace tt {

constexpr std::size_t kOperands = 7;
constexpr std::size_t kDims = 5;

// A tensor on the device. `data` is null in an empty slot.
struct DeviceTensor {
    Spec spec{};
    std::uint8_t* data = nullptr;

    template <typename T>
    Matrix<T> matrix(std::uint32_t batch = 0) const {
        const std::size_t size = std::size_t{tiles_for(spec.rows)} * tiles_for(spec.cols) * kTileElements;
        return {reinterpret_cast<T*>(data) + batch * size, spec.rows, spec.cols};
    }

    template <typename T>
    T* flat() const {
        return reinterpret_cast<T*>(data);
    }

    // Elements of the tensor, and bytes of its rows on the host and of its place in DRAM.
    static std::uint64_t elements(const Spec& spec);
    static std::uint64_t host_bytes(const Spec& spec);
    static std::uint64_t device_bytes(const Spec& spec);
};

// A checked operation and what it prepared.
struct Program {
    // The frequencies of a rotary embedding.
    std::vector<float> table;
};

// What an operation runs with.
struct Call {
    const Arithmetic& how;
    Workers& workers;
    const Command& command;
    std::array<const DeviceTensor*, kOperands> operands;

    const DeviceTensor& operand(std::size_t index) const { return *operands[index]; }
    std::uint32_t dim(std::size_t index) const { return command.dims[index]; }
    Matrix<std::uint16_t> bf16(std::size_t index, std::uint32_t batch = 0) const {
        return operand(index).matrix<std::uint16_t>(batch);
    }
    Matrix<float> f32(std::size_t index, std::uint32_t batch = 0) const {
        return operand(index).matrix<float>(batch);
    }
};

// The position of a step and its valid rows, as they lie in front of the ids.
struct StepView {
    std::uint32_t start;
    std::uint32_t rows;
    const std::uint32_t* ids;

    explicit StepView(const DeviceTensor& tensor)
        : start(tensor.flat<std::uint32_t>()[0]),
          rows(tensor.flat<std::uint32_t>()[1]),
          ids(tensor.flat<std::uint32_t>() + 2) {}
};

// Checks shapes and prepares; throws `FaultKind::Invalid`.
Program build_program(const Call& call);

// Runs what was checked.
void run_program(const Call& call, const Program& program);

// The number of operands that an operation has.
std::size_t operand_count(Op op);

// Throws `FaultKind::Invalid` with the operation's name unless `holds`.
void require(bool holds, const Call& call, const char* what);

class ProgramCache {
public:
    const Program& get(const Call& call);

    std::uint64_t hits() const { return hits_; }
    std::uint64_t misses() const { return misses_; }

private:
    struct Key {
        std::array<std::uint32_t, 1 + kDims + 2 + kOperands * 5> words{};
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const noexcept;
    };

    std::unordered_map<Key, Program, Hash> programs_;
    std::uint64_t hits_ = 0;
    std::uint64_t misses_ = 0;
};

}  // namespace tt
