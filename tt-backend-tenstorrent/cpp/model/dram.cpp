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
// A multiple of the system's page size, whatever it is: only whole pages can be given back.
[[maybe_unused]] constexpr std::uint64_t kPage = 1 << 16;
// From this size on a block is emptied by giving its pages back rather than by writing zeros.
[[maybe_unused]] constexpr std::uint64_t kLarge = 4 << 20;

constexpr std::uint64_t align_up(std::uint64_t bytes) {
    // Saturates instead of wrapping: a size near the end of the range must fail, not shrink.
    return bytes > UINT64_MAX - kAlignment ? UINT64_MAX : (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Makes a block that was written zero again. The pages of a large one go back to the system, which
// hands out zeros when they are next written: a cache that is long and hardly used takes no memory for
// the rest, whatever was in its place before.
void clear(std::uint8_t* block, std::uint64_t bytes) {
#if defined(__linux__)
    // Elsewhere the same advice leaves the pages' contents open.
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const std::uintptr_t first = (address + kPage - 1) / kPage * kPage;
    const std::uintptr_t last = (address + bytes) / kPage * kPage;
    if (bytes >= kLarge && madvise(block + (first - address), last - first, MADV_DONTNEED) == 0) {
        std::memset(block, 0, first - address);
        std::memset(block + (last - address), 0, address + bytes - last);
        return;
    }
#endif
    std::memset(block, 0, bytes);
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
#if defined(MADV_HUGEPAGE)
    // Weights are read from one end to the other in every step: large pages keep the address look-ups
    // off that way. Where the system has none, nothing changes but the time.
    (void)madvise(base_, capacity, MADV_HUGEPAGE);
#endif
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
        clear(base_ + offset, std::min(bytes, touched_ - offset));
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
