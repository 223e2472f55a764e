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
// fails says what it has done and what it has not touched. Any number of threads may call at once;
// each call has a set of slots to itself, no larger than its data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device.hpp"
#include "pipeline/chunks.hpp"
#include "pipeline/slots.hpp"
#include "pipeline/thread_pool.hpp"

namespace dael::pipeline {

inline constexpr std::size_t kDefaultChunk = std::size_t{16} << 20;

struct TransferOptions {
    std::size_t chunk = kDefaultChunk;  // bytes, at most, where messages can be cut
    int slots = 4;                      // 3 keep both directions busy; the fourth covers the kernel
    int threads = 1;                    // that copy to and from the staging rings
    bool transform = true;              // false: copies in and out only, for measuring the bus
};

// What became of a request that failed on a device.
struct Rest {
    // Whether anything at all may have been written; if not, all of the request is as it was, and
    // the codes say nothing.
    bool touched = false;
    // What was not done and whose input is whole: messages, or parts of some that are messages by
    // themselves, in the order of the list. None of a message that is lost.
    std::vector<Piece> pieces = {};
    bool lost = false;  // whether there is such a message: worked in place, and neither nor
};

struct Transferred {
    std::uint64_t chunks = 0;
    int threads = 1;
};

// Whether copies between the device and all of these messages are direct.
struct Direct {
    bool in = false;
    bool out = false;
};
Direct direct_copies(core::Device& device, std::span<const Message> messages);

// Whether page-locked messages are so few and short that kernels had better reach for them across
// the bus, `reach` being core::Device's; and whether these also lie as that asks for.
bool in_reach(std::size_t reach, const Cipher& cipher, std::uint64_t bytes,
              std::uint64_t messages) noexcept;
bool in_reach(core::Device& device, const Cipher& cipher,
              std::span<const Message> messages) noexcept;

// Whether messages of one launch may have different keys; else a request goes key by key.
bool takes_mixed_keys(const Cipher& cipher) noexcept;

class Transfer {
  public:
    Transfer(core::Device& device, ThreadPool& pool)
        : device_(device), pool_(pool), slots_(device) {}

    // Errors: device, out_of_memory, and what the device says to the cipher. The codes are those of
    // all messages if it succeeds. If it fails, and touched anything, they are ok or as ever for
    // what is done, the error's for what is as it was, and internal for the others.
    Result<Transferred> run(const Request& request, const TransferOptions& options, Rest& rest);

    SlotPool& slots() noexcept { return slots_; }

  private:
    class Call;
    Result<> run_in_reach(const Request& request, Rest& rest);
    core::Device& device_;
    ThreadPool& pool_;
    SlotPool slots_;
};

}  // namespace dael::pipeline
