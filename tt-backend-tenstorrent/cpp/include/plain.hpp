// The exact kernels on plain slices: no device, no tiles in DRAM, nothing to open. bf16 values are
// their bits, and `DeviceOptions` says which arithmetic. The caller has checked that lengths agree.
#pragma once

#include <cstdint>

#include "rust/cxx.h"

namespace tt {

struct DeviceOptions;

// One step of the matrix unit: 16 products of `a` (SrcA, the weights) and `b` (SrcB, the
// activations) in one fidelity phase, added to a destination element given as f32 bits.
std::uint32_t plain_mvmul(rust::Slice<const std::uint16_t> a, rust::Slice<const std::uint16_t> b,
                          std::uint32_t dest, std::uint8_t phase, bool dest_f32) noexcept;

// The destination after `x w^T`, `x` of m by k, `w` of n by k, both row-major.
void plain_matmul(const DeviceOptions& options, std::uint32_t m, std::uint32_t k, std::uint32_t n,
                  rust::Slice<const std::uint16_t> x, rust::Slice<const std::uint16_t> w,
                  rust::Slice<float> out) noexcept;

// The same by the scalar kernel, which the vectorised ones are held against.
void plain_matmul_scalar(const DeviceOptions& options, std::uint32_t m, std::uint32_t k, std::uint32_t n,
                         rust::Slice<const std::uint16_t> x, rust::Slice<const std::uint16_t> w,
                         rust::Slice<float> out) noexcept;

// `dest += a * b`, element by element: the matrix unit's multiply always accumulates.
void plain_multiply(const DeviceOptions& options, rust::Slice<const std::uint16_t> a,
                    rust::Slice<const std::uint16_t> b, rust::Slice<float> dest) noexcept;

// `dest = a + b`, element by element.
void plain_add(const DeviceOptions& options, rust::Slice<const std::uint16_t> a,
               rust::Slice<const std::uint16_t> b, rust::Slice<float> dest) noexcept;

// The packer: destination to bf16.
void plain_pack(const DeviceOptions& options, rust::Slice<const float> dest,
                rust::Slice<std::uint16_t> out) noexcept;

// Row-major bf16 bytes, at any address, to tiles, and back.
void plain_tilize(std::uint32_t rows, std::uint32_t cols, rust::Slice<const std::uint8_t> bytes,
                  rust::Slice<std::uint16_t> out) noexcept;
void plain_untilize(std::uint32_t rows, std::uint32_t cols, rust::Slice<const std::uint16_t> tiles,
                    rust::Slice<std::uint8_t> out) noexcept;

// How the origin staged: every element through a dtype dispatch into a float vector, its position
// from run-time shape arithmetic, then every float rounded back into its tile. Returns the bytes of
// bf16 that went through the vector.
std::uint64_t plain_stage_element_by_element(std::uint32_t rows, std::uint32_t cols, std::uint8_t dtype,
                                             rust::Slice<const std::uint8_t> bytes,
                                             rust::Slice<std::uint16_t> out) noexcept;

}  // namespace tt
