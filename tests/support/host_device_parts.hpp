// SPDX-License-Identifier: Apache-2.0
// What the device made of threads is made of; for its own files.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <set>
#include <thread>

#include "core/process.hpp"
#include "support/host_device.hpp"

namespace dael::test {

// Waits until `over`, as `changed.wait(lock, over)` does, and looks by itself ten times a second
// too: with several that wait, glibc's condition variables can lose a wake-up (its bug 25847,
// in 2.27 to 2.40), and a test would hang.
template <class Over>
void wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Over over) {
    while (!changed.wait_for(lock, std::chrono::milliseconds(100), over)) {
    }
}

// A stream.
struct HostDevice::Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> work;
    bool busy = false, closing = false;
    const std::uint32_t process = core::this_process();  // which has the thread
    std::thread thread{[this] { serve(); }};

    Queue() = default;
    ~Queue() {  // after all of its work
        {
            const std::lock_guard lock(mutex);
            closing = true;
        }
        changed.notify_all();
        thread.join();
    }
    void serve() {
        std::unique_lock lock(mutex);
        for (;;) {
            wait_until(changed, lock, [&] { return closing || !work.empty(); });
            if (work.empty()) return;
            auto next = std::move(work.front());
            work.pop_front();
            busy = true;
            lock.unlock();
            next();
            next = nullptr;
            lock.lock();
            busy = false;
            changed.notify_all();
        }
    }
};

// An event: the number of times it was recorded, and which of those no stream has passed yet.
struct HostDevice::Mark {
    std::mutex mutex;
    std::condition_variable passed;
    std::uint64_t recorded = 0;
    std::set<std::uint64_t> ahead;  // recorded, each on a stream of its own, and not reached yet
    std::chrono::steady_clock::time_point when;

    void wait_for(std::uint64_t which) {
        std::unique_lock lock(mutex);
        wait_until(passed, lock, [&] { return !ahead.contains(which); });
    }
};

// Keys on the device. Work reads them when it runs, so that replace() takes place in its order.
// What work needs of tables and of batches is its own, too: they see to their end themselves where
// a wait was given up (core::Prepared), and else must not go before.
struct HostDevice::HeldTables {
    explicit HeldTables(HostDevice& owner) : device(owner) { ++device.batches_; }
    ~HeldTables() { --device.batches_; }
    core::KeyList keys() const { return {copies, maths.get()}; }

    HostDevice& device;
    std::vector<Key> copies;
    std::unique_ptr<core::KeyTables> maths;
    std::atomic<int> in_use{0}, lent{0};
};
struct HostDevice::Tables final : core::KeyTables {
    explicit Tables(HostDevice& owner) : device(owner), held(std::make_shared<HeldTables>(owner)) {}
    ~Tables() override {
        if (device.given_up_ != 0) return;
        while (held->lent != 0) std::this_thread::yield();  // launches without a batch
        if (held->in_use != 0) device.violation("tables of keys destroyed while work uses them");
    }
    Result<> replace(std::uint32_t index, const Key& key, Stream stream) override;
    bool whole() const noexcept override { return !torn; }

    HostDevice& device;
    const std::shared_ptr<HeldTables> held;
    std::atomic<bool> torn{false};  // a replacement that failed midway
};

// A list of the host's is copied; one in device memory is read when the batch runs.
struct HostDevice::HeldBatch {
    HeldBatch(HostDevice& owner, const Cipher& the_cipher, const Messages& messages,
              std::shared_ptr<HeldTables> the_tables)
        : device(owner), cipher(the_cipher), given(messages), tables(std::move(the_tables)) {
        ++device.batches_;
    }
    ~HeldBatch();

    HostDevice& device;
    const Cipher cipher;
    const Messages given;
    const std::shared_ptr<HeldTables> tables;
    std::vector<Message> copied;
    std::uint32_t* codes = nullptr;
    // Runs on different streams take turns.
    std::mutex mutex;
    std::condition_variable turn;
    std::uint64_t launched = 0, done = 0;
};
struct HostDevice::PreparedBatch final : core::Prepared {
    explicit PreparedBatch(std::shared_ptr<HeldBatch> what) : held(std::move(what)) {}
    ~PreparedBatch() override;
    const std::uint32_t* results() const override { return held->codes; }
    Result<> outcome() const override;

    const std::shared_ptr<HeldBatch> held;
};

// A device that fails has stopped, too; or nobody knows.
template <class Wait>
Result<> HostDevice::waited(const char* call, Wait wait) {
    if (options_.gives_up) {
        auto attempted = attempt(call);
        if (!attempted) {
            ++given_up_;
            return attempted;
        }
        wait();
        return {};
    }
    wait();
    return attempt(call);
}

}  // namespace dael::test
