#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "../model/fault.hpp"
#include "blocks.hpp"
#include "device.hpp"

namespace tt::on_ttnn {
namespace {

using tt_metal::Layout;

// Masters up to this size are kept on the host too: norms, taps, decays.
constexpr std::size_t kSmall = 1 << 20;

template <typename T>
std::vector<T> aligned(rust::Slice<const std::uint8_t> bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
}

// Elements of a master, without a copy where its bytes are aligned for them, as those of a mapped file
// mostly are.
template <typename T>
void with_elements(rust::Slice<const std::uint8_t> bytes, const std::function<void(const T*)>& use) {
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) == 0) {
        use(reinterpret_cast<const T*>(bytes.data()));
    } else {
        use(aligned<T>(bytes).data());
    }
}

float rotary_frequency(double theta, std::uint32_t pair, std::uint32_t rotary) {
    return static_cast<float>(1.0 / std::pow(theta, 2.0 * pair / rotary));
}

Cell held(const Dims& dims, Dtype dtype, Tensor&& tensor) {
    return std::make_shared<Node>(Node{dims, dtype, std::move(tensor), true});
}

}  // namespace

Slot& Tensors::slot(std::uint32_t index) {
    if (index >= slots_.size() || !slots_[index].exists) {
        Fault fault(FaultKind::Unbacked, "a tensor whose creation failed is used");
        fault.report.slot = index;
        throw fault;
    }
    return slots_[index];
}

void Tensors::allocate(const Allocation& allocation) {
    if (allocation.slot >= slots_.size()) {
        slots_.resize(std::size_t{allocation.slot} + 1);
    }
    release(allocation.slot);
    Slot& slot = slots_[allocation.slot];
    slot.spec = allocation.spec;
    slot.exists = true;
    slot.zeros = true;
    ++allocations;
}

void Tensors::release(std::uint32_t index) {
    if (index < slots_.size() && slots_[index].exists) {
        forget_forms(index);
        if (slots_[index].cell != nullptr) {
            slots_[index].cell->tensor = Tensor();
        }
        slots_[index] = Slot{};
    }
}

void Tensors::clear() {
    slots_.clear();
    forms_.clear();
    rotations_.clear();
}

void Tensors::round_trip(const Command& command) {
    for (const std::uint32_t index : command.operands) {
        const bool whole = exists(index) && slots_[index].cell != nullptr && allocated(slots_[index].cell->tensor);
        const bool made = whole && !slots_[index].cell->held && slots_[index].spec.dtype == DataType::Bf16;
        if (!made) {
            continue;
        }
        Node& node = *slots_[index].cell;
        const std::vector<bfloat16> narrow = node.tensor.to_vector<bfloat16>();
        std::vector<float> wide;
        for (const bfloat16 value : narrow) {
            wide.push_back(static_cast<float>(value));
        }
        node.tensor = Tensor::from_vector<float>(
            wide, {shape(node.dims), tt_metal::TensorLayout(node.dtype, tt_metal::PageConfig(Layout::TILE), tt_metal::MemoryConfig())},
            machine_.device());
        ++reads;
        ++writes;
        bytes_read += narrow.size() * 2;
        bytes_written += narrow.size() * 2;
        f32_staged_bytes += narrow.size() * 2;
    }
}

void Tensors::forget_forms(std::uint32_t index) {
    std::erase_if(forms_, [&](const auto& entry) {
        const auto& of = entry.second.of;
        return std::find(of.begin(), of.end(), index) != of.end();
    });
    const std::string step = std::to_string(index) + ' ';
    std::erase_if(rotations_, [&](const auto& entry) { return entry.first.starts_with(step); });
}

