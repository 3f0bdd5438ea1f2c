// The arithmetic of the Blackhole matrix unit, packer and unpacker, one value at a time.
//
// This is the definition in the model; the vectorised kernels must agree with it bit for bit. All
// values are bit patterns: bf16 as 16 bits, destination elements as f32 bits (a 16-bit destination
// keeps a bf16 in the upper half).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tt {

// How a session computes.
struct Arithmetic {
    bool tensix = true;
    bool dest_f32 = true;
    std::uint32_t phases = 4;
};

namespace exact {

// One step of the matrix unit in one fidelity phase.
std::uint32_t mvmul(const std::uint16_t* a, const std::uint16_t* b, std::uint32_t dest, std::uint32_t phase,
                    bool dest_f32);

// One fidelity phase of an element-wise product, added to the destination. `a` is SrcA.
std::uint32_t multiply(std::uint16_t a, std::uint16_t b, std::uint32_t dest, std::uint32_t phase, bool dest_f32);

// An element-wise sum that does not accumulate.
std::uint32_t add(std::uint16_t a, std::uint16_t b, bool dest_f32);

// The packer's way from a destination to bf16.
std::uint16_t pack(std::uint32_t dest, bool dest_f32);

}  // namespace exact

inline float widen(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

inline std::uint16_t round_to_nearest_even(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffff) > 0x7f800000) {
        return static_cast<std::uint16_t>((bits >> 16) | 0x40);
    }
    return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// What a bf16 operand is once it has passed the unpacker: denormals are zero.
inline float unpack(const Arithmetic& how, std::uint16_t bits) {
    const bool denormal = (bits & 0x7f80) == 0;
    return widen(how.tensix && denormal ? static_cast<std::uint16_t>(bits & 0x8000) : bits);
}

// A value of the vector unit, in f32, to bf16. The vector unit's registers are f32 whatever the
// destination is, so this rounds; what the matrix unit left in a 16-bit destination is unchanged by it.
inline std::uint16_t store(const Arithmetic& how, float value) {
    return how.tensix ? exact::pack(std::bit_cast<std::uint32_t>(value), true) : round_to_nearest_even(value);
}

// A destination of the matrix unit to bf16.
inline std::uint16_t pack(const Arithmetic& how, float dest) {
    return how.tensix ? exact::pack(std::bit_cast<std::uint32_t>(dest), how.dest_f32) : round_to_nearest_even(dest);
}

// `dest + a b` as the destination keeps it; on the matrix unit `a` is SrcA.
inline float multiply_add(const Arithmetic& how, std::uint16_t a, std::uint16_t b, float dest) {
    if (!how.tensix) {
        return dest + widen(a) * widen(b);
    }
    auto bits = std::bit_cast<std::uint32_t>(dest);
    for (std::uint32_t phase = 0; phase < how.phases; ++phase) {
        bits = exact::multiply(a, b, bits, phase, how.dest_f32);
    }
    return std::bit_cast<float>(bits);
}

// Functions of the vector unit, in f32.
inline float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
inline float silu(float x) { return x / (1.0f + std::exp(-x)); }
inline float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }
inline float rsqrt(float x) { return 1.0f / std::sqrt(x); }

}  // namespace tt
