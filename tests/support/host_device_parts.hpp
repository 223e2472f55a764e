// SPDX-License-Identifier: Apache-2.0
// What the device made of threads is made of; for its own files.
#pragma once

#include <condition_variable>
#include <deque>
#include <set>
#include <thread>

#include "support/host_device.hpp"

namespace dael::test {

// A stream.
struct HostDevice::Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> work;
    bool busy = false, closing = false;
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
            changed.wait(lock, [&] { return closing || !work.empty(); });
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
        passed.wait(lock, [&] { return !ahead.contains(which); });
    }
};

// Keys on the device. Work reads them when it runs, so that replace() takes place in its order.
struct HostDevice::Tables final : core::KeyTables {
    explicit Tables(HostDevice& owner) : device(owner) { ++device.batches_; }
    ~Tables() override {
        while (lent != 0) std::this_thread::yield();  // launches without a batch
        if (in_use != 0) device.violation("tables of keys destroyed while work uses them");
        --device.batches_;
    }
    Result<> replace(std::uint32_t index, const Key& key, Stream stream) override;
    bool whole() const noexcept override { return !torn; }
    core::Keys keys() const { return {copies, maths.get()}; }

    HostDevice& device;
    std::vector<Key> copies;
    std::unique_ptr<core::KeyTables> maths;
    mutable std::atomic<int> in_use{0}, lent{0};
    std::atomic<bool> torn{false};  // a replacement that failed midway
};

// A list of the host's is copied; one in device memory is read when the batch runs.
struct HostDevice::Batch final : core::Prepared {
    Batch(HostDevice& owner, const Cipher& the_cipher, const Messages& messages,
          const Tables& the_tables)
        : device(owner), cipher(the_cipher), given(messages), tables(the_tables) {
        ++device.batches_;
    }
    ~Batch() override;
    const std::uint32_t* results() const override { return codes; }
    Result<> outcome() const override;

    HostDevice& device;
    const Cipher cipher;
    const Messages given;
    const Tables& tables;
    std::vector<Message> copied;
    std::uint32_t* codes = nullptr;
    // Runs on different streams take turns.
    std::mutex mutex;
    std::condition_variable turn;
    std::uint64_t launched = 0, done = 0;
};

}  // namespace dael::test