void Tensors::upload(std::uint32_t index, rust::Slice<const std::uint8_t> bytes, bool element_by_element) {
    Slot& to = slot(index);
    const Spec& spec = to.spec;
    if (bytes.size() != elements(spec) * element_bytes(spec.dtype)) {
        Fault fault(FaultKind::Invalid, "an upload of another size than its tensor");
        fault.report.slot = index;
        throw fault;
    }
    ++writes;
    bytes_written += bytes.size();
    if (spec.dtype == DataType::U32) {
        write_step(to, bytes);
        return;
    }
    forget_forms(index);
    to.zeros = false;
    if (bytes.size() <= kSmall) {
        to.host.assign(bytes.begin(), bytes.end());
    }
    // Taps and their like are never read by a call in this form.
    if (spec.page == Page::RowMajor) {
        return;
    }
    const Dims dims = exact_dims(spec);
    Tensor tensor;
    if (spec.dtype == DataType::F32) {
        tensor = machine_.upload(dims, Dtype::FLOAT32, Layout::TILE, aligned<float>(bytes));
    } else if (element_by_element) {
        // What the bulk path replaced: every element through a float, one after the other.
        const auto narrow = aligned<std::uint16_t>(bytes);
        std::vector<float> wide;
        for (const std::uint16_t bits : narrow) {
            wide.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
        }
        f32_staged_bytes += bytes.size();
        tensor = Tensor::from_vector<float>(
            wide, {shape(dims), tt_metal::TensorLayout(Dtype::BFLOAT16, tt_metal::PageConfig(Layout::TILE), tt_metal::MemoryConfig())},
            machine_.device());
    } else {
        with_elements<bfloat16>(bytes, [&](const bfloat16* values) { tensor = machine_.upload_bf16(dims, Layout::TILE, values); });
    }
    if (to.cell == nullptr) {
        to.cell = held(dims, dtype_of(spec), std::move(tensor));
    } else {
        to.cell->tensor = std::move(tensor);
    }
}

// A step's ids and position. In decode the position on the device is advanced there; it is written
// only where a sequence begins or jumps.
void Tensors::write_step(Slot& slot, rust::Slice<const std::uint8_t> bytes) {
    const std::vector<std::uint32_t> words = aligned<std::uint32_t>(bytes);
    const std::uint32_t tokens = slot.spec.cols - 2;
    auto& queue = machine_.device()->mesh_command_queue();
    if (slot.step == nullptr) {
        slot.step = std::make_shared<StepState>();
        slot.zeros = false;
        StepState& step = *slot.step;
        step.rows = device_rows(tokens);
        const auto kept = [&](Dtype dtype, std::uint32_t count) {
            return held({1, 1, 1, count}, dtype,
                        tt_metal::create_device_tensor({::ttnn::Shape({1, count}),
                                                        tt_metal::TensorLayout(dtype, tt_metal::PageConfig(Layout::ROW_MAJOR),
                                                                               tt_metal::MemoryConfig())},
                                                       machine_.device()));
        };
        step.ids = kept(Dtype::UINT32, step.rows);
        step.positions = kept(Dtype::UINT32, step.rows);
        if (step.rows == 1) {
            step.current = kept(Dtype::INT32, 1);
            // Compiled here, so that no later step compiles them; what they leave is written over below.
            advance(step);
        }
    }
    StepState& step = *slot.step;
    const bool advances = step.rows == 1 && step.version != 0 && words[0] == step.start + 1;
    step.start = words[0];
    step.valid = words[1];
    ++step.version;
    std::vector<std::uint32_t> padded(std::max<std::size_t>(step.rows, 16), 0);
    std::copy_n(words.begin() + 2, tokens, padded.begin());
    const auto send = [&](const Cell& cell) {
        tt_metal::copy_to_device(queue, reinterpret_cast<const std::byte*>(padded.data()), cell->tensor);
    };
    send(step.ids);
    bytes_written -= bytes.size() - std::size_t{step.rows} * 4;
    if (advances) {
        advance(step);
        return;
    }
    for (std::uint32_t i = 0; i < padded.size(); ++i) {
        padded[i] = step.start + std::min(i, step.rows - 1);
    }
    send(step.positions);
    ++writes;
    bytes_written += std::size_t{step.rows} * 4;
    if (step.current != nullptr) {
        send(step.current);
        ++writes;
        bytes_written += 4;
    }
}

void Tensors::advance(const StepState& step) {
    for (const Cell& cell : {step.positions, step.current}) {
        static_cast<void>(::ttnn::operations::experimental::plus_one(cell->tensor));
        machine_.extra(Kind::PlusOne);
    }
}

// A slot's tensor in the form that a checkpoint has. Where that was given up for another form, it is made
// again from it.
Cell Tensors::read(std::uint32_t index) {
    Slot& from = slot(index);
    if (from.cell == nullptr || (from.zeros && !allocated(from.cell->tensor))) {
        if (!from.zeros && from.spec.page == Page::Tile && from.cell == nullptr) {
            Fault fault(FaultKind::Unbacked, "a tensor that no list has written is used");
            fault.report.slot = index;
            throw fault;
        }
        const Dims dims = activation_dims(from.spec);
        from.cell = held(dims, dtype_of(from.spec), machine_.zeros(dims, dtype_of(from.spec)));
        from.zeros = false;
    }
    if (!allocated(from.cell->tensor)) {
        const auto transposed = forms_.find("transposed " + std::to_string(index));
        const auto table = forms_.find("table " + std::to_string(index));
        if (transposed != forms_.end()) {
            from.cell->tensor = ::ttnn::transpose(transposed->second.cell->tensor, 2, 3);
        } else if (table != forms_.end()) {
            from.cell->tensor = ::ttnn::reshape(::ttnn::to_layout(table->second.cell->tensor, Layout::TILE), shape(from.cell->dims));
        }
    }
    return from.cell;
}

