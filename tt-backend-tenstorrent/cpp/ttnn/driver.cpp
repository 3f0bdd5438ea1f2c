// The driver: batches in, ttnn calls out.
#include "driver.hpp"

#include <chrono>
#include <cstring>

#include "faults.hpp"
#include "lower.hpp"
#include "open.hpp"
#include "tt-backend-tenstorrent/src/ttnn/bridge.rs.h"

namespace tt {
namespace {

using Clock = std::chrono::steady_clock;
using on_ttnn::Kind;

std::uint64_t nanos_since(Clock::time_point start) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

struct Time {
    std::uint64_t calls = 0;
    std::uint64_t nanos = 0;
};

on_ttnn::Levers levers(const TtnnOptions& options) {
    on_ttnn::Levers levers;
    levers.fuse = options.fuse;
    levers.preallocate = options.preallocate;
    levers.keep_plans = options.keep_plans;
    levers.keep_handles = options.keep_handles;
    levers.whole_lists = options.whole_lists;
    levers.round_trips = options.round_trips;
    return levers;
}

std::shared_ptr<::ttnn::MeshDevice> open_device(const TtnnOptions& options) {
    if (options.mock) {
        tt_metal::experimental::configure_mock_mode(ARCH::BLACKHOLE, 1);
    }
    return ::ttnn::open_mesh_device(static_cast<int>(options.device_id));
}

class TtnnDriver final : public Driver {
public:
    explicit TtnnDriver(const TtnnOptions& options)
        : options_(options),
          device_(open_device(options)),
          machine_(device_.get(), on_ttnn::fidelity(options.performance), levers(options)),
          tensors_(machine_) {}

    // Tensors first: the library does not survive one that outlives its device.
    ~TtnnDriver() override {
        plans_.clear();
        tensors_.clear();
        machine_.drop_scratch();
        try {
            ::ttnn::close_device(*device_);
        } catch (...) {
            // A device that is gone cannot be closed, and a destructor has nobody to tell.
        }
        device_.reset();
    }

    void submit(const Batch& batch) override {
        guarded([&] {
            run_batch(batch);
            ++counters_.submits;
        });
    }

    void write(const Allocation& target, rust::Slice<const std::uint8_t> bytes) override {
        guarded([&] {
            if (!tensors_.exists(target.slot)) {
                tensors_.allocate(target);
            }
            tensors_.upload(target.slot, bytes, false);
        });
    }

    void submit_and_read(const Batch& batch, std::uint32_t slot, rust::Slice<std::uint8_t> bytes) override {
        guarded([&] {
            run_batch(batch);
            tensors_.download(slot, bytes);
        });
    }

    void release(rust::Slice<const std::uint32_t> slots) noexcept override {
        for (const std::uint32_t slot : slots) {
            release_slot(slot);
        }
    }

    void inject(FaultKind, std::uint64_t) noexcept override {}

    FaultReport fault() const noexcept override { return fault_; }

    Counters counters() const noexcept override {
        Counters counters = counters_;
        counters.handle_resolutions = machine_.handle_resolutions;
        counters.h2d_writes = tensors_.writes + machine_.constant_uploads;
        counters.h2d_bytes = tensors_.bytes_written;
        counters.d2h_reads = tensors_.reads;
        counters.d2h_bytes = tensors_.bytes_read;
        counters.f32_staged_bytes = tensors_.f32_staged_bytes;
        counters.allocations = tensors_.allocations;
        const std::uint64_t programs = device_->num_program_cache_entries();
        counters.cache_misses = programs;
        counters.cache_hits = calls_made_ > programs ? calls_made_ - programs : 0;
        counters.used_bytes = memory().allocated;
        return counters;
    }

    rust::Vec<OpTime> op_times() const override {
        rust::Vec<OpTime> times;
        for (std::size_t op = 0; op < by_op_.size(); ++op) {
            if (by_op_[op].calls != 0) {
                times.push_back({static_cast<Op>(op), by_op_[op].calls, by_op_[op].nanos});
            }
        }
        return times;
    }

    rust::Vec<CallTime> calls() const {
        rust::Vec<CallTime> calls;
        for (std::size_t kind = 0; kind < by_kind_.size(); ++kind) {
            const std::uint64_t count = by_kind_[kind].calls + machine_.extras(static_cast<Kind>(kind));
            if (count != 0) {
                calls.push_back({on_ttnn::name(static_cast<Kind>(kind)), count, by_kind_[kind].nanos});
            }
        }
        return calls;
    }

    MemoryFigures memory() const {
        const auto view = tt_metal::detail::GetMemoryView(device_.get(), tt_metal::BufferType::DRAM);
        return {view.num_banks * view.total_bytes_allocated_per_bank, view.num_banks * view.total_bytes_free_per_bank,
                view.num_banks * view.largest_contiguous_bytes_free_per_bank};
    }

    void trim() {
        tt_metal::distributed::Synchronize(device_.get(), std::nullopt);
        plans_.clear();
        machine_.drop_scratch();
        // Programs keep tensors of their own, as the maps of reshapes.
        device_->clear_program_cache();
    }

private:
    // Whatever leaves a call leaves as a fault with its facts.
    template <typename Work>
    void guarded(Work&& work) {
        running_ = false;
        try {
            if (lost_) {
                throw Fault(FaultKind::DeviceLost, "the device no longer answers");
            }
            work();
        } catch (const std::exception& exception) {
            const Fault fault = on_ttnn::translate(exception, running_);
            fault_ = fault.report;
            lost_ = lost_ || fault.report.kind == FaultKind::Timeout || fault.report.kind == FaultKind::DeviceLost;
            throw fault;
        }
    }

