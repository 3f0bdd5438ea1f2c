#include "numerics.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tt::exact {
namespace {

constexpr std::int32_t kBias = 127;
// A product of two leading ones stands at bit 10; the destination's leading one at bit 23.
constexpr std::int32_t kToDest = 13;
// Alignments by more than this leave nothing.
constexpr std::int32_t kLastShift = 30;
// A 16-bit destination has no room for the lower 13 bits of an aligned term.
constexpr std::int32_t kLow16 = 1 << 13;

// A bf16 source taken apart: an 11-bit mantissa with its leading one, or zero.
struct Source {
    bool negative;
    bool zero;
    std::int32_t exponent;
    std::int32_t mantissa;

    explicit Source(std::uint16_t bits)
        : negative((bits >> 15) != 0),
          zero((bits & 0x7f80) == 0),
          exponent((bits >> 7) & 255),
          mantissa(((bits & 0x7f) | 0x80) << 3) {}
};

// A term on its way to the destination: a magnitude whose bit 23 weighs 2^(exponent - 127).
struct Term {
    bool negative = false;
    std::int32_t exponent = 0;
    std::int32_t magnitude = 0;
};

std::int32_t part_of_a(std::int32_t mantissa, std::uint32_t phase) {
    return (phase & 1) != 0 ? (mantissa >> 1) & 31 : mantissa >> 6;
}

std::int32_t part_of_b(std::int32_t mantissa, std::uint32_t phase) {
    return (phase & 2) != 0 ? (mantissa & 15) << 3 : mantissa >> 4;
}

// The low part of a mantissa weighs 2^-5 (SrcA) or 2^-7 (SrcB) of the high one.
std::int32_t phase_exponent(std::uint32_t phase) {
    return -kBias - ((phase & 1) != 0 ? 5 : 0) - ((phase & 2) != 0 ? 7 : 0);
}

Term product_term(std::uint16_t a_bits, std::uint16_t b_bits, std::uint32_t phase) {
    const Source a(a_bits);
    const Source b(b_bits);
    if (a.zero || b.zero) {
        return {};
    }
    return {a.negative != b.negative, a.exponent + b.exponent + phase_exponent(phase),
            part_of_a(a.mantissa, phase) * part_of_b(b.mantissa, phase)};
}

std::int32_t shift_half_up(std::int32_t magnitude, std::int32_t by) {
    return by == 0 ? magnitude : (magnitude + (1 << (by - 1))) >> by;
}

// Eight products on one exponent; what lies below the largest one's last bit is rounded away.
Term group(const std::uint16_t* a, const std::uint16_t* b, std::uint32_t phase) {
    std::array<Term, 8> terms;
    std::int32_t largest = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        terms[i] = product_term(a[i], b[i], phase);
        largest = std::max(largest, terms[i].exponent);
    }
    if (largest <= 0) {
        return {};
    }
    std::int32_t total = 0;
    for (const Term& term : terms) {
        const std::int32_t part =
            shift_half_up(term.magnitude, std::min(largest - term.exponent, kLastShift));
        total += term.negative ? -part : part;
    }
    return {total < 0, largest, std::abs(total) << kToDest};
}

// Brings a term to the common exponent. A negative group is rounded half down in magnitude: its
// two's complement is what the unit rounds half up.
std::int32_t align(const Term& term, std::int32_t exponent, bool is_group) {
    const std::int32_t by = exponent - term.exponent;
    if (by == 0) {
        return term.magnitude;
    }
    if (by > kLastShift) {
        return 0;
    }
    const std::int32_t less = is_group && term.negative ? 1 : 0;
    return (term.magnitude + (1 << (by - 1)) - less) >> by;
}

std::int32_t clear_low(std::int32_t magnitude, bool negative_group) {
    return (magnitude + kLow16 / 2 - (negative_group ? 1 : 0)) & ~(kLow16 - 1);
}

