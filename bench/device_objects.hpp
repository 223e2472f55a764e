// SPDX-License-Identifier: Apache-2.0
// A device's memory, streams and events, released when they go; and how its time is taken.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "bench/check.hpp"
#include "bench/measure.hpp"
#include "core/device.hpp"

namespace dael::bench {

enum class MemoryKind { device, pinned };

// Memory of, or page-locked for, a device.
class DeviceMemory {
  public:
    DeviceMemory() = default;
    static Result<DeviceMemory> allocate(core::Device& device, MemoryKind kind, std::size_t size);
    std::uint8_t* data() const noexcept { return static_cast<std::uint8_t*>(memory_.get()); }
    std::size_t size() const noexcept { return size_; }

  private:
    std::shared_ptr<void> memory_;
    std::size_t size_ = 0;
};

class DeviceStream {
  public:
    // Timed: events on it tell times.
    static Result<DeviceStream> create(core::Device& device, bool timed = false);
    Stream get() const noexcept { return *stream_; }

  private:
    std::shared_ptr<Stream> stream_;
};

// What is put on a stream.
using Launch = std::function<Result<>(Stream)>;

// Takes times on one stream of a device.
class DeviceClock {
  public:
    static Result<DeviceClock> create(core::Device& device);
    Stream stream() const noexcept { return stream_.get(); }

    // By events before and after one launch: the device's own time.
    Sampler by_events(Launch launch) const;
    // By the host's clock, the wait for the end included.
    Sampler by_wall(Launch launch, const Sampling& sampling) const;
    // Launches one after another with one wait at the end, by the host's clock: the cost of each.
    Sampler back_to_back(Launch launch, int launches) const;

    Result<> run(const Launch& launch) const;  // launches and waits
    Fetch fetch_from(const std::uint8_t* device_memory) const;

  private:
    core::Device* device_ = nullptr;
    DeviceStream stream_;
    std::shared_ptr<core::Event> begin_, end_;
};

}  // namespace dael::bench
