// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <daelstrom/daelstrom.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace daelpy {

// What was allocated on a device, given back after the stream has come to its end; kept, for as
// long as the process lives, where the stream cannot be waited for. One failure may be that of work
// that came before, so it is asked twice.
class Loan {
  public:
    Loan(dael_device* device, void* stream) : device_(device), stream_(stream) {}
    ~Loan() {
        if (issued && dael_stream_wait(device_, stream_) != DAEL_OK &&
            dael_stream_wait(device_, stream_) != DAEL_OK)
            return;
        for (dael_batch* batch : batches) dael_batch_free(batch);
        for (void* event : events) dael_event_destroy(device_, event);
        for (const auto& [memory, size] : pinned_) {
            dael_wipe(memory, size);
            dael_device_release_pinned(device_, memory);
        }
        for (void* memory : memory_) dael_device_release(device_, memory);
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    dael_status device(std::uint64_t size, std::uint8_t** memory) {
        void* made = nullptr;
        memory_.reserve(memory_.size() + 1);
        const auto status = dael_device_allocate(device_, std::max<std::uint64_t>(size, 1), &made);
        if (status == DAEL_OK) memory_.push_back(made);
        *memory = static_cast<std::uint8_t*>(made);
        return status;
    }
    dael_status pinned(std::uint64_t size, std::uint8_t** memory) {
        void* made = nullptr;
        pinned_.reserve(pinned_.size() + 1);
        const auto status =
            dael_device_allocate_pinned(device_, std::max<std::uint64_t>(size, 1), &made);
        if (status == DAEL_OK) pinned_.emplace_back(made, size);
        *memory = static_cast<std::uint8_t*>(made);
        return status;
    }

    std::vector<dael_batch*> batches;
    std::vector<void*> events;
    // Whether the stream has work on what is lent. Where it has none it is not waited for: that
    // would end a capture of the caller's.
    bool issued = true;

  private:
    dael_device* device_;
    void* stream_;
    std::vector<void*> memory_;
    std::vector<std::pair<void*, std::uint64_t>> pinned_;
};

}  // namespace daelpy
