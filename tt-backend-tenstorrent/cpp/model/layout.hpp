// Where elements lie: tiles of 32x32, each of four 16x16 faces, and the moves between them and rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tt {

constexpr std::uint32_t kFace = 16;
constexpr std::uint32_t kTile = 32;
constexpr std::uint32_t kTileElements = kTile * kTile;
constexpr std::uint32_t kFaceElements = kFace * kFace;

constexpr std::uint32_t tiles_for(std::uint32_t elements) { return elements / kTile + (elements % kTile != 0); }

// The place of element (row, col) in a matrix that is `tile_cols` tiles wide.
constexpr std::size_t tile_offset(std::uint32_t row, std::uint32_t col, std::uint32_t tile_cols) {
    const std::size_t tile = std::size_t{row / kTile} * tile_cols + col / kTile;
    const std::size_t face = (row % kTile) / kFace * 2 + (col % kTile) / kFace;
    return tile * kTileElements + face * kFaceElements + std::size_t{row % kFace} * kFace + col % kFace;
}

// A matrix in tiles, seen through its elements' type.
template <typename T>
struct Matrix {
    T* base = nullptr;
    std::uint32_t rows = 0;
    std::uint32_t cols = 0;

    std::uint32_t tile_cols() const { return tiles_for(cols); }

    T* at(std::uint32_t row, std::uint32_t col) const { return base + tile_offset(row, col, tile_cols()); }

    // Calls `visit(T* run, uint32_t done, uint32_t length)` for the contiguous runs that make up
    // `count` elements of a row from `col` on.
    template <typename Visit>
    void runs(std::uint32_t row, std::uint32_t col, std::uint32_t count, Visit&& visit) const {
        for (std::uint32_t done = 0; done < count;) {
            const std::uint32_t length = std::min(count - done, kFace - (col + done) % kFace);
            visit(at(row, col + done), done, length);
            done += length;
        }
    }
};

// Rows of `size`-byte elements, at any address, to tiles. Padding is not touched.
void tilize(const std::uint8_t* rows_bytes, std::uint32_t rows, std::uint32_t cols, std::size_t size,
            std::uint8_t* tiles);

// Tiles back to rows.
void untilize(const std::uint8_t* tiles, std::uint32_t rows, std::uint32_t cols, std::size_t size,
              std::uint8_t* rows_bytes);

// The origin's way: dtype 0 is bf16, 1 is f32. Returns the bytes of bf16 that passed through floats.
std::uint64_t stage_element_by_element(const std::uint8_t* bytes, std::uint32_t rows, std::uint32_t cols,
                                       std::uint8_t dtype, std::uint16_t* tiles);

}  // namespace tt