Cell Tensors::write(std::uint32_t index, const Dims& dims, Dtype dtype, bool preallocate) {
    Slot& to = slot(index);
    to.zeros = false;
    if (to.cell == nullptr) {
        to.cell = std::make_shared<Node>(Node{dims, dtype, Tensor(), false});
    }
    if (preallocate && !allocated(to.cell->tensor)) {
        const bool ids = dtype == Dtype::UINT32;
        to.cell->tensor = ids ? tt_metal::create_device_tensor(
                                    {::ttnn::Shape({1, 1, 1}),
                                     tt_metal::TensorLayout(dtype, tt_metal::PageConfig(Layout::ROW_MAJOR), tt_metal::MemoryConfig())},
                                    machine_.device())
                              : machine_.create(dims, dtype, Layout::TILE);
        to.cell->held = true;
    }
    return to.cell;
}

Cell Tensors::transposed(std::uint32_t index) {
    const std::string key = "transposed " + std::to_string(index);
    if (const auto found = forms_.find(key); found != forms_.end()) {
        return found->second.cell;
    }
    const Cell weight = read(index);
    Cell form = held({1, 1, weight->dims[3], weight->dims[2]}, weight->dtype, ::ttnn::transpose(weight->tensor, 2, 3));
    forms_[key] = {{index}, form};
    weight->tensor = Tensor();
    return form;
}

Cell Tensors::table(std::uint32_t index) {
    const std::string key = "table " + std::to_string(index);
    if (const auto found = forms_.find(key); found != forms_.end()) {
        return found->second.cell;
    }
    const Cell weight = read(index);
    Tensor rows = ::ttnn::reshape(::ttnn::to_layout(weight->tensor, Layout::ROW_MAJOR),
                                  ::ttnn::Shape({weight->dims[2], weight->dims[3]}));
    Cell form = held(weight->dims, weight->dtype, std::move(rows));
    forms_[key] = {{index}, form};
    weight->tensor = Tensor();
    return form;
}

std::vector<bfloat16> Tensors::weight_rows(std::uint32_t index) {
    const Slot& from = slot(index);
    if (!from.host.empty()) {
        std::vector<bfloat16> values(from.host.size() / 2);
        std::memcpy(static_cast<void*>(values.data()), from.host.data(), from.host.size());
        return values;
    }
    return read(index)->tensor.to_vector<bfloat16>();
}

Cell Tensors::projection(const std::string& key, const std::vector<RowsOf>& parts) {
    if (const auto found = forms_.find(key); found != forms_.end()) {
        return found->second.cell;
    }
    std::size_t outs = 0;
    std::vector<std::uint32_t> of;
    for (const RowsOf& part : parts) {
        outs += part.rows.size();
        of.push_back(part.slot);
    }
    const std::uint32_t ins = slot(parts.front().slot).spec.cols;
    std::vector<bfloat16> matrix(outs * ins, bfloat16(0.0f));
    std::size_t column = 0;
    std::uint32_t loaded = kNoRow;
    std::vector<bfloat16> rows;
    for (const RowsOf& part : parts) {
        if (part.slot != loaded) {
            rows = weight_rows(part.slot);
            loaded = part.slot;
        }
        for (const std::uint32_t row : part.rows) {
            if (row != kNoRow) {
                const bfloat16* from = rows.data() + std::size_t{row} * ins;
                for (std::uint32_t i = 0; i < ins; ++i) {
                    matrix[std::size_t{i} * outs + column] = from[i];
                }
            }
            ++column;
        }
    }
    const Dims dims{1, 1, ins, static_cast<std::uint32_t>(outs)};
    Cell form = held(dims, Dtype::BFLOAT16, machine_.upload_bf16(dims, Layout::TILE, matrix.data()));
    forms_[key] = {std::move(of), form};
    return form;
}

