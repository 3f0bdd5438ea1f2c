// `g = bf(silu(gate)); bf(g up)`: silu on the vector unit, the product on the matrix unit with `g`
// as SrcA, as a multiply with an activation on its left operand does it.
#include "pairs.hpp"

namespace tt::ops::swiglu {

void check(const Call& call, Program&) { check_pair(call); }

void run(const Call& call, const Program&) {
    for_each_run(call, [&](const std::uint16_t* gate, const std::uint16_t* up, std::uint16_t* out, std::uint32_t count) {
        std::uint16_t gated[kFace];
        for (std::uint32_t i = 0; i < count; ++i) {
            gated[i] = store(call.how, silu(unpack(call.how, gate[i])));
        }
        product_run(call.how, gated, up, out, count);
    });
}

}  // namespace tt::ops::swiglu
