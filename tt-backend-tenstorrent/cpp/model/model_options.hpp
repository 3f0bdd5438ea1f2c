// The arithmetic that a session's options ask for.
#pragma once

#include <algorithm>

#include "numerics.hpp"
#include "tt-backend-tenstorrent/src/bridge.rs.h"

namespace tt {

inline Arithmetic arithmetic(const DeviceOptions& options) {
    return {options.tensix, options.dest_f32, std::clamp<std::uint32_t>(options.phases, 1, 4)};
}

}  // namespace tt