// Adds two groups to the destination and normalises.
std::uint32_t accumulate(const Term& first, const Term& second, std::uint32_t dest, bool dest_f32) {
    Term old{(dest >> 31) != 0, static_cast<std::int32_t>((dest >> 23) & 255),
             static_cast<std::int32_t>((dest & 0x7fffff) | 0x800000)};
    if (old.exponent == 0) {
        old.magnitude = 0;
    }
    const std::int32_t common = std::max({first.exponent, second.exponent, old.exponent});
    if (common <= 0) {
        return 0;
    }
    std::int32_t total = 0;
    for (const auto& [term, is_group] : {std::pair{first, true}, {second, true}, {old, false}}) {
        std::int32_t part = align(term, common, is_group);
        if (!dest_f32) {
            part = clear_low(part, is_group && term.negative);
        }
        total += term.negative ? -part : part;
    }
    if (total == 0) {
        return 0;
    }
    const auto sign = total < 0 ? 0x80000000u : 0u;
    auto magnitude = static_cast<std::uint32_t>(std::abs(total));
    const std::int32_t top = std::bit_width(magnitude) - 1;
    std::int32_t exponent = common + top - 23;
    // Bits that the destination has no room for are rounded half up, in magnitude.
    const std::int32_t last = dest_f32 ? 23 : 7;
    if (top > last) {
        magnitude = (magnitude + (1u << (top - last - 1))) >> (top - last);
    } else {
        magnitude <<= last - top;
    }
    magnitude <<= 23 - last;
    if ((magnitude & 0x1000000) != 0) {
        ++exponent;
    }
    if (exponent <= 0) {
        return 0;
    }
    if (exponent >= 255) {
        return sign | 0x7f800000;
    }
    return sign | static_cast<std::uint32_t>(exponent) << 23 | (magnitude & 0x7fffff);
}

}  // namespace

std::uint32_t mvmul(const std::uint16_t* a, const std::uint16_t* b, std::uint32_t dest, std::uint32_t phase,
                    bool dest_f32) {
    return accumulate(group(a, b, phase), group(a + 8, b + 8, phase), dest, dest_f32);
}

std::uint32_t multiply(std::uint16_t a, std::uint16_t b, std::uint32_t dest, std::uint32_t phase,
                       bool dest_f32) {
    Term term = product_term(a, b, phase);
    term.magnitude <<= kToDest;
    if (term.exponent <= 0) {
        term = {};
    }
    return accumulate(term, {}, dest, dest_f32);
}

std::uint32_t add(std::uint16_t a_bits, std::uint16_t b_bits, bool dest_f32) {
    const auto flush = [](std::uint16_t bits) -> std::uint16_t { return (bits & 0x7f80) == 0 ? 0 : bits; };
    a_bits = flush(a_bits);
    b_bits = flush(b_bits);
    if ((a_bits & 0x7fff) < (b_bits & 0x7fff)) {
        std::swap(a_bits, b_bits);
    }
    const Source large(a_bits);
    const Source small(b_bits);
    const std::int32_t by = large.exponent - small.exponent;
    const std::int32_t lesser = small.zero || by >= 12 ? 0 : shift_half_up(small.mantissa, by);
    const std::int32_t greater = large.zero ? 0 : large.mantissa;
    const std::int32_t total = large.negative == small.negative ? greater + lesser : greater - lesser;
    return accumulate({large.negative, large.exponent, total << kToDest}, {}, 0, dest_f32);
}

std::uint16_t pack(std::uint32_t dest, bool dest_f32) {
    if ((dest & 0x7fffffff) > 0x7f800000) {
        dest = (dest & 0x80000000) | 0x7f800000;
    }
    const auto bits = static_cast<std::uint16_t>((dest + (dest_f32 ? 0x8000u : 0u)) >> 16);
    return (bits & 0x7fff) < 0x80 ? 0 : bits;
}

}  // namespace tt::exact
