// The exceptions of the device model. Each carries the facts that `Driver::fault` reports.
#pragma once

#include <stdexcept>
#include <string>

#include "tt-backend-tenstorrent/src/bridge.rs.h"

namespace tt {

class Fault : public std::runtime_error {
public:
    Fault(FaultKind kind, const std::string& text) : std::runtime_error(text), report{kind, 0, 0, 0, kNone, kNone} {}

    static constexpr std::uint32_t kNone = 0xffffffff;

    FaultReport report;
};

}  // namespace tt
