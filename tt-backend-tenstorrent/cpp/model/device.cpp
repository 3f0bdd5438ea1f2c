#include "device.hpp"

#include <chrono>
#include <string>
#include <thread>

#include "layout.hpp"
#include "model_options.hpp"

namespace tt {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t nanos_since(Clock::time_point start) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

std::size_t element_bytes(DataType dtype) { return dtype == DataType::Bf16 ? 2 : 4; }

}  // namespace

Device::Device(const DeviceOptions& options)
    : options_(options), how_(arithmetic(options)), dram_(options.dram_bytes), workers_(options.threads) {
    // Device, queue and program cache: found here, once, and held.
    counters_.handle_resolutions = 3;
}

// Keeps the facts of whatever leaves a call.
template <typename Work>
void Device::guarded(Work&& work) {
    try {
        require_present();
        work();
    } catch (const Fault& fault) {
        fault_ = fault.report;
        throw;
    }
}

void Device::require_present() const {
    if (lost_) {
        throw Fault(FaultKind::DeviceLost, "the device no longer answers");
    }
}

const DeviceTensor& Device::backed(std::uint32_t slot) const {
    if (slot >= slots_.size() || slots_[slot].data == nullptr) {
        Fault fault(FaultKind::Unbacked, "a tensor whose creation failed is used");
        fault.report.slot = slot;
        throw fault;
    }
    return slots_[slot];
}

void Device::allocate(const Allocation& allocation) {
    const std::uint64_t bytes = DeviceTensor::device_bytes(allocation.spec);
    std::uint8_t* data = dram_.allocate(bytes);
    if (data == nullptr) {
        Fault fault(FaultKind::OutOfMemory, "out of device memory: " + std::to_string(bytes) + " bytes requested, " +
                                                std::to_string(dram_.free()) + " free");
        fault.report.requested = bytes;
        fault.report.free = dram_.free();
        fault.report.largest = dram_.largest_hole();
        fault.report.slot = allocation.slot;
        throw fault;
    }
    if (allocation.slot >= slots_.size()) {
        slots_.resize(std::size_t{allocation.slot} + 1);
    }
    release_slot(allocation.slot);
    slots_[allocation.slot] = {allocation.spec, data};
    ++counters_.allocations;
}

// All or none.
void Device::allocate_all(rust::Slice<const Allocation> allocations) {
    for (std::size_t i = 0; i < allocations.size(); ++i) {
        try {
            allocate(allocations[i]);
        } catch (...) {
            for (std::size_t done = 0; done < i; ++done) {
                release_slot(allocations[done].slot);
            }
            throw;
        }
    }
}

void Device::release_slot(std::uint32_t slot) {
    if (slot < slots_.size() && slots_[slot].data != nullptr) {
        dram_.release(slots_[slot].data);
        slots_[slot] = {};
    }
}

void Device::release(rust::Slice<const std::uint32_t> slots) noexcept {
    for (const std::uint32_t slot : slots) {
        release_slot(slot);
    }
}

// What can refuse a whole batch, before anything of it happens.
void Device::admit(const Batch& batch) {
    if (submit_fails_.strikes()) {
        throw Fault(FaultKind::Submit, "the queue refused a list of " + std::to_string(batch.commands.size()) + " commands");
    }
    if (submit_hangs_.strikes()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(options_.timeout_ms));
        // What hangs may still run one day: nothing on this device can be relied on any more.
        lost_ = true;
        throw Fault(FaultKind::Timeout, "the queue did not finish within " + std::to_string(options_.timeout_ms) + " ms");
    }
    if (!batch.uploads.empty() && transfer_fails_.strikes()) {
        Fault fault(FaultKind::Transfer, "a staging call failed");
        for (const Upload& upload : batch.uploads) {
            fault.report.requested += upload.bytes.size();
        }
        throw fault;
    }
}

void Device::upload(const DeviceTensor& tensor, std::uint32_t slot, rust::Slice<const std::uint8_t> bytes) {
    const Spec& spec = tensor.spec;
    if (bytes.size() != DeviceTensor::host_bytes(spec)) {
        Fault fault(FaultKind::Invalid, "an upload of another size than its tensor");
        fault.report.slot = slot;
        throw fault;
    }
    ++counters_.h2d_writes;
    counters_.h2d_bytes += bytes.size();
    const std::size_t size = element_bytes(spec.dtype);
    if (spec.page == Page::RowMajor) {
        std::copy_n(bytes.data(), bytes.size(), tensor.data);
        return;
    }
    const std::size_t host = std::size_t{spec.rows} * spec.cols * size;
    const std::size_t device = std::size_t{tiles_for(spec.rows)} * tiles_for(spec.cols) * kTileElements * size;
    // Large masters are shared out by bands of whole tile rows.
    const std::uint32_t bands = tiles_for(spec.rows);
    for (std::uint32_t batch = 0; batch < spec.batch; ++batch) {
        const std::uint8_t* from = bytes.data() + batch * host;
        std::uint8_t* to = tensor.data + batch * device;
        if (options_.element_by_element && spec.dtype == DataType::Bf16) {
            counters_.f32_staged_bytes +=
                stage_element_by_element(from, spec.rows, spec.cols, 0, reinterpret_cast<std::uint16_t*>(to));
            continue;
        }
        workers_.share(bands, std::uint64_t{spec.cols} * kTile * size / 8, [&](std::uint32_t first, std::uint32_t last) {
            const std::uint32_t top = first * kTile;
            const std::uint32_t bottom = std::min(spec.rows, last * kTile);
            tilize(from + std::size_t{top} * spec.cols * size, bottom - top, spec.cols, size,
                   to + std::size_t{first} * tiles_for(spec.cols) * kTileElements * size);
        });
    }
}

