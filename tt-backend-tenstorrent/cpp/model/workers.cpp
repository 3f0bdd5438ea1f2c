#include "workers.hpp"

#include <algorithm>
#include <chrono>

namespace tt {
namespace {

// Waking a thread and waiting for it costs about this much.
constexpr std::uint64_t kWakeNanos = 20'000;
// Chunks a thread: enough to even out a thread that was held up.
constexpr std::uint32_t kChunks = 4;
// How long a thread watches for what comes next before it sleeps. In a step the operations that are
// shared follow each other with less than this between them.
constexpr std::chrono::microseconds kWatch{50};

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

// Watches until `done` or until the time is over.
template <typename Done>
void watch(Done&& done) {
    const auto start = std::chrono::steady_clock::now();
    while (!done()) {
        for (int i = 0; i < 8 && !done(); ++i) {
            pause();
        }
        if (std::chrono::steady_clock::now() - start > kWatch) {
            return;
        }
    }
}

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
        open_ = true;
        ++round_;
    }
    wake_.notify_all();
    take();
    // Only those that came are waited for: on a busy machine a thread may wake when all is done.
    std::unique_lock lock(mutex_);
    open_ = false;
    if (busy_ != 0) {
        lock.unlock();
        watch([this] { return busy_ == 0; });
        lock.lock();
        idle_.wait(lock, [this] { return busy_ == 0; });
    }
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
    for (;;) {
        const auto called = [&] { return stop_ || round_ != seen; };
        watch(called);
        std::unique_lock lock(mutex_);
        wake_.wait(lock, called);
        if (stop_) {
            return;
        }
        seen = round_;
        if (!open_) {
            continue;
        }
        ++busy_;
        lock.unlock();
        take();
        lock.lock();
        if (--busy_ == 0) {
            idle_.notify_one();
        }
    }
}

}  // namespace tt
