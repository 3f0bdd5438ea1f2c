// What the lowering of blocks and of single commands share.
#pragma once

#include <cstdint>
#include <vector>

namespace tt::on_ttnn {

// The natural index of each element of a head in the device's order; see `head_order`. A rotary width
// of 0 is the natural order.
std::vector<std::uint32_t> rotated_order(std::uint32_t width, std::uint32_t rotary);

}  // namespace tt::on_ttnn