    void run_batch(const Batch& batch) {
        try {
            for (const Allocation& allocation : batch.allocations) {
                drop_plans(allocation.slot);
                tensors_.allocate(allocation);
            }
            if (!batch.uploads.empty()) {
                ++counters_.staging_calls;
            }
            for (const Upload& upload : batch.uploads) {
                tensors_.upload(upload.slot, upload.bytes, options_.element_by_element);
            }
            run_commands(batch);
        } catch (...) {
            for (const Allocation& allocation : batch.allocations) {
                release_slot(allocation.slot);
            }
            throw;
        }
        release(batch.releases);
    }

    void run_commands(const Batch& batch) {
        if (batch.commands.empty()) {
            return;
        }
        const auto start = Clock::now();
        if (machine_.levers().whole_lists && !machine_.levers().round_trips) {
            run_list(batch);
        } else {
            for (const Command& command : batch.commands) {
                run_list({{}, {}, {&command, 1}, {}, {}});
                if (machine_.levers().round_trips) {
                    tensors_.round_trip(command);
                }
            }
        }
        counters_.commands += batch.commands.size();
        counters_.device_nanos += nanos_since(start);
    }

    void run_list(const Batch& batch) {
        on_ttnn::Plan fresh;
        on_ttnn::Plan* plan = &fresh;
        if (machine_.levers().keep_plans) {
            const std::string key = key_of(batch);
            const auto found = plans_.find(key);
            if (found == plans_.end()) {
                lower(batch, fresh);
                plan = &plans_.emplace(key, std::move(fresh)).first->second;
            } else {
                plan = &found->second;
            }
        } else {
            lower(batch, fresh);
        }
        running_ = true;
        for (const on_ttnn::PlanStep& step : plan->steps) {
            if (!machine_.levers().keep_handles) {
                machine_.resolve_handles();
            }
            const auto start = Clock::now();
            step.run();
            if (step.kind != Kind::Count) {
                const std::uint64_t nanos = nanos_since(start);
                Time& kind = by_kind_[static_cast<std::size_t>(step.kind)];
                ++kind.calls;
                kind.nanos += nanos;
                by_op_[static_cast<std::size_t>(step.op)].nanos += nanos;
                ++calls_made_;
            }
        }
        for (const Command& command : batch.commands) {
            ++by_op_[static_cast<std::size_t>(command.op)].calls;
        }
        for (const on_ttnn::Cell& cell : plan->fresh) {
            cell->tensor = on_ttnn::Tensor();
        }
    }

    void lower(const Batch& batch, on_ttnn::Plan& plan) {
        on_ttnn::Lowering(machine_, tensors_, plan, batch, options_.context).run();
        for (const Command& command : batch.commands) {
            plan.slots.insert(plan.slots.end(), command.operands.begin(), command.operands.end());
        }
    }

    // A list's content: what is done, with which tensors, and which of them die.
    static std::string key_of(const Batch& batch) {
        std::string key;
        const auto append = [&key](const auto& value) {
            key.append(reinterpret_cast<const char*>(&value), sizeof(value));
        };
        for (const Command& command : batch.commands) {
            append(command.op);
            append(command.operands);
            append(command.dims);
            append(command.scalar);
        }
        for (const auto& slots : {batch.dead, batch.releases}) {
            append(slots.size());
            for (const std::uint32_t slot : slots) {
                append(slot);
            }
        }
        return key;
    }

    void drop_plans(std::uint32_t slot) {
        std::erase_if(plans_, [slot](const auto& entry) {
            const auto& slots = entry.second.slots;
            return std::find(slots.begin(), slots.end(), slot) != slots.end();
        });
    }

    void release_slot(std::uint32_t slot) noexcept {
        drop_plans(slot);
        tensors_.release(slot);
    }

    static constexpr std::size_t kOps = 16;

    TtnnOptions options_;
    std::shared_ptr<::ttnn::MeshDevice> device_;
    on_ttnn::Machine machine_;
    on_ttnn::Tensors tensors_;
    std::unordered_map<std::string, on_ttnn::Plan> plans_;
    std::array<Time, on_ttnn::kKinds> by_kind_{};
    std::array<Time, kOps> by_op_{};
    Counters counters_{};
    FaultReport fault_{FaultKind::None, 0, 0, 0, Fault::kNone, Fault::kNone};
    std::uint64_t calls_made_ = 0;
    bool running_ = false;
    bool lost_ = false;
};

const TtnnDriver* of_ttnn(const Driver& driver) { return dynamic_cast<const TtnnDriver*>(&driver); }

}  // namespace

std::unique_ptr<Driver> open_ttnn(const TtnnOptions& options) {
    try {
        return std::make_unique<TtnnDriver>(options);
    } catch (const std::exception& exception) {
        throw Fault(FaultKind::NoDevice, on_ttnn::first_line(exception.what()));
    }
}

rust::Vec<CallTime> ttnn_calls(const Driver& driver) {
    const TtnnDriver* ttnn = of_ttnn(driver);
    return ttnn == nullptr ? rust::Vec<CallTime>() : ttnn->calls();
}

MemoryFigures ttnn_memory(const Driver& driver) {
    const TtnnDriver* ttnn = of_ttnn(driver);
    return ttnn == nullptr ? MemoryFigures{} : ttnn->memory();
}

void ttnn_trim(Driver& driver) {
    if (auto* ttnn = dynamic_cast<TtnnDriver*>(&driver)) {
        ttnn->trim();
    }
}

}  // namespace tt
