// What only this driver has: how it is opened, and the figures of its calls and its memory.
#pragma once

#include <memory>

#include "driver.hpp"

namespace tt {

struct TtnnOptions;
struct CallTime;
struct MemoryFigures;

// Opens a card, or the library's mock of one. Throws when there is none.
std::unique_ptr<Driver> open_ttnn(const TtnnOptions& options);

// Calls by kind since the driver was opened; of another driver, none.
rust::Vec<CallTime> ttnn_calls(const Driver& driver);

// The allocator's own figures for DRAM.
MemoryFigures ttnn_memory(const Driver& driver);

// Waits for everything that was enqueued, then frees what is kept for lists that come again.
void ttnn_trim(Driver& driver);

}  // namespace tt
