#include "plain.hpp"

#include "elementwise.hpp"
#include "layout.hpp"
#include "matmul.hpp"
#include "model_options.hpp"
#include "tt-backend-tenstorrent/src/bridge.rs.h"

namespace tt {
namespace {

using Kernel = decltype(&matmul);

void with_kernel(Kernel kernel, const DeviceOptions& options, std::uint32_t m, std::uint32_t k, std::uint32_t n,
                 rust::Slice<const std::uint16_t> x, rust::Slice<const std::uint16_t> w, rust::Slice<float> out) {
    Activations activations(arithmetic(options), m, k);
    for (std::uint32_t row = 0; row < m; ++row) {
        std::copy_n(x.data() + std::size_t{row} * k, k, activations.row(row));
    }
    activations.finish();
    std::vector<std::uint16_t> tiles(std::size_t{tiles_for(n)} * tiles_for(k) * kTileElements);
    tilize(reinterpret_cast<const std::uint8_t*>(w.data()), n, k, 2, reinterpret_cast<std::uint8_t*>(tiles.data()));
    const std::uint32_t columns = tiles_for(n) * 2;
    std::vector<float> dest(std::size_t{m} * columns * kFace);
    const std::size_t stride = std::size_t{columns} * kFace;
    kernel(activations, {tiles.data(), n, k}, Weights::kOutByIn, 0, columns, dest.data(), stride);
    for (std::uint32_t row = 0; row < m; ++row) {
        std::copy_n(dest.data() + row * stride, n, out.data() + std::size_t{row} * n);
    }
}

}  // namespace

std::uint32_t plain_mvmul(rust::Slice<const std::uint16_t> a, rust::Slice<const std::uint16_t> b,
                          std::uint32_t dest, std::uint8_t phase, bool dest_f32) noexcept {
    return exact::mvmul(a.data(), b.data(), dest, phase, dest_f32);
}

void plain_matmul(const DeviceOptions& options, std::uint32_t m, std::uint32_t k, std::uint32_t n,
                  rust::Slice<const std::uint16_t> x, rust::Slice<const std::uint16_t> w,
                  rust::Slice<float> out) noexcept {
    with_kernel(matmul, options, m, k, n, x, w, out);
}

void plain_matmul_scalar(const DeviceOptions& options, std::uint32_t m, std::uint32_t k, std::uint32_t n,
                         rust::Slice<const std::uint16_t> x, rust::Slice<const std::uint16_t> w,
                         rust::Slice<float> out) noexcept {
    with_kernel(matmul_scalar, options, m, k, n, x, w, out);
}

void plain_multiply(const DeviceOptions& options, rust::Slice<const std::uint16_t> a,
                    rust::Slice<const std::uint16_t> b, rust::Slice<float> dest) noexcept {
    multiply_add_run(arithmetic(options), a.data(), b.data(), dest.data(), static_cast<std::uint32_t>(dest.size()));
}

void plain_add(const DeviceOptions& options, rust::Slice<const std::uint16_t> a,
               rust::Slice<const std::uint16_t> b, rust::Slice<float> dest) noexcept {
    add_run(arithmetic(options), a.data(), b.data(), dest.data(), static_cast<std::uint32_t>(dest.size()));
}

void plain_pack(const DeviceOptions& options, rust::Slice<const float> dest,
                rust::Slice<std::uint16_t> out) noexcept {
    const Arithmetic how = arithmetic(options);
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = pack(how, dest[i]);
    }
}

void plain_tilize(std::uint32_t rows, std::uint32_t cols, rust::Slice<const std::uint8_t> bytes,
                  rust::Slice<std::uint16_t> out) noexcept {
    tilize(bytes.data(), rows, cols, 2, reinterpret_cast<std::uint8_t*>(out.data()));
}

void plain_untilize(std::uint32_t rows, std::uint32_t cols, rust::Slice<const std::uint16_t> tiles,
                    rust::Slice<std::uint8_t> out) noexcept {
    untilize(reinterpret_cast<const std::uint8_t*>(tiles.data()), rows, cols, 2, out.data());
}

std::uint64_t plain_stage_element_by_element(std::uint32_t rows, std::uint32_t cols, std::uint8_t dtype,
                                             rust::Slice<const std::uint8_t> bytes,
                                             rust::Slice<std::uint16_t> out) noexcept {
    return stage_element_by_element(bytes.data(), rows, cols, dtype, out.data());
}

}  // namespace tt
