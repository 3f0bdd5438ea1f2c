#include "matmul.hpp"

#include <algorithm>
#include <array>

namespace tt {

bool has_avx2() {
#if defined(__x86_64__)
    static const bool has = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    return has;
#else
    return false;
#endif
}

Activations::Activations(const Arithmetic& how, std::uint32_t rows, std::uint32_t inputs)
    : how_(how),
      rows_(rows),
      inputs_(inputs),
      padded_(tiles_for(inputs) * kTile),
      bits_(std::size_t{rows} * padded_) {}

void Activations::finish() {
    if (!has_avx2()) {
        return;
    }
    if (!how_.tensix) {
        floats_ = std::make_unique_for_overwrite<float[]>(rows_ * float_stride());
        for (std::uint32_t index = 0; index < rows_; ++index) {
            const std::uint16_t* bits = row(index);
            std::transform(bits, bits + padded_, floats_.get() + index * float_stride(), widen);
        }
        return;
    }
    split_ = std::make_unique_for_overwrite<SplitActivation[]>(bits_.size());
    constexpr std::uint32_t kTwice = 0x10001;
    // So far below every real exponent that a zero never leads its group.
    constexpr std::uint32_t kNever = 0xe000;
    for (std::size_t i = 0; i < bits_.size(); ++i) {
        const std::uint32_t bits = bits_[i];
        const std::uint32_t exponent = (bits >> 7) & 255;
        const std::uint32_t mantissa = (bits & 0x7f) | 0x80;
        split_[i] = {(exponent == 0 ? kNever : exponent) * kTwice, (mantissa >> 1) * kTwice,
                     ((bits & 1) << 6) * kTwice, (bits & 0x8000) * kTwice};
    }
}

namespace {

using FaceColumn = std::array<std::array<std::uint16_t, kTile>, kFace>;

// The weights of 16 outputs for one K tile, an output a line.
void gather(const Matrix<const std::uint16_t>& w, Weights weights, std::uint32_t column, std::uint32_t k_tile,
            FaceColumn& out) {
    for (std::uint32_t n = 0; n < kFace; ++n) {
        for (std::uint32_t k = 0; k < kTile; ++k) {
            const std::uint32_t output = column * kFace + n;
            const std::uint32_t input = k_tile * kTile + k;
            out[n][k] = weights == Weights::kOutByIn ? *w.at(output, input) : *w.at(input, output);
        }
    }
}

std::uint32_t exact_tile(const Arithmetic& how, const std::uint16_t* w, const std::uint16_t* x,
                         std::uint32_t dest) {
    for (std::uint32_t phase = 0; phase < how.phases; ++phase) {
        dest = exact::mvmul(w, x, dest, phase, how.dest_f32);
        dest = exact::mvmul(w + kFace, x + kFace, dest, phase, how.dest_f32);
    }
    return dest;
}

float fast_tile(const std::uint16_t* w, const std::uint16_t* x, std::uint32_t count, float dest) {
    for (std::uint32_t k = 0; k < count; ++k) {
        dest += widen(w[k]) * widen(x[k]);
    }
    return dest;
}

}  // namespace

void matmul_scalar(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights,
                   std::uint32_t first, std::uint32_t last, float* out, std::size_t stride) {
    for (std::uint32_t column = first; column < last; ++column) {
        for (std::uint32_t row = 0; row < x.rows(); ++row) {
            std::fill_n(out + row * stride + std::size_t{column} * kFace, kFace, 0.0f);
        }
        for (std::uint32_t k_tile = 0; k_tile * kTile < x.inputs(); ++k_tile) {
            FaceColumn lines;
            gather(w, weights, column, k_tile, lines);
            const std::uint32_t count = std::min(kTile, x.inputs() - k_tile * kTile);
            for (std::uint32_t row = 0; row < x.rows(); ++row) {
                const std::uint16_t* values = x.row(row) + std::size_t{k_tile} * kTile;
                float* dest = out + row * stride + std::size_t{column} * kFace;
                for (std::uint32_t n = 0; n < kFace; ++n) {
                    dest[n] = x.how().tensix
                                  ? std::bit_cast<float>(exact_tile(x.how(), lines[n].data(), values,
                                                                    std::bit_cast<std::uint32_t>(dest[n])))
                                  : fast_tile(lines[n].data(), values, count, dest[n]);
                }
            }
        }
    }
}

void matmul(const Activations& x, const Matrix<const std::uint16_t>& w, Weights weights, std::uint32_t first,
            std::uint32_t last, float* out, std::size_t stride) {
    const auto kernel = !has_avx2() ? matmul_scalar : x.how().tensix ? matmul_exact_avx2 : matmul_fast_avx2;
    kernel(x, w, weights, first, last, out, stride);
}

}  // namespace tt
