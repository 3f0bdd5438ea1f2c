#include "workers.hpp"

#include <algorithm>

namespace tt {
namespace {

// Waking a thread and waiting for it costs about this much.
constexpr std::uint64_t kWakeNanos = 20'000;
// Chunks a thread: enough to even out a thread that was held up.
constexpr std::uint32_t kChunks = 4;

}  // namespace

Workers::Workers(std::uint32_t threads) {
    const std::uint32_t wanted = threads != 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
    for (std::uint32_t i = 1; i < wanted; ++i) {
        threads_.emplace_back([this] { serve(); });
    }
}

Workers::~Workers() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

void Workers::share(std::uint32_t count, std::uint64_t cost, const Body& body) {
    if (threads_.empty() || count < 2 || cost * count < 2 * kWakeNanos) {
        if (count != 0) {
            body(0, count);
        }
        return;
    }
    const auto parts = static_cast<std::uint32_t>(threads_.size() + 1) * kChunks;
    {
        const std::lock_guard lock(mutex_);
        body_ = &body;
        count_ = count;
        chunk_ = std::max(1u, (count + parts - 1) / parts);
        next_ = 0;
        busy_ = static_cast<std::uint32_t>(threads_.size());
        ++round_;
    }
    wake_.notify_all();
    take();
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return busy_ == 0; });
    body_ = nullptr;
}

void Workers::take() {
    for (;;) {
        const std::uint32_t first = next_.fetch_add(chunk_);
        if (first >= count_) {
            return;
        }
        (*body_)(first, std::min(count_, first + chunk_));
    }
}

void Workers::serve() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [&] { return stop_ || round_ != seen; });
        if (stop_) {
            return;
        }
        seen = round_;
        lock.unlock();
        take();
        lock.lock();
        if (--busy_ == 0) {
            idle_.notify_one();
        }
    }
}

}  // namespace tt
