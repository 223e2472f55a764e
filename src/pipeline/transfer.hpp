// SPDX-License-Identifier: Apache-2.0
// Overlapped copies and kernels (H2D, kernel, D2H), in every mode: host memory goes through a
// device in chunks, which go in, are transformed, and come out, all three at once for different
// ones: a stream for each direction of the bus, and others for the kernels.
//
// What is page-locked and short a kernel reads and writes where it lies: one launch, no copies.
//
// Promises: page-locked memory is copied directly, other memory through page-locked rings that
// several threads fill and drain while the device works. Work may be in place. Data may be larger
// than the device's memory, but a message that cannot be cut may not. Plaintext comes back from the
// device only once its tag is verified. When a call returns, with or without an error, nothing of
// it is still under way, unless the device no longer answers when it is waited for. A call that
// fails gives back what it has not done. Any number of threads may call at once; each call has a
// set of slots to itself, no larger than its data.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "core/device.hpp"
#include "pipeline/copies.hpp"
#include "pipeline/slots.hpp"
#include "pipeline/thread_pool.hpp"
#include "pipeline/work_queue.hpp"

namespace dael::pipeline {

inline constexpr std::size_t kDefaultChunk = std::size_t{16} << 20;

struct TransferOptions {
    std::size_t chunk = kDefaultChunk;  // bytes, at most, where messages can be cut
    int slots = 4;                      // 3 keep both directions busy; the fourth covers the kernel
    int threads = 1;                    // that copy to and from the staging rings
    bool transform = true;              // false: copies in and out only, for measuring the bus
    // Others take from the queue, too, and do what this device fails at: what is in place is
    // written once a chunk is whole, so that its input is there until then.
    bool several = false;
    // Seconds that a chunk may take, and half a second more for each megabyte of it, before the
    // device is given up: it has not answered, and others can do it. Only where it writes nothing
    // that is the caller's; else it is waited for.
    double patience = 0;   // 0: for ever
    bool one_key = false;  // messages of a chunk have one key, by which the queue is ordered
    // How the messages cross, where that was asked before: drivers take a microsecond to say.
    std::optional<Direct> direct = {};
};

// Whether messages of one launch may have different keys; else a request goes key by key.
bool takes_mixed_keys(const Cipher& cipher) noexcept;

// What all calls through a device may use of it at once: bytes of its memory, for staging, and of
// page-locked memory as many; and bytes a second across its bus, each way. 0: no bound of this
// kind.
struct Budget {
    std::size_t memory = 0;
    std::uint64_t copy_rate = 0;
};

// Holds copies back. For any number of threads.
class Pace {
  public:
    explicit Pace(std::uint64_t rate) noexcept : rate_(rate) {}
    // Returns when so many bytes more may go: each waits for those before it.
    void wait_for(std::uint64_t bytes);

  private:
    const std::uint64_t rate_;  // bytes a second; 0: any
    std::mutex mutex_;
    std::chrono::steady_clock::time_point free_{};
};

class Transfer {
  public:
    Transfer(core::Device& device, ThreadPool& pool, const Budget& budget = {})
        : device_(device), pool_(pool), slots_(device, budget.memory), pace_(budget.copy_rate) {}

    // Takes from the queue, as a member of it, until nothing is left there; `request` is what the
    // queue is of, with tables of this device. Whatever it has taken and not done it gives back.
    // Returns how many threads of the host took part. Errors: device, out_of_memory, and what the
    // device says to the cipher.
    Result<int> run(const Request& request, WorkQueue& queue, WorkQueue::Member& member,
                    const TransferOptions& options);

    SlotPool& slots() noexcept { return slots_; }
    // Whether it was given up once: what it was given may be in use for as long as it likes, and
    // whoever frees something there may wait as long.
    bool given_up() const noexcept { return given_up_; }

  private:
    class Call;
    void give_up() noexcept {
        given_up_ = true;
        slots_.lose();
    }
    Result<> run_in_reach(const Request& request, WorkQueue& queue, WorkQueue::Member& member);
    core::Device& device_;
    ThreadPool& pool_;
    SlotPool slots_;
    Pace pace_;
    std::atomic<bool> given_up_{false};
};

}  // namespace dael::pipeline
