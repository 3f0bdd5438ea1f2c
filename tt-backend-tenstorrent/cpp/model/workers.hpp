// Threads that share an operation's outputs. Work is divided between outputs that do not depend on
// each other, so results have the same bits for every number of threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tt {

class Workers {
public:
    // `threads` counts the caller; 0 means one for each processor.
    explicit Workers(std::uint32_t threads);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    using Body = std::function<void(std::uint32_t first, std::uint32_t last)>;

    // Calls `body(first, last)` until `0 .. count` is covered. `cost` is the work of one index,
    // roughly in nanoseconds: what would not repay waking a thread stays on the caller.
    void share(std::uint32_t count, std::uint64_t cost, const Body& body);

private:
    void serve();
    void take();

    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable idle_;
    // What is to be done; written only while no thread is at it.
    const Body* body_ = nullptr;
    std::uint32_t count_ = 0;
    std::uint32_t chunk_ = 1;
    std::atomic<std::uint32_t> next_{0};
    // Written under the mutex, and watched without it for a while before a thread goes to sleep.
    std::atomic<std::uint64_t> round_{0};
    std::atomic<std::uint32_t> busy_{0};
    std::atomic<bool> stop_{false};
    // Whether a thread may still join the round.
    bool open_ = false;
};

}  // namespace tt
