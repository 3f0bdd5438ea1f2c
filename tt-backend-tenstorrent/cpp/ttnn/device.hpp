// The device behind the driver: one mesh device, the tensors in its slots, the forms that weights and
// states take for the calls, and the plans of the lists seen so far.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "emit.hpp"

namespace tt::on_ttnn {

// A convolution's state as a ring of rows: row `next` takes the next input. A kernel of K taps reads K
// rows; which tap goes with which row depends on `next`, which the host knows.
struct Ring {
    Cell rows;  // bf16 [1, 1, 32, channels]
    std::uint32_t next = 0;
    // The checkpoint's channel of each channel; empty where they are the same.
    std::vector<std::uint32_t> channels;
};

// The tables of a rotary embedding, and the rows of a pass, gathered once a pass.
struct Rotation {
    Cell cos_table;
    Cell sin_table;
    Cell cos;
    Cell sin;
    std::uint64_t version = 0;
};

struct Slot {
    Spec spec{};
    bool exists = false;
    // Zeros that no list has read yet: a tensor that is only ever an output is never zeroed.
    bool zeros = false;
    Cell cell;
    // Bytes of small masters, from which forms are computed exactly.
    std::vector<std::uint8_t> host;
    std::shared_ptr<Ring> ring;
    std::shared_ptr<StepState> step;
    // Keys are stored with the two rotated halves of a head `width / 2` apart: 0, or the rotary width.
    std::uint32_t rotated = 0;
    // cos and sin of a pass: made where they are used, in the form that is used.
    std::optional<std::uint32_t> rotary_step;
    double theta = 0;
    bool sine = false;
};

// Where weights of a fused projection come from: rows of slots, in the order of the projection's
// outputs. `kNoRow` gives zeros.
constexpr std::uint32_t kNoRow = 0xffffffff;
struct RowsOf {
    std::uint32_t slot;
    std::vector<std::uint32_t> rows;
};

class Tensors {
public:
    explicit Tensors(Machine& machine) : machine_(machine) {}

    Slot& slot(std::uint32_t index);
    void allocate(const Allocation& allocation);
    void upload(std::uint32_t index, rust::Slice<const std::uint8_t> bytes, bool element_by_element);
    void download(std::uint32_t index, rust::Slice<std::uint8_t> bytes);
    void release(std::uint32_t index);
    bool exists(std::uint32_t index) const { return index < slots_.size() && slots_[index].exists; }
    void clear();
    // What a command made, to the host and back, element by element: residency left out.
    void round_trip(const Command& command);

    // A slot's tensor, made if it is still to be zeroed.
    Cell read(std::uint32_t index);
    // The cell that an output of a list is written to.
    Cell write(std::uint32_t index, const Dims& dims, Dtype dtype, bool preallocate);

    // A weight [out, in] as [in, out]: what `matmul` takes without transposing at every call. The
    // checkpoint's own form is given up and made again where it is asked for.
    Cell transposed(std::uint32_t index);
    // Rows of weights as one [in, out] matrix.
    Cell projection(const std::string& key, const std::vector<RowsOf>& parts);
    // A table whose rows `embedding` gathers.
    Cell table(std::uint32_t index);
    // A small master, computed with on the host and staged in another form, once.
    Cell derived(std::uint32_t index, const std::string& key, const Dims& dims, Dtype dtype,
                 const std::function<std::vector<float>(const std::vector<float>&)>& make);
    std::vector<float> host_values(std::uint32_t index);

    const std::shared_ptr<Ring>& ring(std::uint32_t index, const std::vector<std::uint32_t>& channels);
    Rotation& rotation(std::uint32_t step, double theta, std::uint32_t rotary, std::uint32_t width, std::uint32_t context);

    std::uint64_t f32_staged_bytes = 0;
    std::uint64_t writes = 0;
    std::uint64_t bytes_written = 0;
    std::uint64_t reads = 0;
    std::uint64_t bytes_read = 0;
    std::uint64_t allocations = 0;

private:
    void write_step(Slot& slot, rust::Slice<const std::uint8_t> bytes);
    void advance(const StepState& step);
    std::vector<bfloat16> weight_rows(std::uint32_t index);
    void forget_forms(std::uint32_t index);
    static std::vector<float> ring_values(const Slot& state);
    std::vector<float> rotary_values(const Slot& table);

    Machine& machine_;
    std::vector<Slot> slots_;
    struct Form {
        std::vector<std::uint32_t> of;
        Cell cell;
    };
    std::unordered_map<std::string, Form> forms_;
    std::unordered_map<std::string, Rotation> rotations_;
};

inline std::uint64_t elements(const Spec& spec) { return std::uint64_t{spec.batch} * spec.rows * spec.cols; }
inline std::size_t element_bytes(DataType dtype) { return dtype == DataType::Bf16 ? 2 : 4; }

inline Dtype dtype_of(const Spec& spec) {
    return spec.dtype == DataType::Bf16 ? Dtype::BFLOAT16 : spec.dtype == DataType::F32 ? Dtype::FLOAT32 : Dtype::UINT32;
}

// Rows that activations of `rows` tokens have on the device: one, or whole tiles, so that no
// operation meets padding that it would have to know of.
inline std::uint32_t device_rows(std::uint32_t rows) { return rows == 1 ? 1 : round_up(rows, 32); }

inline Dims activation_dims(const Spec& spec) { return {1, spec.batch, device_rows(spec.rows), spec.cols}; }
inline Dims exact_dims(const Spec& spec) { return {1, spec.batch, spec.rows, spec.cols}; }

}  // namespace tt::on_ttnn
