// What a device driver does, whatever stands behind it.
//
// A driver owns a device and the tensors on it. Tensors are named by slots, small numbers that the
// caller chooses, so that no map is searched and nothing is looked up by handle while a list runs.
// The operations, dtypes and pages are those of the shared structs in bridge.rs; they follow ttnn's:
// activations and weights are bf16 in tiles of 32x32, ids UINT32 row-major, recurrent state and
// logits FLOAT32 in tiles, every output allocated before the list that writes it runs.
#pragma once

#include <cstdint>
#include <memory>

#include "rust/cxx.h"

namespace tt {

struct Allocation;
struct Batch;
struct Counters;
struct DeviceOptions;
struct FaultReport;
struct OpTime;
enum class FaultKind : std::uint8_t;

class Driver {
public:
    Driver() = default;
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;
    virtual ~Driver() = default;

    // One crossing: creates the batch's tensors (zeroed, also the padding of their tiles), writes
    // its uploads, runs its commands in order, then frees its releases. If creating a tensor fails,
    // or the submit is refused, nothing of the batch has happened and no tensor of it exists.
    virtual void submit(const Batch& batch) = 0;

    // Writes a whole tensor at once, in order after all earlier batches; creates it when the slot
    // is empty. Rows are row-major and in the tensor's own dtype.
    virtual void write(const Allocation& target, rust::Slice<const std::uint8_t> bytes) = 0;

    // A batch (which may be empty) and one read of a whole tensor after it.
    virtual void submit_and_read(const Batch& batch, std::uint32_t slot, rust::Slice<std::uint8_t> bytes) = 0;

    // Frees tensors; empty slots are ignored.
    virtual void release(rust::Slice<const std::uint32_t> slots) noexcept = 0;

    // Arms a fault that strikes after `after` occasions of its kind have passed. A driver of real
    // hardware ignores it.
    virtual void inject(FaultKind kind, std::uint64_t after) noexcept = 0;

    // The facts of the last exception that left this object.
    virtual FaultReport fault() const noexcept = 0;

    virtual Counters counters() const noexcept = 0;

    // Time by operation, for profiles.
    virtual rust::Vec<OpTime> op_times() const = 0;
};

// Opens the device model. Throws when no device is present.
std::unique_ptr<Driver> open_model(const DeviceOptions& options);

}  // namespace tt
