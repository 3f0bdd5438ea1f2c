// The device model: a driver that needs no card.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "driver.hpp"
#include "dram.hpp"
#include "fault.hpp"
#include "numerics.hpp"
#include "program.hpp"
#include "workers.hpp"

namespace tt {

// A fault that strikes once, after so many occasions.
class Trigger {
public:
    void arm(std::uint64_t after) { left_ = after; }

    // Whether this occasion is the one.
    bool strikes() {
        if (!left_.has_value()) {
            return false;
        }
        if (*left_ != 0) {
            --*left_;
            return false;
        }
        left_.reset();
        return true;
    }

private:
    std::optional<std::uint64_t> left_;
};

class Device final : public Driver {
public:
    explicit Device(const DeviceOptions& options);

    void submit(const Batch& batch) override;
    void write(const Allocation& target, rust::Slice<const std::uint8_t> bytes) override;
    void submit_and_read(const Batch& batch, std::uint32_t slot, rust::Slice<std::uint8_t> bytes) override;
    void release(rust::Slice<const std::uint32_t> slots) noexcept override;
    void inject(FaultKind kind, std::uint64_t after) noexcept override;
    FaultReport fault() const noexcept override { return fault_; }
    Counters counters() const noexcept override;
    rust::Vec<OpTime> op_times() const override;

private:
    template <typename Work>
    void guarded(Work&& work);
    void require_present() const;
    void admit(const Batch& batch);
    void allocate_all(rust::Slice<const Allocation> allocations);
    void allocate(const Allocation& allocation);
    void release_slot(std::uint32_t slot);
    void upload(const DeviceTensor& tensor, std::uint32_t slot, rust::Slice<const std::uint8_t> bytes);
    void download(std::uint32_t slot, rust::Slice<std::uint8_t> bytes);
    void run_batch(const Batch& batch);
    void stage_all(rust::Slice<const Upload> uploads);
    void run_all(rust::Slice<const Command> commands);
    void execute(const Command& command);
    const DeviceTensor& backed(std::uint32_t slot) const;
    void transfer(std::uint32_t slot, std::uint64_t bytes);

    static constexpr std::size_t kOps = 16;
    struct Time {
        std::uint64_t calls = 0;
        std::uint64_t nanos = 0;
    };

    DeviceOptions options_;
    Arithmetic how_;
    Dram dram_;
    Workers workers_;
    ProgramCache programs_;
    std::vector<DeviceTensor> slots_;
    Counters counters_{};
    std::array<Time, kOps> times_{};
    FaultReport fault_{FaultKind::None, 0, 0, 0, Fault::kNone, Fault::kNone};
    Trigger submit_fails_;
    Trigger submit_hangs_;
    Trigger transfer_fails_;
    Trigger vanishes_;
    bool lost_ = false;
};

}  // namespace tt