std::vector<float> Tensors::host_values(std::uint32_t index) {
    const Slot& from = slot(index);
    if (from.host.empty()) {
        if (from.spec.dtype == DataType::F32) {
            return read(index)->tensor.to_vector<float>();
        }
        const std::vector<bfloat16> narrow = read(index)->tensor.to_vector<bfloat16>();
        return {narrow.begin(), narrow.end()};
    }
    std::vector<float> values(elements(from.spec));
    if (from.spec.dtype == DataType::F32) {
        std::memcpy(values.data(), from.host.data(), from.host.size());
    } else {
        for (std::size_t i = 0; i < values.size(); ++i) {
            std::uint16_t bits = 0;
            std::memcpy(&bits, from.host.data() + 2 * i, 2);
            values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
        }
    }
    return values;
}

Cell Tensors::derived(std::uint32_t index, const std::string& key, const Dims& dims, Dtype dtype,
                      const std::function<std::vector<float>(const std::vector<float>&)>& make) {
    const std::string full = key + ' ' + std::to_string(index);
    if (const auto found = forms_.find(full); found != forms_.end()) {
        return found->second.cell;
    }
    Cell form = held(dims, dtype, machine_.upload(dims, dtype, Layout::TILE, make(host_values(index))));
    forms_[full] = {{index}, form};
    return form;
}

// A state that a list has written as an ordinary tensor, or zeros, becomes a ring; the newest row
// comes last.
const std::shared_ptr<Ring>& Tensors::ring(std::uint32_t index, const std::vector<std::uint32_t>& channels) {
    Slot& state = slot(index);
    if (state.ring != nullptr && state.ring->channels == channels) {
        return state.ring;
    }
    const std::uint32_t width = channels.empty() ? state.spec.cols : static_cast<std::uint32_t>(channels.size());
    const Dims dims{1, 1, 32, width};
    auto ring = std::make_shared<Ring>();
    ring->next = state.spec.rows;
    ring->channels = channels;
    if (state.zeros) {
        ring->rows = held(dims, Dtype::BFLOAT16, machine_.zeros(dims, Dtype::BFLOAT16));
        state.zeros = false;
    } else {
        const std::vector<float> rows = state.ring != nullptr ? ring_values(state) : host_values(index);
        std::vector<float> wide(std::size_t{32} * width, 0.0f);
        for (std::uint32_t row = 0; row < state.spec.rows; ++row) {
            for (std::uint32_t at = 0; at < width; ++at) {
                wide[std::size_t{row} * width + at] =
                    rows[std::size_t{row} * state.spec.cols + (channels.empty() ? at : channels[at])];
            }
        }
        ring->rows = held(dims, Dtype::BFLOAT16, machine_.upload(dims, Dtype::BFLOAT16, Layout::TILE, wide));
    }
    state.cell = nullptr;
    state.host.clear();
    state.ring = std::move(ring);
    return state.ring;
}

// A ring's rows as the state's own, oldest first.
std::vector<float> Tensors::ring_values(const Slot& state) {
    const Ring& ring = *state.ring;
    const std::vector<bfloat16> rows = ring.rows->tensor.to_vector<bfloat16>();
    const std::uint32_t width = ring.rows->dims[3];
    const std::uint32_t kernel = state.spec.rows + 1;
    std::vector<float> values(elements(state.spec));
    for (std::uint32_t row = 0; row < state.spec.rows; ++row) {
        const std::uint32_t at = (ring.next + kernel - state.spec.rows + row) % kernel;
        for (std::uint32_t channel = 0; channel < width; ++channel) {
            const std::uint32_t of = ring.channels.empty() ? channel : ring.channels[channel];
            values[std::size_t{row} * state.spec.cols + of] = rows[std::size_t{at} * width + channel];
        }
    }
    return values;
}

