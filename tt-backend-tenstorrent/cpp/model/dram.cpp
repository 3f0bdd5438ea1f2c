#include "dram.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "fault.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace tt {
namespace {

// The alignment of DRAM buffers on the card.
constexpr std::uint64_t kAlignment = 64;

constexpr std::uint64_t align_up(std::uint64_t bytes) {
    // Saturates instead of wrapping: a size near the end of the range must fail, not shrink.
    return bytes > UINT64_MAX - kAlignment ? UINT64_MAX : (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

// The capacity is address space; pages are taken from the host only where a tensor is written.
Dram::Dram(std::uint64_t capacity) : capacity_(capacity), limit_(capacity), base_(nullptr) {
    if (capacity == 0) {
        return;
    }
    void* region = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) {
        throw Fault(FaultKind::NoDevice, "no address space for " + std::to_string(capacity) + " bytes of device memory");
    }
    base_ = static_cast<std::uint8_t*>(region);
    holes_[0] = capacity;
    // Under the sanitizer, memory that no tensor has is as forbidden as a freed host block.
    ASAN_POISON_MEMORY_REGION(base_, capacity);
}

Dram::~Dram() {
    if (base_ != nullptr) {
        ASAN_UNPOISON_MEMORY_REGION(base_, capacity_);
        munmap(base_, capacity_);
    }
}

std::uint8_t* Dram::allocate(std::uint64_t bytes) {
    const std::uint64_t size = align_up(std::max<std::uint64_t>(bytes, 1));
    if (used_ > limit_ || size > limit_ - used_) {
        return nullptr;
    }
    const auto hole = std::ranges::find_if(holes_, [&](const auto& entry) { return entry.second >= size; });
    if (hole == holes_.end()) {
        return nullptr;
    }
    const auto [offset, room] = *hole;
    holes_.erase(hole);
    if (room > size) {
        holes_[offset + size] = room - size;
    }
    blocks_[offset] = size;
    used_ += size;
    ASAN_UNPOISON_MEMORY_REGION(base_ + offset, bytes);
    if (offset < touched_) {
        std::memset(base_ + offset, 0, std::min(bytes, touched_ - offset));
    }
    touched_ = std::max(touched_, offset + size);
    return base_ + offset;
}

void Dram::release(std::uint8_t* block) {
    const auto found = blocks_.find(static_cast<std::uint64_t>(block - base_));
    if (found == blocks_.end()) {
        return;
    }
    auto [offset, size] = *found;
    blocks_.erase(found);
    ASAN_POISON_MEMORY_REGION(block, size);
    used_ -= size;
    const auto next = holes_.lower_bound(offset);
    if (next != holes_.end() && next->first == offset + size) {
        size += next->second;
        holes_.erase(next);
    }
    const auto after = holes_.lower_bound(offset);
    if (after != holes_.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == offset) {
            before->second += size;
            return;
        }
    }
    holes_[offset] = size;
}

std::uint64_t Dram::free() const {
    const std::uint64_t top = std::min(limit_, capacity_);
    return top > used_ ? top - used_ : 0;
}

std::uint64_t Dram::largest_hole() const {
    std::uint64_t largest = 0;
    for (const auto& [offset, size] : holes_) {
        largest = std::max(largest, size);
    }
    return std::min(largest, free());
}

}  // namespace tt
