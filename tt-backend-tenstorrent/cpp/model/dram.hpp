// The device's memory: one region of a fixed capacity and a first-fit allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace tt {

class Dram {
public:
    explicit Dram(std::uint64_t capacity);
    ~Dram();
    Dram(const Dram&) = delete;
    Dram& operator=(const Dram&) = delete;

    // A block of zeros, or null where no hole is large enough. A block never shows what its previous
    // tenant left in it.
    std::uint8_t* allocate(std::uint64_t bytes);
    void release(std::uint8_t* block);

    // Refuses to have more than `bytes` in use, as if the device were smaller.
    void limit(std::uint64_t bytes) { limit_ = bytes; }

    std::uint64_t used() const { return used_; }
    std::uint64_t free() const;
    std::uint64_t largest_hole() const;

private:
    std::uint64_t capacity_;
    std::uint64_t limit_;
    std::uint64_t used_ = 0;
    // Above this the region has never been written: the system hands it out as zeros.
    std::uint64_t touched_ = 0;
    std::uint8_t* base_;
    std::map<std::uint64_t, std::uint64_t> holes_;   // offset to size
    std::map<std::uint64_t, std::uint64_t> blocks_;  // offset to size
};

}  // namespace tt