// What a slot holds, row-major and in its own dtype, whatever form it has on the device.
void Tensors::download(std::uint32_t index, rust::Slice<std::uint8_t> bytes) {
    Slot& from = slot(index);
    const Spec& spec = from.spec;
    if (bytes.size() != elements(spec) * element_bytes(spec.dtype)) {
        throw Fault(FaultKind::Invalid, "a read of another size than its tensor");
    }
    ++reads;
    bytes_read += bytes.size();
    const auto narrow = [&](const std::vector<float>& values) {
        const std::vector<bfloat16> rounded(values.begin(), values.end());
        std::memcpy(bytes.data(), rounded.data(), bytes.size());
    };
    if (spec.dtype == DataType::U32) {
        std::array<std::uint32_t, 16> words{};
        tt_metal::copy_to_host(machine_.device()->mesh_command_queue(), read(index)->tensor,
                               reinterpret_cast<std::byte*>(words.data()));
        std::memcpy(bytes.data(), words.data(), bytes.size());
        return;
    }
    if (from.ring != nullptr) {
        narrow(ring_values(from));
        return;
    }
    if (from.rotary_step.has_value()) {
        narrow(rotary_values(from));
        return;
    }
    if (!from.host.empty()) {
        std::memcpy(bytes.data(), from.host.data(), bytes.size());
        return;
    }
    const Cell cell = read(index);
    const auto copy = [&](const auto& values) {
        using Element = typename std::decay_t<decltype(values)>::value_type;
        const std::vector<std::uint32_t> order = rotated_order(spec.cols, from.rotated == 0 ? spec.cols : from.rotated);
        auto* to = reinterpret_cast<Element*>(bytes.data());
        for (std::uint32_t batch = 0; batch < spec.batch; ++batch) {
            for (std::uint32_t row = 0; row < spec.rows; ++row) {
                const Element* line = values.data() + (std::size_t{batch} * cell->dims[2] + row) * spec.cols;
                for (std::uint32_t at = 0; at < spec.cols; ++at) {
                    const std::uint32_t of = from.rotated == 0 ? at : order[at];
                    std::memcpy(static_cast<void*>(to + (std::size_t{batch} * spec.rows + row) * spec.cols + of), line + at, sizeof(Element));
                }
            }
        }
    };
    if (spec.dtype == DataType::F32) {
        copy(cell->tensor.to_vector<float>());
    } else {
        copy(cell->tensor.to_vector<bfloat16>());
    }
}

// cos or sin of a pass, in the natural order; made on the host, for only a test reads it.
std::vector<float> Tensors::rotary_values(const Slot& table) {
    const StepState& step = *slot(*table.rotary_step).step;
    const std::uint32_t rotary = table.spec.cols;
    std::vector<float> values;
    for (std::uint32_t row = 0; row < table.spec.rows; ++row) {
        for (std::uint32_t at = 0; at < rotary; ++at) {
            const float angle = static_cast<float>(step.start + row) * rotary_frequency(table.theta, at % (rotary / 2), rotary);
            values.push_back(table.sine ? std::sin(angle) : std::cos(angle));
        }
    }
    return values;
}

// cos and sin for every position of the context, one row a position, in the order of the rotated head:
// first halves at the front, second halves from `width / 2` on, and ones and zeros for what passes.
Rotation& Tensors::rotation(std::uint32_t step, double theta, std::uint32_t rotary, std::uint32_t width,
                            std::uint32_t context) {
    const std::string key = std::to_string(step) + ' ' + std::to_string(theta) + ' ' + std::to_string(rotary) + ' ' +
                            std::to_string(width);
    Rotation& rotation = rotations_[key];
    if (rotation.cos_table == nullptr) {
        const std::uint32_t half = rotary / 2;
        std::vector<float> cosines(std::size_t{context} * width, 1.0f);
        std::vector<float> sines(std::size_t{context} * width, 0.0f);
        for (std::uint32_t j = 0; j < half; ++j) {
            const float frequency = rotary_frequency(theta, j, rotary);
            for (std::uint32_t position = 0; position < context; ++position) {
                const float angle = static_cast<float>(position) * frequency;
                for (const std::uint32_t at : {j, width / 2 + j}) {
                    cosines[std::size_t{position} * width + at] = std::cos(angle);
                    sines[std::size_t{position} * width + at] = std::sin(angle);
                }
            }
        }
        const auto stage = [&](const std::vector<float>& values) {
            const std::vector<bfloat16> narrow(values.begin(), values.end());
            return held({1, 1, context, width}, Dtype::BFLOAT16,
                        Tensor::from_span<bfloat16>({narrow.data(), narrow.size()},
                                                    {::ttnn::Shape({context, width}),
                                                     tt_metal::TensorLayout(Dtype::BFLOAT16, tt_metal::PageConfig(Layout::ROW_MAJOR),
                                                                            tt_metal::MemoryConfig())},
                                                    machine_.device()));
        };
        const std::uint32_t rows = slot(step).step->rows;
        rotation.cos_table = stage(cosines);
        rotation.sin_table = stage(sines);
        rotation.cos = std::make_shared<Node>(Node{{1, 1, rows, width}, Dtype::BFLOAT16, Tensor(), false});
        rotation.sin = std::make_shared<Node>(Node{{1, 1, rows, width}, Dtype::BFLOAT16, Tensor(), false});
    }
    return rotation;
}

}  // namespace tt::on_ttnn
