// SPDX-License-Identifier: Apache-2.0
// A device's memory, streams and events, released when they go; and how its time is taken.
#pragma once

#include <functional>
#include <memory>

#include <daelstrom/device.hpp>

#include "measure/memory.hpp"
#include "measure/turns.hpp"

namespace dael::measure {

enum class MemoryKind { device, pinned };

// Memory of, or page-locked for, a device.
class DeviceBuffer {
  public:
    DeviceBuffer() = default;
    static Result<DeviceBuffer> allocate(const DeviceAccess& device, MemoryKind kind,
                                         std::size_t size);
    std::uint8_t* data() const noexcept { return static_cast<std::uint8_t*>(memory_.get()); }
    std::size_t size() const noexcept { return size_; }

  private:
    std::shared_ptr<void> memory_;
    std::size_t size_ = 0;
};

class DeviceStream {
  public:
    // Timed: events on it tell times.
    static Result<DeviceStream> create(const DeviceAccess& device, bool timed = false);
    Stream get() const noexcept { return *stream_; }

  private:
    std::shared_ptr<Stream> stream_;
};

// What is put on a stream.
using Launch = std::function<Result<>(Stream)>;

// Takes times on one stream of a device, which it does not keep alive.
class DeviceClock {
  public:
    static Result<DeviceClock> create(const DeviceAccess& device);
    const DeviceAccess& device() const noexcept { return *device_; }

    // By events before and after one launch: the device's own time. `before`, if any, goes first,
    // outside the measured time.
    Sampler by_events(Launch launch, Launch before = {}) const;
    // By the host's clock, the wait for the end included.
    Sampler by_wall(Launch launch, const Sampling& sampling) const;
    // Launches one after another with one wait at the end, by the host's clock: the cost of each.
    Sampler back_to_back(Launch launch, int launches) const;

    Result<> run(const Launch& launch) const;  // launches and waits
    Result<> copy_in(void* device_memory, const void* host, std::size_t size) const;
    Result<> fill(void* device_memory, std::uint8_t value, std::size_t size) const;
    Fetch fetch_from(const std::uint8_t* device_memory) const;
    // Reads and writes as many bytes as work on them does.
    Launch copy_within(void* to, const void* from, std::size_t size) const;

  private:
    std::shared_ptr<const DeviceAccess> device_;
    DeviceStream stream_;
    std::shared_ptr<Event> begin_, end_;
};

}  // namespace dael::measure
