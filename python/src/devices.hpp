// SPDX-License-Identifier: Apache-2.0
// The devices of an engine, kept for calls that come back to them: a handle, and page-locked memory
// where a launch writes what became of its messages. None of it takes Python: calls are made while
// other threads run.
#pragma once

#include <daelstrom/daelstrom.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace daelpy {

// Those of one launch.
using Codes = std::uint32_t[DAEL_MAX_LAUNCHED];

class KeptDevice {
  public:
    explicit KeptDevice(std::shared_ptr<dael_device> device) : device_(std::move(device)) {}
    ~KeptDevice();
    KeptDevice(const KeptDevice&) = delete;
    KeptDevice& operator=(const KeptDevice&) = delete;

    const std::shared_ptr<dael_device>& handle() const { return device_; }
    dael_device* get() const { return device_.get(); }
    // Page-locked, and the caller's until they are given back, when nothing will write to them any
    // more. Allocates where none are free.
    dael_status take(Codes*& codes);
    void give(Codes* codes);
    // `later` goes on after what `first`, a stream too, has so far.
    dael_status follow(void* first, void* later);

  private:
    std::shared_ptr<dael_device> device_;
    std::mutex mutex_;
    std::vector<void*> blocks_;
    std::vector<Codes*> free_;
    std::vector<void*> events_;  // that nobody uses now; work that waits for one may be under way
};

class Devices {
  public:
    explicit Devices(dael_engine* engine);
    ~Devices();
    Devices(const Devices&) = delete;
    Devices& operator=(const Devices&) = delete;

    // Whether this is a child of fork(): it has no devices, and a thread of its parent may have
    // held a lock in that moment.
    bool in_child() const;
    // The device of this number, on which `memory` lies; negative: whichever that is.
    dael_status of(int number, const void* memory, KeptDevice*& found);

  private:
    dael_engine* const engine_;              // whose share of this outlives the calls
    std::atomic<std::uint64_t> process_{0};  // that came here first
    std::mutex mutex_;
    std::map<int, std::unique_ptr<KeptDevice>> kept_;
};

}  // namespace daelpy
