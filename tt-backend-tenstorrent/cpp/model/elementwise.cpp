#include "elementwise.hpp"

#include <algorithm>

#include "matmul.hpp"

namespace tt {

void multiply_add_run(const Arithmetic& how, const std::uint16_t* a, const std::uint16_t* b, float* dest,
                      std::uint32_t count) {
    if (!how.tensix) {
        for (std::uint32_t i = 0; i < count; ++i) {
            dest[i] += widen(a[i]) * widen(b[i]);
        }
        return;
    }
    const std::uint32_t done = has_avx2() ? multiply_add_avx2(how, a, b, dest, count) : 0;
    for (std::uint32_t i = done; i < count; ++i) {
        dest[i] = multiply_add(how, a[i], b[i], dest[i]);
    }
}

void add_run(const Arithmetic& how, const std::uint16_t* a, const std::uint16_t* b, float* dest,
             std::uint32_t count) {
    if (!how.tensix) {
        for (std::uint32_t i = 0; i < count; ++i) {
            dest[i] = widen(a[i]) + widen(b[i]);
        }
        return;
    }
    const std::uint32_t done = has_avx2() ? add_avx2(how, a, b, dest, count) : 0;
    for (std::uint32_t i = done; i < count; ++i) {
        dest[i] = std::bit_cast<float>(exact::add(a[i], b[i], how.dest_f32));
    }
}

namespace {

constexpr std::uint32_t kChunk = 64;

}  // namespace

void product_run(const Arithmetic& how, const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out,
                 std::uint32_t count) {
    if (!how.tensix) {
        // Not by way of `multiply_add_run`: 0 + -0 would lose a sign that f32 arithmetic keeps.
        for (std::uint32_t i = 0; i < count; ++i) {
            out[i] = round_to_nearest_even(widen(a[i]) * widen(b[i]));
        }
        return;
    }
    for (std::uint32_t first = 0; first < count; first += kChunk) {
        const std::uint32_t length = std::min(kChunk, count - first);
        float dest[kChunk] = {};
        multiply_add_run(how, a + first, b + first, dest, length);
        for (std::uint32_t i = 0; i < length; ++i) {
            out[first + i] = pack(how, dest[i]);
        }
    }
}

void sum_run(const Arithmetic& how, const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out,
             std::uint32_t count) {
    for (std::uint32_t first = 0; first < count; first += kChunk) {
        const std::uint32_t length = std::min(kChunk, count - first);
        float dest[kChunk];
        add_run(how, a + first, b + first, dest, length);
        for (std::uint32_t i = 0; i < length; ++i) {
            out[first + i] = pack(how, dest[i]);
        }
    }
}

}  // namespace tt