// A batch that fails leaves none of its tensors behind, wherever it failed.
void Device::run_batch(const Batch& batch) {
    admit(batch);
    allocate_all(batch.allocations);
    try {
        stage_all(batch.uploads);
        run_all(batch.commands);
    } catch (...) {
        for (const Allocation& allocation : batch.allocations) {
            release_slot(allocation.slot);
        }
        throw;
    }
    release(batch.releases);
}

void Device::stage_all(rust::Slice<const Upload> uploads) {
    if (!uploads.empty()) {
        ++counters_.staging_calls;
    }
    for (const Upload& upload_of : uploads) {
        upload(backed(upload_of.slot), upload_of.slot, upload_of.bytes);
    }
}

void Device::run_all(rust::Slice<const Command> commands) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < commands.size(); ++i) {
        try {
            if (vanishes_.strikes()) {
                lost_ = true;
                throw Fault(FaultKind::DeviceLost, "the device disappeared");
            }
            execute(commands[i]);
        } catch (Fault& fault) {
            fault.report.command = static_cast<std::uint32_t>(i);
            throw;
        }
    }
    counters_.device_nanos += nanos_since(start);
}

void Device::execute(const Command& command) {
    const auto start = Clock::now();
    Call call{how_, workers_, command, {}};
    const std::size_t count = operand_count(command.op);
    for (std::size_t i = 0; i < count; ++i) {
        call.operands[i] = &backed(command.operands[i]);
    }
    run_program(call, programs_.get(call));
    ++counters_.commands;
    Time& time = times_[static_cast<std::size_t>(command.op)];
    ++time.calls;
    time.nanos += nanos_since(start);
}

void Device::submit(const Batch& batch) {
    guarded([&] {
        run_batch(batch);
        ++counters_.submits;
    });
}

void Device::transfer(std::uint32_t slot, std::uint64_t bytes) {
    if (transfer_fails_.strikes()) {
        Fault fault(FaultKind::Transfer, "a transfer of " + std::to_string(bytes) + " bytes failed");
        fault.report.requested = bytes;
        fault.report.slot = slot;
        throw fault;
    }
}

void Device::write(const Allocation& target, rust::Slice<const std::uint8_t> bytes) {
    guarded([&] {
        transfer(target.slot, bytes.size());
        if (target.slot >= slots_.size() || slots_[target.slot].data == nullptr) {
            allocate(target);
        }
        upload(backed(target.slot), target.slot, bytes);
    });
}

void Device::download(std::uint32_t slot, rust::Slice<std::uint8_t> bytes) {
    const DeviceTensor& tensor = backed(slot);
    const Spec& spec = tensor.spec;
    transfer(slot, bytes.size());
    if (bytes.size() != DeviceTensor::host_bytes(spec)) {
        throw Fault(FaultKind::Invalid, "a read of another size than its tensor");
    }
    ++counters_.d2h_reads;
    counters_.d2h_bytes += bytes.size();
    if (spec.page == Page::RowMajor) {
        std::copy_n(tensor.data, bytes.size(), bytes.data());
        return;
    }
    const std::size_t size = element_bytes(spec.dtype);
    const std::size_t host = std::size_t{spec.rows} * spec.cols * size;
    const std::size_t device = std::size_t{tiles_for(spec.rows)} * tiles_for(spec.cols) * kTileElements * size;
    for (std::uint32_t batch = 0; batch < spec.batch; ++batch) {
        untilize(tensor.data + batch * device, spec.rows, spec.cols, size, bytes.data() + batch * host);
    }
}

void Device::submit_and_read(const Batch& batch, std::uint32_t slot, rust::Slice<std::uint8_t> bytes) {
    guarded([&] {
        run_batch(batch);
        download(slot, bytes);
    });
}

void Device::inject(FaultKind kind, std::uint64_t after) noexcept {
    switch (kind) {
        case FaultKind::OutOfMemory: dram_.limit(after); break;
        case FaultKind::Submit: submit_fails_.arm(after); break;
        case FaultKind::Timeout: submit_hangs_.arm(after); break;
        case FaultKind::Transfer: transfer_fails_.arm(after); break;
        case FaultKind::DeviceLost: vanishes_.arm(after); break;
        default: break;
    }
}

Counters Device::counters() const noexcept {
    Counters counters = counters_;
    counters.cache_hits = programs_.hits();
    counters.cache_misses = programs_.misses();
    counters.used_bytes = dram_.used();
    return counters;
}

rust::Vec<OpTime> Device::op_times() const {
    rust::Vec<OpTime> times;
    for (std::size_t op = 0; op < times_.size(); ++op) {
        if (times_[op].calls != 0) {
            times.push_back({static_cast<Op>(op), times_[op].calls, times_[op].nanos});
        }
    }
    return times;
}

std::unique_ptr<Driver> open_model(const DeviceOptions& options) {
    if (!options.present) {
        throw Fault(FaultKind::NoDevice, "no device answers");
    }
    return std::make_unique<Device>(options);
}

}  // namespace tt
