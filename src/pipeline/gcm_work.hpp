// SPDX-License-Identifier: Apache-2.0
// GCM messages on their way to a backend, and the ways there: host memory on host threads, host
// memory through a device, and from a source into device memory.
//
// Promises: each message is checked by itself and has a result of its own; one that is not valid is
// not touched. Output of a message that fails to open never holds its plaintext.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include <daelstrom/gcm.hpp>

#include "core/device.hpp"
#include "modes/gcm.hpp"
#include "pipeline/slots.hpp"
#include "pipeline/thread_pool.hpp"

namespace dael::pipeline {

// Messages of a batch, or one with an IV of any length, as segments made when asked for: a list of
// all of them would be as large as the caller's.
class GcmWork {
  public:
    GcmWork(Direction way, std::span<const GcmMessage> batch, std::size_t tag) noexcept
        : direction(way), messages_(batch), tag_size_(tag) {}
    GcmWork(Direction way, const core::GcmSegment& single) noexcept
        : direction(way), single_(&single) {}

    std::size_t size() const noexcept { return single_ ? 1 : messages_.size(); }
    core::GcmSegment operator[](std::size_t i) const noexcept {
        return single_ ? *single_ : modes::to_segment(messages_[i], tag_size_);
    }
    // Whether there is a way to do the message, and what else becomes of it. Messages of a batch
    // with a tag size of 0 are for counter mode alone.
    bool takes(const core::GcmSegment& message, std::size_t keys) const noexcept {
        return counter_alone() ? modes::takes_ctr(message, keys) : modes::takes(message, keys);
    }
    Code refusal(const core::GcmSegment& message, std::size_t keys) const {
        return (counter_alone() ? modes::check_ctr(message, keys) : modes::check(message, keys))
            .code();
    }
    // What a message costs, in bytes of data.
    std::uint64_t weight(std::size_t i) const noexcept {
        // A message's first and last steps take about as long as this many bytes of data.
        constexpr std::uint64_t kSteps = 256;
        // Sizes beyond the limit are refused later, and must not overflow a sum until then.
        const auto bounded = [](std::uint64_t size) { return std::min(size, kGcmMostData); };
        return single_ ? kSteps + bounded(single_->size) + bounded(single_->aad_size)
                       : kSteps + bounded(messages_[i].size) + bounded(messages_[i].aad_size);
    }

    const Direction direction;

  private:
    bool counter_alone() const noexcept { return !single_ && tag_size_ == 0; }

    std::span<const GcmMessage> messages_;
    std::size_t tag_size_ = kTagSize;
    const core::GcmSegment* single_ = nullptr;
};

// Runs of whole messages of about the same weight, heaviest first. A message is never cut.
struct GcmShare {
    std::size_t begin, end;
    std::uint64_t weight;
};
std::vector<GcmShare> share_out(const GcmWork& work, int threads);

// How many of `most` threads a job deserves.
int threads_worth(const GcmWork& work, int most);

// `count` is how many keys there are. Returns the number of threads that took part.
Result<int> gcm_on_host(core::Backend& backend, ThreadPool& pool, const core::PreparedKeys& keys,
                        std::size_t count, const GcmWork& work, std::span<Code> results);

// Sealed messages that come in order from somewhere, to be opened into device memory. Each takes
// `piece` bytes of it with its tag, but the last, which takes what is left.
struct GcmSource {
    std::uint64_t size = 0;  // bytes of all
    std::size_t piece = 0;   // bytes
    // Puts the next bytes into `chunk`, which is all of it or what is left, and lists its messages
    // as they are once the chunk lies at `arrived` in device memory.
    std::function<Result<>(HostOut chunk, const std::uint8_t* arrived,
                           std::vector<GcmMessage>& messages)>
        next;
    // What to say of a message that fails, numbered from 0.
    std::function<Error(std::uint64_t message, Code code)> fault;
};

// Through a device, in slabs of many messages: one slab's messages are gathered while the device
// works on the one before. A message longer than a slab gets one of its own size.
class GcmTransfer {
  public:
    GcmTransfer(core::Device& device, ThreadPool& pool)
        : device_(device), pool_(pool), slots_(device) {}

    // Returns the number of slabs. `slab`: bytes.
    Result<std::uint64_t> run(const core::PreparedKeys& keys, std::size_t count,
                              const GcmWork& work, std::size_t slab, std::span<Code> results);

    // Into device memory (gcm_inflow.cpp): a chunk is read while the device opens those before it,
    // on `stream`. Returns the number of chunks, all done. After an error, which is that of the
    // first message that failed or of what ended the call, some plaintext may be in the messages'
    // outputs; none is on its way there any more. `chunk`: bytes; 0: as is best.
    Result<std::uint64_t> open_into(const core::PreparedKeys& keys, const GcmSource& source,
                                    std::size_t chunk, Stream stream);

  private:
    class Call;
    class Inflow;
    core::Device& device_;
    ThreadPool& pool_;
    SlotPool slots_;
};

}  // namespace dael::pipeline
