#include "layout.hpp"

#include <array>
#include <bit>
#include <numeric>
#include <vector>

namespace tt {
namespace {

// Visits the runs of up to 16 elements that are contiguous both in rows and in tiles. The size is a
// template parameter so that a full run's copy is a fixed number of moves.
template <std::size_t kSize, bool kToTiles>
void copy_runs(std::uint8_t* tiles, std::uint8_t* flat, std::uint32_t rows, std::uint32_t cols) {
    const std::uint32_t tile_cols = tiles_for(cols);
    for (std::uint32_t row = 0; row < rows; ++row) {
        std::uint8_t* line = flat + std::size_t{row} * cols * kSize;
        for (std::uint32_t col = 0; col < cols; col += kFace) {
            std::uint8_t* run = tiles + tile_offset(row, col, tile_cols) * kSize;
            std::uint8_t* source = line + std::size_t{col} * kSize;
            const std::uint32_t length = std::min(kFace, cols - col);
            if (length == kFace) {
                kToTiles ? std::memcpy(run, source, kFace * kSize) : std::memcpy(source, run, kFace * kSize);
            } else {
                kToTiles ? std::memcpy(run, source, length * kSize) : std::memcpy(source, run, length * kSize);
            }
        }
    }
}

}  // namespace

// Both directions share one walk, whose pointers are mutable; each direction writes only its target.
void tilize(const std::uint8_t* rows_bytes, std::uint32_t rows, std::uint32_t cols, std::size_t size,
            std::uint8_t* tiles) {
    auto* flat = const_cast<std::uint8_t*>(rows_bytes);
    size == 2 ? copy_runs<2, true>(tiles, flat, rows, cols) : copy_runs<4, true>(tiles, flat, rows, cols);
}

void untilize(const std::uint8_t* tiles, std::uint32_t rows, std::uint32_t cols, std::size_t size,
              std::uint8_t* rows_bytes) {
    auto* source = const_cast<std::uint8_t*>(tiles);
    size == 2 ? copy_runs<2, false>(source, rows_bytes, rows, cols)
              : copy_runs<4, false>(source, rows_bytes, rows, cols);
}

namespace {

// A shape known only at run time, as the origin's tensors had it. Kept out of line for the same
// reason that theirs was: it lived in another translation unit.
struct RuntimeShape {
    std::array<std::uint32_t, 4> sizes;

    [[gnu::noinline]] std::size_t numel() const {
        return std::accumulate(sizes.begin(), sizes.end(), std::size_t{1},
                               [](std::size_t product, std::uint32_t size) { return product * size; });
    }

    [[gnu::noinline]] std::size_t offset(std::size_t index) const {
        const auto row = static_cast<std::uint32_t>(index / sizes[3]);
        const auto col = static_cast<std::uint32_t>(index % sizes[3]);
        return tile_offset(row, col, tiles_for(sizes[3]));
    }
};

[[gnu::noinline]] float load_as_float(const std::uint8_t* bytes, std::size_t index, std::uint8_t dtype) {
    switch (dtype) {
        case 0: {
            std::uint16_t bits = 0;
            std::memcpy(&bits, bytes + index * 2, 2);
            return std::bit_cast<float>(std::uint32_t{bits} << 16);
        }
        default: {
            float value = 0;
            std::memcpy(&value, bytes + index * 4, 4);
            return value;
        }
    }
}

}  // namespace

std::uint64_t stage_element_by_element(const std::uint8_t* bytes, std::uint32_t rows, std::uint32_t cols,
                                       std::uint8_t dtype, std::uint16_t* tiles) {
    const RuntimeShape shape{{1, 1, rows, cols}};
    std::vector<float> floats;
    for (std::size_t i = 0; i < shape.numel(); ++i) {
        floats.push_back(load_as_float(bytes, i, dtype));
    }
    for (std::size_t i = 0; i < shape.numel(); ++i) {
        const auto bits = std::bit_cast<std::uint32_t>(floats[i]);
        const std::uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
        tiles[shape.offset(i)] = static_cast<std::uint16_t>(rounded >> 16);
    }
    return dtype == 0 ? floats.size() * 2 : 0;
}

}  // namespace tt
