// `bf(a + b)`, an element-wise sum of the matrix unit.
#include "pairs.hpp"

namespace tt::ops::add {

void check(const Call& call, Program&) { check_pair(call); }

void run(const Call& call, const Program&) {
    for_each_run(call, [&](const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out, std::uint32_t count) {
        sum_run(call.how, a, b, out, count);
    });
}

}  // namespace tt::ops::add
